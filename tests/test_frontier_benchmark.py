"""That the benchmark of frontiers and certificates runs, small; `make bench` is for what it measures."""

from benchmarks import frontier


def test_rows():
    rows = frontier.rows(20_000, 1, lambda text: None, games=1)
    assert [row.reached for row in rows if row.target] == [True, True]
    assert "memory frontier" in rows[0].what and "budget of 200" in rows[1].what
    assert "certificate, tic_tac_toe" in rows[-1].what and "OUTSIDE" not in rows[-1].what
