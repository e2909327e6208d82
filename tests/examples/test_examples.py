"""The examples as a user runs them: help, defaults, wrong input, kills, and without an engine."""

import csv
import json
import math
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

import chess.pgn
import chess.polyglot
import pyspiel
import pytest

from precomp_games import HistoryTree
from tests.examples.launcher import EXAMPLES, launch, launch_without_engine

ROOT = pathlib.Path(__file__).parents[2]
# A preparation of some 400 searches, seconds long.
MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 1"
SMALL = ("--penalty=0.002", "--opponent_nodes=300", "--analyst_nodes=1500", "--max_plies=30", "--r=20")
FEW_GAMES = ("--play_budget=24", "--max_evaluations=400")  # of the calibrated evaluation


def run(example, *flags, cwd=ROOT):
    """From the start, with all imports: each example once, and what `launch` does otherwise."""
    return subprocess.run(
        [sys.executable, ROOT / "examples" / f"{example}.py", *map(str, flags)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300.0,
    )


def files(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def fails(result, *words):
    """One clear error line and nothing else."""
    assert result.returncode == 1, result.stdout + result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize("example", EXAMPLES)
def test_help(example):
    result = launch(example, "--help")
    assert result.returncode == 0
    assert f"python examples/{example}.py" in result.stdout
    assert "Try --helpfull" in result.stdout
    assert "Traceback" not in result.stderr


def test_best_precomputation_by_default():
    result = run("best_precomputation")
    assert result.returncode == 0, result.stderr
    for line in result.stdout.splitlines():
        if line.startswith("Played out:"):
            expected, obtained = (float(word.strip(",")) for word in line.split() if "." in word)
            assert expected == pytest.approx(obtained, abs=2e-6)
    assert result.stdout.count("Played out:") == 2


@pytest.mark.parametrize("menu", ["support", "all"])
def test_best_precomputation_with_menus(menu, tmp_path):
    result = launch(
        "best_precomputation", f"--menu={menu}", "--penalty=1e-6", f"--output_dir={tmp_path / 'out'}"
    )
    assert result.returncode == 0, result.stderr
    answers = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [answer["menu"] for answer in answers] == [menu, menu]
    for line in result.stdout.splitlines():
        if line.startswith("Played out:"):
            expected, obtained = (float(word.strip(",")) for word in line.split() if "." in word)
            assert expected == pytest.approx(obtained, abs=2e-6)
    # Pure moves, and with all of them the best response to a uniform opponent.
    assert all(list(state["plays"].values()) == [1.0] for answer in answers for state in answer["memorized"])
    assert [answer["utility"] for answer in answers] == pytest.approx([0.5, 5 / 12])


@pytest.mark.seconds("an example")
def test_best_precomputation_of_a_game_without_strings(tmp_path):
    result = launch(
        "best_precomputation",
        "--game=breakthrough(rows=4,columns=3)",
        "--sigma_pre=random(seed=1,concentration=0.2)",
        "--leaf_value=rollouts",
        "--penalty=0.05",
        "--player=0",
        f"--output_dir={tmp_path / 'out'}",
    )
    assert result.returncode == 0, result.stderr
    (answer,) = json.loads((tmp_path / "out" / "result.json").read_text())
    assert answer["size"] == len(answer["memorized"])
    assert answer["value"] == pytest.approx(answer["utility"] - 0.05 * answer["size"])


@pytest.mark.seconds("an example")
def test_meta_equilibrium(tmp_path):
    result = run("meta_equilibrium", f"--output_dir={tmp_path / 'out'}")
    assert result.returncode == 0, result.stderr
    answer = json.loads((tmp_path / "out" / "result.json").read_text())
    assert abs(answer["value"] - answer["exact_value"]) <= answer["nash_conv"] + 1e-9
    assert answer["nash_conv"] <= 1e-6 and answer["converged"]
    assert "Not converged" not in result.stdout
    assert answer["solver"] == "double_oracle" and "only because the other prepares" in result.stdout
    menu = launch("meta_equilibrium", "--menu", "--penalty_0=0.05")
    assert menu.returncode == 0 and "2: Bet" in menu.stdout
    short = launch("meta_equilibrium", "--iterations=10")
    assert short.returncode == 0, short.stderr
    assert "Not converged: --target_nash_conv=1e-06 takes more --iterations" in short.stdout
    alone = launch(
        "meta_equilibrium", "--penalty_1=inf", "--game=tic_tac_toe", "--sigma_pre=random", "--penalty_0=0.02"
    )
    assert alone.returncode == 0, alone.stderr
    fails(launch("meta_equilibrium", "--penalty_0=-1"), "penalties", "-1.0")
    fails(launch("meta_equilibrium", "--game=kuhn_poker(players=3)", "--sigma_pre=uniform"), "two-player")
    fails(launch("meta_equilibrium", f"--checkpoint={ROOT / 'LICENSE'}"), "meta_equilibrium()", "checkpoint")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--game=no_such_game"], ["expected an OpenSpiel game", "no_such_game"]),
        (["--game=kuhn_pokr"], ["did you mean 'kuhn_poker'?"]),
        (["--game=matrix_pd", "--sigma_pre=uniform"], ["HistoryTree.from_game()", "simultaneous"]),
        (["--game=kuhn_poker(players=3)", "--sigma_pre=uniform"], ["two-player"]),
        (["--sigma=nonsense"], ["make_policy()", "nonsense"]),
        (["--penalty=0"], ["penalties", "positive"]),
        (["--penalty=nan"], ["penalties", "positive"]),
        (["--leaf_value=rollouts", "--epsilon=-1"], ["epsilon"]),
        (["stray"], ["flags only", "stray"]),
    ],
)
def test_best_precomputation_with_wrong_input(flags, words, tmp_path):
    fails(launch("best_precomputation", *flags, f"--output_dir={tmp_path / 'some' / 'out'}"), *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.engine
@pytest.mark.parametrize("side", ["white", "black"])
@pytest.mark.parametrize("evaluation", ["calibrated", "linear"])
def test_chess_preparation(evaluation, side, tmp_path):
    out = tmp_path / "out"
    small = (*SMALL, f"--evaluation={evaluation}", *FEW_GAMES, f"--side={side}")
    begin = run if (evaluation, side) == ("linear", "white") else launch
    result = begin(
        "chess_preparation",
        *small,
        "--store=s.sqlite",
        f"--output_dir={out}",
        "--match_games=2",
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads((out / "result.json").read_text())
    assert 0 < answer["size"] == len(answer["memorized"])
    assert answer["utility"] > answer["unprepared"] or evaluation == "calibrated"  # few games say little
    assert answer["value"] == pytest.approx(answer["utility"] - 0.002 * answer["size"])
    match = rf"promised {answer['utility']:.2f}, scored \d\.\d\d \+- .* in 2 games; without the book \d\.\d\d"
    assert re.search(rf"^Match +{match}$", result.stdout, re.MULTILINE)
    # Only games give what games are expected to score.
    assert ("Expected score" in result.stdout) == (evaluation == "calibrated")
    assert ("not results of games" in result.stdout) == (evaluation == "linear")
    text = (out / "book.pgn").read_text()
    assert ("expected score" in " ".join(text.split())) == (evaluation == "calibrated")
    assert "of replies" in " ".join(text.split())
    turn = chess.WHITE if side == "white" else chess.BLACK
    with chess.polyglot.open_reader(out / "book.bin") as reader:
        for memorized in answer["memorized"]:
            board = chess.Board()
            for move in memorized["after"]:
                board.push_uci(move)
            assert board.turn == turn
            found = {entry.move.uci() for entry in reader.find_all(board)}
            assert found >= {move for move, p in memorized["play"].items() if p > 1e-4}
    with open(out / "book.pgn") as file:
        game = chess.pgn.read_game(file)
    assert game is not None and not game.errors

    # Again, with one engine and in another folder: nothing is searched, and the files are the same.
    again = launch(
        "chess_preparation",
        *small,
        "--store=s.sqlite",
        "--output_dir=again",
        "--workers=1",
        "--match_games=2",
        cwd=tmp_path,
    )
    assert " 0 of them new" in again.stdout
    assert again.stdout.splitlines()[-1] == result.stdout.splitlines()[-1]
    assert files(tmp_path / "again") == files(out)
    # From scratch with one engine: the same files.
    fresh = launch(
        "chess_preparation",
        *small,
        "--store=t.sqlite",
        "--output_dir=fresh",
        "--workers=1",
        "--match_games=2",
        cwd=tmp_path,
    )
    assert fresh.returncode == 0, fresh.stderr
    assert files(tmp_path / "fresh") == files(out)


@pytest.mark.engine
@pytest.mark.parametrize("order", ["optimistic", "certified"])
def test_chess_preparation_with_menus(order, tmp_path, searches):
    flags = (
        *SMALL,
        "--evaluation=linear",
        "--menu=4",
        "--budget=12",
        f"--order={order}",
        "--max_evaluations=200",
        f"--store={searches}",
        "--match_games=2",
    )
    result = launch("chess_preparation", *flags, "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    answer = json.loads((tmp_path / "out" / "result.json").read_text())
    assert 0 < answer["size"] == len(answer["memorized"]) <= 12
    assert answer["unprepared"] < answer["utility"] == answer["value"] <= answer["upper"] <= 1.0
    assert sum(state["gain"] for state in answer["memorized"]) == pytest.approx(
        answer["utility"] - answer["unprepared"]
    )
    assert all(len(state["instead"]) <= 3 and len(state["play"]) == 1 for state in answer["memorized"])
    assert any(state["instead"] for state in answer["memorized"])
    assert answer["work"]["evaluations"] <= 200
    again = launch("chess_preparation", *flags, "--output_dir=again", "--workers=1", cwd=tmp_path)
    assert " 0 of them new" in again.stdout
    assert files(tmp_path / "again") == files(tmp_path / "out")


@pytest.mark.engine
@pytest.mark.test_all("kills of an example; of a store in test_killed_run_goes_on")
def test_a_killed_run_loses_no_search_and_gives_the_same_files(tmp_path):
    small = (*SMALL, "--match_games=2", *FEW_GAMES)
    whole = launch("chess_preparation", *small, "--store=whole.sqlite", "--output_dir=whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
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

        run_now = launch("chess_preparation", *flags, cwd=tmp_path, meanwhile=kill)
        kills += run_now.returncode == -signal.SIGKILL
        after = stored(tmp_path / "killed.sqlite")
        assert after >= before  # what was stored stays stored
        before = after
        for name in ("book.bin", "book.pgn", "result.json"):  # nothing half written
            path = tmp_path / "killed" / name
            assert not path.exists() or path.read_bytes() == (tmp_path / "whole" / name).read_bytes()
        if run_now.returncode == 0:
            break
    assert kills >= 3
    final = launch("chess_preparation", *flags, cwd=tmp_path)
    assert final.returncode == 0, final.stderr
    shown = {name: data for name, data in files(tmp_path / "killed").items() if not name.startswith(".")}
    assert shown == files(tmp_path / "whole")
    assert stored(tmp_path / "killed.sqlite") == stored(tmp_path / "whole.sqlite")


def alive(process):
    return pathlib.Path(f"/proc/{process}").exists()


def stored(path):
    """Searches in a store that a live run may be writing to."""
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as db:
            return db.execute("SELECT count(*) FROM searches").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


@pytest.mark.engine
@pytest.mark.seconds("an example")
def test_the_sweep_searches_a_position_once(tmp_path):
    flags = [*SMALL[:-1], "--r_values=1,20,400", "--store=s.sqlite"]
    first = launch("randomness_vs_precomputation", *flags, "--output_dir=a", "--workers=2", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    counts = re.findall(r"(\d+) distinct searches .*; (\d+) searches made", first.stdout)
    assert len(counts) == 2
    assert all(distinct == made for distinct, made in counts)
    assert sum(int(made) for _, made in counts) == stored(tmp_path / "s.sqlite")
    fresh = [flag.replace("s.sqlite", "t.sqlite") for flag in flags]
    alone = launch("randomness_vs_precomputation", *fresh, "--output_dir=c", "--workers=1", cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert files(tmp_path / "a") == files(tmp_path / "c")
    second = launch("randomness_vs_precomputation", *flags, "--output_dir=b", "--workers=1", cwd=tmp_path)
    assert second.stdout.count("; 0 searches made") == 2
    assert files(tmp_path / "a") == files(tmp_path / "b")
    rows = list(csv.DictReader((tmp_path / "a" / "randomness.csv").open()))
    assert [row["side"] for row in rows] == ["white"] * 3 + ["black"] * 3
    assert all(0.0 <= float(row["utility"]) <= 1.0 for row in rows)


@pytest.mark.engine
def test_roll_outs_and_thresholds(tmp_path):
    tiny = ("--penalty=0.05", "--opponent_nodes=100", "--analyst_nodes=200", "--max_plies=8", "--r=50")
    for evaluation in ("rollouts", "threshold", "wdl"):
        out = tmp_path / evaluation
        flags = [*tiny, f"--evaluation={evaluation}", "--store=s.sqlite", f"--output_dir={out}"]
        flags.append("--match_games=2")
        result = launch("chess_preparation", *flags, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert json.loads((out / "result.json").read_text())["settings"]["evaluation"] == evaluation
        # Only roll-outs give what games of the model are expected to score.
        assert ("Expected score" in result.stdout) == (evaluation == "rollouts")
        assert ("Roll-outs: " in result.stdout) == (evaluation == "rollouts")
        assert ("Analyst's score" in result.stdout) == (evaluation != "rollouts")


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
    result = launch("chess_preparation", *flags, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert what in result.stdout
    assert result.stdout.count("lower --penalty") == what.count("lower --penalty")


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
        result = launch("chess_preparation", *flags, *more, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert ("Not reproducible" in result.stdout) == (word is not None)
        assert word is None or f"with {word} searches differ" in result.stdout


@pytest.mark.engine
@pytest.mark.seconds("a preparation and its match")
def test_what_there_is_without_a_book_comes_from_games(tmp_path):
    """Against an opponent who plays badly, of whom an evaluation fitted to good play knows nothing.

    Its moves are drawn by the run's seed; an engine's own Skill Level draws others in each run.
    """
    flags = (
        "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=8", "--menu=2", "--budget=3",
        "--penalty=0.002", "--max_evaluations=40", "--match_games=20", "--store=s.sqlite", "--output_dir=out",
    )  # fmt: skip
    for opponent, games in (("uniform", 24), ("uniform", 0), ("", 24)):
        result = launch(
            "chess_preparation", *flags, f"--opponent={opponent}", f"--play_budget={games}", cwd=tmp_path
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads((tmp_path / "out" / "result.json").read_text())
        (without,) = map(float, re.findall(r"without the book (\d\.\d\d)", result.stdout) or ["nan"])
        if games:
            assert "was fitted with" in result.stdout and "Refuted" not in result.stdout
            assert answer["unprepared"] > 0.7 or not opponent
            assert bool(answer["memorized"]) == (not opponent)
            if answer["memorized"]:
                assert answer["unprepared"] == pytest.approx(without, abs=0.0051)
                expected = sum(each["reach"] * each["promised"] for each in answer["exits"])
                gains = sum(each["gain"] for each in answer["memorized"])
                assert expected == pytest.approx(answer["unprepared"] + gains, abs=1e-6)
        else:  # the evaluation is taken at its word, and the match says that it is wrong
            assert answer["unprepared"] < 0.6 and without > 0.7
            assert f"{answer['unprepared']:.2f} unprepared: games without the book score" in result.stdout


@pytest.mark.engine
def test_published_values_stand_beside_what_they_are_comparable_to(tmp_path, searches):
    flags = ("--r_values=0.1", "--sides=white", f"--store={searches}", "--output_dir=out")
    for more, comparable in (([], True), (["--penalty=1e-3"], False), (["--max_plies=40"], False)):
        result = launch("randomness_vs_precomputation", *flags, *more, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert ("published" in result.stdout) == comparable
        assert "not results of games" in result.stdout


@pytest.mark.seconds("the first example, at its defaults")
def test_without_an_engine_the_shipped_searches_serve(tmp_path):
    result = launch_without_engine("chess_preparation", "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    notice = [line for line in result.stdout.splitlines() if "No engine found" in line]
    assert len(notice) == 1 and "apt-get install stockfish" in notice[0]
    assert set(files(tmp_path / "out")) == {"book.bin", "book.pgn", "result.json"}
    answer = json.loads((tmp_path / "out" / "result.json").read_text())
    assert 20 < answer["size"] <= 150
    # What games say is called so, with its error, and the value is the sum that it is.
    found = (
        f"{answer['unprepared']:.4f} unprepared, {answer['utility']:.4f} +- {answer['standard_error']:.4f}"
    )
    for line in (
        f"Expected score      {found} with the book",
        f"Value               {answer['value']:.4f} = {answer['utility']:.4f} - {answer['size']} x 0.0001 ",
    ):
        assert line in result.stdout
    assert "nalyst's score" not in result.stdout
    # The match is in the store as well, and keeps the promise.
    pattern = r"^Match +promised (.*), scored (.*) \+- (.*) in 100 games; .* \(from stored searches\)$"
    promised, scored, error = map(float, re.search(pattern, result.stdout, re.MULTILINE).groups())
    assert abs(promised - scored) <= 4.0 * math.hypot(error, answer["standard_error"]) + 0.01
    costs = re.findall(r"forgetting\s+it\s+(costs|saves)", (tmp_path / "out" / "book.pgn").read_text())
    assert len(costs) >= answer["size"] and set(costs) == {"costs"}
    # Another match is not, which is told.
    other = launch_without_engine("chess_preparation", "--match_seed=5", "--output_dir=out", cwd=tmp_path)
    assert other.returncode == 0 and other.stdout.count("No match: games need an engine") == 1
    # What is not in the store cannot be had.
    fails(
        launch_without_engine("chess_preparation", "--penalty=1e-5", "--output_dir=other", cwd=tmp_path),
        "without an engine",
        "install Stockfish",
    )
    assert not (tmp_path / "other").exists()
    # Nor can an engine that was set up otherwise.
    for flag in ("--opponent_option=Hash=32", "--engine_option=Hash=64", "--workers=2"):
        fails(launch_without_engine("chess_preparation", flag, "--output_dir=other", cwd=tmp_path), "install")
    fails(
        launch_without_engine("chess_preparation", "--store=typo.sqlite", "--output_dir=other", cwd=tmp_path),
        "typo.sqlite",
    )


def test_both_sides_prepare_with_the_shipped_searches(tmp_path):
    result = launch_without_engine("chess_equilibrium", "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    out = tmp_path / "out"
    books = {f"{side}.{kind}" for side in ("white", "black") for kind in ("bin", "pgn")}
    others = {"result.json", "tree.npz", "penalties.csv", "penalties.png"}
    assert {path.name for path in out.iterdir()} == books | others
    found = json.loads((out / "result.json").read_text())
    assert found["nash_conv"] < 1e-12 and found["solver"] == "double_oracle"
    rows = found["penalties"]
    for row in rows:
        assert row["black"] <= row["nobody"] <= row["white"]
        assert row["black"] - 1e-6 <= row["both"] <= row["white"] + 1e-6
    # At a prohibitive penalty nobody prepares.
    assert rows[-1]["nobody"] == pytest.approx(rows[-1]["both"])
    assert "analyst's score" in result.stdout and "not results of games" in result.stdout
    assert "xpected score" not in result.stdout
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
        assert f"positions on average, {provoked:.1f} of them only because the other side" in result.stdout
        # Who prepares for the unprepared loses, where the other side is prepared.
        unaware = found["unaware"][side]
        assert unaware["loss"] > 1e-3 and f"lose {unaware['loss']:.4f} to a prepared" in result.stdout
        assert all(row["also_alone"] == (row["alone"] is not None) for row in rows)
        assert any(row["reach_unprepared"] == 0.0 < row["reach"] for row in rows if not row["also_alone"])
    for text in ("Because Black prepares, White learns:", "Because White prepares, Black learns:"):
        assert text in result.stdout
    again = launch_without_engine("chess_equilibrium", "--output_dir=again", cwd=tmp_path)
    assert again.returncode == 0
    same = {name for name, text in files(out).items() if files(tmp_path / "again")[name] == text}
    assert books | {"result.json", "penalties.csv", "penalties.png"} <= same
    for flag, word in (("--penalty_factors=0.5", "at least 1"), ("--penalty_factors=x", "penalty_factors")):
        fails(launch_without_engine("chess_equilibrium", flag, "--output_dir=no", cwd=tmp_path), word)
    assert not (tmp_path / "no").exists()


def test_both_sides_prepare_with_menus(tmp_path):
    """By an engine of no strength: what files say of a position is what an entry of its menu plays."""
    fake = pathlib.Path(__file__).parents[1] / "chess" / "fake_engine.py"
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}"\n')
    engine.chmod(0o755)
    flags = [f"--engine={engine}", "--workers=1", "--store=s.sqlite", "--penalty=0.003"]
    flags += ["--menu=2", "--menu_window_cp=400", "--max_plies=3", "--r=200", "--penalty_factors=1,3"]
    flags += ["--fen=4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1", "--scale_cp=1000"]
    result = launch("chess_equilibrium", *flags, "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "with another move than alone" in result.stdout
    found = json.loads((tmp_path / "out" / "result.json").read_text())
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
        with open(tmp_path / "out" / f"{side}.pgn") as file:
            game = chess.pgn.read_game(file)
        nodes, own = [game], 0
        while nodes:
            node = nodes.pop()
            nodes += node.variations
            if node.parent and node.parent.turn() == (side == "white"):
                before = tuple(move.uci() for move in node.parent.board().move_stack)
                assert node.move.uci() in play[before]
                own += 1
        with chess.polyglot.open_reader(tmp_path / "out" / f"{side}.bin") as reader:
            entries = list(reader)
        assert len(entries) <= own
        assert {entry.move.uci() for entry in entries} <= set().union(*play.values())
    assert choices > 0
    many = launch("chess_equilibrium", *flags, "--max_histories=20", "--output_dir=no", cwd=tmp_path)
    fails(many, "at most max_histories=20", "raise the penalties")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--engine=/no/such/engine"], ["find_engine()", "/no/such/engine"]),
        (["--engine=/bin/true"], ["/bin/true"]),
        (["--fen=nonsense"], ["error: --fen: expected a FEN, got 'nonsense'"]),
        (["--r=0"], ["error: --r: expected positive numbers separated by commas, got '0'"]),
        (["--r=5,nan"], ["error: --r: expected positive numbers separated by commas, got '5,nan'"]),
        (["--r=5,9", "--r_weights=1"], ["error: --r_weights: expected 2 numbers, one for each --r, got '1'"]),
        (["--penalty=-1"], ["error: --penalty: expected a positive, finite number, got -1.0"]),
        (["--scale_cp=0"], ["error: --scale_cp: expected a positive number below 100000, got 0.0"]),
        (
            ["--opponent_option=UCI_LimitStrength=true", "--opponent_option=UCI_Elo=1400"],
            ["got 'UCI_", "scores"],
        ),
        (["--opponent_option=Skill Level=5"], ["'Skill Level=5'", "scores", "'bestmove'"]),
        (["--opponent_option=UCI_Elo=1400", "--opponent_plays=bestmove"], ["UCI_LimitStrength=true"]),
        (["--engine_option=Skill Level=5"], ["'Skill Level=5'", "scores"]),
        (["--store=/no/such/folder/s.sqlite"], ["/no/such/folder"]),
        ([f"--store={ROOT / 'LICENSE'}"], ["LICENSE"]),
        (["--top_k=501"], ["error: --top_k: expected an integer from 1 to 500, got 501"]),
        (["--menu=501"], ["error: --menu: expected an integer from 0 to 500, got 501"]),
        (["--menu=2", "--evaluation=rollouts"], ["error: --evaluation: expected an engine's evaluation"]),
        (
            ["--evaluation=linear", "--menu=2", "--gap=-1"],
            ["error: --gap: expected a finite number of at least 0, got -1.0"],
        ),
        (["--calibration=none.json"], ["error: --calibration: expected a file", "'none.json'"]),
        (["--order=certified"], ["error: --order: expected --play_budget=0"]),
        (["--output_dir=/etc/passwd"], ["--output_dir", "/etc/passwd"]),
        (["--engine_option=nonsense"], ["--engine_option", "Name=value"]),
        (["--engine_option=No Such Option=1"], ["No Such Option"]),
    ],
)
@pytest.mark.engine
def test_chess_preparation_with_wrong_input(flags, words, tmp_path):
    store = [] if any(flag.startswith("--store") for flag in flags) else ["--store=s.sqlite"]
    result = launch("chess_preparation", "--output_dir=out", *flags, *store, cwd=tmp_path)
    fails(result, *words)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


# -- how random an opponent is -----------------------------------------------------------------------


GAMES = """[White "Us"]
[Black "Them"]

1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 *

[White "Them"]
[Black "us"]

1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7 5. Ke9 (5. xx) e3 *
"""


@pytest.mark.engine
def test_estimate_opponent(tmp_path):
    (tmp_path / "games.pgn").write_text(GAMES)
    common = ("--opponent_nodes=1000", "--store=s.sqlite", "--output_dir=out", "--top_k_values=2,4")
    result = launch(
        "estimate_opponent", *common, "--pgn=games.pgn", "--player=US", "--skip_plies=2", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "US: 7 moves in 7 positions" in result.stdout and "Best: --r=" in result.stdout
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [fit["top_k"] for fit in found["fits"]] == [2, 4]
    best = max(found["fits"], key=lambda fit: fit["log_likelihood"])
    assert best["top_k"] == found["best_top_k"] and best["moves"] == 7
    assert best["log_likelihood"] >= best["uniform_log_likelihood"]

    weak = ("--opponent_option=Skill Level=3", "--opponent_samples=4")
    own = launch("estimate_opponent", *common, *weak, "--games=2", "--plies=5", cwd=tmp_path)
    assert own.returncode == 0, own.stderr
    assert "[Skill Level=3] (nodes=1000): 40 moves in 10 positions" in own.stdout
    again = launch("estimate_opponent", *common, *weak, "--games=2", "--plies=5", cwd=tmp_path)
    assert again.stdout == own.stdout  # draws are stored
    few = ("--pgn=games.pgn", "--skip_plies=0", "--positions=6")
    there = launch("estimate_opponent", *common, *weak, *few, cwd=tmp_path)
    assert there.returncode == 0 and ": 24 moves in 6 positions" in there.stdout


@pytest.mark.engine
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--pgn=none.pgn"], ["none.pgn"]),
        (["--pgn=games.pgn", "--player=Nobody"], ["'Nobody'", "games of 'Them', 'Us'"]),
        (["--player=Us"], ["--player: expected --pgn"]),
        (["--top_k_values=1"], ["--top_k_values"]),
        (["--pgn=games.pgn", "--confidence=1"], ["error: --confidence: expected"]),
        (["--opponent_option=UCI_Elo=1500"], ["UCI_LimitStrength=true"]),
    ],
)
def test_estimate_opponent_with_wrong_input(flags, words, tmp_path):
    (tmp_path / "games.pgn").write_text(GAMES)
    more = ("--store=s.sqlite", "--opponent_nodes=1000", "--skip_plies=0", "--output_dir=out")
    fails(launch("estimate_opponent", *flags, *more, cwd=tmp_path), *words)
    assert not (tmp_path / "out").exists()
