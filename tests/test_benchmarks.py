"""The benchmarks run, at small sizes; `make bench` measures."""

import numpy as np
import pytest
from absl import app
from absl.testing import flagsaver

from benchmarks import __main__ as benchmarks
from benchmarks import search
from benchmarks.algorithm_1 import tree_arrays
from benchmarks.measure import Row, Times, table
from benchmarks.synthetic_trees import paired_tree, synthetic_tree
from precomp_games.algorithms import best_precomputation


@pytest.fixture
def run(capsys):
    """Run the benchmarks in this process and give (exit status, standard output, standard error)."""

    def run(*flags):
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
            app.run(benchmarks.main, argv=["benchmarks", "--turns=1", *flags])
        return ended.value.code or 0, *capsys.readouterr()

    return run


# By benchmark, in their order, and at last that this was not measured at full size.
_ROWS = (
    "time / np.copyto|copying once all that it reads and writes|policies looked up|peak memory|"
    "NashConv of cfr+|OpenSpiel's iteration|LiteEFG's iteration|certificate, tic_tac_toe|price per position|"
    "MB of PGN|the whole tree's program|components, |iterations of discounted CFR / double oracle|was 0.002"
)


@pytest.mark.slow("all benchmarks")
def test_all_rows_are_printed(run, tmp_path):
    status, printed, message = run("--histories=0.002")
    assert status == 0 and "Traceback" not in message and "0 searches were made" in message, message
    assert [words for words in _ROWS.split("|") if words not in printed] == []
    assert "OUTSIDE" not in printed  # of certificates
    paired_tree(0.02).save(tmp_path / "tree.npz")
    status, printed, message = run("--only=chess_equilibrium", f"--chess_tree={tmp_path / 'tree.npz'}")
    assert status == 0 and "searches were made" not in message and "lambda = 0.02" in printed


def test_only_what_is_asked_for(run):
    status, printed, message = run("--histories=0.002", "--only=games")
    assert status == 0, message
    assert "MB of PGN" in printed and "OpenSpiel's iteration" not in printed


@pytest.mark.slow("a benchmark")
def test_rows_of_searches():
    """They hold answers to be equal."""
    names = {row.what: row.measured for row in search.rows(0.015, 1, lambda text: None)}
    for words in ("open lines", "a constant", "nodes of minimax", "the same roll-outs", "C++ MCTS"):
        assert any(words in name for name in names)
    # Nodes of plain minimax on Connect Four to depth 4: 1 + 7 + 49 + 343 + 2401.
    (nodes,) = (measured for name, measured in names.items() if name.startswith("connect_four"))
    assert nodes.split(" / ")[0] == "2,801"


@pytest.mark.parametrize("flag", ["--histories=0", "--histories=2", "--turns=0", "--only=chess", "stray"])
def test_bad_flags(run, flag):
    status, printed, message = run(flag)
    assert status != 0
    assert flag.split("=")[0].removeprefix("--") in message + printed
    assert "expansion," not in printed


@pytest.mark.parametrize(
    ("size", "histories"), [(1000, 1000), (30000, 30000), (0.014, 1500), (0.00137, 19000)]
)
def test_trees_for_measurements(size, histories):
    """Of one policy's moves, which are worth memorizing, or of both players', by a penalty."""
    single = size > 1
    tree = synthetic_tree(size) if single else paired_tree(size)
    tree.check()
    assert tree.num_histories == pytest.approx(histories, rel=0.2 if single else 0.1)
    inner = tree.num_children > 0
    assert 1.7 < tree.num_children[inner].mean() < 2.3
    sums = np.bincount(tree.parent[1:], weights=(tree.sigma + tree.sigma_pre)[1:], minlength=len(inner))
    np.testing.assert_allclose(sums[inner], 1.0 if single else 2.0, atol=1e-12)
    if single:
        best = best_precomputation(tree, 0)
        assert best.size > 0 and best.value > best.unprepared
        assert sum(len(array) == tree.num_histories for array in tree_arrays(tree)) == 10
    else:
        assert (np.bincount(tree.infoset_player) > tree.num_infosets / 3).all()


def test_ratio_is_of_the_shortest_times():
    times = Times({"slow": [4.0, 6.0, 50.0], "fast": [2.0, 1.0, 2.0]})
    assert times.ratio("slow", "fast") == 4.0
    assert times.text("slow", "fast") == "4.0 x (2.0 to 25.0)"


def test_table_says_what_was_reached():
    lines = table([Row("one", "1 x", "< 2 x", True), Row("two", "3 x", "< 2 x", False), Row("three", "5")])
    assert [line.split()[-1] for line in lines.splitlines()] == ["reached", "-------", "yes", "NO", "5"]
