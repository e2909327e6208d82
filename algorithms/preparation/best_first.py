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
else is, and g is 0.1: that finds more by as many evaluations than any fixed price that was tried, and fills
the budget sooner (docs/menus.md).

With a budget, the set that is taken is the best one of at most so many entries among those opened
(`frontier`). The same program on upper values, where an unopened node is an entry worth the most there is,
bounds what any set of that size is worth.

A price may be paid for each position, however it comes about (`evaluated_search`): what is taken is then best
by position, among what was opened. No set is worth more than the upper value at no price.

What is chosen by estimates is chosen for their errors, too. So somebody may look deeper at what was found,
who would be too slow for all that is looked at (`check`). At each position of the best set its menu takes the
place of sigma_pre's, and its value that of the evaluator; so it does with values where lines leave the set
most often, at as many positions as the set has entries. The most reached ones come first, a quarter of them
at once, since they say whether the rest is worth a look. What was opened stays, the search goes on a little,
by a thirty-second, and the best set is chosen again, until all of it was looked at. After four times as many
positions as a set had, it is chosen from what was looked at. So each entry is on a menu of who looked deeper.

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
"""Who looks deeper: (sigma_pre, evaluator), as arguments of the same names are."""

_Taken = tuple[list[Branch], float, float]  # a set, what it is worth, what none exceeds
_ROUNDS = 6  # in which what is known is followed
_FEWEST = 16  # positions that are looked at deeper at once, or a quarter of the set
_LOOKS = 4  # times the size of the set, positions are looked at deeper
_ROUND = 32  # after that, one may be evaluated for so many that there were


def _check(value: Any, name: str) -> Check | None:
    """None, or what can be memorized and an evaluator, by somebody who looks deeper."""
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
    """Prepares `player` against a fixed opponent, as `best_precomputation` does on evaluated stops.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: what the player can memorize, a policy or a `Menu`; one, or a pair.
      sigma: what is computed during play; one policy, or a pair. The player's own is not asked.
      penalty: lambda. With a budget it only says how far is looked at most.
      player: 0 or 1.
      evaluator: what stopping is worth: a function from a state to player 0's utility, or an object with
        `evaluate_batch(states)`. Its values count as exact, and intervals hold for these values.
      gap: stop when upper - lower is at most this.
      order: "certified" or "optimistic", see `ORDERS`.
      budget: take the best set of at most so many histories, or positions, which then cost nothing. None:
        each costs lambda.
      price: what is paid for, and what a budget counts: "infosets", each history, or "positions", each
        position by `position_key`, on whichever levels it stands. Histories of a position then share the
        entry and the evaluation.
      check: (sigma_pre, evaluator) of somebody who looks deeper, at what was found only: see the module.
      batch: how many nodes are worked on at once, for engines that search in parallel. A smaller batch wastes
        fewer evaluations.
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
        work = _Work(search, budget, gap, batch, time_limit, show, enough, improved, falls)
        exhausted = work.grow(max_evaluations)
        chosen, lower, upper = work.known(max_evaluations)
        if check is not None:
            chosen, lower, upper = work.check(*check)
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
    stopped: bool = False

    def grow(self, most: int | None) -> bool:
        """Looks at more, up to so many evaluations in all; whether there was nothing left."""
        search, left = self.search, self.batch
        while not self.stopped:
            if most is not None:
                left = min(self.batch, most - search.evaluations)
                if left < 1:
                    break
            narrow = search.upper - search.lower <= self.gap
            if narrow or not search.work(left):
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

    def known(self, most: int | None, within: set[int] | None = None) -> _Taken:
        """The best set of what is open, once what it knows is followed."""
        search = self.search
        for _ in range(_ROUNDS):
            taken = search.taken(self.budget, self.time_limit, within)
            if not search.by_position or not search.follow_known(
                taken[0], math.inf if most is None else most
            ):
                return taken
        return search.taken(self.budget, self.time_limit, within)

    def check(self, sigma_pre: Any, evaluator: Any) -> _Taken:
        """Looks deeper at what is best, until that stays so."""
        search, looked, valued, most = self.search, set[int](), set[int](), _FEWEST
        while len(looked) + len(valued) < _LOOKS * most:
            taken = self.known(None)
            most = max(most, len(taken[0]))
            stops = sorted(search.stops(taken[0])[0], key=_by_reach)[: len(taken[0])]
            fresh = {each.node.place: each.node for each in taken[0] if each.node.place not in looked}
            unsure = {node.place: node for node in stops if node.place not in valued | looked | fresh.keys()}
            if not fresh and not unsure:
                return taken
            first = sorted((*fresh.values(), *unsure.values()), key=_by_reach)[: max(_FEWEST, most // 4)]
            chosen = [node for node in first if node.place in fresh]
            ends = [node for node in first if node.place not in fresh]
            search.correct(chosen, ends, sigma_pre, evaluator)
            looked |= {node.place for node in chosen}
            valued |= {node.place for node in ends}
            self.grow(search.evaluations * (_ROUND + 1) // _ROUND)
        return self.known(0, looked)


def _by_reach(node: Node) -> float:
    return -node.reach
