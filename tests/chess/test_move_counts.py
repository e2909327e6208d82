"""Counts and what they predict: by hand, by their limits, and by a plain loop over games; Polyglot books."""

import math
import pickle
import struct
import types

import chess
import chess.polyglot
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import make_policy
from precomp_games.chess import ChessGame, action_of, games_policy, move_of
from precomp_games.chess.data import move_counts
from precomp_games.chess.data.move_counts import (
    CountsPolicy,
    GameSelection,
    GameTable,
    GameWeights,
    MoveCounts,
    PolyglotCounts,
    predicted_rows,
)
from precomp_games.chess.model.count_fit import RollingCounts
from precomp_games.chess.model.opponents import GamesPolicy, polyglot_policy, rolling_fit
from precomp_games.policies.specs import quoted
from tests.oracles.pgn import game, polyglot_entry, read_moves
from tests.properties import examples

GAME = ChessGame()
START, LATER = chess.Board(), chess.Board()
LATER.push_uci("e2e4")


def after(*moves):
    """Return the state after moves in SAN."""
    state = GAME.new_initial_state()
    for san in moves:
        state.apply_action(action_of(state.board.parse_san(san)))
    return state


def by_san(state, row):
    return {state.board.san(move_of(action)): p for action, p in row.items()}


def actions(**weights):
    return {action_of(chess.Move.from_uci(move)): weight for move, weight in weights.items()}


def table_of(folder, *texts, player=None, **options):
    path = folder / "games.pgn"
    path.write_text("".join(texts))
    return GameSelection(str(path), player, **options).table()


GAMES = (
    game("1. d4 Nf6 2. c4 e6 3. Nf3", "A", "B", Date="2000.??.??"),
    game("1. c4 e6 (1... e5) 2. d4 Nf6 3. Nc3 {transposed}", "A", "C", Date="2002.??.??"),
    game("1. d4 Nf6 2. c4 e6 3. Nc3", "B", "A", Date="2004.??.??"),
    game("1. e4 Ke4", "A", "B", Date="2004.??.??"),
    game("1. e4 e5", "A", "B", Variant="Atomic"),
)
MET = after("d4", "Nf6", "c4", "e6")


def test_counts_by_hand(tmp_path):
    """Transpositions are one position; a player's own moves alone; a variation counts nothing."""
    table, start = table_of(tmp_path, *GAMES), after()
    own = MoveCounts.of_tables([table_of(tmp_path, *GAMES, player="A")])
    everyone = MoveCounts.of_tables([table])
    younger = [GameWeights(half_life=2.0, as_of=as_of) for as_of in (None, 2003.0)]
    recent, dated = (MoveCounts.of_tables([table], weights) for weights in younger)
    for counts, state, row in (
        (everyone, start, {"d4": 2.0, "c4": 1.0, "e4": 1.0}),
        (everyone, MET, {"Nf3": 1.0, "Nc3": 2.0}),
        (everyone, after("e4"), {}),
        (own, start, {"d4": 1.0, "c4": 1.0, "e4": 1.0}),
        (own, MET, {"Nf3": 1.0, "Nc3": 1.0}),
        (own, after("d4"), {"Nf6": 1.0}),
        (recent, MET, {"Nf3": 0.25, "Nc3": 1.5}),
        (dated, MET, {"Nf3": 2**-1.25, "Nc3": 2**-0.25 + 1.0}),  # of a newer game, the age is none
    ):
        assert by_san(state, counts.at(state.board)) == pytest.approx(row, abs=1e-15)


def test_weights_by_rating_and_speed(tmp_path):
    rated = {"WhiteElo": "2500", "BlackElo": "2600", "TimeControl": "60"}
    others = game("1. d4 d5", TimeControl="600+5"), game("1. c4 c5", Date="1999.01.01")
    table = table_of(tmp_path, game("1. e4 e5", **rated), *others)
    for state, options, row in (
        (after(), {"rating": 2700, "rating_scale": 100.0}, {"e4": 0.25, "d4": 1.0, "c4": 1.0}),
        (after("e4"), {"rating": 2700}, {"e5": 0.5}),
        (after(), {"speed": "rapid", "other_speeds": 0.5}, {"e4": 0.5, "d4": 1.0, "c4": 1.0}),
        (after(), {"speed": "rapid"}, {"d4": 1.0, "c4": 1.0}),
        (after(), {"half_life": 1.0}, {"c4": 1.0}),  # the others have no date
    ):
        counts = MoveCounts.of_tables([table], GameWeights(**options))
        assert by_san(state, counts.at(state.board)) == pytest.approx(row)


def test_batches_add_up(tmp_path, monkeypatch):
    whole = table_of(tmp_path, *GAMES)
    parts = [whole.select(np.arange(whole.num_games) == k) for k in range(whole.num_games)]
    monkeypatch.setattr(move_counts, "_ROWS", 3)
    for weights in (None, GameWeights(half_life=3.0)):
        one, many = (MoveCounts.of_tables(tables, weights) for tables in ([whole], parts))
        assert (one.keys == many.keys).all() and (one.actions == many.actions).all()
        assert one.weights == pytest.approx(many.weights, rel=1e-14)
    joined = GameTable.join(parts)
    assert all((getattr(joined, n) == getattr(whole, n)).all() for n in ("keys", "actions", "game", "own"))
    assert whole.ply.tolist() == [0, 1, 2, 3, 4] * 3 + [0]


@examples(200)
@given(
    st.dictionaries(st.sampled_from([7, *after().legal_actions()]), st.floats(1e-6, 1e6) | st.just(0.0)),
    st.floats(0.0, 1e9) | st.sampled_from([0.0, 5e-324, 1e300, math.inf]),
)
@example({}, 5e-324)
@example({}, 0.0)
@example(actions(d2d4=3.0), 0.0)
@example(actions(d2d4=3.0), math.inf)
def test_a_prior_is_worth_alpha_games_and_is_all_where_there_are_none(weights, alpha):
    """Of moves that are not legal, such as 7, and of those without weight there are none."""
    prior, source = actions(a2a3=0.75, d2d4=0.25), types.SimpleNamespace(at=lambda _: weights)
    counted = {a: w for a, w in weights.items() if a != 7 and w > 0.0}
    games = math.fsum(counted.values())
    share = 1.0 if math.isinf(alpha) or not games else alpha / (games + alpha)
    expected = dict.fromkeys(after().legal_actions(), 0.0) | {a: share * p for a, p in prior.items()}
    for a, w in counted.items():
        expected[a] += (1.0 - share) * w / games
    row = CountsPolicy(GAME, source, alpha, lambda _: prior).action_probabilities(after())
    assert dict.fromkeys(expected, 0.0) | row == pytest.approx(expected, abs=1e-12)
    if not games:
        uniform = dict.fromkeys(after().legal_actions(), 1 / 20)
        assert CountsPolicy(GAME, source, alpha).action_probabilities(after()) == pytest.approx(uniform)


# -- rolling -----------------------------------------------------------------------------------------------


def random_games(seed, count=40):
    """Return games of a few plies by a player whose taste changes."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(count):
        year, board, sans = int(rng.integers(1980, 1988)), chess.Board(), []
        for _ in range(int(rng.integers(1, 5))):
            moves = sorted(board.legal_moves, key=lambda move: move.uci())[: 2 + year % 3]
            sans.append(board.san_and_push(moves[int(rng.integers(len(moves)))]))
        players = ("A", "B") if rng.random() < 0.5 else ("B", "A")
        texts.append(game(" ".join(sans), *players, Date=f"{year}.{int(rng.integers(1, 13)):02}.15"))
    return texts


@examples(24)
@given(st.integers(0, 2**32), st.integers(10, 40))
def test_rolling_is_a_policy_for_each_month_that_has_only_those_before(tmp_path_factory, seed, count):
    table = table_of(tmp_path_factory.getbasetemp(), *random_games(seed, count), player="A")
    half_life, alpha = 2.0, 0.7
    legal = predicted_rows(CountsPolicy(GAME, MoveCounts.of_tables([])), table)
    played = table.actions[table.own].tolist()
    prior = np.array([row[action] for row, action in zip(legal, played, strict=True)])
    found = RollingCounts(table).probabilities(half_life, alpha, prior)
    expected = np.zeros(len(found))
    months = np.floor(12 * table.years)
    for month in np.unique(months):
        weights = GameWeights(half_life=half_life, as_of=month / 12)
        counts = MoveCounts.of_tables([table.select(months < month)], weights)
        rows = predicted_rows(CountsPolicy(GAME, counts, alpha), table)
        here = months[table.game[table.own]] == month
        expected[here] = [rows[k][played[k]] for k in np.flatnonzero(here)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_rare_positions_are_left_to_the_prior(tmp_path):
    path = tmp_path / "games.pgn"
    lines = ["1. e4 e5 2. Nf3 {again}", "1. e4 e5 2. Nf3", "1. e4 c5 2. c3", "1. d4"]
    path.write_text("".join(game(line, Round=str(k)) for k, line in enumerate(lines)))
    every, some, none = (games_policy(GAME, path, "A", alpha=1.0, least=least) for least in (1, 2, 5))
    prior, rare = CountsPolicy(GAME, MoveCounts.of_tables([])), after("e4", "c5")
    for policy, state, expected in (
        (some, after(), every),
        (some, after("e4", "e5"), every),
        (some, rare, prior),
        (none, after(), prior),
    ):
        assert policy.action_probabilities(state) == pytest.approx(expected.action_probabilities(state))
    assert every.action_probabilities(rare) != some.action_probabilities(rare)
    assert ",least=5," in none.spec("uniform") and "least" not in every.spec("uniform")


def test_a_fit_is_no_worse_than_the_grid_and_knows_no_later_games(tmp_path):
    table = table_of(tmp_path, *random_games(5, 60), player="A")
    rolling = RollingCounts(table)
    prior = np.full(len(rolling.years), 0.05)
    early = rolling.years < 1985
    (fit,) = rolling.fits(prior, [1985.0])

    def bits(half_life, alpha):
        return -np.log2(rolling.probabilities(half_life, alpha, prior)[early]).mean()

    assert fit.moves == early.sum() and fit.bits == pytest.approx(bits(fit.half_life, fit.alpha))
    for half_life in (0.5, 4.0, math.inf):
        assert all(fit.bits <= bits(half_life, alpha) + 1e-12 for alpha in (0.05, 1.0, 10.0))
    alone = RollingCounts(table.select(table.years < 1985))
    assert alone.fits(np.full(len(alone.years), 0.05), [math.inf]) == [fit]
    assert rolling.fits(prior, [1984.0, 1985.0])[1] == fit
    assert rolling.fits(prior, [1985.0], [4.0])[0].half_life == 4.0


def test_fits_find_what_made_the_games(tmp_path):
    """Recent games predict a player who changed its first move for good; all games, one who did not."""
    fickle = [game("1. e4" if y % 32 < 16 else "1. d4", Date=f"{1900 + y}.??.??") for y in range(64)]
    assert rolling_fit(table_of(tmp_path, *fickle), before=1990.0).half_life < 4.0
    moves = ("1. e4", "1. e4", "1. d4", "1. c4", "1. e4", "1. d4")
    steady = [game(moves[(y * 7) % 6], Date=f"{1900 + y}.??.??") for y in range(90)]
    assert rolling_fit(table_of(tmp_path, *steady)).half_life > 16.0


def test_policy_from_a_file(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text("".join(random_games(2, 80)))
    policy = games_policy(GAME, path, "A", fit="rolling")
    assert policy.fit is not None and policy.alpha == policy.fit.alpha
    assert policy.weights.half_life == policy.fit.half_life
    assert f"{policy.fit.bits:.3f} bits" in str(policy) and "games" in str(policy)
    again = pickle.loads(pickle.dumps(policy))
    states = [after(), after("a3"), after("a3", "a6")]
    assert again.action_probabilities_batch(states) == policy.action_probabilities_batch(states)
    assert policy.action_probabilities_batch(states)[1] == policy.action_probabilities(states[1], 1)
    path.write_text(game("", "A", "B"))
    with pytest.raises(ValueError, match=r"games_policy\(\): expected games in .*no moves"):
        games_policy(GAME, path)


def test_games_that_went_on_after_the_end(tmp_path):
    table = table_of(tmp_path, game("Nf3 Nf6 Ng1 Ng8 " * 5 + "e4"), max_plies=30)
    counts = MoveCounts.of_tables([table])
    assert counts.at(START) == actions(g1f3=5.0, e2e4=1.0)
    assert len(predicted_rows(CountsPolicy(GAME, counts), table)) == 21


# -- Polyglot ----------------------------------------------------------------------------------------------

CASTLE = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")


def entries(text, board=START):
    """Return entries of moves with their weights, sorted; "..." is before those after 1. e4."""
    words = [word.split(":") for word in text.split()]
    return sorted(
        polyglot_entry(LATER if move.startswith("...") else board, move.removeprefix("..."), int(weight))
        for move, weight in words
    )


BOOK = b"".join([*entries("e2e4:30 d2d4:10 a2a3:0"), *entries("e1h1:5 e1a1:3 e1e8:9", CASTLE)])


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.bin"
    path.write_bytes(BOOK)
    return path


def test_a_polyglot_book_is_read_as_python_chess_reads_it(book):
    counts = PolyglotCounts.read(book)
    assert len(counts) == 6 and not counts.left_out
    assert counts.at(START) == actions(e2e4=30.0, d2d4=10.0, a2a3=0.0)
    assert counts.at(CASTLE) == actions(e1g1=5.0, e1c1=3.0)
    assert PolyglotCounts.read(book, "score").at(START) == actions(e2e4=30.0, d2d4=10.0, a2a3=1.0)
    assert PolyglotCounts.read(book, "uniform").at(START) == actions(e2e4=1.0, d2d4=1.0, a2a3=1.0)
    row = polyglot_policy(GAME, book, alpha=0.0).action_probabilities(after())
    assert row == actions(e2e4=0.75, d2d4=0.25)
    read = read_moves(book, START)  # but for what is of no weight
    assert {action_of(move): float(weight) for move, weight in read.items()} == actions(e2e4=30.0, d2d4=10.0)
    to_none = 7 << 12 | chess.E2 << 6 | chess.E4
    book.write_bytes(BOOK + struct.pack(">QHHI", chess.polyglot.zobrist_hash(START), to_none, 9, 0) + b"abc")
    broken = PolyglotCounts.read(book)  # its last move becomes no piece that there is
    assert broken.at(START) == counts.at(START) and broken.left_out == {"an entry that breaks off": 1}


GOOD = entries("e2e4:30 d2d4:10 ...c7c5:7")
USUAL = {"e2e4": 30.0, "d2d4": 10.0}
UNSORTED, AGAIN, ZERO = "entries not sorted", "entries that repeat", "moves of weight 0"
ALONE = "positions without other moves"


@pytest.mark.parametrize(
    ("data", "strange", "row"),
    [
        (GOOD, {}, USUAL),
        (GOOD[::-1], {UNSORTED: 1}, USUAL),
        ([*GOOD, GOOD[0]], {UNSORTED: 1, AGAIN: 1}, None),
        (sorted([*GOOD, *GOOD, *entries("e2e4:1")]), {AGAIN: 4}, {"e2e4": 61.0, "d2d4": 20.0}),
        (sorted([*GOOD, *entries("a2a3:0 ...a7a6:0")]), {ZERO: 2}, USUAL | {"a2a3": 0.0}),
        (entries("e2e4:0 e2e4:5"), {AGAIN: 1}, {"e2e4": 5.0}),
        (entries("a2a3:0 b2b3:0 ...c7c5:1"), {ZERO: 2, ALONE: 1}, {"a2a3": 0.0, "b2b3": 0.0}),
        ([*entries("e2e4:0"), b"half"], {ZERO: 1, ALONE: 1}, None),
    ],
)
def test_polyglot_files_that_are_not_as_they_should_be_are_read(book, caplog, data, strange, row):
    """Each fault is reported once, with its number."""
    book.write_bytes(b"".join(data))
    counts = PolyglotCounts.read(book)
    assert len(counts.strange) == len(strange)
    for what, count in strange.items():
        assert [n for reason, n in counts.strange.items() if reason.startswith(what)] == [count]
    assert row is None or counts.at(START) == actions(**row)
    again = PolyglotCounts(counts.as_arrays()["entries"].tobytes())
    assert again.at(START) == counts.at(START) and again.at(LATER) == counts.at(LATER)
    policy = polyglot_policy(GAME, book)
    assert sum(policy.action_probabilities(after()).values()) == pytest.approx(1.0)
    wrong = strange | {"an entry that breaks off": 1} if b"half" in data else strange
    assert len(caplog.messages) == (len(wrong) > 0)
    assert all(f" {count} {what}" in caplog.messages[0] for what, count in wrong.items())
    assert not any(what.startswith("moves of weight") for what in PolyglotCounts.read(book, "score").strange)


# -- specs -------------------------------------------------------------------------------------------------


def test_specs(book, tmp_path):
    """Of files within each other, one of them with a name as browsers and people give them."""
    odd = tmp_path / 'my "games" (1), a=b.pgn'
    odd.write_text(game("1. e4", "Karpov, Anatoly") + game("1. d4 d5 2. c4", "Other"))
    games = f"games(file={quoted(str(odd))}"
    policy = make_policy(GAME, f"{games},player={quoted('Karpov, Anatoly')},alpha=0.3)", trusted=True)
    assert isinstance(policy, GamesPolicy) and policy.report.names == ("Karpov, Anatoly",)
    for spec in (
        {"name": "polyglot", "file": str(book), "weights": "score", "prior": f"{games},without=Karpov)"},
        f"{games},player=Karpov Anatoly,half_life=8,alpha=0.3,prior={games},without=Karpov))",
        f"noisy(policy={games},without=Karpov),epsilon=0.1)",
    ):
        row = make_policy(GAME, spec, trusted=True).action_probabilities(after())
        assert sum(row.values()) == pytest.approx(1.0) and len(row) == 20
        with pytest.raises(ValueError, match=r"opens and runs nothing, got \w+\(file=...\)"):
            make_policy(GAME, spec)
    for spec, error in {
        "games": r"expected games\(file=\.\.\.\)",
        f"{games},player=Nobody)": "expected moves of 'Nobody'",
        f"{games},fit=best)": "expected fit",
        f"{games},fit=rolling,alpha=2)": "got both",
        "polyglot(file=)": "expected a spec",
        f"games(file={tmp_path}/none.pgn)": "none",
    }.items():
        with pytest.raises((ValueError, OSError), match=error):
            make_policy(GAME, spec, trusted=True)
