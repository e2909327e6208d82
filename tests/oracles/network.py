"""Networks of people's moves in plain numpy, written apart from the library, and files of random ones.

What is here reads a file without a description of its fields, builds planes square by square from
python-chess's boards with their move stacks, and convolves by sums over windows. It is slow: the reference.
"""

import collections
import gzip
import struct

import chess
import numpy as np
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

KNIGHTS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
QUEENS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]


# -- files -------------------------------------------------------------------------------------------------


def _varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def _bytes(field, data):
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _layer(field, array):
    """Weights as 16-bit numbers between their least and their largest one."""
    array = np.asarray(array, np.float64).ravel()
    least, most = float(array.min()), float(array.max())
    numbers = np.round((array - least) / (most - least or 1.0) * 65535).astype("<u2").tobytes()
    ends = b"\x0d" + struct.pack("<f", least) + b"\x15" + struct.pack("<f", most)
    return _bytes(field, ends + _bytes(3, numbers))


def _block(rng, outputs, inputs, size, normalized=True):
    weights = rng.normal(0.0, 1.0 / np.sqrt(inputs * size * size), (outputs, inputs, size, size))
    data = _layer(1, weights)
    if not normalized:
        return data + _layer(2, rng.normal(0.0, 0.1, outputs))
    data += _layer(3, rng.normal(0.0, 0.1, outputs)) + _layer(4, rng.uniform(0.5, 1.5, outputs))
    return data + _layer(5, rng.uniform(0.5, 1.5, outputs)) + _layer(6, rng.normal(0.0, 0.1, outputs))


def random_network(seed=0, filters=8, blocks=2, inner=4, kinds=(1, 4, 2, 2)):
    """Return the bytes of a file with a random network."""
    rng = np.random.default_rng(seed)
    data = _bytes(1, _block(rng, filters, 112, 3))
    for _ in range(blocks):
        se = _layer(1, rng.normal(0, 0.5, (inner, filters))) + _layer(2, rng.normal(0, 0.1, inner))
        se += _layer(3, rng.normal(0, 0.5, (2 * filters, inner)))
        se += _layer(4, rng.normal(0, 0.1, 2 * filters))
        both = _bytes(1, _block(rng, filters, filters, 3)) + _bytes(2, _block(rng, filters, filters, 3))
        data += _bytes(2, both + _bytes(3, se))
    data += _bytes(3, _block(rng, 80, filters, 3, normalized=False))
    data += _bytes(6, _block(rng, 4, filters, 1))
    data += _layer(7, rng.normal(0, 0.1, (16, 4 * 64))) + _layer(8, rng.normal(0, 0.1, 16))
    data += _layer(9, rng.normal(0, 0.3, (3, 16))) + _layer(10, rng.normal(0, 0.1, 3))
    data += _bytes(11, _block(rng, filters, filters, 3))
    numbers = zip((1, 3, 4, 5), kinds, strict=True)
    kind = b"".join(_varint(field << 3) + _varint(value) for field, value in numbers)
    net = b"\x0d" + struct.pack("<I", 0x1C0) + _bytes(4, _bytes(2, kind)) + _bytes(10, data)
    return gzip.compress(net)


def _fields(data):
    """{field: values} of a message."""
    found = collections.defaultdict(list)
    for field in UnknownFieldSet(Empty.FromString(data)):
        found[field.field_number].append(field.data)
    return found


def _array(data, *shape):
    fields = _fields(data)
    least, most = (struct.unpack("<f", struct.pack("<I", fields[k][0]))[0] for k in (1, 2))
    numbers = np.frombuffer(fields[3][0], "<u2").astype(np.float64)
    return (least + (most - least) * numbers / 65535).reshape(shape)


# -- planes ------------------------------------------------------------------------------------------------


def planes(board):
    """[112, 8, 8] of a board with its move stack."""
    mover, boards, back = board.turn, [board.copy()], board.copy()
    while back.move_stack:
        back.pop()
        boards.append(back.copy())
    usual = boards[-1].fen() == chess.STARTING_FEN
    seen = [b.epd() for b in boards]
    out = np.zeros((112, 8, 8))
    for k in range(8):
        if k >= len(boards) and usual:
            break
        at = min(k, len(boards) - 1)
        for square, piece in boards[at].piece_map().items():
            rank = square // 8 if mover == chess.WHITE else 7 - square // 8
            plane = piece.piece_type - 1 + (0 if piece.color == mover else 6)
            out[13 * k + plane, rank, square % 8] = 1.0
        out[13 * k + 12] = float(seen[at] in seen[at + 1 :])
    for k, side in ((104, mover), (106, not mover)):
        out[k] = board.has_queenside_castling_rights(side)
        out[k + 1] = board.has_kingside_castling_rights(side)
    out[108] = mover == chess.BLACK
    out[109] = board.halfmove_clock
    out[111] = 1.0
    return out


def place(board, move):
    """Return (plane, rank, file) of a move."""
    from_square, to_square = move.from_square, move.to_square
    if board.is_castling(move):
        to_square = chess.square(7 if to_square > from_square else 0, to_square // 8)
    if board.turn == chess.BLACK:
        from_square, to_square = from_square ^ 56, to_square ^ 56
    (f0, r0), (f1, r1) = ((square % 8, square // 8) for square in (from_square, to_square))
    files, ranks = f1 - f0, r1 - r0
    if move.promotion and move.promotion != chess.KNIGHT:
        plane = 64 + 3 * (files + 1) + [chess.ROOK, chess.BISHOP, chess.QUEEN].index(move.promotion)
    elif (files, ranks) in KNIGHTS:
        plane = 56 + KNIGHTS.index((files, ranks))
    else:
        steps = max(abs(files), abs(ranks))
        plane = 7 * QUEENS.index((np.sign(files), np.sign(ranks))) + steps - 1
    return plane, r0, f0


# -- the network -------------------------------------------------------------------------------------------


def _convolve(x, data, size):
    fields = _fields(data)
    weights = _array(fields[1][0], -1, len(x), size, size)
    padded = np.pad(x, ((0, 0), (size // 2,) * 2, (size // 2,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
    out = np.tensordot(weights, windows, ((1, 2, 3), (0, 3, 4)))
    if 4 not in fields:
        return out + _array(fields[2][0], -1, 1, 1)
    means, variances, gammas, betas = (_array(fields[k][0], -1, 1, 1) for k in (3, 4, 5, 6))
    return gammas * (out - means) / np.sqrt(variances + 1e-5) + betas


def _relu(x):
    return np.maximum(x, 0.0)


class PlainNetwork:
    """A network in a file's bytes."""

    def __init__(self, data):
        self._net = _fields(_fields(gzip.decompress(data))[10][0])

    def __call__(self, board):
        """Return ({move: probability}, [win, draw, loss]) of a board with its move stack."""
        net = self._net
        x = _relu(_convolve(planes(board), net[1][0], 3))
        for block in map(_fields, net[2]):
            y = _convolve(_relu(_convolve(x, block[1][0], 3)), block[2][0], 3)
            se = _fields(block[3][0])
            hidden = _relu(_array(se[1][0], -1, len(y)) @ y.mean((1, 2)) + _array(se[2][0], -1))
            both = _array(se[3][0], -1, len(hidden)) @ hidden + _array(se[4][0], -1)
            scale, shift = both[: len(y), None, None], both[len(y) :, None, None]
            x = _relu(x + y / (1.0 + np.exp(-scale)) + shift)
        logits = _convolve(_relu(_convolve(x, net[11][0], 3)), net[3][0], 3)
        value = _relu(_convolve(x, net[6][0], 1)).ravel()
        value = _relu(_array(net[7][0], -1, len(value)) @ value + _array(net[8][0], -1))
        value = np.exp(_array(net[9][0], -1, len(value)) @ value + _array(net[10][0], -1))
        legal = list(board.legal_moves)
        odds = np.exp([logits[place(board, move)] for move in legal])
        return dict(zip(legal, odds / odds.sum(), strict=True)), value / value.sum()
