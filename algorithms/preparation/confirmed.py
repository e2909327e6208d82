"""Preparation whose promise comes true: evaluations direct the search, games estimate the value.

Evaluated stops are estimates, and an optimum over estimates is an optimum over their errors: the more there
is to choose among, the more a preparation promises and the less it keeps. So here

1. The tree grows best first in the optimistic order (`best_first`), at a large penalty at first and
   then at half of it, and so on down to the one that was asked for: what matters most is looked at first.

2. At each penalty the best set by estimates V that games correct is found, and games are
   played from where lines leave it, the more often the more their outcomes could change. They teach what
   those stops are worth, and the next penalty begins with that. What is picked for an estimate may still be
   worth less, unless the estimate is all that its prior makes of the games, which these need not be. Where
   the opponent has one reply everywhere, a set is one line, and there are many small rounds.

3. The last set is fixed, and played from its stops, in proportion to reach, in games that teach nothing any
   more. They estimate the set's value. The estimates V serve as control variate: the promise is

       what lines that end inside the set are worth
       + sum over stops of reach V
       + (their reach) (mean over games of score - V),

   which is unbiased, whatever V is, since V, the set and the number of games are fixed before the first of
   them, but for being cut at the ends of the range of utilities. A rule that ends at the first hundred with
   a small enough standard error ends where luck has been good: near the best utility it promised 0.003 too
   much, and 1.96 such standard errors held the truth in 0.78 of samples in place of 0.95. V tells how many
   games the wanted precision takes, since a game from where V is the mean has no more variance than
   (V - least) (most - V) around it. Where V is wrong the error differs, and `standard_error` gives it.

   The standard error is that of a mean of independent games. It is 0 where all of them are alike, so the
   interval has two games of each end added (`mean_interval`): it holds the truth in 0.95 to 0.985 of samples,
   also where V is far off.

Both sides play sigma in these games, to the end of the game.

What stopping is worth is learned from games, by best linear estimates for each position. An evaluation is an
opinion about games, and what is picked for its value is picked for the evaluation's errors too. Games are
observations. With a prior mean f(x) that is worth n0 games, and n games from or through
position x of total score T,

    V(x) = (n0 clip(f(x) + rho d(y)) + T) / (n0 + n),        d = V - f,

where y is the player's last turn among the ancestors of x: what was too good, or too bad, about y is likely
to be so about x. A game counts for the first turns of the player's that it passes, since later ones say
little about where it began.

What V is: with rho = 0, and true values that scatter around f with variance v / n0, v that of a game around
its position's, V is of all linear functions of T the one with the least squared error. It is what is expected
of x, given its games, if the prior is conjugate to them (a Beta distribution and wins and losses), and in
general only then: where a position is worth 0.6 or 1, equally likely, n0 is 3, and after four wins in five
games V is 0.8, though a loss shows that it is worth 0.6. So what is picked for its V may still be worth less,
and games that had no part in picking say how much.

What it leaves out: a game that passes y and x counts for x twice, by T and through d(y), which is no
posterior of anything, but lets what was learned of a line reach positions of it without games. One game
counts for up to twelve positions: each has an estimate with the error as promised, but their errors go
together, and do not average out over a line as those of separate games would. A wrong n0 costs little: 4.8
in place of 3.3 adds 3.5 % to the squared error at most, whatever n is.

Source: ours; Algorithm 1 of `precomputation` is the recursion, Theorem 3's roll-outs are the games.

Cost: one evaluation per position, one call to sigma_pre and one to the opponent's policy per opened node, and
the games: one call to sigma for each position that any of them visits, if sigma keeps what it was asked.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.config import bar
from precomp_games._support.deadlines import OutOfTimeError, limited, time_is_up
from precomp_games._support.results import Result
from precomp_games.policies.leaf_values import Evaluator, evaluated
from precomp_games.policies.playouts import mean_interval, play_on
from precomp_games.policies.rows import LeastProbability

from .best_first import Improved
from .evaluated_search import BestFirstSearch
from .partial_tree import Branch, CertifiedPrecomputation, Node, PerfectGame, PreparationProblem

_STREAMS = int.from_bytes(b"stops", "big")  # the spawn key that sets these games' streams apart
CREDITED = 12
"""Own turns of a game that it counts for."""
_SEVERAL = 3
"""Games, which make a position worth a look that an evaluation sees nothing in."""
_MOST_GAMES = 10_000_000
_CHUNK = 100  # games under way at once
_LEAST_PROMISE = 100  # games, where any are needed
_ROUNDING = 1e-9  # of a product of probabilities
_MARGIN = 0.005  # no prior mean is nearer to the ends, of the range of utilities
_HALVINGS = 4  # of the first penalty, round by round, until it is the one that was asked for
_ROUNDS, _ROUNDS_OF_ONE_LINE = (
    5,
    25,
)  # in which games teach; after the halvings, what they taught is looked at
_OPENED = 2  # nodes that a round may open, for each entry of the budget
_OPENED_OF_ONE_LINE = 16  # nodes that may be opened between two rounds of games, whatever the budget
_BATCH = 4  # nodes that are worked on at once, for engines that search in parallel; many waste work

PlayedGame = tuple[Sequence[Any], float | Sequence[float]]
"""The player's turns that a game has passed since it left what was memorized, and its score; or what it
scored, and then what it would have scored if it had left at each of the later ones."""


class PlayedValues:
    """Best linear estimates, as an evaluator of `BestFirstSearch`.

    Attributes:
      prior_games: n0.
      inherited: rho.
      doubt: The standard deviations taken off an estimate; negative, for hope: added.
    """

    def __init__(
        self,
        evaluator: Any,
        problem: PreparationProblem,
        *,
        prior_games: float,
        inherited: float,
        doubt: float = 0.0,
    ) -> None:
        """Start without games.

        Args:
          evaluator: the prior mean, see `best_first_precomputation`.
          problem: whose player's utilities `credit` and `value` speak of, and which states are the same.
          prior_games: n0, positive.
          inherited: rho.
          doubt: see `deviation`.
        """
        self.prior_games, self.inherited, self.doubt = prior_games, inherited, doubt
        self._evaluator, self._player, self._total = evaluator, problem.player, problem.total
        self._low, self._high = problem.low, problem.high
        self._position = problem.position_key or (lambda state: tuple(state.history()))
        self._prior: dict[Hashable, float] = {}
        self._games: dict[Hashable, int] = {}
        self._scores: dict[Hashable, float] = {}
        self._shift: dict[tuple[int, ...], float] = {}  # d, by history

    def evaluate_batch(self, states: Sequence[Any]) -> npt.NDArray[np.float64]:
        """Return float64[n]: player 0's. States that come before others must come no later than these."""
        fresh: dict[Hashable, Any] = {}
        for state in states:
            if self._position(state) not in self._prior:
                fresh.setdefault(self._position(state), state)
        values = evaluated(self._evaluator, list(fresh.values()), "evaluator")
        for name, value in zip(fresh, values.tolist(), strict=True):
            self._prior[name] = self._own(value)
        return np.array([self._own(self._learn(state)) for state in states])

    def _own(self, value: float) -> float:
        """Convert player 0's utility to the player's, or back."""
        return value if self._player == 0 else self._total - value

    def _learn(self, state: Any) -> float:
        history, name = tuple(state.history()), self._position(state)
        before = (history[:k] for k in range(len(history) - 1, -1, -1))
        shift = next((self.inherited * self._shift[turn] for turn in before if turn in self._shift), 0.0)
        margin = _MARGIN * (self._high - self._low)
        prior = self._prior[name]
        mean = min(max(prior + shift, self._low + margin), self._high - margin)
        total = self.prior_games * mean + self._scores.get(name, 0.0)
        games = self.games(state)
        value = total / (self.prior_games + games)
        self._shift[history] = value - prior
        return min(max(value - self.doubt * self.deviation(value, games), self._low), self._high)

    def games(self, state: Any) -> int:
        """Return how many games have passed a position."""
        return self._games.get(self._position(state), 0)

    def credit(self, states: Sequence[Any], score: float | Sequence[float]) -> None:
        """Count a game for positions that it has passed, with its score for all or for each."""
        scores = score if isinstance(score, Sequence) else [score] * len(states)
        counted = set[Hashable]()
        for name, score in zip(map(self._position, states), scores, strict=False):
            if name not in counted:
                counted.add(name)
                self._games[name] = self._games.get(name, 0) + 1
                self._scores[name] = self._scores.get(name, 0.0) + score

    def deviation(self, value: float, games: int) -> float:
        """Return the standard deviation of the value of a position so evaluated, after so many games.

        As if a Beta distribution were behind it: a guess, which directs where to play and what to doubt.
        """
        spread = max((value - self._low) * (self._high - value), 0.01 * (self._high - self._low) ** 2)
        return math.sqrt(spread / (self.prior_games + games + 1.0))


@dataclasses.dataclass(frozen=True)
class Stop:
    """A position where lines leave a preparation.

    Attributes:
      history: The base game's actions from the start.
      reach: The probability of leaving there, against the opponent as modeled.
      value: The estimate of stopping there, the player's utility.
      games: The number of games that the estimate has been learned from.
    """

    history: tuple[int, ...]
    reach: float
    value: float
    games: int


@dataclasses.dataclass(frozen=True)
class Round:
    """The best set at one of the penalties, and the games that were played from its stops.

    Attributes:
      penalty: That it is best at.
      size: Of the set.
      expected: Its utility by estimates, before these games.
      games: The number of games.
      predicted: Mean estimate of the stops that they were played from, NaN without games.
      scored: Their mean score. Where it is lower than predicted, the set was picked for errors.
    """

    penalty: float
    size: int
    expected: float
    games: int
    predicted: float
    scored: float


@dataclasses.dataclass(frozen=True, eq=False)
class ConfirmedPrecomputation(Result):
    """A preparation with its value by games; all from the viewpoint of its player.

    Attributes:
      preparation: The set. Its gains and its bounds are those of posterior means, which are taken for exact
        there: a `confidence` of 1 proves nothing about the true values. `promise` and `interval` estimate
        these.
      promise: Expected utility with the set, penalties not taken off, by games that had no part in choosing
        it.
      standard_error: Of the promise, from these games; near the best utility `interval` is more reliable.
      interval: Of 95 %, for what the promise estimates.
      games: That the promise was estimated from.
      unprepared: Expected utility without any preparation, by estimates.
      stops: The positions where lines leave the set, the most reached first.
      rounds: The sets of the penalties before, in order.
    """

    preparation: CertifiedPrecomputation
    promise: float
    standard_error: float
    interval: tuple[float, float]
    games: int
    unprepared: float
    stops: tuple[Stop, ...] = dataclasses.field(repr=False)
    rounds: tuple[Round, ...] = dataclasses.field(repr=False)


@public
def confirmed_precomputation(
    game: PerfectGame,
    sigma_pre: Any,
    sigma: Any,
    penalty: checks.PositiveFloat,
    player: checks.Player,
    evaluator: Evaluator,
    *,
    budget: checks.NonNegativeInt | None = None,
    games: Annotated[int, checks.Ge(0), checks.Le(_MOST_GAMES)] = 300,
    promise_games: Annotated[int, checks.Ge(0)] = 1000,
    precision: checks.NonNegativeFloat = 0.01,
    prior_games: checks.PositiveFloat = 5.0,
    inherited: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] = 0.2,
    played: Annotated[Sequence[PlayedGame], checks.each_of(tuple)] = (),
    doubt: float = 0.0,
    optimism: checks.NonNegativeFloat | None = None,
    max_evaluations: checks.PositiveInt | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: LeastProbability = 1e-12,
    seed: checks.Seed = 0,
    enough: Callable[[], bool] | None = None,
    improved: Improved | None = None,
) -> ConfirmedPrecomputation:
    """Prepare `player` against a fixed opponent, by evaluations that games correct.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: the player's candidate moves, a policy or a `Menu`; one, or a pair.
      sigma: the policies during play, one or a pair; both sides play it in the games.
      penalty: lambda.
      player: 0 or 1.
      evaluator: the value of stopping before any game was played: a function from a state to player 0's
        utility, or an object with `evaluate_batch(states)`.
      budget: at most so many entries. With a budget that binds, entries cost nothing, and the penalty only
        says how far is looked. None: each costs lambda, however many.
      games: at most so many teach what stops are worth.
      promise_games: at most so many estimate the final set's value; 0: the promise is what estimates say,
        without an interval.
      precision: the standard error that the promise should have. How many games that takes follows from
        estimates, before they are played; a hundred at least.
      prior_games: the number of games that an evaluation counts for.
      inherited: the share of what was learned about a turn that holds for the next one, in [0, 1].
      played: games that teach before any other, such as real ones: the player's turns that each has passed
        since it left what was memorized, in their order, and what it scored, the player's utility; or a score
        for each of these turns.
      doubt: the standard deviations taken off each estimate, so that a stop that many games have
        seen is preferred to one that promises a little more and few have; all values are lower then. Negative
        doubt is hope: a stop that few games have seen is preferred, to learn what it is worth. Hope chooses
        only, and no reported value has any.
      optimism: g of the order in which nodes are opened (`best_first`): with less of it lines are followed
        further, and fewer entries compared. None: what is best against opponents who err much.
      max_evaluations: open nothing any more after so many.
      position_key: states of one level with equal keys have the same policies, and states with equal keys are
        taken to be worth the same.
      min_probability: probabilities below this are set to zero and the rest renormalized.
      seed: of the games. Nothing else is random, and what policies do in parallel changes nothing.
      enough: asked now and then whether to look no further. Then nothing more is looked at or taught, and
        games estimate the best set so far.
      improved: called with the best set so far, by estimates, whenever there are an eighth more evaluations,
        and with the last one before games say what it is worth. It changes nothing of what is found.

    Raises:
      ValueError: an argument, a policy's answer or an evaluation is not as above.
    """
    problem = PreparationProblem.checked(
        game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    if promise_games == 1:
        raise ArgumentError("expected promise_games to be 0 or at least 2, got 1")
    values = PlayedValues(evaluator, problem, prior_games=prior_games, inherited=inherited, doubt=doubt)
    search = BestFirstSearch(problem, values, "optimistic", optimism)
    with bar("Preparing", "evaluations") as show:
        work = _Confirmed(problem, values, search, budget, max_evaluations, seed, show, enough, improved)
        for states, score in played:
            values.credit(list(states)[:CREDITED], score)
        if played:
            for _ in work.search.open_lines(_compared(played, values)):
                work.tell()
        return work.run(games, promise_games, precision)


def _compared(played: Sequence[PlayedGame], values: PlayedValues) -> list[tuple[int, ...]]:
    """Return lines to compare, also where an evaluation has no hope for them.

    Where games have left what was memorized, and as far as several went on alike: so what the player has
    computed and scored well with is there to be memorized, and what it has scored badly with to be avoided.
    """
    return [
        tuple(state.history())
        for states, _ in played
        for turn, state in enumerate(states)
        if not turn or values.games(state) >= _SEVERAL
    ]


@dataclasses.dataclass(eq=False)
class _Confirmed:
    """The work of one call."""

    problem: PreparationProblem
    values: PlayedValues
    search: BestFirstSearch
    budget: int | None
    max_evaluations: int | None
    seed: int | Sequence[int]
    show: Callable[..., None]
    enough: Callable[[], bool] | None
    improved: Improved | None
    played: int = 0
    stopped: bool = False

    def run(self, games: int, promise_games: int, precision: float) -> ConfirmedPrecomputation:
        """Search, play and choose in rounds; see `confirmed_precomputation`."""
        trace: list[Round] = []
        left, step = games, _HALVINGS
        before: list[Branch] | None = None
        while True:
            self.search.reprice(self.problem.penalty * 2.0**step)
            opened = self._grow(played_on=left > 0)
            if self.stopped:  # the best one of what is there, at the price that was asked for
                self.search.reprice(self.problem.penalty)
                chosen, bounds = self._take()
                break
            chosen, bounds = self._take()
            final = step == 0 or bounds is not None  # at a smaller penalty still less would fit
            if final and (not left or (chosen == before and not opened)):
                break
            if left:
                now = min(-(-games // (_ROUNDS_OF_ONE_LINE if self._is_one_line else _ROUNDS)), left)
                try:
                    trace.append(self._teach(chosen, now))
                except OutOfTimeError:
                    self.stopped = True
                left -= now
            before = chosen
            step -= not final
        return self._confirm(chosen, bounds, promise_games, precision, trace)

    @property
    def _is_one_line(self) -> bool:
        """Return whether the opponent has one reply everywhere, as far as the tree is known.

        Then a set is one line, and a game from its end shows nearly all of its value: so games come early and
        often.
        """
        return all(node.reach > 1.0 - _ROUNDING for node in self.search.tree.nodes)

    def _grow(self, *, played_on: bool) -> bool:
        """Open what promises something at this penalty; return whether there was anything.

        What promises most comes first, so a round may end before all is open, where there is too much, or
        where games are played on from its set.
        """
        before = self.search.tree.opened
        evaluations = math.inf if self.max_evaluations is None else self.max_evaluations
        while self.search.evaluations < evaluations and not self.stopped:
            most = math.inf if self.budget is None else _OPENED * max(self.budget, 1)
            if played_on and self._is_one_line:
                most = min(most, _OPENED_OF_ONE_LINE)
            with limited(None):  # what is begun is not left half done
                if self.search.tree.opened - before >= most or not self.search.work(_BATCH):
                    break
            if self.improved is not None and self.search.has_grown():
                chosen, bounds = self._take()
                self.improved(self._result(chosen, bounds, bounds is None))
            self.tell()
        return self.search.tree.opened > before

    def _take(self) -> tuple[list[Branch], tuple[float, float] | None]:
        """Return the best set at this penalty, or within a budget that binds, and its bounds."""
        chosen = self.search.chosen()
        if self.budget is None or len(chosen) <= self.budget:
            return chosen, None
        chosen, lower, upper = self.search.within_budget(self.budget)
        return chosen, (lower, upper)

    def _result(
        self, chosen: list[Branch], bounds: tuple[float, float] | None, priced: bool
    ) -> CertifiedPrecomputation:
        """Return a set with its values by estimates."""
        lower, upper = bounds or (self.search.lower, self.search.upper)
        return self.search.result(chosen, lower, upper, priced, games=self.played)

    def _left(self, chosen: list[Branch]) -> tuple[list[Node], np.ndarray, np.ndarray, float]:
        """Return a set's exits, the values of stopping there, their reach, and the set's value."""
        stops, ended = self.search.stops(chosen)
        values = np.array([self.search.stop_value(node) for node in stops])
        reach = np.array([node.reach for node in stops])
        return stops, values, reach, ended + float(reach @ values)

    def _teach(self, chosen: list[Branch], games: int) -> Round:
        """Play games from a set's stops, and learn from them."""
        stops, values, reach, expected = self._left(chosen)
        price = self.search.tree.price
        if not stops:
            return Round(price, len(chosen), expected, 0, math.nan, math.nan)
        unsure = [
            self.values.deviation(value, self.values.games(node.state))
            for value, node in zip(values.tolist(), stops, strict=True)
        ]
        which, scores = self._play(stops, reach * unsure, games, learn=True)
        self.search.revalue()
        means = float(values[which].mean()), float(scores.mean())
        return Round(price, len(chosen), expected, len(scores), *means)

    def _confirm(
        self,
        chosen: list[Branch],
        bounds: tuple[float, float] | None,
        most: int,
        precision: float,
        trace: list[Round],
    ) -> ConfirmedPrecomputation:
        """Estimate the value of a set by games that are played after it was chosen."""
        problem, priced = self.problem, bounds is None
        if self.values.doubt < 0.0:
            self.values.doubt = 0.0
            self.search.revalue()
            cost = self.search.tree.price * len(chosen) if priced else 0.0
            bounds = (self._left(chosen)[3] - cost, self.search.upper)
        if self.improved is not None:
            self.improved(self._result(chosen, bounds, priced))
        stops, values, reach, expected = self._left(chosen)
        left, games = float(reach.sum()), 0
        promise, error, interval = expected, 0.0, (expected, expected)
        if stops and not most:
            error, interval = math.nan, (problem.low, problem.high)
        elif stops:
            spread = left * float(reach @ ((values - problem.low) * (problem.high - values)))
            needed = spread / precision / precision if precision else math.inf
            games = most if needed >= most else min(most, max(_LEAST_PROMISE, math.ceil(needed)))
            played = [
                self._play(stops, reach, min(_CHUNK, games - begun), learn=False)
                for begun in range(0, games, _CHUNK)
                if not begun or not time_is_up()
            ]
            which, scores = (np.concatenate(each) for each in zip(*played, strict=True))
            games = len(scores)
            residuals, mean = scores - values[which], float(reach @ values) / left
            promise += left * float(residuals.mean())
            error = left * float(residuals.std(ddof=1)) / math.sqrt(games)
            ends = mean_interval(residuals, problem.low - mean, problem.high - mean)
            interval = (expected + left * ends[0], expected + left * ends[1])
        promise, low, high = np.clip([promise, *interval], problem.low, problem.high).tolist()
        left_at = [
            Stop(node.actions(), node.reach, value, self.values.games(node.state))
            for node, value in zip(stops, values.tolist(), strict=True)
        ]
        return ConfirmedPrecomputation(
            preparation=self._result(chosen, bounds, priced),
            promise=promise,
            standard_error=error,
            interval=(low, high),
            games=games,
            unprepared=self._left([])[3],
            stops=tuple(sorted(left_at, key=lambda stop: (-stop.reach, stop.history))),
            rounds=tuple(trace),
        )

    def _play(
        self, stops: list[Node], weights: np.ndarray, games: int, *, learn: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the stop that each game goes on from, and its score; stops are drawn by weight."""
        drawing = self._stream(self.played, 0)
        which = drawing.choice(len(stops), games, p=weights / weights.sum())
        passed: list[list[Any]] = [[] for _ in range(games)]

        def visit(number: int, state: Any) -> None:
            self.tell()
            if self.stopped:
                raise OutOfTimeError
            if state.current_player() == self.problem.player and len(passed[number]) < CREDITED:
                passed[number].append(state.clone())

        ends = play_on(
            [stops[k].state for k in which.tolist()],
            self.problem.sigma,
            [self._stream(self.played + k, 1) for k in range(games)],
            min_probability=self.problem.min_probability,
            visit=visit if learn else None,
        )
        self.played += games
        self.tell()
        scores = np.array([self.problem.own_utility(end) for end in ends])
        if learn:
            for states, score in zip(passed[: len(scores)], scores.tolist(), strict=True):
                self.values.credit(states, score)
        return which[: len(scores)], scores

    def _stream(self, number: int, use: int) -> np.random.Generator:
        """Return the random stream of a game (use 1), or of drawing where the next ones begin (use 0)."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(_STREAMS, use, number)))

    def tell(self) -> None:
        """Show how far the work is, and hear whether to stop."""
        self.show(self.search.evaluations, f"{self.played} games")
        self.stopped = self.stopped or time_is_up() or (self.enough is not None and self.enough())
