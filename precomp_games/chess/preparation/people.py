"""A person as an opponent: whose games are read, which engines stand behind them, how far the model errs.

The person is expected to play what it has played, recent games counting more; what others play may stand
behind that, and behind them engines that err as the person does (`fit_engines`). How much each counts is what
predicts the person's later games best from its earlier ones (`rolling_fit`), and the last games say how far
the model is to distrust itself (`fit_distrust`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games._support.deadlines import deadline, sample_in_time
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.stored_engine import ScoringEngine
from precomp_games.chess.game import ChessGame, move_of
from precomp_games.chess.opponents.count_fit import CountFit, RollingCounts
from precomp_games.chess.opponents.distrust import DistrustFit, fit_distrust
from precomp_games.chess.opponents.estimation import EnginesFit, fit_engines, opponent_choices
from precomp_games.chess.opponents.policies import (
    GamesPolicy,
    opponent_policy,
    prior_of_moves,
    read_table,
    rolling_fit,
)
from precomp_games.chess.preparation.model import Engines
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.records.move_counts import GameTable, own_states
from precomp_games.chess.records.names import printable_name
from precomp_games.chess.records.pgn_files import GameReport
from precomp_games.policies.rows import PolicyLike
from precomp_games.policies.specs import quoted

FITTED = "fitted"
"""What is behind a person's games where nothing else is said: engines that are fitted to its moves."""
_LIMITS = (1000, 20_000)  # nodes of these engines
_TEMPERATURES_CP = (10.0, 20.0, 40.0, 80.0)
_TOP_K = 8
_MOST_LAST = 500  # moves that distrust is fitted to; more would change it little, and each takes ten searches
_SHARE = 0.3  # of the time that is left, for each of two fits
_FIRST = 2  # games that they look at in any case
_LEAST = 2.0**-40  # a move that a model rules out surprises it by no more than 40 bits
_IN_SPECS = str.maketrans(dict.fromkeys('(),="', " "))


@dataclasses.dataclass(frozen=True)
class Named:
    """Whose games are meant.

    Attributes:
      path: the file.
      name: as the file has it.
      population: the file of others' games; None: there is none.
    """

    path: str
    name: str
    population: str | None

    def spec(self, plies: int, behind: str, before: float = math.inf, fit: CountFit | None = None) -> str:
        """The person as an opponent, by name.

        Args:
          plies: half-moves of games that count.
          behind: the spec behind the population, or behind the person's own games where there is none.
          before: only older games count, of the person and of others.
          fit: how the person's games are counted; None: as predicts all of them best.
        """
        name, counted = quoted(in_spec(self.name)), "fit=rolling" if fit is None else _counted(fit)
        prior = self.behind(plies, behind, before)
        return f"games(file={quoted(self.path)},player={name},{counted},{_read(plies, before)},prior={prior})"

    def behind(self, plies: int, behind: str, before: float = math.inf) -> str:
        """What is behind the person's own games, by name: the population, where there is one.

        Its half-life and alpha are those that predict its own later games best, with nothing behind them:
        with an engine there, all their positions would have to be searched.
        """
        if self.population is None:
            return behind
        name, read = quoted(in_spec(self.name)), _read(plies, before)
        others, counted = _others(self.population, self.name, plies), "alpha=1"
        if math.isfinite(before) or not np.isnan(others.years).all():
            counted = _counted(rolling_fit(others, before=before))
        return f"games(file={quoted(self.population)},without={name},{counted},{read},prior={behind})"


def _counted(fit: CountFit) -> str:
    """A fit in a spec."""
    half_life = f"half_life={fit.half_life:.4g}," if np.isfinite(fit.half_life) else ""
    return f"{half_life}alpha={fit.alpha:.3g}"


def _read(plies: int, before: float) -> str:
    """Which part of games counts, in a spec."""
    return f"max_plies={plies}" + (f",before={before:g}" if math.isfinite(before) else "")


@dataclasses.dataclass(frozen=True)
class KnownPerson(Named):
    """Whose games they are, and which.

    Attributes:
      table: the person's games.
      report: what was read of the file, and what was not.
    """

    table: GameTable
    report: GameReport

    @property
    def years(self) -> npt.NDArray[np.int64]:
        """The years of the games that have one."""
        return np.floor(self.table.years[~np.isnan(self.table.years)]).astype(np.int64)

    def engines_behind(self, engine: ScoringEngine, before: float) -> EnginesFit:
        """The engines that are most like the person, by its moves before a year; infinity: by all.

        Each move counts once in each position: where its games are many, they say what it plays.
        """
        table = self.table.select(self.table.years < before) if math.isfinite(before) else self.table
        states = own_states(table)
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
        spec: str,
        since: float,
        until: float = math.inf,
        seed: int = 0,
    ) -> DistrustFit | None:
        """How far a model of the games before a year is to distrust itself, by the games from then on.

        None where these say nothing of that: no move in them is one of several replies, or there is none.

        Args:
          settings: by which the other side prepares.
          engines: whose searches.
          spec: the model.
          since: the year.
          until: later games are left out.
          seed: of which games are looked at, where they have more than 500 moves of the person.
        """
        policies = engines.policies(dataclasses.replace(settings, opponent=spec))
        model = policies.sigma[1 - settings.player]
        assert isinstance(model, GamesPolicy)
        games = self.table.select((self.table.years >= since) & (self.table.years < until))
        moves = int(games.own.sum())
        if moves > _MOST_LAST:
            kept = max(1, games.num_games * _MOST_LAST // moves)
            games = _some(games, np.random.default_rng(seed).choice(games.num_games, kept, replace=False))

        def fitted(drawn: list[int]) -> DistrustFit | None:
            least = settings.min_probability
            with contextlib.suppress(ArgumentError):
                return fit_distrust(model, _some(games, drawn), policies.leaf_value, min_probability=least)
            return None

        _, found = sample_in_time(range(games.num_games), fitted, seed=seed, share=_SHARE, first=_FIRST)
        return found


def _some(table: GameTable, numbers: Sequence[int] | npt.NDArray[np.int64]) -> GameTable:
    """The games of these numbers."""
    return table.select(np.isin(np.arange(table.num_games), numbers))


@functools.cache
def _others(population: str, name: str, plies: int) -> GameTable:
    """A population's games without the person's; one run fits them for several years."""
    return read_table(population, without=name, max_plies=plies)


def in_spec(name: str) -> str:
    """A name as specs have it, where commas separate arguments, and which terminals are shown."""
    return " ".join(printable_name(name).translate(_IN_SPECS).split())


def read_person(path: str, name: str, population: str | None, plies: int) -> KnownPerson:
    """A person's games.

    Args:
      path: the file.
      name: as the file has it, see `resolve_names`.
      population: a file of others' games, or None.
      plies: half-moves of each game that are read.

    Raises:
      ValueError, OSError: see `read_table`.
    """
    report = GameReport()
    table = read_table(path, name, max_plies=plies, report=report)
    return KnownPerson(path, name, population, table, report)


@dataclasses.dataclass(frozen=True)
class ModelledPerson:
    """A model of a person, and what it was fitted to.

    Attributes:
      person: whose.
      settings: of a preparation against the model.
      model: of all games.
      engines: that are behind them; None: another policy is.
      distrust: of itself; None: it was given, or there is nothing to fit it to.
      first: the year in which the last games begin; NaN where no game has a date.
      bits: how much each of the last moves surprises the model of the earlier ones, the standard error of
        that, and how many moves they are; None: there are no earlier ones, or no last ones.
      looked_at: to how many of the games it was fitted, drawn; all of them count.
    """

    person: KnownPerson
    settings: PreparationSettings
    model: GamesPolicy
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
    plies: int,
    behind: str = FITTED,
    last_years: int = 1,
    distrusts: bool = True,
) -> ModelledPerson:
    """The model of a person, with engines behind it, and its distrust, by what the years before the last say.

    Args:
      person: whose games they are.
      settings: of the preparation, by either side; its opponent is set here.
      engines: whose searches.
      plies: half-moves of each game that count.
      behind: `FITTED`, or the spec of what is behind the games.
      last_years: how many years the last games are.
      distrusts: whether the model's distrust is fitted; else it stays as the settings have it.
    """
    years = person.years
    first = float(years.max() - last_years + 1) if len(years) else math.nan
    any_before = bool((person.table.years < first).any())
    before, when, seed = first if any_before else math.inf, person.table.years, settings.seed
    older = np.flatnonzero(when < before) if len(years) else np.arange(len(when))
    later = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(when)), older))

    hurried = deadline() is not None

    def fitted(drawn: list[int]) -> tuple[list[int], EnginesFit | None, Sequence[CountFit | None]]:
        """By some of the older games, and as large a part of the others; to all games specs are fitted."""
        looked = [*drawn, *later[: math.ceil(len(later) * len(drawn) / len(older))]]
        part = dataclasses.replace(person, table=_some(person.table, looked))
        like = part.engines_behind(engines.opponent, before) if behind == FITTED else None
        if not hurried or not len(years):
            return looked, like, (None, None)
        spec = person.behind(plies, behind if like is None else like.spec)
        prior = opponent_policy(ChessGame(), spec, engines.opponent, trusted=settings.trusted)
        rolling, odds, among = _rolled(person.table, looked, prior)  # of all games, too: all is searched
        every = len(looked) == len(when)
        return looked, like, (None, None) if every else rolling.fits(odds, [before, math.inf], among=among)

    _, (looked, like, fits) = sample_in_time(older.tolist(), fitted, seed=seed, share=_SHARE, first=_FIRST)
    behind = behind if like is None else like.spec
    doubt = None
    if any_before and distrusts:
        spec = person.spec(plies, behind, first, fits[0])
        doubt = person.distrust(settings, engines, spec, first, seed=seed)
        if doubt is not None:
            settings = dataclasses.replace(settings, distrust=round(doubt.share, 2))
    settings = dataclasses.replace(settings, opponent=person.spec(plies, behind, fit=fits[1]))
    model = engines.policies(settings).sigma[1 - settings.player]
    assert isinstance(model, GamesPolicy)
    bits = _predicted(person.table, looked, model, first) if any_before else None
    return ModelledPerson(person, settings, model, like, doubt, first, bits, len(looked))


def _rolled(
    table: GameTable, looked: Sequence[int], prior: PolicyLike | None
) -> tuple[RollingCounts, npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Counts of all games, what is behind them for the moves of those looked at, and which these are."""
    rolling = RollingCounts(table)
    among = np.isin(table.game[table.own], looked)
    odds = np.ones(len(among))
    odds[among] = prior_of_moves(prior, _some(table, looked))
    return rolling, odds[rolling.moves], among[rolling.moves]


def _predicted(
    table: GameTable, looked: Sequence[int], model: GamesPolicy, since: float
) -> tuple[float, float, int] | None:
    """Bits a move from a year on, fitted to the years before, and of how many; None without either."""
    rolling, prior, among = _rolled(table, looked, model.prior)
    (fit,) = rolling.fits(prior, [since], among=among)
    odds = rolling.probabilities(fit.half_life, fit.alpha, prior)
    late = among & np.array([rolling.start(block) >= since for block in rolling.block.tolist()], bool)
    if not late.any():
        return None
    bits = -np.log2(np.maximum(odds[late], _LEAST))
    return float(bits.mean()), float(bits.std()) / math.sqrt(len(bits)), len(bits)
