"""Tests evaluations of moves on the games of people who chose among them.

A player who has met a position many times has played several moves there. The game results beyond the
ratings' expectation, after the move that an evaluation finds best and after the others, give a comparison
that no fit has seen: positions are compared with themselves. The slope of real differences on predicted ones
is 1 if predictions come true. The line goes through the origin, since the better one of two moves is a matter
of sign. A second slope, with an intercept, goes over positions: it compares openings with each other, which a
player also chooses; by color, since White is better off and scores more.

Differences are weighted by their inverse variances, as if games were alike. Positions share games: errors are
those of a bootstrap that draws games, with all of their positions.

The moves themselves are not drawn at random. A player who has learned a move may play it well for other
reasons than its quality, and play it later than another, against other opponents.

Source: ours; the bootstrap weighs games by Poisson draws.
Cost: some sums over all games for each of 200 draws.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games.chess.model.regression import Floats

Integers = npt.NDArray[np.int64]
_DRAWS = 200


@dataclasses.dataclass(frozen=True, eq=False)
class Choices:
    """Moves that a player chose, one for each passage of a game through a position.

    Attributes:
      position: int64[n], the position's number.
      move: int64[n], the move's number, over all positions' moves.
      game: int64[n], the game's number.
      real: float64[n], the player's score in the game beyond the ratings' expectation.
      predicted: float64[n], the same, by an evaluation after the move.
      before: float64[n], the same, by the evaluation of the position.
    """

    position: Integers
    move: Integers
    game: Integers
    real: Floats
    predicted: Floats
    before: Floats

    def only(self, which: npt.NDArray[np.bool_]) -> Choices:
        """Return some of them."""
        return Choices(*(getattr(self, field.name)[which] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True)
class Slope:
    """Regression of real gains on predicted ones.

    Attributes:
      slope, error, intercept: of the line, and the standard error of its slope.
      points: (predicted, real, standard error of real) of each position.
      games: number of games through them, counted once for each position.
    """

    slope: float
    error: float
    intercept: float
    points: tuple[tuple[float, float, float], ...]
    games: int


def move_slope(choices: Choices, least_games: int, *, seed: int = 0) -> Slope:
    """Regress the gains of the move evaluated best over the others, at each position.

    Args:
      choices: of positions with enough games.
      least_games: a move with fewer games does not count; a position needs two moves that do.
      seed: of the bootstrap.

    Raises:
      ValueError: fewer than two positions have two such moves.
    """
    moves, of_move = np.unique(choices.move, return_inverse=True)
    kept = np.flatnonzero(np.bincount(of_move)[of_move] >= least_games)
    predicted = _means(choices.predicted[kept], of_move[kept], len(moves))
    of_position = np.zeros(len(moves), np.int64)
    of_position[of_move[kept]] = choices.position[kept]
    best = np.zeros(len(moves), bool)
    several = []
    for position in np.unique(choices.position[kept]).tolist():
        there = np.unique(of_move[kept][choices.position[kept] == position])
        if len(there) > 1:
            best[there[np.argmax(predicted[there])]] = True
            several.append(position)
    kept = kept[np.isin(choices.position[kept], several)]
    _, number = np.unique(choices.position[kept], return_inverse=True)
    return _slope(choices, kept, number, best[of_move[kept]], choices.predicted, seed)


def position_slope(choices: Choices, *, seed: int = 0) -> Slope:
    """Regress over positions, by the evaluation before the move."""
    every = np.arange(len(choices.real))
    _, number = np.unique(choices.position, return_inverse=True)
    return _slope(choices, every, number, None, choices.before, seed)


def _slope(
    choices: Choices,
    kept: Integers,
    number: Integers,
    best: npt.NDArray[np.bool_] | None,
    predicted: Floats,
    seed: int,
) -> Slope:
    """Regress over positions; over differences, if `best` divides each position's games in two."""
    count = int(number.max(initial=-1)) + 1
    if count < 2:
        raise ValueError(f"expected choices of two positions or more with games enough, got {count}")
    real, predicted, games = choices.real[kept], predicted[kept], choices.game[kept]
    cell = number if best is None else 2 * number + best
    cells = count if best is None else 2 * count

    def gains(values: Floats, weights: Floats) -> Floats:
        means = _means(values, cell, cells, weights)
        return means if best is None else means[1::2] - means[::2]

    def regression(weights: Floats) -> tuple[float, float]:
        x, y = gains(predicted, weights), gains(real, weights)
        of_x, of_y = (each @ inverse / inverse.sum() if best is None else 0.0 for each in (x, y))
        slope = float((inverse * (x - of_x)) @ (y - of_y) / ((inverse * (x - of_x)) @ (x - of_x)))
        return slope, float(of_y - slope * of_x)

    ones = np.ones(len(real))
    off = real - _means(real, cell, cells)[cell]
    sizes = np.bincount(cell, minlength=cells).astype(np.float64)
    variances = float(off @ off) / (len(real) - cells) / sizes
    variances = variances if best is None else variances[1::2] + variances[::2]
    inverse = 1.0 / variances
    rng, most = np.random.default_rng(seed), int(games.max()) + 1
    drawn = [regression(rng.poisson(1.0, most)[games].astype(np.float64))[0] for _ in range(_DRAWS)]
    columns = gains(predicted, ones), gains(real, ones), np.sqrt(variances)
    points = tuple(zip(*(each.tolist() for each in columns), strict=True))
    slope, intercept = regression(ones)
    return Slope(slope, float(np.std(drawn)), intercept, points, len(real))


def _means(values: Floats, cell: Integers, cells: int, weights: Floats | None = None) -> Floats:
    """Return float64[cells]: weighted means; 0 for a cell without weight."""
    weights = np.ones(len(values)) if weights is None else weights
    total = np.bincount(cell, weights, minlength=cells)
    return np.bincount(cell, weights * values, minlength=cells) / np.where(total > 0.0, total, 1.0)
