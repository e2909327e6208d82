"""The examples on chess that are no commands."""

import math
import random
import re
import sys
from typing import Any

import chess
import numpy as np
import pytest

from precomp_games.chess import ChessGame, PreparationSettings, action_of, games_policy
from precomp_games.chess.data.move_counts import GameSelection
from tests.chess import fake_engine
from tests.examples.launcher import fails, files, imported, is_png, printed, result_of, table
from tests.examples.test_game_examples import bounds_are_bounds
from tests.oracles.chess_books import book_of
from tests.oracles.network import random_network
from tests.oracles.pages import data_of
from tests.oracles.pgn import game
from tools.soak.runs import stored

SMALL = ["--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=12"]


# Costs seconds: runs of the examples.
@pytest.mark.engine
def test_bounds_and_clocks(tmp_path, searches):
    shared = ["--chess", *SMALL, f"--store={searches}", f"--output_dir={tmp_path}"]
    assert "so it is." in printed("entropy_bounds", *shared, "--penalty=0.01", "--r_values=5,50")
    bounds_are_bounds(table(tmp_path / "entropy_bounds.csv"))
    assert result_of(tmp_path, "settings.json")["analyst_limit"] == "nodes=300"
    printed("clock_precomputation", *shared, "--r=20", "--penalty=0.1", "--times=4,12")
    found = [
        (int(row[f"{way}: size"]), float(row[f"{way}: value"]) - float(row["unprepared"]))
        for row in table(tmp_path / "clock_precomputation.csv")
        for way in ("moves only", "time only", "both")
    ]
    assert min(gain for _, gain in found) >= -1e-9 and any(size for size, _ in found)
    # To learn nothing is worth the same, whatever could have been learnt.
    assert all(abs(gain) <= 1e-9 for size, gain in found if not size)


# Costs seconds: runs of the example.
@pytest.mark.engine
def test_a_sweep_searches_a_position_once(tmp_path):
    def sweep(store, folder, workers):
        own = [f"--store={store}.sqlite", f"--output_dir={folder}", f"--workers={workers}", "--sides=black"]
        flags = ["--penalty=0.01", *SMALL, "--r_values=1,400", *own]
        return printed("randomness_vs_precomputation", *flags, cwd=tmp_path)

    (counts,) = re.findall(r"(\d+) distinct searches .*; (\d+) searches made", sweep("s", "a", 2))
    assert counts[0] == counts[1] == str(stored(tmp_path / "s.sqlite"))
    sweep("t", "b", 1)
    assert "; 0 searches made" in sweep("s", "c", 1)
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")
    rows = table(tmp_path / "a" / "randomness.csv")
    assert [(row["side"], row["r"]) for row in rows] == [("black", "1.0"), ("black", "400.0")]
    assert all(0.0 <= float(row["utility"]) <= 1.0 for row in rows)


@pytest.mark.engine
@pytest.mark.parametrize(("more", "comparable"), [("--penalty=1e-4", True), ("--penalty=1e-3", False)])
def test_published_values_stand_beside_what_they_are_comparable_to(more, comparable, tmp_path, searches):
    flags = ["--r_values=0.1", "--sides=white", f"--store={searches}", f"--output_dir={tmp_path}", more]
    output = printed("randomness_vs_precomputation", *flags)
    assert ("published utility" in output) == comparable and "not results of games" in output


# Costs seconds: an example.
@pytest.mark.engine
def test_books_of_several_sizes(tmp_path, searches):
    # What an engine is asked in games has to be enough for it to finish a depth anywhere.
    flags = ["--penalty=0.01", "--opponent_nodes=300", "--analyst_nodes=600", "--max_plies=8", "--r=30"]
    flags += ["--games=2", "--sizes=2,4", "--menu=2", "--play_budget=8", "--report", "--export=csv"]
    printed("book_size", *flags, f"--store={searches}", f"--output_dir={tmp_path}")
    rows = table(tmp_path / "sizes.csv")
    names = ["the book", "most reached", "main lines", "linear evaluation"]
    assert [row["player"] for row in rows] == ["no book", *names, *names]
    assert all(int(row["positions"]) <= int(row["budget"]) for row in rows)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (data,), size = data_of(page), int(rows[5]["positions"])
    assert len(data["positions"]) == size and "What books of several sizes score</bdi>" in page
    assert len(table(tmp_path / "book.csv")) == size and is_png(tmp_path / "sizes.png")


# -- whether preparations against a person would have held -------------------------------------------

LINES = {
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6": 5,
    "1. e4 e5 2. Nf3 d6 3. d4": 2,
    "1. e4 c5 2. Nf3 d6 3. d4 cxd4": 3,
    "1. d4 d5 2. c4 e6 3. Nc3": 2,
}
PLAYED = [line for line, count in LINES.items() for _ in range(count)]


@pytest.fixture
def them(tmp_path):
    """Games of "Them" with Black, three a year."""
    path = tmp_path / "games.pgn"
    games = (
        game(line, "Us", "Them", Date=f"{1990 + k // 3}.??.??", Round=str(k)) for k, line in enumerate(PLAYED)
    )
    path.write_text("".join(games))
    return path


def test_games_before_a_date_are_those_of_the_older_file(them):
    counts: Any = games_policy(ChessGame(), them, "Them", before=1992.0).counts
    games = GameSelection(them, "Them").table()
    older = games.select(games.years < 1992.0)
    assert 0 < older.num_games < games.num_games and counts.weights.sum() == older.own.sum()
    with pytest.raises(ValueError, match="expected dated games before 1900"):
        games_policy(ChessGame(), them, "Them", before=1900.0)


class AnyMove:
    """A back-off, the first three legal moves, and a value for each position."""

    def action_probabilities_batch(self, states):
        return [dict(zip(state.legal_actions()[:3], (0.5, 0.3, 0.2), strict=False)) for state in states]

    def evaluate_batch(self, states):
        return [0.5 + 0.4 * math.sin(sum(state.history())) for state in states]


BOOK = book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | f1b5")


def by_recursion(state, counts):
    """Return (worth, moves of the book) of a game from here on, with replies by the formula and a cut."""
    memorized = {
        tuple(map(action_of, position.history)): action_of(position.moves[0].move)
        for position in BOOK.positions
    }
    if state.board.turn == chess.WHITE:
        move = memorized.get(tuple(state.history()))
        if move is None:
            return AnyMove().evaluate_batch([state])[0], 0.0
        worth, moves = by_recursion(state.child(move), counts)
        return worth, moves + 1.0
    (prior,) = AnyMove().action_probabilities_batch([state])
    played = counts.get(state.board.epd(), {})
    whole = sum(played.values()) + 1.0
    row = {a: (played.get(a, 0.0) + prior.get(a, 0.0)) / whole for a in {*prior, *played}}
    kept = {a: p for a, p in row.items() if p >= 0.01}
    below = {a: by_recursion(state.child(a), counts) for a in kept}
    return tuple(sum(p * below[a][k] for a, p in kept.items()) / sum(kept.values()) for k in (0, 1))


def test_a_judge_is_the_formula_also_of_games_drawn_anew(them):
    with imported("preparation_transfer") as transfer:
        games = GameSelection(them, "Them", max_plies=30).table()
        judge = transfer.Judge(games, AnyMove(), AnyMove())
        settings = PreparationSettings(max_plies=30)
        paths = transfer.paths_of(BOOK, settings, judge)
        rng, n = np.random.default_rng(0), games.num_games
        weights = np.hstack([np.ones((n, 1)), rng.multinomial(n, np.full(n, 1.0 / n), 20).T])
        odds = judge.odds(weights)
        # Hits are positions that came up.
        found = transfer.hits(BOOK, games)
        assert sorted(found.tolist()) == sorted([3.0] * 5 + [2.0] * 2 + [2.0] * 3 + [1.0] * 2)
    found, moves = paths.expected(odds, paths.values), paths.expected(odds, paths.moves.astype(float))
    for draw in range(weights.shape[1]):
        counts = {}
        for line, weight in zip(PLAYED, weights[:, draw], strict=True):
            board = chess.Board()
            for san in (word for word in line.split() if not word.endswith(".")):
                move = board.parse_san(san)
                if board.turn == chess.BLACK and weight:
                    row = counts.setdefault(board.epd(), {})
                    row[action_of(move)] = row.get(action_of(move), 0.0) + weight
                board.push(move)
        want = by_recursion(ChessGame({"max_plies": 30}).new_initial_state(), counts)
        assert (found[draw], moves[draw]) == pytest.approx(want, abs=1e-12)


@pytest.mark.engine
# Costs seconds: the example, with an engine.
def test_nothing_is_better_by_the_judge_than_its_own_books(tmp_path, searches):
    flags = ["--behind=uniform", "--distrust=0.2", "--judge_behind=uniform", "--sizes=2,4", "--penalty=0.01"]
    flags += ["--sides=white", "--plies=10", "--since=1992", "--until=1992"]
    # The judge's own books have the same moves to choose among where its analyst is the same.
    flags += ["--analyst_nodes=300", "--judge_nodes=300", f"--store={searches}", f"--output_dir={tmp_path}"]
    printed("preparation_transfer", *flags)
    rows = result_of(tmp_path)["summary"]
    assert [row["size"] for row in rows] == [2] * 4 + [4] * 4
    assert all(row["low"] <= row["high"] for row in rows)
    assert all(row["prepared_more"] <= 1e-9 for row in rows if row["kind"] == "the judge's own")
    assert is_png(tmp_path / "transfer.png")


# -- predicting a person's moves ---------------------------------------------------------------------


@pytest.mark.slow("the shipped samples; in the next test few games")
def test_predictions_on_the_shipped_samples(tmp_path):
    output = printed("opponent_model", f"--output_dir={tmp_path}", has_engine=False)
    assert "Karpov Anatoli      126 games" in output and "147 before 1990" in output
    found = result_of(tmp_path)
    bits = {name: model["bits"] for name, model in found["models"].items()}
    assert bits["with population"] < 2.5 < bits["with age"] < bits["counts alone"] < 2.7
    assert bits["population alone"] > 3.0
    aged = found["models"]["with age"]
    assert [fit["year"] for fit in aged["fits"]] == found["years"] == [1990, 1991, 1992]
    rows = table(tmp_path / "by_ply.csv")
    assert [int(row["ply"]) for row in rows] == list(range(1, 17))
    assert sum(int(row["moves"]) for row in rows) == aged["moves"] == 392
    for name, value in bits.items():
        mean = sum(int(row["moves"]) * float(row[f"{name}, bits"]) for row in rows) / aged["moves"]
        assert mean == pytest.approx(value, abs=1e-3)
    assert is_png(tmp_path / "calibration.png") and is_png(tmp_path / "by_ply.png")


def test_predictions_without_a_population(tmp_path):
    years = "".join(game("1. e4 e5 2. Nf3", "Us", "Them", Date=f"{1990 + k}.??.??") for k in range(6))
    (tmp_path / "games.pgn").write_text(years)
    flags = ("--games=games.pgn", "--player=US", "--since=1994", "--plies=3", "--output_dir=out")
    printed("opponent_model", *flags, cwd=tmp_path, has_engine=False)
    models = result_of(tmp_path / "out")["models"]
    assert list(models) == ["counts alone", "with age"]
    # Whoever always plays the same is easily predicted.
    assert models["with age"]["first"] == 1.0 and models["with age"]["bits"] < 0.05


def rated(number):
    """Return a game of Us: two moves are played at each of the first positions."""
    rng, board, words = random.Random(number), chess.Board(), []
    for ply in range(16):
        moves = sorted(board.legal_moves, key=chess.Move.uci)
        move = rng.choice(moves[:2] if ply < 4 else moves)
        words.append(f"{board.san(move)} {{[%clk 0:02:{59 - ply:02}]}}")
        board.push(move)
    sides = ("Us", f"Other {number}")[:: 1 if number % 2 else -1]
    tags = {"Result": ("1-0", "0-1", "1/2-1/2")[number % 3], "TimeControl": "180+0"}
    tags |= {"WhiteElo": "1500", "BlackElo": "1600", "Date": f"{2000 + number // 12}.{number % 12 + 1:02}.01"}
    return game(" ".join(words), *sides, **tags)


@pytest.mark.slow("each part, in one run")
def test_models_of_people_are_checked_in_all_parts(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "games.pgn").write_text("".join(map(rated, range(300))))
    (tmp_path / "maia-1500.pb.gz").write_bytes(random_network())
    flags = ["--games=games.pgn", "--player=Us", "--maia=maia-1500.pb.gz", "--workers=1", "--output_dir=out"]
    flags += [f"--engine={sys.executable} {fake_engine.__file__}", "--moves=100", "--engine_moves=60"]
    flags += ["--errs=noisy(policy=uci(nodes=1000,r=40,top_k=5),epsilon=0.2)", "--least_games=25"]
    output = printed("people_check", *flags, "--positions=100", cwd=tmp_path)
    assert "300 games, of which the last 45 are predicted, from 2021" in output
    found = result_of(tmp_path / "out", "people_check.json")
    by = {(row["whose"], row["by"]): row for row in found["replies"] if row["speed"] == "all"}
    assert by["strangers", "any legal move"]["moves"] == 100 == by["player", "games before human"]["moves"]
    assert by["player", "games before human"]["bits"] < by["player", "human(rating)"]["bits"]
    assert by["player", "games before the engine"]["moves"] == 60
    assert sum(row["moves"] for row in found["reply_classes"] if row["whose"] == "player") == 100
    # The clock loses two seconds in a move of each side: one for the mover's, one for the other's.
    assert {row["spent"] for row in found["seconds"]} == {2.0} == {row["spent"] for row in found["known"]}
    met = [(row["half-moves"], row["met"]) for row in found["known"]]
    assert met[:2] == [("2 to 5", "under 20"), ("2 to 5", "20 or more")] and met[-1] == ("12 to 17", "never")
    assert [row["by"] for row in found["values"]][-1] == "bands" and len(found["value_classes"]) == 10
    best, white, black = found["off_policy"]
    assert best["positions"] == len(best["points"]) == 5
    assert min(white["positions"], black["positions"]) >= 2 and min(found["speed"].values()) > 0.0
    assert all(is_png(tmp_path / "out" / f"{name}.png") for name in ("replies", "values", "seconds"))
    fails("people_check", cwd=tmp_path, message="--games: expected rated games with clocks")
