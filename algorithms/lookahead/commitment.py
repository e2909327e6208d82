"""The best strategy to commit to against a player with limited lookahead.

    h = equilibrium_values(game, player=1)
    best = commit_against_lookahead(game, rational_player=0, lookahead=2, evaluation=h)
    best.supremum, best.bound       # between these lies what can be earned
    best.value                      # what best.policy() earns, by an independent recursion

**Favorable** tie-breaking has a maximum. With **static** and **adversarial** tie-breaking there is in
general only a supremum: the best strategy would leave the follower with a tie that is then broken against the
leader, and one as near to it as asked for (`delta`) has to be taken. The search runs over the follower's
plans (`instance`):

1. the mixed-integer program finds the plan whose closure is worth most;
2. if that plan's strict rows cannot all hold strictly, the parts of it that show this are ruled out, and 1
   is done again;
3. the best x with a margin to each strict rival is taken, the largest margin that keeps it within `delta`;
4. `evaluate_against_lookahead` plays it.

**Lookahead 1 without information sets** is easy. What the follower holds for best at a history is then h at
its successors, whatever the other plays. With a static rule its play is known, and the rational player's best
response is optimal (Proposition 3). If ties are broken against the rational player, that is a zero-sum game
in which the follower has only its optimal actions: one linear program. And with its choice fixed in any way,
a best response makes a Nash equilibrium (Proposition 2, `lookahead_nash_equilibrium`).

Source: `limited_lookahead`, section 5, and sections 4.1 and 4.2 for the easy case.

Deviations: a program without big M (method="big_m" is the paper's, see `plan_programs`); no epsilon:
strictness is decided after the fact, and the supremum reported beside an attained value.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
import pyspiel

from precomp_games._support.arguments import (
    INFINITE,
    GeneralSumGame,
    Gt,
    Player,
    PositiveFloat,
    PositiveInt,
    one_of,
    public,
)
from precomp_games._support.checks import ArgumentError

from .evaluation_functions import StrategyPolicy, evaluate_histories
from .follower import (
    TIE_TOLERANCE,
    EvaluationFunction,
    Follower,
    LookaheadOutcome,
    Order,
    TieBreaking,
    lookahead_outcome,
)
from .instance import Choices, Instance, Plan
from .options import InformationSet, Option, lookahead_options
from .plan_programs import BigMProgram, CorrelationProgram
from .sequence_form import SequenceForm

_Method = Annotated[str, one_of(("auto", "correlation", "big_m", "polynomial"))]

_MARGINS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 4.0 * TIE_TOLERANCE)
_ABSOLUTE_GAP = 1e-7
_NEAR = 1e-3
_MENDED = 100


@dataclasses.dataclass(frozen=True, eq=False)
class Commitment:
    """What to commit to; utilities are the rational player's.

    Attributes:
      supremum: Strategies come as near to this as one likes (favorable ties: it is attained); the best that
        was found.
      bound: No strategy earns more.
      gap: bound - supremum.
      optimal: The gap is at most 1e-6 of the greatest payoff. False where the time ran out: then
        [supremum, bound] is all that is known.
      value: What `strategy` earns, by `evaluate_against_lookahead`.
      delta: supremum - value.
      strategy: {information state: {action: probability}}.
      realization: float[sequences], the same as a realization plan.
      outcome: What `evaluate_against_lookahead` says of it: optimal sets, and the actions that the rule
        picks of them.
      method: "correlation", "big_m" or "polynomial".
      work: Seconds, rounds (programs solved), nodes of branch and bound, columns, rows, integers.
    """

    game: pyspiel.Game
    rational_player: int
    lookahead: int
    tie_breaking: str
    supremum: float
    bound: float
    gap: float
    optimal: bool
    value: float
    delta: float
    strategy: dict[str, dict[int, float]] = dataclasses.field(repr=False)
    realization: np.ndarray = dataclasses.field(repr=False)
    outcome: LookaheadOutcome = dataclasses.field(repr=False)
    method: str
    work: dict[str, float]

    def policy(self) -> StrategyPolicy:
        """The rational player's strategy and the follower's response, as an OpenSpiel policy of both."""
        response = {key: {action: 1.0} for key, action in self.outcome.response.items()}
        return StrategyPolicy(self.game, self.strategy | response)


@public
def commit_against_lookahead(
    game: GeneralSumGame,
    rational_player: Player,
    lookahead: PositiveInt,
    evaluation: EvaluationFunction,
    tie_breaking: TieBreaking = "adversarial",
    *,
    order: Order | None = None,
    delta: PositiveFloat = 1e-4,
    method: _Method = "auto",
    time_limit: Annotated[float, Gt(0.0), INFINITE] | None = None,
) -> Commitment:
    """Computes an optimal strategy to commit to, exactly.

    Args:
      game: two players, sequential, perfect recall, explicit chance; any utilities.
      rational_player: 0 or 1; the other one has limited lookahead.
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, the limited player's evaluation function; asked of leaves too.
      tie_breaking: how the limited player picks of its optimal actions: "favorable" to the rational player,
        "static" (by `order`), or "adversarial".
      order: for "static" only, `(information state, actions) -> actions`, the preferred one first; by default
        as the game lists them.
      delta: how near `value` is to come to `supremum`, where it is not attained. Ties are told apart to
        `TIE_TOLERANCE`, which may leave more; the result's `delta` says how much there is.
      method: "correlation", "big_m", "polynomial", which is for lookahead 1 without information sets and ties
        not broken favorably, or "auto": polynomial where it applies, else correlation.
      time_limit: seconds for the mixed-integer programs; a result with `optimal` False comes back if it ends
        them.

    Raises:
      ValueError: an argument is not as above, h gives no finite number, the game has no perfect
        recall, or there are too many plans inside a lookahead.
      LinearProgramError: HiGHS fails.
    """
    start = time.perf_counter()
    follower = Follower(game, rational_player, lookahead, evaluation, tie_breaking, order)
    form = SequenceForm.of(game)
    h = evaluate_histories(form, evaluation)
    applies = _is_polynomial(form, follower)
    if method == "polynomial" and not applies:
        raise ArgumentError(
            "expected lookahead 1, no information sets and no favorable ties for method "
            f"polynomial, got lookahead {lookahead}, {tie_breaking} ties, in {game}"
        )
    if method == "auto":
        method = "polynomial" if applies else "correlation"
    if method == "polynomial":
        sets = _polynomial_sets(form, follower, h)
    else:
        sets = lookahead_options(form, follower, h)
    search = _PlanSearch(Instance(form, rational_player, sets), method)
    deadline = math.inf if time_limit is None else start + time_limit
    search.run(deadline)

    def play(x: np.ndarray) -> LookaheadOutcome:
        return lookahead_outcome(follower, StrategyPolicy(game, form.players[rational_player].behavior(x)))

    x, outcome = search.attain(delta, play)
    unit = search.instance.unit
    # A plan is worth at least what its strategies earn; the time may have run out before there was a plan.
    supremum = max(search.supremum / unit, outcome.utility)
    bound = max(search.bound / unit, supremum)
    return Commitment(
        game=game,
        rational_player=rational_player,
        lookahead=lookahead,
        tie_breaking=tie_breaking,
        supremum=supremum,
        bound=bound,
        gap=bound - supremum,
        optimal=(bound - supremum) * unit <= 1e-6,
        value=outcome.utility,
        delta=supremum - outcome.utility,
        strategy=form.players[rational_player].behavior(x),
        realization=x,
        outcome=outcome,
        method=method,
        work={"seconds": time.perf_counter() - start, **search.work},
    )


class _PlanSearch:
    """The best plan, and what it is worth, in the instance's unit."""

    def __init__(self, instance: Instance, method: str) -> None:
        self.instance, self.method = instance, method
        self.supremum, self.bound = -math.inf, instance.most
        self.plan: Plan | None = None
        self.x: np.ndarray | None = None
        self.uniform = instance.leader.realized(
            instance.leader.probabilities(np.zeros(instance.leader.num_sequences))
        )
        self.work: dict[str, float] = {"rounds": 0, "nodes": 0, "columns": 0, "rows": 0, "integers": 0}

    def run(self, deadline: float) -> None:
        """Looks for the best plan until the deadline, on the clock of `time.perf_counter`."""
        if self.method == "polynomial":
            self._keep(dict.fromkeys(self.instance.sets, 0))
            self.bound = self.supremum
            return
        program = (BigMProgram if self.method == "big_m" else CorrelationProgram)(self.instance)
        columns, rows, integers = program.program.size
        self.work |= {"columns": columns, "rows": rows, "integers": integers}
        self._near(self.uniform)
        hopeless: list[tuple[int, int]] | None = None
        while True:
            solution, plan = program.solve(deadline - time.perf_counter(), self.plan, _ABSOLUTE_GAP)
            self.work["rounds"] += 1
            self.work["nodes"] += solution.nodes
            if solution.status == "infeasible":
                # All that is left has been ruled out: what was kept is best.
                self.bound = min(self.bound, self.supremum)
                return
            self.bound = min(self.bound, solution.bound)
            if plan is not None:
                conflicts = self.instance.conflicts(plan)
                if not conflicts:
                    self._keep(plan)
                else:
                    if hopeless is None:  # where one such plan looks good, others will
                        hopeless = self.instance.never_best()
                        conflicts += [(option,) for option in hopeless if (option,) not in conflicts]
                    for conflict in conflicts:
                        program.rule_out(conflict)
                    closest = self.instance.solve(plan)
                    if closest is not None:
                        self._near(closest[1])
                        self._mend(plan, conflicts, closest[1])
                    if solution.status == "optimal" and self.supremum < self.bound - _ABSOLUTE_GAP:
                        continue
            if solution.status == "optimal" or time.perf_counter() >= deadline:
                return

    def _near(self, x: np.ndarray) -> None:
        """Keeps what the follower does close to x, where that is better: something to start from."""
        self._try(self.instance.response((1.0 - _NEAR) * x + _NEAR * self.uniform))

    def _mend(self, plan: Plan, conflicts: Sequence[Choices], x: np.ndarray) -> None:
        """Looks for possible plans that differ from one with conflicts where those are.

        Often one is as good as the bound, which saves the programs that would find it by ruling out others.
        """
        sets = sorted({k for conflict in conflicts if _within(conflict, plan) for k, _ in conflict})
        near = (1.0 - _NEAR) * x + _NEAR * self.uniform
        values = self.instance.values(near)
        kept = {(infoset, k): math.inf for infoset, k in plan.items() if infoset not in sets}
        options = [range(len(self.instance.sets[k].options)) for k in sets]
        for chosen in itertools.islice(itertools.product(*options), _MENDED):
            variant = {(infoset, k): math.inf for infoset, k in zip(sets, chosen, strict=True)}
            if not any(_within(conflict, dict(zip(sets, chosen, strict=True))) for conflict in conflicts):
                self._try(self.instance.plan(values | kept | variant))
            if self.supremum >= self.bound - _ABSOLUTE_GAP:
                return

    def _try(self, plan: Plan) -> bool:
        """Keeps a plan if it is possible and better; whether it is."""
        return not self.instance.conflict(plan) and self._keep(plan)

    def _keep(self, plan: Plan) -> bool:
        """Keeps a plan if it is better; whether it is."""
        solved = self.instance.solve(plan)
        if solved is None or solved[0] <= self.supremum:
            return False
        self.supremum, self.x, self.plan = solved[0], solved[1], plan
        return True

    def attain(
        self, delta: float, play: Callable[[np.ndarray], LookaheadOutcome]
    ) -> tuple[np.ndarray, LookaheadOutcome]:
        """A strategy within delta of the supremum, as `play` finds it; else the best that was tried."""
        if self.plan is None or self.x is None:
            return self.uniform, play(self.uniform)
        if not any(rival.strict for key in self.plan.items() for rival in self.instance.options[key].rivals):
            return self.x, play(self.x)
        nearest, unit = self.x, self.instance.unit
        enough = self.supremum - delta * unit
        best: tuple[np.ndarray, LookaheadOutcome] | None = None
        for margin in _MARGINS:
            solved = self.instance.solve(self.plan, margin)
            if solved is None:
                continue
            if solved[0] < enough:
                nearest = solved[1]  # margins fall, so that later ones come nearer
                continue
            outcome = play(solved[1])
            if best is None or outcome.utility > best[1].utility:
                best = solved[1], outcome
            if outcome.utility * unit >= enough:
                return best
        # No margin that is wide enough to be seen is that near: the best of what there is.
        outcome = play(nearest)
        return best if best is not None and best[1].utility >= outcome.utility else (nearest, outcome)


def _within(part: Choices, plan: Plan) -> bool:
    """Whether a plan holds all of these (information set, option)."""
    return all(plan.get(infoset) == k for infoset, k in part)


# -- lookahead 1 without information sets


@dataclasses.dataclass(frozen=True, eq=False)
class LookaheadEquilibrium:
    """A Nash equilibrium between a rational player and one with limited lookahead.

    Attributes:
      utility: The rational player's.
      policy: Of both.
      optimal: {history of the follower: its optimal actions}.
    """

    utility: float
    policy: StrategyPolicy
    optimal: dict[str, tuple[int, ...]]


def _is_polynomial(form: SequenceForm, follower: Follower) -> bool:
    """Whether the follower sees one move, has no information sets, and does not break ties favorably."""
    alone = all(len(histories) == 1 for histories in form.members(follower.player).values())
    return follower.lookahead == 1 and alone and follower.tie_breaking != "favorable"


def _polynomial_sets(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, InformationSet]:
    """One option at each of the follower's histories: its optimal actions, or the one that the rule picks."""
    own = form.players[follower.player]
    nothing = np.zeros(form.players[follower.rational_player].num_sequences)
    sets = {}
    for infoset, (history,) in form.members(follower.player).items():
        values = h[list(form.children[history])]
        scale = float(np.abs(values).max())
        best = np.flatnonzero(values >= values.max() - TIE_TOLERANCE * scale).tolist()
        if follower.tie_breaking == "static":
            legal = own.actions(infoset)
            ranked = follower.ranked(own.keys[infoset], legal)
            best = [min(best, key=lambda k: ranked.index(legal[k]))]
        reach = nothing.copy()
        reach[form.sequence[history, follower.rational_player]] = form.chance[history]
        sequences = tuple(own.sequences(infoset)[k] for k in best)
        sets[infoset] = InformationSet(reach, (Option(sequences, nothing, ()),))
    return sets


@public
def lookahead_nash_equilibrium(
    game: GeneralSumGame,
    rational_player: Player,
    evaluation: EvaluationFunction,
    order: Order | None = None,
) -> LookaheadEquilibrium:
    """A Nash equilibrium where the limited player has lookahead 1 and no information sets.

    Args:
      game: two players, sequential, perfect recall.
      rational_player: 0 or 1; the other one has limited lookahead.
      evaluation: h, the limited player's evaluation function.
      order: which of its optimal actions it takes, the preferred one first; by default as the game lists
        them.

    Raises:
      ValueError: the limited player has information sets of several histories, or an argument is wrong.
    """
    follower = Follower(game, rational_player, 1, evaluation, "static", order)
    form = SequenceForm.of(game)
    if not _is_polynomial(form, follower):
        raise ArgumentError(
            f"expected a game in which player {follower.player} has no information sets of "
            f"several histories, got {game}"
        )
    h = evaluate_histories(form, evaluation)
    leader, own = form.players[rational_player], form.players[follower.player]
    probabilities = np.zeros(own.num_sequences)
    for information_set in _polynomial_sets(form, follower, h).values():
        probabilities[information_set.options[0].sequences[0]] = 1.0
    plan = own.realized(probabilities)
    utility, best = leader.best_reply(form.against(follower.player, plan, rational_player))
    all_optimal = dataclasses.replace(follower, tie_breaking="adversarial", order=None)
    return LookaheadEquilibrium(
        utility=utility,
        policy=StrategyPolicy(game, own.as_rows(probabilities) | leader.behavior(best)),
        optimal={
            own.keys[k]: tuple(own.action[list(information_set.options[0].sequences)].tolist())
            for k, information_set in _polynomial_sets(form, all_optimal, h).items()
        },
    )
