"""A person as an opponent: the person's games, the engines behind them, and the model's errors.

The person is expected to play as before, recent games counting more; other people's play may stand behind
that, and behind them engines that err as the person does (`fit_engines`). Their weights are those that
predict the person's later games best from the earlier ones (`rolling_fit`), and the last games determine how
far the model is distrusted.

A book that is best for a model exploits its errors: it goes where the model expects mistakes. Games that the
model has not seen show how many of these are made. At each position of theirs let v(m) be the other side's
value after reply m, p the model, and s the share of p that does not come from the person's own games,
alpha / (n + alpha). Then

    c = sum of [p . v - v(played)] / sum of s [p . v - min v],        over the moves of later games,

is the missing value, as a part of the loss against worst replies: with c as the model's distrust, a
contamination of c s predicts the values of these games, on average over their positions. 0 is a model whose
expected mistakes are made, 1 one whose expected mistakes never are.

Source: ours; contamination that shrinks with the counts is data-biased response (Johanson and Bowling 2009).
Cost: a file is read once; an evaluation after each reply of each position of the last games.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games._support.deadlines import deadline, sample_in_time
from precomp_games._support.results import Result
from precomp_games.chess.data.book import points
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.data.move_counts import CountsPolicy, GameSelection, GameTable, GameWeights
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.data.scouting import ScoutedGames
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.stored_engine import ScoringEngine, StoredEngine
from precomp_games.chess.game import ChessGame, ChessState, move_of
from precomp_games.chess.model import opponents
from precomp_games.chess.model.count_fit import CountFit, RollingCounts
from precomp_games.chess.model.estimation import EnginesFit, fit_engines, opponent_choices
from precomp_games.chess.model.model import Engines, leaf_value
from precomp_games.chess.model.opponents import GamesPolicy, prior_of_moves
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.policies.rows import PolicyLike, is_of_history

FITTED = "fitted"
"""Behind a person's games: engines that are fitted to its moves."""
HUMAN = "human"
"""Behind a person's games: people of its rating, by networks."""
_LIMITS = (1000, 20_000)  # nodes of the fitted engines
_TEMPERATURES_CP = (10.0, 20.0, 40.0, 80.0)
_TOP_K = 8
_MOST_LAST = 500  # moves that distrust is fitted to; more would change it little, and each takes ten searches
_RATING = 1500.0  # where none is known
_SHARE = 0.3  # of the remaining time, for each of two fits
_FIRST = 2  # games that are used in any case
_MOST_OF_PEOPLE = 60  # moves if people stand behind the games: more replies are likely, and are searched
_SPREAD = 200.0  # of the ratings of people who are like a person
_MOST_LOOKED = 3000  # moves in a fit with networks, half of them of the last games
_LEAST = 2.0**-40  # a move that a model rules out surprises it by no more than 40 bits


@dataclasses.dataclass(frozen=True)
class KnownPerson:
    """A person with the games that were read.

    Attributes:
      name: as in the file.
      games: the person's.
      population: others' games; None: there are none.
      table: the person's games, as they were read.
      report: counts of what was read of the file.
    """

    name: str
    games: GameSelection
    population: GameSelection | None
    table: GameTable
    report: GameReport

    @property
    def years(self) -> npt.NDArray[np.int64]:
        """Years of the games that have one."""
        return np.floor(self.table.years[~np.isnan(self.table.years)]).astype(np.int64)

    @functools.cached_property
    def _others(self) -> tuple[GameTable, GameReport]:
        """Games of the population without the person's; a run fits them for several years."""
        assert self.population is not None
        report = GameReport()
        return self.population.table(report), report

    def policy(
        self, behind: PolicyLike | None, before: float = math.inf, fit: CountFit | None = None
    ) -> GamesPolicy:
        """Return the person's expected play, by games that were read.

        Args:
          behind: the policy behind the population, or behind the person's own games if there is none.
          before: only older games count, of the person and of others.
          fit: half-life and alpha of the person's games; None: those that predict all of them best.
        """
        how = _counted(fit) if fit is not None else {"fit": "rolling"}
        read, prior = dataclasses.replace(self.games, before=before), self.behind(behind, before)
        return opponents.policy_of_tables(ChessGame(), [self.table], self.report, read, prior, **how)

    def behind(self, behind: PolicyLike | None, before: float = math.inf) -> PolicyLike | None:
        """Return the policy behind the person's own games: the population, if there is one.

        Its half-life and alpha are those that predict its own later games best, with nothing behind them:
        with an engine there, all their positions would have to be searched.
        """
        if self.population is None:
            return behind
        others, report = self._others
        dated = math.isfinite(before) or not np.isnan(others.years).all()
        how = _counted(opponents.rolling_fit(others, before=before)) if dated else {}
        read = dataclasses.replace(self.population, before=before)
        return opponents.policy_of_tables(ChessGame(), [others], report, read, behind, **how)

    @property
    def rating(self) -> float | None:
        """Mean rating of the person in the last year with ratings, or in all games; None: no game has one."""
        ratings = np.where(self.table.sides, self.table.ratings, np.nan)
        rated = ~np.isnan(ratings).all(axis=1)
        years = np.floor(self.table.years)
        last = rated & (years == np.fmax.reduce(years[rated], initial=-np.inf))
        among = last if last.any() else rated
        return float(np.nanmean(ratings[among])) if among.any() else None

    @property
    def speed(self) -> str:
        """Time control of most of the person's games; "" if no game has one."""
        known = self.table.speeds[self.table.speeds >= 0]
        return SPEEDS[int(np.bincount(known).argmax())] if len(known) else ""

    def spec(self, model: GamesPolicy, behind: str, *, rolling: bool = True) -> str:
        """Return a model of the person as a spec, by which it can be made again.

        Args:
          model: see `policy`.
          behind: the spec of the policy behind all games.
          rolling: whether half-life and alpha are fitted again to predict all of the person's games best.
        """
        if self.population is not None:
            assert isinstance(model.prior, GamesPolicy)
            behind = model.prior.spec(behind)
        return model.spec(behind, rolling=rolling)

    def engines_behind(self, engine: ScoringEngine, before: float) -> EnginesFit:
        """Fit the engines that are most like the person, by moves before a year; infinity: by all moves.

        Each move counts once in each position: where games are many, they determine the play themselves.
        """
        table = self.table.select(self.table.years < before) if math.isfinite(before) else self.table
        states = table.own_states()
        own = zip(table.keys[table.own].tolist(), table.actions[table.own].tolist(), strict=True)
        moves = {(states[key].epd, move_of(action).uci()): 1 for key, action in own if key in states}
        return fit_engines(
            {n: opponent_choices(engine, SearchLimit(nodes=n), _TOP_K, moves) for n in _LIMITS},
            _TEMPERATURES_CP,
        )

    def distrust(
        self,
        settings: PreparationSettings,
        engines: Engines,
        model: GamesPolicy,
        since: float,
        until: float = math.inf,
    ) -> DistrustFit | None:
        """Fit the distrust of a model of the games before a year, by the games from then on.

        Return None if these are uninformative: there are none, or no move in them is one of several replies.

        Args:
          settings: of the other side's preparation; with its seed, games are drawn if they have more than 500
            moves of the person, or 60 if people stand behind its games.
          engines: engines of the searches.
          model: of the earlier games.
          since: the year.
          until: later games are left out.
        """
        value, seed = leaf_value(settings, engines.analyst), settings.seed
        games = self.table.select((self.table.years >= since) & (self.table.years < until))
        moves, most = int(games.own.sum()), _MOST_OF_PEOPLE if is_of_history(model) else _MOST_LAST
        if moves > most:
            kept = max(1, games.num_games * most // moves)
            games = _some(games, np.random.default_rng(seed).choice(games.num_games, kept, replace=False))

        def fitted(drawn: list[int]) -> DistrustFit | None:
            least = settings.min_probability
            with contextlib.suppress(ArgumentError):
                return fit_distrust(model, _some(games, drawn), value, min_probability=least)
            return None

        _, found = sample_in_time(range(games.num_games), fitted, seed=seed, share=_SHARE, first=_FIRST)
        return found


def _counted(fit: CountFit) -> dict[str, Any]:
    """Return a fit's arguments for counting games, rounded as in a spec."""
    return {
        "alpha": float(f"{fit.alpha:.3g}"),
        "weights": GameWeights(half_life=float(f"{fit.half_life:.4g}")),
    }


def _some(table: GameTable, numbers: Sequence[int] | npt.NDArray[np.int64]) -> GameTable:
    """Return the games of these numbers."""
    return table.select(np.isin(np.arange(table.num_games), numbers))


def read_person(
    path: str, name: str, population: str | None, plies: int, read: ScoutedGames | None = None
) -> KnownPerson:
    """Read a person's games.

    Args:
      path: the file.
      name: as in the file, see `resolve_names`.
      population: a file of others' games, or None.
      plies: half-moves of each game that count.
      read: the file's games where they were read, with as many half-moves or more.

    Raises:
      ValueError, OSError: see `GameSelection.table`.
    """
    games = GameSelection(path, name, max_plies=plies)
    others = None if population is None else GameSelection(population, without=name, max_plies=plies)
    report = GameReport() if read is None else read.report
    table = games.table(report) if read is None else read.table.first(plies)
    games.check_read(report)
    return KnownPerson(name, games, others, table, report)


@dataclasses.dataclass(frozen=True)
class ModelledPerson:
    """A model of a person, with its fits.

    Attributes:
      person: the person.
      settings: of a preparation against the model.
      model: of all games.
      behind: the spec of the policy behind them.
      engines: the engines behind them; None: another policy is.
      distrust: fit of the model's distrust; None: it was given, or there are no data for a fit.
      first: the year in which the last games begin; NaN if no game has a date.
      bits: mean surprise of the last moves by the model of the earlier ones, its standard error, and the
        number of moves; None: there are no earlier ones, or no last ones.
      looked_at: number of games, drawn at random, in its fits; all of them count.
    """

    person: KnownPerson
    settings: PreparationSettings
    model: GamesPolicy
    behind: str
    engines: EnginesFit | None
    distrust: DistrustFit | None
    first: float
    bits: tuple[float, float, int] | None
    looked_at: int

    @property
    def last(self) -> GameTable:
        """The last games."""
        return self.person.table.select(self.person.table.years >= self.first)


def model_person(
    person: KnownPerson,
    settings: PreparationSettings,
    engines: Engines,
    *,
    behind: str = FITTED,
    last_years: int = 1,
    distrusts: bool = True,
    least: int = 1,
) -> ModelledPerson:
    """Model a person, with engines behind the games, and fit its distrust to the last years.

    Args:
      person: the person.
      settings: of the preparation, by either side; its opponent is set here.
      engines: engines of the searches; they know the model by its spec in the settings (`Engines.known`).
      behind: `FITTED`, `HUMAN`, or the spec of the policy behind the games.
      last_years: number of years of the last games.
      distrusts: whether the model's distrust is fitted; otherwise it stays as in the settings.
      least: games in which a position must have come up, for the person's moves there to count.
    """
    person = dataclasses.replace(person, games=dataclasses.replace(person.games, least=least))
    years = person.years
    first = float(years.max() - last_years + 1) if len(years) else math.nan
    any_before = bool((person.table.years < first).any())
    before, when, seed = first if any_before else math.inf, person.table.years, settings.seed
    older = np.flatnonzero(when < before) if len(years) else np.arange(len(when))
    later = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(when)), older))
    hurried, people = deadline() is not None, behind == HUMAN
    if people:
        behind = f"{HUMAN}(rating={person.rating or _RATING:.0f},spread={_SPREAD:g})"
        rng, each = np.random.default_rng(seed), int(person.table.own.sum()) / len(when)
        most = max(_FIRST, int(_MOST_LOOKED / 2 / each))
        older, later = rng.permutation(older)[:most], later[:most]

    @functools.cache  # a policy remembers networks' answers
    def policy_of(spec: str) -> PolicyLike | None:
        return spec_policy(spec, engines.opponent, trusted=settings.trusted)

    def behind_all(like: EnginesFit | None) -> tuple[str, PolicyLike | None]:
        spec = behind if like is None else like.spec
        return spec, policy_of(spec)

    def fitted(
        drawn: list[int],
    ) -> tuple[list[int], EnginesFit | None, Sequence[CountFit | None], _Rolled | None]:
        """Fit to some of the older games, and to as large a part of the others; counts are of all games."""
        looked = [*drawn, *later[: math.ceil(len(later) * len(drawn) / len(older))]]
        part = dataclasses.replace(person, table=_some(person.table, looked))
        like = part.engines_behind(engines.opponent, before) if behind == FITTED else None
        if not (hurried or people) or not len(years):
            return looked, like, (None, None), None
        prior = person.behind(behind_all(like)[1])
        known = rolling, odds, among = rolled(person.table, looked, prior)  # of all games: all is searched
        every = len(looked) == len(when)
        fits = (None, None) if every else rolling.fits(odds, [before, math.inf], among=among)
        return looked, like, fits, known

    if people:  # takes seconds
        found = fitted(older.tolist())
    else:
        _, found = sample_in_time(older.tolist(), fitted, seed=seed, share=_SHARE, first=_FIRST)
    looked, like, fits, known = found
    spec, prior = behind_all(like)
    doubt = None
    if any_before and distrusts:
        doubt = person.distrust(settings, engines, person.policy(prior, first, fits[0]), first)
        if doubt is not None:
            settings = dataclasses.replace(settings, distrust=round(doubt.share, 2))
    model = person.policy(prior, fit=fits[1])
    settings = dataclasses.replace(settings, opponent=person.spec(model, spec, rolling=fits[1] is None))
    engines.known[settings.opponent] = model
    known = known or (rolled(person.table, looked, model.prior) if any_before else None)
    bits = _predicted(known, first, least) if any_before and known is not None else None
    return ModelledPerson(person, settings, model, spec, like, doubt, first, bits, len(looked))


def spec_policy(spec: str, engine: StoredEngine, *, trusted: bool) -> PolicyLike | None:
    """Return the policy behind games, by its spec; None: any legal move."""
    if spec == "uniform":
        return None
    return opponents.opponent_policy(ChessGame(), spec, engine, trusted=trusted)


_Rolled = tuple[RollingCounts, npt.NDArray[np.float64], npt.NDArray[np.bool_]]


def rolled(table: GameTable, looked: Sequence[int], prior: PolicyLike | None) -> _Rolled:
    """Return the counts of all games, and for the moves of `looked` the prior's probabilities and a mask."""
    rolling = RollingCounts(table)
    among = np.isin(table.game[table.own], looked)
    odds = np.ones(len(among))
    odds[among] = prior_of_moves(prior, _some(table, looked))
    return rolling, odds[rolling.moves], among[rolling.moves]


def _predicted(known: _Rolled, since: float, least: int) -> tuple[float, float, int] | None:
    """Return (bits a move, error, number) from a year on, fitted to the years before; None without either."""
    rolling, prior, among = known
    (fit,) = rolling.fits(prior, [since], among=among)
    met = rolling.sums(math.inf)[1] >= least
    odds = np.where(met, rolling.probabilities(fit.half_life, fit.alpha, prior), prior)
    late = among & (rolling.years >= since)
    if not late.any():
        return None
    bits = -np.log2(np.maximum(odds[late], _LEAST))
    return float(bits.mean()), float(bits.std()) / math.sqrt(len(bits)), len(bits)


# -- how far the model errs --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class DistrustFit(Result):
    """Fitted distrust of a model.

    Attributes:
        share: c, from 0 to 1.
        standard_error: of c, as if moves were independent.
        moves: number of moves in the fit.
        missing: mean of the model's expected value for the other side minus the real one, after a move.
    """

    share: float
    standard_error: float
    moves: int
    missing: float

    def __str__(self) -> str:
        """Return the fit in one line."""
        return (
            f"{self.share:.2f} +- {self.standard_error:.2f}, by {self.moves} moves, after which there were "
            f"{points(self.missing)} points in 100 games less than was expected"
        )


def fit_distrust(
    model: CountsPolicy, table: GameTable, leaf_value: Any, *, min_probability: float = 0.0
) -> DistrustFit:
    """Fit the distrust at which a model's expected values equal those of later games.

    Args:
        model: of earlier games.
        table: the later games.
        leaf_value: leaf values, White's in [0, 1], as in a preparation.
        min_probability: less likely replies are pruned, as in the preparation.

    Raises:
        ValueError: no moves whose reply could be worse than expected.
    """
    states = table.own_states()
    rows = model.action_probabilities_batch(list(states.values()))
    replies = {key: _likely(row, min_probability) for key, row in zip(states, rows, strict=True)}
    played = [
        (key, action)
        for key, action in zip(table.keys[table.own].tolist(), table.actions[table.own].tolist(), strict=True)
        if key in states
    ]
    children = {
        (key, action): states[key].child(action)
        for key, action in [*((key, action) for key, row in replies.items() for action in row), *played]
    }
    worth = dict(zip(children, _worth(list(children.values()), leaf_value), strict=True))
    missing, most = np.zeros(len(played)), np.zeros(len(played))
    for k, (key, action) in enumerate(played):
        sign = -1.0 if states[key].current_player() == 0 else 1.0  # the other side is White where Black moves
        row = {reply: sign * worth[key, reply] for reply in replies[key]}
        expected = math.fsum(p * row[reply] for reply, p in replies[key].items())
        missing[k] = expected - sign * worth[key, action]
        most[k] = model.prior_share(states[key]) * (expected - min(row.values()))
    if most.sum() <= 0.0:
        raise ArgumentError(f"expected table to have moves among several replies, got {len(played)} moves")
    share = float(missing.sum() / most.sum())
    error = float(np.sqrt(((missing - share * most) ** 2).sum()) / most.sum())
    return DistrustFit(min(max(share, 0.0), 1.0), error, len(played), float(missing.mean()))


def _likely(row: Mapping[int, float], least: float) -> dict[int, float]:
    """Return the replies of a row without those that are hardly ever played."""
    kept = {action: p for action, p in row.items() if p > 0.0 and p >= least}
    kept = kept or {max(row, key=row.__getitem__): 1.0}
    total = math.fsum(kept.values())
    return {action: p / total for action, p in kept.items()}


def _worth(states: list[ChessState], leaf_value: Any) -> list[float]:
    """Return states' values to White."""
    estimates = iter(leaf_value.evaluate_batch([state for state in states if not state.is_terminal()]))
    return [state.returns()[0] if state.is_terminal() else float(next(estimates)) for state in states]
