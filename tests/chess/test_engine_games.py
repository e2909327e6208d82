"""Games between two engine processes, as match programs play them."""

import io
import subprocess
import sys

import chess
import chess.pgn
import pytest

from precomp_games._support.deadlines import Deadline, limited
from precomp_games.chess import Book, BookMove, BookPosition, EngineError
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
from tests.chess import fake_engine

FAKE = (sys.executable, fake_engine.__file__, "--remembers")
LIMIT = SearchLimit(nodes=1000)
ENDGAME = "8/5k2/8/8/8/8/3PK3/8 w - - 0 1"
EMPTY = Book(chess.Board(ENDGAME), chess.WHITE, ())


def entrant(name, *faults, limit=LIMIT):
    return MatchEngine(name, (*FAKE, *faults), limit)


def played(own, opponent, count=3, book=EMPTY, concurrency=1):
    texts, headers = [], [{"Round": str(k)} for k in range(count)]
    play_engine_games(book, own, opponent, headers, texts.append, concurrency=concurrency)
    return sorted(texts)


def read(texts, path, name="them"):
    path.write_text("".join(texts), encoding="utf-8")
    return SparringGames.read(path, name)


@pytest.fixture(scope="module")
def book():
    """Return the king's move, and another one after one of the replies."""
    king, pawn = chess.Move.from_uci("e2e3"), chess.Move.from_uci("d2d4")
    after = (king, chess.Move.from_uci("f7e7"))
    return Book(
        chess.Board(ENDGAME),
        chess.WHITE,
        [
            BookPosition((), (BookMove(king, 1.0),), 1.0, 0.0),
            BookPosition(after, (BookMove(pawn, 1.0),), 0.5, 0.0),
        ],
    )


def test_games_are_the_same_whoever_dies(tmp_path, book):
    """Side by side or not, with engines that end amid a game; a reader finds which moves were a book's."""
    plain = played(entrant("us"), entrant("them"), book=book)
    faults = ("--fault=exit", "--times=2", f"--state={tmp_path / 'state'}", "--only=5k2")
    assert played(entrant("us"), entrant("them", *faults), book=book, concurrency=2) == plain
    assert (tmp_path / "state").stat().st_size
    games = read(plain, tmp_path / "games.pgn")
    assert len(games.records) == 3  # though all are the same
    record = games.records[0]
    assert record.white == "us" and record.black == "them"
    second = move_of(record.actions[1]).uci() == "f7e7"
    assert record.booked == ({0, 2} if second else {0})
    assert move_of(record.actions[0]).uci() == "e2e3"
    assert "{ [%eval" in plain[0] and "{ book }" in plain[0]


@pytest.mark.parametrize("fault", ["exit", "no-move", "nonsense"])
def test_an_engine_that_never_plays_is_told(fault):
    with pytest.raises(
        EngineError, match=r"expected an engine to play, got .* from them, in each of 3 games"
    ):
        played(entrant("us"), entrant("them", f"--fault={fault}"))


def test_an_engine_that_hangs_is_started_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_games, "_PATIENCE", 0.5)
    hanging = entrant("them", "--fault=hang", "--times=1", f"--state={tmp_path / 'state'}")
    assert played(entrant("us"), hanging, count=1) == played(entrant("us"), entrant("them"), count=1)


def test_what_cannot_be_started_is_told():
    with pytest.raises(EngineError, match="expected '/nowhere' to start as a UCI engine"):
        played(entrant("us"), MatchEngine("them", "/nowhere", LIMIT))
    with pytest.raises(EngineError, match=r"start as a UCI engine, got .*Strength.*: check"):
        played(entrant("us"), MatchEngine("them", FAKE, LIMIT, {"Strength": "1"}))
    for name in ("", 'a"b', "a\nb"):
        with pytest.raises(ValueError, match="expected a name without quotes"):
            MatchEngine(name, FAKE, LIMIT)


def test_whose_time_runs_out_loses(tmp_path):
    slow = entrant("them", "--fault=slow", limit=Clock(0.5))
    (text,) = played(entrant("us", limit=Clock(0.5)), slow, count=1)
    assert '[Termination "time forfeit"]' in text and '[Result "1-0"]' in text
    assert '[TimeControl "0.5+0"]' in text and "[%clk 0:00:0" in text
    assert len(read([text], tmp_path / "games.pgn").records[0].actions) < 6


def test_a_move_of_the_book_takes_no_time_and_brings_the_increment(book):
    """The fake engine takes milliseconds a move, so that a clock shows how many increments there were."""
    (text,) = played(entrant("us", limit=Clock(90.0, 100.0)), entrant("them", limit=Clock(90.0)), 1, book)
    game = chess.pgn.read_game(io.StringIO(text))
    ours = list(game.mainline())[::2]
    first = next(k for k, node in enumerate(ours) if "book" not in node.comment)
    assert first >= 1 and ours[first - 1].clock() is None
    assert ours[first].clock() == pytest.approx(90.0 + 100.0 * (first + 1), abs=10.0)


def test_who_gets_no_move_done_plays_no_game():
    """A game without a move would be none for who reads it, and would be played for ever."""
    slow = entrant("them", "--fault=slow", limit=Clock(0.1))
    with pytest.raises(EngineError, match="no time left after the first move of them, in each of 3 games"):
        played(entrant("us", limit=Clock(5.0)), slow, count=1)


def test_adjudication():
    """Resigned where both agree three times, drawn where both see nothing eight times."""
    board = chess.Board()
    assert _over(board, [1000] * 6) == ("1-0", "adjudication")
    assert _over(board, [-1000] * 6) == ("0-1", "adjudication")
    assert _over(board, [1000] * 5 + [999]) is None and _over(board, [None, *[1000] * 5]) is None
    assert _over(board, [10] * 16) is None  # so early
    for k in range(80):
        board.push(chess.Move.from_uci(("g1f3", "g8f6", "f3g1", "f6g8")[k % 4]))
    board.clear_stack()
    moves = [next(iter(board.legal_moves))] * 80
    board.move_stack = moves
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


@pytest.mark.parametrize(("times", "ends"), [(1, False), (2, False), (99, True)])
def test_an_engine_that_ends_as_it_starts_is_started_again(tmp_path, times, ends):
    faults = ("--fault=exit-at-start", f"--times={times}", f"--state={tmp_path / 'state'}")
    if ends:  # not for ever
        with pytest.raises(EngineError, match=r"to start as a UCI engine, got .*, 3 times running: check"):
            played(entrant("us"), entrant("them", *faults), count=1)
        assert (tmp_path / "state").stat().st_size == 3
        return
    assert played(entrant("us"), entrant("them", *faults), 1) == played(entrant("us"), entrant("them"), 1)
    assert (tmp_path / "state").stat().st_size == times


_INTERRUPTED = """
import gc, sys, threading, time, os, signal
from tests.chess.test_engine_games import EMPTY, entrant
from precomp_games.chess.play.engine_games import play_engine_games

def press():
    time.sleep(float(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.03)

slow = entrant("them", "--fault=slow"), [{"Round": "1"}] * 9, print
threading.Thread(target=press).start()
try:
    try:
        play_engine_games(EMPTY, entrant("us"), *slow, concurrency=3)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
except KeyboardInterrupt:
    gc.collect()
    print("interrupted", threading.active_count())
"""


# Costs seconds: processes, which are interrupted while they start and play.
@pytest.mark.parametrize(("after", "presses"), [(0.02, 1), (0.3, 4), (0.8, 1), (0.8, 9)])
def test_ctrl_c_ends_all_engines_before_their_loop(after, presses):
    """However often it is pressed, and whatever they do: nothing is left, and nothing is written."""
    command = [sys.executable, "-c", _INTERRUPTED, str(after), str(presses)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "" and done.stdout.startswith("interrupted ")


def test_the_games_know_until_when_there_is_time():
    with limited(Deadline(0.0)):
        assert played(entrant("us"), entrant("them")) == []


# -- files that grow -----------------------------------------------------------------------------------------

_GAME = """[Event "Sparring, round 0"]
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
def test_half_a_game_is_cut_off_wherever_it_ends(tmp_path, name, result):
    """At every byte; what is whole stays as it is, and the next game is not glued to anything."""
    before = "".join(_GAME.format(number=k, name=name, result="1-0") for k in (1, 2)).encode()
    last, next_one = (_GAME.format(number=k, name=name, result=result).encode() for k in (3, 4))
    path = tmp_path / "games.pgn"
    for size in range(len(last) + 1):
        for first in (before, b""):
            path.write_bytes(first + last[:size])
            whole = size >= len(last) - 2  # its result is there
            assert cut_to_whole_games(path) == (0 if whole else size)
            assert path.read_bytes() == first + (last if whole else b"")
    with path.open("ab") as file:
        file.write(next_one)
    assert cut_to_whole_games(path) == 0 and path.read_bytes().endswith(next_one)


@pytest.mark.parametrize("text", ["no game\n" * 200_000, '[Event "a"]\n\n1. e4\n\n[Event "b"]\n\n1. e4 e5\n'])
def test_what_is_more_than_half_a_game_is_left_alone(tmp_path, text):
    path = tmp_path / "games.pgn"
    path.write_text(text)
    with pytest.raises(ValueError, match="expected games that end in a result"):
        cut_to_whole_games(path)
    assert path.read_text() == text


def test_games_of_others_may_stand_without_empty_lines(tmp_path):
    path = tmp_path / "games.pgn"
    whole = '[Event "a"]\n\n1. e4 1-0\n[Event "b"]\n\n1. d4\n{ [%eval 1] } 0-1'
    path.write_text(f'{whole}\r\n[Event "c"]\n\n1. c4')
    assert cut_to_whole_games(path) == 18 and path.read_text() == f"{whole}\n\n"
