"""What the examples about people share: whose games are read, and what a person is expected to play."""

from __future__ import annotations

import dataclasses
import functools
import math

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import numpy as np
from absl import flags

from precomp_games.chess import (
    Engines,
    GameReport,
    GamesPolicy,
    PreparationSettings,
    SearchLimit,
    move_of,
    opponent_choices,
    read_table,
)
from precomp_games.chess.engines.stored_engine import ScoringEngine
from precomp_games.chess.opponents.distrust import DistrustFit, fit_distrust
from precomp_games.chess.opponents.estimation import EnginesFit, fit_engines
from precomp_games.chess.opponents.policies import rolling_fit
from precomp_games.chess.records.move_counts import GameTable, own_states
from precomp_games.commands._files import DATA

FLAGS = flags.FLAGS
FITTED = "fitted"
"""What is behind a person's games where nothing else is said: engines that are fitted to its moves."""
_LIMITS = (1000, 20_000)  # nodes of these engines
_TEMPERATURES_CP = (10.0, 20.0, 40.0, 80.0)
_TOP_K = 8

_GAMES = flags.DEFINE_string(
    "games", None, "The person's games, in PGN. Default: the shipped sample of Karpov's."
)
_PLAYER = flags.DEFINE_string("player", None, "Who, as the file has the name.")
_POPULATION = flags.DEFINE_string(
    "population",
    None,
    "Games of others, in PGN; the person's are left out. Default, of the sample: a sample.",
)


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
        counted_plies = f"max_plies={plies}" + (f",before={before:g}" if math.isfinite(before) else "")
        if self.population is not None:
            fit = rolling_fit(_others(self.population, self.name, plies), before=before)
            counted = f"half_life={fit.half_life:.4g}," if np.isfinite(fit.half_life) else ""
            behind = (
                f"games(file={self.population},without={in_spec(self.name)},{counted}alpha={fit.alpha:.3g},"
                f"{counted_plies},prior={behind})"
            )
        player = in_spec(self.name)
        return f"games(file={self.path},player={player},fit=rolling,{counted_plies},prior={behind})"


@dataclasses.dataclass(frozen=True)
class Person(Named):
    """Whose games they are, and which.

    Attributes:
        table: the person's games.
        report: what was read of the file, and what was not.
    """

    table: GameTable
    report: GameReport

    @property
    def years(self) -> np.ndarray:
        """The years of the games that have one."""
        known = self.table.years[~np.isnan(self.table.years)]
        if not len(known):
            raise ValueError("--games: expected games with dates, got none")
        return np.floor(known).astype(int)

    def engines_behind(self, engine: ScoringEngine, before: float) -> EnginesFit:
        """The engines that are most like the person, by its moves before a year.

        Each move counts once in each position: where its games are many, they say what it plays.
        """
        table = self.table.select(self.table.years < before)
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
    ) -> DistrustFit:
        """How far a model of the games before a year is to distrust itself, by the games from then on.

        Args:
            settings: by which the other side prepares.
            engines: whose searches.
            spec: the model.
            since: the year.
            until: later games are left out.
        """
        policies = engines.policies(dataclasses.replace(settings, opponent=spec))
        model = policies.sigma[1 - settings.player]
        assert isinstance(model, GamesPolicy)
        games = self.table.select((self.table.years >= since) & (self.table.years < until))
        return fit_distrust(model, games, policies.leaf_value, min_probability=settings.min_probability)


@functools.cache
def _others(population: str, name: str, plies: int) -> GameTable:
    """A population's games without the person's; one run fits them for several years."""
    return read_table(population, without=name, max_plies=plies)


def in_spec(name: str) -> str:
    """A name as specs have it, where commas separate arguments."""
    return " ".join(name.replace(",", " ").split())


def named() -> Named:
    """The person of the flags."""
    path, player, population = _GAMES.value, _PLAYER.value, _POPULATION.value
    if path is None:
        path, player = str(DATA / "karpov_sample.pgn"), player or "Karpov Anatoli"
        population = population or str(DATA / "championship_sample.pgn")
    elif player is None:
        raise ValueError("--player: expected whose games in --games are meant, got none")
    return Named(path, player, population)


def person(plies: int) -> Person:
    """The games of the flags, up to so many half-moves each."""
    who, report = named(), GameReport()
    with common.progress("Reading", "bytes") as show:
        table = read_table(
            who.path, who.name, max_plies=plies, report=report, progress=lambda done, size: show(done)
        )
    return Person(who.path, who.name, who.population, table, report)


def games_by_position(table: GameTable, side: chess.Color) -> dict[int, set[int]]:
    """The games in which each position came up where `side` is to move, and not the person."""
    rows = ~table.own & (table.white == side)
    found: dict[int, set[int]] = {}
    for key, game in zip(table.keys[rows].tolist(), table.game[rows].tolist(), strict=True):
        found.setdefault(key, set()).add(game)
    return found
