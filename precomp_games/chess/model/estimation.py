"""Estimates the randomness of a player: the temperature r, in centipawns, that fits the moves played best.

The model is that of `EnginePolicy`, with a floor, since no player keeps to an engine's k best moves: with
probability 1 - epsilon a move is drawn by Softmax(cp / r) among the k best moves of the model's search, and
with probability epsilon, a lapse, it is any of the n legal moves, all equally likely. So

    P(m) = (1 - epsilon) exp(cp_m / r) [m is among the k best] / sum_j exp(cp_j / r) + epsilon / n.

r and epsilon maximize the likelihood. The interval for r is that of the profile likelihood: all r whose
likelihood, with the best epsilon for each, is so near to the maximum that a likelihood ratio test would not
reject them. It assumes that the model is true and moves are independent. The best of several k is the one
with the greatest likelihood, each with searches at its own MultiPV.

The player's search limit may be unknown, too: of several limits, the one with the greatest likelihood fits
best. An engine of the model's kind never lapses: if the lapses exceed the differences between searches of
neighboring limits, none of them is the player.

No person is one engine at one limit. `fit_engines` estimates how often, at each move, a player is like each
of several limits and temperatures, and how often it lapses: weights of a mixture, whose likelihood is
concave, by expectation and maximization.

Cost: some 2,000 evaluations of the likelihood, each linear in the number of choices.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import scipy  # imports `optimize` when it is used: half a second

from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.results import Result
from precomp_games.chess.engines.searches import SearchLimit, check_position
from precomp_games.chess.engines.stored_engine import ScoringEngine
from precomp_games.chess.model.engine_policies import centipawns

Floats = npt.NDArray[np.float64]

_LOWEST, _HIGHEST = 0.01, 1e5  # r that are tried, in centipawns; beyond them nothing changes
_GRID = 36  # five a decade
_HALVINGS = 30
_STEPS = 1000  # of expectation and maximization
_DIFFER = 0.02  # of moves: more lapses exclude an engine of the model's kind
_MOST_ENGINES = 8  # for which a mixture has letters
_LEAST_WEIGHT = 0.01  # of an engine in a mixture; the others take its place


@dataclasses.dataclass(frozen=True)
class Choice:
    """A position, as the model's search sees it, and the move that was played there.

    Attributes:
        scores_cp: of the k best moves, in centipawns, for the side to move.
        played: index of the move played; None for a move that is not among them.
        legal: number of legal moves.
        count: number of times it was played.
    """

    scores_cp: tuple[int, ...]
    played: int | None
    legal: int
    count: int = 1


@dataclasses.dataclass(frozen=True)
class OpponentFit(Result):
    """The best fit to a player's moves.

    Attributes:
        temperature_cp: r, with the uncertainty `interval`.
        interval: the least and the greatest r that the moves allow, 0.0 and infinity if unbounded.
        confidence: probability that such an interval contains the true r.
        lapse: epsilon.
        top_k: the most moves that the model considered.
        log_likelihood: natural logarithm, of all moves together.
        uniform_log_likelihood: the same for a player who draws any legal move.
        moves: number of moves fitted; those in positions with one legal move are uninformative, and left out.
        positions: number of their positions.
        outside: number of the moves that are not among the k best.
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
        """Mean surprise of a move by the model, in bits."""
        return -self.log_likelihood / self.moves / math.log(2.0)

    @property
    def explained(self) -> bool:
        """Return whether an engine of the model's kind may have played so: it does not lapse."""
        return self.lapse <= _DIFFER


def opponent_choices(
    engine: ScoringEngine, limit: SearchLimit, top_k: int, moves: Mapping[tuple[str, str], int]
) -> list[Choice]:
    """Return the model's search of each move that was played.

    Args:
        engine: the model's engine.
        limit: of its searches.
        top_k: number of moves that the model plays, and the MultiPV of its searches.
        moves: number of times that each (position as EPD, move in UCI notation) was played.

    Raises:
        EngineError: a search failed.
    """
    epds = dict.fromkeys(epd for epd, _ in moves)
    legal = {epd: check_position(epd).legal_moves.count() for epd in epds}
    results = engine.search(list(legal), limit, top_k)
    lines = {epd: result.lines for epd, result in zip(legal, results, strict=True)}
    choices = []
    for (epd, move), count in moves.items():
        ranks = [line.move for line in lines[epd]]
        played = ranks.index(move) if move in ranks else None
        choices.append(Choice(tuple(map(centipawns, lines[epd])), played, legal[epd], count))
    return choices


@public
def fit_opponent(choices: Iterable[Choice], *, confidence: float = 0.95) -> OpponentFit:
    """Fit r and lapses to choices.

    Args:
        choices: moves that were played; of one player, by one model.
        confidence: of the interval for r.

    Raises:
        ValueError: no choice is informative about r.
    """
    free = [choice for choice in choices if choice.legal > 1]
    if not any(len(choice.scores_cp) > 1 for choice in free):
        raise ArgumentError("expected choices in positions with two or more moves to compare, got none")
    likelihood, grid = _Likelihood(free), np.geomspace(_LOWEST, _HIGHEST, _GRID)
    heights, _ = likelihood.profiles(grid.tolist())
    top = int(heights.argmax())
    refined = scipy.optimize.minimize_scalar(
        lambda x: -likelihood.profile(math.exp(x))[0],
        bounds=(math.log(grid[max(top - 1, 0)]), math.log(grid[min(top + 1, _GRID - 1)])),
        method="bounded",
        options={"xatol": 1e-5},
    )
    best = math.exp(refined.x) if -refined.fun > heights[top] else float(grid[top])
    highest, lapse = likelihood.profile(best)
    # Half of chi-squared's quantile with one degree of freedom; scipy.stats takes half a second to import.
    floor = highest - float(scipy.special.gammaincinv(0.5, confidence))
    return OpponentFit(
        temperature_cp=best,
        interval=_interval(likelihood, grid, heights, best, floor),
        confidence=confidence,
        lapse=lapse,
        top_k=max(len(choice.scores_cp) for choice in free),
        log_likelihood=highest,
        uniform_log_likelihood=-sum(choice.count * math.log(choice.legal) for choice in free),
        moves=sum(choice.count for choice in free),
        positions=len(free),
        outside=sum(choice.count for choice in free if choice.played is None),
    )


@dataclasses.dataclass(frozen=True)
class EnginesFit(Result):
    """The mixture of engines, drawn anew at each move, that fits a player's moves best.

    Attributes:
        weights: probability of each (nodes, r in centipawns); with `lapse` they sum to 1.
        lapse: epsilon, probability of a uniformly drawn move.
        top_k: the most moves that the engines consider.
        bits: mean surprise of a move by the mixture.
        moves: number of moves fitted.
    """

    weights: Mapping[tuple[int, float], float]
    lapse: float
    top_k: int
    bits: float
    moves: int

    @property
    def spec(self) -> str:
        """The mixture as a spec, see `opponent_policy`."""
        if not self.weights:
            return "uniform"
        letters = "abcdefgh"[: len(self.weights)]
        each = zip(letters, self.weights, strict=True)
        engines = ",".join(f"{a}=uci(nodes={n},r={r:g},top_k={self.top_k})" for a, (n, r) in each)
        shares = zip(letters, self.weights.values(), strict=True)
        weights = ",".join(f"{a}={weight:.3f}" for a, weight in shares)
        return f"noisy(policy=mixture({engines},weights=of({weights}),per=move),epsilon={self.lapse:.3f})"

    def __str__(self) -> str:
        """Return the fit in one line."""
        each = ", ".join(f"{n:,} nodes r = {r:g} cp {w:.2f}" for (n, r), w in self.weights.items())
        return f"{each}, any move {self.lapse:.2f}: {self.bits:.3f} bits a move"


@public
def fit_engines(choices: Mapping[int, Sequence[Choice]], temperatures_cp: Sequence[float]) -> EnginesFit:
    """Fit how often a player is like each of several engines, at several temperatures.

    Args:
        choices: for each limit in nodes, its searches of the same moves, as `opponent_choices` gives them.
        temperatures_cp: r that are mixed, in centipawns. Limits times temperatures are at most eight.
    """
    members = [(nodes, r) for nodes in choices for r in temperatures_cp]
    free = {nodes: [choice for choice in made if choice.legal > 1] for nodes, made in choices.items()}
    lengths = {len(each) for each in free.values()}
    if not 1 <= len(members) <= _MOST_ENGINES or len(lengths) != 1 or lengths == {0}:
        raise ArgumentError(
            f"expected choices of the same moves for some limits, and up to {_MOST_ENGINES} engines, got "
            f"{len(members)}, with {', '.join(map(str, sorted(lengths))) or 'no'} choices"
        )
    each = {nodes: _Likelihood(made) for nodes, made in free.items()}
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
    top_k = max(len(choice.scores_cp) for made in free.values() for choice in made)
    return EnginesFit({members[k]: weight for k, weight in found.items()}, epsilon, top_k, bits, len(odds))


def _mixed(odds: Floats) -> Floats:
    """Return float64[m]: the weights of maximum likelihood, given float64[n, m] probabilities."""
    weights = np.full(odds.shape[1], 1.0 / odds.shape[1])
    for _ in range(_STEPS):
        joint = odds * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


class _Likelihood:
    """Likelihood of choices: gaps to the best score, and that of the move played (-inf if it is outside)."""

    def __init__(self, choices: list[Choice]) -> None:
        width = max(len(choice.scores_cp) for choice in choices)
        self._gaps = np.full((len(choices), width), -np.inf)
        self._played = np.full(len(choices), -np.inf)
        for k, choice in enumerate(choices):
            scores = np.array(choice.scores_cp, np.float64)
            self._gaps[k, : len(scores)] = scores - scores.max()
            if choice.played is not None:
                self._played[k] = self._gaps[k, choice.played]
        self.lapse: Floats = 1.0 / np.array([choice.legal for choice in choices])
        self._count = np.array([choice.count for choice in choices], np.float64)

    def played(self, r: float) -> Floats:
        """Return float64[n]: the probability of each choice at a temperature, without lapses."""
        return np.asarray(np.exp(self._played / r) / np.exp(self._gaps / r).sum(axis=1))

    def profile(self, r: float) -> tuple[float, float]:
        """Return the log-likelihood at a temperature with the best epsilon, and that epsilon."""
        heights, lapses = self.profiles([r])
        return float(heights[0]), float(lapses[0])

    def profiles(self, temperatures: Sequence[float]) -> tuple[Floats, ...]:
        """Return `profile` at several temperatures: two float64[m]."""
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


def _interval(
    likelihood: _Likelihood, grid: Floats, heights: Floats, best: float, floor: float
) -> tuple[float, float]:
    """Return the least and greatest r whose profile exceeds a floor, by a grid's profile and the best r."""

    def crossing(outside: float, inside: float) -> float:
        def above(x: float) -> float:
            return likelihood.profile(math.exp(x))[0] - floor

        return math.exp(scipy.optimize.brentq(above, math.log(outside), math.log(inside), xtol=1e-5))

    inside = [*grid[heights >= floor], best]
    least, greatest = float(min(inside)), float(max(inside))
    below, above = grid[grid < least], grid[grid > greatest]
    low = crossing(float(below.max()), least) if len(below) else 0.0
    return low, crossing(float(above.min()), greatest) if len(above) else math.inf
