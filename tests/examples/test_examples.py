"""The examples as a user runs them: help, defaults, kills, and without an engine."""

import json
import os
import pathlib
import random
import re
import signal
import time

import chess.pgn
import chess.polyglot
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.chess.study.words import points
from tests.examples.launcher import fails, files, launch, printed, result_of, table
from tests.oracles.pgn import game, nodes_of, read_back, read_moves
from tools.soak.clusters import engine_file
from tools.soak.runs import stored

ROOT = pathlib.Path(__file__).parents[2]
# A preparation of some 400 searches, seconds long.
SMALL = ("--penalty=0.002", "--opponent_nodes=300", "--analyst_nodes=1500", "--max_plies=30", "--r=20")
TINY = ("--penalty=0.01", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=12")
MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 1"


def plays_out(printed_lines):
    """Return for each line about play whether a book obtained its expected score."""
    found = re.findall(r"^Played out:.* expected (\S+), obtained (\S+)", printed_lines, re.MULTILINE)
    return [float(expected) == pytest.approx(float(obtained), abs=2e-6) for expected, obtained in found]


def test_best_precomputation(tmp_path):
    assert plays_out(printed("best_precomputation")) == [True, True]
    for menu in ("support", "all"):
        out = tmp_path / menu
        said = printed("best_precomputation", f"--menu={menu}", "--penalty=1e-6", f"--output_dir={out}")
        answers = result_of(out)
        assert plays_out(said) == [True, True] and [answer["menu"] for answer in answers] == [menu, menu]
        # Pure moves, and with all of them the best response to a uniform opponent.
        memorized = [state for answer in answers for state in answer["memorized"]]
        assert all(list(state["plays"].values()) == [1.0] for state in memorized)
        assert [answer["utility"] for answer in answers] == pytest.approx([0.5, 5 / 12])
    # A game without strings of information states.
    flags = ["--game=breakthrough(rows=4,columns=2)", "--sigma_pre=random(seed=1,concentration=0.2)"]
    flags += ["--leaf_value=rollouts", "--penalty=0.05", "--player=0", f"--output_dir={tmp_path / 'out'}"]
    printed("best_precomputation", *flags)
    (answer,) = result_of(tmp_path / "out")
    assert answer["size"] == len(answer["memorized"])
    assert answer["value"] == pytest.approx(answer["utility"] - 0.05 * answer["size"])


# Costs seconds: runs of the example.
def test_meta_equilibrium(tmp_path):
    said = printed("meta_equilibrium", f"--output_dir={tmp_path}")
    answer = result_of(tmp_path)
    assert abs(answer["value"] - answer["exact_value"]) <= answer["nash_conv"] + 1e-9
    assert answer["nash_conv"] <= 1e-6 and answer["converged"] and answer["solver"] == "double_oracle"
    assert "Not converged" not in said and "only because the other prepares" in said
    assert "2: Bet" in printed("meta_equilibrium", "--menu", "--penalty_0=0.05")
    short = printed("meta_equilibrium", "--iterations=10")
    assert "Not converged: --target_nash_conv=1e-06 takes more --iterations" in short
    alone = ("--penalty_1=inf", "--game=tic_tac_toe", "--sigma_pre=random", "--penalty_0=0.02")
    printed("meta_equilibrium", *alone)


@pytest.mark.engine
@pytest.mark.parametrize("side", ["white", "black"])
@pytest.mark.parametrize(
    "evaluation",
    [pytest.param("calibrated", marks=pytest.mark.slow("games; in few, of stored searches")), "linear"],
)
# Costs seconds: runs of the example.
def test_chess_preparation(evaluation, side, tmp_path):
    out = tmp_path / "out"
    small = [*TINY, "--r=20", f"--evaluation={evaluation}", "--play_budget=24", "--max_evaluations=400"]
    small += [f"--side={side}", "--match_games=2", "--neighbors=0"]
    said = printed("chess_preparation", *small, "--store=s.sqlite", "--output_dir=out", cwd=tmp_path)
    answer = result_of(out)
    assert 0 < answer["size"] == len(answer["memorized"])
    assert answer["utility"] > answer["unprepared"] or evaluation == "calibrated"  # few games prove little
    assert answer["value"] == pytest.approx(answer["utility"] - 0.01 * answer["size"])
    match = rf"promised {points(answer['utility'])}, scored [\d.]+ \+- .* in 2 games; without the book [\d.]+"
    assert re.search(rf"^Match +{match} \(points in 100 games\)$", said, re.MULTILINE)
    # Only games give what games are expected to score.
    text = " ".join((out / "book.pgn").read_text().split())
    assert ("Expected score" in said) == (" expected " in text) == (evaluation == "calibrated")
    assert ("not results of games" in said) == (evaluation == "linear")
    assert "of replies" in text
    for memorized in answer["memorized"]:
        board = chess.Board()
        for move in memorized["after"]:
            board.push_uci(move)
        assert board.turn == (side == "white")
        found = {move.uci() for move in read_moves(out / "book.bin", board)}
        assert found >= {move for move, p in memorized["play"].items() if p > 1e-4}
    assert read_back(out / "book.pgn").variations
    # With one engine, nothing is searched again, and from scratch all is: the same files.
    for name in ("s", "t"):
        where = (f"--store={name}.sqlite", f"--output_dir={name}", "--workers=1")
        again = printed("chess_preparation", *small, *where, cwd=tmp_path)
        assert (" 0 of them new" in again) == (name == "s")
        assert again.splitlines()[-1] == said.splitlines()[-1]
        assert files(tmp_path / name) == files(out)


@pytest.mark.engine
# Costs seconds: runs of the example.
@pytest.mark.parametrize("order", ["optimistic", "certified"])
def test_chess_preparation_with_menus(order, tmp_path, searches):
    flags = [*TINY, "--r=20", "--evaluation=linear", "--menu=4", "--budget=12", f"--order={order}"]
    flags += ["--max_evaluations=200", f"--store={searches}", "--match_games=2", "--neighbors=0"]
    printed("chess_preparation", *flags, "--output_dir=out", cwd=tmp_path)
    answer = result_of(tmp_path / "out")
    assert 0 < answer["size"] == len(answer["memorized"]) <= 12
    assert answer["unprepared"] < answer["utility"] == answer["value"] <= answer["upper"] <= 1.0
    gains = sum(state["gain"] for state in answer["memorized"])
    assert gains == pytest.approx(answer["utility"] - answer["unprepared"])
    assert all(len(state["instead"]) <= 3 and len(state["play"]) == 1 for state in answer["memorized"])
    assert any(state["instead"] for state in answer["memorized"])
    assert answer["work"]["evaluations"] <= 200
    again = printed("chess_preparation", *flags, "--output_dir=again", "--workers=1", cwd=tmp_path)
    assert " 0 of them new" in again
    assert files(tmp_path / "again") == files(tmp_path / "out")


@pytest.mark.engine
@pytest.mark.slow("kills of an example; of a store in test_killed_run_goes_on")
def test_a_killed_run_loses_no_search_and_gives_the_same_files(tmp_path):
    small = (*SMALL, "--match_games=2", "--play_budget=24", "--max_evaluations=400")
    printed("chess_preparation", *small, "--store=whole.sqlite", "--output_dir=whole", cwd=tmp_path)
    whole = files(tmp_path / "whole")
    rng = random.Random(0)
    flags = [*small, "--store=killed.sqlite", "--output_dir=killed"]
    before, kills, most = 0, 0, stored(tmp_path / "whole.sqlite") // 6
    for _ in range(40):
        deadline = time.monotonic() + 60
        target = before + rng.randint(1, most)

        def kill(process, deadline=deadline, target=target):
            while alive(process) and stored(tmp_path / "killed.sqlite") < target:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            if alive(process):
                os.kill(process, signal.SIGKILL)

        run = launch("chess_preparation", *flags, cwd=tmp_path, meanwhile=kill)
        kills += run.returncode == -signal.SIGKILL
        after = stored(tmp_path / "killed.sqlite")
        assert after >= before  # what was stored stays stored
        before = after
        for name in ("book.bin", "book.pgn", "result.json"):  # nothing half written
            path = tmp_path / "killed" / name
            assert not path.exists() or path.read_bytes() == whole[name] or is_the_best_so_far(path)
        if run.returncode == 0:
            break
    assert kills >= 3
    printed("chess_preparation", *flags, cwd=tmp_path)
    left = {name: data for name, data in files(tmp_path / "killed").items() if not name.startswith(".")}
    assert left == whole
    assert stored(tmp_path / "killed.sqlite") == stored(tmp_path / "whole.sqlite")


def is_the_best_so_far(path):
    """Return whether a file is whole, of a run that had not finished or was amid its games."""
    if path.suffix == ".json":
        return json.loads(path.read_text())["size"] > 0
    if path.suffix == ".bin":
        with chess.polyglot.open_reader(path) as reader:
            return 16 * sum(1 for _ in reader) == path.stat().st_size > 0
    return bool(read_back(path).variations) and path.read_text().endswith("*\n\n")


def alive(process):
    return pathlib.Path(f"/proc/{process}").exists()


@pytest.mark.engine
# Costs seconds: runs of the example.
def test_the_sweep_searches_a_position_once(tmp_path):
    def sweep(store, folder, workers):
        own = (f"--store={store}.sqlite", f"--output_dir={folder}", f"--workers={workers}")
        return printed("randomness_vs_precomputation", *TINY, "--r_values=1,400", *own, cwd=tmp_path)

    counts = re.findall(r"(\d+) distinct searches .*; (\d+) searches made", sweep("s", "a", 2))
    assert len(counts) == 2 and all(distinct == made for distinct, made in counts)
    assert sum(int(made) for _, made in counts) == stored(tmp_path / "s.sqlite")
    sweep("t", "b", 1)
    assert sweep("s", "c", 1).count("; 0 searches made") == 2
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")
    rows = table(tmp_path / "a" / "randomness.csv")
    assert [row["side"] for row in rows] == ["white"] * 2 + ["black"] * 2
    assert all(0.0 <= float(row["utility"]) <= 1.0 for row in rows)


@pytest.mark.engine
def test_roll_outs_and_thresholds(tmp_path, searches):
    tiny = ("--penalty=0.05", "--opponent_nodes=100", "--analyst_nodes=200", "--max_plies=8", "--r=50")
    for evaluation in ("rollouts", "threshold", "wdl"):
        own = (f"--evaluation={evaluation}", f"--store={searches}", f"--output_dir={evaluation}")
        said = printed("chess_preparation", *tiny, "--match_games=2", *own, cwd=tmp_path)
        assert result_of(tmp_path / evaluation)["settings"]["evaluation"] == evaluation
        # Only roll-outs give what games of the model are expected to score.
        assert ("Expected score" in said) == (evaluation == "rollouts")
        assert ("Analyst's score" in said) == (evaluation != "rollouts")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ([f"--fen={MATED}"], "The game is over where it starts: there is nothing to learn."),
        (
            ["--evaluation=linear", "--max_plies=1"],
            "No move is worth learning within --max_plies=1, since a draw follows; raise it",
        ),
        (["--max_plies=1", "--side=black"], "It is never Black's move within --max_plies=1"),
        (["--penalty=0.9"], "Nothing is worth learning at this penalty; lower --penalty to learn more."),
        (
            ["--evaluation=linear", "--penalty=0.9", "--max_plies=8"],
            "lower --penalty, or raise --max_plies=8, after which",
        ),
        (["--penalty=0.9", "--max_plies=8"], "lower --penalty, or raise --max_plies=8 to learn more"),
        (["--budget=0", "--penalty=0.003"], "Nothing is worth learning at this budget; raise --budget"),
    ],
)
def test_why_nothing_is_learnt(flags, what, tmp_path, searches):
    flags = [*flags, "--play_budget=20", "--match_games=2", f"--store={searches}", "--output_dir=out"]
    said = printed("chess_preparation", *flags, cwd=tmp_path)
    assert what in said and said.count("lower --penalty") == what.count("lower --penalty")


@pytest.mark.engine
def test_threads_and_times_are_said_not_to_reproduce(tmp_path):
    flags = ("--max_plies=1", "--evaluation=linear", "--store=s.sqlite", "--output_dir=out")
    for more, word in (
        (["--engine_option=Threads=2"], "--engine_option=Threads=2"),
        (["--opponent_option=threads=2"], "--opponent_option=threads=2"),
        (["--analyst_movetime_ms=5"], "--analyst_movetime_ms"),
        (["--engine_option=Threads=1"], None),
        ([], None),
    ):
        said = printed("chess_preparation", *flags, *more, cwd=tmp_path)
        assert ("Not reproducible" in said) == (word is not None)
        assert word is None or f"with {word} searches differ" in said


@pytest.mark.engine
# Costs seconds: a preparation and its match.
def test_what_there_is_without_a_book_comes_from_games(tmp_path):
    """Against an opponent who plays badly, of whom an evaluation fitted to good play knows nothing.

    Its moves are drawn by the run's seed; an engine's own Skill Level draws others in each run.
    """
    flags = (
        "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=8", "--menu=2", "--budget=3",
        "--penalty=0.002", "--max_evaluations=40", "--match_games=20", "--neighbors=0",
        "--store=s.sqlite", "--output_dir=out",
    )  # fmt: skip
    for opponent, games in (("uniform", 24), ("uniform", 0), ("", 24)):
        own = (f"--opponent={opponent}", f"--play_budget={games}")
        said = printed("chess_preparation", *flags, *own, cwd=tmp_path)
        answer = result_of(tmp_path / "out")
        (without,) = (
            float(told) / 100.0 for told in re.findall(r"without the book ([\d.]+)", said) or ["nan"]
        )
        if games:
            assert "was fitted with" in said and "Refuted" not in said
            assert answer["unprepared"] > 0.7 or not opponent
            assert bool(answer["memorized"]) == (not opponent)
            if answer["memorized"]:
                assert answer["unprepared"] == pytest.approx(without, abs=0.0051)
                expected = sum(each["reach"] * each["promised"] for each in answer["exits"])
                gains = sum(each["gain"] for each in answer["memorized"])
                assert expected == pytest.approx(answer["unprepared"] + gains, abs=1e-6)
        else:  # the evaluation is trusted, and the match shows that it is wrong
            assert answer["unprepared"] < 0.6 and without > 0.7
            assert f"{points(answer['unprepared'])} unprepared: games without the book score" in said


@pytest.mark.engine
def test_published_values_stand_beside_what_they_are_comparable_to(tmp_path, searches):
    flags = ("--r_values=0.1", "--sides=white", f"--store={searches}", "--output_dir=out")
    for more, comparable in (([], True), (["--penalty=1e-3"], False), (["--max_plies=40"], False)):
        said = printed("randomness_vs_precomputation", *flags, *more, cwd=tmp_path)
        assert ("published" in said) == comparable and "not results of games" in said


@pytest.mark.slow("the first example, at its defaults but for the match")
def test_without_an_engine_there_is_no_other_match(tmp_path):
    flags = ("--match_seed=5", "--output_dir=out")
    said = printed("chess_preparation", *flags, cwd=tmp_path, has_engine=False)
    assert said.count("No match: games need an engine") == 1


def test_what_is_not_in_the_shipped_searches_needs_an_engine(tmp_path):
    """Nor does one serve that was set up otherwise."""
    for flag, words in (
        ("--penalty=1e-5", ("without an engine", "install Stockfish")),
        ("--opponent_option=Hash=32", ("install",)),
        ("--engine_option=Hash=64", ("install",)),
        ("--workers=2", ("install",)),
        ("--store=typo.sqlite", ("typo.sqlite",)),
    ):
        fails("chess_preparation", flag, "--output_dir=out", told=words, cwd=tmp_path, has_engine=False)
        assert not (tmp_path / "out").exists()


# Costs seconds: runs of the example.
def test_both_sides_prepare_with_the_shipped_searches(tmp_path):
    said = printed("chess_equilibrium", "--output_dir=out", cwd=tmp_path, has_engine=False)
    out = tmp_path / "out"
    books = {f"{side}.{kind}" for side in ("white", "black") for kind in ("bin", "pgn")}
    others = {"result.json", "tree.npz", "penalties.csv", "penalties.png"}
    assert {path.name for path in out.iterdir()} == books | others
    found = result_of(out)
    assert found["nash_conv"] < 1e-12 and found["solver"] == "double_oracle"
    rows = found["penalties"]
    for row in rows:
        assert row["black"] <= row["nobody"] <= row["white"]
        assert row["black"] - 1e-6 <= row["both"] <= row["white"] + 1e-6
    # At a prohibitive penalty nobody prepares.
    assert rows[-1]["nobody"] == pytest.approx(rows[-1]["both"])
    assert "analyst's score" in said and "not results of games" in said
    assert "xpected score" not in said
    assert rows[0]["size_white"] > 1 and rows[0]["size_black"] > 1
    tree = HistoryTree.load(out / "tree.npz")
    meta = pyspiel.load_game("python_meta_precomputation", {"tree_file": str(out / "tree.npz")})
    assert meta.num_players() == 2
    for i, side in enumerate(("white", "black")):
        rows = found["memorized"][side]
        assert sum(row["probability"] for row in rows) == pytest.approx(found["sizes"][i])
        assert all(0.0 < row["probability"] <= 1.0 + 1e-12 and 0.0 <= row["reach"] <= 1.0 for row in rows)
        with chess.polyglot.open_reader(out / f"{side}.bin") as book:
            drawn = list(book)
        assert len(drawn) <= len(rows) <= (tree.infoset_player == i).sum()
        assert {row["also_alone"] for row in rows} == {True, False}
        provoked = sum(row["probability"] for row in rows if not row["also_alone"])
        assert f"positions on average, {provoked:.1f} of them only because the other side" in said
        # Who prepares for the unprepared loses, where the other side is prepared.
        unaware = found["unaware"][side]
        assert unaware["loss"] > 1e-3
        assert f"lose {points(unaware['loss'])} points in 100 games to a prepared" in said
        assert all(row["also_alone"] == (row["alone"] is not None) for row in rows)
        assert any(row["reach_unprepared"] == 0.0 < row["reach"] for row in rows if not row["also_alone"])
    for text in ("Because Black prepares, White learns:", "Because White prepares, Black learns:"):
        assert text in said
    printed("chess_equilibrium", "--output_dir=again", cwd=tmp_path, has_engine=False)
    same = {name for name, text in files(out).items() if files(tmp_path / "again")[name] == text}
    assert books | {"result.json", "penalties.csv", "penalties.png"} <= same


def test_both_sides_prepare_with_menus(tmp_path):
    """By an engine of no strength: each position's moves in the files are an entry of its menu."""
    flags = [f"--engine={engine_file(tmp_path, slow=False)}", "--workers=1", "--store=s.sqlite"]
    flags += ["--menu=2", "--menu_window_cp=400", "--max_plies=3", "--r=200", "--penalty_factors=1,3"]
    flags += ["--penalty=0.003", "--fen=4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1", "--scale_cp=1000"]
    said = printed("chess_equilibrium", *flags, "--output_dir=out", cwd=tmp_path)
    assert "with another move than alone" in said
    found = result_of(tmp_path / "out")
    assert found["nash_conv"] < 1e-12 and found["settings"]["menu"] == 2
    choices = 0
    for side in ("white", "black"):
        rows = found["memorized"][side]
        assert sum(row["probability"] for row in rows) == pytest.approx(found["sizes"][side == "black"])
        play = {}
        for row in rows:
            assert list(row["play"].values()) == [1.0] and not row["play"].keys() & row["instead"].keys()
            assert row["also_alone"] == (row["alone"] == row["play"])
            assert all(loss <= 1e-9 for loss in row["instead"].values())
            play.setdefault(tuple(row["after"]), set()).update(row["play"])
            choices += len(row["instead"])
        own = 0
        for moves, node in nodes_of(read_back(tmp_path / "out" / f"{side}.pgn")).items():
            if moves and node.parent.turn() == (side == "white"):
                *before, played = (move.uci() for move in moves)
                assert played in play[tuple(before)]
                own += 1
        with chess.polyglot.open_reader(tmp_path / "out" / f"{side}.bin") as reader:
            entries = list(reader)
        assert len(entries) <= own
        assert {entry.move.uci() for entry in entries} <= set().union(*play.values())
    assert choices > 0
    many = (*flags, "--max_histories=20", "--output_dir=no")
    fails("chess_equilibrium", *many, told=("at most max_histories=20", "raise the penalties"), cwd=tmp_path)


# -- how random an opponent is -----------------------------------------------------------------------


@pytest.mark.engine
# Costs seconds: runs of the example.
def test_estimate_opponent(tmp_path):
    games = [game("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7", "Us", "Them")]
    games += [game("1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7 5. Ke9 (5. xx) e3", "Them", "us")]
    (tmp_path / "games.pgn").write_text("".join(games))
    common = ("--nodes=1000", "--store=s.sqlite", "--output_dir=out", "--top_k_values=2,4")
    theirs = ("--pgn=games.pgn", "--player=US", "--skip_plies=2")
    said = printed("estimate_opponent", *common, *theirs, cwd=tmp_path)
    assert said.startswith("Games               2 games; ") and "taken together: 'Us', 'us'\n" in said
    assert "US: 7 moves in 7 positions" in said and "Best: --opponent_nodes=1000 --r=" in said
    found = result_of(tmp_path / "out")
    assert [fit["top_k"] for fit in found["fits"]] == [2, 4]
    best = max(found["fits"], key=lambda fit: fit["log_likelihood"])
    assert best["top_k"] == found["best_top_k"] and best["moves"] == 7
    assert best["log_likelihood"] >= best["uniform_log_likelihood"] and best["nodes"] == 1000
    printed("estimate_opponent", *common[1:], *theirs, "--nodes=300,1000", cwd=tmp_path)
    several = result_of(tmp_path / "out")
    assert [(fit["top_k"], fit["nodes"]) for fit in several["fits"]] == [
        (top_k, nodes) for top_k in (2, 4) for nodes in (300, 1000)
    ]
    assert [fit for fit in several["fits"] if fit["nodes"] == 1000] == found["fits"]

    weak = (*common, "--opponent_option=Skill Level=3", "--opponent_samples=4")
    own = printed("estimate_opponent", *weak, "--games=2", "--plies=5", cwd=tmp_path)
    told = re.search(r"\[Skill Level=3\] \(nodes=1000\): (\d+) moves in 10 positions", own)
    # It draws with no seed, so a game may come to a position with one legal move, which proves nothing.
    assert told is not None and int(told[1]) in range(20, 41, 4)
    again = printed("estimate_opponent", *weak, "--games=2", "--plies=5", cwd=tmp_path)
    assert again == own  # draws are stored
    few = ("--pgn=games.pgn", "--skip_plies=0", "--positions=6")
    assert ": 24 moves in 6 positions" in printed("estimate_opponent", *weak, *few, cwd=tmp_path)
