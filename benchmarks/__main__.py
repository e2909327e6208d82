"""Runs every benchmark and prints one table: `make bench`, or `python -m benchmarks --only=frontier`.

All of them take about half an hour, most of it for efce.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from absl import app, flags

from benchmarks import (
    algorithm_1,
    chess_equilibrium,
    efce,
    equilibrium,
    expansion,
    frontier,
    games,
    lookahead,
    mixtures,
    position_prices,
    search,
    zero_sum,
)
from benchmarks.measure import Row, table

_SCALE = flags.DEFINE_float(
    "histories", 1.0, "Size of the trees, as a fraction of what the targets are set for.", 1e-4, 1.0
)
_TURNS = flags.DEFINE_integer("turns", 7, "How often each pair of works is timed, in turns.", 1)
_BENCHMARKS: dict[str, Callable[[Callable[[str], None]], list[Row]]] = {
    "algorithm_1": lambda say: algorithm_1.rows(round(2_800_000 * _SCALE.value), _TURNS.value, say),
    "expansion": lambda say: expansion.rows(round(1_000_000 * _SCALE.value), _TURNS.value, say),
    "equilibrium": lambda say: equilibrium.rows(_SCALE.value, _TURNS.value, say),
    "chess_equilibrium": lambda say: chess_equilibrium.rows(_TURNS.value, say),
    "search": lambda say: search.rows(
        8 if _SCALE.value == 1.0 else 4, max(200, round(20_000 * _SCALE.value)), _TURNS.value, say
    ),
    "frontier": lambda say: frontier.rows(
        round(2_800_000 * _SCALE.value), _TURNS.value, say, games=6 if _SCALE.value > 0.1 else 1
    ),
    "mixtures": lambda say: mixtures.rows(
        round(1_000_000 * _SCALE.value), 100 if _SCALE.value == 1.0 else 10, _TURNS.value, say
    ),
    "position_prices": lambda say: position_prices.rows(_SCALE.value, _TURNS.value, say),
    "games": lambda say: games.rows(max(1, round(500 * _SCALE.value)), say),
    "zero_sum": lambda say: zero_sum.rows(_SCALE.value, _TURNS.value, say),
    "lookahead": lambda say: lookahead.rows(_SCALE.value, _TURNS.value, say),
    "efce": lambda say: efce.rows(_SCALE.value, say),
}
_ONLY = flags.DEFINE_multi_enum(
    "only", None, list(_BENCHMARKS), "A benchmark to run; may be repeated. Default: all."
)


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"expected flags only, got {' '.join(argv[1:])!r}")
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - start:5.1f} s] {text}", file=sys.stderr, flush=True)

    rows = [row for name in _ONLY.value or _BENCHMARKS for row in _BENCHMARKS[name](say)]
    print(table(rows))
    if _SCALE.value < 1.0:
        print(f"\nThe targets are set for --histories=1; this was {_SCALE.value:g}.")


if __name__ == "__main__":
    app.run(main)
