"""Polyglot books as opponents, and what is left of broken ones."""

import os
import random
from pathlib import Path

import chess
import chess.polyglot
import pytest

from precomp_games import make_policy
from precomp_games.chess import ChessGame, action_of
from precomp_games.chess.data.move_counts import CountsPolicy, PolyglotCounts
from precomp_games.chess.model.opponents import GamesPolicy, polyglot_policy
from precomp_games.policies.specs import quoted
from tests.oracles.pgn import game, mutated
from tests.oracles.pgn import polyglot_entry as entry

GAME = ChessGame()
START = chess.Board()
CASTLE = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")


def actions(**weights: float) -> dict[int, float]:
    return {action_of(chess.Move.from_uci(move)): weight for move, weight in weights.items()}


BOOK = entry(START, "e2e4", 30) + entry(START, "d2d4", 10) + entry(START, "a2a3", 0)
BOOK += entry(CASTLE, "e1h1", 5) + entry(CASTLE, "e1a1", 3) + entry(CASTLE, "e1e8", 9)


def test_polyglot(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    path.write_bytes(BOOK)
    book = PolyglotCounts.read(path)
    assert len(book) == 6 and not book.left_out
    assert book.at(START) == actions(e2e4=30.0, d2d4=10.0, a2a3=0.0)
    assert book.at(CASTLE) == actions(e1g1=5.0, e1c1=3.0)
    assert PolyglotCounts.read(path, "score").at(START) == actions(e2e4=30.0, d2d4=10.0, a2a3=1.0)
    assert PolyglotCounts.read(path, "uniform").at(START) == actions(e2e4=1.0, d2d4=1.0, a2a3=1.0)
    state = GAME.new_initial_state()
    row = polyglot_policy(GAME, path, alpha=0.0).action_probabilities(state)
    assert row == actions(e2e4=0.75, d2d4=0.25)
    with chess.polyglot.open_reader(path) as reader:  # python-chess reads the same
        read = {action_of(e.move): float(e.weight) for e in reader.find_all(START, minimum_weight=0)}
    assert read == book.at(START)
    path.write_bytes(BOOK[::-1][:7])
    with pytest.raises(ValueError, match=r"PolyglotCounts\.read\(\): expected Polyglot entries"):
        PolyglotCounts.read(path)
    path.write_bytes(BOOK + b"abc")
    assert PolyglotCounts.read(path).left_out == {"an entry that breaks off": 1}


LATER = chess.Board()
LATER.push_uci("e2e4")
ENTRIES = sorted([entry(START, "e2e4", 30), entry(START, "d2d4", 10), entry(LATER, "c7c5", 7)])


@pytest.mark.parametrize(
    ("data", "strange", "row"),
    [
        (ENTRIES, {}, {"e2e4": 30.0, "d2d4": 10.0}),
        (ENTRIES[::-1], {"entries not sorted": 1}, {"e2e4": 30.0, "d2d4": 10.0}),
        ([*ENTRIES, *ENTRIES[:1]], {"entries not sorted": 1, "entries that repeat": 1}, None),
        (
            sorted([*ENTRIES, *ENTRIES, entry(START, "e2e4", 1)]),
            {"entries that repeat": 4},
            {"e2e4": 61.0, "d2d4": 20.0},
        ),
        (
            sorted([*ENTRIES, entry(START, "a2a3", 0), entry(LATER, "a7a6", 0)]),
            {"moves of weight 0": 2},
            {"e2e4": 30.0, "d2d4": 10.0, "a2a3": 0.0},
        ),
        ([entry(START, "e2e4", 0), entry(START, "e2e4", 5)], {"entries that repeat": 1}, {"e2e4": 5.0}),
        (
            sorted([entry(START, "a2a3", 0), entry(START, "b2b3", 0), entry(LATER, "c7c5", 1)]),
            {"moves of weight 0": 2, "positions without other moves": 1},
            {"a2a3": 0.0, "b2b3": 0.0},
        ),
        (
            [entry(START, "e2e4", 0), b"half"],
            {"moves of weight 0": 1, "positions without other moves": 1},
            None,
        ),
    ],
)
def test_polyglot_files_that_are_not_as_they_should_be(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    data: list[bytes],
    strange: dict[str, int],
    row: dict[str, float] | None,
) -> None:
    """They are read, and each fault is reported once, with its number."""
    path = tmp_path / "book.bin"
    path.write_bytes(b"".join(data))
    book = PolyglotCounts.read(path)
    assert len(book.strange) == len(strange)
    for what, count in strange.items():
        assert [n for reason, n in book.strange.items() if reason.startswith(what)] == [count]
    assert row is None or book.at(START) == actions(**row)
    again = PolyglotCounts(book.as_arrays()["entries"].tobytes())
    assert again.at(START) == book.at(START) and again.at(LATER) == book.at(LATER)
    policy = polyglot_policy(GAME, path)
    assert sum(policy.action_probabilities(GAME.new_initial_state()).values()) == pytest.approx(1.0)
    lines = [record.getMessage() for record in caplog.records]
    wrong = [*strange.items(), *[("an entry that breaks off", 1)] * (b"half" in data)]
    assert len(lines) == (len(wrong) > 0)
    assert all(f" {count} {what}" in lines[0] for what, count in wrong)
    assert not any(what.startswith("moves of weight") for what in PolyglotCounts.read(path, "score").strange)


# As browsers, systems and people name files.
_ODD = [
    "my games (1)",
    "a,b=c",
    "it's; [x] {y} %28",
    '"quoted" \\"',
    "-~.#?&",
    "ünï — партия",
    "1.5",
    "new\nline",
]


@pytest.mark.parametrize("name", _ODD)
def test_files_of_any_name_in_specs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each other and within each other, as paths and as what stands in the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / name
    folder.mkdir()
    (folder / name).write_bytes(BOOK)
    games = tmp_path / f"{name}.pgn"
    games.write_text(game("1. e4", "Karpov, Anatoly") + game("1. d4 d5 2. c4", "Other"))
    within = os.path.join(name, name)
    behind = f"polyglot(file={quoted(str(folder / name))},prior=polyglot(file={quoted(within)}))"
    spec = f"games(file={quoted(games.name)},player={quoted('Karpov, Anatoly')},alpha=0.3,prior={behind})"
    policy = make_policy(GAME, spec, trusted=True)
    assert isinstance(policy, GamesPolicy) and policy.report.names == ("Karpov, Anatoly",)
    given = {"name": "polyglot", "file": str(folder / name), "prior": {"name": "polyglot", "file": within}}
    start = GAME.new_initial_state()
    expected = make_policy(GAME, given, trusted=True).action_probabilities(start)
    assert policy.prior.action_probabilities(start) == expected
    with pytest.raises(
        ValueError, match=r"expected a spec that opens and runs nothing, got games\(file=...\)"
    ):
        make_policy(GAME, spec)


def test_specs(tmp_path: Path) -> None:
    (tmp_path / "book.bin").write_bytes(BOOK)
    (tmp_path / "games.pgn").write_text(game("1. e4", "Karpov, Anatoly") + game("1. d4 d5 2. c4", "Other"))
    population = f"games(file={tmp_path}/games.pgn,without=Karpov)"
    for spec in (
        f"polyglot(file={tmp_path}/book.bin,weights=score)",
        f"games(file={tmp_path}/games.pgn,player=Karpov Anatoly,half_life=8,alpha=0.3,prior={population})",
        f"noisy(policy={population},epsilon=0.1)",
    ):
        row = make_policy(GAME, spec, trusted=True).action_probabilities(GAME.new_initial_state())
        assert sum(row.values()) == pytest.approx(1.0) and len(row) == 20
    assert isinstance(make_policy(GAME, population, trusted=True), CountsPolicy)
    for spec, error in (
        ("games", r"expected games\(file=\.\.\.\)"),
        (f"games(file={tmp_path}/games.pgn,player=Nobody)", "expected moves of 'Nobody'"),
        (f"games(file={tmp_path}/games.pgn,fit=best)", "expected fit"),
        (f"games(file={tmp_path}/games.pgn,fit=rolling,alpha=2)", "got both"),
        (f"polyglot(file={tmp_path}/book.bin,weights=wins)", "expected weights"),
        ("polyglot(file=)", "expected a spec"),
    ):
        with pytest.raises(ValueError, match=error):
            make_policy(GAME, spec, trusted=True)
    with pytest.raises(OSError, match="none"):
        make_policy(GAME, f"games(file={tmp_path}/none.pgn)", trusted=True)


def test_mutated_books(tmp_path: Path, cases) -> None:
    """Of each kind: one clear error, or an opponent with legal moves."""
    rng, state = random.Random(3), GAME.new_initial_state()
    legal = set(state.legal_actions())
    path = tmp_path / "book.bin"
    refused = left_out = 0
    for _ in range(cases(500)):
        path.write_bytes(mutated(rng, BOOK))
        try:
            policy = polyglot_policy(GAME, path)
        except ValueError as error:
            assert "(): expected" in str(error)
            refused += 1
            continue
        assert isinstance(policy.counts, PolyglotCounts)
        left_out += bool(policy.counts.left_out)
        row = policy.action_probabilities(state)
        assert set(row) <= legal and sum(row.values()) == pytest.approx(1.0)
    assert 0 < refused < cases(450) and left_out > cases(25)
