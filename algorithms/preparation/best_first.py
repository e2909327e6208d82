"""Best-first preparation by evaluations: open what can still matter, and stop when little is left.

Algorithm 1 by evaluated stops (an engine's) wants an evaluation of every history that the penalty allows, or
that branch and bound leaves; with menus these are too many. Here nodes are opened and evaluated one after the
other (`best_first_search`), in one of two orders:

certified    The best preparation is worth between the lower and the upper value of the root, and the search
             stops when the two are as close as was asked; with gap 0, at Algorithm 1's answer.

optimistic   The search stops where nothing on the best line promises 0.3 lambda any more. It needs far fewer
             evaluations, since a good move is followed instead of compared with all others, and certifies
             nothing; the interval is told all the same.

With a budget, the set that is taken is the best one of at most so many entries among those opened (`budget`).
The same program on upper values, where an unopened node is an entry worth the most there is, bounds what any
set of that size is worth.

Source: `precomputation`, Algorithm 1.

Cost: one evaluation per position; one call to sigma_pre and one to the opponent's policy per opened node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from precomp_games._support.arguments import (
    NonNegativeFloat,
    NonNegativeInt,
    Player,
    PositiveFloat,
    PositiveInt,
    public,
)
from precomp_games.policies.leaf_values import Evaluator
from precomp_games.policies.rows import LeastProbability

from .best_first_search import BestFirstSearch, SearchOrder
from .partial_tree import CertifiedPrecomputation, PerfectGame, PreparationProblem

__all__ = ["best_first_precomputation"]

Progress = Callable[[int, float, float], Any]
"""Called with (evaluations so far, lower, upper) after each batch; False stops."""


@public
def best_first_precomputation(
    game: PerfectGame,
    sigma_pre: Any,
    sigma: Any,
    penalty: PositiveFloat,
    player: Player,
    evaluator: Evaluator,
    *,
    gap: NonNegativeFloat = 0.01,
    order: SearchOrder = "certified",
    budget: NonNegativeInt | None = None,
    batch: PositiveInt = 16,
    max_evaluations: NonNegativeInt | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: LeastProbability = 1e-12,
    progress: Progress | None = None,
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
      progress: called with (evaluations so far, lower, upper) after each batch; the work ends if it returns
        False. Lower and upper are those at the penalty, with a budget, too.

    Raises:
      ValueError: an argument or an evaluation is not as above.
    """
    problem = PreparationProblem.checked(
        game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    search = BestFirstSearch(problem, evaluator, order)
    exhausted, left = False, batch
    while search.upper - search.lower > gap:
        if max_evaluations is not None:
            left = min(batch, max_evaluations - search.evaluations)
            if left < 1:
                break
        exhausted = not search.work(left)
        if exhausted:  # certified: nothing is unknown, and what is left of the gap is rounding
            break
        if progress is not None and progress(search.evaluations, search.lower, search.upper) is False:
            break
    chosen, lower, upper = search.chosen(), search.lower, search.upper
    if budget is not None:
        chosen, lower, upper = search.within(budget)
    reached = upper - lower <= gap or (exhausted and order == "certified" and budget is None)
    return search.tree.result(
        [(branch, search.gain(branch)) for branch in chosen],
        (lower, max(lower, min(upper, problem.high))),
        1.0,
        reached,
        {"evaluations": search.evaluations},
        0.0 if budget is not None else problem.penalty,
        search.worth,
    )
