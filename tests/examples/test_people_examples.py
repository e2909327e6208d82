"""Examples on people as a user runs them: on the shipped samples, and by networks drawn at random."""

import math
import os
import pathlib
import random
import re
import sys
from typing import Any

import chess
import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from precomp_games.chess import ChessGame, Preparation, PreparationSettings, action_of, games_policy
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.study.words import points
from tests.chess import fake_engine
from tests.examples.launcher import fails, files, imported, is_png, printed, result_of, table
from tests.oracles.chess_books import book_of
from tests.oracles.network import random_network
from tests.oracles.pages import opened, press, resize, text
from tests.oracles.pgn import game

_SMALLER = pytest.mark.slow("a shipped sample; tests/commands has smaller ones")

# -- preparing against a person ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def against_karpov(tmp_path_factory):
    """Return (folder, what is printed) of a preparation at its defaults, with no engine."""
    folder = tmp_path_factory.mktemp("karpov")
    output = printed("opponent_preparation", "--output_dir=out", cwd=folder, has_engine=False)
    return folder / "out", output


@_SMALLER
def test_the_readme_of_the_shipped_sample_has_what_its_files_have(against_karpov):
    """White's alone, by stored searches."""
    folder, output = against_karpov
    result, made = result_of(folder / "white"), Preparation.read(folder / "white")
    assert "White alone: the stored searches are those." in output and not (folder / "black").exists()
    assert 10 < result["size"] <= 60 and result["utility"] > result["unprepared"] + 0.05
    model, robust = result["model"], result["robust"]
    assert model["person"] == "Karpov Anatoli" and model["bits"] < 2.0
    assert result["settings"]["distrust"] == round(model["distrust"]["share"], 2) > 0.1
    # Nothing is played before the first move.
    assert result["unprepared"] == pytest.approx(robust["unprepared"])
    assert robust["unprepared"] + 0.01 < robust["utility"] < result["utility"]
    worth = points(result["utility"] - result["unprepared"])
    worst = points(robust["utility"] - robust["unprepared"])
    assert f"{result['size']} positions, worth {worth} more points in 100 games: " in output
    assert f"At worst            {worst} more points in 100 games: " in output
    rows = table(folder / "white" / "positions.csv")
    assert len(rows) == result["size"] == len(made.book)
    adds = math.fsum(float(row["adds"]) for row in rows)
    assert adds == pytest.approx(result["utility"] - result["unprepared"], abs=1e-9)
    rare = [float(row["adds"]) for row in rows if int(row["games"]) < 3]
    assert result["seldom"]["positions"] == len(rare)
    assert result["seldom"]["share"] == pytest.approx(math.fsum(rare) / adds)
    # A position hangs on a guess where a reply on the way to it is one.
    guessed = [
        float(row["adds"])
        for row, position in zip(rows, made.book.positions, strict=True)
        if any(position.history[:ply] not in made.games for ply in range(2, len(position.history) + 1, 2))
    ]
    share = math.fsum(guessed) / adds
    assert result["guessed"] == pytest.approx(share) and 0.5 < share < 1.0
    assert f"{len(guessed)} of {len(rows)} positions rest on guesses, with {share:.0%} of" in output
    assert "Karpov Anatoli: after 1. e4 expect c6 in 57 of 100 games (" in output
    assert f"carry {share:.0%} of that with White; at worst, {worst} with White are left." in output
    replies = {row["reply"] for row in table(folder / "book.csv")}
    assert {"seen in 12 of their games", "seen in 9 of their games"} < replies


@_SMALLER
@pytest.mark.browser
def test_pictures_for_the_docs(browser, against_karpov, tmp_path):
    """Pictures are made in any case, and written into docs/ if UPDATE_PICTURES is set."""
    docs = pathlib.Path(__file__).parents[2] / "docs"
    folder = docs if os.environ.get("UPDATE_PICTURES") else tmp_path
    opened(browser, against_karpov[0] / "report.html")
    assert text(browser, "h1") == "White against Karpov Anatoli"
    assert re.search(r"^Karpov Anatoli with Black: 58 games, 1984 to 1992$", text(browser, ".versus"))
    # Neither a spec nor a path, and none of the opponent's settings as flags have them.
    assert not re.search(r"games\(|\.pgn|=", text(browser, "main").replace("r = ", ""))
    resize(browser, 1280, 1020)
    press(browser, Keys.ARROW_RIGHT)
    moved = "return document.querySelector('#board .pieces [data-square=e4]') !== null"  # the pieces glide
    WebDriverWait(browser, 20).until(lambda _: browser.execute_script(moved))
    for name, width, height in (("wide", 1280, 1020), ("phone", 390, 844), ("dark", 390, 844)):
        resize(browser, width, height)
        feature = {"name": "prefers-color-scheme", "value": "dark" if name == "dark" else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        if name == "dark":
            browser.execute_script("document.getElementById('here').scrollIntoView()")
        path = folder / f"report_{name}.png"
        assert browser.save_screenshot(str(path))
        with Image.open(path) as picture:
            smaller = picture.convert("RGB").quantize(160)
        smaller.save(path, optimize=True)
        assert path.stat().st_size < 200_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.get_log("browser") == []


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


# -- one's own book and games ------------------------------------------------------------------------


@_SMALLER
def test_the_sample_book_is_judged_and_the_sample_games_are_reviewed(tmp_path):
    output = {}
    for example in ("judge_book", "review_games"):
        output[example] = printed(example, f"--output_dir={tmp_path / example}", has_engine=False)
        # No share of a game is printed; what is listed as worth less is so by a hundredth of a point or more.
        assert "points in 100 games" in output[example] and "No engine found" in output[example]
        assert not re.search(r"(?<![\d.])-?[01]\.\d{3,}(?![\d%])", output[example])
        _, _, rest = output[example].partition("worth less than another one, by these scores")
        less = re.findall(r"^ *([\d.]+) +[\d.]+%", rest.partition("\n\n")[0], re.MULTILINE)
        assert less and all(float(each) > 0.0 for each in less)

    result = result_of(tmp_path / "judge_book")
    positions = result["positions"]
    assert result["read"]["positions"] == 81 and result["read"]["contradictions"] == 3
    assert result["score"] == "Fitted score" and "0 of them new" in output["judge_book"]
    assert len(positions) == result["size"] == 22 and len(result["learn"]) == 10
    gains = sum(each["gain"] for each in positions)
    assert result["unprepared"] + gains == pytest.approx(result["utility"], abs=1e-9)
    assert result["value"] == pytest.approx(result["utility"] - 22 * 1e-3, abs=1e-12)
    assert 0.0 < result["own_regret"] < result["regret"] < 0.5
    assert sorted(each["drop"] for each in positions) == list(range(1, 23))
    # Forgetting the first move is forgetting the book.
    assert (positions[0]["after"], positions[0]["forgetting"]) == ("(start)", pytest.approx(gains, abs=1e-9))
    assert sum(each["because"] == "the opponent" for each in result["not_met"]) == 54
    for name in ("positions", "learn", "holes", "not_met"):
        assert len(table(tmp_path / "judge_book" / f"{name}.csv")) == len(result[name])

    seen = result_of(tmp_path / "review_games")
    assert seen["reviewed"] == 5 and "1 left out: games with the other side" in output["review_games"]
    assert seen["left_by"] == {"the book's end": 2, "you": 1, "the opponent": 2}
    (by_you,) = (each for each in seen["games"] if each["left_by"] == "you")
    assert (by_you["game"], by_you["played"], by_you["better"]) == (2, "exd5", "e5")
    assert [each["learn"] for each in seen["to_learn"]] == ["e5"]
    # A reply that was played once, of a model that was worth five games.
    new = next(each for each in seen["replies"] if each["reply"] == "Nc6" and each["was"] < 1e-9)
    assert new["is"] == pytest.approx(1 / 6, abs=1e-6)
    assert seen["before"]["utility"] == pytest.approx(result["utility"], abs=1e-12)
    assert seen["utility"] != result["utility"]
    assert len(table(tmp_path / "review_games" / "games.csv")) == 5


def test_a_table_of_an_earlier_run_goes(tmp_path):
    (tmp_path / "learn.csv").write_text("of an earlier run")
    flags = ("--learn=0", f"--output_dir={tmp_path}")
    assert "learn.csv" not in printed("judge_book", *flags, has_engine=False)
    tables = {"holes.csv", "not_met.csv", "positions.csv"}
    others = {"book.bin", "book.pgn", "opponent.npz", "result.json", "traps.pgn"}
    assert files(tmp_path).keys() == tables | others and result_of(tmp_path)["learn"] == []
