"""Leaf values, of histories after which nobody prepares: u^sigma(h), exact, sampled, or evaluated.

Three ways, all in the base game's utility, and for player 0; in a game of general sum, for who prepares:

  * `ExactValues()`: dynamic programming over every continuation under sigma.
  * `RolloutValues(epsilon, delta)`: est(h, K) of Algorithms 1 and 2, the mean of K games played by sigma.
  * `EvaluatedValues(function)`: a user's evaluation, e.g. an engine's.

Source: `precomputation` section 4 and appendix (Algorithm 1, Theorem 3).

Deviations: Theorem 3 takes K = 16 ln(|W| / delta) / epsilon^2 for utilities in [0, 1]; Hoeffding's
inequality with a union bound over |W| estimates within epsilon / 2 needs only
K = (2 R^2 / epsilon^2) ln(2 |W| / delta), with R the range of utilities.
The K games from one history are played together (`Rollouts`), and a policy is asked once for each distinct
state they visit.

Cost: exact, the number of distinct states below the leaves (every history there without a
`position_key`); roll-outs, at most K L distinct states per leaf,
asked level by level in one batch.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, at_history, public, shown
from precomp_games._support.config import bar
from precomp_games._support.game_facts import TERMINAL, GameFacts
from precomp_games._support.memory import MemoryMeter, in_blocks
from precomp_games.policies.playouts import Rollouts, RolloutState
from precomp_games.policies.rows import BatchPolicies, DistinctStates, PolicyRows, asked_rows, movers_rows

_Levels = Sequence[Sequence[Any]]
_Values = tuple[list[npt.NDArray[np.float64]], int]
_Share = Annotated[float, checks.Gt(0.0), checks.Lt(1.0)]
_ROUNDING = 1e-9  # of the game's bounds: by so much an evaluation may be beyond them
_MOST_GAMES = 2**63 - 1  # what numpy can count


@dataclasses.dataclass(frozen=True)
class LeafContext:
    """Facts of the tree that a leaf evaluator may need.

    Attributes:
      sigma: Each player's policy during play, None where it is not known.
      position_key: The caller's promise of which states of one level are the same, or None.
      min_probability: See `policy_rows`.
      utility_range: R = u_max - u_min.
      bounds: The game's: no utility lies beyond.
      player: The player whose utility is asked for.
      max_states: Refuse to look at more states below the leaves than this.
      memory: Watches the states, and refuses those that do not fit.
      alike: Called with states and sigma's rows there, to refuse rows that differ within an information
        state; None where information is perfect.
    """

    sigma: BatchPolicies
    position_key: Callable[[Any], Hashable] | None
    min_probability: float
    utility_range: float
    bounds: tuple[float, float] = (-math.inf, math.inf)
    player: int = 0
    max_states: int = 50_000_000
    memory: MemoryMeter = dataclasses.field(default_factory=MemoryMeter)
    alike: Callable[[Sequence[Any], PolicyRows], None] | None = None


def as_leaf_values(leaf_value: Any) -> LeafValues:
    """Turn "exact", an evaluator of this module, or an evaluation function into `LeafValues`.

    Raises:
      ValueError: it is none of them.
    """
    if isinstance(leaf_value, LeafValues):
        return leaf_value
    if isinstance(leaf_value, str) and leaf_value == "exact":
        return ExactValues()
    evaluates = hasattr(leaf_value, "evaluate_batch") or callable(leaf_value)
    if evaluates and not isinstance(leaf_value, type):  # a class was meant to be an instance
        return EvaluatedValues(leaf_value)
    raise ArgumentError(
        'expected leaf_value to be "exact", RolloutValues(...), a function from a state to '
        f"player 0's utility, or an object with evaluate_batch(states), got {shown(leaf_value)}"
    )


@public
def sample_size(
    epsilon: checks.PositiveFloat,
    delta: _Share,
    estimates: checks.PositiveInt,
    utility_range: checks.NonNegativeFloat = 1.0,
) -> int:
    """Return K, the games per history that put all estimates within epsilon / 2 with probability 1 - delta.

    Args:
      epsilon: what the result may lose, in utility.
      delta: the probability with which it may lose more.
      estimates: |W|, how many histories are estimated, at least 1.
      utility_range: R = u_max - u_min.

    Raises:
      ValueError: an argument is out of its range, or so near to its end that K would not fit 64 bits.
    """
    try:
        games = 2.0 * (utility_range / epsilon) ** 2 * math.log(2.0 * estimates / delta)
    except OverflowError:  # of the square, or of an integer beyond floats
        games = math.inf
    if games > _MOST_GAMES:
        got = f"{epsilon!r}, {delta!r}, {shown(estimates)} and utility_range={utility_range!r}"
        raise ArgumentError(f"expected epsilon, delta, estimates for which games can be counted, got {got}")
    return max(1, math.ceil(games))


def check_evaluator(value: Any, name: str) -> Any:
    """Return a function, or an object with `evaluate_batch(states)`.

    Raises:
      ValueError: it is neither.
    """
    return value if hasattr(value, "evaluate_batch") else checks.check_function(value, name)


Evaluator = Annotated[Any, checks.Check(check_evaluator)]
"""Player 0's utility by state: a function, or an object with `evaluate_batch(states)`."""


@dataclasses.dataclass(frozen=True)
class EvaluatedValues:
    """A user's evaluation: `function(state)`, or `function.evaluate_batch(states)` where it has one.

    The function returns player 0's utility as a finite float.
    """

    function: Any
    deferred = False

    def __call__(self, levels: _Levels, context: LeafContext) -> _Values:
        """Evaluate the states, see `LeafValues`; a missing, infinite or unbounded value is a ValueError."""
        return [evaluated(self.function, states, "leaf_value", context.bounds) for states in levels], 0


def evaluated(
    evaluator: Any, states: Sequence[Any], name: str, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> npt.NDArray[np.float64]:
    """Return player 0's utilities of states, by a function or by `evaluator.evaluate_batch` where it has one.

    Args:
      evaluator: what is asked.
      states: what about.
      name: the argument that it came as, for error messages.
      bounds: between which utilities lie, but for rounding.

    Raises:
      ValueError: a value is missing, not finite or out of bounds.
    """
    batch = getattr(evaluator, "evaluate_batch", None)
    answers = [evaluator(state) for state in states] if batch is None else batch(states)
    values = checks.real_array(answers)
    if values is None:
        raise ArgumentError(f"expected {name} to give numbers, got {shown(answers)}")
    if values.shape != (len(states),):
        got = f"an array of shape {values.shape}"
        raise ArgumentError(f"expected {name} to give a value for each of {len(states)} states, got {got}")
    low, high = bounds
    slack = _ROUNDING * (abs(low) + abs(high))
    holds = np.isfinite(values) & (low - slack <= values) & (values <= high + slack)
    for wrong in np.flatnonzero(~holds)[:1].tolist():
        got = f"{values[wrong]} {at_history(states[wrong])}"
        kind = f"utilities in [{low}, {high}]" if np.isfinite(values[wrong]) else "finite utilities"
        raise ArgumentError(f"expected {name} to give {kind}, got {got}")
    return values


@dataclasses.dataclass(frozen=True)
class ExactValues:
    """u^sigma by dynamic programming, a level at a time, over the distinct states below the leaves."""

    deferred = True

    def __call__(self, levels: _Levels, context: LeafContext) -> _Values:
        """Compute the states' values, see `LeafValues`."""
        least = context.min_probability
        ask = functools.partial(movers_rows, policies=context.sigma, name="sigma", min_probability=least)
        sweeps: list[tuple[list[int], np.ndarray, np.ndarray, PolicyRows, list[int]]] = []
        here = DistinctStates(context.position_key)
        facts = next((GameFacts(each.get_game(), bounded=False) for level in levels for each in level), None)
        if facts is None:
            return [np.zeros(0) for _ in levels], 0
        depth = seen = 0
        with bar("Below the leaves", "states", leave=False) as show:
            while depth < len(levels) or here.states:
                asked = here.add(levels[depth] if depth < len(levels) else ())
                looked_at = context.memory.watched("looked at", here.states, len(here.states))
                mover = facts.movers_of(here.states, looked_at)
                facts.check_names(here.states, mover)
                over, goes_on = np.flatnonzero(mover == TERMINAL), np.flatnonzero(mover != TERMINAL)
                value = np.zeros(len(mover))
                value[over] = [facts.utilities(here.states[k])[context.player] for k in over.tolist()]
                states = [here.states[k] for k in goes_on.tolist()]
                rows = asked_rows(ask, states, context.memory)
                if context.alike is not None:
                    context.alike(states, rows)
                here = DistinctStates(context.position_key)
                owner = np.repeat(np.arange(len(states)), np.diff(rows.start))
                made = (states[k].child(action) for k, action in in_blocks(owner, rows.action))
                children = here.add(context.memory.watched("states below", made, len(owner)))
                sweeps.append((asked, value, goes_on, rows, children))
                seen += len(mover)
                if seen + len(here.states) > context.max_states:
                    most = f"max_histories={context.max_states} states below the leaves for exact values"
                    way = "use RolloutValues, an evaluation function, or a position_key"
                    raise ArgumentError(f"expected at most {most}, got more at level {depth + 1}; {way}")
                context.memory.begin(f"at level {depth + 1}, with {seen} states below the leaves")
                show(seen, f"level {depth}")
                depth += 1
        values: list[npt.NDArray[np.float64]] = []
        below = np.zeros(0)
        for asked, value, goes_on, rows, children in reversed(sweeps):
            if len(goes_on):
                products = rows.probability * below[children]
                value[goes_on] = np.add.reduceat(products, rows.start[:-1])
            values.append(value[asked])
            below = value
        return values[::-1][: len(levels)], 0


@public
@dataclasses.dataclass(frozen=True)
class RolloutValues:
    """est(h, K): the mean utility of K games that both players' sigma play on from h.

    Attributes:
      epsilon, delta: The utility that the result may lose, and the probability of losing more.
      games: K itself, where it is given; otherwise `sample_size` for the number of estimates.
      seed: Streams derive from (seed, position), so the order of evaluation does not matter.
    """

    epsilon: checks.PositiveFloat = 0.1
    delta: _Share = 0.05
    games: Annotated[int, checks.Ge(1), checks.Le(_MOST_GAMES)] | None = None
    seed: checks.NonNegativeInt = 0
    deferred = True

    def __post_init__(self) -> None:
        """Check that games can be counted."""
        sample_size(self.epsilon, self.delta, 1)

    def __call__(self, levels: _Levels, context: LeafContext) -> _Values:
        """Estimate the states' values, see `LeafValues`."""
        estimates = sum(len(states) for states in levels)
        games = self.games or sample_size(self.epsilon, self.delta, max(estimates, 1), context.utility_range)
        total = np.zeros(estimates)
        streams: list[np.random.Generator] = []
        rollouts = Rollouts(context.sigma, context.position_key, context.min_probability, context.alike)
        visits: list[tuple[int, RolloutState, int]] = []  # (leaf, state of the level, games there)
        depth = 0
        while depth < len(levels) or visits:
            for state in levels[depth] if depth < len(levels) else []:
                visits.append((len(streams), rollouts.at(state), games))
                streams.append(self._stream(state, depth, context))
            context.memory.check()
            rollouts.ask(dict.fromkeys(here for _, here, _ in visits))
            rollouts.known.clear()  # keys speak of states of one level
            arrivals: dict[tuple[int, RolloutState], int] = {}
            for leaf, here, count in visits:
                if here.returns is not None:
                    total[leaf] += count * here.returns[context.player]
                    continue
                for reached, drawn in rollouts.step(here, count, streams[leaf]):
                    arrivals[leaf, reached] = arrivals.get((leaf, reached), 0) + drawn
            visits = [(leaf, reached, count) for (leaf, reached), count in arrivals.items()]
            depth += 1
        mean = total / games
        ends = np.cumsum([len(states) for states in levels])
        return [np.array(part) for part in np.split(mean, ends[:-1])], estimates * games

    def _stream(self, state: Any, depth: int, context: LeafContext) -> np.random.Generator:
        """Return the random stream of one history, from the seed and the position alone."""
        key = context.position_key(state) if context.position_key else state.history()
        digest = hashlib.blake2b(repr((depth, key)).encode(), digest_size=16).digest()
        return np.random.default_rng([self.seed, *np.frombuffer(digest, np.uint32).tolist()])


# A way to value histories, level by level or, `deferred`, in one call for all levels. It is called with the
# states of each level (a state's level is its number of actions so far) and a `LeafContext`. It returns
# u^sigma for `context.player`, an array per level, and how many games were sampled for that.
LeafValues = ExactValues | RolloutValues | EvaluatedValues
