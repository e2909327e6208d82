"""Preparing against a person: the shipped sample, its sentences, and whether they would have held."""

import math

import chess
import numpy as np
import pytest

from precomp_games.chess import (
    ChessGame,
    Preparation,
    PreparationSettings,
    action_of,
    games_policy,
)
from precomp_games.chess.data.move_counts import GameSelection, MoveCounts
from precomp_games.chess.study.words import points
from tests.examples.launcher import imported, printed, result_of, table
from tests.oracles.chess_books import book_of
from tests.oracles.pgn import game

LINES = {
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6": 5,
    "1. e4 e5 2. Nf3 d6 3. d4": 2,
    "1. e4 c5 2. Nf3 d6 3. d4 cxd4": 3,
    "1. d4 d5 2. c4 e6 3. Nc3": 2,
}


@pytest.fixture(scope="module")
def transfer():
    with imported("preparation_transfer") as module:
        yield module


@pytest.fixture
def them(tmp_path):
    """Games of "Them" with Black, a year apart."""
    lines = [line for line, count in LINES.items() for _ in range(count)]
    text = "".join(
        game(f"{line} {{game {k}}}", "Us", "Them", Date=f"{1990 + k // 3}.??.??", Round=str(k))
        for k, line in enumerate(lines)
    )
    path = tmp_path / "games.pgn"
    path.write_text(text)
    return path


# Costs seconds: an example at its defaults.
def test_shipped_sample(tmp_path):
    """White's alone, by stored searches."""
    said = printed("opponent_preparation", "--output_dir=out", cwd=tmp_path, has_engine=False)
    told = result_of(tmp_path / "out" / "white")
    assert "White alone: the stored searches are those." in said and not (tmp_path / "out" / "black").exists()
    assert 10 < told["size"] <= 60 and told["utility"] > told["unprepared"] + 0.05
    model, robust = told["model"], told["robust"]
    assert model["person"] == "Karpov Anatoli" and model["bits"] < 2.0
    assert told["settings"]["distrust"] == round(model["distrust"]["share"], 2) > 0.1
    assert told["unprepared"] == pytest.approx(
        robust["unprepared"]
    )  # nothing is played before the first move
    assert robust["unprepared"] + 0.01 < robust["utility"] < told["utility"]
    worth = points(told["utility"] - told["unprepared"])
    worst = points(robust["utility"] - robust["unprepared"])
    assert f"{told['size']} positions, worth {worth} more points in 100 games: " in said
    assert f"At worst            {worst} more points in 100 games: " in said
    rows = table(tmp_path / "out" / "white" / "positions.csv")
    assert len(rows) == told["size"]
    adds = math.fsum(float(row["adds"]) for row in rows)
    assert adds == pytest.approx(told["utility"] - told["unprepared"], abs=1e-9)
    rare = [float(row["adds"]) for row in rows if int(row["games"]) < 3]
    assert told["seldom"]["positions"] == len(rare)
    assert told["seldom"]["share"] == pytest.approx(math.fsum(rare) / adds)
    assert f"{len(rare)} of {len(rows)} positions" in said
    made = Preparation.read(tmp_path / "out" / "white")
    assert len(made.book) == len(rows)
    # A position hangs on a guess where a reply on the way to it is one.
    guessed = [
        row
        for row, position in zip(rows, made.book.positions, strict=True)
        if any(position.history[:ply] not in made.games for ply in range(2, len(position.history) + 1, 2))
    ]
    share = math.fsum(float(row["adds"]) for row in guessed) / adds
    assert told["guessed"] == pytest.approx(share) and 0.5 < share < 1.0
    assert f"{len(guessed)} of {len(rows)} positions rest on guesses, with {share:.0%} of" in said
    assert f"{'Coverage':<20}of 100 games " in said and (tmp_path / "out" / "white" / "traps.pgn").exists()
    plays, value, sure = said.rpartition("What to expect\n")[2].splitlines()
    assert plays.startswith("Karpov Anatoli: after 1. e4 expect c6 in 57 of 100 games (")
    assert "seen in 12" in plays
    assert value.startswith(f"More points in 100 games: {worth} with White (")
    assert f"carry {share:.0%} of that with White; at worst, {worst} with White are left." in sure
    lines = " ".join((tmp_path / "out" / "white" / "book.pgn").read_text().split())
    assert "of replies, seen in 12 of their games" in lines and "of replies, not in their games" in lines
    replies = [row["reply"] for row in table(tmp_path / "out" / "book.csv")]
    assert {"seen in 12 of their games", "seen in 9 of their games"} < set(replies)
    assert (tmp_path / "out" / "report.html").stat().st_size > 50_000


def test_an_earlier_person_is_who_it_was(them):
    """Cut at a date, a file is the file of the older games."""
    whole = games_policy(ChessGame(), them, "Them", before=1992.0)
    games = GameSelection(them, "Them").table()
    counts = whole.counts
    older = games.select(games.years < 1992.0)
    assert 0 < older.num_games < games.num_games
    assert isinstance(counts, MoveCounts) and counts.weights.sum() == older.own.sum()
    with pytest.raises(ValueError, match="expected dated games before 1900"):
        games_policy(ChessGame(), them, "Them", before=1900.0)


class AnyMove:
    """A back-off: the first three legal moves."""

    def action_probabilities_batch(self, states):
        return [dict(zip(state.legal_actions()[:3], (0.5, 0.3, 0.2), strict=False)) for state in states]


class Worth:
    """A value for each position."""

    def evaluate_batch(self, states):
        return [0.5 + 0.4 * math.sin(sum(state.history())) for state in states]


BOOK = book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | f1b5")


def by_recursion(state, memorized, counts, side):
    """Return (worth, moves of the book) of a game from here on, with replies by the formula and a cut."""
    if state.is_terminal():
        return state.returns()[0 if side == chess.WHITE else 1], 0.0
    if state.board.turn == side:
        move = memorized.get(tuple(state.history()))
        if move is None:
            white = Worth().evaluate_batch([state])[0]
            return (white if side == chess.WHITE else 1.0 - white), 0.0
        worth, moves = by_recursion(state.child(move), memorized, counts, side)
        return worth, moves + 1.0
    (prior,) = AnyMove().action_probabilities_batch([state])
    played = counts.get(state.board.epd(), {})
    whole = sum(played.values()) + 1.0
    row = {a: (played.get(a, 0.0) + prior.get(a, 0.0)) / whole for a in {*prior, *played}}
    kept = {a: p for a, p in row.items() if p >= 0.01}
    total = sum(kept.values())
    below = {a: by_recursion(state.child(a), memorized, counts, side) for a in kept}
    return tuple(sum(p / total * below[a][k] for a, p in kept.items()) for k in (0, 1))


def test_a_judge_is_the_formula_also_of_games_drawn_anew(transfer, them):
    games = GameSelection(them, "Them", max_plies=30).table()
    judge = transfer.Judge(games, AnyMove(), Worth())
    settings = PreparationSettings(max_plies=30)
    paths = transfer.paths_of(BOOK, settings, judge)
    rng = np.random.default_rng(0)
    n = games.num_games
    weights = np.hstack([np.ones((n, 1)), rng.multinomial(n, np.full(n, 1.0 / n), 20).T])
    odds = judge.odds(weights)
    found = paths.expected(odds, paths.values)
    moves = paths.expected(odds, paths.moves.astype(float))
    memorized = {
        tuple(map(action_of, position.history)): action_of(position.moves[0].move)
        for position in BOOK.positions
    }
    lines = [line for line, count in LINES.items() for _ in range(count)]
    for draw in range(weights.shape[1]):
        counts: dict[str, dict[int, float]] = {}
        for line, weight in zip(lines, weights[:, draw], strict=True):
            board = chess.Board()
            for san in (word for word in line.split() if not word.endswith(".")):
                move = board.parse_san(san)
                if board.turn == chess.BLACK and weight:
                    row = counts.setdefault(board.epd(), {})
                    row[action_of(move)] = row.get(action_of(move), 0.0) + weight
                board.push(move)
        want = by_recursion(ChessGame({"max_plies": 30}).new_initial_state(), memorized, counts, chess.WHITE)
        assert (found[draw], moves[draw]) == pytest.approx(want, abs=1e-12)


def test_hits_are_positions_that_came_up(transfer, them):
    found = transfer.hits(BOOK, GameSelection(them, "Them", max_plies=30).table())
    assert sorted(found.tolist()) == sorted([3.0] * 5 + [2.0] * 2 + [2.0] * 3 + [1.0] * 2)


@pytest.mark.engine
# Costs seconds: an example at its defaults.
def test_transfer_on_the_shipped_sample(tmp_path, searches):
    small = (
        "--behind=uniform",
        "--distrust=0.2",
        "--judge_behind=uniform",
        "--sizes=2,4",
        "--penalty=0.005",
        "--sides=white",
    )
    # The judge's own books have the same moves to choose among where its analyst is the same.
    nodes = ("--analyst_nodes=300", "--judge_nodes=300", "--plies=12", "--since=1992", "--until=1992")
    where = (f"--store={searches}", "--output_dir=out")
    printed("preparation_transfer", *small, *nodes, *where, cwd=tmp_path)
    told = result_of(tmp_path / "out")
    assert [row["size"] for row in told["summary"]] == [2] * 4 + [4] * 4
    for row in told["summary"]:
        assert row["low"] <= row["high"]
        if row["kind"] == "the judge's own":
            assert row["prepared_more"] <= 1e-9  # nothing is better, by the judge, than its own
    assert (tmp_path / "out" / "transfer.png").stat().st_size > 10_000
