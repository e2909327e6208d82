"""Small books of moves, and random ones."""

import random

import chess
import chess.engine
from hypothesis import strategies as st

from precomp_games.chess.data.book import Book, BookExit, BookMove, BookPosition

ITALIAN = "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4"


def uci(moves: str) -> tuple[chess.Move, ...]:
    return tuple(chess.Move.from_uci(move) for move in moves.split())


def entry(history: str, moves: dict[str, float], reach: float = 1.0, worth: float = 0.0) -> BookPosition:
    played = tuple(BookMove(chess.Move.from_uci(m), p) for m, p in moves.items())
    return BookPosition(uci(history), played, reach, worth)


def book_of(*lines: str, side: chess.Color = chess.WHITE) -> Book:
    """Return a book: "e2e4 e7e5 | g1f3" is the answer g1f3 after two moves; of several, each is as likely."""
    positions = []
    for line in lines:
        before, _, answers = line.partition("|")
        moves = answers.split()
        positions.append(entry(before, dict.fromkeys(moves, 1.0 / len(moves)), 1.0, 0.1))
    return Book(chess.Board(), side, positions)


def small_book() -> Book:
    """White's: two replies to 1. e4 are known, one of them deeper."""
    return Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"e2e4": 0.75, "d2d4": 0.25}, 1.0, 0.05),
            entry("e2e4 c7c5", {"g1f3": 1.0}, 0.25, 0.0123),
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5, 0.021),
            entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 0.6, "f1c4": 0.4}, 0.3, 0.0071234),
        ],
    )


def random_book(seed: int, side: chess.Color, start: chess.Board, size: int) -> Book:
    """Return a book closed under predecessors: up to two moves of ours, up to three replies."""
    rng = random.Random(seed)
    frontier: list[tuple[chess.Board, tuple[chess.Move, ...], float]] = [(start.copy(), (), 1.0)]
    positions: list[BookPosition] = []
    while frontier and len(positions) < size:
        board, history, reach = frontier.pop(0)
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        if not legal:
            continue
        if board.turn == side:
            moves = rng.sample(legal, min(len(legal), rng.choice([1, 1, 2])))
            first = 1.0 if len(moves) == 1 else rng.uniform(0.5, 1.0)
            chances = [first, 1.0 - first][: len(moves)]
            played = tuple(BookMove(m, p) for m, p in zip(moves, chances, strict=True))
            positions.append(BookPosition(history, played, reach, rng.random() / 10))
        else:
            moves = rng.sample(legal, min(len(legal), 3))
            chances = [1.0 / len(moves)] * len(moves)
        for move, chance in zip(moves, chances, strict=True):
            child = board.copy()
            child.push(move)
            frontier.append((child, (*history, move), reach * chance))
    return Book(start, side, positions)


_STARTS = [
    chess.STARTING_FEN,
    ITALIAN,
    "8/P5k1/8/8/3pP3/8/p5K1/8 b - e3 0 40",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
]


def random_books(most: int = 60) -> st.SearchStrategy[Book]:
    """Draw books of either side, from the first position and from others; the first one is empty."""
    starts = st.sampled_from(_STARTS).map(chess.Board)
    return st.builds(random_book, st.integers(0, 2**32), st.booleans(), starts, st.integers(0, most))


def exits_of(book, seed=0):
    """Return random exits of a book, with values: after each reply that it knows, and after another."""
    rng, exits = random.Random(seed), []
    known = {position.history: position for position in book.positions}
    level = [((), book.start, 1.0)]
    while level:
        history, board, reach = level.pop()
        if board.turn == book.side:
            row = {e.move: e.probability for e in known[history].moves} if history in known else {}
        else:
            legal = sorted(board.legal_moves, key=chess.Move.uci)
            moves = [m for m in legal if (*history, m) in known] or legal[:1]
            moves += [m for m in legal if m not in moves][:1]
            weights = [rng.random() ** 4 for _ in moves]  # some replies are rare
            row = {move: each / sum(weights) for move, each in zip(moves, weights, strict=True)}
        if not row:
            exits.append(BookExit(history, board.is_game_over(), reach, rng.random()))
        for move, share in row.items():
            child = board.copy(stack=False)
            child.push(move)
            level.append(((*history, move), child, reach * share))
    return exits


def evaluations_of(book, seed=0):
    """Return random scores of the book's positions; some of them are mates."""
    rng, scored = random.Random(seed), {}
    for position in book.positions:
        scores = chess.engine.Cp(int(rng.gauss(0.0, 60))), chess.engine.Mate(rng.choice([-3, 3]))
        scored[position.history] = chess.engine.PovScore(scores[rng.random() < 0.1], rng.choice(chess.COLORS))
    return scored


def own_pawns(score, side):
    return score.pov(side).score(mate_score=10_000)
