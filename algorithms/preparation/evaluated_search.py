"""The search of best-first preparation: a tree that grows where the best line by estimates is not known.

Nodes are opened and evaluated in batches (`best_first` has the two orders). Sums of lower, upper and hoped
values are kept along the paths that change. What is taken of all that is open is best by Algorithm 1, by a
knapsack on the tree (`frontier`), or, where a price is paid for each position, by an integer program in which
the histories of a position share the price and the entry (`position_programs`).

Where positions have a price, the search is still steered by a price for each history: it sets where to look,
and a set is chosen by position. A position that was taken is known however it comes about. So what is taken
is followed into those of its histories that were not opened yet, however rare they are, until nothing more
follows (`follow_known`).

A search can be corrected: entries of positions, and what stopping there is worth, are replaced by what
somebody says who looks deeper (`correct`), and all else that is open stays.

Cost: one evaluation per position; one call to sigma_pre and one to the opponent's policy per opened node. A
choice of a set is a pass over the nodes that are open, and what its program takes.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from precomp_games._support import checks
from precomp_games.policies.leaf_values import Evaluator, evaluated
from precomp_games.policies.rows import as_batch_menu
from precomp_games.tree.facts import Forest
from precomp_games.tree.meta_strategy import realization_plan

from ..programs import Clock
from .decisions import Decisions
from .frontier import best_within_budget, frontier_of
from .partial_tree import Branch, CertifiedPrecomputation, Node, PartialTree, PreparationProblem
from .position_programs import best_shared_entries

ORDERS = ("certified", "optimistic")
"""In which order nodes are opened; see `best_first`."""
SearchOrder = Annotated[str, checks.one_of(ORDERS)]
"""One of `ORDERS`."""

_LOWER, _UPPER, _HOPED = range(3)  # the values of a node
_HOPE, _MOST_HOPE, _LEAST_HOPE = 0.28, 0.7, 0.3
_MORE = 9 / 8  # as many evaluations as when something was done last, and it is done again
_HOPE_WHERE_PRICES_FALL, _HOPE_AT_LEAST = 0.1, 0.03
_DEAR = 2.0**-6  # what an entry costs at first, of the range of utilities


class BestFirstSearch:
    """The bounds of a `PartialTree`, kept up to date along the paths that change."""

    def __init__(
        self,
        problem: PreparationProblem,
        evaluator: Evaluator,
        order: SearchOrder,
        optimism: float | None = None,
        price_key: Callable[[Any], Hashable] | None = None,
    ) -> None:
        """Admit the root and what comes right after it.

        Args:
          problem: see there.
          evaluator: see `best_first_precomputation`.
          order: one of `ORDERS`.
          optimism: g of the optimistic order; None: what is best against opponents who err much.
          price_key: states with equal keys, on whichever levels, share one evaluation, and what is taken pays
            one price for them and has one entry there. None: each history has its own price.
        """
        self.problem = problem
        self.tree = PartialTree(problem, lump=False)
        self.by_position = price_key is not None
        self._position = price_key or problem.position
        self._places: dict[Hashable, int] = {}
        self._at: list[list[Node]] = []  # nodes of each position
        self._steers = _UPPER if order == "certified" else _HOPED
        self._evaluator = evaluator
        self._optimism = _HOPE if optimism is None else optimism
        self._values: dict[int, float] = {}  # of positions
        self._reported: dict[str, int] = {}  # evaluations, when something was done last
        self._admit(0)
        self._refresh([self.tree.root])

    @property
    def evaluations(self) -> int:
        """Number of positions that have been evaluated."""
        return len(self._values)

    @property
    def lower(self) -> float:
        """Lower bound on the value of the set of `chosen`."""
        return self.tree.root.values[_LOWER]

    @property
    def upper(self) -> float:
        """Upper bound on the value of every set."""
        return max(self.lower, self.tree.root.values[_UPPER])  # by rounding, it may be below

    def work(self, batch: int) -> bool:
        """Evaluate or open up to `batch` nodes; return whether there was one left."""
        todo = self._worklist(batch)
        if not todo:
            return False
        known = [node for node in todo if not math.isnan(node.stop)]
        self._look_at([node for node in todo if math.isnan(node.stop)])
        self._open(known)  # what has just been evaluated is opened later, if it still matters then
        return True

    def open_lines(self, lines: Sequence[tuple[int, ...]]) -> Iterator[None]:
        """Open what lines pass, and evaluate where they and other replies on their way lead, turn by turn.

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
        """Open nodes that have been evaluated."""
        before = len(self.tree.nodes)
        self.tree.open(nodes)
        self._admit(before)
        self._refresh(nodes)

    def reprice(self, penalty: float) -> None:
        """Make each entry cost another penalty, at least the problem's, which sets the search depth."""
        self.tree.price = penalty
        self.revalue()

    def begin_dear(self) -> None:
        """Make entries dear at first, and hope for less: prices that fall take the place of hope."""
        self.tree.price = max(self.problem.penalty, _DEAR * self.problem.range)
        self._optimism = min(self._optimism, _HOPE_WHERE_PRICES_FALL)
        self.resum()

    def cheapen(self, budget: int) -> bool:
        """Halve what an entry costs; false at the problem's penalty, and where a budget is filled twice."""
        if self.tree.price <= self.problem.penalty:
            return False
        chosen = self.chosen()
        if (len({branch.node.place for branch in chosen}) if self.by_position else len(chosen)) > 2 * budget:
            return False
        shown = self._shown_hope()
        self._optimism = min(max(shown, _HOPE_AT_LEAST), _HOPE_WHERE_PRICES_FALL)
        self.tree.price = max(self.problem.penalty, self.tree.price / 2.0)
        self.resum()
        return True

    def _shown_hope(self) -> float:
        """Return the g with which the whole tree would have been hoped to be worth what it is known to be."""
        first = self.tree.root.entries[0]
        unprepared = first.known + sum(self._stop(node, _LOWER) for node in first.children)
        hoped = (self.problem.high - unprepared) * (math.log10(self.problem.range / self.tree.price) - 1.0)
        return (self.lower - unprepared) / hoped if hoped > 0.0 else math.inf

    def revalue(self) -> None:
        """Ask again what stopping is worth at all nodes that were evaluated, parents first."""
        self._values = {}
        known = [node for node in self.tree.nodes if not math.isnan(node.stop)]
        for node, value in zip(known, self._evaluate(known), strict=True):
            node.stop = node.reach * value
        self.resum()

    def resum(self) -> None:
        """Add up all values again, from what stopping is worth and the price."""
        for node in self.tree.nodes:
            for branch in node.entries:
                branch.sums = [0.0] * 3
        for node in reversed(self.tree.nodes):
            node.values = [self._of(node, kind) for kind in range(3)]
            self._add(node, node.values)

    def stops(self, chosen: list[Branch]) -> tuple[list[Node], float]:
        """Return (where lines leave a set, what lines that end inside it are worth)."""
        taken = {branch.node.index: branch for branch in chosen}
        stops, ended = [], 0.0
        for node, branch in self.tree.walk(lambda node: taken.get(node.index)):
            if branch is None:
                stops.append(node)
            else:
                ended += branch.known
        return stops, ended

    def stop_value(self, node: Node) -> float:
        """Return the player's utility of stopping at a node, the range's least before it is known."""
        return self._stop(node, _LOWER) / node.reach

    def chosen(self) -> list[Branch]:
        """Return the set that `lower` memorizes."""
        walk = self.tree.walk(lambda node: self._best(node, _LOWER))
        return [branch for node, branch in walk if branch is not None and node.before is not None]

    def taken(
        self, budget: int | None, seconds: float | None = None, within: set[int] | None = None
    ) -> tuple[list[Branch], float, float]:
        """Return the best set of what is open, its value, and an upper bound.

        Args:
          budget: the most entries, or positions; None: each costs the price.
          seconds: the time limit of an integer program.
          within: positions, by `Node.place`, that may be taken; None: all.
        """
        if self.by_position:
            return self._by_position(budget, Clock(seconds), within)
        if within is not None:
            decisions, branches = self._decisions(_LOWER, within)
            best = decisions.best(self.tree.price) if budget is None else None
            choice = best or best_within_budget(frontier_of(decisions), budget or 0).played
            return _members(decisions, choice.memorize, branches), choice.value, self.upper
        if budget is None:
            return self.chosen(), self.lower, self.upper
        return self.within_budget(budget)

    def _by_position(
        self, budget: int | None, clock: Clock, within: set[int] | None
    ) -> tuple[list[Branch], float, float]:
        """Return `taken` where positions have a price; the upper bound is that of free positions."""
        decisions, branches = self._decisions(_LOWER, within)
        price = self.tree.price if budget is None else 0.0
        most = self._decisions(_UPPER)[0].best(0.0).value
        if not branches:
            return [], decisions.after[0], most
        memorize, _ = best_shared_entries(decisions, price, budget, clock)
        chosen = _members(decisions, memorize, branches)
        gain, unprepared = decisions.gains()
        paid = price * len({branch.node.place for branch in chosen})
        return chosen, unprepared + float(gain[memorize > 0.0].sum()) - paid, most

    def follow_known(self, chosen: list[Branch], most: float) -> bool:
        """Open histories of positions of a set that it comes to, evaluate what follows; return whether any.

        chosen: the set.
        most: no more evaluations than this in all.
        """
        known = {branch.node.place for branch in chosen}
        nodes = [node for node in self.stops(chosen)[0] if node.place in known and not node.opened]
        if not nodes or self.evaluations >= most:
            return False
        self._look_at([node for node in nodes if math.isnan(node.stop)])  # as its position was
        self._open(nodes)
        following = [node for each in nodes for branch in each.entries for node in branch.children]
        self._look_at([node for node in following if math.isnan(node.stop)])
        return True

    def correct(self, chosen: Sequence[Node], stops: Sequence[Node], sigma_pre: Any, evaluator: Any) -> None:
        """Correct positions by a deeper search, and change the tree accordingly.

        Entries that are no longer on the menus of positions go, with all that follows them, and new ones come
        in; what these lead to is evaluated as ever.

        Args:
          chosen: whose menus are asked for, of different positions.
          stops: of which it is asked, besides these, what stopping is worth.
          sigma_pre: the candidate moves there.
          evaluator: the value of stopping there.
        """
        menus = self.tree.ask_menus(as_batch_menu(sigma_pre, "check"), chosen)
        added: list[Branch] = []
        gone = set[int]()
        for first, menu in zip(chosen, menus, strict=True):
            self.tree.menus[first.place] = menu
            for node in self._at[first.place]:
                if not node.opened:
                    continue
                old = {frozenset(branch.row): branch for branch in node.entries}
                node.entries = []
                for place, row in enumerate(menu):
                    branch = old.pop(frozenset(row), None)
                    if branch is None:
                        branch = Branch(node, place, row)
                        added.append(branch)
                    branch.place = place
                    node.entries.append(branch)
                gone |= {id(branch) for branch in old.values()}
        self._forget(gone)
        before, left = len(self.tree.nodes), set(map(id, self.tree.nodes))
        added = [branch for branch in added if id(branch.node) in left]
        self.tree.follow(added)
        self._admit(before)
        both = [*chosen, *stops]
        values = self._asked(both, evaluator)
        for node, value in zip(both, values, strict=True):
            self._values[node.place] = value
            for same in self._at[node.place]:
                same.stop = same.reach * value
        self.resum()
        fresh = [node for branch in added for node in branch.children]
        self._look_at([node for node in fresh if math.isnan(node.stop)])

    def _forget(self, gone: set[int]) -> None:
        """Take entries out of the tree, with all that follows them."""
        if not gone:
            return
        kept = []
        for node in self.tree.nodes:
            if node.before is not None and id(node.before) in gone:
                gone |= {id(branch) for branch in node.entries}
            else:
                kept.append(node)
        self.tree.nodes = kept
        for index, node in enumerate(kept):
            node.index = index
        self._at = [[] for _ in self._at]
        for node in kept[1:]:
            if node.place >= 0:
                self._at[node.place].append(node)

    def has_grown(self, use: str = "reported") -> bool:
        """Return whether evaluations have grown by an eighth since this last held, for some use."""
        grown = self.evaluations > _MORE * self._reported.get(use, 0)
        if grown:
            self._reported[use] = self.evaluations
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
        """Return a set as a result.

        Args:
          chosen: the set.
          lower: its value.
          upper: an upper bound for all sets.
          priced: whether entries cost something.
          reached: whether the interval is as narrow as was asked for.
          games: the number played; None: not applicable.
        """
        work = {"evaluations": self.evaluations} | ({} if games is None else {"games": games})
        stops = tuple((node.actions(), node.reach, self.stop_value(node)) for node in self.stops(chosen)[0])
        found = self.tree.result(
            [(branch, self.gain(branch)) for branch in chosen],
            (lower, max(lower, min(upper, self.problem.high))),
            1.0,
            reached,
            work,
            self.tree.price if priced else 0.0,
            self.worth,
            self.by_position,
        )
        return dataclasses.replace(found, stops=stops)

    def within_budget(self, budget: int) -> tuple[list[Branch], float, float]:
        """Return the best set of at most `budget` open entries, its utility, and an upper bound."""
        decisions, branches = self._decisions(_LOWER)
        choice = best_within_budget(frontier_of(decisions), budget)
        most = frontier_of(self._decisions(_UPPER)[0]).upper_bound(budget)
        chosen = [branches[k] for k in np.flatnonzero(choice.chosen)]
        return [branch for branch in chosen if branch is not None], choice.utility, float(most)

    def gain(self, branch: Branch) -> float:
        """Return what memorizing an entry adds to those before it, with lower bounds on what follows."""
        below = sum(self._stop(child, _LOWER) for child in branch.children)
        return branch.known + below - branch.node.stop

    def _worklist(self, batch: int) -> list[Node]:
        """Return nodes to expand: where the best line meets the unknown, by how much each could change it."""
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
        """Return the player's utility of stopping at each; equal positions are evaluated once, ever."""
        fresh: dict[int, Node] = {}
        for node in nodes:
            if node.place not in self._values:
                fresh.setdefault(node.place, node)
        values = self._asked(list(fresh.values()), self._evaluator)
        self._values |= zip(fresh, values, strict=True)
        return [self._values[node.place] for node in nodes]

    def _asked(self, nodes: list[Node], evaluator: Any) -> list[float]:
        """Return an evaluator's values of nodes, as the player's utility."""
        low, high, total = self.problem.low, self.problem.high, self.problem.total
        first = self.problem.player == 0
        bounds = (low, high) if first else (total - high, total - low)
        values = evaluated(evaluator, [node.state for node in nodes], "evaluator", bounds)
        own: list[float] = np.clip(values if first else total - values, low, high).tolist()
        return own

    def _look_at(self, nodes: list[Node]) -> None:
        """Evaluate nodes."""
        for node, value in zip(nodes, self._evaluate(nodes), strict=True):
            node.stop = node.reach * value
        self._refresh(nodes)

    # -- bounds ------------------------------------------------------------------------------------

    def _admit(self, first: int) -> None:
        """Bounds of nodes that are new."""
        for node in self.tree.nodes[first:]:
            if node.before is not None:
                node.place = self._places.setdefault(self._position(node.state), len(self._places))
                if node.place == len(self._at):
                    self._at.append([])
                self._at[node.place].append(node)
            node.values = [node.reach * self.problem.low] + [node.reach * self.problem.high] * 2
            self._add(node, node.values)

    def _add(self, node: Node, values: Sequence[float]) -> None:
        """Add to the sums before a node."""
        if node.before is not None:
            for kind, value in enumerate(values):
                node.before.sums[kind] += value

    def _stop(self, node: Node, kind: int) -> float:
        """Return the value of stopping, or a bound on it."""
        if math.isnan(node.stop):
            return node.reach * (self.problem.low if kind == _LOWER else self.problem.high)
        return node.stop

    def worth(self, branch: Branch, kind: int = _LOWER) -> float:
        """Return the value of memorizing an entry by lower, upper or hoped values."""
        return branch.known + branch.sums[kind] - self.tree.price_of(branch)

    def _best(self, node: Node, kind: int) -> Branch | None:
        """Return the best entry of a node, where that is better than stopping."""
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
        """Return the lower, upper or hoped value of a node, from what is below it."""
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

    def _decisions(self, kind: int, within: set[int] | None = None) -> tuple[Decisions, list[Branch | None]]:
        """Return the decisions of open nodes, by lower or upper values, and their entries; None: unopened."""
        branches: list[Branch | None] = []
        first, previous, stops, places = [0], [], [], []
        number = {id(self.tree.root.entries[0]): -1}
        after = [self.tree.root.entries[0].known]
        for node in self.tree.nodes[1:]:
            before = number.get(id(node.before))
            if before is None:
                continue
            unknown = kind == _UPPER and not math.isnan(node.stop) and not node.opened
            closed = not node.entries or (within is not None and node.place not in within)
            if closed and not unknown:
                after[before + 1] += self._stop(node, kind)
                continue
            previous.append(before)
            stops.append(self._stop(node, kind))
            places.append(node.place)
            for branch in node.entries:
                number[id(branch)] = len(branches)
                branches.append(branch)
                after.append(branch.known)
            if unknown:
                branches.append(None)
                after.append(node.reach * self.problem.high)
            first.append(len(branches))
        forest = Forest.of_player_0(np.array(first, np.int32), np.array(previous, np.int32), 0.0)
        stop, shared = np.array(stops), np.array(places, np.int64) if self.by_position else None
        decisions = Decisions(forest, 0, stop, stop, np.array(after), stop, stop, 0.0, shared)
        return decisions, branches


def _members(decisions: Decisions, memorize: Any, branches: list[Branch | None]) -> list[Branch]:
    """Return the entries of a set."""
    numbers = np.flatnonzero(realization_plan(decisions.forest, memorize))
    return [branch for branch in (branches[k] for k in numbers) if branch is not None]
