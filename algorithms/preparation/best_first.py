"""Best-first preparation by evaluations: open what can still matter, and stop when little is left.

Algorithm 1 by evaluated stops (an engine's) wants an evaluation of every history that the penalty allows, or
that branch and bound leaves; with menus these are too many. Here nodes are opened and evaluated one after the
other, where the best line by some estimate meets what is not known, the largest possible change first. There
are two such estimates, one for each of `ORDERS`.

certified    The upper value (`partial_tree`): unopened nodes could bring the most there is. The best
             preparation is worth between the lower and the upper value of the root, and the search stops when
             the two are as close as was asked; with gap 0, at Algorithm 1's answer.

optimistic   What continuing a line may still bring, as a guess: a node of reach p whose stop is worth V is
             worth, before it is opened, p (V + (u_max - V) hope(p)), with

                 hope(p) = g (log10(p R / lambda) - 1), at least 0 and at most 0.7.

             It grows with what is left to spend on a line. The search stops where nothing on the best line
             promises 0.3 lambda any more. It needs far fewer evaluations, since a good move is followed
             instead of compared with all others, and certifies nothing; the interval is given all the same.

With a budget, the set that is taken is the best one of at most so many entries among those opened
(`frontier`). The same program on upper values, where an unopened node is an entry worth the most there is,
bounds what any set of that size is worth.

Source: `precomputation`, Algorithm 1; the certified order is best-first branch and bound's. The optimistic
order is ours; its constants were set by trying.

Cost: one evaluation per position; one call to sigma_pre and one to the opponent's policy per opened node.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.config import bar
from precomp_games.policies.leaf_values import Evaluator, evaluated
from precomp_games.policies.rows import LeastProbability
from precomp_games.tree.facts import Forest

from .decisions import Decisions
from .frontier import best_within_budget, frontier_of
from .partial_tree import Branch, CertifiedPrecomputation, Node, PartialTree, PerfectGame, PreparationProblem

ORDERS = ("certified", "optimistic")
"""In which order nodes are opened; see the module."""
SearchOrder = Annotated[str, checks.one_of(ORDERS)]
"""One of `ORDERS`."""

_LOWER, _UPPER, _HOPED = range(3)  # the values of a node
_HOPE, _MOST_HOPE, _LEAST_HOPE = 0.28, 0.7, 0.3

_MORE = 9 / 8  # as many evaluations as when the best set so far was told last, and it is told again

Improved = Callable[[CertifiedPrecomputation], Any]
"""Called with the best set so far, whenever there are an eighth more evaluations than at the last time."""


@public
def best_first_precomputation(
    game: PerfectGame,
    sigma_pre: Any,
    sigma: Any,
    penalty: checks.PositiveFloat,
    player: checks.Player,
    evaluator: Evaluator,
    *,
    gap: checks.NonNegativeFloat = 0.01,
    order: SearchOrder = "certified",
    budget: checks.NonNegativeInt | None = None,
    batch: checks.PositiveInt = 16,
    max_evaluations: checks.NonNegativeInt | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: LeastProbability = 1e-12,
    enough: Callable[[], bool] | None = None,
    improved: Improved | None = None,
) -> CertifiedPrecomputation:
    """Prepares `player` against a fixed opponent, as `best_precomputation` does on evaluated stops.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: what the player can memorize, a policy or a `Menu`; one, or a pair.
      sigma: what is computed during play; one policy, or a pair. The player's own is not asked.
      penalty: lambda. With a budget it only says how far is looked.
      player: 0 or 1.
      evaluator: what stopping is worth: a function from a state to player 0's utility, or an object with
        `evaluate_batch(states)`. Its values count as exact, and intervals hold for these values.
      gap: stop when upper - lower is at most this.
      order: "certified" or "optimistic", see `ORDERS`.
      budget: take the best set of at most so many histories, which then cost nothing. None: each costs
        lambda.
      batch: how many nodes are worked on at once, for engines that search in parallel. A smaller batch wastes
        fewer evaluations.
      max_evaluations: stop after so many evaluations, with the interval that has been reached by then.
      position_key: states of one level with equal keys have the same evaluation and policies.
      min_probability: probabilities below this are set to zero and the rest renormalized.
      enough: asked after each batch whether to look no further.
      improved: called with the best set so far whenever there are an eighth more evaluations. It changes
        nothing of what is found.

    Raises:
      ValueError: an argument or an evaluation is not as above.
    """
    problem = PreparationProblem.checked(
        game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    search = BestFirstSearch(problem, evaluator, order)
    exhausted, left = False, batch
    with bar("Preparing", "evaluations") as show:
        while search.upper - search.lower > gap:
            if max_evaluations is not None:
                left = min(batch, max_evaluations - search.evaluations)
                if left < 1:
                    break
            exhausted = not search.work(left)
            if exhausted:  # certified: nothing is unknown, and what is left of the gap is rounding
                break
            search.tree.trace.append((search.evaluations, search.lower, search.upper))
            if improved is not None and search.has_grown():
                improved(search.result(*search.taken(budget), budget is None))
            show(search.evaluations, f"worth {search.lower:.4f} to {search.upper:.4f}")
            if enough is not None and enough():
                break
    chosen, lower, upper = search.taken(budget)
    reached = upper - lower <= gap or (exhausted and order == "certified" and budget is None)
    return search.result(chosen, lower, upper, budget is None, reached=reached)


class BestFirstSearch:
    """The bounds of a `PartialTree`, kept up to date along the paths that change."""

    def __init__(
        self,
        problem: PreparationProblem,
        evaluator: Evaluator,
        order: SearchOrder,
        optimism: float | None = None,
    ) -> None:
        """Admits the root and what comes right after it.

        Args:
          problem: see there.
          evaluator: see `best_first_precomputation`.
          order: one of `ORDERS`.
          optimism: g of the optimistic order; None: what is best against opponents who err much.
        """
        self.problem = problem
        self.tree = PartialTree(problem, lump=False)
        self._steers = _UPPER if order == "certified" else _HOPED
        self._evaluator = evaluator
        self._optimism = _HOPE if optimism is None else optimism
        self._values: dict[Hashable, float] = {}
        self._told = 0  # evaluations, when the best set so far was told last
        self._admit(0)
        self._refresh([self.tree.root])

    @property
    def evaluations(self) -> int:
        """How many positions have been evaluated."""
        return len(self._values)

    @property
    def lower(self) -> float:
        """What the set of `chosen` is worth at least."""
        return self.tree.root.values[_LOWER]

    @property
    def upper(self) -> float:
        """What no set exceeds."""
        return max(self.lower, self.tree.root.values[_UPPER])  # by rounding, it may be below

    def work(self, batch: int) -> bool:
        """Evaluates or opens up to `batch` nodes; whether there was one left."""
        todo = self._worklist(batch)
        if not todo:
            return False
        known = [node for node in todo if not math.isnan(node.stop)]
        self._look_at([node for node in todo if math.isnan(node.stop)])
        self._open(known)  # what has just been evaluated is opened later, if it still matters then
        return True

    def open_lines(self, lines: Sequence[tuple[int, ...]]) -> Iterator[None]:
        """Opens what lines pass, and evaluates where they and other replies on their way lead, turn by turn.

        lines: the base game's actions from the start, as far as menus and the opponent allow.
        """
        ways = {line[:k] for line in lines for k in range(len(line))}
        played = ways | set(lines)
        entries = self.tree.root.entries
        while entries:
            following = [node for entry in entries for node in entry.children]
            self._look_at([node for node in following if math.isnan(node.stop)])
            nodes = [node for node in following if node.can_memorize and node.actions() in ways]
            self._open([node for node in nodes if not node.opened])
            entries = [
                entry
                for node in nodes
                for entry in node.entries
                if any((*node.actions(), action) in played for action in entry.row)
            ]
            yield

    def _open(self, nodes: list[Node]) -> None:
        """Opens nodes that have been evaluated."""
        before = len(self.tree.nodes)
        self.tree.open(nodes)
        self._admit(before)
        self._refresh(nodes)

    def reprice(self, penalty: float) -> None:
        """Makes each entry cost another penalty, at least the problem's, which says how far can be looked."""
        self.tree.price = penalty
        self.revalue()

    def revalue(self) -> None:
        """Asks again what stopping is worth at all nodes that were evaluated, parents first."""
        self._values = {}
        known = [node for node in self.tree.nodes if not math.isnan(node.stop)]
        for node, value in zip(known, self._evaluate(known), strict=True):
            node.stop = node.reach * value
        for node in self.tree.nodes:
            for branch in node.entries:
                branch.sums = [0.0] * 3
        for node in reversed(self.tree.nodes):
            node.values = [self._of(node, kind) for kind in range(3)]
            self._add(node, node.values)

    def stops(self, chosen: list[Branch]) -> tuple[list[Node], float]:
        """(where lines leave a set, what lines that end inside it are worth)."""
        taken = {branch.node.index: branch for branch in chosen}
        stops, ended = [], 0.0
        for node, branch in self.tree.walk(lambda node: taken.get(node.index)):
            if branch is None:
                stops.append(node)
            else:
                ended += branch.known
        return stops, ended

    def stop_value(self, node: Node) -> float:
        """The player's utility of stopping at a node, as far as it is known: the least there is before."""
        return self._stop(node, _LOWER) / node.reach

    def chosen(self) -> list[Branch]:
        """The set that `lower` memorizes."""
        walk = self.tree.walk(lambda node: self._best(node, _LOWER))
        return [branch for node, branch in walk if branch is not None and node.before is not None]

    def taken(self, budget: int | None) -> tuple[list[Branch], float, float]:
        """(the best set of what is open, its value, what no set exceeds)."""
        if budget is None:
            return self.chosen(), self.lower, self.upper
        return self.within_budget(budget)

    def has_grown(self) -> bool:
        """Whether there are an eighth more evaluations than when this was last so."""
        grown = self.evaluations > _MORE * self._told
        if grown:
            self._told = self.evaluations
        return grown

    def result(
        self,
        chosen: list[Branch],
        lower: float,
        upper: float,
        priced: bool,
        *,
        reached: bool = False,
        games: int | None = None,
    ) -> CertifiedPrecomputation:
        """A set as a result.

        Args:
          chosen: the set.
          lower: what it is worth.
          upper: what no set exceeds.
          priced: whether entries cost something.
          reached: whether the interval is as narrow as was asked for.
          games: how many were played; None: that is no question.
        """
        work = {"evaluations": self.evaluations} | ({} if games is None else {"games": games})
        return self.tree.result(
            [(branch, self.gain(branch)) for branch in chosen],
            (lower, max(lower, min(upper, self.problem.high))),
            1.0,
            reached,
            work,
            self.tree.price if priced else 0.0,
            self.worth,
        )

    def within_budget(self, budget: int) -> tuple[list[Branch], float, float]:
        """(the best set of at most `budget` entries that are open, its utility, what no set exceeds)."""
        decisions, branches = self._decisions(_LOWER)
        choice = best_within_budget(frontier_of(decisions), budget)
        most = frontier_of(self._decisions(_UPPER)[0]).upper_bound(budget)
        chosen = [branches[k] for k in np.flatnonzero(choice.chosen)]
        return [branch for branch in chosen if branch is not None], choice.utility, float(most)

    def gain(self, branch: Branch) -> float:
        """What memorizing an entry adds to memorizing those before it, what follows at its least."""
        below = sum(self._stop(child, _LOWER) for child in branch.children)
        return branch.known + below - branch.node.stop

    def _worklist(self, batch: int) -> list[Node]:
        """What to work on: where the best line meets the unknown, by how much that could change it."""
        least = _LEAST_HOPE * self.tree.price if self._steers == _HOPED else 0.0
        heap: list[tuple[float, int, Node]] = []
        for node, branch in self.tree.walk(lambda node: self._best(node, self._steers)):
            if branch is None and not node.opened:
                known = node.values[_LOWER] if math.isnan(node.stop) else node.stop
                change = node.values[self._steers] - known
                if change > least:
                    heap.append((-change, node.index, node))
        return [node for _, _, node in heapq.nsmallest(batch, heap, key=lambda entry: entry[:2])]

    def _evaluate(self, nodes: list[Node]) -> list[float]:
        """The player's utility of stopping at each; equal positions are evaluated once, ever."""
        names = [self.problem.position(node.state) for node in nodes]
        asked: dict[Hashable, Node] = {}
        for node, name in zip(nodes, names, strict=True):
            if name not in self._values:
                asked.setdefault(name, node)
        states = [node.state for node in asked.values()]
        low, high, total = self.problem.low, self.problem.high, self.problem.total
        first = self.problem.player == 0
        bounds = (low, high) if first else (total - high, total - low)
        values = evaluated(self._evaluator, states, "evaluator", bounds)
        for name, value in zip(asked, (values if first else total - values).tolist(), strict=True):
            self._values[name] = min(max(value, low), high)
        return [self._values[name] for name in names]

    def _look_at(self, nodes: list[Node]) -> None:
        """Evaluates nodes."""
        for node, value in zip(nodes, self._evaluate(nodes), strict=True):
            node.stop = node.reach * value
        self._refresh(nodes)

    # -- bounds ------------------------------------------------------------------------------------

    def _admit(self, first: int) -> None:
        """Bounds of nodes that are new."""
        for node in self.tree.nodes[first:]:
            node.values = [node.reach * self.problem.low] + [node.reach * self.problem.high] * 2
            self._add(node, node.values)

    def _add(self, node: Node, values: Sequence[float]) -> None:
        """Adds to the sums before a node."""
        if node.before is not None:
            for kind, value in enumerate(values):
                node.before.sums[kind] += value

    def _stop(self, node: Node, kind: int) -> float:
        """What stopping is worth, or could be."""
        if math.isnan(node.stop):
            return node.reach * (self.problem.low if kind == _LOWER else self.problem.high)
        return node.stop

    def worth(self, branch: Branch, kind: int = _LOWER) -> float:
        """What memorizing an entry is worth by lower, upper or hoped values."""
        return branch.known + branch.sums[kind] - self.tree.price_of(branch)

    def _best(self, node: Node, kind: int) -> Branch | None:
        """The best entry of a node, where that is better than stopping."""
        best, most = None, self._stop(node, kind)
        for branch in node.entries:
            worth = self.worth(branch, kind)
            if worth > most:
                best, most = branch, worth
        return best

    def _refresh(self, nodes: list[Node]) -> None:
        """Bounds of nodes that have changed, and of all above them."""
        for changed in nodes:
            node = changed
            while True:
                before, node.values = node.values, [self._of(node, kind) for kind in range(3)]
                grown = [new - old for new, old in zip(node.values, before, strict=True)]
                if node.before is None or (node is not changed and not any(grown)):
                    break
                self._add(node, grown)
                node = node.before.node

    def _of(self, node: Node, kind: int) -> float:
        """The lower, upper or hoped value of a node, from what is below it."""
        if node.before is None:
            return self.worth(node.entries[0], kind)
        stop = self._stop(node, kind)
        if node.opened:
            return max([stop, *(self.worth(branch, kind) for branch in node.entries)])
        if math.isnan(node.stop) or kind == _LOWER or not node.can_memorize:
            return stop
        most = node.reach * self.problem.high
        if kind == _UPPER:
            return max(stop, most - self.tree.price)
        hope = self._optimism * (math.log10(node.reach * self.problem.range / self.tree.price) - 1.0)
        return stop + (most - stop) * min(max(hope, 0.0), _MOST_HOPE)

    def _decisions(self, kind: int) -> tuple[Decisions, list[Branch | None]]:
        """What is open, by lower or upper values, and its entries; None stands for those not opened yet."""
        branches: list[Branch | None] = []
        first, previous, stops = [0], [], []
        number = {id(self.tree.root.entries[0]): -1}
        after = [self.tree.root.entries[0].known]
        for node in self.tree.nodes[1:]:
            before = number[id(node.before)]
            unknown = kind == _UPPER and not math.isnan(node.stop) and not node.opened
            if not node.entries and not unknown:
                after[before + 1] += self._stop(node, kind)
                continue
            previous.append(before)
            stops.append(self._stop(node, kind))
            for branch in node.entries:
                number[id(branch)] = len(branches)
                branches.append(branch)
                after.append(branch.known)
            if unknown:
                branches.append(None)
                after.append(node.reach * self.problem.high)
            first.append(len(branches))
        forest = Forest.of_player_0(np.array(first, np.int32), np.array(previous, np.int32), 0.0)
        stop = np.array(stops)
        return Decisions(forest, 0, stop, stop, np.array(after), stop, stop, 0.0), branches
