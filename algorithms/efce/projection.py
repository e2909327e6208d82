"""The nearest plan that keeps all constraints: what turns a plan that nearly does into a safe one.

Regret minimization ends near the constraints (A), (B) and (C), on the wrong side of some, and a little
welfare that is bought with a little violation can be more than any safe plan has. Here such a plan is
projected onto the constraints. With the deviations held at the best ones, a violated constraint is a linear
*cut* a xi <= b, and the plan moves by its shares (`ScaledExtensions`),

    share <- share * exp(-sum over cuts of w g(a)),   made to add up to 1 again,   w >= 0,

with g(a) what a share is worth under the cut less what its simplex is worth on the mean. To first order the
cuts' excesses fall by G w, with G[k, l] = sum over shares' entries of xi g(a_k) g(a_l), so w solves a small
least-squares problem. New deviations make new cuts, until none is violated: some ten rounds. Constraints that
no plan keeps with room to spare, such as those of the uniform blueprint, are no obstacle; mixing with a plan
that has slack would need that room.

Source: Kelley's cutting planes (1960), with the geometry of mirror descent on the simplexes.

Cost: for each round, a pass of the mediator for each cut; two numbers a pair and cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.optimize

from precomp_games._support.kernels import kernel, read_only

from .constraints import DeviatorState, PlayerConstraints, add_gradient, evaluate_best
from .scaled_extensions import ScaledExtensions, advantages, fill_plan, shares_of

_ROUNDS = 60
_MOST_CUTS = 600
_MOST_NUMBERS = 10**8


def project(
    steps: ScaledExtensions, sides: Sequence[PlayerConstraints], xi: npt.NDArray[np.float64], tolerance: float
) -> np.ndarray | None:
    """A plan near `xi` that violates nothing by more than `tolerance`.

    Args:
      steps: of the subgame.
      sides: both players' constraints.
      xi: float64[pairs], in Xi; the trunk's entries stay.
      tolerance: in the units of `sides`.

    Returns:
      float64[pairs], or None if no such plan was found.
    """
    works = [DeviatorState.of(side) for side in sides]
    most = min(_MOST_CUTS, _MOST_NUMBERS // (2 * len(xi)))
    xi, shares = np.array(xi), np.full(len(xi), np.nan)
    cuts: list[np.ndarray] = []
    limits: list[float] = []
    for _ in range(_ROUNDS):
        violated = []
        for side, work in zip(sides, works, strict=True):
            evaluate_best(side, work, read_only(xi))
            gains = work.gains.copy()
            violated += [(gains[k], side, work, k) for k in np.flatnonzero(gains > tolerance).tolist()]
        if not violated:
            return xi
        violated.sort(key=lambda entry: -entry[0])
        if len(cuts) == most:
            return None
        for gain, side, work, k in violated[: most - len(cuts)]:
            work.weights[:] = 0.0
            work.weights[k] = 1.0
            worth = np.zeros(len(xi))
            add_gradient(side, work, worth)
            cuts.append(-worth)
            limits.append(-float(worth @ xi) - gain)
        shares_of(steps, read_only(xi), shares)
        slopes = np.array(cuts)
        excess = slopes @ xi - limits
        for row in slopes:
            advantages(steps, row, shares)
        slopes[:, np.isnan(shares)] = 0.0  # entries that are no shares of others
        weight = _weights((slopes * xi) @ slopes.T, excess)
        _tilt(steps, -(weight @ slopes), shares)
        fill_plan(steps, shares, xi)
    return None


def _weights(matrix: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """The w >= 0 that minimize w' matrix w / 2 - excess' w: weights of the cuts, so that none is exceeded."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-14 * values[-1]
    root = np.sqrt(values[kept])
    try:
        weight, _ = scipy.optimize.nnls(
            (vectors[:, kept] * root).T, (vectors[:, kept].T @ excess) / root, maxiter=10 * len(excess)
        )
    except RuntimeError:  # too many iterations
        return np.zeros(len(excess))
    return np.asarray(weight)


@kernel
def _tilt(steps: ScaledExtensions, tilt: np.ndarray, shares: np.ndarray) -> None:
    """Shares in proportion to share * exp(tilt), no more than e^2 at a time."""
    for n in range(len(steps.start)):
        if steps.is_sum[n]:
            continue
        total = 0.0
        for k in range(steps.size[n]):
            at = steps.start[n] + k * steps.stride[n]
            shares[at] *= np.exp(min(max(tilt[at], -2.0), 2.0))
            total += shares[at]
        for k in range(steps.size[n]):
            shares[steps.start[n] + k * steps.stride[n]] /= total
