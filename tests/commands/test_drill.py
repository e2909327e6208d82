"""`precomp-games drill` in a terminal: questions, answers, and progress from one run to the next."""

import io
import sqlite3

import chess
import pytest

from precomp_games.chess import EvaluationStore, PreparationSettings
from precomp_games.chess.engines.searches import Line, SearchResult
from tests.commands.conftest import BOOK, call, write_book


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Return a function that drills a book of three positions, with what is typed, and returns the output."""
    write_book(tmp_path / "book")
    (tmp_path / "mine.pgn").write_text(BOOK)

    def run(typed, *flags, book=("--from=book",), progress="p", status=0, encoding="utf-8"):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*typed, ""])))
        flags = (*book, "--drill_seed=1", f"--progress=kept/{progress}.sqlite", *flags)
        ended, printed, error = call(tmp_path, "drill", *flags, encoding=encoding)
        assert ended == status, error
        return error if status else printed

    return run


def test_answers_are_printed_and_kept_to_the_next_run(answered):
    first = answered(["e4", "Nf9", "b1c3", "", ""])
    for words in (
        "Right: e4. It comes up in every game. Forgetting it costs 40 points in 100 games.",
        "'Nf9' is no legal move here",
        "Right: Nc3",
        "No: Nf3",
        "2 of 3 right. 2 of 3 positions are known",
        "costs 30 points in 100 games",
        "2 ♙ ♙ ♙ ♙ · ♙ ♙ ♙",
        "  a b c d e f g h",
    ):
        assert words in first
    assert "Nothing is left to ask today." in answered([], "--nounicode")


_NO_MOVES = ["--", "0000", "?", "help", "", "@@@@", "Z0", " ", "Ke2", "e5", "e2e5", "a7a8q", "1. e4", "a1a1"]


def test_what_is_no_move_is_no_answer(answered, tmp_path):
    """It is asked again, and nothing is kept; the right move counts after it."""
    output = answered([*_NO_MOVES, "resign", "\u2654", "e4", "", "quit"])
    assert "Right: e4." in output and "1 of 1 right" in output and "No:" not in output
    explained = output.count("is no legal move here: answer as in Nf3") + output.count("Enter once more")
    assert explained == len(_NO_MOVES) + 2 + 1
    with sqlite3.connect(tmp_path / "kept" / "p.sqlite") as file:
        assert file.execute("SELECT answer FROM answers").fetchall() == [("e2e4",)]


def test_what_a_wrong_answer_costs_and_what_is_replied(answered, tmp_path):
    """Cost and reply are printed if the preparation or stored searches have them, and else nothing."""
    settings = PreparationSettings()
    start, board = chess.Board(), chess.Board()
    board.push_san("c4")
    with EvaluationStore(tmp_path / "kept.sqlite") as store:
        lines = (Line("e2e4", 40, None), Line("b1c3", None, -3))
        for epd, found in ((start.epd(), lines), (board.epd(), (Line("e7e5", 35, None),))):
            store.put("Fake", settings.analyst_limit, settings.multipv, epd, SearchResult(found, 5, 9))
    for kept, move, cost, searched in (
        ("kept", "c4", "c4 instead would cost 2.0.", "e4 0.40; c4 is answered by e5, -0.35."),
        ("kept", "Nc3", "Nc3 instead would bring 1.2.", "e4 0.40; Nc3 #-3."),
        ("kept", "a4", "Nc3 instead would bring 1.2.", "e4 0.40."),
        ("none", "c4", "c4 instead would cost 2.0.", None),
    ):
        output = answered([move, "q"], f"--store={kept}.sqlite", progress=f"{kept}{move}")
        message = "No: e4. It comes up in every game. Forgetting it costs 40 points in 100 games."
        assert f"{message} {cost}" in output and ("in pawns" in output) == (kept == "kept")
        assert searched is None or f"Fake, in pawns for White: {searched}" in output


def test_whole_lines_begin_with_move_1(answered):
    """After the first line's end, the next one begins there again, though that is known."""
    output = answered(["e4", "", "", "e4", "q"], "--from_move_1")
    begun = [line.partition("   ")[0] for line in output.splitlines() if "% of games" in line]
    assert begun[0] == begun[2] == "(start)" and begun[1] != begun[3]
    assert begun[1].startswith("1. e4 ") and begun[3].startswith("1. e4 ")


def test_a_terminal_without_chess_symbols(answered):
    """As with LC_ALL=C."""
    assert "R N B Q K B N R" in answered([], encoding="ascii")
    assert "--nounicode" in answered([], "--unicode", status=1, encoding="ascii")


def test_positions_of_ones_own_book_are_asked_by_how_many_lines_pass_through_them(answered):
    own = ("--book=mine.pgn", "--side=white")
    printed = answered(["e4", "Nc3", "Nf3", "q"], "--drill_seed=0", "--nounicode", book=own)
    assert "(start)   100 % of lines" in printed and "Right: e4.\n" in printed
    assert "1. e4 c5   50 % of lines" in printed and "No: Nf3.\n" in printed
    assert "1 of 2 right. 1 of 7 positions are known by now. Of all lines 100% pass" in printed
    assert "points" not in printed and "♙" not in printed  # which nobody knows, or wants to see
