"""Weighted counts of the moves played at each position, and the policy they give with a prior.

Let n(m) be the weight of the games in which move m was played at a position, by whatever order of moves, and
n their sum. A `CountsPolicy` plays

    P(m | position) = (n(m) + alpha q(m | position)) / (n + alpha),

where q is another policy, the prior: a population's counts, backed off to an engine's, and so on. alpha is
the number of games that the prior is worth. At infinity the policy is the prior; at 0 it is the frequencies,
and the prior where there are none.

The weight of a game is 2^(-age / half-life), times 2^(-distance / scale) for the mover's distance in rating,
times a factor for time controls. A game of unknown date has weight 0 if the half-life is finite; an unknown
rating or time control makes no difference.

Counts are three sorted arrays of 18 bytes an entry, by `position_hash`. Games are added in batches, so that
memory grows with the number of different moves, not of games.

Polyglot books count as well. A file is entries of 16 bytes, big-endian, sorted: key, move, weight, learning
data. Unsorted files are read all the same. The meaning of a weight depends on who made the file: a number of
games, or, by the usual program, 2 wins + draws, or a choice. Files are not trusted: entries that cannot be
read are left out and counted, and it is an error if none remains.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import itertools
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol

import chess
import chess.polyglot
import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.results import Shown
from precomp_games.chess.data.game_records import MAX_PLIES, SPEEDS, GameRecord, position_hash, read_games
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.game import ChessGame, ChessState, UnfinishedStates, action_of, check_unfinished
from precomp_games.policies.mixtures import refuse_mixture_inside
from precomp_games.policies.rows import PolicyLike, as_batch_policy, is_of_history

DEFAULT_PLIES = 60
"""Half-moves of a game that count by default."""

Floats = npt.NDArray[np.float64]
_BATCH = 20_000  # games
_ROWS = 1 << 20  # entries that wait to be added
_REFERENCE = 2000.0  # ages are counted from here until the newest game is known
_MOST = 1000.0  # doublings
_STATES = 512  # in one call of a policy
_NOTHING = 1e-300  # games; dividing by so few overflows


@dataclasses.dataclass(frozen=True)
class GameTable:
    """Games as flat arrays: m half-moves of g games, in their order.

    Attributes:
        keys: uint64[m], `position_hash` before each half-move.
        actions: uint16[m], as `ChessGame` numbers moves.
        game: int32[m], number of each half-move's game.
        own: bool[m], whether the mover is a player whose moves are counted.
        white: bool[m], whether White moves.
        years: float64[g], decimal; NaN if unknown.
        ratings: float64[g, 2], of White and Black; NaN if unknown.
        speeds: int8[g], index in `SPEEDS`; -1 if unknown.
        sides: bool[g, 2], whether White and Black are players that were asked for.
        number: int64[g], where each game stands in its file, see `GameRecord`.
    """

    keys: npt.NDArray[np.uint64]
    actions: npt.NDArray[np.uint16]
    game: npt.NDArray[np.int32]
    own: npt.NDArray[np.bool_]
    white: npt.NDArray[np.bool_]
    years: Floats
    ratings: Floats
    speeds: npt.NDArray[np.int8]
    sides: npt.NDArray[np.bool_]
    number: npt.NDArray[np.int64]

    @property
    def num_games(self) -> int:
        """Number of games, g."""
        return len(self.years)

    @property
    def ply(self) -> npt.NDArray[np.int64]:
        """int64[m]: number of half-moves before each half-move in its game."""
        return np.arange(len(self.game)) - np.searchsorted(self.game, self.game)

    def first(self, plies: int) -> GameTable:
        """Return the same games without their later half-moves."""
        kept, of_moves = self.ply < plies, ("keys", "actions", "game", "own", "white")
        return dataclasses.replace(self, **{name: getattr(self, name)[kept] for name in of_moves})

    def frequent(self, least: int) -> GameTable:
        """Return these games, in which only moves at positions of at least `least` games count."""
        own = np.flatnonzero(self.own)
        visits = np.unique(np.stack([self.keys[own], self.game[own].astype(np.uint64)], axis=1), axis=0)
        keys, games = np.unique(visits[:, 0], return_counts=True)
        kept = np.zeros(len(self.own), bool)
        kept[own[games[np.searchsorted(keys, self.keys[own])] >= least]] = True
        return dataclasses.replace(self, own=kept)

    def select(self, games: npt.NDArray[np.bool_]) -> GameTable:
        """Return the games for which `games`, bool[g], is true."""
        moves = games[self.game]
        number = np.cumsum(games, dtype=np.int32) - 1
        of_moves = (self.keys[moves], self.actions[moves], number[self.game[moves]], self.own[moves])
        of_games = (self.years[games], self.ratings[games], self.speeds[games])
        return GameTable(*of_moves, self.white[moves], *of_games, self.sides[games], self.number[games])

    @staticmethod
    def join(tables: Iterable[GameTable]) -> GameTable:
        """Return all games of several tables."""
        parts = tuple(tables) or (_table([]),)
        columns = {name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])}
        first = np.cumsum([0, *(part.num_games for part in parts[:-1])], dtype=np.int32)
        columns["game"] += np.repeat(first, [len(part.game) for part in parts])
        return GameTable(**columns)

    def own_states(self) -> dict[int, ChessState]:
        """Return a state at each position in which a half-move counts, by `position_hash`.

        Each is the first one of the table; positions in which the game is over have none.

        Raises:
            ValueError: games that do not begin at the usual position.
        """
        root = ChessGame({"max_plies": MAX_PLIES}).new_initial_state()
        states: dict[int, ChessState] = {}
        state, current = root, -1
        columns = (self.keys, self.actions, self.game, self.own)
        for key, action, game, own in zip(*(column.tolist() for column in columns), strict=True):
            if game != current:
                state, current = root.clone(), game
            if state.is_terminal():
                continue  # for example where people have played on after a king was lost
            if own:
                states.setdefault(key, state.clone())
            state.apply_action(action)
        return states


def game_tables(records: Iterable[GameRecord], batch: int = _BATCH) -> Iterator[GameTable]:
    """Yield games as tables of `batch` games, in which the moves of the players that were asked for count."""
    rest = iter(records)
    while held := list(itertools.islice(rest, batch)):
        yield _table(held)


def _table(records: Sequence[GameRecord]) -> GameTable:
    keys, actions = array.array("Q"), array.array("H")
    own, white = bytearray(), bytearray()
    for record in records:
        keys.extend(record.keys)
        actions.extend(record.actions)
        movers = [record.mover(ply) for ply in range(len(record.actions))]
        own.extend(color in record.own for color in movers)
        white.extend(movers)
    lengths = [len(record.actions) for record in records]
    return GameTable(
        keys=np.array(keys, np.uint64),
        actions=np.array(actions, np.uint16),
        game=np.repeat(np.arange(len(records), dtype=np.int32), lengths),
        own=np.frombuffer(bytes(own), np.bool_),
        white=np.frombuffer(bytes(white), np.bool_),
        years=np.array([r.year for r in records], np.float64),  # None becomes NaN
        ratings=np.array([r.ratings for r in records], np.float64).reshape(len(records), 2),
        speeds=np.array([SPEEDS.index(r.speed) if r.speed else -1 for r in records], np.int8),
        sides=np.array([[c in r.own for c in chess.COLORS] for r in records], bool).reshape(len(records), 2),
        number=np.array([r.number for r in records], np.int64),
    )


@dataclasses.dataclass(frozen=True)
class GameSelection:
    """A selection of a file's games, and of the moves that count in them.

    Attributes:
        path: the file.
        player: the player whose games and moves count, see `read_games`; None: everyone.
        without: a player whose games are left out.
        max_plies: half-moves of a game that count.
        before: a decimal year. If it is finite, only games that are known to be older count.
        copies: whether these are a match's games: then copies of a game, and games from another start
            position, count as well.
        least: games in which a position must have come up for its moves to count; rarer positions are left
            to the prior.
    """

    path: str
    player: str | None = None
    without: str | None = None
    max_plies: int = DEFAULT_PLIES
    before: float = math.inf
    copies: bool = False
    least: int = 1

    def records(self, report: GameReport) -> Iterator[GameRecord]:
        """Read the games, newer ones included, and fill the report.

        Raises:
            ValueError, OSError: see `read_games`.
        """
        how: dict[str, Any] = {"setups": self.copies, "copies": self.copies, "report": report}
        return read_games(self.path, self.player, without=self.without, max_plies=self.max_plies, **how)

    @public
    def table(self, report: GameReport | None = None) -> GameTable:
        """Read the games, newer ones included, into one table, and fill the report.

        Raises:
            ValueError: see `read_games`; or no games.
            OSError: the file cannot be read.
        """
        report = GameReport() if report is None else report
        table = GameTable.join(game_tables(self.records(report)))
        self.check_read(report)
        return table

    def check_read(self, report: GameReport) -> None:
        """Raise ArgumentError if a file had no such games."""
        if not report.games:
            raise ArgumentError(f"expected games in {self.path!r}, got none ({report})")


@public
@dataclasses.dataclass(frozen=True)
class GameWeights:
    """Settings of a game's weight.

    Attributes:
        half_life: years in which a game's weight is halved; infinity: age makes no difference.
        as_of: decimal year at which a game's age is 0, as it is for newer ones; None: the newest game's.
        rating: rating from which the mover's distance is taken; None: ratings make no difference.
        rating_scale: distance that halves the weight.
        speed: the preferred time control, one of `SPEEDS`; "": it makes no difference.
        other_speeds: factor of games at other time controls, from 0 to 1.
    """

    half_life: Annotated[float, checks.Gt(0.0), checks.INFINITE] = math.inf
    as_of: float | None = None
    rating: float | None = None
    rating_scale: Annotated[float, checks.Gt(0.0), checks.INFINITE] = 100.0
    speed: Annotated[str, checks.one_of(("", *SPEEDS))] = ""
    other_speeds: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] = 0.0

    def base(self, table: GameTable) -> Floats:
        """Return float64[m]: the weight of each half-move, but for its game's age."""
        weights = np.ones(len(table.keys))
        if self.rating is not None:
            rating = table.ratings[table.game, np.where(table.white, 0, 1)]
            distance = np.nan_to_num(np.abs(rating - self.rating) / self.rating_scale)
            weights *= np.exp2(-distance)
        if self.speed:
            other = (table.speeds >= 0) & (table.speeds != SPEEDS.index(self.speed))
            weights *= np.where(other[table.game], self.other_speeds, 1.0)
        return weights


class MoveSource(Protocol):
    """A source of how often moves were played: games, or a book."""

    def at(self, board: chess.Board) -> Mapping[int, float]:
        """Return weights by action at a position."""


Entries = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16], Floats]
"""Keys, actions and weights."""


class MoveCounts:
    """Weights of moves by position.

    Attributes:
        keys: uint64[n], ascending.
        actions: uint16[n], ascending at each key.
        weights: float64[n], positive.
    """

    def __init__(
        self, keys: npt.NDArray[np.uint64], actions: npt.NDArray[np.uint16], weights: Floats
    ) -> None:
        """Add up entries, in any order.

        Raises:
            ValueError: arrays of other kinds or lengths, or weights that are not positive and finite.
        """
        given = ((keys, np.uint64), (actions, np.uint16), (weights, np.float64))
        plain = all(each.dtype == kind and each.shape == (len(keys),) for each, kind in given)
        if not plain or not (np.isfinite(weights) & (weights > 0.0)).all():
            got = ", ".join(shown(each) for each, _ in given)
            raise ArgumentError(f"expected uint64[n], uint16[n] and n positive numbers, got {got}")
        self.keys, self.actions, self.weights = _added([(keys, actions, weights)])

    def __len__(self) -> int:
        """Return the number of entries: moves at positions."""
        return len(self.keys)

    def as_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays from which `MoveCounts(**arrays)` makes the same counts."""
        return {"keys": self.keys, "actions": self.actions, "weights": self.weights}

    @staticmethod
    def of_tables(tables: Iterable[GameTable], weights: GameWeights | None = None) -> MoveCounts:
        """Count the moves of games, by the players whose moves count."""
        weights = weights or GameWeights()
        parts: list[Entries] = [(np.empty(0, np.uint64), np.empty(0, np.uint16), np.empty(0))]
        newest = -math.inf
        for table in tables:
            factor = weights.base(table) * _younger(weights, table)[table.game]
            counted = table.own & (factor > 0.0)
            newest = max(newest, np.fmax.reduce(table.years, initial=-math.inf))
            parts.append(_added([(table.keys[counted], table.actions[counted], factor[counted])]))
            if sum(len(part[0]) for part in parts[1:]) > max(_ROWS, len(parts[0][0]) // 2):
                parts = [_added(parts)]
        keys, actions, total = _added(parts)
        if math.isfinite(weights.half_life) and len(total):
            until = newest if weights.as_of is None else weights.as_of
            total *= 2.0 ** float(np.clip((_REFERENCE - until) / weights.half_life, -_MOST, _MOST))
            kept = total > 0.0
            keys, actions, total = keys[kept], actions[kept], total[kept]
        return MoveCounts(keys, actions, total)

    def at(self, board: chess.Board) -> dict[int, float]:
        """Return weights by action at a position."""
        key = np.uint64(position_hash(board))
        rows = slice(*(int(np.searchsorted(self.keys, key, side)) for side in ("left", "right")))
        return dict(zip(self.actions[rows].tolist(), self.weights[rows].tolist(), strict=True))


def _younger(weights: GameWeights, table: GameTable) -> Floats:
    """Return float64[g]: 2 to the power of the number of half-lives since the reference year."""
    if not math.isfinite(weights.half_life):
        return np.ones(table.num_games)
    years = table.years if weights.as_of is None else np.minimum(table.years, weights.as_of)
    doublings = np.clip((years - _REFERENCE) / weights.half_life, -_MOST, _MOST)
    return np.where(np.isnan(years), 0.0, np.exp2(doublings))


def _added(parts: Sequence[Entries]) -> Entries:
    """Return all entries, sorted by key and action, each pair once."""
    keys, actions, weights = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((actions, keys))
    keys, actions, weights = keys[order], actions[order], weights[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (actions[1:] != actions[:-1])
    starts = np.flatnonzero(new)
    return keys[starts], actions[starts], np.add.reduceat(weights, starts) if len(starts) else weights


class CountsPolicy(Shown, openspiel_policy.Policy):
    """Plays counted moves in proportion to their weights, with a prior that is worth `alpha` games.

    Attributes:
        counts: the counts.
        alpha: number of games that the prior is worth, from 0 to infinity.
        prior: the policy behind the counts; None: any legal move, equally likely.
    """

    @public
    def __init__(
        self,
        game: ChessGame,
        counts: MoveSource,
        alpha: Annotated[float, checks.Ge(0.0), checks.INFINITE] = 1.0,
        prior: PolicyLike | None = None,
    ) -> None:
        """Make the policy."""
        super().__init__(game, [0, 1])
        refuse_mixture_inside(prior, "prior")
        self.counts, self.alpha, self.prior = counts, alpha, prior
        self.of_history = is_of_history(prior)
        self._ask = _any_move if prior is None else as_batch_policy(prior)

    def prior_share(self, state: ChessState) -> float:
        """Return the prior's share of the policy at a state: alpha / (n + alpha), of n games there."""
        games = math.fsum(self.counts.at(state.board).values())
        return 1.0 if games == 0.0 or math.isinf(self.alpha) else self.alpha / (games + self.alpha)

    @public
    def action_probabilities_batch(self, states: UnfinishedStates) -> list[dict[int, float]]:
        """Return one {action: probability} for each state."""
        counted = []
        for state in states:
            legal = set(state.legal_actions())  # two positions may share a key, and files are not trusted
            counted.append({a: w for a, w in self.counts.at(state.board).items() if a in legal and w > 0.0})
        totals = [math.fsum(weights.values()) for weights in counted]
        behind = [k for k, total in enumerate(totals) if self.alpha > 0.0 or total == 0.0]
        rows = self._ask([states[k] for k in behind]) if behind else []
        priors = dict(zip(behind, rows, strict=True))
        return [
            _smoothed(weights, totals[k], self.alpha, priors.get(k, {})) for k, weights in enumerate(counted)
        ]

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} at one state; `player_id` can only be the side to move."""
        return self.action_probabilities_batch(check_unfinished([state], "state", player_id))[0]


def _any_move(states: Sequence[ChessState]) -> list[dict[int, float]]:
    """Return the uniform policy at each state."""
    return [dict.fromkeys(actions, 1.0 / len(actions)) for actions in (s.legal_actions() for s in states)]


def _smoothed(
    weights: Mapping[int, float], total: float, alpha: float, prior: Mapping[int, float]
) -> dict[int, float]:
    """Return P of the module's docstring."""
    if math.isinf(alpha) or total + alpha < _NOTHING:
        return dict(prior)
    whole = total + alpha
    row = {action: weight / whole for action, weight in weights.items()}
    if alpha > 0.0:
        for action, q in prior.items():
            row[action] = row.get(action, 0.0) + alpha * q / whole
    return row


def predicted_rows(
    policy: PolicyLike, table: GameTable, states: dict[int, ChessState] | None = None
) -> list[Mapping[int, float]]:
    """Return a policy's probabilities before each half-move of a table that counts (`own`), in their order.

    Each position is asked for once. If the game is over, a row is empty.

    Args:
        policy: the policy.
        table: the games.
        states: `own_states()` of it, or of a table that it is from, if they are at hand.

    Raises:
        ValueError: games that do not begin at the usual position.
    """
    ask = as_batch_policy(policy)
    states = table.own_states() if states is None else states
    keys = table.keys[table.own].tolist()
    asked = [key for key in dict.fromkeys(keys) if key in states]
    rows: dict[int, Mapping[int, float]] = {}
    for first in range(0, len(asked), _STATES):
        part = asked[first : first + _STATES]
        rows.update(zip(part, ask([states[key] for key in part]), strict=True))
    return [rows.get(key, {}) for key in keys]


PolyglotWeights = Annotated[str, checks.one_of(("frequency", "score", "uniform"))]
"""The meaning of a Polyglot file's weights."""

REPEATED = "entries that repeat another, weights added up"
"""An irregularity of a Polyglot file."""
UNWEIGHTED = "moves of weight 0, which are not played"
"""Another irregularity."""

_ENTRY = np.dtype([("key", ">u8"), ("move", ">u2"), ("weight", ">u2"), ("learn", ">u4")])
_MAX_BOOK = 1 << 30  # bytes

_LOGGER = logging.getLogger(__name__)


def warn_of(path: str | os.PathLike[str], wrong: Mapping[str, int]) -> None:
    """Log in one line what is wrong with a file, if anything is."""
    if wrong:
        what = "; ".join(f"{count} {reason}" for reason, count in wrong.items())
        _LOGGER.warning("%s", one_line(f"{os.fspath(path)}: {what}"))


class PolyglotCounts:
    """The moves of a Polyglot book, counted as if they had been played.

    Attributes:
        weights: how a file's weights are read. "frequency": numbers of games; a move of weight 0 is deleted.
            "score": 2 wins + draws, which is the number of games where both sides score the same; a move of
            weight 0 was played, once, and lost. "uniform": every move of the book counts 1.
        left_out: number of entries that could not be read, by reason.
        strange: number of irregularities that were read all the same, by description.
    """

    @public
    def __init__(self, data: bytes, weights: PolyglotWeights = "frequency") -> None:
        """Sort a file's entries."""
        self.weights = weights
        self.left_out: collections.Counter[str] = collections.Counter()
        if len(data) % _ENTRY.itemsize:
            self.left_out["an entry that breaks off"] += 1
        given = np.frombuffer(data, _ENTRY, len(data) // _ENTRY.itemsize)
        keys = given["key"].astype(np.uint64)
        order = np.argsort(keys, kind="stable")
        self._keys: npt.NDArray[np.uint64] = keys[order]
        self._entries = given[order]
        self.strange = self._strange(keys)

    @staticmethod
    @public
    def read(path: checks.FilePath, weights: PolyglotWeights = "frequency") -> PolyglotCounts:
        """Read the book in a file.

        Raises:
            ValueError: a file without an entry, or larger than a gigabyte.
            OSError: the file cannot be read.
        """
        size = os.path.getsize(path)
        if size > _MAX_BOOK:
            raise ArgumentError(f"expected a book of at most {_MAX_BOOK} bytes, got {path!r}")
        with open(path, "rb") as file:
            data = file.read(size)  # allocates as many bytes at once
        if len(data) < _ENTRY.itemsize:
            raise ArgumentError(f"expected Polyglot entries of 16 bytes, got {len(data)} bytes in {path!r}")
        return PolyglotCounts(data, weights)

    def as_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the entries as bytes, with learning data of 0, which nobody reads."""
        entries = self._entries.copy()
        entries["learn"] = 0
        return {"entries": np.frombuffer(entries.tobytes(), np.uint8)}

    def _strange(self, given: npt.NDArray[np.uint64]) -> collections.Counter[str]:
        """Count a file's departures from the format; `given` are its keys in the file's order."""
        moves, weights = self._entries["move"], self._entries["weight"]
        order = np.lexsort((moves, self._keys))
        moves, weights = moves[order], weights[order]
        another = self._keys[1:] != self._keys[:-1]  # position, or move
        distinct = another | (moves[1:] != moves[:-1])
        most = [  # the largest weight of each move, and of each position
            np.maximum.reduceat(weights, np.flatnonzero(np.append(True, parts))) if len(weights) else weights
            for parts in (distinct, another)
        ]
        deleted, unplayed = (int((each == 0).sum() * (self.weights == "frequency")) for each in most)
        found = {
            "entries not sorted by their keys, found all the same": int((given[1:] < given[:-1]).sum()),
            REPEATED: int((~distinct).sum()),
            UNWEIGHTED: deleted,
            "positions without other moves than these": unplayed,
        }
        return +collections.Counter(found)  # without counts of 0

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._keys)

    def at(self, board: chess.Board) -> dict[int, float]:
        """Return weights by action at a position."""
        key = np.uint64(chess.polyglot.zobrist_hash(board))
        rows = slice(*(int(np.searchsorted(self._keys, key, side)) for side in ("left", "right")))
        least = 1 if self.weights == "score" else 0
        totals: dict[int, int] = {}  # first, since a file may have an entry any number of times
        for _, raw, weight, _ in self._entries[rows].tolist():
            totals[raw] = totals.get(raw, 0) + max(weight, least)
        counts: dict[int, float] = {}
        for raw, total in totals.items():
            action = _action(board, raw)
            if action is not None:  # keys collide, and files are not trusted
                counts[action] = 1.0 if self.weights == "uniform" else counts.get(action, 0.0) + total
        return counts


def _action(board: chess.Board, raw: int) -> int | None:
    """Return a Polyglot move's action, None if it is not legal; castling is king takes rook there."""
    promotion, origin, target = raw >> 12, raw >> 6 & 63, raw & 63
    if promotion > 4 or origin == target:
        return None
    try:
        return action_of(
            board.parse_uci(chess.Move(origin, target, promotion + 1 if promotion else None).uci())
        )
    except ValueError:
        return None
