"""The benchmarks run, at small sizes; `make bench` measures."""

from pathlib import Path

import numpy as np
import pytest
from absl import app
from absl.testing import flagsaver

from benchmarks import __main__ as benchmarks
from benchmarks import frontier, search
from benchmarks.algorithm_1 import tree_arrays
from benchmarks.measure import Row, Times, table
from benchmarks.synthetic_trees import paired_tree, synthetic_tree
from precomp_games.algorithms import best_precomputation


@pytest.fixture
def run(capsys):
    """Run the benchmarks in this process and give (exit status, standard output, standard error)."""

    def run(*flags: str) -> tuple[int, str, str]:
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
            app.run(benchmarks.main, argv=["benchmarks", *flags])
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux only")
@pytest.mark.slow("all benchmarks")
def test_all_rows_are_printed(run):
    status, printed, told = run("--histories=0.002", "--turns=1")
    assert status == 0 and "Traceback" not in told, told
    for what in (
        "time / np.copyto",
        "policies looked up",
        "peak memory",
        "OpenSpiel's iteration",
        "LiteEFG's iteration",
        "components, ",
        "copying once all that it reads and writes",
        "NashConv of cfr+",
        "the whole tree's program",
        "iterations of discounted CFR / double oracle",
        "price per position",
        "MB of PGN",
    ):
        assert what in printed
    assert "0.002" in printed.splitlines()[-1]


def test_only_what_is_asked_for(run):
    status, printed, told = run("--histories=0.002", "--turns=1", "--only=frontier")
    assert status == 0, told
    assert "frontier" in printed and "OpenSpiel's iteration" not in printed


@pytest.mark.slow("two benchmarks")
def test_chess_from_stored_searches_and_from_a_file(run, tmp_path):
    flags = ("--only=chess_equilibrium", "--turns=1")
    status, printed, told = run(*flags)
    assert status == 0 and "0 searches were made" in told and "NO" not in printed
    paired_tree(0.02).save(tmp_path / "tree.npz")
    status, printed, told = run(*flags, f"--chess_tree={tmp_path / 'tree.npz'}")
    assert status == 0 and "searches were made" not in told and "lambda = 0.02" in printed


@pytest.mark.slow("a benchmark")
def test_rows_of_frontiers_and_certificates():
    rows = frontier.rows(20_000 / 2_800_000, 1, lambda text: None)
    assert [row.reached for row in rows if row.target] == [True, True]
    assert "memory frontier" in rows[0].what and "budget of 200" in rows[1].what
    assert "certificate, tic_tac_toe" in rows[-1].what and "OUTSIDE" not in rows[-1].what


@pytest.mark.slow("a benchmark")
def test_rows_of_searches():
    """They hold answers to be equal."""
    said = []
    rows = search.rows(0.015, 1, said.append)
    names = [row.what for row in rows]
    for words in ("open lines", "a constant", "nodes of minimax", "the same roll-outs", "C++ MCTS"):
        assert any(words in name for name in names)
    # Nodes of plain minimax on Connect Four to depth 4: 1 + 7 + 49 + 343 + 2401.
    (nodes,) = [row.measured for row in rows if row.what.startswith("connect_four")]
    assert nodes.split(" / ")[0] == "2,801" and said


@pytest.mark.parametrize("flag", ["--histories=0", "--histories=2", "--turns=0", "--only=chess", "stray"])
def test_bad_flags(run, flag):
    status, printed, told = run(flag)
    assert status != 0
    assert flag.split("=")[0].removeprefix("--") in told + printed
    assert "expansion," not in printed


@pytest.mark.parametrize("histories", [1_000, 30_000])
def test_synthetic_tree(histories):
    tree = synthetic_tree(histories)
    tree.check()
    assert tree.num_histories == pytest.approx(histories, rel=0.2)
    inner = tree.num_children > 0
    assert 1.7 < tree.num_children[inner].mean() < 2.3
    sums = np.bincount(tree.parent[1:], weights=(tree.sigma + tree.sigma_pre)[1:], minlength=len(inner))
    np.testing.assert_allclose(sums[inner], 1.0, atol=1e-12)
    best = best_precomputation(tree, 0)
    assert best.size > 0 and best.value > best.unprepared
    assert sum(len(array) == tree.num_histories for array in tree_arrays(tree)) == 10


@pytest.mark.parametrize(("penalty", "histories"), [(1.4e-2, 1_500), (1.37e-3, 19_000)])
def test_paired_tree(penalty, histories):
    tree = paired_tree(penalty)
    assert tree.num_histories == pytest.approx(histories, rel=0.1)
    assert set(tree.num_children[tree.num_children > 0]) == {2}
    inner = np.unique(tree.parent[1:])
    sums = np.bincount(tree.parent[1:], weights=(tree.sigma + tree.sigma_pre)[1:])[inner]
    np.testing.assert_allclose(sums, 2.0, atol=1e-12)
    assert (np.bincount(tree.infoset_player) > tree.num_infosets / 3).all()


def test_ratio_is_of_the_shortest_times():
    times = Times({"slow": [4.0, 6.0, 50.0], "fast": [2.0, 1.0, 2.0]})
    assert times.ratio("slow", "fast") == 4.0
    assert times.text("slow", "fast") == "4.0 x (2.0 to 25.0)"


def test_table_says_what_was_reached():
    lines = table([Row("one", "1 x", "< 2 x", True), Row("two", "3 x", "< 2 x", False), Row("three", "5")])
    assert [line.split()[-1] for line in lines.splitlines()] == ["reached", "-------", "yes", "NO", "5"]
