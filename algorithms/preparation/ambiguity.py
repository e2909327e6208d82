"""Sets of opponents around a model, and what the worst of them plays at one turn.

A model of an opponent is a guess. A set says how far the opponent may be from it: at each of its turns nature
chooses q, what the opponent plays there, from the set around the model's p, wherever else it chose what
(the set is rectangular). For values v of what follows, the player who prepares gets the smallest q . v:

    contamination   q = (1 - share) p + share r for any r:         (1 - share) p . v + share min v
    total variation half the sum of |q_a - p_a| is at most d:      d min v + the lowest 1 - d of p . v
    KL divergence   sum of q_a log(q_a / p_a) is at most kappa:    max over theta >= 0 of
                                                  -theta log(sum of p_a exp(-v_a / theta)) - theta kappa

Nature plays what the tree has as edges and nothing else. Under contamination and total variation these may
have p = 0; KL gives nothing to what the model never plays. The replies that the model may have missed
are thus named when the tree is expanded. Either the opponent's policy gives each of them a tiny probability,
such as 1e-9 (above the tree's `min_probability`), with truncate="none"; or they are what the opponent could
memorize, at a penalty that is made infinite later: `tree.with_penalties((penalty, math.inf))`.

Source: contamination is the model of restricted Nash responses (Johanson, Zinkevich and Bowling 2007, with a
share that depends on the information state: Johanson and Bowling 2009); robust dynamic programs with L1 balls
and divergences: Ho, Petrik and Wiesemann 2021 and 2022.

Cost: a pass over the replies; they are sorted for total variation. For KL some 10 to 60 passes, a bisection
that Newton's steps shorten.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games._support.validation import (
    ArgumentError,
    Check,
    check_number,
    check_numbers,
    public,
    real_array,
    shown,
)
from precomp_games.tree.history_tree import HistoryTree

CONTAMINATION, TOTAL_VARIATION, DIVERGENCE = range(3)
"""The kinds of sets, as kernels know them."""

_STEPS = 200  # of a bisection; each halves the number of floats that are left at least
_GAP = 1e-15  # of what values lie apart: so much more than the least is it


def _checked(value: Any, name: str, most: float | None) -> Any:
    """A number from 0 to `most`, an array of them, or a function that gives them."""
    array = real_array(value)
    if callable(value):
        return value
    if array is not None and array.ndim == 1:
        return check_numbers(array, len(array), name, least=0.0, most=most)
    if array is None or array.ndim:
        words = "of at least 0" if most is None else f"from 0 to {most:g}"
        raise ArgumentError(
            f"expected {name} to be a number {words}, an array with one for each history, or a function from "
            f"a state to one, got {shown(value)}"
        )
    return check_number(value, name, least=0.0, most=most)


_Radius = float | npt.NDArray[np.float64] | Callable[[Any], float]
_Share = Annotated[Any, Check(lambda value, name: _checked(value, name, 1.0))]
_Divergence = Annotated[Any, Check(lambda value, name: _checked(value, name, None))]


class _Set:
    """What the sets share: a radius, and the worst that is within it."""

    kind: int
    most: float | None = 1.0

    def _given(self) -> tuple[str, Any]:
        """The name of the radius, and what was given for it."""
        name = next(iter(vars(self)))
        return name, getattr(self, name)

    def radius(self, tree: HistoryTree, player: int) -> npt.NDArray[np.float64]:
        """float64[n]: the set's radius at the turns of `player`'s opponent, 0 elsewhere.

        Raises:
          ValueError: an array has another length, or a function gives no such number.
        """
        name, given = self._given()
        turns = (tree.player == 1 - player) & (tree.num_children > 0)
        if not callable(given):
            whole = np.full(tree.num_histories, given) if isinstance(given, float) else given
            return check_numbers(whole, tree.num_histories, name, least=0.0, most=self.most, which=turns)
        radius = np.zeros(tree.num_histories)
        for history in np.flatnonzero(turns).tolist():
            state = tree.state(history)
            where = f"{name} at {state.history_str()!r}"
            radius[history] = check_number(given(state), where, least=0.0, most=self.most)
        return radius

    def worst(
        self, radius: float, p: npt.NDArray[np.float64], v: npt.NDArray[np.float64]
    ) -> tuple[float, npt.NDArray[np.float64]]:
        """(q . v, q): what nature plays at one turn so that the player gets least.

        Args:
          radius: of the set at this turn.
          p: float64[k], the model's probabilities of the replies.
          v: float64[k], what follows each is worth to the player who prepares.
        """
        q = np.empty(len(p))
        return worst_reply(self.kind, radius, np.array(p, float), np.array(v, float), q), q


@public
@dataclasses.dataclass(frozen=True, eq=False)
class Contamination(_Set):
    """With some probability, at each turn anew, the opponent does not play as the model does, but anything.

    Attributes:
      share: That probability, from 0 to 1: a number, float64[n] over the histories of a tree, of which those
        at the opponent's turns are read, or a function from a state at which the opponent is to move.
    """

    share: _Share
    kind = CONTAMINATION


@public
@dataclasses.dataclass(frozen=True, eq=False)
class TotalVariation(_Set):
    """What the opponent plays at a turn differs from the model in some of the probability at most.

    Attributes:
      distance: Half the sum of |q_a - p_a| at most, from 0 to 1; given as `Contamination.share` is.
    """

    distance: _Share
    kind = TOTAL_VARIATION


@public
@dataclasses.dataclass(frozen=True, eq=False)
class KullbackLeibler(_Set):
    """What the opponent plays at a turn has some divergence from the model at most.

    Attributes:
      divergence: The sum of q_a log(q_a / p_a) at most, in nats, at least 0; given as
        `Contamination.share` is.
    """

    divergence: _Divergence
    kind = DIVERGENCE
    most = None


Ambiguity = Contamination | TotalVariation | KullbackLeibler
"""A set of opponents around the model."""


@kernel
def worst_reply(kind: int, radius: float, p: np.ndarray, v: np.ndarray, q: np.ndarray) -> float:
    """Writes what nature plays into q, and returns q . v."""
    if kind == DIVERGENCE:
        return _tilt(radius, p, v, q)
    low = 0
    for a in range(len(p)):
        q[a] = p[a]
        if v[a] < v[low]:
            low = a
    if kind == CONTAMINATION:
        for a in range(len(p)):
            q[a] *= 1.0 - radius
        q[low] += radius
    else:
        left = radius
        while left > 0.0:  # what is worth most goes first
            top = low
            for a in range(len(p)):
                if q[a] > 0.0 and (top == low or v[a] > v[top]) and a != low:
                    top = a
            moved = min(left, q[top])
            if top == low:
                break
            q[top] -= moved
            q[low] += moved
            left -= moved
    worth = 0.0
    for a in range(len(p)):
        worth += q[a] * v[a]
    return worth


@kernel
def _divergence(beta: float, p: np.ndarray, v: np.ndarray, low: float, mean: float, q: np.ndarray) -> float:
    """Writes q_a in proportion to p_a exp(-beta v_a), and returns its divergence from p.

    Sums of small terms stay exact: for t = q / p - 1, it is the sum of p ((1 + t) log(1 + t) - t).
    """
    total = 0.0
    far = beta * (mean - low) > 0.5
    for a in range(len(p)):
        if p[a] > 0.0:
            total += p[a] * (np.exp(-beta * (v[a] - low)) if far else np.expm1(-beta * (v[a] - mean)))
    shift = -np.log(total) if far else -np.log1p(total)
    found = 0.0
    for a in range(len(p)):
        q[a] = 0.0
        if p[a] > 0.0:
            x = shift - beta * (v[a] - (low if far else mean))
            t = np.expm1(x)
            q[a] = p[a] * (1.0 + t)
            found += p[a] * ((1.0 + t) * x - t)
    return found


@kernel
def _tilt(radius: float, p: np.ndarray, v: np.ndarray, q: np.ndarray) -> float:
    """The smallest q . v within a divergence: q is p, tilted by exp(-v / theta) as far as the radius lets.

    With beta = 1 / theta the divergence rises from 0 at p to -log p(argmin v), by beta times the variance of
    v, so it is (beta spread)^2 / 8 at most. What is within the radius is kept, so that q is in the set; the
    gap to the dual value, theta (radius - divergence), ends the search.
    """
    low, high, mean, least = np.inf, -np.inf, 0.0, 0.0
    for a in range(len(p)):
        if p[a] > 0.0:
            low, high = min(low, v[a]), max(high, v[a])
            mean += p[a] * v[a]
    for a in range(len(p)):
        q[a] = p[a]
        if p[a] > 0.0 and v[a] == low:
            least += p[a]
    if radius == 0.0 or high == low:
        return mean
    if radius >= -np.log(least):
        for a in range(len(p)):
            q[a] = p[a] / least if v[a] == low else 0.0
        return low
    spread = high - low
    under, over = np.sqrt(8.0 * radius) / spread, np.inf
    variance = 0.0
    for a in range(len(p)):
        variance += p[a] * (v[a] - mean) ** 2
    beta = under if variance <= 0.0 else max(under, np.sqrt(2.0 * radius / variance))
    for _ in range(_STEPS):
        found, gap = _divergence(beta, p, v, low, mean, q), _GAP * spread * beta
        if found <= radius:
            under = beta
            if radius - found <= gap:
                break
        else:
            over = beta
        worth, square = 0.0, 0.0
        for a in range(len(p)):
            worth += q[a] * (v[a] - low)
        for a in range(len(p)):
            square += q[a] * (v[a] - low - worth) ** 2
        # Newton's step to the middle of what ends the search: beyond it, rounding alone would stop progress.
        aim = radius - 0.5 * min(gap, radius)
        beta += (aim - found) / (beta * square) if beta * square > 0.0 else np.inf
        if not under < beta < over:
            beta = 2.0 * under if over == np.inf else np.sqrt(under) * np.sqrt(over)
        if beta <= under or beta >= over:
            break
    _divergence(under, p, v, low, mean, q)
    worth = 0.0
    for a in range(len(p)):
        worth += q[a] * (v[a] - low)
    return low + worth
