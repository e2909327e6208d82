"""Best-first preparation by evaluations: open what can still matter, and stop when the gap is small.

Algorithm 1 by evaluated stops (an engine's) wants an evaluation of every history that the penalty allows, or
that branch and bound leaves. Here nodes are opened and evaluated in the order of what they could change: the
best preparation is worth between the lower and the upper value of the root (`partial_tree`), and work is done
where the set that `upper` memorizes meets what is not known, the largest possible change first. It stops when
the two are as close as was asked; with gap 0, Algorithm 1's answer.

Source: `precomputation`, Algorithm 1; the order is best-first branch and bound's.

Cost: one evaluation per position; one call to sigma_pre and one to the opponent's policy per opened node.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Hashable
from typing import Any

import pyspiel

from precomp_games.checks import check_function, check_integer, check_number
from precomp_games.leaf_values import evaluated
from precomp_games.policies import PolicyLike

from .partial_tree import (
    CertifiedPrecomputation,
    Node,
    PartialTree,
    PreparationProblem,
)

__all__ = ["best_first_precomputation"]

Progress = Callable[[int, float, float], Any]
"""Called with (evaluations so far, lower, upper) after each batch; False stops."""


def best_first_precomputation(
    game: pyspiel.Game,
    sigma_pre: PolicyLike,
    sigma: Any,
    penalty: float,
    player: int,
    evaluator: Any,
    *,
    gap: float = 0.01,
    batch: int = 16,
    max_evaluations: int | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: float = 1e-12,
    progress: Progress | None = None,
) -> CertifiedPrecomputation:
    """Prepares `player` against a fixed opponent, as `best_precomputation` does on evaluated stops.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: what the player can memorize; one policy, or a pair.
      sigma: what is computed during play; one policy, or a pair. The player's own is not asked.
      penalty: lambda.
      player: 0 or 1.
      evaluator: what stopping is worth: a function from a state to player 0's utility, or an object with
        `evaluate_batch(states)`. Its values count as exact, and intervals hold for these values.
      gap: stop when upper - lower is at most this.
      batch: how many nodes are worked on at once, for engines that search in parallel. A smaller batch wastes
        fewer evaluations.
      max_evaluations: stop after so many evaluations, with the interval that has been reached by then.
      position_key: states of one level with equal keys have the same evaluation and policies.
      min_probability: probabilities below this are set to zero and the rest renormalized.
      progress: called with (evaluations so far, lower, upper) after each batch; the work ends if it returns
        False.

    Raises:
      ValueError: an argument or an evaluation is not as above.
    """
    caller = "best_first_precomputation()"
    problem = PreparationProblem.checked(
        caller, game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    gap = check_number(gap, "gap", caller, least=0.0)
    batch = check_integer(batch, "batch", caller, least=1)
    if max_evaluations is not None:
        max_evaluations = check_integer(max_evaluations, "max_evaluations", caller, least=0)
    if not hasattr(evaluator, "evaluate_batch"):
        check_function(evaluator, "evaluator", caller)
    check_function(progress, "progress", caller, optional=True)
    search = _BestFirst(problem, evaluator, caller)
    exhausted, left = False, batch
    while search.upper - search.lower > gap:
        if max_evaluations is not None:
            left = min(batch, max_evaluations - search.evaluations)
            if left < 1:
                break
        exhausted = not search.work(left)
        if exhausted:  # nothing is unknown: what is left of the gap is rounding
            break
        if progress is not None and progress(search.evaluations, search.lower, search.upper) is False:
            break
    return search.tree.result(
        [(node, search.gain(node)) for node in search.chosen()],
        (search.lower, search.upper),
        1.0,
        exhausted or search.upper - search.lower <= gap,
        {"evaluations": search.evaluations},
    )


@dataclasses.dataclass
class _Bounds:
    """What is known of a node: of stopping (NaN before it is evaluated), and of the best there is."""

    stop: float
    lower: float
    upper: float
    sum_lower: float = 0.0
    sum_upper: float = 0.0


class _BestFirst:
    """The bounds of an `PartialTree`, kept up to date along the paths that change."""

    def __init__(self, problem: PreparationProblem, evaluator: Any, caller: str) -> None:
        self.problem = problem
        self.tree = PartialTree(problem, lump=False)
        self.caller = caller
        self.evaluations = 0
        self._evaluator = evaluator
        self._values: dict[Hashable, float] = {}
        self._bounds: list[_Bounds] = []
        self._admit(0)

    @property
    def lower(self) -> float:
        return self._bounds[0].lower

    @property
    def upper(self) -> float:
        return max(self.lower, self._bounds[0].upper)  # by rounding, it may be below

    def work(self, batch: int) -> bool:
        """Evaluates or opens up to `batch` nodes; whether there was one left."""
        todo = self._frontier(batch)
        if not todo:
            return False
        fresh = [node for node in todo if math.isnan(self._bounds[node.index].stop)]
        for node, value in zip(fresh, self._evaluate(fresh), strict=True):
            self._bounds[node.index].stop = node.reach * value
        self._refresh(fresh)
        known = {node.index for node in fresh}
        # What has just been evaluated is opened later, if it still matters then.
        nodes = [node for node in todo if node.index not in known]
        if nodes:
            before = len(self.tree.nodes)
            self.tree.open(nodes)
            self._admit(before)
            self._refresh(nodes)
        return True

    def chosen(self) -> list[Node]:
        """The set that `lower` memorizes."""

        def memorized(node: Node) -> bool:
            bounds = self._bounds[node.index]
            return node.opened and self._memorized(node, bounds.sum_lower) > self._least(node, bounds)

        return [node for node, takes in self.tree.walk(memorized) if takes and node.parent is not None]

    def gain(self, node: Node) -> float:
        """What memorizing a node adds to memorizing those before it, what follows at its least."""
        below = sum(self._least(child, self._bounds[child.index]) for child in node.children)
        return node.known + below - self._bounds[node.index].stop

    def _frontier(self, batch: int) -> list[Node]:
        """The nodes to work on: where the set of `upper` meets the unknown, by how much that could change."""
        heap: list[tuple[float, int, Node]] = []
        stack = [self.tree.root]
        while stack:
            node = stack.pop()
            bounds = self._bounds[node.index]
            if math.isnan(bounds.stop) and node is not self.tree.root:
                heap.append((bounds.lower - bounds.upper, node.index, node))
            elif node.opened:
                if node is self.tree.root or self._memorized(node, bounds.sum_upper) > bounds.stop:
                    stack += node.children
            elif bounds.upper > bounds.stop:
                heap.append((bounds.stop - bounds.upper, node.index, node))
        return [node for _, _, node in heapq.nsmallest(batch, heap, key=lambda entry: entry[:2])]

    def _evaluate(self, nodes: list[Node]) -> list[float]:
        """The player's utility of stopping at each; equal positions are evaluated once, ever."""
        names = [self.problem.position(node.state) for node in nodes]
        asked: dict[Hashable, Node] = {}
        for node, name in zip(nodes, names, strict=True):
            if name not in self._values:
                asked.setdefault(name, node)
        states = [node.state for node in asked.values()]
        values = evaluated(self._evaluator, states, "evaluator", self.caller)
        self.evaluations += len(states)
        if self.problem.player == 1:
            values = self.problem.total - values
        low, high = self.problem.low, self.problem.high
        for name, value in zip(asked, values.tolist(), strict=True):
            if not low - 1e-9 <= value <= high + 1e-9:
                raise ValueError(
                    f"{self.caller}: expected evaluator to give the player utilities in [{low}, {high}], "
                    f"got {value}"
                )
            self._values[name] = min(max(value, low), high)
        return [self._values[name] for name in names]

    # -- bounds ------------------------------------------------------------------------------------

    def _admit(self, first: int) -> None:
        """Bounds of nodes that are new."""
        for node in self.tree.nodes[first:]:
            low, high = node.reach * self.problem.low, node.reach * self.problem.high
            self._bounds.append(_Bounds(math.nan, low, high))
            if node.parent is not None:
                above = self._bounds[node.parent.index]
                above.sum_lower += low
                above.sum_upper += high
        if first == 0:
            self._refresh([self.tree.root])

    def _memorized(self, node: Node, below: float) -> float:
        return node.known + below - (self.problem.penalty if node.parent is not None else 0.0)

    def _least(self, node: Node, bounds: _Bounds) -> float:
        return node.reach * self.problem.low if math.isnan(bounds.stop) else bounds.stop

    def _refresh(self, nodes: list[Node]) -> None:
        """Bounds of nodes that have changed, and of all above them."""
        for changed in nodes:
            node: Node | None = changed
            while node is not None:
                bounds = self._bounds[node.index]
                lower, upper = self._of(node, bounds)
                grown, fallen = lower - bounds.lower, bounds.upper - upper
                bounds.lower, bounds.upper = lower, upper
                if node.parent is None or (node is not changed and grown == 0.0 and fallen == 0.0):
                    break
                above = self._bounds[node.parent.index]
                above.sum_lower += grown
                above.sum_upper -= fallen
                node = node.parent

    def _of(self, node: Node, bounds: _Bounds) -> tuple[float, float]:
        """(lower, upper) of a node from what is below it."""
        if node.parent is None:
            return self._memorized(node, bounds.sum_lower), self._memorized(node, bounds.sum_upper)
        most = node.reach * self.problem.high
        if math.isnan(bounds.stop):
            return node.reach * self.problem.low, most
        if node.opened:
            lower = max(bounds.stop, self._memorized(node, bounds.sum_lower))
            return lower, max(bounds.stop, self._memorized(node, bounds.sum_upper))
        if node.can_memorize:
            return bounds.stop, max(bounds.stop, most - self.problem.penalty)
        return bounds.stop, bounds.stop
