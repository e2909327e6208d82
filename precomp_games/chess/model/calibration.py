"""Calibrated evaluations: the expected score of a position by the analyst's score, fitted to games.

A deep search's centipawns are not the results of shallow play. Here the expected score of the side that
prepares and is to move, when both sides play on as modeled, is

    P = epsilon + (1 - 2 epsilon) / (1 + exp(-a - b cp / 400 - c sign(m) ln(1 + |m|))).

cp is the score of the analyst's best line, cut at +-2000, mates included. m is the mover's lead in material,
in pawns (knights and bishops 3, rooks 5, queens 9): of two positions with equal scores, the one that is
ahead in material is easier to play. With b of at least 0, P grows with the score. No other feature that was
tried improves the prediction of games kept out: r, the number of pieces, the score of a shallower search.
Nor has material been shown to; docs/chess_measured.md has the figures.

The variation between positions with equal features is fitted too. Let t^2 be the variance of true expected
scores around P, and v that of a game's result around its position's. Then P is worth n0 = v / t^2 games:
after n of them with total score T, (n0 P + T) / (n0 + n) is the best linear estimate (credibility theory's),
which `confirmed_precomputation` uses as `prior_games`. Only t^2 and v are assumed for that; it is the
conditional expectation, given the games, only if true scores have a Beta distribution and no game is drawn.
Nor is n0 fitted by a beta-binomial likelihood: draws, which vary less than wins and losses, would be taken
for positions that do not differ. So t^2 and v are moments: products of the residuals of two games average to
t^2. Coefficients maximize the likelihood of a logistic regression in which n games count as
n (n0 + 1) / (n0 + n) independent ones, plus a small ridge.

Games are played by both sides' policies from given positions (`played_samples`), by the rules of the
positions' game, each with a random stream of its own.

Cost: a fit takes some hundred passes over the samples.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import chess
import numpy as np
import numpy.typing as npt
import scipy  # imports `optimize` when it is used: half a second

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.files import atomic_write, read_json
from precomp_games.chess.engines.searches import Line, Multipv, limit_text
from precomp_games.chess.game import ChessState
from precomp_games.chess.model.engine_policies import ANSWERS, EngineEvaluation, centipawns
from precomp_games.policies.playouts import play_on
from precomp_games.policies.rows import PolicyLike, check_policies

Floats = npt.NDArray[np.float64]

GAMES = "games"
"""Value of `CalibrationScope.plays` if the results of games in a file were fitted."""

_FORMAT = "precomp-games calibration 1"
_DATA = pathlib.Path(__file__).parent / "data"
_SHIPPED = {
    None: _DATA / "calibration.json",
    "people": _DATA / "people.json",
    "people_20000": _DATA / "people_20000.json",
    "engines": _DATA / "engines.json",
}
_MOST_BYTES = 1 << 20
_HINT = "Fit an evaluation for these settings with precomp-games calibrate."

_EPSILON = 0.005
_MOST_CP = 2000.0
# a, b and c: names, and ranges.
_COEFFICIENTS = {"constant": (-100.0, 100.0), "score": (0.0, 100.0), "material": (-100.0, 100.0)}
_RIDGE = 0.05  # times the sum of squared coefficients: a penalty of a few games, if data are scarce
_PRIOR_GAMES = (0.5, 100.0)  # the least and the largest n0: data cannot show more
_PASSES = 4  # each with the n0 of the one before

SPREAD = np.array([0.7, 0.4, 0.2])
"""Variation of the coefficients between settings: standard deviations of a prior."""

_PAWNS = (1, 3, 3, 5, 9)  # of a pawn, a knight, a bishop, a rook and a queen
_STREAMS = int.from_bytes(b"samples", "big")  # the spawn key of these games' random streams


def material(board: chess.Board) -> int:
    """Return the lead in material of the side to move, in pawns."""
    ours, theirs = board.occupied_co[board.turn], board.occupied_co[not board.turn]
    pieces = (board.pawns, board.knights, board.bishops, board.rooks, board.queens)
    return sum(
        pawns * ((kind & ours).bit_count() - (kind & theirs).bit_count())
        for kind, pawns in zip(pieces, _PAWNS, strict=True)
    )


@dataclasses.dataclass(frozen=True)
class CalibrationSample:
    """A position, with the results of games from it.

    Attributes:
      line: The analyst's best line.
      material: The lead in material of the side to move, in pawns.
      opponent_temperature_cp: r.
      wins, draws, losses: Numbers of games, for the side to move.
      setting: Origin of the position, to keep whole settings out.
    """

    line: Line
    material: int
    opponent_temperature_cp: float
    wins: int
    draws: int
    losses: int
    setting: str = ""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Total score of the games."""
        return self.wins + 0.5 * self.draws


def played_samples(
    states: Sequence[ChessState],
    sigma: PolicyLike | Sequence[PolicyLike],
    evaluation: EngineEvaluation,
    opponent_temperature_cp: float,
    games: int = 3,
    *,
    seed: int | Sequence[int] = 0,
    setting: str = "",
    min_probability: float = 1e-9,
) -> list[CalibrationSample]:
    """Play games from positions, and search the positions.

    Args:
      states: start positions of the games; they are not changed.
      sigma: both sides' policies, one policy or a pair, e.g. `PreparationPolicies.sigma`.
      evaluation: its search gives the line, e.g. `PreparationPolicies.leaf_value`.
      opponent_temperature_cp: r, which is recorded in the samples.
      games: number of games from each position.
      seed: of the games.
      setting: origin of the samples, which is recorded in them.
      min_probability: less likely moves are pruned, as in preparations.

    Raises:
      ValueError: a policy does not answer as it should.
      EngineError: an engine fails, or there are only stored searches and one is missing.
    """
    streams = [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS, k)))
        for k in range(len(states) * games)
    ]
    ends = play_on(
        [state for state in states for _ in range(games)],
        check_policies(sigma, "sigma"),
        streams,
        min_probability=min_probability,
    )
    states = states[: max(1, len(ends) // games)]  # those with games, if time was short
    epds = [state.epd for state in states]
    results = evaluation.engine.search(epds, evaluation.limit, evaluation.multipv)
    samples = []
    for k, (state, result) in enumerate(zip(states, results, strict=True)):
        mover, here = state.current_player(), material(state.board)
        scores = [end.returns()[mover] for end in ends[k * games : (k + 1) * games]]
        wins, draws, losses = (scores.count(score) for score in (1.0, 0.5, 0.0))
        given = (result.lines[0], here, opponent_temperature_cp, wins, draws, losses, setting)
        samples.append(CalibrationSample(*given))
    return samples


@public
@dataclasses.dataclass(frozen=True)
class CalibrationScope:
    """The settings for which a fit holds.

    Attributes:
      engine: The engine's name, without its options.
      analyst, opponent: Limits of their searches, as text.
      multipv: Lines of the analyst's searches.
      top_k, plays: The opponent's play, see `EnginePolicy`; plays is `GAMES` if the results are those of
        games in a file, for which only the analyst's searches matter.
      least_r, most_r: Range of the opponent's temperatures, in centipawns.
    """

    engine: str
    analyst: Annotated[str, checks.Check(limit_text)]
    opponent: Annotated[str, checks.Check(limit_text)]
    multipv: Multipv
    top_k: Multipv
    plays: str
    least_r: checks.PositiveFloat
    most_r: float

    def __post_init__(self) -> None:
        """Check the scope."""
        object.__setattr__(self, "most_r", checks.check_number(self.most_r, "most_r", least=self.least_r))


def _coefficients(value: Any, name: str) -> tuple[float, ...]:
    if not isinstance(value, tuple) or len(value) != len(_COEFFICIENTS):
        raise ArgumentError(
            f"expected {name} to be a tuple of {len(_COEFFICIENTS)} numbers, got {shown(value)}"
        )
    return tuple(
        checks.check_number(each, of, least=least, most=most)
        for (of, (least, most)), each in zip(_COEFFICIENTS.items(), value, strict=True)
    )


@public
@dataclasses.dataclass(frozen=True)
class CalibratedUtility:
    """Expected score of the side that prepares and is to move, when both sides play on as modeled.

    Attributes:
      coefficients: a, b and c, see the module.
      prior_games: n0, number of games that a value is worth.
      made_for: Settings for which they hold.
    """

    coefficients: Annotated[tuple[float, ...], checks.Check(_coefficients)]
    prior_games: checks.PositiveFloat
    made_for: CalibrationScope

    def mover_utility(self, line: Line, board: chess.Board, beside: float = 0.0) -> float:
        """Return utility, see `ScoreUtility`, in (0, 1); `beside`, further knowledge, is added to z."""
        return self.expected(line, material(board), beside)

    def expected(self, line: Line, ahead: int, beside: float = 0.0) -> float:
        """Return the same value, given the mover's lead in `material`."""
        terms = zip(self.coefficients, score_features(line, ahead), strict=True)
        return float(expected_score(beside + sum(weight * feature for weight, feature in terms))[0])

    def misfits(self, settings: Any, engine_id: str) -> list[str]:
        """Return sentences on how settings differ from those of the fit; none if they agree.

        Args:
          settings: `PreparationSettings`.
          engine_id: the analyst's, as in `StoredEngine`.
        """
        fitted, given = self.made_for, _scope(settings, engine_id, settings.opponent_temperatures_cp)
        people, named = fitted.plays == GAMES, bool(settings.opponent)
        compared = [
            ("the engine", fitted.engine, given.engine),
            ("the analyst's", fitted.analyst, given.analyst),
            *[("the opponent's", fitted.opponent, given.opponent)] * (not people and not named),
            ("MultiPV", fitted.multipv, given.multipv),
            *[("top_k =", fitted.top_k, given.top_k)] * (not people and not named),
            # The opponent may be named by a spec, as people and books are.
            *[("an opponent that plays", fitted.plays, settings.opponent or given.plays)]
            * (not people or not named),
        ]
        misfits = [
            f"The calibrated evaluation was fitted with {name} {there}, and not with {here}."
            for name, there, here in compared
            if there != here
        ]
        within = fitted.least_r <= given.least_r and given.most_r <= fitted.most_r
        if not (people or named or within or given.plays in ANSWERS):
            to = f" to {given.most_r:g}" if given.most_r > given.least_r else ""
            misfits.append(
                "The calibrated evaluation was fitted with r from "
                f"{fitted.least_r:g} to {fitted.most_r:g} cp, and not with {given.least_r:g}{to}."
            )
        return [*misfits, _HINT] if misfits else []


def _scope(settings: Any, engine_id: str, temperatures: Iterable[float]) -> CalibrationScope:
    """Return the scope of a fit with these settings, at these r."""
    searched = (str(settings.analyst_limit), str(settings.opponent_limit), settings.multipv)
    plays, known = (settings.top_k, settings.opponent_plays), list(temperatures)
    return CalibrationScope(engine_id.partition(" [")[0], *searched, *plays, min(known), max(known))


def score_features(line: Line, ahead: int) -> tuple[float, float, float]:
    """Return the features that the coefficients multiply."""
    cp = min(max(float(centipawns(line)), -_MOST_CP), _MOST_CP)
    return 1.0, cp / 400.0, math.copysign(math.log1p(abs(ahead)), ahead)


def expected_score(z: Any) -> tuple[Any, Any]:
    """Return (P, dP / dz)."""
    p = scipy.special.expit(z)
    return _EPSILON + (1.0 - 2.0 * _EPSILON) * p, (1.0 - 2.0 * _EPSILON) * p * (1.0 - p)


@public
def fit_calibration(
    samples: Iterable[CalibrationSample], settings: Any, engine_id: str, *, of_games: bool = False
) -> CalibratedUtility:
    """Return the fit of maximum likelihood.

    Args:
      samples: positions and games. Some positions must have two games or more, since one game shows nothing
        of the variation between positions.
      settings: the `PreparationSettings` of the searches and the games; their side and r do not matter.
      engine_id: the analyst's, as in `StoredEngine`.
      of_games: whether the samples are of games in a file, and not of both sides' play as modeled.

    Raises:
      ValueError: too few games.
    """
    given = [each for each in samples if each.games]
    if not any(each.games > 1 for each in given):
        raise ArgumentError(f"expected samples with positions of two games or more, got none of {len(given)}")
    scope = _scope(settings, engine_id, [each.opponent_temperature_cp for each in given])
    if of_games:
        scope = dataclasses.replace(scope, plays=GAMES)
    features = np.array([score_features(each.line, each.material) for each in given])
    games = np.array([each.games for each in given], np.float64)
    scores = np.array([each.score for each in given])
    squares = np.array([each.wins + 0.25 * each.draws for each in given])
    coefficients, prior = np.zeros(len(_COEFFICIENTS)), 5.0
    for _ in range(_PASSES):
        weights = (prior + 1.0) / (prior + games)
        coefficients = _regression(coefficients, features, weights * games, weights * scores)
        p, _ = expected_score(features @ coefficients)
        prior = _credibility(games, scores, squares, p)
    return CalibratedUtility(tuple(coefficients.tolist()), prior, scope)


def after_games(
    calibration: CalibratedUtility,
    positions: Sequence[tuple[Line, int]],
    scores: Sequence[float],
    beside: Sequence[float] | float = 0.0,
) -> CalibratedUtility:
    """Update a fit by other games: the most likely coefficients, with the fit's as a prior's mean.

    Args:
      calibration: the fit.
      positions: in each game, one where the preparing side was to move: the analyst's best line, and that
        side's lead in `material`.
      scores: that side's scores in these games.
      beside: further knowledge of each of the positions, which is added to z.
    """
    features = np.array([score_features(line, ahead) for line, ahead in positions]).reshape(-1, 3)
    start, ones = np.array(calibration.coefficients), np.ones(len(scores))
    fit = _regression(start, features, ones, np.array(scores), SPREAD, np.array(beside))
    return dataclasses.replace(calibration, coefficients=tuple(fit.tolist()))


def _regression(
    start: Floats,
    features: Floats,
    games: Floats,
    scores: Floats,
    spread: Floats | None = None,
    beside: Floats | float = 0.0,
) -> Floats:
    """Return the coefficients of maximum likelihood, a draw being half a win and half a loss.

    spread: standard deviations of a prior around `start`. None: no prior.
    beside: is added to z.
    """
    center = np.zeros(len(start)) if spread is None else start
    ridge = np.full(len(start), 2.0 * _RIDGE) if spread is None else spread**-2.0

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        p, slope = expected_score(features @ coefficients + beside)
        likelihood = float(scores @ np.log(p) + (games - scores) @ np.log1p(-p))
        gradient = ((scores / p - (games - scores) / (1.0 - p)) * slope) @ features
        off = coefficients - center
        return 0.5 * float(ridge @ off**2) - likelihood, ridge * off - gradient

    bounds = list(_COEFFICIENTS.values())
    options = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-8}
    best = scipy.optimize.minimize(loss, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    return np.asarray(best.x, np.float64)


def _credibility(games: Floats, scores: Floats, squares: Floats, p: Floats) -> float:
    """Return n0, given sums of games' scores and of their squares, and the expected P."""
    residuals = scores - games * p
    own = squares - 2.0 * p * scores + games * p**2  # products of a residual with itself
    between = float((residuals**2 - own).sum() / (games * (games - 1.0)).sum())
    within = float((squares - scores**2 / games).sum() / (games - 1.0).sum())
    least, most = _PRIOR_GAMES
    return most if within >= most * between else max(least, within / between)


def save_calibration(
    calibration: CalibratedUtility, path: str | os.PathLike[str], evidence: Mapping[str, Any] | None = None
) -> None:
    """Write a fit as JSON, replacing `path` atomically.

    Args:
      calibration: the fit.
      path: the file.
      evidence: information for people to write beside it, for JSON: data, errors on games kept out.

    Raises:
      ValueError: evidence that JSON cannot represent.
      OSError: as `atomic_write`.
    """
    fit = as_json(calibration) | {"evidence": dict(evidence or {})}
    with atomic_write(path) as file:
        file.write(json.dumps(fit, indent=1, allow_nan=False) + "\n")


def as_json(calibration: CalibratedUtility) -> dict[str, Any]:
    """Return a fit for JSON, which `of_json` reads."""
    coefficients = dict(zip(_COEFFICIENTS, calibration.coefficients, strict=True))
    kept = {"made_for": dataclasses.asdict(calibration.made_for), "coefficients": coefficients}
    return {"format": _FORMAT, **kept, "prior_games": calibration.prior_games, "evidence": {}}


@public
def load_calibration(path: str | os.PathLike[str] | None = None) -> CalibratedUtility:
    """Read a fit that `save_calibration` wrote, or a shipped one.

    Args:
      path: the file, which is not trusted: anything odd is refused. None: the fit for shallow searches of
        Stockfish 15.1. "people" and "people_20000": those for games of grandmasters, by 5,000 and 20,000
        nodes. "engines": that for games of Stockfish 15.1 under a clock, by 50,000.

    Raises:
      ValueError: the file is no calibration.
      OSError: the file cannot be read.
    """
    shipped = _SHIPPED.get(path) if path is None or isinstance(path, str) else None
    name = str(shipped) if shipped else checks.check_path(path, "path")
    try:
        return of_json(read_json(name, _MOST_BYTES))
    except ValueError as error:
        raise ArgumentError(f"expected a calibration, got {shown(name)} ({one_line(error)})") from None


def is_shipped(name: str) -> bool:
    """Return whether a calibration's name, "" for the default, is that of a shipped one, and no file's."""
    return (name or None) in _SHIPPED


def of_json(value: Any) -> CalibratedUtility:
    """Return the fit in a file's JSON.

    Raises:
      ValueError: it is no calibration.
    """
    top = _fields(value, ("format", "made_for", "coefficients", "prior_games", "evidence"), "the file")
    checks.check_choice(top["format"], (_FORMAT,), "format")
    scope = [field.name for field in dataclasses.fields(CalibrationScope)]
    coefficients = _fields(top["coefficients"], _COEFFICIENTS, "coefficients")
    return CalibratedUtility(
        tuple(coefficients[name] for name in _COEFFICIENTS),
        top["prior_games"],
        CalibrationScope(**_fields(top["made_for"], scope, "made_for")),
    )


def _fields(value: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """Return an object of JSON that must have exactly these names."""
    names = list(names)
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"expected {what} to have {', '.join(names)}, got {shown(value)}")
    return value
