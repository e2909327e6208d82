"""Replays moves from the usual start from their text, in a fifth of python-chess's time.

Most of the time of reading a large file goes into finding the moves that words such as "Nf3" stand for, and
into the boards after them. Here a board is a few masks. A word's candidates are the pieces of its kind that
reach the target, and a move is legal if the king is not attacked after it. Anything uncertain (a word that
fits no legal move, or two; one in long notation) is left to python-chess, and nothing is returned. Results
equal python-chess's, move by move and position by position.

Source: attacks of sliding pieces are python-chess's tables. Cost: some ten microseconds a half-move.
"""

from __future__ import annotations

import functools
import hashlib
import re
import struct
from collections.abc import Sequence

import chess

_PACKED = struct.Struct("<9Qbb")
_SAN = re.compile(r"([KQRBN]?)([a-h]?)([1-8]?)x?([a-h][1-8])(?:=([QRBN]))?")
_PAWN, _KNIGHT, _BISHOP, _ROOK, _QUEEN, _KING = range(1, 7)
_START = (
    *(chess.BB_RANK_2 | chess.BB_RANK_7, chess.BB_B1 | chess.BB_G1 | chess.BB_B8 | chess.BB_G8),
    *(chess.BB_C1 | chess.BB_F1 | chess.BB_C8 | chess.BB_F8, chess.BB_CORNERS),
    *(chess.BB_D1 | chess.BB_D8, chess.BB_E1 | chess.BB_E8),
)
# By the king's target: the rook's square, its target, squares that must be empty, and the king's way.
_CASTLING = {
    king: (rook, goes, sum(1 << k for k in range(min(rook, e) + 1, max(rook, e))), (e, goes))
    for e in (chess.E1, chess.E8)
    for king, rook, goes in ((e + 2, e + 3, e + 1), (e - 2, e - 4, e - 1))
}


def packed_hash(*fields: int) -> int:
    """Return 64 bits of a position.

    Args:
        fields: masks of pawns, knights, bishops, rooks, queens, kings, White and Black, and of the rooks that
            may castle; whether White moves; the square where a pawn can be captured en passant, or -1.
    """
    return int.from_bytes(hashlib.blake2b(_PACKED.pack(*fields), digest_size=8).digest(), "little")


@functools.lru_cache(1 << 14)
def _word(san: str) -> tuple[int, int, int, int] | None:
    """Return a word's piece, target, mask of origins, and promotion; None if it is not read here."""
    match = _SAN.fullmatch(san)
    if match is None:
        return None
    piece, file, rank, target, promoted = match.groups()
    if not piece and rank:
        return None  # "e2e4" is a move of any piece
    to = chess.parse_square(target)
    origins = chess.BB_ALL
    if file or not piece:  # a pawn's capture has its file
        origins &= chess.BB_FILES[chess.FILE_NAMES.index(file) if file else chess.square_file(to)]
    if rank:
        origins &= chess.BB_RANKS[int(rank) - 1]
    kinds = " PNBRQK"
    return kinds.index(piece or "P"), to, origins, kinds.index(promoted) if promoted else 0


def _attacks(kind: int, square: int, occupied: int) -> int:
    """Return the squares that a piece other than a pawn attacks from a square."""
    if kind == _KNIGHT:
        return chess.BB_KNIGHT_ATTACKS[square]
    if kind == _KING:
        return chess.BB_KING_ATTACKS[square]
    found = 0
    if kind != _ROOK:
        found = chess.BB_DIAG_ATTACKS[square][chess.BB_DIAG_MASKS[square] & occupied]
    if kind != _BISHOP:
        found |= chess.BB_RANK_ATTACKS[square][chess.BB_RANK_MASKS[square] & occupied]
        found |= chess.BB_FILE_ATTACKS[square][chess.BB_FILE_MASKS[square] & occupied]
    return found


def replay(sans: Sequence[str]) -> tuple[list[int], list[int]] | None:
    """Return `position_hash` before each of some moves, and the moves as `ChessGame` numbers them.

    Args:
        sans: moves from the usual start, without signs of check, mate and judgment.

    Returns:
        None if one of them is not certain to be a legal move.
    """
    board = _Board()
    keys, actions = [], []
    for san in sans:
        keys.append(board.key())
        action = board.castled(san) if san[0] == "O" else board.moved(san)
        if action is None:
            return None
        actions.append(action)
    return keys, actions


class _Board:
    """A position, as masks.

    Attributes:
        pieces: of both sides, by kind; the first mask is empty.
        sides: of Black and White.
        turn: the side to move, as python-chess has it.
        rooks: rooks that may castle.
        passed: square where a pawn can be captured en passant; -1: none.
    """

    __slots__ = ("passed", "pieces", "rooks", "sides", "turn")

    def __init__(self) -> None:
        self.pieces = [0, *_START]
        self.sides = [chess.BB_RANK_7 | chess.BB_RANK_8, chess.BB_RANK_1 | chess.BB_RANK_2]
        self.turn, self.rooks, self.passed = 1, chess.BB_CORNERS, -1

    def key(self) -> int:
        """Return `position_hash`."""
        black, white = self.sides
        return packed_hash(*self.pieces[1:], white, black, self.rooks, self.turn, self.passed)

    def _attacked(self, square: int, occupied: int, others: int) -> bool:
        """Return whether the pieces `others` attack a square of the side to move."""
        _, pawns, knights, bishops, rooks, queens, kings = self.pieces
        straight = (rooks | queens) & others
        if straight and _attacks(_ROOK, square, occupied) & straight:
            return True
        slanting = (bishops | queens) & others
        if slanting and _attacks(_BISHOP, square, occupied) & slanting:
            return True
        near = chess.BB_KNIGHT_ATTACKS[square] & knights | chess.BB_KING_ATTACKS[square] & kings
        return bool((near | chess.BB_PAWN_ATTACKS[self.turn][square] & pawns) & others)

    def _safe(self, kind: int, origin: int, to: int) -> bool:
        """Return whether the king is safe after a move of a piece from one square to another."""
        own, others, gone = self.sides[self.turn], self.sides[1 - self.turn], 1 << to
        if kind == _PAWN and to == self.passed:
            gone = 1 << (to - 8 if self.turn else to + 8)
        king = to if kind == _KING else (self.pieces[_KING] & own).bit_length() - 1
        others &= ~gone
        return not self._attacked(king, (own ^ 1 << origin) | 1 << to | others, others)

    def moved(self, san: str) -> int | None:
        """Play a move other than castling and return its action; None if it is not certain."""
        word = _word(san)
        if word is None:
            return None
        kind, to, origins, promotion = word
        pieces, turn = self.pieces, self.turn
        own, others, target = self.sides[turn], self.sides[1 - turn], 1 << to
        if own & target:
            return None
        occupied = own | others
        origins &= pieces[kind] & own
        if kind == _PAWN:
            if (promotion == 0) is (to < 8 or to >= 56):
                return None
            if others & target or to == self.passed:
                reach = chess.BB_PAWN_ATTACKS[1 - turn][to]
            elif occupied & target:
                return None
            else:
                back = target >> 8 if turn else target << 8
                reach = back
                if not occupied & back and to >> 3 == (3 if turn else 4):
                    reach |= back >> 8 if turn else back << 8
        elif promotion:
            return None
        else:
            reach = _attacks(kind, to, occupied)
        origins &= reach
        origin = -1
        while origins:
            square = origins.bit_length() - 1
            origins ^= 1 << square
            if self._safe(kind, square, to):
                if origin >= 0:
                    return None
                origin = square
        if origin < 0:
            return None
        self._play(kind, origin, to, promotion)
        return origin + 64 * to + 4096 * promotion

    def _play(self, kind: int, origin: int, to: int, promotion: int) -> None:
        pieces, turn = self.pieces, self.turn
        start, target = 1 << origin, 1 << to
        gone = (1 << (to - 8 if turn else to + 8)) if kind == _PAWN and to == self.passed else target
        if self.sides[1 - turn] & gone:
            self.sides[1 - turn] ^= gone
            for each in range(1, 6):
                if pieces[each] & gone:
                    pieces[each] ^= gone
                    break
        self.sides[turn] ^= start | target
        pieces[kind] ^= start
        pieces[promotion or kind] |= target
        self.rooks &= ~(start | target)
        if kind == _KING:
            self.rooks &= chess.BB_RANK_8 if turn else chess.BB_RANK_1
        self.turn, self.passed = 1 - turn, -1
        if kind == _PAWN and abs(to - origin) == 16:
            behind = (origin + to) >> 1
            takers = chess.BB_PAWN_ATTACKS[turn][behind] & pieces[_PAWN] & self.sides[1 - turn]
            self.passed = behind
            if not any(self._safe(_PAWN, square, behind) for square in chess.scan_forward(takers)):
                self.passed = -1

    def castled(self, san: str) -> int | None:
        """Castle and return the action; None if it is not certain."""
        turn = self.turn
        e = chess.E1 if turn else chess.E8
        to = {"O-O": e + 2, "O-O-O": e - 2}.get(san, -1)
        if to < 0:
            return None
        rook, goes, between, way = _CASTLING[to]
        own, others = self.sides[turn], self.sides[1 - turn]
        occupied = own | others
        if not self.rooks >> rook & 1 or occupied & between:
            return None
        if any(self._attacked(square, occupied ^ 1 << e, others) for square in (*way, to)):
            return None
        moved = 1 << rook | 1 << goes
        self.pieces[_ROOK] ^= moved
        self.sides[turn] ^= moved
        self._play(_KING, e, to, 0)
        return e + 64 * to
