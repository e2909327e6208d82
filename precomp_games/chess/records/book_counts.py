"""Books and databases as counts of moves: Polyglot files, and stored answers of the Lichess opening explorer.

**Polyglot.** A file is entries of 16 bytes, big-endian, sorted: key, move, weight, learning data. One that is
not sorted is read all the same. What a weight is depends on who made the file: a number of games, or, by the
usual program, 2 wins + draws, or a choice.

**Explorer.** A file is an answer as it came: JSON, or lines of JSON of which the last one counts (a player's
games are streamed so, while they are indexed). An answer does not say which position it is about, so the file
does: by its name, which is the request's `play` parameter ("e2e4,e7e5.json", "start.json" for none), or by a
field "fen" that was added. An answer lists twelve moves unless more were asked for. What remains of the
position's games is the weight of moves that are not listed. Rows count how often a move was played here; the
games of the position that it leads to count transpositions too, and are not looked at.

Files are not to be trusted: what cannot be read is left out and counted, and if nothing remains, that is an
error.
"""

from __future__ import annotations

import collections
import json
import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any

import chess
import chess.polyglot
import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import FilePath, one_of, public
from precomp_games._support.checks import ArgumentError
from precomp_games._support.messages import one_line
from precomp_games.chess.game import action_of, is_legal
from precomp_games.chess.records.game_records import position_hash

POLYGLOT_WEIGHTS = ("frequency", "score", "uniform")
"""What a Polyglot file's weights are taken for."""
PolyglotWeights = Annotated[str, one_of(POLYGLOT_WEIGHTS)]
"""One of `POLYGLOT_WEIGHTS`."""

REPEATED = "entries that repeat another, weights added up"
"""What is strange of a Polyglot file."""
UNWEIGHTED = "moves of weight 0, which are not played"
"""Another such thing."""

_ENTRY = np.dtype([("key", ">u8"), ("move", ">u2"), ("weight", ">u2"), ("learn", ">u4")])
_MAX_BOOK = 1 << 30  # bytes
_MAX_ANSWER = 1 << 22  # bytes of one answer
_MAX_ANSWERS = 1_000_000
_MAX_COUNT = 10**12
_OUTCOMES = ("white", "draws", "black")

_LOGGER = logging.getLogger(__name__)


def warn_of(path: str | os.PathLike[str], wrong: Mapping[str, int]) -> None:
    """Says in one line what is wrong with a file, where something is."""
    if wrong:
        what = "; ".join(f"{count} {reason}" for reason, count in wrong.items())
        _LOGGER.warning("%s", one_line(f"{os.fspath(path)}: {what}"))


class PolyglotCounts:
    """The moves of a Polyglot book, as if they had been played so often.

    Attributes:
        weights: how a file's weights are read. "frequency": numbers of games; a move of weight 0 is deleted.
            "score": 2 wins + draws, which is the number of games where both sides score the same; a move of
            weight 0 was played, once, and lost. "uniform": every move of the book counts 1.
        left_out: what could not be read, by reason.
        strange: what is not as the format has it, and is read as it says here, by what it is.
    """

    @public
    def __init__(self, path: FilePath, weights: PolyglotWeights = "frequency") -> None:
        """Reads the file.

        Raises:
            ValueError: no path, other weights, or a file without an entry, or larger than a gigabyte.
            OSError: the file cannot be read.
        """
        self.weights = weights
        size = os.path.getsize(path)
        if size > _MAX_BOOK:
            raise ArgumentError(f"expected a book of at most {_MAX_BOOK} bytes, got {path!r}")
        with open(path, "rb") as file:
            data = file.read(size)  # memory for as many bytes is taken at once
        if len(data) < _ENTRY.itemsize:
            raise ArgumentError(f"expected Polyglot entries of 16 bytes, got {len(data)} bytes in {path!r}")
        self._take(data)

    def as_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What `of_arrays` makes the same of."""
        entries = np.zeros(len(self), _ENTRY)
        entries["key"], entries["move"], entries["weight"] = self._keys, self._moves, self._weights
        return {"entries": np.frombuffer(entries.tobytes(), np.uint8)}

    @staticmethod
    @public
    def of_arrays(weights: PolyglotWeights, entries: npt.NDArray[np.uint8]) -> PolyglotCounts:
        """A book that was read already.

        Raises:
            ValueError: the arrays are not those of `as_arrays`.
        """
        made = PolyglotCounts.__new__(PolyglotCounts)
        made.weights = weights
        made._take(entries.tobytes())
        return made

    def _take(self, data: bytes) -> None:
        self.left_out: collections.Counter[str] = collections.Counter()
        if len(data) % _ENTRY.itemsize:
            self.left_out["an entry that breaks off"] += 1
        entries = np.frombuffer(data, _ENTRY, len(data) // _ENTRY.itemsize)
        given = entries["key"].astype(np.uint64)
        order = np.argsort(given, kind="stable")
        self._keys: npt.NDArray[np.uint64] = given[order]
        self._moves: npt.NDArray[np.uint16] = entries["move"][order].astype(np.uint16)
        self._weights: npt.NDArray[np.uint16] = entries["weight"][order].astype(np.uint16)
        self.strange = self._strange(given)

    def _strange(self, given: npt.NDArray[np.uint64]) -> collections.Counter[str]:
        """What is not as the format has it, where keys were given in this order."""
        order = np.lexsort((self._moves, self._keys))
        moves, weights = self._moves[order], self._weights[order]
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
        return +collections.Counter(found)  # without what there is none of

    def __len__(self) -> int:
        """Entries."""
        return len(self._keys)

    @public
    def at(self, board: chess.Board) -> tuple[dict[int, float], float]:
        """Weights by action at a position; no weight is that of moves which are not listed.

        Raises:
            ValueError: no board.
        """
        key = np.uint64(chess.polyglot.zobrist_hash(board))
        first = int(np.searchsorted(self._keys, key))
        last = int(np.searchsorted(self._keys, key, side="right"))
        least = 1 if self.weights == "score" else 0
        totals: dict[int, int] = {}  # first, since a file may have an entry any number of times
        for raw, weight in zip(
            self._moves[first:last].tolist(), self._weights[first:last].tolist(), strict=True
        ):
            totals[raw] = totals.get(raw, 0) + max(weight, least)
        counts: dict[int, float] = {}
        for raw, total in totals.items():
            move = _move_of(board, raw)
            if move is not None:  # keys collide, and files hold what they like
                counts[move] = 1.0 if self.weights == "uniform" else counts.get(move, 0.0) + total
        return counts, 0.0


def _move_of(board: chess.Board, raw: int) -> int | None:
    """A Polyglot move's action, None if it is not legal; castling is king takes rook there."""
    promotion = raw >> 12
    if promotion > 4:
        return None
    move = chess.Move(raw >> 6 & 63, raw & 63, promotion + 1 if promotion else None)
    return _action(board, move.uci()) if move.from_square != move.to_square else None


def _action(board: chess.Board, uci: str) -> int | None:
    """A legal move's action, castling as king takes rook included; None for all else."""
    try:
        move = board.parse_uci(uci)
    except ValueError:
        return None
    return action_of(move) if move and not move.drop and is_legal(board, move) else None


class ExplorerCounts:
    """Stored answers of the Lichess opening explorer.

    Attributes:
        left_out: files that could not be read, and moves that are not legal, by reason.
    """

    @public
    def __init__(self, folder: FilePath) -> None:
        """Reads all files in the folder whose names end in .json or .ndjson.

        Raises:
            ValueError: no path, or no file that can be read; the error says why.
            OSError: the folder cannot be read.
        """
        self.left_out: collections.Counter[str] = collections.Counter()
        self._found: dict[int, tuple[dict[int, float], float]] = {}
        for file in sorted(pathlib.Path(folder).iterdir())[:_MAX_ANSWERS]:
            if file.suffix.lower() in (".json", ".ndjson"):
                try:
                    self._read(file)
                except _UnreadableError as reason:
                    self.left_out[str(reason)] += 1
        if not self._found:
            why = "; ".join(f"{count}: {reason}" for reason, count in self.left_out.most_common(3))
            raise ArgumentError(
                f"expected .json or .ndjson files of the opening explorer in {folder!r}, got none that "
                f"can be read{f' ({why})' if why else ''}"
            )

    def __len__(self) -> int:
        """Positions."""
        return len(self._found)

    @public
    def at(self, board: chess.Board) -> tuple[dict[int, float], float]:
        """Games by action at a position, and the games in which a move that is not listed was played.

        Raises:
            ValueError: no board.
        """
        return self._found.get(position_hash(board), ({}, 0.0))

    def as_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What `of_arrays` makes the same of."""
        rows = [(key, *row) for key, (weights, _) in self._found.items() for row in weights.items()]
        return {
            "keys": np.array([row[0] for row in rows], np.uint64),
            "actions": np.array([row[1] for row in rows], np.uint16),
            "weights": np.array([row[2] for row in rows], np.float64),
            "positions": np.array(list(self._found), np.uint64),
            "rest": np.array([rest for _, rest in self._found.values()], np.float64),
        }

    @staticmethod
    @public
    def of_arrays(
        keys: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.uint16],
        weights: npt.NDArray[np.float64],
        positions: npt.NDArray[np.uint64],
        rest: npt.NDArray[np.float64],
    ) -> ExplorerCounts:
        """Answers that were read already.

        Raises:
            ValueError: the arrays are not those of `as_arrays`.
        """
        made = ExplorerCounts.__new__(ExplorerCounts)
        made.left_out = collections.Counter()
        if not all((np.isfinite(numbers) & (numbers >= 0.0)).all() for numbers in (weights, rest)):
            raise ArgumentError("expected numbers of games, got others")
        pairs = zip(positions.tolist(), rest.tolist(), strict=True)
        made._found = {key: ({}, others) for key, others in pairs}
        for key, action, weight in zip(keys.tolist(), actions.tolist(), weights.tolist(), strict=True):
            made._found.setdefault(key, ({}, 0.0))[0][action] = weight
        return made

    def _read(self, file: pathlib.Path) -> None:
        if not file.is_file():
            raise _UnreadableError("no file")
        if file.stat().st_size > _MAX_ANSWER:
            raise _UnreadableError("a file too large for an answer")
        answer = _answer(file.read_bytes().decode("utf-8", errors="replace"))
        board = _board(file.stem, answer)
        rows = answer.get("moves")
        if not isinstance(rows, list):
            raise _UnreadableError("no list of moves")
        weights: dict[int, float] = {}
        for row in rows:
            if not isinstance(row, Mapping) or not isinstance(row.get("uci"), str):
                raise _UnreadableError("a row without a move")
            games = _games(row)
            action = _action(board, row["uci"])
            if action is None:
                self.left_out["a move that is not legal at its position"] += 1
            elif games:
                weights[action] = weights.get(action, 0.0) + games
        # Answers that only list moves have no counts of their own.
        known = any(name in answer for name in _OUTCOMES)
        rest = max(0.0, _games(answer) - sum(weights.values())) if known else 0.0
        key = position_hash(board)
        if key in self._found:
            raise _UnreadableError("a position that another file has")
        self._found[key] = weights, rest


class _UnreadableError(Exception):
    """Why a file is left out."""


def _answer(text: str) -> dict[str, Any]:
    """The JSON object that is the text, or its last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    for candidate in (text, lines[-1] if lines else ""):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):  # RecursionError: brackets in brackets
            continue
        if isinstance(value, dict):
            return value
    raise _UnreadableError("no JSON object")


def _board(name: str, answer: Mapping[str, Any]) -> chess.Board:
    """The position that an answer is about."""
    if "fen" in answer:
        fen = answer["fen"]
        try:
            board = chess.Board(fen if isinstance(fen, str) and len(fen) < 200 else "")
        except ValueError:
            raise _UnreadableError("a FEN that cannot be read") from None
        if not board.is_valid():
            raise _UnreadableError("a FEN of no valid position")
        return board
    board = chess.Board()
    for move in name.split(",") if name != "start" else ():
        try:
            board.push_uci(move)
        except ValueError:
            raise _UnreadableError('a name that is neither "start" nor moves, and no "fen"') from None
    return board


def _games(row: Mapping[str, Any]) -> float:
    counts = [row.get(name, 0) for name in _OUTCOMES]
    if not all(type(count) is int and 0 <= count <= _MAX_COUNT for count in counts):
        raise _UnreadableError("counts that are no numbers of games")
    return float(sum(counts))
