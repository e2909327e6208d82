"""The UCI engine: its answers line by line, books, engines behind it that fail, and real games."""

import queue
import shlex
import sys
import threading
import time

import chess
import chess.engine
import chess.polyglot
import pytest

from precomp_games.chess import EngineError, action_of, find_engine, write_polyglot
from precomp_games.chess.play.players import EnginePlayer, Player, PolicyPlayer
from precomp_games.chess.play.uci_engine import UciEngine, uci_book
from precomp_games.commands.uci import main
from tests.chess import fake_engine
from tests.chess.test_engine import FAKE
from tests.oracles.chess_books import book_of
from tests.oracles.games import last

E4 = ("position startpos moves e2e4", "go")
POSITION = ("position startpos", "go")


def message(*commands, book=None, policy=last, player=None):
    """Return the engine's lines in reply to these commands."""
    lines, player = [], player or PolicyPlayer(policy, "last", 1)
    UciEngine(player, uci_book(book) if book else None, say=lines.append, seed=1).run(commands)
    return lines


def by_policy(*moves):
    """Return the line by which `last` plays after these moves."""
    board = chess.Board()
    for move in moves:
        board.push_uci(move)
    return "bestmove " + max(board.legal_moves, key=action_of).uci()


class Talk:
    """An engine in a thread, talked to line by line."""

    def __init__(self, player, book=None):
        self.sent, self.notes = queue.Queue(), queue.Queue()
        engine = UciEngine(player, uci_book(book) if book else None, say=self.notes.put, seed=1)
        self.thread = threading.Thread(target=engine.run, args=(iter(self.sent.get, None),), daemon=True)
        self.thread.start()

    def send(self, *lines):
        for line in lines:
            self.sent.put(line)

    def hear(self, start):
        """Return the next line that starts so; those before it are dropped."""
        while not (line := self.notes.get(timeout=20.0)).startswith(start):
            pass
        return line

    def end(self):
        self.send(None)
        self.thread.join(20.0)
        assert not self.thread.is_alive()
        return list(self.notes.queue)


# -- commands ------------------------------------------------------------------------------------------------


def test_it_introduces_itself():
    lines = message("uci", "isready", "quit", "isready")
    assert lines[0] == "id name precomp-games: last"
    assert lines[-2:] == ["uciok", "readyok"]
    assert "option name OwnBook type check default true" in lines


def test_a_book_answers_by_history_and_a_polyglot_file_by_position(tmp_path):
    book, path = book_of("g1f3 d7d5 d2d4 g8f6 | c2c4", "| g1f3", "g1f3 d7d5 | d2d4"), tmp_path / "book.bin"
    assert message(*POSITION, book=book) == ["info string book: Nf3", "bestmove g1f3"]
    line = ("position startpos moves g1f3 d7d5", "go movetime 5")
    assert message(*line, book=book)[-1] == "bestmove d2d4"
    assert message(*E4, book=book) == [by_policy("e2e4")]
    assert message("setoption name OwnBook value false", *line, book=book) == [by_policy("g1f3", "d7d5")]
    left = book_of("| e2e4", "e2e4 e7e5 g1f3 b8c6 | f1b5")  # in which it has no move before that
    opening = ("e2e4", "e7e5", "g1f3", "b8c6")
    assert message(f"position startpos moves {' '.join(opening)}", "go", book=left) == [by_policy(*opening)]
    other = ("position startpos moves d2d4 d7d5 g1f3 g8f6", "go")
    assert message(*other, book=book) == [by_policy("d2d4", "d7d5", "g1f3", "g8f6")]
    write_polyglot(book, path)
    assert message(*other, book=str(path))[-1] == "bestmove c2c4"
    fen = chess.Board().fen().replace("KQkq", "-")  # another start
    assert not message(f"position fen {fen}", "go", book=book)[0].startswith("info string book")


def test_a_polyglot_file_that_is_not_sorted_is_read_all_the_same(tmp_path, caplog):
    """It is also reported; a reader that looks for keys by halves finds nothing in it."""
    path = tmp_path / "book.bin"
    write_polyglot(book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | b1c3"), path)
    data = path.read_bytes()
    path.write_bytes(b"".join(data[place : place + 16] for place in range(len(data) - 16, -1, -16)))
    commands = (*POSITION, "position startpos moves e2e4 c7c5", "go")
    assert message(*commands, book=str(path))[1::2] == ["bestmove e2e4", "bestmove b1c3"]
    assert "2 entries not sorted by their keys" in caplog.text and caplog.text.count("\n") == 1


def test_polyglot_files_that_are_none_are_refused_and_empty_ones_taken(tmp_path):
    path = tmp_path / "book.bin"
    with pytest.raises(OSError):
        uci_book(str(path))
    path.write_bytes(b"x" * 17)
    with pytest.raises(ValueError, match="expected a Polyglot book"):
        uci_book(str(path))
    for data in (b"", bytes(range(256)) * 16):  # as is written of a book without positions, and nonsense
        path.write_bytes(data)
        assert uci_book(str(path))(chess.Board()) == {}


def test_draws_from_a_mixed_book_follow_its_probabilities_the_seed_and_searchmoves():
    book = book_of("| e2e4 d2d4")
    first = [line for line in message(*POSITION * 200, book=book) if line.startswith("best")]
    assert first == [line for line in message(*POSITION * 200, book=book) if line.startswith("best")]
    assert 60 < first.count("bestmove e2e4") < 140 and len(first) == 200
    lines = message(*("position startpos", "go searchmoves d2d4") * 5, book=book)
    assert {line for line in lines if line.startswith("best")} == {"bestmove d2d4"}
    assert message("position startpos", "go searchmoves a2a3", book=book) == [by_policy()]


@pytest.mark.parametrize(("go", "release"), [("infinite", "stop"), ("ponder wtime 5", "ponderhit")])
@pytest.mark.parametrize("book", [None, book_of("| e2e4")])
def test_answers_wait_until_they_are_wanted(go, release, book):
    talk = Talk(PolicyPlayer(last, "last", 1), book)
    talk.send("position startpos", f"go {go}", "isready")
    assert talk.hear("readyok")
    assert not any(line.startswith("bestmove") for line in list(talk.notes.queue))
    talk.send("go", "isready")  # refused: one search at a time
    assert "expected stop" in talk.hear("info string error")
    talk.send(release)
    assert talk.hear("bestmove") == ("bestmove e2e4" if book else by_policy())
    talk.send("stop", "isready")  # nothing to stop
    assert talk.hear("readyok")
    assert talk.end() == []


def test_the_next_go_may_come_as_soon_as_an_answer_is_heard():
    sent, output = queue.Queue(), []

    def hear(line):
        output.append(line)
        if line.startswith("bestmove"):
            sent.put("go" if len(output) < 5 else None)
            time.sleep(0.02)  # the command is read while the answer is still being written

    sent.put("go")
    UciEngine(PolicyPlayer(last, "last"), say=hear).run(iter(sent.get, None))
    assert output == [by_policy()] * 5


def test_what_is_no_uci_is_reported_and_passed_over():
    wrong = ("nonsense", "setoption", "setoption name OwnBook value perhaps")
    *errors, move = message("position startpos moves e2e4", *wrong, "go")
    assert len(errors) == 3 and all(line.startswith("info string error: ") for line in errors)
    assert move == by_policy("e2e4") and max(map(len, errors)) < 400


class Recorder(Player):
    """A player that notes what it is asked, and castles where it can, as king takes rook."""

    name = "recorder"

    def __init__(self, *options):
        self.options, self.asked = options, []

    def go(self, board, position, go, say):
        self.asked.append((position.removeprefix("position "), go))
        move = next(board.generate_castling_moves(), None) or next(iter(board.legal_moves))
        say(f"bestmove {board.uci(move, chess960=True)}")

    def command(self, line):
        """Nothing is under way."""


def asked(*commands, options=(), book=None):
    """Return a player's questions after these commands, and the engine's lines."""
    player = Recorder(*options)
    lines = message(*commands, book=book, player=player)
    return player.asked, lines


CHESS960 = ("option name Hash type spin", "option name UCI_Chess960 type check default false")
ROOKS = "r3k2r/p6p/8/8/8/8/P6P/R3K2R {} KQkq - 0 1"
WHITE_ROOKS = ROOKS.format("w")
PAWN = "8/P6k/8/8/8/8/p6K/8 {} - - 0 1"


@pytest.mark.parametrize(
    ("given", "written", "plain"),
    [
        (WHITE_ROOKS, "e1a1", "e1c1"),
        (ROOKS.format("b"), "e8h8", "e8g8"),
        (WHITE_ROOKS, "E1H1 e8A8", "e1g1 e8c8"),
        (WHITE_ROOKS, "E1G1", "e1g1"),
        (PAWN.format("w"), "a7a8Q", "a7a8q"),
        (PAWN.format("b"), "A2a1N", "a2a1n"),
        # What goes from e1 to h1 is no castling where the king is elsewhere.
        ("3k4/8/8/8/8/8/3K4/4R3 w - - 0 1", "e1h1", "e1h1"),
    ],
)
def test_a_player_is_handed_our_own_moves(given, written, plain):
    """However they are written; castling as king takes rook where UCI_Chess960 is set, and only there."""
    command = (f"position fen {given} moves {written}", "go")
    assert asked(*command)[0] == [(f"fen {given} moves {plain}", "go")]
    other = ("setoption name UCI_Chess960 value true", *command, "setoption name UCI_Chess960 value false")
    taken = written.lower().replace("e1g1", "e1h1")
    sent, _ = asked(*other, *command, options=CHESS960)
    assert sent == [(f"fen {given} moves {each}", "go") for each in (taken, plain)]
    assert asked(*other)[0] == [(f"fen {given} moves {plain}", "go")]  # of a player who does not offer it


@pytest.mark.parametrize(
    ("given", "handed"),
    [
        ("startpos moves", "startpos"),
        # What a FEN cannot have is dropped, and counters are added: rights without rooks, and to take a pawn
        # en passant that has not moved there.
        ("fen 4k3/8/8/8/8/8/4P3/4K3 w", "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"),
        ("fen 4k3/8/8/8/8/8/8/4K2R w KQkq - 3 9", "fen 4k3/8/8/8/8/8/8/4K2R w K - 3 9"),
        ("fen r3k2r/8/8/8/8/8/4K3/R6R b KQkq - 0 1", "fen r3k2r/8/8/8/8/8/4K3/R6R b kq - 0 1"),
        ("fen 4k3/8/8/8/4P3/8/8/4K3 w - e3 0 1", "fen 4k3/8/8/8/4P3/8/8/4K3 w - - 0 1"),
        (f"fen {WHITE_ROOKS.replace('KQkq', 'HAha')}", f"fen {WHITE_ROOKS}"),
    ],
)
def test_a_start_is_handed_on_as_the_rules_have_it(given, handed):
    assert asked(f"position {given}", "go")[0] == [(handed, "go")]


def test_moves_to_search_and_answers_are_written_as_the_board_writes_them():
    castling = f"position fen {WHITE_ROOKS}"
    sent, lines = asked(castling, "go searchmoves e1h1 A2A3 nodes 5")
    assert sent[0][1] == "go searchmoves e1g1 a2a3 nodes 5" and lines == ["bestmove e1g1"]
    sent, lines = asked("setoption name uci_chess960 value true", castling, "go", options=CHESS960)
    assert lines == ["bestmove e1h1"]
    book = book_of("e2e4 e7e5 g1f3 g8f6 f1c4 f8c5 | e1g1")
    line = "position startpos moves e2e4 e7e5 g1f3 g8f6 f1c4 f8c5"
    for value, answer in (("false", "e1g1"), ("true", "e1h1")):
        commands = (f"setoption name UCI_Chess960 value {value}", line, "go searchmoves e1g1")
        assert asked(*commands, options=CHESS960, book=book)[1][-1] == f"bestmove {answer}"


FISCHER = "1r3k1r/p6p/8/8/8/8/P6P/1R3K1R w HBhb - 2 9"


def test_after_a_position_that_cannot_be_played_there_is_none():
    for position in (
        "nonsense",
        "startpos e2e4",
        "fen",
        "fen 8/8/8/8/8/8/8/8 w - - 0 1",  # no king
        "fen " + "x" * 100_000,
        "fen 4k3/8/8/8/8/8/4R3/4K3 w - - 0 1",  # black could be taken
        f"fen {FISCHER}",
        "startpos moves e2e4 xyz",
        "startpos moves e2e4 0000 d2d4",
        "startpos moves e2e4 e7e5 g1f3 g8f6 f1c4 f8c5 f3g1 f6g8 e1h1",  # a rook out of reach
        "fen 8/P6k/8/8/8/8/8/K7 w - - 0 1 moves a7a8K",
        f"fen {WHITE_ROOKS} moves e1f1 e8e7 f1e1 e7e8 e1h1",  # rights that are lost
    ):
        commands = ("position startpos moves e2e4", f"position {position}", "go", "ucinewgame", "go nodes 3")
        sent, lines = asked(*commands, *POSITION, options=CHESS960)
        assert sent == [("startpos", "go")]
        assert [line.split()[0] for line in lines] == ["info", "bestmove"] * 2 + ["bestmove"]
        assert all(line.startswith("info string error: ") and len(line) < 400 for line in lines[:4:2])
        assert lines[1] == lines[3] == "bestmove 0000"


def test_no_position_is_answered_when_an_answer_is_wanted():
    assert message("position nonsense", "go infinite", "isready", "stop")[1:] == ["readyok", "bestmove 0000"]
    assert message("go") == [by_policy()]  # the game's start, where no position was given


def test_chess960_is_played_by_a_player_who_knows_it():
    position = f"position fen {FISCHER} moves f1b1"  # king takes rook
    for options, value in ((CHESS960, "false"), (("option name Hash type spin",), "true")):
        commands = (f"setoption name UCI_Chess960 value {value}", position, "go")
        assert asked(*commands, options=options)[1][-1] == "bestmove 0000"
    sent, lines = asked("setoption name UCI_Chess960 value true", position, "go", options=CHESS960)
    assert sent == [(position.removeprefix("position "), "go")] and lines == ["bestmove f8h8"]


def test_ended_games_have_no_move_and_unclaimed_draws_are_played_on():
    mated = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 4"
    assert message(f"position fen {mated}", "go") == ["bestmove (none)"]
    assert message("position fen 8/8/8/4k3/8/8/8/4K3 w - - 0 1", "go")[0].startswith("bestmove e1")


def test_a_policy_that_fails_ends_no_game():
    def broken(state):
        raise RuntimeError("out of\nluck")

    lines = message(*POSITION, policy=broken)
    assert lines[0] == "info string error: out of luck" and lines[1].startswith("bestmove ")


def test_the_end_of_the_input_ends_a_search_with_its_answer():
    assert message("position startpos", "go infinite") == [by_policy()]


# -- engines behind it ---------------------------------------------------------------------------------------


def test_an_engine_is_handed_everything_and_started_again_where_it_ends(tmp_path):
    fault = ["--fault=exit", "--only=4P3", "--times=1", f"--state={tmp_path / 'state'}"]
    talk = Talk(EnginePlayer([*FAKE, *fault]), book_of("| d2d4"))
    talk.send("uci", "setoption name MultiPV value 2", "isready", "position startpos", "go nodes 40")
    assert talk.hear("id name") == "id name precomp-games: Fake 1.0"
    assert talk.hear("option name Style") and talk.hear("uciok") and talk.hear("readyok")
    assert talk.hear("bestmove") == "bestmove d2d4"
    for opening in ("d2d4", "e2e4"):
        board = chess.Board()
        board.push_uci(opening)
        talk.send(f"position fen {board.fen()}", "go nodes 40")
        if opening == "e2e4":
            assert "is started again" in talk.hear("info string error")
        assert talk.hear("info depth 4 seldepth 4 multipv 2")  # with its options
        assert talk.hear("bestmove") == "bestmove " + fake_engine.ranked(board, 3)[0].uci()
    assert talk.end() == []


def test_programs_that_are_no_engines_are_refused():
    for command in ([*FAKE, "--fault=exit-at-start"], ["/bin/false"], ["/nonexistent"]):
        with pytest.raises(EngineError, match=r"EnginePlayer\(\): expected"):
            EnginePlayer(command)


# -- as a process --------------------------------------------------------------------------------------------


def test_wrong_flags_say_one_line_and_help_more(capsys):
    assert main(["precomp-games-uci", "--help"]) == 0 and "--opponent" in capsys.readouterr().out
    for flags, word in (
        ([], "--book"),
        (["--book=/nonexistent"], "--book"),
        (["--bok=x"], "bok"),
        (["--opponent=/nonexistent"], "precomp-games prepare"),
        (["--book=/dev/null", "--play=model"], "--play"),
    ):
        assert main(["precomp-games-uci", *flags]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1 and word in error


# Costs seconds: a process that imports the library.
@pytest.mark.engine
def test_a_game_through_python_chess(tmp_path):
    """With a book, and an engine of arguments behind it, which answers its move alone."""
    path = str(tmp_path / "book.bin")
    write_polyglot(book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | g1f3"), path)
    clocks = chess.engine.Limit(white_clock=10.0, black_clock=10.0, white_inc=0.1, black_inc=0.1, nodes=200)
    fake = shlex.join([*FAKE, "--fault=move-alone"])
    command = [sys.executable, "-m", "precomp_games.commands.uci", f"--book={path}", f"--engine={fake}"]
    with (
        chess.engine.SimpleEngine.popen_uci(command, timeout=60.0) as white,
        chess.engine.SimpleEngine.popen_uci(find_engine()) as black,
    ):
        white.configure({"Hash": 1})
        board = chess.Board()
        while not board.is_game_over(claim_draw=True) and board.ply() < 20:
            board.push((white if board.turn else black).play(board, clocks).move)  # refuses illegal moves
        assert board.move_stack[0].uci() == "e2e4"
        assert white.play(chess.Board(), clocks, ponder=True).move.uci() == "e2e4"
        assert not white.play(chess.Board("8/8/8/8/8/8/8/8 w - - 0 1"), clocks).move  # 0000
