"""The equilibrium of chess in which both sides prepare: the double oracle beside discounted CFR.

The tree is that of `examples/chess_equilibrium.py` at the same settings: read from a file that the example
has written (its tree.npz), or searched for. What is in the store is not searched again, and without an engine
the examples' stored searches serve, which have all that the example needs by default.

    python -m benchmarks --only=chess_equilibrium                        # stored searches, seconds
    python -m benchmarks --only=chess_equilibrium --chess_tree=output/equilibrium/tree.npz
    python -m benchmarks --only=chess_equilibrium --chess_penalty=1e-4 --chess_plies=100 --chess_store=s.db

The last one is 53,085 histories and takes 147,024 searches, which are counted as they are made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from absl import flags

from benchmarks.measure import Row, side_by_side
from precomp_games import HistoryTree
from precomp_games.algorithms import meta_equilibrium
from precomp_games.algorithms.zero_sum.exploitability import MetaEquilibrium
from precomp_games.chess import EnginePool, EvaluationStore, PreparationSettings, StoredEngine, find_engine
from precomp_games.chess.plan.trees import equilibrium_tree
from precomp_games.commands._flags import DATA

__all__ = ["rows"]

_SHIPPED = DATA / "evaluations.sqlite"
_TREE = flags.DEFINE_string("chess_tree", None, "chess_equilibrium: a tree.npz of the example, to be solved.")
_PENALTY = flags.DEFINE_float("chess_penalty", 5e-3, "chess_equilibrium: what a position costs both sides.")
_PLIES = flags.DEFINE_integer("chess_plies", 30, "chess_equilibrium: half-moves until a draw is declared.", 1)
_STORE = flags.DEFINE_string(
    "chess_store",
    None,
    "chess_equilibrium: where searches are kept, and made if they are not there. Default: those shipped.",
)
_ITERATIONS, _EXACT, _EVERY = 20_000, 1e-12, 1000


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure on one tree, see the flags."""
    del scale
    tree = HistoryTree.load(_TREE.value) if _TREE.value else _searched(say)
    say(f"{tree.num_histories} histories, {tree.num_infosets} may be worth memorizing: solving")
    found: dict[str, MetaEquilibrium] = {}

    def oracle() -> None:
        found["oracle"] = meta_equilibrium(tree)

    def dcfr() -> None:
        found["dcfr"] = meta_equilibrium(
            tree, variant="dcfr", iterations=_ITERATIONS, check_every=_ITERATIONS
        )

    meta_equilibrium(tree, variant="dcfr", iterations=1)  # numba, and what a tree keeps of itself
    oracle()
    times = side_by_side(turns, dcfr=dcfr, oracle=oracle)
    gap, slow = found["oracle"].nash_conv, found["dcfr"].nash_conv
    name = f"chess, both prepare, lambda = {tree.penalties[0]:g}, {tree.num_histories} histories"
    return [
        Row(
            f"{name}: {_ITERATIONS} iterations of discounted CFR / double oracle",
            times.text("dcfr", "oracle"),
            "> 1 x",
            times.ratio("dcfr", "oracle") > 1.0,
        ),
        Row(f"{name}: NashConv of the double oracle", f"{gap:.1e}", f"< {_EXACT:g}", gap < _EXACT),
        Row(f"{name}: NashConv of discounted CFR", f"{slow:.1e}"),
        Row(
            f"{name}: seconds here, oracle and discounted CFR",
            f"{times.least('oracle'):.2f}, {times.least('dcfr'):.1f}",
        ),
    ]


def _searched(say: Callable[[str], None]) -> HistoryTree:
    settings = PreparationSettings(penalty=_PENALTY.value, max_plies=_PLIES.value)
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(EnginePool(find_engine(), workers=1)) if _STORE.value else None
        path = _STORE.value or str(_SHIPPED)
        store = stack.enter_context(EvaluationStore(path, read_only=pool is None))
        engine = StoredEngine(store, pool, on_search=_counting(say))
        tree = equilibrium_tree(settings, engine)
        say(f"{engine.searches} searches were made, {engine.hits} positions were in {path}")
        return tree


def _counting(say: Callable[[str], None]) -> Callable[[int], None]:
    def on_search(count: int) -> None:
        if count % _EVERY == 0:
            say(f"{count} searches")

    return on_search
