"""How random a player is: the temperature r, in centipawns, that fits moves which were played best.

The model is that of `EnginePolicy`, with a floor, since no player keeps to an engine's k best moves: with
probability 1 - epsilon a move is drawn by Softmax(cp / r) among the k best moves of the model's search, and
with probability epsilon, a lapse, it is any of the n legal moves, all equally likely. So

    P(m) = (1 - epsilon) exp(cp_m / r) [m is among the k best] / sum_j exp(cp_j / r) + epsilon / n.

r and epsilon are those of the greatest likelihood. The interval for r is that of the profile likelihood: all
r whose likelihood, with the epsilon that is best for each, is so near to the greatest that a likelihood ratio
test would not refuse them. It takes the model for true and moves for independent. What fits best among
several k is the one with the greatest likelihood, each with searches at its own MultiPV.

How far it searches may be unknown, too. One search to the largest limit says what all smaller ones would
have said (`choices_by_nodes`), and `fit_nodes` finds the limit and the r of the greatest likelihood, with a
joint region: the pairs of greatest likelihood that together are as likely as was asked, where all limits and
all r were equally likely before, on logarithmic scales. The likelihood ratio test with two degrees of freedom
would give the same one if the likelihood were smooth; but it jumps from limit to limit, the greatest of many
jumps is high, and the test's region would be too small. An engine of the model's kind never lapses. So more
lapses than such searches differ in say that none of them is it.

Nobody is one engine at one limit. `fit_engines` fits how often, at each move, a player is like each of
several limits and temperatures, and when it lapses: weights of a mixture, whose likelihood is concave, by
expectation and maximization.

Cost: some 2,000 evaluations of the likelihood, each linear in the number of choices, for each limit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import scipy  # which imports `optimize` when that is used: half a second

from precomp_games._support.arguments import (
    Check,
    Ge,
    Gt,
    Le,
    Lt,
    PositiveFloat,
    PositiveInt,
    each_of,
    public,
)
from precomp_games._support.checks import ArgumentError, check_integer, shown
from precomp_games._support.deadlines import limited, time_is_up
from precomp_games._support.results import Result
from precomp_games.chess.engines.searches import (
    MATE_CP,
    MAX_MULTIPV,
    Line,
    SearchLimit,
    check_position,
)
from precomp_games.chess.engines.stored_engine import ScoringEngine
from precomp_games.chess.evaluation.scores import centipawns

MAX_COUNT = 10**9  # how often a move can have been played
_Count = Annotated[int, Ge(1), Le(MAX_COUNT)]
MOST_LEGAL = 218  # moves in a position of chess
_LOWEST, _HIGHEST = 0.01, 1e5  # r that are looked at, in centipawns; beyond them nothing changes
_GRID = 36  # five a decade
_FINER = 17  # between a point's neighbors
_ACROSS = 33  # over all r that a limit may have
_HALVINGS = 30
_COARSE, _FINE = 0.03, 0.003  # of limits, from one to the next: at first, and around the best ones
_NEAR = 10.0  # of the logarithm of the likelihood, from the greatest: what may be the best one's neighbor
_STEPS = 1000  # of expectation and maximization
_BEYOND = 48  # nodes that an iteration may take more than its limit allows
_DIFFER = 0.02  # of moves: more lapses are no engine's of the model's kind; a family's searches have 0.004
_MOST_ENGINES = 8  # which a mixture has letters for
_LEAST_WEIGHT = 0.01  # of an engine in a mixture; the others take its place


def _scores(value: Any, name: str) -> tuple[int, ...]:
    if isinstance(value, tuple) and 1 <= len(value) <= MAX_MULTIPV:
        return tuple(check_integer(score, name, least=-MATE_CP, most=MATE_CP) for score in value)
    raise ArgumentError(f"expected {name} to be a tuple of 1 to {MAX_MULTIPV} scores, got {shown(value)}")


@public
@dataclasses.dataclass(frozen=True)
class Choice:
    """A position, as the model's search sees it, and the move that was played there.

    Attributes:
        scores_cp: of the k best moves, in centipawns, for the side to move.
        played: which of them was played; None for a move that is not among them.
        legal: how many legal moves there are.
        count: how often it was played.
    """

    scores_cp: Annotated[tuple[int, ...], Check(_scores)]
    played: Annotated[int, Ge(0)] | None
    legal: Annotated[int, Le(MOST_LEGAL)]
    count: _Count = 1

    def __post_init__(self) -> None:
        """Checks what depends on the number of scores."""
        scores = len(self.scores_cp)
        if self.legal < scores or (self.played is not None and self.played >= scores):
            raise ArgumentError(
                f"expected legal to be at least the number of scores, {scores}, and played to be below it, "
                f"got legal {self.legal} and played {self.played}"
            )


@dataclasses.dataclass(frozen=True)
class OpponentFit(Result):
    """What fits a player's moves best.

    Attributes:
        temperature_cp: r; `interval` says how well it is known.
        interval: the least and the greatest r that the moves allow, 0.0 and infinity where there is none.
        confidence: how often such an interval has the true r in it.
        lapse: epsilon.
        top_k: the most moves that the model looked at.
        log_likelihood: natural logarithm, of all moves together.
        uniform_log_likelihood: the same of a player who draws any legal move.
        moves: how many were fitted; those in positions with one legal move say nothing and are left out.
        positions: in how many positions.
        outside: how many of the moves are not among the k best.
    """

    temperature_cp: float
    interval: tuple[float, float]
    confidence: float
    lapse: float
    top_k: int
    log_likelihood: float
    uniform_log_likelihood: float
    moves: int
    positions: int
    outside: int

    @property
    def bits(self) -> float:
        """How much each move surprises the model, in bits."""
        return -self.log_likelihood / self.moves / math.log(2.0)


@public
def opponent_choices(
    engine: ScoringEngine,
    limit: SearchLimit,
    top_k: Annotated[int, Ge(2), Le(MAX_MULTIPV)],
    moves: Mapping[tuple[str, str], int],
) -> list[Choice]:
    """What the model's engine says of moves that were played.

    Args:
        engine: the model's.
        limit: of its searches.
        top_k: how many moves the model plays, and the MultiPV of its searches.
        moves: how often each (position as EPD, move in UCI notation) was played.

    Raises:
        ValueError: an argument of another kind, or a move that is not legal.
        EngineError, StoreError: a search failed.
    """
    legal, counts = _checked_moves(moves)
    results = engine.search(list(legal), limit, top_k)
    lines = {epd: result.lines for epd, result in zip(legal, results, strict=True)}
    return _choices(counts, legal, lines)


@public
def choices_by_nodes(
    engine: ScoringEngine,
    most_nodes: PositiveInt,
    top_k: Annotated[int, Ge(2), Le(MAX_MULTIPV)],
    moves: Mapping[tuple[str, str], int],
) -> Callable[[int], list[Choice]]:
    """What the model's engine says of moves that were played, at any limit up to a largest one.

    Args:
        engine: see `opponent_choices`.
        most_nodes: the largest limit, which is searched (`SearchResult.before`). A smaller one is searched
            where it has not found a move that was played, and an iteration ends right behind it: an engine
            does not look at its limit in quiescence search, and may yet end that iteration.
        top_k: how many moves the model plays, and the MultiPV of its searches.
        moves: see there.

    Returns:
        The choices at a limit in nodes.

    Raises:
        ValueError, EngineError, StoreError: as there.
    """
    legal, counts = _checked_moves(moves)
    found = engine.search(list(legal), SearchLimit(nodes=most_nodes), top_k, iterations=True)
    results = dict(zip(legal, found, strict=True))

    def at(nodes: int) -> list[Choice]:
        if nodes >= most_nodes:
            return _choices(counts, legal, {epd: each.lines for epd, each in results.items()})
        lines = {epd: each.before(nodes).lines for epd, each in results.items()}
        outside = {epd for epd, move in moves if all(move != line.move for line in lines[epd])}
        unsure = [
            epd
            for epd in legal
            if epd in outside and any(0 <= i.nodes - nodes < _BEYOND for i in results[epd].iterations)
        ]
        again = engine.search(unsure, SearchLimit(nodes=nodes), top_k) if unsure else []
        lines |= {epd: each.lines for epd, each in zip(unsure, again, strict=True)}
        return _choices(counts, legal, lines)

    return at


def _checked_moves(
    moves: Mapping[tuple[str, str], int],
) -> tuple[dict[str, list[str]], dict[tuple[str, str], int]]:
    """Of `opponent_choices`: the legal moves in each position, and how often each was played."""
    if not all(isinstance(k, tuple) and len(k) == 2 for k in moves):
        raise ArgumentError(f"expected moves to be counts by (position, move), got {shown(moves)}")
    legal: dict[str, list[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for (epd, move), count in moves.items():
        if epd not in legal:
            legal[epd] = [m.uci() for m in check_position(epd).legal_moves]
        if move not in legal[epd]:
            raise ArgumentError(f"expected a legal move in {epd!r}, got {shown(move)}")
        counts[epd, move] = check_integer(count, "moves", least=1, most=MAX_COUNT)
    return legal, counts


def _choices(
    moves: Mapping[tuple[str, str], int], legal: Mapping[str, list[str]], lines: Mapping[str, Sequence[Line]]
) -> list[Choice]:
    choices = []
    for (epd, move), count in moves.items():
        ranks = [line.move for line in lines[epd]]
        played = ranks.index(move) if move in ranks else None
        choices.append(Choice(tuple(map(centipawns, lines[epd])), played, len(legal[epd]), count))
    return choices


@public
def fit_opponent(
    choices: Annotated[Iterable[Choice], each_of(Choice)],
    *,
    confidence: Annotated[float, Gt(0.0), Lt(1.0)] = 0.95,
) -> OpponentFit:
    """The r and the lapses that fit choices best.

    Args:
        choices: moves that were played; of one player, by one model.
        confidence: of the interval for r.

    Raises:
        ValueError: what are no choices, or none that says anything about r.
    """
    free = _free(choices)
    curve = _Curve(_Likelihood(free))
    # Half of chi-squared's quantile with one degree of freedom; scipy.stats takes half a second to import.
    floor = curve.highest - float(scipy.special.gammaincinv(0.5, confidence))
    return OpponentFit(
        temperature_cp=curve.best,
        interval=curve.interval(floor),
        confidence=confidence,
        lapse=curve.lapse,
        top_k=max(len(choice.scores_cp) for choice in free),
        log_likelihood=curve.highest,
        uniform_log_likelihood=-sum(choice.count * math.log(choice.legal) for choice in free),
        moves=sum(choice.count for choice in free),
        positions=len(free),
        outside=sum(choice.count for choice in free if choice.played is None),
    )


def _free(choices: Iterable[Choice]) -> list[Choice]:
    """Those that say something about r; ArgumentError where there are none."""
    free = [choice for choice in choices if choice.legal > 1]
    if not any(len(choice.scores_cp) > 1 for choice in free):
        raise ArgumentError("expected choices in positions with two or more moves to compare, got none")
    return free


@dataclasses.dataclass(frozen=True)
class NodesFit(Result):
    """The limit and the r that fit a player's moves best, together.

    Attributes:
        nodes: the limit; `fit` says the r, and its interval at this limit.
        fit: the best one there.
        region: (nodes, least r, greatest r) of all limits that the moves allow with some r, 0.0 and infinity
            where there is no end.
        confidence: how often such a region has the true pair in it.
    """

    nodes: int
    fit: OpponentFit
    region: tuple[tuple[int, float, float], ...]
    confidence: float

    @property
    def explained(self) -> bool:
        """Whether an engine of the model's kind may have played so: it does not lapse."""
        return self.fit.lapse <= _DIFFER

    @public
    def contains(self, nodes: PositiveInt, temperature_cp: PositiveFloat) -> bool:
        """Whether a pair is in the region, by the limit there that is next to it."""
        n, low, high = min(self.region, key=lambda row: abs(math.log(row[0] / nodes)))
        return abs(math.log(n / nodes)) <= _FINE and low <= temperature_cp <= high


@public
def fit_nodes(
    choices: Callable[[int], Sequence[Choice]],
    least_nodes: PositiveInt,
    most_nodes: PositiveInt,
    *,
    confidence: Annotated[float, Gt(0.0), Lt(1.0)] = 0.95,
) -> NodesFit:
    """The limit, the r and the lapses that fit choices best, and all pairs of the first two that may be.

    Limits are looked at in steps of 3 %, and then of 0.3 % around the best ones, as far as there is time.

    Args:
        choices: of the same moves at a limit, see `choices_by_nodes`.
        least_nodes: the smallest limit that may be.
        most_nodes: the largest one.
        confidence: of the region.

    Raises:
        ValueError: an argument is not as above; see `fit_opponent`.
    """
    if least_nodes > most_nodes:
        raise ArgumentError(
            f"expected least_nodes to be at most most_nodes, got {least_nodes} and {most_nodes}"
        )
    curves: dict[int, _Curve] = {}

    def look(low: float, high: float, step: float) -> None:
        number = 1 + math.ceil(math.log(high / low) / step)
        for n in {round(n) for n in np.geomspace(low, high, number).tolist()} - set(curves):
            with limited(None):
                curves[n] = _Curve(_Likelihood(_free(choices(n))))

    look(least_nodes, most_nodes, _COARSE)
    top = max(curve.about for curve in curves.values())
    near = [n for n, curve in curves.items() if curve.about >= top - _NEAR]
    for n in sorted(near, key=lambda n: -curves[n].about):
        if time_is_up():
            break
        look(max(least_nodes, n * (1.0 - _COARSE)), min(most_nodes, n * (1.0 + _COARSE)), _FINE)
    top = max(curve.about for curve in curves.values())
    least = top + math.log1p(-confidence) - _NEAR
    high = {n: curve for n, curve in sorted(curves.items()) if curve.about >= least}
    best = max(high, key=lambda n: (high[n].highest, -n))
    floor = _floor(curves, least, confidence)
    region = tuple((n, *curve.interval(floor)) for n, curve in high.items() if curve.highest >= floor)
    return NodesFit(best, fit_opponent(choices(best), confidence=confidence), region, confidence)


def _floor(curves: Mapping[int, _Curve], least: float, confidence: float) -> float:
    """The log-likelihood of the least likely pair that is in the region.

    Args:
        curves: by limit.
        least: what is below that is as good as impossible.
        confidence: how likely the region is.
    """
    limits = sorted(curves)
    widths = np.gradient(np.log(limits)) if len(limits) > 1 else np.ones(1)
    heights, shares = [], []
    for n, width in zip(limits, widths.tolist(), strict=True):
        if curves[n].about >= least:
            each, step = curves[n].across(least)
            heights.append(each)
            shares.append(np.exp(each - least) * step * width)
    descending = np.argsort(-np.concatenate(heights))
    total = np.cumsum(np.concatenate(shares)[descending])
    return float(np.interp(confidence, total / total[-1], np.concatenate(heights)[descending]))


@dataclasses.dataclass(frozen=True)
class EnginesFit(Result):
    """The mixture of engines, drawn anew at each move, that fits a player's moves best.

    Attributes:
        weights: how often each (nodes, r in centipawns) is drawn; with `lapse` they sum to 1.
        lapse: epsilon, how often it is any legal move.
        top_k: the most moves that the engines look at.
        bits: how much each move surprises the mixture.
        moves: how many were fitted.
    """

    weights: Mapping[tuple[int, float], float]
    lapse: float
    top_k: int
    bits: float
    moves: int

    @property
    def spec(self) -> str:
        """The mixture as a policy by name, see `opponent_policy`."""
        if not self.weights:
            return "uniform"
        letters = "abcdefgh"[: len(self.weights)]
        each = zip(letters, self.weights, strict=True)
        engines = ",".join(f"{a}=uci(nodes={n},r={r:g},top_k={self.top_k})" for a, (n, r) in each)
        shares = zip(letters, self.weights.values(), strict=True)
        weights = ",".join(f"{a}={weight:.3f}" for a, weight in shares)
        return f"noisy(policy=mixture({engines},weights=of({weights}),per=move),epsilon={self.lapse:.3f})"

    def __str__(self) -> str:
        """One line."""
        each = ", ".join(f"{n:,} nodes r = {r:g} cp {w:.2f}" for (n, r), w in self.weights.items())
        return f"{each}, any move {self.lapse:.2f}: {self.bits:.3f} bits a move"


@public
def fit_engines(
    choices: Mapping[int, Sequence[Choice]], temperatures_cp: Sequence[PositiveFloat]
) -> EnginesFit:
    """How often a player is like each of several engines, at several temperatures.

    Args:
        choices: for each limit in nodes what a search to it says of the same moves, as `opponent_choices`
            gives it.
        temperatures_cp: r that are mixed, in centipawns. Limits times temperatures are at most eight.

    Raises:
        ValueError: an argument is not as above.
    """
    members = [(nodes, r) for nodes in choices for r in temperatures_cp]
    free = {nodes: [choice for choice in said if choice.legal > 1] for nodes, said in choices.items()}
    lengths = {len(each) for each in free.values()}
    if not 1 <= len(members) <= _MOST_ENGINES or len(lengths) != 1 or lengths == {0}:
        raise ArgumentError(
            f"expected choices of the same moves for some limits, and up to {_MOST_ENGINES} engines, got "
            f"{len(members)}, with {', '.join(map(str, sorted(lengths))) or 'no'} choices"
        )
    each = {nodes: _Likelihood(said) for nodes, said in free.items()}
    lapse = next(iter(each.values())).lapse
    odds = np.column_stack([*(each[nodes].played(r) for nodes, r in members), lapse])
    kept = np.arange(len(members) + 1)
    while True:
        weights = _mixed(odds[:, kept])
        large = (weights >= _LEAST_WEIGHT) | (kept == len(members))
        if large.all():
            break
        kept = kept[large]
    bits = float(-np.log2(odds[:, kept] @ weights).mean())
    found = dict(zip(kept.tolist(), weights.tolist(), strict=True))
    epsilon = found.pop(len(members))
    top_k = max(len(choice.scores_cp) for said in free.values() for choice in said)
    return EnginesFit({members[k]: weight for k, weight in found.items()}, epsilon, top_k, bits, len(odds))


def _mixed(odds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """float64[m]: the weights of the greatest likelihood, of float64[n, m] probabilities."""
    weights = np.full(odds.shape[1], 1.0 / odds.shape[1])
    for _ in range(_STEPS):
        joint = odds * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


class _Likelihood:
    """Of choices: gaps to the best score, and that of the move played (-inf where it is outside)."""

    def __init__(self, choices: list[Choice]) -> None:
        width = max(len(choice.scores_cp) for choice in choices)
        self._gaps = np.full((len(choices), width), -np.inf)
        self._played = np.full(len(choices), -np.inf)
        for k, choice in enumerate(choices):
            scores = np.array(choice.scores_cp, np.float64)
            self._gaps[k, : len(scores)] = scores - scores.max()
            if choice.played is not None:
                self._played[k] = self._gaps[k, choice.played]
        self.lapse: npt.NDArray[np.float64] = 1.0 / np.array([choice.legal for choice in choices])
        self._count = np.array([choice.count for choice in choices], np.float64)

    def played(self, r: float) -> npt.NDArray[np.float64]:
        """float64[n]: how likely each choice is at a temperature, without lapses."""
        return np.asarray(np.exp(self._played / r) / np.exp(self._gaps / r).sum(axis=1))

    def profile(self, r: float) -> tuple[float, float]:
        """The log-likelihood at a temperature with the best epsilon, and that epsilon."""
        heights, lapses = self.profiles([r])
        return float(heights[0]), float(lapses[0])

    def profiles(self, temperatures: Sequence[float]) -> tuple[npt.NDArray[np.float64], ...]:
        """The same at several: two float64[m]."""
        p = np.stack([self.played(r) for r in temperatures])
        rise = self.lapse - p
        # The log-likelihood is concave in epsilon: its slope falls.
        low, high = np.zeros(len(p)), np.ones(len(p))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rising = (rise / (p + middle[:, np.newaxis] * rise)) @ self._count > 0.0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        epsilon = 0.5 * (low + high)
        return np.log(p + epsilon[:, np.newaxis] * rise) @ self._count, epsilon


class _Curve:
    """The profile likelihood over r, and its top."""

    def __init__(self, likelihood: _Likelihood) -> None:
        self._likelihood = likelihood
        self._grid = np.geomspace(_LOWEST, _HIGHEST, _GRID)
        self._heights, _ = likelihood.profiles(self._grid.tolist())
        finer = np.geomspace(*self._around(), _FINER)
        heights, _ = likelihood.profiles(finer.tolist())
        self._known = np.append(self._grid, finer), np.append(self._heights, heights)
        self.about = float(heights.max())
        """The greatest, but for what a fine grid leaves: 2 of 20,000 moves, and less of fewer."""

    def _around(self) -> tuple[float, float]:
        """The neighbors of the greatest on the grid."""
        top = int(self._heights.argmax())
        return float(self._grid[max(top - 1, 0)]), float(self._grid[min(top + 1, _GRID - 1)])

    @functools.cached_property
    def best(self) -> float:
        """The r of the greatest."""
        top, around = int(self._heights.argmax()), self._around()
        refined = scipy.optimize.minimize_scalar(
            lambda x: -self._likelihood.profile(math.exp(x))[0],
            bounds=(math.log(around[0]), math.log(around[1])),
            method="bounded",
            options={"xatol": 1e-5},
        )
        return math.exp(refined.x) if -refined.fun > self._heights[top] else float(self._grid[top])

    @functools.cached_property
    def _top(self) -> tuple[float, float]:
        return self._likelihood.profile(self.best)

    @property
    def highest(self) -> float:
        """The greatest."""
        return self._top[0]

    @property
    def lapse(self) -> float:
        """The epsilon there."""
        return self._top[1]

    def across(self, floor: float) -> tuple[npt.NDArray[np.float64], float]:
        """The profile where it is above a floor, at r of equal ratios, and the logarithm of the ratio."""
        known, heights = self._known
        above = known[heights >= floor]
        low, high = known[known < above.min()], known[known > above.max()]
        grid = np.geomspace(max(low, default=_LOWEST), min(high, default=_HIGHEST), _ACROSS)
        return self._likelihood.profiles(grid.tolist())[0], math.log(grid[1] / grid[0])

    def interval(self, floor: float) -> tuple[float, float]:
        """The least and the greatest r whose profile is above the floor."""

        def crossing(outside: float, inside: float) -> float:
            def above(x: float) -> float:
                return self._likelihood.profile(math.exp(x))[0] - floor

            return math.exp(scipy.optimize.brentq(above, math.log(outside), math.log(inside), xtol=1e-5))

        inside = [*self._grid[self._heights >= floor], self.best]
        least, greatest = float(min(inside)), float(max(inside))
        below, above = self._grid[self._grid < least], self._grid[self._grid > greatest]
        low = crossing(float(below.max()), least) if len(below) else 0.0
        return low, crossing(float(above.min()), greatest) if len(above) else math.inf
