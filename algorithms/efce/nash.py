"""Utilities of Nash equilibria, all extreme ones of a small game, to be seen beside correlated ones.

Pure strategies are reduced: what a player would do where its own actions do not lead is left out. With
payoffs A and B above 0, the vertices of {x >= 0, B^T x <= 1} and {y >= 0, A y <= 1} are found by solving for
each choice of constraints that hold exactly; two of them are an equilibrium if each pure strategy is either
unused or a best reply. Every equilibrium's strategies are mixed of such extreme ones'.

Source: vertex enumeration, as in von Stengel, "Computing Equilibria for Two-Person Games", 2002.

Cost: a linear system for each choice of m out of m + n constraints, where players have m and n strategies.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import PositiveInt, public
from precomp_games._support.checks import ArgumentError

from .sequence_game import PlayerForm, SequenceGame

_ROUNDING = 1e-9
_SAME = 1e-13  # what payoffs may differ by, relatively, and be the same
_SINGULAR = 1e12  # condition number


@public
def nash_payoffs(
    game: pyspiel.Game | SequenceGame, max_strategies: PositiveInt = 16
) -> npt.NDArray[np.float64]:
    """Both players' utilities in each extreme Nash equilibrium of a small game.

    Args:
      game: as for `efce_lp`.
      max_strategies: how many reduced pure strategies both players may have in all.

    Returns:
      float64[n, 2], each once, in ascending order.

    Raises:
      ValueError: the game is not as above, a part of one, or has more strategies.
    """
    if not isinstance(game, SequenceGame):
        game = SequenceGame.of(game)
    game.check_whole()
    plans = [_pure_plans(form, max_strategies) for form in game.players]
    if sum(map(len, plans)) > max_strategies:
        raise ArgumentError(
            f"expected at most {max_strategies} pure strategies (max_strategies), got more in {game}"
        )
    payoffs = []
    for utility in game.leaf_utility:
        table = np.zeros([form.num_sequences for form in game.players])
        np.add.at(table, tuple(game.leaf_sequence), utility)
        payoffs.append(plans[0] @ table @ plans[1].T)
    # What is added to all payoffs, and their unit, make no difference to equilibria.
    one, two = (_normalized(table) for table in payoffs)
    rows, columns = _vertices(two.T), _vertices(one)
    found = []
    for x in rows:
        used, best = x > _ROUNDING, two.T @ x > 1.0 - _ROUNDING
        fits = (columns > _ROUNDING) <= best
        for y in columns[fits.all(axis=1)]:
            if (one @ y > 1.0 - _ROUNDING)[used].all():
                p, q = x / x.sum(), y / y.sum()
                found.append([float(p @ table @ q) for table in payoffs])
    points = np.array(found)
    order = np.lexsort(points.T[::-1])
    points = points[order]
    new = np.append(True, np.abs(np.diff(points, axis=0)).max(axis=1) > _ROUNDING)
    return np.asarray(points[new])


def _normalized(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """From 1 to 2; 1 where they differ by rounding alone, of sums over what chance does."""
    size = float(np.ptp(table))
    return 1.0 + (table - table.min()) / size if size > _SAME * np.abs(table).max() else np.ones_like(table)


def _pure_plans(form: PlayerForm, most: int) -> npt.NDArray[np.float64]:
    """float64[n, S], the reduced pure strategies as realization plans; some more than `most` at most."""
    plans = [np.eye(1, form.num_sequences)[0]]
    for k in range(1, form.num_infosets):
        more = []
        for plan in plans:
            own = list(form.sequences(k)) if plan[form.parent[k]] else []
            for s in own[1:]:
                more.append(plan.copy())
                more[-1][s] = 1.0
            if own:
                plan[own[0]] = 1.0
        plans += more
        if len(plans) > most:
            break
    return np.array(plans)


def _vertices(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The vertices but 0 of {x >= 0, table @ x <= 1}, each once: float64[n, x's length]."""
    m, n = table.shape
    sides = np.vstack([table, -np.eye(n)])
    bounds = np.append(np.ones(m), np.zeros(n))
    chosen = np.array(list(itertools.combinations(range(m + n), n)))
    matrix, right = sides[chosen], bounds[chosen]
    regular = np.linalg.cond(matrix) < _SINGULAR
    x = np.linalg.solve(matrix[regular], right[regular][..., None])[..., 0]
    x = x[(x @ sides.T <= bounds + _ROUNDING).all(axis=1) & (x.max(axis=1) > _ROUNDING)]
    _, first = np.unique(np.round(x, 10) + 0.0, axis=0, return_index=True)
    return np.asarray(np.maximum(x[first], 0.0))
