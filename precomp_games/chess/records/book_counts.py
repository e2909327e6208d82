"""Books as counts of moves: Polyglot files.

A file is entries of 16 bytes, big-endian, sorted: key, move, weight, learning data. One that is not sorted is
read all the same. What a weight is depends on who made the file: a number of games, or, by the usual program,
2 wins + draws, or a choice.

Files are not to be trusted: what cannot be read is left out and counted, and if nothing remains, that is an
error.
"""

from __future__ import annotations

import collections
import logging
import os
from collections.abc import Mapping
from typing import Annotated, Any

import chess
import chess.polyglot
import numpy as np
import numpy.typing as npt

from precomp_games._support.validation import ArgumentError, FilePath, one_line, one_of, public
from precomp_games.chess.game import action_of, is_legal

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
