"""Coverage and traps of books against all their games, one after the other."""

import io
import math
import random
from collections import defaultdict

import chess
import chess.engine
import chess.pgn
import pytest

from precomp_games.chess.data.book import Book, BookExit
from precomp_games.chess.data.exits import coverage, mistakes, traps, traps_pgn
from tests.oracles.chess_books import RANDOM_BOOKS, book_of, entry, random_book, small_book, uci


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
            weights = [rng.random() for _ in moves]
            row = {move: each / sum(weights) for move, each in zip(moves, weights, strict=True)}
        if not row:
            exits.append(BookExit(history, board.is_game_over(), reach, rng.random()))
        for move, share in row.items():
            child = board.copy(stack=False)
            child.push(move)
            level.append(((*history, move), child, reach * share))
    return exits


def evaluations_of(book, seed=0, spread=60):
    """Return random scores of the book's positions; some of them are mates."""
    rng = random.Random(seed)
    scores = [
        chess.engine.Mate(rng.choice([-3, 3])) if rng.random() < 0.1 else chess.engine.Cp(int(each))
        for each in (rng.gauss(0.0, spread) for _ in book.positions)
    ]
    sides = (rng.choice(chess.COLORS) for _ in scores)
    told = (chess.engine.PovScore(*each) for each in zip(scores, sides, strict=True))
    return dict(zip((position.history for position in book.positions), told, strict=True))


def own_pawns(score, side):
    own = score.pov(side)
    return own.score() if own.mate() is None else 10_000 * (1 if own.mate() > 0 else -1)


@pytest.mark.parametrize("drawn", [(*each[:3], 25) for each in RANDOM_BOOKS])
def test_traps_and_coverage_are_those_of_all_games(drawn):
    book = random_book(*drawn)
    known = {position.history for position in book.positions}
    exits, evaluations = exits_of(book), evaluations_of(book)
    # Each exit is a game: how much of them there is after a history, and what it is worth.
    mass, value, boards = defaultdict(float), defaultdict(float), {}
    in_book = defaultdict(float)
    for game in exits:
        board = book.start.copy()
        for ply in range(len(game.history) + 1):
            before = game.history[:ply]
            mass[before] += game.reach
            value[before] += game.reach * game.promised
            boards[before] = board.copy(stack=False)
            if board.turn == book.side and before in known:
                in_book[board.fullmove_number] += game.reach
            if ply < len(game.history):
                board.push(game.history[ply])
    told = coverage(book, exits)
    assert not any(game.over for game in exits) and set(told) == set(in_book)
    assert told == pytest.approx(in_book)
    expected, costs = {}, {}
    for after in filter(None, known):
        before = after[:-1]
        others = [each for each in mass if each[:-1] == before and len(each) == len(after) and each != after]
        rest = sum(mass[each] for each in others)
        gain = value[after] / mass[after] - sum(value[each] for each in others) / rest
        likely = mass[after] >= max(0.05 * mass[before], 0.002)
        if before and before[:-1] in known and likely and gain >= 0.03:
            later = [each for each in known if len(each) == len(after) + 2 and each[: len(after)] == after]
            was, *now = (own_pawns(evaluations[each], book.side) for each in (before[:-1], after, *later))
            if min(now) - was < 30:
                continue
            costs[before, after[-1]] = min(now) - was
            key = boards[before].epd(), after[-1]
            expected[key] = max(expected.get(key, 0.0), mass[after] * gain)
    found = traps(book, exits, evaluations)
    worths = [each.reach * each.probability * each.gain for each in found]
    assert worths == sorted(worths, reverse=True) and len(found) > 0
    keys = [(boards[each.history].epd(), each.reply) for each in found]
    assert dict(zip(keys, worths, strict=True)) == pytest.approx(expected)
    every = mistakes(book, exits, evaluations)
    assert {(each.history, each.reply): each.costs for each in every} == costs
    for each in found:
        line = (*each.history, each.reply, *each.line)
        assert all(line[:ply] in known for ply in range(len(each.history) + 1, len(line), 2))


def test_games_that_end_inside_the_book_have_not_left_it():
    book = book_of("| f2f3", "f2f3 e7e5 | g2g4")
    exits = [
        BookExit(uci("f2f3 e7e5 g2g4 d8h4"), True, 0.5, 0.0),
        BookExit(uci("f2f3 e7e5 g2g4 b8c6"), False, 0.25, 0.5),
        BookExit(uci("f2f3 b8c6"), False, 0.25, 0.5),
    ]
    assert coverage(book, exits) == {1: 1.0, 2: 0.75}
    assert coverage(book, []) == {} and traps(book, [], {}) == []
    late = Book(
        chess.Board("4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 30"), chess.WHITE, [entry("e7e6", {"e2e3": 1.0})]
    )
    leaving = [BookExit(uci("e7e6 e2e3 e6e5"), False, 0.5, 0.5), BookExit(uci("e7e5"), False, 0.5, 0.5)]
    assert coverage(late, leaving) == {31: 0.5}


def test_a_trap_in_words_and_as_a_game():
    """Of replies that half and half play, one costs ten points; nobody knows what follows a third one."""
    book = small_book()
    shares = {"e2e4 e7e5 g1f3 g8f6": 0.375, "e2e4 c7c5 g1f3 d7d6": 0.36, "e2e4 b8c6": 0.015}
    values = dict(zip(shares, (0.5, 0.6, 0.9), strict=True))
    exits = [BookExit(uci(moves), False, share, values[moves]) for moves, share in shares.items()]
    exits.append(BookExit(uci("d2d4 d7d5"), False, 0.25, 0.5))
    lost = {}
    for moves, pawns in {"": 20, "e2e4 e7e5": 25, "e2e4 c7c5": 50}.items():
        lost[uci(moves)] = chess.engine.PovScore(chess.engine.Cp(pawns), chess.WHITE)
    (trap,) = traps(book, exits, lost)
    assert (trap.history, trap.reply, trap.line) == (uci("e2e4"), *uci("c7c5"), uci("g1f3"))
    assert (trap.reach, trap.probability) == pytest.approx((0.75, 0.48))
    assert trap.gain == pytest.approx(0.6 - (0.375 * 0.5 + 0.015 * 0.9) / 0.39)
    told = (
        "After 1. e4, 48 of 100 play c5?, which gives you 8.5 points more in 100 games than their other "
        "moves: 2. Nf3. It comes up in 36 of 100 games."
    )
    assert trap.text(book.start) == told
    text = traps_pgn(book, [trap], {"Event": "Traps", "White": "Book"})
    game = chess.pgn.read_game(io.StringIO(text))
    assert [node.san() for node in game.mainline()] == ["e4", "c5", "Nf3"] and game.headers["White"] == "Book"
    reply = game.next().next()
    assert reply.nags == {chess.pgn.NAG_MISTAKE} and " ".join(reply.comment.split()) == told
    assert traps_pgn(book, [], {}) == ""
    good = chess.engine.PovScore(chess.engine.Cp(49), chess.WHITE)
    assert traps(book, exits, lost | {uci("e2e4 c7c5"): good}) == []
    unknown = [BookExit(each.history, False, each.reach, None) for each in exits]
    assert traps(book, unknown, lost) == [] and math.isclose(coverage(book, unknown)[1], 1.0)
