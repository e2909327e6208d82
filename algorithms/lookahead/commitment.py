"""The best strategy to commit to against a player with limited lookahead, or against several types of it.

    h = equilibrium_values(game, player=1)
    best = commit_against_lookahead(game, rational_player=0, lookahead=2, evaluation=h)
    best.supremum, best.bound       # between these lies what can be earned
    best.value                      # what best.policy() earns, by an independent recursion

    types = [FollowerType(1, h), FollowerType(2, h)]
    commit_against_types(game, 0, types, [0.7, 0.3])            # earns most on average
    commit_against_types(game, 0, types, objective="worst")     # earns most against the worst of them

**Favorable** tie-breaking has a maximum. With **static** and **adversarial** tie-breaking there is in
general only a supremum: the best strategy would leave the follower with a tie that is then broken against the
leader, and one as near to it as asked for (`delta`) has to be taken. How plans of the follower are searched
stands in `plan_search`, how types stand side by side in `instance`, and where no search is needed in
`options`.

Whatever is found is played by `evaluate_against_lookahead`, against each type.

Source: `limited_lookahead`, section 5. Several types are ours: section 7 asks for uncertainty about h that is
stochastic ("mean"), and refers to Kroer, Farina and Sandholm 2018 for what is robust ("worst").

Deviations: a program without big M, see `plan_search`; no epsilon: strictness is decided after the fact,
and the supremum reported beside an attained value.

Cost: a mixed-integer program, which has all types' columns and rows.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Result
from precomp_games.tree.base_game import AnySumGame

from .evaluation_functions import StrategyPolicy, evaluate_histories
from .follower import (
    EvaluationFunction,
    Follower,
    FollowerType,
    LookaheadOutcome,
    Order,
    TieBreaking,
    lookahead_outcome,
)
from .instance import Instance
from .options import InformationSet, fixed_options, lookahead_options
from .plan_search import PlanSearch, Play
from .sequence_form import SequenceForm

Types = Annotated[Iterable[FollowerType], checks.each_of(FollowerType)]
TimeLimit = Annotated[float, checks.Gt(0.0), checks.INFINITE]


@dataclasses.dataclass(frozen=True, eq=False)
class Commitment(Result):
    """A strategy to commit to, with its value and bound; utilities are the rational player's.

    Where there are several types of the follower, they are of the mean or of the worst type, as asked for.

    Attributes:
      types: The follower's possible types.
      weights: float64[types], their probabilities, sum 1; None where the worst type counts.
      supremum: Strategies come as near to this as one likes (favorable ties: it is attained); the best that
        was found.
      bound: No strategy earns more.
      gap: bound - supremum.
      optimal: The gap is at most 1e-6 of the greatest payoff. False where the time ran out: then
        [supremum, bound] is all that is known.
      value: The utility of `strategy`, by `evaluate_against_lookahead`.
      delta: supremum - value.
      strategy: {information state: {action: probability}}.
      outcomes: Results of `evaluate_against_lookahead` for each type: optimal sets, and the actions that the
        rule picks from them.
      method: "polynomial", one linear program, where each type's play is known (`options.fixed_options`);
        else "correlation", the search.
      work: Seconds, rounds (programs solved), nodes of branch and bound, columns, rows, integers.
    """

    game: pyspiel.Game
    rational_player: int
    types: tuple[FollowerType, ...]
    weights: npt.NDArray[np.float64] | None = dataclasses.field(repr=False)
    supremum: float
    bound: float
    gap: float
    optimal: bool
    value: float
    delta: float
    strategy: dict[str, dict[int, float]] = dataclasses.field(repr=False)
    outcomes: tuple[LookaheadOutcome, ...] = dataclasses.field(repr=False)
    method: str
    work: dict[str, float]

    @property
    def outcome(self) -> LookaheadOutcome:
        """Outcome against the first type, the only one of `commit_against_lookahead`."""
        return self.outcomes[0]

    @public
    def policy(self, which: checks.NonNegativeInt = 0) -> StrategyPolicy:
        """Return the rational player's strategy and the response of one type, as an OpenSpiel policy of both.

        Raises:
          ValueError: there are not so many types; the first one has number 0.
        """
        if which >= len(self.types):
            raise ArgumentError(f"expected which to be less than {len(self.types)}, got {which}")
        response = {key: {action: 1.0} for key, action in self.outcomes[which].response.items()}
        return StrategyPolicy(self.game, self.strategy | response)


@public
def commit_against_lookahead(
    game: AnySumGame,
    rational_player: checks.Player,
    lookahead: checks.PositiveInt,
    evaluation: EvaluationFunction,
    tie_breaking: TieBreaking = "adversarial",
    *,
    order: Order | None = None,
    delta: checks.PositiveFloat = 1e-4,
    time_limit: TimeLimit | None = None,
) -> Commitment:
    """Compute an optimal strategy to commit to, exactly.

    Args:
      game: two players, sequential, perfect recall, explicit chance; any utilities.
      rational_player: 0 or 1; the other one has limited lookahead.
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, the limited player's evaluation function; asked of leaves too.
      tie_breaking: the limited player's choice among its optimal actions: "favorable" to the rational player,
        "static" (by `order`), or "adversarial".
      order: for "static" only, `(information state, actions) -> actions`, the preferred one first; by default
        as the game lists them.
      delta: how near `value` is to come to `supremum`, where it is not attained. Ties are distinguished to
        `TIE_TOLERANCE`, which may leave more; the result's `delta` gives the amount.
      time_limit: seconds for the mixed-integer programs; a result with `optimal` False comes back if it ends
        them.

    Raises:
      ValueError: h gives no finite number, the game has no perfect
        recall, or there are too many plans inside a lookahead.
      LinearProgramError: HiGHS fails.
    """
    kind = FollowerType(lookahead, evaluation, tie_breaking, order)
    return commit_against_types(game, rational_player, [kind], delta=delta, time_limit=time_limit)


@public
def commit_against_types(
    game: AnySumGame,
    rational_player: checks.Player,
    types: Types,
    weights: Sequence[float] | None = None,
    *,
    objective: Literal["mean", "worst"] = "mean",
    delta: checks.PositiveFloat = 1e-4,
    time_limit: TimeLimit | None = None,
) -> Commitment:
    """Compute an optimal strategy to commit to where the follower is one of several types, exactly.

    Args:
      game: two players, sequential, perfect recall, explicit chance; any utilities.
      rational_player: 0 or 1; the other one has limited lookahead.
      types: the follower's possible types, at least one.
      weights: the types' probabilities, positive; they need not sum to 1. None: all equal.
      objective: "mean", what is earned on average by `weights`, or "worst", what is earned against the type
        that leaves least, which needs no weights.
      delta: as in `commit_against_lookahead`, of the objective.
      time_limit: as there.

    Raises:
      ValueError: as there; also if there are no types, or weights without use.
      LinearProgramError: HiGHS fails.
    """
    start = time.perf_counter()
    types = tuple(types)
    if not types:
        raise ArgumentError("expected types to be at least one, got none")
    probabilities = _probabilities(weights, len(types), objective)
    followers = [Follower(**vars(kind), game=game, rational_player=rational_player) for kind in types]
    form = SequenceForm.of(game)
    sets, known = _options_of_types(form, followers)
    search = PlanSearch(Instance(form, rational_player, sets, probabilities), known)
    deadline = math.inf if time_limit is None else start + time_limit
    search.run(deadline)

    def play(x: np.ndarray) -> Play:
        strategy = StrategyPolicy(game, form.players[rational_player].behavior(x))
        outcomes = tuple(lookahead_outcome(follower, strategy) for follower in followers)
        utilities = [outcome.utility for outcome in outcomes]
        if probabilities is None:
            return Play(min(utilities), outcomes)
        return Play(float(probabilities @ np.array(utilities)), outcomes)

    x, played = search.attain(delta, play)
    unit = search.instance.unit
    # A plan is worth at least what its strategies earn; the time may have run out before there was a plan.
    supremum = max(search.supremum / unit, played.utility)
    bound = max(search.bound / unit, supremum)
    return Commitment(
        game=game,
        rational_player=rational_player,
        types=types,
        weights=probabilities,
        supremum=supremum,
        bound=bound,
        gap=bound - supremum,
        optimal=(bound - supremum) * unit <= 1e-6,
        value=played.utility,
        delta=supremum - played.utility,
        strategy=form.players[rational_player].behavior(x),
        outcomes=played.outcomes,
        method="polynomial" if known else "correlation",
        work={"seconds": time.perf_counter() - start, **search.work},
    )


def _probabilities(
    weights: Sequence[float] | None, count: int, objective: str
) -> npt.NDArray[np.float64] | None:
    """Return the types' probabilities; None where the worst of them counts."""
    if objective == "worst":
        if weights is not None:
            raise ArgumentError(
                f'expected weights only where objective is "mean", got {shown(weights)} and "worst"'
            )
        return None
    given = np.ones(count) if weights is None else checks.check_numbers(weights, count, "weights")
    if not (given > 0.0).all():
        raise ArgumentError(f"expected weights to be positive numbers, got {shown(weights)}")
    probabilities: npt.NDArray[np.float64] = given / given.sum()
    probabilities.flags.writeable = False
    return probabilities


def _options_of_types(
    form: SequenceForm, followers: Sequence[Follower]
) -> tuple[list[dict[int, InformationSet]], bool]:
    """Return each type's options, and whether what all of them do is known."""
    values = [evaluate_histories(form, follower.evaluation) for follower in followers]
    fixed = [fixed_options(form, each, h) for each, h in zip(followers, values, strict=True)]
    hard = [follower for follower, sets in zip(followers, fixed, strict=True) if sets is None]
    # Adversarial ties need no options of their own where x can be changed a little at will.
    held = any(follower.tie_breaking != "adversarial" for follower in hard)
    sets = [
        lookahead_options(form, follower, h, held) if known is None else known
        for follower, h, known in zip(followers, values, fixed, strict=True)
    ]
    return sets, not hard
