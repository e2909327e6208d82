"""Games behind replies: all of those, and only those, in which they were played."""

import dataclasses
import math
import random

import chess
import chess.pgn
import pytest

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
from tests.oracles.games import uniform
from tests.oracles.pgn import LINE, game

GAMES = [
    game("1. e4 c5 2. Nf3 d6", "Us", "Carol, Ann", Date="1999.05.01", Result="1-0"),
    game("1. e4 c5", "Carol, Ann", "Us", Date="2001.??.??", Result="0-1"),
    game("1. Nf3 c5 2. e4 d6", "Dave", "Carol, Ann", Date="2003.??.??", Result="1/2-1/2"),
    game("1. e4 c5 2. Nc3", "Dave", "Carol, Ann", Date="????.??.??"),
    game("1. e4 e5", "Us", "Dave", Date="2010.01.01", Result="1-0"),
]
WHITE_BOOK = book_of("| e2e4", "e2e4 c7c5 | g1f3", "e2e4 e7e5 | g1f3")

START = position_hash(chess.Board())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text("".join(GAMES))
    return path


def told(found):
    """Without the games' moves."""
    return {
        history: ReplyGames(each.count, tuple(dataclasses.replace(game, moves=()) for game in each.games))
        for history, each in found.items()
    }


def test_the_games_of_each_reply(file):
    report = GameReport()
    found = reply_games(WHITE_BOOK, GameSelection(file, "Carol, Ann"), report=report)[0]
    # In the game of 2001 the opponent had the other side; that of 2003 came to 2... d6 by other moves.
    assert told(found) == {
        uci("e2e4 c7c5"): ReplyGames(
            2, (PlayedGame("Us", "Carol, Ann", 1999, "1-0"), PlayedGame("Dave", "Carol, Ann", None, "*"))
        )
    }
    assert report.games == 4
    with_exits = told(
        reply_games(WHITE_BOOK, GameSelection(file, "Carol"), exits=book_exits(WHITE_BOOK, uniform))[0]
    )
    assert with_exits[uci("e2e4 c7c5 g1f3 d7d6")] == ReplyGames(
        2, (PlayedGame("Dave", "Carol, Ann", 2003, "1/2-1/2"), PlayedGame("Us", "Carol, Ann", 1999, "1-0"))
    )
    assert set(with_exits) == {uci("e2e4 c7c5"), uci("e2e4 c7c5 g1f3 d7d6")}


def test_everybody_and_few(file):
    found = reply_games(WHITE_BOOK, GameSelection(file), most=1)[0]
    assert {history: each.count for history, each in found.items()} == {
        uci("e2e4 c7c5"): 3,
        uci("e2e4 e7e5"): 1,
    }
    assert told(found)[uci("e2e4 c7c5")].games == (PlayedGame("Carol, Ann", "Us", 2001, "0-1"),)
    assert uci("e2e4 e7e5") not in reply_games(WHITE_BOOK, GameSelection(file, without="Dave"))[0]
    assert reply_games(WHITE_BOOK, GameSelection(file, max_plies=1))[0] == {}
    assert told(reply_games(WHITE_BOOK, GameSelection(file, before=2001.5))[0]) == {
        uci("e2e4 c7c5"): ReplyGames(1, (PlayedGame("Us", "Carol, Ann", 1999, "1-0"),))
    }


def test_games_are_whole_and_say_whose_they_are(file):
    # What counts are the first two half-moves; what is listed can be played through.
    found, person = reply_games(WHITE_BOOK, GameSelection(file, "Carol", max_plies=2))
    first, second = found[uci("e2e4 c7c5")].games
    assert (first.moves, second.moves) == (uci("e2e4 c7c5 g1f3 d7d6"), uci("e2e4 c7c5 b1c3"))
    assert person == Person("Carol, Ann", 3, 1999, 2003)
    black_book = book_of("e2e4 | c7c5", side=chess.BLACK)
    assert reply_games(black_book, GameSelection(file, "Carol"))[1] == Person("Carol, Ann", 1, 2001, 2001)
    assert reply_games(black_book, GameSelection(file, "Dave", before=2000.0))[1] == Person("Dave", 0)
    assert reply_games(WHITE_BOOK, GameSelection(file))[1] is None


def test_what_rests_on_guesses(file):
    book = book_of("| e2e4", "e2e4 c7c5 | g1f3", "e2e4 e7e5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | d2d4")
    found, _ = reply_games(book, GameSelection(file, "Carol"))
    assert rests_on_guesses(book, found) == [False, False, True, True]
    black_book = book_of("e2e4 | c7c5", "d2d4 | d7d5", side=chess.BLACK)
    assert rests_on_guesses(black_book, reply_games(black_book, GameSelection(file, "Carol"))[0]) == [
        False,
        True,
    ]


@pytest.mark.parametrize("side", chess.COLORS)
def test_by_brute_force(side, tmp_path):
    """Random games of few moves, read by python-chess and looked through one by one."""
    rng = random.Random(int(side))
    choices = ["e2e4 d2d4 g1f3", "c7c5 e7e5 g8f6", "g1f3 d2d4 e2e4 b1c3", "d7d6 b8c6 e7e6 g8f6"]
    games = []
    for number in range(100):
        game = chess.pgn.Game()
        game.headers["White"], game.headers["Black"] = rng.sample(["Ann", "Bob", "Carol"], 2)
        game.headers["Date"] = f"{rng.randint(1990, 2020)}.??.??"
        game.headers["Result"] = "1-0"
        node: chess.pgn.GameNode = game
        for options in choices:
            legal = [m for m in uci(options) if m in node.board().legal_moves]
            if not legal:
                break
            node = node.add_variation(rng.choice(legal))
        # Differences of games that are the same so far: they are long enough to be compared.
        for _ in range(number % 7):
            node = node.add_variation(rng.choice(sorted(node.board().legal_moves, key=chess.Move.uci)))
        games.append(game)
    path = tmp_path / "games.pgn"
    path.write_text("\n\n".join(map(str, games)))
    white = ("| e2e4", "e2e4 e7e5 | g1f3")
    black = ("e2e4 | e7e5", "d2d4 | g8f6", "e2e4 e7e5 g1f3 | b8c6")
    book = book_of(*(white if side else black), side=side)
    exits = book_exits(book, uniform)
    found = reply_games(book, GameSelection(path, "Ann"), exits=exits, most=1000)[0]
    expected = {each.history[: ply + 1]: 0 for each in exits for ply in range(len(each.history))}
    played = [
        {(node.parent.board().epd(), node.move) for node in game.mainline()}
        for game in games
        if game.headers["Black" if side else "White"] == "Ann"
    ]
    for history in expected:
        board = chess.Board()
        for move in history[:-1]:
            board.push(move)
        expected[history] += sum((board.epd(), history[-1]) in pairs for pairs in played)
    assert {h: each.count for h, each in found.items()} == {
        h: count for h, count in expected.items() if count and (len(h) % 2 == 0) == bool(side)
    }
    for behind in found.values():
        years = [game.year for game in behind.games]
        assert len(years) == behind.count and years == sorted(years, reverse=True)


@pytest.mark.parametrize("before", [math.inf, 2008.0])
@pytest.mark.parametrize("whose", ["Ann", "Ann; Bob", None])
def test_a_table_says_the_same_as_the_file(whose, before, monkeypatch, tmp_path):
    """Games without dates, of one day, that stand there twice, behind a result, from elsewhere; in parts."""
    rng, path = random.Random(1), tmp_path / "games.pgn"
    lines = ["1. e4 c5 2. Nf3 d6", "1. e4 e5 2. Nf3 Nc6", "1. Nf3 d6 2. e4 c5 3. d4", "1. e4 c5 2. Nc3 a7"]
    texts = []
    for k in range(60):
        white, black = rng.sample(["Ann", "Bob", "Carol"], 2)
        date = rng.choice(["????.??.??", "2001.01.01", f"{2000 + k % 20}.05.??"])
        texts.append(game(rng.choice([*lines, LINE]), white, black, Date=date, Result="1-0"))
    elsewhere = game(
        "1. e4 c5", "Ann", "Bob", FEN="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1", SetUp="1"
    )
    texts[9:9] = [elsewhere, game("1. e4 c5 1-0 1. e4 e5 2. Nf3 0-1 3. a3", "Bob", "Ann", Date="2020.01.01")]
    path.write_text("".join(texts))
    for book in (WHITE_BOOK, book_of("e2e4 | c7c5", "e2e4 c7c5 g1f3 | d7d6", side=chess.BLACK)):
        meant, exits = GameSelection(path, whose, before=before), book_exits(book, uniform)
        read, report = GameReport(), GameReport()
        found = reply_games(book, meant, exits=exits, most=3, report=read)
        table = meant.table(report)
        assert reply_games(book, meant, exits=exits, most=3, report=report, table=table) == found
        with monkeypatch.context() as few:
            few.setattr(move_counts, "_BATCH", 7)
            assert reply_games(book, meant, exits=exits, most=3) == found
        assert read == report
        # One by one, as the file has them.
        replies, years = {}, []
        for record in meant.records(GameReport()):
            if before < math.inf and (record.year is None or record.year >= before):
                continue
            years += [record.year] * ((not book.side) in record.own)
            moves = [move_of(action) for action in record.actions]
            shown = PlayedGame(
                *(record.white, record.black, record.year and math.floor(record.year), record.result),
                tuple(moves) if record.keys[0] == START else (),
            )
            pairs = zip(record.keys, moves, strict=True)
            for pair in {p for ply, p in enumerate(pairs) if record.mover(ply) in record.own}:
                replies.setdefault(pair, []).append((-(record.year or -math.inf), shown))
        for history, behind in found[0].items():
            board = chess.Board()
            for move in history[:-1]:
                board.push(move)
            games = sorted(replies[position_hash(board), history[-1]], key=lambda entry: entry[0])
            assert behind == ReplyGames(len(games), tuple(each for _, each in games[:3]))
        assert len(found[0]) > 2 and (found[1] is None) == (whose is None)
        assert whose is None or found[1].games == len(years)
