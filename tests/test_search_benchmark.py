"""That the benchmark of searches runs, and holds answers to be equal, at a small depth."""

import pytest

from benchmarks import search


@pytest.mark.test_all("a benchmark")
def test_rows():
    said = []
    rows = search.rows(depth=4, simulations=300, turns=1, say=said.append)
    names = [row.what for row in rows]
    for words in ("open lines", "a constant", "nodes of minimax", "the same roll-outs", "C++ MCTS"):
        assert any(words in name for name in names)
    # Nodes of plain minimax on Connect Four to depth 4: 1 + 7 + 49 + 343 + 2401.
    (nodes,) = [row.measured for row in rows if row.what.startswith("connect_four")]
    assert nodes.split(" / ")[0] == "2,801"
    assert said
