"""Games as their files have them, and files of games and of books as python-chess reads them."""

import random
import struct

import chess
import chess.pgn
import chess.polyglot

from precomp_games.chess import GameReport, action_of, read_games
from precomp_games.chess.data.game_records import position_hash
from tools.fuzz.mutate import damaged

LINE = (
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7"
)
_WORDS = [b'[FEN "', b'[Variant "x"]\n', b"--", b"e8=Q", b"O-O-O", b"$9", b"%", b";", b"1-0", b"Nbd7"]


def game(moves: str, white: str = "A", black: str = "B", **tags: str) -> str:
    """Return the text of a game."""
    values = {"Event": "?", "White": white, "Black": black, "Result": "*"} | tags
    return "".join(f'[{name} "{value}"]\n' for name, value in values.items()) + f"\n{moves} *\n\n"


def read(tmp_path, *texts, encoding="utf-8", player=None, **options):
    """Return the games of a file of these texts, and the report of it."""
    path = tmp_path / "games.pgn"
    path.write_bytes("".join(texts).encode(encoding))
    report = GameReport()
    return list(read_games(path, player, report=report, **options)), report


def moves_of(record):
    """Return the moves of a game that was read in UCI notation; its positions are those of python-chess."""
    board, moves = chess.Board(), []
    for key, action in zip(record.keys, record.actions, strict=True):
        assert key == position_hash(board)
        move = next(move for move in board.legal_moves if action_of(move) == action)
        moves.append(move.uci())
        board.push(move)
    return moves


def after(line, start=chess.STARTING_FEN):
    """Return the EPD after moves in SAN."""
    board = chess.Board(start)
    for san in line.split():
        board.push_san(san)
    return board.epd()


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return the data with a few changes, and not much longer."""
    return damaged(rng, data, _WORDS)[: 2 * len(data)]


def games_of(path):
    """Return the games of a file, in which nothing is wrong."""
    with path.open(encoding="utf-8") as file:
        found = list(iter(lambda: chess.pgn.read_game(file), None))
    assert found and not any(game.errors for game in found)
    return found


def read_back(path):
    """Return the one game of a file."""
    (game,) = games_of(path)
    return game


def nodes_of(game):
    """Return all nodes of a game by the moves up to them."""
    found, stack = {}, [(game, ())]
    while stack:
        node, moves = stack.pop()
        found[moves] = node
        stack.extend((child, (*moves, child.move)) for child in node.variations)
    return found


def read_moves(path, board):
    """Return the weights of a position's moves in a Polyglot file."""
    with chess.polyglot.open_reader(path) as reader:
        return {item.move: item.weight for item in reader.find_all(board)}


def polyglot_entry(board: chess.Board, move: str, weight: int) -> bytes:
    """Return a Polyglot entry; the move as the format has it, castling as king takes rook."""
    m = chess.Move.from_uci(move)
    raw = m.to_square | m.from_square << 6 | (m.promotion - 1 if m.promotion else 0) << 12
    return struct.pack(">QHHI", chess.polyglot.zobrist_hash(board), raw, weight, 0)


def rated_game(number, *, plies=50, clocks=True, **tags):
    """Return a game of random moves, with seconds that grow with the half-move."""
    rng, board, words, left = random.Random(number), chess.Board(), [], [180, 180]
    for ply in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            break
        left[ply % 2] -= (ply // 10 - 2) if ply > 1 else 0
        move = rng.choice(moves)
        words.append(board.san(move))
        if clocks:
            words.append(f"{{[%clk 0:{left[ply % 2] // 60:02}:{left[ply % 2] % 60:02}]}}")
        board.push(move)
    result = ("1-0", "0-1", "1/2-1/2")[number % 3]
    tags = {"WhiteElo": "1500", "BlackElo": "1700", "TimeControl": "180+2", "Result": result} | tags
    text = game(" ".join(words), f"A{number}", "B", Date=f"{2000 + number}.01.01", **tags)
    return text.replace(" *\n", f" {result}\n")
