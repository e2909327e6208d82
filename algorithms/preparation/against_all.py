"""A book for several opponents of whom nobody knows how often each comes.

Of K opponents, the components of a mixture, let u_k(S) be what a set S is worth against opponent k, and

    x_k(S) = u_k(S) - lambda |S| - b_k,

less what it is measured by, b_k: nothing (the worst case), what no set is worth against k (the gain), or what
k's own best set is worth, with its penalties (regret). A mixture of sets, of which one is drawn for each
game, is worth the least that its mean x has over the weights q that are allowed:

    max over mixtures p of sets,  min over q of  sum_k q_k sum_S p_S x_k(S).

All q are allowed, so that the least is that of the worst opponent, or those with q_k <= w_k / a. Then it is
the mean over the worst share a of opponents that are drawn by w, a tail average: max over eta of
eta - (1 / a) sum_k w_k (eta - x_k)+.

This is a matrix game with K columns. Its rows, all sets, are too many to write down, but the best one against
q is what Algorithm 1 finds for the mixture in the shares q, less sum_k q_k b_k. So the linear program is
solved for the sets that were found so far, the best set against its q is added, and so on (column
generation). What that set is worth is an upper bound, for all sets. It ends where the two meet, which they
do since there are finitely many sets. A vertex mixes at most K sets. Everything that `best_precomputation`
solves is solved here: menus, budgets (which every set of the mixture keeps), prices per position, and what is
known already.

The programs' q jump about, far from the q of the best bound so far. So Algorithm 1 is asked half way between
the two, and at q itself where that finds no new set: with 100 opponents, that takes half as many steps.

The best single set is another matter: with a budget it is as hard as Partition. The best one that was met,
improved by taking in, dropping and exchanging entries one at a time, comes with the bound above.

Source: docs/mixtures.md. Tail averages as a maximum: Rockafellar and Uryasev 2000; column generation: Gilmore
and Gomory 1961; steps part of the way: Pessoa and others 2013.

Cost: for each step, a linear program with K columns and a row for each set, K multiplications for each entry,
and what `best_precomputation` costs on a tree that is summed up; some steps for each opponent at most. See
`components` for the time and memory before. With 100 opponents and 50,000 histories all of it takes 0.3 to
3 s, and with 1,000,000 histories and 8 opponents 0.5 to 3 s.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import Gt, Le, NonNegativeFloat, NonNegativeInt, Player, public
from precomp_games._support.checks import ArgumentError
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree

from ..programs import Clock, LinearProgramError, ProgramBuilder, unit
from .best_precomputation import BestPrecomputation, best_set, set_beside
from .components import ComponentDecisions, mixture_against
from .decisions import Decisions
from .entry_exchanges import exchanged

_CLOSED = 1e-13  # of the utilities: bounds that lie closer together are one
_FINEST = (1e-4, 1e-3, 1e-5, 1e-6)  # of utilities: what becomes 1 in programs, one after the other
_LEAST = 1e-12  # sets that are drawn less often are not

_Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class PrecomputationAgainstAll(Result):
    """The best mixture of memorization sets against K opponents; utilities are the player's.

    Attributes:
      objective: What was asked for, see `precomputation_against_all`.
      value: What drawing one of `books` is worth by the objective, with what the sets pay.
      upper: No mixture of sets on the tree is worth more: the certificate of `weights`.
      utilities: float64[K], the utility of drawing one of `books` against each opponent, without penalties.
      baseline: float64[K], what utilities are measured by: b_k.
      weights: float64[K], the opponents in the shares that are worst for the player: against the mixture of
        opponents in these shares no set is worth more than `upper`, less what it is measured by.
      books: The sets that are drawn from, at most K. What they say themselves is of the tree's mixture.
      probabilities: float64[len(books)].
      best_single: The best single set that was found. There may be better ones; none is worth more than
        `upper`.
      single_value: What `best_single` is worth by the objective.
      single_utilities: float64[K], the utility of `best_single` against each opponent.
      truncation_loss: How much more than `upper` a mixture of sets of the whole game can be worth, for a tree
        keeps what may pay against the mixture in its own shares. With perfect information and a price per
        information state it is 0 where the tree was expanded for lambda times the least of these shares
        (`HistoryTree.with_penalties` then gives it lambda).
      work: "searches" for a best set, "sets" that were found, and "histories" of the tree.
    """

    objective: str
    value: float
    upper: float
    utilities: _Floats = dataclasses.field(repr=False)
    baseline: _Floats = dataclasses.field(repr=False)
    weights: _Floats = dataclasses.field(repr=False)
    books: tuple[BestPrecomputation, ...] = dataclasses.field(repr=False)
    probabilities: _Floats = dataclasses.field(repr=False)
    best_single: BestPrecomputation = dataclasses.field(repr=False)
    single_value: float
    single_utilities: _Floats = dataclasses.field(repr=False)
    truncation_loss: float
    work: dict[str, int]

    @property
    def gap(self) -> float:
        """How much more another mixture of sets can be worth at most; rounding, unless time ran out."""
        return self.upper - self.value


@public
def precomputation_against_all(
    tree: HistoryTree,
    player: Player,
    objective: Literal["worst", "gain", "regret", "tail"] = "gain",
    *,
    share: Annotated[float, Gt(0.0), Le(1.0)] | None = None,
    price: Any = "infosets",
    budget: NonNegativeInt | None = None,
    keep: npt.ArrayLike | None = None,
    time_limit: NonNegativeFloat | None = None,
) -> PrecomputationAgainstAll:
    """Computes the best mixture of memorization sets against all components of a mixture, and a single set.

    Args:
      tree: expanded with a finite penalty for `player`, whose opponent's sigma is a `MixturePolicy`, drawn
        once per game. See `PrecomputationAgainstAll.truncation_loss` for what it cuts.
      player: 0 or 1, who prepares.
      objective: what is made as large as can be. "worst": the utility against the worst opponent. "gain": the
        gain over memorizing nothing, against the opponent where it is least. "regret": minus the most that
        is lost to the best set on the tree for one opponent alone. "tail": the mean gain over the worst
        `share` of opponents, drawn by the mixture's weights.
      share: of "tail", and of no other objective: above 0, and 1 for the mean gain.
      price: what the penalty is paid for, and what a budget counts, see `best_precomputation`.
      budget: each set has at most so many information states, or positions, which then cost nothing.
        None: each costs the tree's penalty, and so much is taken off utilities, gains and means; regret
        compares what is left.
      keep: what is known already, see there. Gains are over knowing nothing at all.
      time_limit: seconds after which no better mixture is looked for; `gap` then says how good this one is.
        None: there is none.

    Raises:
      ValueError: an argument is not as above.
    """
    mixture = mixture_against(tree, player)
    if (share is None) == (objective == "tail"):
        raise ArgumentError(
            f'expected a share with objective="tail", and no other, got {share} and {objective!r}'
        )
    most = np.ones(mixture.num_components) if share is None else np.minimum(mixture.weights / share, 1.0)
    opponents = ComponentDecisions.of(Decisions.against(tree, player, price=price), keep)
    game = _Game(opponents, 0.0 if budget is not None else tree.penalties[player], budget, Clock(time_limit))
    own = game.best(mixture.weights)
    if objective in ("gain", "tail"):
        game.baseline = opponents.alone
    elif objective == "regret":
        game.baseline = np.array([game.best(one).value for one in np.eye(len(most))])
    probabilities, weights, upper = _solved(game, most, mixture.weights, own.upper)
    drawn = np.argsort(-probabilities, kind="stable")[: np.count_nonzero(probabilities)]
    single = game.best_single(most)
    value = float(_least_mean(probabilities @ game.rows[: len(probabilities)], most))
    decisions = opponents.mixed(mixture.weights)

    def book(number: int) -> BestPrecomputation:
        return set_beside(own, decisions, game.sets[number])

    return PrecomputationAgainstAll(
        objective=objective,
        value=value,
        upper=max(upper, value),
        utilities=probabilities @ game.utilities[: len(probabilities)],
        baseline=game.baseline,
        weights=weights,
        books=tuple(map(book, drawn.tolist())),
        probabilities=probabilities[drawn],
        best_single=book(single),
        single_value=float(_least_mean(game.rows[single], most)),
        single_utilities=game.utilities[single],
        truncation_loss=opponents.truncation_loss(weights, budget),
        work={"searches": game.searches, "sets": len(game.sets), "histories": tree.num_histories},
    )


class _Game:
    """The sets that were found so far, as rows against K opponents.

    Attributes:
      baseline: float64[K], b_k. sets: the entries of each. searches: how often the best set was asked for.
    """

    def __init__(
        self, opponents: ComponentDecisions, penalty: float, budget: int | None, clock: Clock
    ) -> None:
        """Begins without sets."""
        self.opponents, self.penalty, self.budget, self.clock = opponents, penalty, budget, clock
        self.baseline = np.zeros(len(opponents.alone))
        self.sets: list[npt.NDArray[np.int32]] = []
        self.searches = 0
        self._numbers: dict[bytes, int] = {}
        self._utilities: list[_Floats] = []
        self._costs: list[float] = []

    @property
    def utilities(self) -> _Floats:
        """float64[sets, K]: u_k of each."""
        return np.array(self._utilities)

    @property
    def rows(self) -> _Floats:
        """float64[sets, K]: x_k of each."""
        return np.asarray(self.utilities - self.baseline - np.array(self._costs)[:, None])

    def add(self, members: npt.NDArray[np.int32], paid: float) -> int:
        """The number of a set, which may be new."""
        number = self._numbers.setdefault(members.tobytes(), len(self.sets))
        if number == len(self.sets):
            self.sets.append(members)
            self._utilities.append(self.opponents.utilities(members))
            self._costs.append(self.penalty * paid if paid else 0.0)
        return number

    def best(self, weights: _Floats) -> BestPrecomputation:
        """The best set against a mixture in these shares, which is one of the game's from then on."""
        best = best_set(self.opponents.mixed(weights), self.budget, self.clock)
        self.add(best.memorization_set, best.paid)
        self.searches += 1
        return best

    def best_single(self, most: _Floats) -> int:
        """The number of the best set that was found, improved where each information state has a price."""
        number = int(np.argmax(_least_mean(self.rows, most)))
        opponents = self.opponents
        if opponents.keep is not None or opponents.mixture.shared is not None or self.penalty == math.inf:
            return number
        members, paid = exchanged(
            opponents,
            self.sets[number],
            lambda u: _least_mean(u - self.baseline, most),
            self.penalty,
            self.budget,
        )
        return self.add(members, paid)


def _solved(game: _Game, most: _Floats, first: _Floats, upper: float) -> tuple[_Floats, _Floats, float]:
    """The best mixture of all sets.

    Args:
      game: with the sets to begin with.
      most: float64[K], the greatest weights of opponents that are allowed.
      first: float64[K], weights to begin with.
      upper: no set has more utility against these, less what it pays.

    Returns:
      (float64[sets], how often each set is drawn; float64[K], the worst weights; what no mixture of sets is
      worth more than, as these weights prove).
    """
    at, upper, known = first, upper - float(game.baseline @ first), 0
    while True:
        known, rows = len(game.sets), game.rows
        probabilities, weights = _equilibrium(rows, most)
        gap = upper - float(_least_mean(probabilities @ rows, most))
        if gap <= _CLOSED * float(np.abs(game.utilities).max()) or game.clock.remaining() == 0.0:
            break
        for asked in (0.5 * (at + weights), weights):
            bound = game.best(asked).upper - float(game.baseline @ asked)
            if bound < upper:
                at, upper = asked, bound
            if len(game.sets) > known:
                break
        else:
            break
    return probabilities, at, upper


def _equilibrium(rows: _Floats, most: _Floats) -> tuple[_Floats, _Floats]:
    """(float64[sets], float64[K]): the best mixture of these sets, and the worst weights of the opponents.

    Args:
      rows: float64[sets, K], what each set is worth against each opponent.
      most: float64[K], the greatest weights that are allowed.

    Raises:
      LinearProgramError: HiGHS failed.
    """
    middle = 0.5 * (rows.max() + rows.min())
    size = float(np.abs(rows - middle).max())
    found: dict[float, tuple[_Floats, _Floats]] = {}
    for finest in _FINEST:  # what HiGHS gives up on in one unit, or solves badly, it may solve in another
        with contextlib.suppress(LinearProgramError):
            drawn, weights = _mixed((rows - middle) * unit(one=finest * size), most)
            gap = float((rows @ weights).max() - _least_mean(drawn @ rows, most))
            found[gap] = drawn, weights
            if gap <= _CLOSED * size:
                break
    if not found:
        raise LinearProgramError("Solve error")
    return found[min(found)]


def _mixed(rows: _Floats, most: _Floats) -> tuple[_Floats, _Floats]:
    """The same by a linear program, where `rows` are in a unit that suits HiGHS."""
    count, opponents = rows.shape
    lowest = -2.0 * float(np.abs(rows).max()) - 1.0  # with a bound that it never is at, it is in the basis
    program = ProgramBuilder()
    program.columns(opponents)
    for k, high in enumerate(most.tolist()):
        program.set_bounds(k, 0.0, high)
    value = program.columns(1, lowest, math.inf, cost=-1.0)
    at = program.rows(np.full(count, -math.inf), np.zeros(count))
    program.put(np.repeat(at, opponents), np.tile(np.arange(opponents), count), np.round(rows, 10).ravel())
    program.put(at, np.full(count, value), np.full(count, -1.0))
    program.row([(k, 1.0) for k in range(opponents)], 1.0, 1.0)
    solution = program.built().solve(presolve=False)
    return _shares(solution.duals[:count]), _shares(solution.x[:opponents])


def _shares(numbers: _Floats) -> _Floats:
    """Numbers as probabilities: what is less than rounding is 0."""
    kept = np.where(numbers > _LEAST, numbers, 0.0)
    return np.asarray(kept / kept.sum())


def _least_mean(worth: _Floats, most: _Floats) -> _Floats:
    """The least mean of worth[..., K] over weights of the opponents that are allowed."""
    order = np.argsort(worth, axis=-1, kind="stable")
    high = most[order]
    weights = np.clip(1.0 - (np.cumsum(high, axis=-1) - high), 0.0, high)
    return np.asarray((np.take_along_axis(worth, order, axis=-1) * weights).sum(axis=-1))
