"""The play of people of a rating: `human(rating=1500)`, by networks trained on people's games.

    human(rating=1500)
    human(rating=1620,maia=/networks/of/mine)
    human(engine=lc0,options=of(WeightsFile=maia-1500.pb.gz))

Each of Maia's networks was trained on games of one rating, which is in its file's name. Between two ratings
their probabilities are averaged, weighted by nearness; beyond the last one its network is used alone. With a
spread, all of them are averaged, by a normal distribution of people's ratings: that predicts moves better by
0.04 bits, at the cost of all networks. The game so far matters: the input of a network are the last eight
positions, so these policies depend on histories (`of_history`), and a tree shares nothing between
transpositions. A game that begins at a position of its own is treated as if it had been there all the time.

Networks are not shipped: they are under the GPL. An argument, `config`, the flag --maia or the environment's
PRECOMP_MAIA names a folder of them, or a file. An engine that contains such a network may play as well: with
VerboseMoveStats lc0 shows the probability of each move.

Source: see `networks`. Between ratings: ours; see docs/people.md for what it is worth.

Cost: a millisecond a position and network; recent answers are remembered.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.config import networks_named
from precomp_games._support.results import Shown
from precomp_games.chess.engines.move_stats import StatsEngine
from precomp_games.chess.engines.searches import game_text
from precomp_games.chess.game import (
    ChessGame,
    ChessState,
    UnfinishedStates,
    action_of,
    check_unfinished,
)
from precomp_games.chess.model.network_input import Trail, Trails, move_places, planes_of
from precomp_games.chess.model.networks import Network

Rating = Annotated[float, checks.Ge(0.0), checks.Le(4000.0)]
"""Rating of a player."""

_BATCH = 64  # positions in one call of a network: more is not faster
_MOST_KEPT = 20_000  # answers
_LEAST_SHARE = 1e-3  # networks with smaller shares are not used
_RATING = re.compile(r"(?<!\d)(\d{3,4})(?!\d)")  # in a file's name
_SUFFIXES = (".pb.gz", ".pb")
_Name = tuple[Any, ...]  # a start position's FEN, and the actions since
WHERE = (
    "get maia-1100.pb.gz to maia-1900.pb.gz from Maia's releases (github.com/CSSLab/maia-chess) and name "
    "their folder by --maia, config(networks=...) or PRECOMP_MAIA"
)
"""Advice if there are no networks."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Networks' answer for a position.

    Attributes:
        row: {action: probability}, over all legal moves.
        score: expected score of the side to move; NaN if unknown.
    """

    row: Mapping[int, float]
    score: float = math.nan


class PeoplePolicy(Shown, openspiel_policy.Policy):
    """The play of people, given a game so far; recent answers are remembered.

    Attributes:
        of_history: true: the play depends on more than the position.
    """

    of_history = True

    def __init__(self, game: ChessGame) -> None:
        if not isinstance(game, ChessGame):
            raise ArgumentError(f"expected game to be python_chess, got {shown(str(game))}")
        super().__init__(game, [0, 1])
        self._kept: dict[_Name, Answer] = {}

    def _ask(self, part: Mapping[_Name, ChessState]) -> dict[_Name, Answer]:
        """Return the answers for some games."""
        raise NotImplementedError

    @public
    def action_probabilities_batch(self, states: UnfinishedStates) -> list[dict[int, float]]:
        """Return one {action: probability} for each state.

        Raises:
            EngineError: an engine that is asked fails.
        """
        return [dict(answer.row) for answer in self.answers(states)]

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} at one state; `player_id` can only be the side to move.

        Raises:
            EngineError: an engine that is asked fails.
        """
        return self.action_probabilities_batch(check_unfinished([state], "state", player_id))[0]

    def answers(self, states: Sequence[ChessState]) -> list[Answer]:
        """Return the answers for games so far."""
        names = [(_start_of(state), *state.history()) for state in states]
        asked = {name: state for name, state in zip(names, states, strict=True) if name not in self._kept}
        found: dict[_Name, Answer] = {}
        waiting = list(asked.items())
        for first in range(0, len(waiting), _BATCH):
            found.update(self._ask(dict(waiting[first : first + _BATCH])))
        answers = [found[name] if name in found else self._kept[name] for name in names]
        if len(self._kept) + len(found) > _MOST_KEPT:
            self._kept = {}
        self._kept.update(found)
        return answers


class HumanPolicy(PeoplePolicy):
    """The play of people of a rating, by networks.

    Attributes:
        rating, spread: of the people.
        networks: the share of each network, by its file.
    """

    @public
    def __init__(
        self,
        game: ChessGame,
        rating: Rating = 1500.0,
        networks: checks.FilePath | None = None,
        *,
        spread: Rating = 0.0,
    ) -> None:
        """Read the networks of the nearest ratings.

        Args:
            game: of chess.
            rating: of the people.
            spread: the standard deviation of their ratings; 0: all have the same.
            networks: a file, or a folder of them; None: as `config` or PRECOMP_MAIA names it.

        Raises:
            ValueError: no networks, or files that contain none.
            OSError: a file cannot be read.
        """
        super().__init__(game)
        self.rating, self.spread, self._source = rating, spread, networks_path(networks)
        self.networks = _shares(_files(self._source), rating, spread)
        self._networks = [(Network(path), share) for path, share in self.networks.items()]
        self._trails: tuple[str, Trails] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        made = functools.partial(type(self), spread=self.spread)
        return made, (self.game, self.rating, self._source)

    @public
    def evaluate_batch(self, states: UnfinishedStates) -> npt.NDArray[np.float64]:
        """Return float64[n]: White's expected score in games between such people."""
        answers = zip(states, self.answers(states), strict=True)
        return np.array([a.score if s.current_player() == 0 else 1.0 - a.score for s, a in answers])

    def _ask(self, part: Mapping[_Name, ChessState]) -> dict[_Name, Answer]:
        planes = planes_of([self._trail(name, state) for name, state in part.items()])
        legal = [state.legal_actions() for state in part.values()]
        places = [move_places(s.board, of) for s, of in zip(part.values(), legal, strict=True)]
        rows, scores = [np.zeros(len(each)) for each in legal], np.zeros(len(part))
        for network, share in self._networks:
            moves, outcomes = network.evaluate(planes)
            scores += share * (outcomes[:, 0] + 0.5 * outcomes[:, 1])
            for row, logits, of in zip(rows, moves, places, strict=True):
                odds = np.exp(logits[of].astype(np.float64) - logits[of].max())
                row += share * odds / odds.sum()
        return {
            name: Answer(dict(zip(of, row.tolist(), strict=True)), float(score))
            for name, of, row, score in zip(part, legal, rows, scores, strict=True)
        }

    def _trail(self, name: _Name, state: ChessState) -> Trail:
        start, *history = name
        if self._trails is None or self._trails[0] != start:  # a policy plays one game at a time
            self._trails = start, Trails(state.get_game().start_board)
        return self._trails[1].at(tuple(history))


class EnginePeople(PeoplePolicy):
    """The play of people, by an engine that contains a network of their moves."""

    def __init__(self, game: ChessGame, engine: StatsEngine) -> None:
        super().__init__(game)
        self._engine = engine

    def _ask(self, part: Mapping[_Name, ChessState]) -> dict[_Name, Answer]:
        texts = [game_text(state.get_game().start_board, state.moves()) for state in part.values()]
        answers = zip(part, self._engine.ask(texts), strict=True)
        return {name: Answer({action_of(m): p for m, p in row.items()}) for name, row in answers}


def _start_of(state: ChessState) -> str:
    """Return the FEN of a game's start, as in its parameters."""
    return str(state.get_game().get_parameters()["fen"])


def networks_path(given: str | os.PathLike[str] | None = None) -> str:
    """Return the path of the networks.

    Args:
        given: a file or folder; None: as `config` or PRECOMP_MAIA names it.

    Raises:
        ValueError: none is named.
    """
    if not (named := given or networks_named()):
        raise ArgumentError(f"expected networks of people's moves, got none: {WHERE}")
    return os.path.expanduser(named)


def network_ratings() -> tuple[float, float]:
    """Return the lowest and the highest rating of the networks that are named; NaN where names have none."""
    ratings = _files(networks_path())
    return min(ratings), max(ratings)


def _files(path: str) -> dict[float, str]:
    """Return files of networks by rating; NaN for a single file whose name has none."""
    if not os.path.isdir(path):
        return {_rating_of(path): path}
    found = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(_SUFFIXES))
    rated = {_rating_of(file): file for file in found if not math.isnan(_rating_of(file))}
    if not rated:
        raise ArgumentError(f"expected a folder with networks such as maia-1500.pb.gz, got {path!r}: {WHERE}")
    return rated


def _rating_of(path: str) -> float:
    found = _RATING.search(os.path.basename(path))
    return float(found[1]) if found else math.nan


def _shares(files: Mapping[float, str], rating: float, spread: float) -> dict[str, float]:
    """Return the share of each file, given files by rating; without spread, of the two nearest ratings."""
    ratings = sorted(files)
    if len(ratings) == 1:
        return {files[ratings[0]]: 1.0}
    if spread:
        odds = np.exp(-0.5 * ((np.array(ratings) - np.clip(rating, ratings[0], ratings[-1])) / spread) ** 2)
        odds[odds < _LEAST_SHARE * odds.sum()] = 0.0
        return {files[each]: float(p) for each, p in zip(ratings, odds / odds.sum(), strict=True) if p > 0.0}
    within = min(max(rating, ratings[0]), ratings[-1])
    above = next(each for each in ratings if each >= within)
    below = next(each for each in reversed(ratings) if each <= within)
    share = 0.0 if above == below else (within - below) / (above - below)
    return {files[below]: 1.0 - share, files[above]: share or 1.0}
