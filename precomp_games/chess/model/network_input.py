"""Input and output of networks of people's moves: planes of a game so far, and the outputs of moves.

The input are 112 planes of a board from the viewpoint of the side to move (for Black, ranks are turned over).
13 of them belong to each of the last eight positions, the newest first: own pawns, knights, bishops, rooks,
queens and king, the other side's, and whether the position had occurred before. Then there are castling
rights (own queenside and kingside, the other's), whether Black is to move, the half-moves since the last
capture or pawn's move, zeros, and ones.

Before the start of a usual game there are zeros. A game that starts elsewhere is treated as if it had been in
its first position all the time, since networks that see pieces appear from nowhere do not predict people.

The output are 73 planes over the square that a piece leaves: seven steps in each of eight directions, from
north clockwise, eight knight's moves, and promotions to the northwest, north and northeast to a rook, bishop
or queen. A promotion to a knight is the plain move, and castling is the king that takes its own rook.

Source: lc0's classical input planes and its convolutional policy map.

Cost: for a position that continues a recent one, the moves since then, and packing; else all moves of its
game, of 15 us each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import chess
import numpy as np
import numpy.typing as npt

from precomp_games.chess.game import NUM_DISTINCT_ACTIONS, action_of, move_of
from precomp_games.chess.model.networks import INPUT_PLANES, SQUARES, Floats

_POSITIONS, _PIECES = 8, 12  # in the input, and the planes of pieces of each
_LEAST_CYCLE = 4  # half-moves after which a position may come again
_MOST_TRAILS = 20_000  # kept, of some two kilobytes each

_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))  # (files, ranks)
_KNIGHTS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
_PROMOTIONS = (chess.ROOK, chess.BISHOP, chess.QUEEN)
_ROOKS = {2: 3, -2: -4}  # the castling rook's square, relative to the king's, by the king's step

_Pieces = tuple[int, ...]  # bitboards: White's pawns to king, then Black's


class Trail(NamedTuple):
    """A game so far, as input of networks.

    Attributes:
        board: the position.
        pieces: of the last eight positions, the newest first.
        repeated: whether each of these had occurred before.
        earlier: all positions since the last capture or pawn's move, the newest last, without this one.
    """

    board: chess.Board
    pieces: tuple[_Pieces, ...]
    repeated: tuple[bool, ...]
    earlier: tuple[tuple[object, ...], ...]

    @classmethod
    def begun(cls, board: chess.Board) -> Trail:
        """Return the start of a game."""
        times = 1 if board == chess.Board() else _POSITIONS
        return cls(board, (_pieces(board),) * times, (False,) * times, ())

    def after(self, actions: Sequence[int]) -> Trail:
        """Return the game after some more moves."""
        board, earlier = self.board.copy(stack=False), list(self.earlier)
        pieces, repeated = list(self.pieces[::-1]), list(self.repeated[::-1])  # the newest last
        for move in map(_move_of, actions):
            if board.is_zeroing(move):
                earlier.clear()
            else:
                earlier.append(_name(board, pieces[-1]))
            board.push(move)
            pieces.append(_pieces(board))
            repeated.append(len(earlier) >= _LEAST_CYCLE and _name(board, pieces[-1]) in earlier)
        board.clear_stack()
        newest = slice(None, -_POSITIONS - 1, -1)
        return Trail(board, tuple(pieces[newest]), tuple(repeated[newest]), tuple(earlier))


def _pieces(board: chess.Board) -> _Pieces:
    white, black = board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK]
    kinds = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    return (*(kind & white for kind in kinds), *(kind & black for kind in kinds))


def _name(board: chess.Board, pieces: _Pieces) -> tuple[object, ...]:
    """Return a key that positions share if they repeat each other."""
    passed = board.ep_square if board.has_legal_en_passant() else None
    return pieces, board.turn, board.castling_rights, passed


_move_of = functools.cache(move_of)


class Trails:
    """Games from one start position, as input of networks; recent ones are continued."""

    def __init__(self, start: chess.Board) -> None:
        """Begin with the start position.

        start: of all games.
        """
        self._known: dict[tuple[int, ...], Trail] = {(): Trail.begun(start)}

    def at(self, history: tuple[int, ...]) -> Trail:
        """Return the game after these actions."""
        known = len(history)
        while (trail := self._known.get(history[:known])) is None:
            known -= 1
        if known < len(history):
            trail = trail.after(history[known:])
            # The next question about a game comes two half-moves later.
            self._known[history] = trail
        if len(self._known) > _MOST_TRAILS:
            start, kept = self._known[()], list(self._known.items())[len(self._known) // 2 :]  # the newest
            self._known = {(): start, **dict(kept)}
        return trail


def planes_of(trails: Sequence[Trail]) -> Floats:
    """Return the input of games: float32[n, 112, 8, 8]."""
    count = len(trails)
    pieces = np.zeros((count, _POSITIONS, _PIECES), "<u8")
    planes = np.zeros((count, INPUT_PLANES, SQUARES), np.float32)
    history = planes[:, : _POSITIONS * (_PIECES + 1)].reshape(count, _POSITIONS, _PIECES + 1, SQUARES)
    black = np.array([trail.board.turn == chess.BLACK for trail in trails])
    for k, trail in enumerate(trails):
        pieces[k, : len(trail.pieces)] = trail.pieces
        for back, repeated in enumerate(trail.repeated):
            history[k, back, _PIECES] = repeated
        board, own = trail.board, trail.board.turn
        rights = [
            right(side)
            for side in (own, not own)
            for right in (board.has_queenside_castling_rights, board.has_kingside_castling_rights)
        ]
        rest = [*rights, own == chess.BLACK, board.halfmove_clock, 0.0, 1.0]
        planes[k, -len(rest) :] = np.array(rest, np.float32)[:, None]
    # Black sees its own pieces first, and the board with its ranks turned over: the bytes of a bitboard.
    pieces[black] = np.roll(pieces[black], _PIECES // 2, axis=2).byteswap()
    bits = np.unpackbits(pieces.view(np.uint8), bitorder="little")
    history[:, :, :_PIECES] = bits.reshape(count, _POSITIONS, _PIECES, SQUARES)
    return planes.reshape(count, INPUT_PLANES, 8, 8)


def move_places(board: chess.Board, actions: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the outputs of legal moves, as `ChessGame` numbers these: int64[n], plane * 64 + square."""
    places = _outputs()[int(board.turn), actions]
    king = board.king(board.turn)
    for side in (2, -2):  # castling, which no other move resembles
        if king in (chess.E1, chess.E8) and (castling := _number(king, king + side)) in actions:
            places[actions.index(castling)] = _outputs()[int(board.turn), _number(king, king + _ROOKS[side])]
    return places


def _number(from_square: int, to_square: int, promotion: int = 0) -> int:
    return action_of(chess.Move(from_square, to_square, promotion or None))


@functools.cache
def _outputs() -> npt.NDArray[np.int64]:
    """Return int64[2, actions]: the output of each move of Black and of White, castling aside; -1: none."""
    found = np.full((2, NUM_DISTINCT_ACTIONS), -1)
    steps = [(step * f, step * r) for f, r in _DIRECTIONS for step in range(1, 8)]
    promotions = [(f, 1, kind) for f in (-1, 0, 1) for kind in _PROMOTIONS]
    planes = [(*each, 0) for each in (*steps, *_KNIGHTS)] + promotions
    for plane, (files, ranks, promotion) in enumerate(planes):
        for square in chess.SQUARES:
            file, rank = chess.square_file(square) + files, chess.square_rank(square) + ranks
            if file in range(8) and rank in range(8):
                seen = square, chess.square(file, rank)
                for turned, color in ((0, chess.WHITE), (56, chess.BLACK)):
                    start, end = (each ^ turned for each in seen)
                    found[int(color), _number(start, end, promotion)] = plane * SQUARES + square
                    if ranks == 1 and not promotion:  # also a promotion to a knight
                        found[int(color), _number(start, end, chess.KNIGHT)] = plane * SQUARES + square
    return found
