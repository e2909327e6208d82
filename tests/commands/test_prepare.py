"""`precomp-games prepare`: books with an engine, by the shipped searches alone, and why there is none."""

import random
import re

import chess
import pytest

from precomp_games.chess import find_engine
from precomp_games.chess.study.words import points
from tests.commands.conftest import MATED, ends
from tests.examples.launcher import SERVER, files, is_png, result_of, table
from tests.oracles.pages import data_of
from tests.oracles.pgn import game, read_back, read_moves
from tools.soak.cases import CASES
from tools.soak.trials import Trial, kills, reference

TINY = ["--penalty=0.01", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=12", "--r=20"]


def prepared(folder, *flags):
    """Return a preparation's output and result; with one engine, the stored searches give the same files."""
    words = ["prepare", *TINY, *flags, "--match_games=2", "--neighbors=0"]
    output = ends(folder, *words, "--output_dir=out")
    again = ends(folder, *words, "--output_dir=again", "--workers=1")
    assert " 0 of them new" in again and files(folder / "again") == files(folder / "out")
    made = result_of(folder / "out")
    assert 0 < made["size"] == len(made["memorized"])
    match = rf"promised {points(made['utility'])}, scored [\d.]+ \+- .* in 2 games; without the book [\d.]+"
    assert re.search(rf"^Match +{match} \(points in 100 games\)$", output, re.MULTILINE)
    return output, made


# Costs seconds: runs of the command.
@pytest.mark.engine
@pytest.mark.parametrize(
    ("side", "evaluation"),
    [("white", "linear"), pytest.param("black", "calibrated", marks=pytest.mark.slow("games"))],
)
def test_a_book_is_in_all_its_files(side, evaluation, tmp_path):
    flags = ["--store=s.sqlite", "--play_budget=24", "--max_evaluations=400"]
    output, made = prepared(tmp_path, f"--side={side}", f"--evaluation={evaluation}", *flags)
    # Only games give what games are expected to score.
    lines = " ".join((tmp_path / "out" / "book.pgn").read_text().split())
    assert ("Expected score" in output) == (" expected " in lines) == (evaluation == "calibrated")
    assert ("not results of games" in output) == (evaluation == "linear")
    for memorized in made["memorized"]:
        board = chess.Board()
        for move in memorized["after"]:
            board.push_uci(move)
        found = {move.uci() for move in read_moves(tmp_path / "out" / "book.bin", board)}
        assert found >= {move for move, p in memorized["play"].items() if p > 1e-4}
    assert read_back(tmp_path / "out" / "book.pgn").variations


# Costs seconds: runs of the command.
@pytest.mark.engine
@pytest.mark.parametrize(
    "order", ["optimistic", pytest.param("certified", marks=pytest.mark.slow("another order"))]
)
def test_a_book_with_a_choice_of_moves(order, tmp_path, searches):
    flags = ["--evaluation=linear", "--menu=4", "--budget=12", "--max_evaluations=200"]
    _, made = prepared(tmp_path, *flags, f"--order={order}", f"--store={searches}")
    assert made["size"] <= 12 and made["work"]["evaluations"] <= 200
    assert made["unprepared"] < made["utility"] == made["value"] <= made["upper"] <= 1.0
    assert all(len(state["instead"]) <= 3 and len(state["play"]) == 1 for state in made["memorized"])
    assert any(state["instead"] for state in made["memorized"])


@pytest.mark.engine
@pytest.mark.slow("kills of an example; of a store in test_a_run_that_is_killed_goes_on")
def test_a_killed_run_loses_no_search_and_gives_the_same_files(tmp_path):
    (case,) = (case for case in CASES if case.name == "chess_preparation")

    def trial(name, expected=None, seconds=0.0):
        folder, rng = tmp_path / name, random.Random(0)
        return Trial(SERVER, case, expected or {}, seconds, find_engine(), folder, rng)

    assert kills(trial("killed", *reference(trial("whole"))))["kills"] > 0


@pytest.mark.engine
@pytest.mark.parametrize("evaluation", ["rollouts", "wdl"])
def test_only_roll_outs_give_what_games_of_the_model_are_expected_to_score(
    evaluation, here, tmp_path, searches
):
    flags = ["--penalty=0.05", "--opponent_nodes=100", "--analyst_nodes=200", "--max_plies=8", "--r=50"]
    flags += [f"--evaluation={evaluation}", "--match_games=0", f"--store={searches}", "--output_dir=."]
    output = here("prepare", *flags)
    assert result_of(tmp_path)["settings"]["evaluation"] == evaluation
    assert ("Expected score" in output) == (evaluation == "rollouts") != ("Analyst's score" in output)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([f"--fen={MATED}"], "The game is over where it starts: there is nothing to learn."),
        (["--evaluation=linear", "--max_plies=1"], "within --max_plies=1, since a draw follows; raise it"),
        (["--max_plies=1", "--side=black"], "It is never Black's move within --max_plies=1"),
        (["--penalty=0.9"], "Nothing is worth learning at this penalty; lower --penalty to learn more."),
        (["--evaluation=linear", "--penalty=0.9", "--max_plies=8"], "raise --max_plies=8, after which"),
        (["--penalty=0.9", "--max_plies=8"], "lower --penalty, or raise --max_plies=8 to learn more"),
        (["--budget=0", "--penalty=0.003"], "Nothing is worth learning at this budget; raise --budget"),
    ],
)
def test_why_nothing_is_learnt(flags, words, here, searches):
    assert words in here("prepare", *flags, "--play_budget=4", "--match_games=0", f"--store={searches}")


@pytest.mark.engine
def test_threads_and_times_are_marked_as_not_reproducible(here):
    flags = ["prepare", "--max_plies=1", "--evaluation=linear", "--store=s.sqlite"]
    causes = ["--engine_option=Threads=2", "--opponent_option=threads=2", "--analyst_movetime_ms=5"]
    message = f"Not reproducible: with {causes[0]} and {causes[1]} and --analyst_movetime_ms searches differ"
    assert message in here(*flags, *causes)
    assert "Not reproducible" not in here(*flags, "--engine_option=Threads=1")


# Costs seconds: a preparation and its match.
@pytest.mark.engine
@pytest.mark.parametrize("games", [24, 0])
def test_what_there_is_without_a_book_comes_from_games(games, here, tmp_path):
    """Against an opponent who plays badly, of whom an evaluation fitted to good play knows nothing."""
    flags = ["--max_plies=8", "--menu=2", "--budget=3", "--penalty=0.002", "--max_evaluations=40"]
    flags += ["--opponent_nodes=100", "--analyst_nodes=300", "--match_games=20", "--neighbors=0"]
    flags += ["--opponent=uniform", f"--play_budget={games}", "--store=s.sqlite", "--output_dir=out"]
    output = here("prepare", *flags)
    unprepared = result_of(tmp_path / "out")["unprepared"]
    if games:
        assert "was fitted with" in output and "Refuted" not in output and unprepared > 0.7
    else:  # the evaluation is trusted, and the match shows that it is wrong
        assert unprepared < 0.6 and float(re.search(r"without the book ([\d.]+)", output)[1]) > 70.0
        assert f"{points(unprepared)} unprepared: games without the book score" in output


@pytest.mark.slow("the command at its defaults but for the match")
def test_without_an_engine_there_is_no_other_match(here, without_engine):
    assert here("prepare", "--match_seed=5").count("No match: games need an engine") == 1


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--penalty=1e-5", "without an engine.*install Stockfish"),
        # Nor does one serve that was set up otherwise.
        ("--opponent_option=Hash=32", "install"),
        ("--engine_option=Hash=64", "install"),
        ("--workers=2", "install"),
        ("--store=typo.sqlite", "typo.sqlite"),
    ],
)
def test_what_is_not_in_the_shipped_searches_needs_an_engine(flag, words, here, tmp_path, without_engine):
    assert re.search(words, here("prepare", flag, "--output_dir=out", status=1))
    assert not (tmp_path / "out").exists()


# -- what is known already, plans and budgets --------------------------------------------------------

_TREE = ["prepare", "--evaluation=linear", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=10"]
_TREE += ["--r=30", "--penalty=0.002", "--match_games=0", "--output_dir=out"]


@pytest.mark.engine
def test_what_is_kept_is_in_the_book_and_the_rest_is_added(here, tmp_path, searches):
    mine = game("1. d4 d5 (1... Nf6 2. c4 e6 3. Nc3) 2. c4 e6 (2... c6 3. Nf3) 3. Nc3")
    (tmp_path / "mine.pgn").write_text(mine)
    output = here(*_TREE, "--keep=mine.pgn", f"--store={searches}")
    made = result_of(tmp_path / "out")
    kept, plays = made["kept"], {tuple(entry["after"]): entry["play"] for entry in made["memorized"]}
    assert plays[()] == {"d2d4": 1.0} and kept["given"] == 6 and kept["histories"] >= 1
    assert kept["learned"] == made["size"] - kept["histories"] == len(kept["additions"])
    assert made["value"] == pytest.approx(made["utility"] - 0.002 * kept["learned"])
    gains = sum(made["memorized"][k]["gain"] for k in kept["additions"])
    assert made["unprepared"] < kept["alone"] == pytest.approx(made["utility"] - gains)
    assert "If nothing is kept" in output and f"Your repertoire and {kept['learned']} addition" in output
    assert f"{kept['learned']} positions to learn, in a book of" in output


@pytest.mark.engine
def test_a_plan_of_positions(here, tmp_path, searches):
    here(*_TREE, "--side=black", "--price=positions", "--plan=1,3,6", f"--store={searches}")
    made, rows = result_of(tmp_path / "out"), table(tmp_path / "out" / "plan.csv")
    assert [int(row["positions"]) for row in rows] == [1, 3, 6]
    utilities = [float(row["utility"]) for row in rows]
    assert utilities == sorted(utilities) and made["utility"] == pytest.approx(utilities[-1])
    assert all(float(row["loss"]) >= -1e-12 for row in rows)
    assert made["distinct_positions"] == int(rows[-1]["learned"]) <= 6
    assert is_png(tmp_path / "out" / "plan.png")


@pytest.mark.engine
@pytest.mark.slow("a preparation with a budget")
def test_a_budget(here, tmp_path, searches):
    output = here(*_TREE, "--budget=10", "--report", f"--store={searches}", "--output_dir=.")
    made = result_of(tmp_path)
    assert made["budget"] == 10 and made["size"] <= 10 and made["value"] == made["utility"]
    assert "50 more positions" in output
    curve = [int(row["positions"]) for row in table(tmp_path / "memory.csv")]
    assert curve == sorted(curve) and is_png(tmp_path / "memory.png")
    # The page draws the best book of each size itself.
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [size for size, _ in data_of(page)[0]["sizes"]] == curve and "<figure" not in page
