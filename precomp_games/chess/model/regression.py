"""Regressions of scores and of seconds on features, with errors that hold if games have several rows.

The mean is logistic, for scores, or exponential, for seconds. The Bernoulli likelihood (a draw is half a
win), or the Poisson one, is maximized; both give consistent coefficients of the mean, whatever else the
distribution is. With a prior, coefficients are normal around a center; without much data they stay there.

Errors are the sandwich's: with H the Hessian, P the prior's precision and g the sums of a game's
gradients, H^-1 (sum g g' + P) H^-1. This accounts for several positions of a game, and for seconds that vary
more than a Poisson's. If the center is itself fitted, its covariance C adds H^-1 P C P H^-1.

`fit_kinds` fits several kinds of games, such as speeds. The kind with most games comes first, and each
other one has the nearest kind that was fitted as its center.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Means = Literal["logistic", "exponential"]
_STEPS = 100
_MOST = 30.0  # largest argument of the mean


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """Data of a fit.

    Attributes:
      features: float64[n, k].
      values: float64[n], scores in [0, 1], or seconds.
      games: int64[n], number of each row's game.
    """

    features: Floats
    values: Floats
    games: npt.NDArray[np.int64]

    def only(self, which: npt.NDArray[np.bool_]) -> Data:
        """Return a part of it."""
        return Data(self.features[which], self.values[which], self.games[which])

    @property
    def num_games(self) -> int:
        """Number of games."""
        return len(np.unique(self.games))


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """Fitted coefficients.

    Attributes:
      values: float64[k].
      covariance: float64[k, k], of their errors.
    """

    values: Floats
    covariance: Floats

    @property
    def errors(self) -> Floats:
        """Standard errors."""
        return np.sqrt(self.covariance.diagonal())


def mean_of(kind: Means, z: Floats) -> Floats:
    """Return the mean, given the linear predictor."""
    z = np.clip(z, -_MOST, _MOST)
    return np.exp(z) if kind == "exponential" else 1.0 / (1.0 + np.exp(-z))


def fit(kind: Means, data: Data, center: Coefficients, spread: Floats) -> Coefficients:
    """Fit the most likely coefficients.

    Args:
      kind: of the mean.
      data: the data.
      center: the prior's center, with its own errors.
      spread: float64[k], the prior's standard deviations.
    """
    x, y, precision = data.features, data.values, np.diag(spread**-2.0)

    def loss(coefficients: Floats) -> float:
        z, off = np.clip(x @ coefficients, -_MOST, _MOST), coefficients - center.values
        normalizer = np.exp(z) if kind == "exponential" else np.logaddexp(0.0, z)
        return float((normalizer - y * z).sum() + 0.5 * off @ precision @ off)

    at, low = center.values, loss(center.values)
    for _ in range(_STEPS):
        gradient = (mean_of(kind, x @ at) - y) @ x + precision @ (at - center.values)
        step = np.linalg.solve(_hessian(kind, x, at) + precision, gradient)
        size = 1.0
        while (new := loss(at - size * step)) > low and size > 1e-6:
            size /= 2.0
        at, gained, low = at - size * step, low - new, min(low, new)
        if gained < 1e-9:
            break
    inverse = np.linalg.inv(_hessian(kind, x, at) + precision)
    residuals = (mean_of(kind, x @ at) - y)[:, None] * x
    _, of = np.unique(data.games, return_inverse=True)
    sums = np.zeros((int(of.max(initial=-1)) + 1, x.shape[1]))
    np.add.at(sums, of, residuals)
    middle = sums.T @ sums + precision + precision @ center.covariance @ precision
    return Coefficients(at, inverse @ middle @ inverse)


def _hessian(kind: Means, x: Floats, at: Floats) -> Floats:
    mean = mean_of(kind, x @ at)
    weights = mean if kind == "exponential" else mean * (1.0 - mean)
    return np.asarray((x * weights[:, None]).T @ x)


def fit_kinds(
    kind: Means, data: Mapping[str, Data], order: Sequence[str], center: Coefficients, shares: Floats
) -> dict[str, Coefficients]:
    """Fit several kinds of games.

    Args:
      kind: of the mean.
      data: by kind of games, at least one.
      order: all kinds, such that neighbors are alike.
      center: for the kind with most games; nearly no prior.
      shares: float64[k], standard deviations of the others' prior around their neighbor.
    """
    first = max(data, key=lambda name: data[name].num_games)
    fits = {first: fit(kind, data[first], center, np.full(len(shares), 10.0))}
    at = order.index(first)
    for name in sorted(data, key=lambda name: abs(order.index(name) - at)):
        if name != first:
            near = min(fits, key=lambda other: abs(order.index(other) - order.index(name)))
            fits[name] = fit(kind, data[name], fits[near], shares)
    return fits
