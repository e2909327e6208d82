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

With a budget, the optimistic order finds a price by itself: entries are dear at first, and cost half as much
whenever nothing on the best line promises anything any more, until the set that is best at that price is
twice as large as the budget, or lambda is reached. So what is worth most of all is followed before anything
else is. That finds more by as many evaluations than any fixed price that was tried, and fills the budget
sooner (docs/menus.md). There g is 0.1 at first; then it is what the tree has shown, by which its start would
have been hoped to be worth what it is known to be, from 0.03 to 0.1: people's values gain less than engines'.

With a budget, the set that is taken is the best one of at most so many entries among those opened
(`frontier`). The same program on upper values, where an unopened node is an entry worth the most there is,
bounds what any set of that size is worth.

A price may be paid for each position, however it comes about (`evaluated_search`): what is taken is then best
by position, among what was opened. No set is worth more than the upper value at no price.

What is chosen by estimates is chosen for their errors, too. So somebody may look deeper at what was found,
who would be too slow for all that is looked at (`check`). At each position of the best set its menu takes the
place of sigma_pre's, and its value that of the evaluator; so it does with values where lines leave the set
most often, at twice as many positions as the set has entries. The most reached ones come first, a quarter of
them at once, since they show whether the rest is worth a look. That is done whenever nothing promises a gain
at a price, before it falls: what follows then grows from what is sound, and little has to be given up. The
last quarter of the evaluations comes between looks at the best set. Menus are asked for at one and a half
times as many positions as the budget has; then the best set of these is taken, and its ends are valued until
it stays. So each entry is on a menu of who looked deeper.

Source: `precomputation`, Algorithm 1; the certified order is best-first branch and bound's. The optimistic
order is ours; its constants were set by trying.

Cost: one evaluation per position; one call to sigma_pre and one to the opponent's policy per opened node.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable
from typing import Annotated, Any

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.config import bar
from precomp_games.policies import leaf_values
from precomp_games.policies.leaf_values import Evaluator
from precomp_games.policies.rows import LeastProbability, as_batch_menu
from precomp_games.tree.expansion.options import Price

from .evaluated_search import BestFirstSearch, SearchOrder
from .partial_tree import Branch, CertifiedPrecomputation, Node, PerfectGame, PreparationProblem

Improved = Callable[[CertifiedPrecomputation], Any]
"""Called with the best set so far, whenever there are an eighth more evaluations than at the last time."""


Check = tuple[Any, Any]
"""A deeper search: (sigma_pre, evaluator), as arguments of the same names are."""

_Taken = tuple[list[Branch], float, float]  # a set, what it is worth, what none exceeds
_ROUNDS = 6  # in which what is known is followed
_BEFORE = 0.75  # of the evaluations there may be, before what is best by all of them is looked at deeper
_FEWEST = 16  # positions that are looked at deeper at once, or a quarter of the set
_LOOKS = 1.5  # times the budget, menus are asked for
_STOPS = 2  # times the size of the set, ends of lines are valued
_ROUND = 32  # after a look, one may be evaluated for so many that there were


def _check(value: Any, name: str) -> Check | None:
    """Return the candidate moves and the evaluator of a deeper search, or None."""
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"expected {name} to be (sigma_pre, evaluator), got {shown(value)}")
    as_batch_menu(value[0], f"{name}[0]")
    return value[0], leaf_values.check_evaluator(value[1], f"{name}[1]")


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
    price: Price = "infosets",
    check: Annotated[Check | None, checks.Check(_check)] = None,
    batch: checks.PositiveInt = 16,
    max_evaluations: checks.NonNegativeInt | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: LeastProbability = 1e-12,
    time_limit: checks.NonNegativeFloat | None = None,
    enough: Callable[[], bool] | None = None,
    improved: Improved | None = None,
) -> CertifiedPrecomputation:
    """Prepare `player` against a fixed opponent, as `best_precomputation` does on evaluated stops.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: the player's candidate moves, a policy or a `Menu`; one, or a pair.
      sigma: the policies during play; one, or a pair. The player's own is not asked.
      penalty: lambda. With a budget it only sets the search depth.
      player: 0 or 1.
      evaluator: the value of stopping: a function from a state to player 0's utility, or an object with
        `evaluate_batch(states)`. Its values count as exact, and intervals hold for these values.
      gap: stop when upper - lower is at most this.
      order: "certified" or "optimistic", see `ORDERS`.
      budget: take the best set of at most so many histories, or positions, which then cost nothing. None:
        each costs lambda.
      price: what is paid for, and what a budget counts: "infosets", each history, or "positions", each
        position by `position_key`, on whichever levels it stands. Histories of a position then share the
        entry and the evaluation.
      check: (sigma_pre, evaluator) of somebody who looks deeper, at what was found only: see the module.
      batch: the number of nodes worked on at once, for engines that search in parallel. A smaller batch
        wastes fewer evaluations.
      max_evaluations: stop after so many evaluations, with the interval that has been reached by then.
      position_key: states of one level with equal keys have the same evaluation and policies.
      min_probability: probabilities below this are set to zero and the rest renormalized.
      time_limit: seconds after which an integer program is stopped; there is one for each choice of a set
        where positions have a price. None: it is solved.
      enough: asked after each batch whether to look no further.
      improved: called with the best set so far whenever there are an eighth more evaluations. It changes
        nothing of what is found.

    Raises:
      ValueError: an argument or an evaluation is not as above.
    """
    problem = PreparationProblem.checked(
        game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    if price == "positions" and position_key is None:
        raise ArgumentError('expected position_key with price="positions", got None')
    key = position_key if price == "positions" else None
    search = BestFirstSearch(problem, evaluator, order, price_key=key)
    with bar("Preparing", "evaluations") as show:
        falls = budget is not None and order == "optimistic"
        if falls:
            search.begin_dear()
        work = _Work(search, budget, gap, batch, time_limit, show, enough, improved, falls, check)
        most = math.inf if max_evaluations is None else max_evaluations
        exhausted = work.grow(most if check is None else _BEFORE * most)
        chosen, lower, upper = work.known(most) if check is None else work.checked(most)
    exact = exhausted and order == "certified" and budget is None and key is None
    return search.result(chosen, lower, upper, budget is None, reached=upper - lower <= gap or exact)


@dataclasses.dataclass(eq=False)
class _Work:
    """The work of one call; see its arguments."""

    search: BestFirstSearch
    budget: int | None
    gap: float
    batch: int
    time_limit: float | None
    show: Callable[..., None]
    enough: Callable[[], bool] | None
    improved: Improved | None
    falls: bool
    deeper: Check | None
    stopped: bool = False
    looked: set[int] = dataclasses.field(default_factory=set)  # positions whose menus are the deeper ones
    valued: set[int] = dataclasses.field(default_factory=set)  # and whose values are

    def grow(self, most: float) -> bool:
        """Expand up to so many evaluations in all; return whether nothing was left."""
        search, left = self.search, self.batch
        while not self.stopped:
            if most < math.inf:
                left = min(self.batch, int(most) - search.evaluations)
                if left < 1:
                    break
            narrow = search.upper - search.lower <= self.gap
            if narrow or not search.work(left):
                if self.look(search.chosen()):
                    continue
                if self.falls and self.budget is not None and search.cheapen(self.budget):
                    continue
                return not narrow  # certified: nothing is unknown, and what is left of the gap is rounding
            search.tree.trace.append((search.evaluations, search.lower, search.upper))
            if self.improved is not None and search.has_grown():
                taken = search.taken(self.budget, self.time_limit)
                self.improved(search.result(*taken, self.budget is None))
            self.show(search.evaluations, f"worth {search.lower:.4f} to {search.upper:.4f}")
            self.stopped = self.enough is not None and self.enough()
        return False

    def known(self, most: float, within: set[int] | None = None) -> _Taken:
        """Return the best set of the open nodes, after following what it knows."""
        search = self.search
        for _ in range(_ROUNDS):
            taken = search.taken(self.budget, self.time_limit, within)
            if not search.by_position or not search.follow_known(taken[0], most):
                return taken
        return search.taken(self.budget, self.time_limit, within)

    def look(self, chosen: list[Branch]) -> bool:
        """Search a set and its exits deeper, the most reached first; return whether there were any."""
        if self.deeper is None:
            return False
        members = {each.node.place: each.node for each in chosen}
        size = len(members)
        ends = sorted(self.search.stops(chosen)[0], key=_by_reach)[: _STOPS * size]
        left = {node.place: node for node in ends if node.place not in self.valued | members.keys()}
        fresh = [node for node in members.values() if node.place not in self.looked]
        fresh = sorted(fresh, key=_by_reach)[: self.looks_left(size)]
        first = sorted((*fresh, *left.values()), key=_by_reach)[: max(_FEWEST, size // 4)]
        if not first:
            return False
        entries = [node for node in first if node.place in members]
        stops = [node for node in first if node.place not in members]
        self.search.correct(entries, stops, *self.deeper)
        self.looked |= {node.place for node in entries}
        self.valued |= {node.place for node in first}
        return True

    def looks_left(self, size: int) -> int:
        """Return how many more menus may be asked for when the best set has `size` positions."""
        most = _LOOKS * (size if self.budget is None else self.budget)
        return max(0, max(_FEWEST, int(most)) - len(self.looked))

    def checked(self, most: float) -> _Taken:
        """Return the best set of what was looked at deeper, once the best of what is open was.

        most: no more evaluations than this, but for what replaced moves lead to.
        """
        while True:
            taken = self.known(most)
            if not self.looks_left(len(taken[0])) or not self.look(taken[0]):
                break
            self.grow(min(most, self.search.evaluations * (_ROUND + 1) // _ROUND))
        while True:
            taken = self.known(0, self.looked)
            if not self.look(taken[0]):
                return taken


def _by_reach(node: Node) -> float:
    return -node.reach
