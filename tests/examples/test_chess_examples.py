"""The examples on chess as a user runs them, with an engine or by the shipped searches alone."""

import math
import random
import re

import chess
import chess.polyglot
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.chess import find_engine
from precomp_games.chess.model.calibration import load_calibration
from precomp_games.chess.play.match_statistics import MatchStatistics
from precomp_games.chess.study.words import points
from tests.examples.launcher import SERVER, fails, files, is_png, printed, result_of, table
from tests.examples.test_game_examples import bounds_are_bounds
from tests.oracles.pages import data_of
from tests.oracles.pgn import game, games_of, read_back, read_moves
from tools.soak.cases import CASES
from tools.soak.clusters import engine_file
from tools.soak.runs import stored
from tools.soak.trials import Trial, kills, reference

TINY = ["--penalty=0.01", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=12", "--r=20"]
# What an engine is asked in games has to be enough for it to finish a depth anywhere.
PLAYED = ["--penalty=0.01", "--opponent_nodes=300", "--analyst_nodes=600", "--max_plies=8"]
MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 1"


# -- one side prepares -------------------------------------------------------------------------------


def prepared(cwd, *flags):
    """Return a preparation's output and result; with one engine, the stored searches give the same files."""
    words = [*TINY, *flags, "--match_games=2", "--neighbors=0"]
    output = printed("chess_preparation", *words, "--output_dir=out", cwd=cwd)
    again = printed("chess_preparation", *words, "--output_dir=again", "--workers=1", cwd=cwd)
    assert " 0 of them new" in again and files(cwd / "again") == files(cwd / "out")
    made = result_of(cwd / "out")
    assert 0 < made["size"] == len(made["memorized"])
    match = rf"promised {points(made['utility'])}, scored [\d.]+ \+- .* in 2 games; without the book [\d.]+"
    assert re.search(rf"^Match +{match} \(points in 100 games\)$", output, re.MULTILINE)
    return output, made


# Costs seconds: runs of the example.
@pytest.mark.engine
@pytest.mark.parametrize(
    ("side", "evaluation"),
    [("white", "linear"), pytest.param("black", "calibrated", marks=pytest.mark.slow("games"))],
)
def test_a_book_is_in_all_its_files(side, evaluation, tmp_path):
    flags = ["--store=s.sqlite", "--play_budget=24", "--max_evaluations=400"]
    output, made = prepared(tmp_path, f"--side={side}", f"--evaluation={evaluation}", *flags)
    assert made["value"] == pytest.approx(made["utility"] - 0.01 * made["size"])
    # Only games give what games are expected to score.
    lines = " ".join((tmp_path / "out" / "book.pgn").read_text().split())
    assert ("Expected score" in output) == (" expected " in lines) == (evaluation == "calibrated")
    assert ("not results of games" in output) == (evaluation == "linear")
    for memorized in made["memorized"]:
        board = chess.Board()
        for move in memorized["after"]:
            board.push_uci(move)
        assert board.turn == (side == "white")
        found = {move.uci() for move in read_moves(tmp_path / "out" / "book.bin", board)}
        assert found >= {move for move, p in memorized["play"].items() if p > 1e-4}
    assert read_back(tmp_path / "out" / "book.pgn").variations


# Costs seconds: runs of the example.
@pytest.mark.engine
@pytest.mark.parametrize(
    "order", ["optimistic", pytest.param("certified", marks=pytest.mark.slow("another order"))]
)
def test_a_book_with_a_choice_of_moves(order, tmp_path, searches):
    flags = ["--evaluation=linear", "--menu=4", "--budget=12", "--max_evaluations=200"]
    _, made = prepared(tmp_path, *flags, f"--order={order}", f"--store={searches}")
    assert made["size"] <= 12 and made["work"]["evaluations"] <= 200
    assert made["unprepared"] < made["utility"] == made["value"] <= made["upper"] <= 1.0
    gains = sum(state["gain"] for state in made["memorized"])
    assert gains == pytest.approx(made["utility"] - made["unprepared"])
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
def test_only_roll_outs_give_what_games_of_the_model_are_expected_to_score(evaluation, tmp_path, searches):
    flags = ["--penalty=0.05", "--opponent_nodes=100", "--analyst_nodes=200", "--max_plies=8", "--r=50"]
    flags += [f"--evaluation={evaluation}", "--match_games=0", f"--store={searches}"]
    output = printed("chess_preparation", *flags, f"--output_dir={tmp_path}")
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
def test_why_nothing_is_learnt(flags, words, tmp_path, searches):
    flags = [*flags, "--play_budget=4", "--match_games=0", f"--store={searches}", f"--output_dir={tmp_path}"]
    assert words in printed("chess_preparation", *flags)


@pytest.mark.engine
def test_threads_and_times_are_marked_as_not_reproducible(tmp_path):
    flags = ["--max_plies=1", "--evaluation=linear", "--store=s.sqlite", "--output_dir=out"]
    causes = ["--engine_option=Threads=2", "--opponent_option=threads=2", "--analyst_movetime_ms=5"]
    output = printed("chess_preparation", *flags, *causes, cwd=tmp_path)
    message = f"Not reproducible: with {causes[0]} and {causes[1]} and --analyst_movetime_ms searches differ"
    assert message in output
    fixed = printed("chess_preparation", *flags, "--engine_option=Threads=1", cwd=tmp_path)
    assert "Not reproducible" not in fixed


# Costs seconds: a preparation and its match.
@pytest.mark.engine
@pytest.mark.parametrize("games", [24, 0])
def test_what_there_is_without_a_book_comes_from_games(games, tmp_path):
    """Against an opponent who plays badly, of whom an evaluation fitted to good play knows nothing."""
    flags = ["--max_plies=8", "--menu=2", "--budget=3", "--penalty=0.002", "--max_evaluations=40"]
    flags += ["--opponent_nodes=100", "--analyst_nodes=300", "--match_games=20", "--neighbors=0"]
    flags += ["--opponent=uniform", f"--play_budget={games}", "--store=s.sqlite", "--output_dir=out"]
    output = printed("chess_preparation", *flags, cwd=tmp_path)
    unprepared = result_of(tmp_path / "out")["unprepared"]
    if games:
        assert "was fitted with" in output and "Refuted" not in output and unprepared > 0.7
    else:  # the evaluation is trusted, and the match shows that it is wrong
        assert unprepared < 0.6 and float(re.search(r"without the book ([\d.]+)", output)[1]) > 70.0
        assert f"{points(unprepared)} unprepared: games without the book score" in output


@pytest.mark.slow("the first example, at its defaults but for the match")
def test_without_an_engine_there_is_no_other_match(tmp_path):
    output = printed("chess_preparation", "--match_seed=5", f"--output_dir={tmp_path}", has_engine=False)
    assert output.count("No match: games need an engine") == 1


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--penalty=1e-5", ("without an engine", "install Stockfish")),
        # Nor does one serve that was set up otherwise.
        ("--opponent_option=Hash=32", "install"),
        ("--engine_option=Hash=64", "install"),
        ("--workers=2", "install"),
        ("--store=typo.sqlite", "typo.sqlite"),
    ],
)
def test_what_is_not_in_the_shipped_searches_needs_an_engine(flag, words, tmp_path):
    fails("chess_preparation", flag, "--output_dir=out", message=words, cwd=tmp_path, has_engine=False)
    assert not (tmp_path / "out").exists()


# -- what is known already, plans, budgets, bounds and clocks ----------------------------------------

_TREE = ["--evaluation=linear", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=10", "--r=30"]
_TREE += ["--penalty=0.002", "--match_games=0", "--output_dir=out"]


@pytest.mark.engine
def test_what_is_kept_is_in_the_book_and_the_rest_is_added(tmp_path, searches):
    mine = game("1. d4 d5 (1... Nf6 2. c4 e6 3. Nc3) 2. c4 e6 (2... c6 3. Nf3) 3. Nc3")
    (tmp_path / "mine.pgn").write_text(mine)
    output = printed("chess_preparation", *_TREE, "--keep=mine.pgn", f"--store={searches}", cwd=tmp_path)
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
def test_a_plan_of_positions(tmp_path, searches):
    own = ("--side=black", "--price=positions", "--plan=1,3,6", f"--store={searches}")
    printed("chess_preparation", *_TREE, *own, cwd=tmp_path)
    made, rows = result_of(tmp_path / "out"), table(tmp_path / "out" / "plan.csv")
    assert [int(row["positions"]) for row in rows] == [1, 3, 6]
    utilities = [float(row["utility"]) for row in rows]
    assert utilities == sorted(utilities) and made["utility"] == pytest.approx(utilities[-1])
    assert all(float(row["loss"]) >= -1e-12 for row in rows)
    assert made["distinct_positions"] == int(rows[-1]["learned"]) <= 6
    assert is_png(tmp_path / "out" / "plan.png")


@pytest.mark.engine
@pytest.mark.slow("a preparation with a budget")
def test_a_budget(tmp_path, searches):
    flags = [*_TREE[:-1], "--budget=10", "--report", f"--store={searches}", f"--output_dir={tmp_path}"]
    output = printed("chess_preparation", *flags)
    made = result_of(tmp_path)
    assert made["budget"] == 10 and made["size"] <= 10 and made["value"] == made["utility"]
    assert "50 more positions" in output
    curve = [int(row["positions"]) for row in table(tmp_path / "memory.csv")]
    assert curve == sorted(curve) and is_png(tmp_path / "memory.png")
    # The page draws the best book of each size itself.
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [size for size, _ in data_of(page)[0]["sizes"]] == curve and "<figure" not in page


# Costs seconds: runs of the examples.
@pytest.mark.engine
def test_bounds_and_clocks(tmp_path, searches):
    shared = ["--chess", *TINY[1:-1], f"--store={searches}", f"--output_dir={tmp_path}"]
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
        return printed("randomness_vs_precomputation", *TINY[:-1], "--r_values=1,400", *own, cwd=tmp_path)

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


# -- both sides prepare ------------------------------------------------------------------------------


# Costs seconds: a run of the example.
def test_both_sides_prepare_with_the_shipped_searches(tmp_path):
    for folder in (tmp_path / "again", tmp_path):
        output = printed("chess_equilibrium", f"--output_dir={folder}", has_engine=False)
    drawn = [(folder / "white.pgn").read_text() for folder in (tmp_path / "again", tmp_path)]
    assert drawn[0] == drawn[1]
    books = {f"{side}.{kind}" for side in ("white", "black") for kind in ("bin", "pgn")}
    assert files(tmp_path / "again").keys() == books | {
        "result.json",
        "tree.npz",
        "penalties.csv",
        "penalties.png",
    }
    found = result_of(tmp_path)
    assert found["nash_conv"] < 1e-12 and found["solver"] == "double_oracle"
    for row in found["penalties"]:
        assert row["black"] <= row["nobody"] <= row["white"]
        assert row["black"] - 1e-6 <= row["both"] <= row["white"] + 1e-6
    # At a prohibitive penalty nobody prepares.
    assert row["nobody"] == pytest.approx(row["both"])
    assert "analyst's score" in output and "not results of games" in output and "xpected score" not in output
    tree = HistoryTree.load(tmp_path / "tree.npz")
    meta = pyspiel.load_game("python_meta_precomputation", {"tree_file": str(tmp_path / "tree.npz")})
    assert meta.num_players() == 2
    for i, (side, other) in enumerate((("White", "Black"), ("Black", "White"))):
        rows, loss = found["memorized"][side.lower()], found["unaware"][side.lower()]["loss"]
        assert 1.0 < sum(row["probability"] for row in rows) == pytest.approx(found["sizes"][i])
        assert all(0.0 < row["probability"] <= 1.0 + 1e-12 and 0.0 <= row["reach"] <= 1.0 for row in rows)
        assert all(row["also_alone"] == (row["alone"] is not None) for row in rows)
        with chess.polyglot.open_reader(tmp_path / f"{side.lower()}.bin") as book:
            assert len(list(book)) <= len(rows) <= (tree.infoset_player == i).sum()
        provoked = [row for row in rows if not row["also_alone"]]
        size = sum(row["probability"] for row in provoked)
        assert f"positions on average, {size:.1f} of them only because the other side" in output
        assert f"Because {other} prepares, {side} learns:" in output
        # Who prepares for the unprepared loses, where the other side is prepared.
        assert loss > 1e-3 and f"lose {points(loss)} points in 100 games to a prepared" in output
        assert any(row["reach_unprepared"] == 0.0 < row["reach"] for row in provoked)


def test_both_sides_prepare_with_menus(tmp_path):
    """By an engine of no strength; test_trees.py has the books."""
    flags = [f"--engine={engine_file(tmp_path, slow=False)}", "--workers=1", "--store=s.sqlite"]
    flags += ["--menu=2", "--menu_window_cp=400", "--max_plies=3", "--r=200", "--penalty_factors=1,3"]
    flags += ["--penalty=0.003", "--fen=4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1", "--scale_cp=1000"]
    output = printed("chess_equilibrium", *flags, "--output_dir=out", cwd=tmp_path)
    found = result_of(tmp_path / "out")
    assert "with another move than alone" in output and found["settings"]["menu"] == 2
    rows = [row for side in ("white", "black") for row in found["memorized"][side]]
    assert sum(row["probability"] for row in rows) == pytest.approx(sum(found["sizes"]))
    assert all(row["also_alone"] == (row["alone"] == row["play"]) for row in rows)
    assert any(row["instead"] for row in rows) and found["nash_conv"] < 1e-12
    assert all(loss <= 1e-9 for row in rows for loss in row["instead"].values())
    flags += ["--max_histories=20", "--output_dir=no"]
    fails("chess_equilibrium", *flags, message="at most max_histories=20", cwd=tmp_path)


# -- matches -----------------------------------------------------------------------------------------


@pytest.mark.engine
@pytest.mark.slow("two preparations and their matches")
def test_a_match_of_books_of_both_colors(tmp_path, searches):
    kept = f"--store={searches}"
    for side in ("white", "black"):
        flags = [*TINY, "--evaluation=linear", f"--side={side}", "--match_games=0", kept]
        printed("chess_preparation", *flags, f"--output_dir={side}", cwd=tmp_path)
    both = ["--from=white", "--from=black", "--games=4", "--sprt=0,5", kept]
    output = printed("book_match", *both, "--output_dir=out", cwd=tmp_path)
    matches = result_of(tmp_path / "out")["matches"]
    players = ["no book", "the book", "most reached", "main lines", "analyst all game"]
    assert [row["player"] for row in matches] == 2 * players
    for row in matches:
        found, made = (
            MatchStatistics(row["wins"], row["draws"], row["losses"]),
            result_of(tmp_path / row["side"]),
        )
        assert (found.games, found.score) == (4, row["score"]) and row["low"] <= row["score"] <= row["high"]
        for name, value in zip(("elo", "elo_low", "elo_high"), (found.elo, *found.elo_interval), strict=True):
            assert row[name] == (value if math.isfinite(value) else None)
        if row["player"] in players[1:4]:
            assert row["positions"] == made["size"] > 0
        if row["player"] != "analyst all game":
            assert sum(exit["games"] for exit in row["exits"]) == 4
        if row["player"] == "the book":
            assert f"{'Elo with the book':<20}{found}\n" in output
            # Where each exit's promise counts by its reach, they are the book's.
            promised = sum(exit["reach"] * exit["promised"] for exit in row["exits"])
            assert promised == pytest.approx(row["promised"], abs=1e-6) == made["utility"]
            games = games_of(tmp_path / "out" / f"{row['side']}_games.pgn")
            score = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
            white = sum(score[game.headers["Result"]] for game in games) / 4
            assert row["score"] == (white if row["side"] == "white" else 1.0 - white)
    assert "SPRT with the book  LLR " in output and "H0: +0, H1: +5 logistic Elo: goes on\n" in output
    assert "Where games leave the book:" in output and "xpected score" not in output
    assert "made against another opponent" not in output and is_png(tmp_path / "out" / "match.png")
    # One engine, and nothing to search: the same files.
    again = printed("book_match", *both, "--workers=1", "--output_dir=again", cwd=tmp_path)
    assert again.count(" 0 new") == 2 and files(tmp_path / "again") == files(tmp_path / "out")
    other = ["--games=2", "--nocontrols", "--openings=0.5", "--opponent=uci(r=100)", "--output_dir=other"]
    output = printed("book_match", both[0], kept, *other, cwd=tmp_path)
    assert "The book was made against another opponent" in output
    assert " start positions, in which White scores near 0.5" in output
    assert {"openings.epd", "openings.pgn"} <= files(tmp_path / "other").keys()
    assert [row["player"] for row in result_of(tmp_path / "other")["matches"]] == players[:2]


# Costs seconds: an example.
@pytest.mark.engine
def test_books_of_several_sizes(tmp_path, searches):
    flags = [*PLAYED, "--r=30", "--games=2", "--sizes=2,4", "--menu=2", "--play_budget=8", "--report"]
    printed("book_size", *flags, f"--store={searches}", "--export=csv", f"--output_dir={tmp_path}")
    rows = table(tmp_path / "sizes.csv")
    names = ["the book", "most reached", "main lines", "linear evaluation"]
    assert [row["player"] for row in rows] == ["no book", *names, *names]
    assert all(int(row["positions"]) <= int(row["budget"]) for row in rows)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (data,), size = data_of(page), int(rows[5]["positions"])
    assert len(data["positions"]) == size and "What books of several sizes score</bdi>" in page
    assert len(table(tmp_path / "book.csv")) == size and is_png(tmp_path / "sizes.png")


# -- how random an opponent is, and what scores are worth --------------------------------------------


# Costs seconds: runs of the example.
@pytest.mark.engine
def test_estimate_opponent(tmp_path):
    games = game("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7", "Us", "Them")
    games += game("1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7 5. Ke9 (5. xx) e3", "Them", "us")
    (tmp_path / "games.pgn").write_text(games)
    common = ["--store=s.sqlite", "--output_dir=out", "--top_k_values=2,4"]
    theirs = ["--pgn=games.pgn", "--player=US", "--skip_plies=2", "--nodes=300,1000"]
    output = printed("estimate_opponent", *common, *theirs, cwd=tmp_path)
    assert output.startswith("Games               2 games; ") and "taken together: 'Us', 'us'\n" in output
    assert "US: 7 moves in 7 positions" in output and "Best: --opponent_nodes=" in output
    found = result_of(tmp_path / "out")
    kinds = [(fit["top_k"], fit["nodes"]) for fit in found["fits"]]
    assert kinds == [(2, 300), (2, 1000), (4, 300), (4, 1000)]
    best = max(found["fits"], key=lambda fit: fit["log_likelihood"])
    assert (best["top_k"], best["nodes"]) == (found["best_top_k"], found["best_nodes"])
    assert best["moves"] == 7 and best["log_likelihood"] >= best["uniform_log_likelihood"]

    weak = ["--nodes=1000", "--opponent_option=Skill Level=3", "--opponent_samples=4", "--positions=6"]
    own = printed("estimate_opponent", *common, *weak, "--games=2", "--plies=5", cwd=tmp_path)
    drawn = re.search(r"\[Skill Level=3\] \(nodes=1000\): (\d+) moves in 6 positions", own)
    # It draws with no seed, so a game may come to a position with one legal move, which proves nothing.
    assert int(drawn[1]) in range(12, 25, 4)


_CALIBRATED = ["--opponent_nodes=100", "--analyst_nodes=200", "--menu=2", "--store=s.sqlite"]


@pytest.mark.engine
@pytest.mark.slow("many games; a fit to few in the other test")
def test_a_fit_to_games_that_are_played(tmp_path):
    flags = [*_CALIBRATED, "--positions=4", "--exits=2", "--playouts=2", "--max_evaluations=15", "--budget=3"]
    flags += ["--r_values=30", "--test_r_values=60", "--fens=8/8/8/8/4k3/8/4P3/4K3 w - - 0 1"]
    flags += ["--test_fens=8/8/8/4k3/8/8/4P3/3QK3 w - - 0 1", "--output_dir=out"]
    output = printed("calibrate_evaluation", *flags, cwd=tmp_path)
    rows = table(tmp_path / "out" / "samples.csv")
    assert {row["kind"] for row in rows} == {"search", "exit"}
    for row in rows:
        # What is tested with is another setting than all that was fitted to.
        assert ("r = 60" in row["setting"]) == (row["test"] == "1") == (row["r"] == "60.0")
        assert sum(int(row[name]) for name in ("wins", "draws", "losses")) == 2
    evidence = result_of(tmp_path / "out", "calibration.json")["evidence"]
    assert evidence["positions"] == sum(row["test"] == "0" for row in rows)
    kinds = {line["evaluation"] for line in evidence["kept_out"]["exit"]}
    assert kinds >= {"calibrated", "linear", "threshold", "logistic"}
    assert all(f"{line['brier']:.4f}" in output for line in evidence["kept_out"]["exit"])


@pytest.mark.engine
def test_a_fit_to_games_of_a_file(tmp_path):
    begin, games = "1. e4 e5 2. Nf3 Nc6 3. ", [game("1. e4 e5 2. Nf3 Nc6", "Them", "Us", Result="1/2-1/2")]
    for move, result in (("Bb5", "1-0"), ("d4", "1-0"), ("Bc4", "0-1")):
        games.append(game(f"{begin}{move}", "Us", "Them", Result=result))
    (tmp_path / "games.pgn").write_text("".join(games))
    made = ["--pgn=games.pgn", "--player=us", "--skip_plies=0", "--r_values=25", "--output_dir=out"]
    output = printed("calibrate_evaluation", *_CALIBRATED, *made, cwd=tmp_path)
    assert "Fitted to 5 positions and 8 games" in output  # the last game is to test with
    rows = table(tmp_path / "out" / "samples.csv")
    assert sum(int(row["losses"]) for row in rows if row["test"] == "0") == 0
    first = next(row for row in rows if row["ply"] == "0" and row["material"] == "0" and row["wins"] == "2")
    assert first["draws"] == first["losses"] == "0" and first["test"] == "0"
    assert load_calibration(tmp_path / "out" / "calibration.json").made_for.least_r == 25.0
