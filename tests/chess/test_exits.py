"""Coverage and traps of books against all their games, one after the other."""

import dataclasses
import io
import math
from collections import defaultdict

import chess
import chess.engine
import chess.pgn
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess.data.book import Book, BookExit
from precomp_games.chess.data.exits import coverage, mistakes, traps, traps_pgn
from tests.oracles.chess_books import (
    book_of,
    entry,
    evaluations_of,
    exits_of,
    own_pawns,
    random_books,
    small_book,
    uci,
)
from tests.properties import examples


@examples(80)
@given(random_books(25), st.integers(0, 2**32))
def test_traps_and_coverage_are_those_of_all_games(book, seed):
    known = {position.history for position in book.positions}
    exits, evaluations = exits_of(book, seed), evaluations_of(book, seed)
    # Each exit is a game: how much of them there is after a history, and what it is worth.
    mass, value, in_book, boards = defaultdict(float), defaultdict(float), defaultdict(float), {}
    for game in exits:
        board = book.start.copy()
        for ply in range(len(game.history) + 1):
            before = game.history[:ply]
            mass[before] += game.reach
            value[before] += game.reach * game.promised
            boards[before] = board.copy(stack=False)
            if board.turn == book.side and before in known and not game.over:
                in_book[board.fullmove_number] += game.reach
            if ply < len(game.history):
                board.push(game.history[ply])
    ended = sum(game.reach for game in exits if game.over)  # in the book, to its last move and ever after
    shares = {move: share + ended for move, share in in_book.items()}
    assert coverage(book, exits) == pytest.approx(shares)
    expected, costs = {}, {}
    for after in filter(None, known):
        before = after[:-1]
        others = [each for each in mass if each[:-1] == before and len(each) == len(after) and each != after]
        rest = sum(mass[each] for each in others)
        likely = mass[after] >= max(0.05 * mass[before], 0.002)
        if not (before and before[:-1] in known and likely and rest):
            continue
        gain = value[after] / mass[after] - sum(value[each] for each in others) / rest
        later = [each for each in known if len(each) == len(after) + 2 and each[: len(after)] == after]
        was, *now = (own_pawns(evaluations[each], book.side) for each in (before[:-1], after, *later))
        if gain >= 0.03 and min(now) - was >= 30:
            costs[before, after[-1]] = min(now) - was
            key = boards[before].epd(), after[-1]
            expected[key] = max(expected.get(key, 0.0), mass[after] * gain)
    found = traps(book, exits, evaluations)
    worths = [each.reach * each.probability * each.gain for each in found]
    assert worths == sorted(worths, reverse=True)
    keys = [(boards[each.history].epd(), each.reply) for each in found]
    assert dict(zip(keys, worths, strict=True)) == pytest.approx(expected)
    every = mistakes(book, exits, evaluations)
    assert {(each.history, each.reply): each.costs for each in every} == costs
    for each in found:
        line = (*each.history, each.reply, *each.line)
        assert all(line[:ply] in known for ply in range(len(each.history) + 1, len(line), 2))


def white(centipawns):
    return chess.engine.PovScore(chess.engine.Cp(centipawns), chess.WHITE)


def test_of_a_trap_by_two_orders_of_moves_the_one_that_is_worth_more_is_listed():
    first, second = "g1f3 g8f6 b1c3", "b1c3 g8f6 g1f3"
    lines = [f"{line} e7e5 | f3e5" for line in (first, second)]
    book = book_of("| g1f3 b1c3", "g1f3 g8f6 | b1c3", "b1c3 g8f6 | g1f3", *lines)
    evaluations = {each.history: white(90 if len(each.history) == 4 else 0) for each in book.positions}
    for shares in ((0.4, 0.2), (0.2, 0.4)):
        exits = []
        for line, share in zip((first, second), shares, strict=True):
            exits.append(BookExit(uci(f"{line} e7e5 f3e5 d7d6"), False, share, 0.9))
            exits.append(BookExit(uci(f"{line} d7d5"), False, 0.5 - share, 0.5))
        (trap,) = traps(book, exits, evaluations)
        assert trap.probability == pytest.approx(0.8)


def test_games_that_end_inside_the_book_have_not_left_it():
    book = book_of("| f2f3", "f2f3 e7e5 | g2g4")
    exits = [
        BookExit(uci("f2f3 e7e5 g2g4 d8h4"), True, 0.5, 0.0),
        BookExit(uci("f2f3 e7e5 g2g4 b8c6"), False, 0.25, 0.5),
        BookExit(uci("f2f3 b8c6"), False, 0.25, 0.5),
    ]
    assert coverage(book, exits) == {1: 1.0, 2: 0.75}
    assert coverage(book, []) == {} and traps(book, [], {}) == []
    start = chess.Board("4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 30")
    late = Book(start, chess.WHITE, [entry("e7e6", {"e2e3": 1.0})])
    leaving = [BookExit(uci("e7e6 e2e3 e6e5"), False, 0.5, 0.5), BookExit(uci("e7e5"), False, 0.5, 0.5)]
    assert coverage(late, leaving) == {31: 0.5}


def test_a_trap_in_words_and_as_a_game():
    """Of replies that half and half play, one costs ten points; nobody knows what follows a third one."""
    book = small_book()
    exits = [
        BookExit(uci("e2e4 e7e5 g1f3 g8f6"), False, 0.375, 0.5),
        BookExit(uci("e2e4 c7c5 g1f3 d7d6"), False, 0.36, 0.6),
        BookExit(uci("e2e4 b8c6"), False, 0.015, 0.9),
        BookExit(uci("d2d4 d7d5"), False, 0.25, 0.5),
    ]
    pawns = {"": 20, "e2e4 e7e5": 25, "e2e4 c7c5": 50}
    lost = {uci(moves): white(cp) for moves, cp in pawns.items()}
    (trap,) = traps(book, exits, lost)
    assert (trap.history, trap.reply, trap.line) == (uci("e2e4"), *uci("c7c5"), uci("g1f3"))
    assert (trap.reach, trap.probability) == pytest.approx((0.75, 0.48))
    assert trap.gain == pytest.approx(0.6 - (0.375 * 0.5 + 0.015 * 0.9) / 0.39)
    message = (
        "After 1. e4, 48 of 100 play c5?, which gives you 8.5 points more in 100 games than their other "
        "moves: 2. Nf3. It comes up in 36 of 100 games."
    )
    assert trap.text(book.start) == message
    game = chess.pgn.read_game(io.StringIO(traps_pgn(book, [trap], {"Event": "Traps", "White": "Book"})))
    assert [node.san() for node in game.mainline()] == ["e4", "c5", "Nf3"] and game.headers["White"] == "Book"
    reply = game.next().next()
    assert reply.nags == {chess.pgn.NAG_MISTAKE} and " ".join(reply.comment.split()) == message
    assert traps_pgn(book, [], {}) == ""
    shares = (0.705, 0.03, 0.015, 0.25)  # one in 25 is not likely
    rare = [dataclasses.replace(each, reach=share) for each, share in zip(exits, shares, strict=True)]
    assert traps(book, rare, lost) == []
    assert traps(book, exits, lost | {uci("e2e4 c7c5"): white(49)}) == []
    unknown = [BookExit(each.history, False, each.reach, None) for each in exits]
    assert traps(book, unknown, lost) == [] and math.isclose(coverage(book, unknown)[1], 1.0)
