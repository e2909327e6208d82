"""What a cluster of 1,000 engines does with a tree of 10 million searches, simulated from measured costs.

    python -m benchmarks.cluster_scale --output_dir=output/cluster_scale

`cluster_costs` measured the costs (`--measure` does it anew), `cluster_simulation` is the event loop. The
tree has the levels of a real one, larger: at first they grow as that one's do, by 2 every two half-moves,
and then they have its levels' shares. Our own half-moves are evaluated a level at a time. The opponent's are
asked about a block at a time, `precomp_games._support.memory.BLOCK`, and each block ends before the next one
begins.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from absl import app, flags

from benchmarks import cluster_costs
from benchmarks.cluster_costs import Costs
from benchmarks.cluster_simulation import Outcome, Rules, simulate
from precomp_games._support.files import atomic_write
from precomp_games._support.memory import BLOCK
from precomp_games.chess import find_engine
from precomp_games.chess.engines import cluster

__all__ = ["WAYS", "Way", "level_sizes", "outcome", "report"]

LATENCY = 0.5e-3
"""Seconds from one machine to another, assumed; measured costs have none."""

NODES = (1_000, 5_000, 100_000, 1_000_000, 10_000_000)
"""Of a search. Beyond what was measured, time is proportional to nodes."""

_FEWER = (10, 30, 100, 300)  # engines


@dataclasses.dataclass(frozen=True)
class Way:
    """How a tree is searched.

    Attributes:
      name: In words.
      block: How many replies are asked for at once; 0: a level's.
      batch_seconds: Of a batch.
      asynchronous: A search begins when its parent's result was dealt with.
      free: Client, scheduler and network cost nothing: what is left is due to levels and batches alone.
      at_once: Best-first order with so many nodes at once; 0: level after level.
    """

    name: str
    block: int = 0
    batch_seconds: float = cluster._BATCH_SECONDS
    asynchronous: bool = False
    free: bool = False
    at_once: int = 0


WAYS = {
    "built": Way("levels and blocks, as built", block=BLOCK),
    "short": Way("levels and blocks, batches of 1 s", block=BLOCK, batch_seconds=1.0),
    "whole": Way("levels without blocks"),
    "asynchronous": Way("asynchronous", asynchronous=True),
    "first": Way("best first, 4,096 nodes at once", at_once=4096),
    "free_built": Way("levels and blocks, all but searches free", block=BLOCK, free=True),
    "free_whole": Way("levels without blocks, all but searches free", free=True),
}
"""The ways that are compared."""


def level_sizes(costs: Costs, searches: int) -> npt.NDArray[np.int64]:
    """int64[levels]: how many searches each half-move of a tree asks for."""
    shape = np.array(costs.levels, float)
    most = 2.0 ** np.ceil(np.arange(len(shape)) / 2.0)
    low, high = 0.0, searches / shape.min()
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.minimum(most, middle * shape).sum() < searches else (low, middle)
    sizes = np.maximum(1, np.minimum(most, low * shape)).astype(np.int64)
    sizes[np.argmax(sizes)] += searches - sizes.sum()
    return sizes


def outcome(costs: Costs, way: Way, nodes: int, engines: int, searches: int, slow: float = 1.0) -> Outcome:
    """What `engines` do with a tree.

    Args:
      costs: measured.
      way: how it is searched.
      nodes: of a search.
      engines: how many; of each 100, one is slower by the factor `slow`.
      searches: of the tree.
      slow: see there.
    """
    measured = max(known for known in costs.search_seconds if known <= nodes)
    quantiles = np.array(costs.search_seconds[measured]) * (nodes / measured)
    draws = np.random.default_rng(0).random(searches)
    seconds = np.interp(draws, np.linspace(0.0, 1.0, len(quantiles)), quantiles)
    seconds += costs.worker_search_seconds[measured]
    slowness = np.ones(engines)
    slowness[50::100] = slow
    rules, expansion, asking = (
        _rules(costs, way),
        costs.expansion_seconds,
        costs.client_worker_seconds * engines,
    )
    if way.free:
        expansion = asking = 0.0
    sizes = level_sizes(costs, searches)
    if way.asynchronous:
        rules = dataclasses.replace(rules, result=rules.result + expansion)
        return simulate(
            seconds, slowness, rules, np.array([0, sizes[0]]), np.array([asking]), _children(sizes)
        )
    if way.at_once:
        # A step evaluates some nodes and opens the others, for which replies are searched: two rounds. At
        # best they are equally large, and each step finds as many nodes as it may work on.
        _, asked, _, spent = costs.first[-1]
        rounds = np.append(np.arange(0, searches, max(1, way.at_once // 2)), searches)
        expansion = spent / asked
    else:
        starts = np.append(0, np.cumsum(sizes))
        parts = [np.array([searches])]
        for level, (start, end) in enumerate(itertools.pairwise(starts)):
            parts.append(np.arange(start, end, way.block if way.block and level % 2 else end - start))
        rounds = np.unique(np.concatenate(parts))
    return simulate(seconds, slowness, rules, rounds, expansion * np.diff(rounds) + asking)


def _rules(costs: Costs, way: Way) -> Rules:
    if way.free:
        return Rules(batch_seconds=way.batch_seconds)
    return Rules(
        submit=costs.client_submit_seconds,
        look=costs.client_look_seconds + 2.0 * LATENCY,  # a question and its answer
        fetch=costs.client_fetch_seconds,
        result=costs.client_result_seconds + costs.store_seconds,
        scheduler_task=costs.scheduler_task_seconds,
        scheduler_result=costs.scheduler_result_seconds,
        worker_task=costs.worker_task_seconds,
        latency=LATENCY,
        batch_seconds=way.batch_seconds,
    )


def _children(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[n + 1]: the searches of each level, shared out evenly among those of the level before."""
    first = [np.array([sizes[0]])]
    for start, above, below in zip(np.cumsum(sizes), sizes, [*sizes[1:], 0], strict=True):
        first.append(start + np.arange(1, above + 1) * below // above)
    return np.concatenate(first)


def _share(found: Outcome, engines: int) -> float:
    """Of the engines' time, what they search."""
    return found.searching / (engines * found.seconds)


def _table(found: dict[tuple[str, int], Outcome], engines: int) -> str:
    lines = [
        "| | " + " | ".join(f"{nodes:,} nodes" for nodes in NODES) + " |",
        "|---" * (len(NODES) + 1) + "|",
    ]
    rows = {way.name: [found[key, nodes] for nodes in NODES] for key, way in WAYS.items()}
    for name, row in rows.items():
        cells = [f"{_share(each, engines):.1%}, {_duration(each.seconds)}" for each in row]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    for what in ("client", "scheduler"):
        cells = [f"{getattr(each, what) / each.seconds:.0%}" for each in rows[WAYS["built"].name]]
        lines.append(f"| the {what} works, as built | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _plot(
    found: dict[tuple[str, int], Outcome],
    speed: dict[int, list[tuple[int, float]]],
    engines: int,
    path: pathlib.Path,
) -> None:
    import matplotlib

    matplotlib.use("Agg")  # needs no display
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
        styles = {
            "built": ("#0072b2", "o-"),
            "short": ("#009e73", "^-"),
            "whole": ("#e69f00", "s-"),
            "asynchronous": ("#cc79a7", "v--"),
            "first": ("#d55e00", "x-"),
            "free_built": ("#555555", "o:"),
        }
        for key, (color, line) in styles.items():
            shares = [100.0 * _share(found[key, nodes], engines) for nodes in NODES]
            left.plot(NODES, shares, line, color=color, label=WAYS[key].name, markersize=4)
        left.set(xscale="log", ylim=(0, 101), xlabel="nodes of a search")
        left.set_ylabel(f"share of {engines:,} engines' time that is searched, in %")
        left.legend(frameon=False, fontsize=7.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        for (nodes, points), color, mark in zip(
            speed.items(), ("#0072b2", "#e69f00", "#009e73"), "os^", strict=True
        ):
            right.plot(
                *zip(*points, strict=True), f"{mark}-", color=color, label=f"{nodes:,} nodes", markersize=4
            )
        most = [count for count, _ in points]
        right.plot(most, most, ":", color="#555555", label="as many as there are")
        right.set(
            xscale="log", yscale="log", xlabel="engines", ylabel="engines' worth of searching, as built"
        )
        right.legend(frameon=False, fontsize=8, loc="upper left")
        for axes in (left, right):
            axes.grid(alpha=0.25)
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format="png", dpi=130, metadata={"Software": None})
        pyplot.close(figure)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(costs: Costs, folder: pathlib.Path, searches: int, engines: int) -> None:
    """Simulates all ways, prints the table, and writes it and the plot to the folder."""
    found = {}
    for key, way in WAYS.items():
        for nodes in NODES:
            found[key, nodes] = outcome(costs, way, nodes, engines, searches)
            _say(f"{way.name}, {nodes} nodes: {found[key, nodes]}")
    speed = {}
    for nodes in NODES[2:]:
        points = [
            (count, outcome(costs, WAYS["built"], nodes, count, searches))
            for count in _FEWER
            if count < engines
        ]
        points.append((engines, found["built", nodes]))
        speed[nodes] = [(count, _share(each, count) * count) for count, each in points]
        _say(f"{nodes} nodes, built, by engines: {speed[nodes]}")
    table = _table(found, engines)
    slow = []
    for key in ("built", "asynchronous"):
        for nodes in NODES[3:]:
            ratio = (
                outcome(costs, WAYS[key], nodes, engines, searches, 10.0).seconds / found[key, nodes].seconds
            )
            slow.append(
                f"one engine of 100 is 10 times slower, {WAYS[key].name}, {nodes:,} nodes: {ratio:.2f} x"
            )
    text = f"{costs.machine}\n\n{table}\n\n" + "\n".join(slow) + "\n"
    with atomic_write(folder / "cluster_scale.md", "w") as file:
        file.write(text)
    print(text)
    _plot(found, speed, engines, folder / "cluster_scale.png")


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"expected flags only, got {' '.join(argv[1:])!r}")
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    if _MEASURE.value:
        costs = cluster_costs.measure(str(find_engine(_ENGINE.value)), folder, _say)
        cluster_costs.save(costs, folder / "costs.json")
    else:
        costs = cluster_costs.load()
    report(costs, folder, _SEARCHES.value, _ENGINES.value)


if __name__ == "__main__":  # the examples have flags of these names, and tests import both
    _OUTPUT = flags.DEFINE_string("output_dir", "output/cluster_scale", "Where table and plot are written.")
    _MEASURE = flags.DEFINE_bool("measure", False, "Measure costs.json anew, in the output_dir.")
    _ENGINE = flags.DEFINE_string("engine", None, "Measured engine; by default the installed Stockfish.")
    _SEARCHES = flags.DEFINE_integer("searches", 10_000_000, "Searches of the tree.", 1000)
    _ENGINES = flags.DEFINE_integer("engines", 1000, "Engines of the cluster.", 1)
    app.run(main)
