"""A person as an opponent: whose games are read, which engines stand behind them, how far the model errs.

The person is expected to play what it has played, recent games counting more; what others play may stand
behind that, and behind them engines that err as the person does (`fit_engines`). How much each counts is what
predicts the person's later games best from its earlier ones (`rolling_fit`), and the last games say how far
the model is to distrust itself (`fit_distrust`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.stored_engine import ScoringEngine
from precomp_games.chess.game import move_of
from precomp_games.chess.opponents.count_fit import RollingCounts
from precomp_games.chess.opponents.distrust import DistrustFit, fit_distrust
from precomp_games.chess.opponents.estimation import EnginesFit, fit_engines, opponent_choices
from precomp_games.chess.opponents.policies import GamesPolicy, prior_of_moves, read_table, rolling_fit
from precomp_games.chess.preparation.engines import Engines
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.records.move_counts import GameTable, own_states
from precomp_games.chess.records.names import printable_name
from precomp_games.chess.records.pgn_files import GameReport
from precomp_games.policies.specs import quoted

FITTED = "fitted"
"""What is behind a person's games where nothing else is said: engines that are fitted to its moves."""
_LIMITS = (1000, 20_000)  # nodes of these engines
_TEMPERATURES_CP = (10.0, 20.0, 40.0, 80.0)
_TOP_K = 8
_MOST_LAST = 500  # moves that distrust is fitted to; more would change it little, and each takes ten searches
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

    def spec(self, plies: int, behind: str, before: float = math.inf) -> str:
        """The person as an opponent, by name.

        The population's half-life and alpha are those that predict its own later games best, with nothing
        behind them: with an engine there, all their positions would have to be searched.

        Args:
          plies: half-moves of games that count.
          behind: the spec behind the population, or behind the person's own games where there is none.
          before: only older games count, of the person and of others.
        """
        player = quoted(in_spec(self.name))
        counted_plies = f"max_plies={plies}" + (f",before={before:g}" if math.isfinite(before) else "")
        if self.population is not None:
            others, counted = _others(self.population, self.name, plies), "alpha=1"
            if math.isfinite(before) or not np.isnan(others.years).all():
                fit = rolling_fit(others, before=before)
                counted = f"half_life={fit.half_life:.4g}," if np.isfinite(fit.half_life) else ""
                counted += f"alpha={fit.alpha:.3g}"
            behind = (
                f"games(file={quoted(self.population)},without={player},{counted},"
                f"{counted_plies},prior={behind})"
            )
        return f"games(file={quoted(self.path)},player={player},fit=rolling,{counted_plies},prior={behind})"


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
            drawn = np.random.default_rng(seed).choice(games.num_games, kept, replace=False)
            games = games.select(np.isin(np.arange(games.num_games), drawn))
        try:
            return fit_distrust(model, games, policies.leaf_value, min_probability=settings.min_probability)
        except ArgumentError:
            return None


@functools.cache
def _others(population: str, name: str, plies: int) -> GameTable:
    """A population's games without the person's; one run fits them for several years."""
    return read_table(population, without=name, max_plies=plies)


def in_spec(name: str) -> str:
    """A name as specs have it, where commas separate arguments, and which terminals are shown."""
    return " ".join(printable_name(name).translate(_IN_SPECS).split())


def read_person(
    path: str, name: str, population: str | None, plies: int, progress: Callable[[int, int], None]
) -> KnownPerson:
    """A person's games.

    Args:
      path: the file.
      name: as the file has it, see `resolve_names`.
      population: a file of others' games, or None.
      plies: half-moves of each game that are read.
      progress: see `read_games`.

    Raises:
      ValueError, OSError: see `read_table`.
    """
    report = GameReport()
    table = read_table(path, name, max_plies=plies, report=report, progress=progress)
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
      bits: how much each of the last moves surprises the model of the earlier ones, and how many they are;
        None: there are no earlier ones, or no last ones.
    """

    person: KnownPerson
    settings: PreparationSettings
    model: GamesPolicy
    engines: EnginesFit | None
    distrust: DistrustFit | None
    first: float
    bits: tuple[float, int] | None

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
    like = None
    if behind == FITTED:
        before = first if any_before else math.inf
        like = person.engines_behind(engines.opponent, before)
        behind = like.spec
    doubt = None
    if any_before and distrusts:
        spec = person.spec(plies, behind, first)
        doubt = person.distrust(settings, engines, spec, first, seed=settings.seed)
        if doubt is not None:
            settings = dataclasses.replace(settings, distrust=round(doubt.share, 2))
    settings = dataclasses.replace(settings, opponent=person.spec(plies, behind))
    model = engines.policies(settings).sigma[1 - settings.player]
    assert isinstance(model, GamesPolicy)
    return ModelledPerson(person, settings, model, like, doubt, first, _predicted(person, model, first))


def _predicted(person: KnownPerson, model: GamesPolicy, since: float) -> tuple[float, int] | None:
    """Bits a move from a year on, fitted to the years before, and how many moves; None without either."""
    if not (person.table.years < since).any():
        return None
    rolling = RollingCounts(person.table)
    prior = prior_of_moves(model.prior, person.table)[rolling.moves]
    (fit,) = rolling.fits(prior, [since])
    odds = rolling.probabilities(fit.half_life, fit.alpha, prior)
    late = np.array([rolling.start(block) >= since for block in rolling.block.tolist()], bool)
    if not late.any():
        return None
    return float(-np.log2(np.maximum(odds[late], _LEAST)).mean()), int(late.sum())
