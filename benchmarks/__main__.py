"""Run every benchmark and print one table: `make bench`, or `python -m benchmarks --only=frontier`.

All of them take about half an hour, most of it for efce.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence

from absl import app, flags

from benchmarks.measure import table

_SCALE = flags.DEFINE_float(
    "histories", 1.0, "Size of the trees, as a fraction of what the targets are set for.", 1e-4, 1.0
)
_TURNS = flags.DEFINE_integer("turns", 7, "How often each pair of works is timed, in turns.", 1)
_NAMES = "algorithm_1 expansion equilibrium chess_equilibrium search frontier mixtures position_prices games"
_BENCHMARKS = {  # their flags are defined by importing them
    name: importlib.import_module(f"benchmarks.{name}")
    for name in f"{_NAMES} zero_sum lookahead efce".split()
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

    rows = [
        row
        for name in _ONLY.value or _BENCHMARKS
        for row in _BENCHMARKS[name].rows(_SCALE.value, _TURNS.value, say)
    ]
    print(table(rows))
    if _SCALE.value < 1.0:
        print(f"\nThe targets are set for --histories=1; this was {_SCALE.value:g}.")


if __name__ == "__main__":
    app.run(main)
