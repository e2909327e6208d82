"""Games behind replies: all of those, and only those, in which they were played."""

import math
import random
from unittest import mock

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import GameReport, book_exits, move_of
from precomp_games.chess.data import move_counts
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.model.played import (
    Person,
    PlayedGame,
    ReplyGames,
    reply_games,
    rests_on_guesses,
)
from tests.oracles.chess_books import book_of, uci
from tests.oracles.games import SEEDS, uniform
from tests.oracles.pgn import LINE, game
from tests.properties import examples

GAMES = [
    game("1. e4 c5 2. Nf3 d6", "Us", "Carol, Ann", Date="1999.05.01", Result="1-0"),
    game("1. e4 c5", "Carol, Ann", "Us", Date="2001.??.??", Result="0-1"),
    game("1. Nf3 c5 2. e4 d6", "Dave", "Carol, Ann", Date="2003.??.??", Result="1/2-1/2"),
    game("1. e4 c5 2. Nc3", "Dave", "Carol, Ann", Date="????.??.??"),
    game("1. e4 e5", "Us", "Dave", Date="2010.01.01", Result="1-0"),
]
FIRST = PlayedGame("Us", "Carol, Ann", 1999, "1-0", uci("e2e4 c7c5 g1f3 d7d6"))
SECOND = PlayedGame("Carol, Ann", "Us", 2001, "0-1", uci("e2e4 c7c5"))
THIRD = PlayedGame("Dave", "Carol, Ann", 2003, "1/2-1/2", uci("g1f3 c7c5 e2e4 d7d6"))
FOURTH = PlayedGame("Dave", "Carol, Ann", None, "*", uci("e2e4 c7c5 b1c3"))
WHITE_BOOK = book_of("| e2e4", "e2e4 c7c5 | g1f3", "e2e4 e7e5 | g1f3")
BLACK_BOOK = book_of("e2e4 | c7c5", "e2e4 c7c5 g1f3 | d7d6", "d2d4 | d7d5", side=chess.BLACK)
SICILIAN, LATER, OPEN = uci("e2e4 c7c5"), uci("e2e4 c7c5 g1f3 d7d6"), uci("e2e4 e7e5")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text("".join(GAMES))
    return path


def test_the_games_of_each_reply(file):
    report = GameReport()
    found, person = reply_games(WHITE_BOOK, GameSelection(file, "Carol, Ann"), report=report)
    # In the game of 2001 the opponent had the other side; that of 2003 came to 2... d6 by other moves.
    assert found == {SICILIAN: ReplyGames(2, (FIRST, FOURTH))} and report.games == 4
    exits = book_exits(WHITE_BOOK, uniform)
    found, _ = reply_games(WHITE_BOOK, GameSelection(file, "Carol"), exits=exits)
    assert found == {SICILIAN: ReplyGames(2, (FIRST, FOURTH)), LATER: ReplyGames(2, (THIRD, FIRST))}
    # What counts are the first two half-moves; what is listed can be played through.
    again, person = reply_games(WHITE_BOOK, GameSelection(file, "Carol", max_plies=2))
    assert again[SICILIAN] == found[SICILIAN] and person == Person("Carol, Ann", 3, 1999, 2003)
    assert reply_games(BLACK_BOOK, GameSelection(file, "Carol"))[1] == Person("Carol, Ann", 1, 2001, 2001)
    assert reply_games(BLACK_BOOK, GameSelection(file, "Dave", before=2000.0))[1] == Person("Dave", 0)


def test_everybody_and_few(file):
    found, person = reply_games(WHITE_BOOK, GameSelection(file), most=1)
    assert person is None and {each: behind.count for each, behind in found.items()} == {SICILIAN: 3, OPEN: 1}
    assert found[SICILIAN].games == (SECOND,)
    assert OPEN not in reply_games(WHITE_BOOK, GameSelection(file, without="Dave"))[0]
    assert reply_games(WHITE_BOOK, GameSelection(file, max_plies=1))[0] == {}
    assert reply_games(WHITE_BOOK, GameSelection(file, before=2001.5))[0] == {
        SICILIAN: ReplyGames(1, (FIRST,))
    }


def test_what_rests_on_guesses(file):
    longer = book_of("| e2e4", "e2e4 c7c5 | g1f3", "e2e4 e7e5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | d2d4")
    for book, expected in ((longer, [False, False, True, True]), (BLACK_BOOK, [False, True, True])):
        found, _ = reply_games(book, GameSelection(file, "Carol"))
        assert rests_on_guesses(book, found) == expected


def random_games(rng, count):
    """Games of few lines, of one day, without a date, behind a result, from elsewhere, there twice."""
    lines = ["1. e4 c5 2. Nf3 d6", "1. e4 e5 2. Nf3 Nc6", "1. Nf3 d6 2. e4 c5 3. d4", "1. e4 c5 2. Nc3 a7"]
    lines += [LINE, "1. d4 d5 2. Nf3", "1. e4 c5 1-0 1. e4 e5 2. Nf3 0-1 3. a3"]
    text = ""
    for _ in range(count):
        white, black = rng.sample(["Ann", "Bob", "Carol"], 2)
        date = rng.choice(["????.??.??", "2001.01.01", f"{2000 + rng.randrange(20)}.05.??"])
        tags = {"Date": date, "Result": "1-0"}
        if rng.random() < 0.05:
            tags |= {"FEN": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1", "SetUp": "1"}
        text += game(rng.choice(lines), white, black, **tags)
    return text


@examples(80)
@given(
    seed=SEEDS,
    count=st.integers(10, 60),
    whose=st.sampled_from(["Ann", "Ann; Bob", None]),
    before=st.sampled_from([math.inf, 2008.0]),
    book=st.sampled_from([WHITE_BOOK, BLACK_BOOK]),
)
def test_a_file_and_its_table_have_what_a_look_through_all_games_finds(
    tmp_path_factory, seed, count, whose, before, book
):
    path = tmp_path_factory.mktemp("games") / "games.pgn"
    path.write_text(random_games(random.Random(seed), count) + "".join(GAMES).replace("Carol, Ann", "Ann"))
    meant, exits = GameSelection(path, whose, before=before), book_exits(book, uniform)
    read, report = GameReport(), GameReport()
    found, person = reply_games(book, meant, exits=exits, most=3, report=read)
    table = meant.table(report)
    assert reply_games(book, meant, exits=exits, most=3, report=report, table=table) == (found, person)
    assert read == report
    with mock.patch.object(move_counts, "_BATCH", 7):  # in parts
        assert reply_games(book, meant, exits=exits, most=3) == (found, person)
    replies, games = {}, 0
    for record in meant.records(GameReport()):
        if before < math.inf and (record.year is None or record.year >= before):
            continue
        games += (not book.side) in record.own
        moves, board = [move_of(action) for action in record.actions], chess.Board()
        year = record.year and math.floor(record.year)
        shown = record.keys[0] == position_hash(board)
        entry = PlayedGame(record.white, record.black, year, record.result, tuple(moves) if shown else ())
        pairs = enumerate(zip(record.keys, moves, strict=True))
        for pair in {pair for ply, pair in pairs if record.mover(ply) in record.own}:
            replies.setdefault(pair, []).append((-(record.year or -math.inf), entry))
    expected = {}
    for history in {each.history[: ply + 1] for each in exits for ply in range(len(each.history))}:
        board = chess.Board()
        for move in history[:-1]:
            board.push(move)
        behind = sorted(replies.get((position_hash(board), history[-1]), ()), key=lambda entry: entry[0])
        if behind and board.turn != book.side:
            expected[history] = ReplyGames(len(behind), tuple(each for _, each in behind[:3]))
    assert found == expected
    assert (person is None) == (whose is None) and (person is None or person.games == games)
