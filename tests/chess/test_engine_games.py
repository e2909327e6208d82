"""Games between two engine processes, as match programs play them."""

import contextlib
import gc
import io
import os
import signal
import threading
import time

import chess
import chess.pgn
import psutil  # type: ignore[import-untyped,unused-ignore]
import pytest

from precomp_games._support.deadlines import Deadline, limited
from precomp_games.chess import Book, EngineError
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.game import move_of
from precomp_games.chess.plan.sparring import SparringGames
from precomp_games.chess.play import engine_games
from precomp_games.chess.play.engine_games import (
    Clock,
    MatchEngine,
    _over,
    cut_to_whole_games,
    play_engine_games,
)
from tests.chess.test_engine import FAKE, forked
from tests.oracles.chess_books import entry

LIMIT = SearchLimit(nodes=1000)
ENDGAME = "8/5k2/8/8/8/8/3PK3/8 w - - 0 1"
EMPTY = Book(chess.Board(ENDGAME), chess.WHITE, ())
# The king's move, and another one after one of the replies.
BOOK = Book(chess.Board(ENDGAME), chess.WHITE, [entry("", {"e2e3": 1.0}), entry("e2e3 f7e7", {"d2d4": 1.0})])


def entrant(name, *faults, limit=LIMIT):
    return MatchEngine(name, (*FAKE, "--remembers", *faults), limit)


def played(own, opponent, count=1, book=EMPTY, concurrency=1):
    texts, headers = [], [{"Round": str(k)} for k in range(count)]
    play_engine_games(book, own, opponent, headers, texts.append, concurrency=concurrency)
    return sorted(texts)


def read(texts, path):
    path.write_text("".join(texts), encoding="utf-8")
    return SparringGames.read(path, "them").records


def test_games_are_the_same_whoever_dies(tmp_path):
    """Side by side or not, with engines that end amid a game; a reader finds which moves were a book's."""
    plain = played(entrant("us"), entrant("them"), 3, BOOK)
    faults = ("--fault=exit", "--times=2", f"--state={tmp_path / 'state'}", "--only=5k2")
    assert played(entrant("us"), entrant("them", *faults), 3, BOOK, concurrency=2) == plain
    assert (tmp_path / "state").stat().st_size
    record, *others = read(plain, tmp_path / "games.pgn")
    assert len(others) == 2  # though all are the same
    assert record.white == "us" and record.black == "them"
    first, second = (move_of(action).uci() for action in record.actions[:2])
    assert first == "e2e3" and record.booked == ({0, 2} if second == "f7e7" else {0})
    assert "{ [%eval" in plain[0] and "{ book }" in plain[0]


@pytest.mark.parametrize(
    ("fault", "times"),
    [("hang", 1), ("exit-at-start", 2), *((f, 99) for f in ("exit", "no-move", "nonsense"))],
)
def test_an_engine_that_fails_is_started_again_and_not_for_ever(fault, times, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_games, "_PATIENCE", 2.0 if fault == "hang" else 60.0)
    failing = entrant("them", f"--fault={fault}", f"--times={times}", f"--state={tmp_path / 'state'}")
    if times == 99:
        message = r"expected an engine to play, got .* from them, in each of 3 games"
        with pytest.raises(EngineError, match=message):
            played(entrant("us"), failing)
    else:
        assert played(entrant("us"), failing) == played(entrant("us"), entrant("them"))
        assert (tmp_path / "state").stat().st_size == times


def test_what_cannot_be_started_and_names_that_no_tag_can_have_are_refused():
    for command, options, message in (
        ("/nowhere", {}, "expected '/nowhere' to start as a UCI engine"),
        (FAKE, {"Strength": "1"}, r"start as a UCI engine, got .*Strength.*: check"),
        ([*FAKE, "--fault=exit-at-start"], {}, r"start as a UCI engine, got .*, 3 times running: check"),
    ):
        with pytest.raises(EngineError, match=message):
            played(entrant("us"), MatchEngine("them", command, LIMIT, options))
    for name in ("", 'a"b', "a\nb"):
        with pytest.raises(ValueError, match="expected a name without quotes"):
            MatchEngine(name, FAKE, LIMIT)


def test_whose_time_runs_out_loses(tmp_path):
    slow = entrant("them", "--fault=slow", limit=Clock(0.5))
    (text,) = played(entrant("us", limit=Clock(0.5)), slow)
    assert '[Termination "time forfeit"]' in text and '[Result "1-0"]' in text
    assert '[TimeControl "0.5+0"]' in text and "[%clk 0:00:0" in text
    assert len(read([text], tmp_path / "games.pgn")[0].actions) < 6
    # A game without a move would be none for who reads it, and would be played for ever.
    slow = entrant("them", "--fault=slow", limit=Clock(0.1))
    with pytest.raises(EngineError, match="no time left after the first move of them, in each of 3 games"):
        played(entrant("us", limit=Clock(5.0)), slow)


def test_a_move_of_the_book_takes_no_time_and_brings_the_increment():
    """The fake engine takes milliseconds a move, so that a clock shows how many increments there were."""
    sides = entrant("us", limit=Clock(90.0, 100.0)), entrant("them", limit=Clock(90.0))
    (text,) = played(*sides, book=BOOK)
    ours = list(chess.pgn.read_game(io.StringIO(text)).mainline())[::2]
    first = next(k for k, node in enumerate(ours) if "book" not in node.comment)
    assert first >= 1 and ours[first - 1].clock() is None
    assert ours[first].clock() == pytest.approx(90.0 + 100.0 * (first + 1), abs=10.0)


def test_a_game_is_resigned_where_both_agree_and_drawn_where_both_see_nothing():
    """Three times, and eight times after 40 moves."""
    board = chess.Board()
    assert _over(board, [1000] * 6) == ("1-0", "adjudication")
    assert _over(board, [-1000] * 6) == ("0-1", "adjudication")
    assert _over(board, [1000] * 5 + [999]) is None and _over(board, [None, *[1000] * 5]) is None
    assert _over(board, [10] * 16) is None  # so early
    for move in ("g1f3", "g8f6", "f3g1", "f6g8") * 2:
        board.push_uci(move)
    assert _over(board, []) == ("1/2-1/2", "threefold repetition")
    board.clear_stack()
    board.move_stack = [next(iter(board.legal_moves))] * 80
    assert _over(board, [10, -10] * 8) == ("1/2-1/2", "adjudication")
    assert _over(board, [11, -10] * 8) is None


def test_clocks():
    assert Clock.parse("1+0.01") == Clock(1.0, 0.01) and str(Clock(60.0, 0.6)) == "60+0.6"
    assert Clock(1.0, 0.01).move_ms == 35
    assert Clock(1.0, 0.01).time_gained(0) == 1.0
    assert Clock(1.0, 0.01).time_gained(20) == pytest.approx(1.6 / 0.9)  # 1 + 60 x 0.01, and half of 1, + 0.4
    assert Clock(60.0).time_gained(10) == pytest.approx(4.0 / 3.0)
    assert Clock(60.0).time_gained(500) == pytest.approx(40.0)
    for wrong in ("", "1", "1+", "a+b", "0+1", "1+-1", None):
        with pytest.raises(ValueError, match="expected"):
            Clock.parse(wrong)


@pytest.mark.parametrize(("after", "presses"), [(0.02, 1), (0.2, 9), (0.7, 4)])
def test_ctrl_c_ends_all_engines_before_their_loop(after, presses, tmp_path):
    """However often it is pressed, and whatever they do: nothing is left, and nothing is written."""

    def press():
        time.sleep(after)
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.03)

    def play(tell):
        os.dup2(os.open(tmp_path / "errors", os.O_WRONLY | os.O_CREAT), 2)
        threading.Thread(target=press).start()
        with contextlib.suppress(KeyboardInterrupt):
            try:
                played(entrant("us"), entrant("them", "--fault=slow"), 9, concurrency=3)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.collect()
        tell([child.status() for child in psutil.Process().children()])

    process, heard = forked(play)
    assert heard.poll(60.0) and heard.recv() == []
    process.join()
    assert process.exitcode == 0 and (tmp_path / "errors").read_text() == ""


def test_no_game_is_begun_when_time_is_up():
    with limited(Deadline(0.0)):
        assert played(entrant("us"), entrant("them")) == []


# -- files that grow -----------------------------------------------------------------------------------------

GAME = """[Event "Sparring, round 0"]
[Round "0.{number}"]
[White "us"]
[Black "{name}"]
[Result "{result}"]

1. d4 {{ [%eval 0.3,2] [%clk 0:00:01] }} 1... Ke6 {{ book }}
{result}

"""


@pytest.mark.parametrize(
    ("name", "result"), [("them", "1-0"), ("Engine 1-0", "1/2-1/2"), ("1/2-1/2 *", "0-1"), ("* 0-1", "*")]
)
def test_half_a_game_is_cut_off_wherever_it_ends(tmp_path, name, result, monkeypatch):
    """At every byte; what is whole stays as it is, and the next game is not glued to anything."""
    monkeypatch.setattr(os, "fsync", lambda file: None)  # which takes most of the time
    before = "".join(GAME.format(number=k, name=name, result="1-0") for k in (1, 2)).encode()
    last, next_one = (GAME.format(number=k, name=name, result=result).encode() for k in (3, 4))
    path = tmp_path / "games.pgn"
    for size in range(len(last) + 1):
        for first in (before, b""):
            path.write_bytes(first + last[:size])
            whole = size >= len(last) - 2  # its result is there
            assert cut_to_whole_games(path) == (0 if whole else size)
            assert path.read_bytes() == first + (last if whole else b"")
    path.write_bytes(last + next_one)
    assert cut_to_whole_games(path) == 0 and path.read_bytes() == last + next_one


def test_of_games_of_others_half_a_game_at_most_is_cut_off(tmp_path):
    path = tmp_path / "games.pgn"
    for text in ("no game\n" * 200_000, '[Event "a"]\n\n1. e4\n\n[Event "b"]\n\n1. e4 e5\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match="expected games that end in a result"):
            cut_to_whole_games(path)
        assert path.read_text() == text
    # They may stand without empty lines.
    whole = '[Event "a"]\n\n1. e4 1-0\n[Event "b"]\n\n1. d4\n{ [%eval 1] } 0-1'
    path.write_text(f'{whole}\r\n[Event "c"]\n\n1. c4')
    assert cut_to_whole_games(path) == 18 and path.read_text() == f"{whole}\n\n"
