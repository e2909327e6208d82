"""A repertoire of one's own in commands: drilled, played and made into studies, without a preparation."""

import io
import json
import sys

import chess.pgn
import pytest

from precomp_games.chess import Preparation
from precomp_games.commands import main

_BOOK = (
    "{My book} 1. e4 e5 (1... c5 $1 {the Sicilian} 2. Nf3 d6 (2... e6 3. d4) 3. d4 cxd4 {no answer yet}) "
    "(1... e6 2. Nf3 c5 3. d4) 2. Nf3 Nc6 3. Bb5 *\n"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.pgn").write_text(_BOOK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _said(capsys, *words, status=0):
    assert main(["precomp-games", *words]) == status
    told = capsys.readouterr()
    return told.out if status == 0 else told.err


def test_a_drill_of_positions_by_how_many_lines_pass_through_them(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("e4\nNc3\nNf3\nq\n"))
    told = _said(capsys, "drill", "--book=mine.pgn", "--side=white", "--drill_seed=0", "--nounicode")
    assert "(start)   100 % of lines" in told and "Right: e4.\n" in told
    assert "1. e4 c5   50 % of lines" in told and "No: Nf3.\n" in told
    assert "1 of 2 right. 1 of 7 positions are known by now. Of all lines 100% pass" in told
    assert "points" not in told  # which nobody knows


def test_studies_of_any_repertoire(here, capsys):
    told = _said(capsys, "report", "--book=mine.pgn", "--side=white")
    assert "For study: output/book_report/lichess-1.pgn" in told
    games = []
    with open(here / "output" / "book_report" / "lichess-1.pgn", encoding="utf-8") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            games.append(game)
    sicilian = next(each for each in games[0].variations[0].variations if each.san() == "c5")
    assert (sicilian.comment, sicilian.nags) == ("the Sicilian", {chess.pgn.NAG_GOOD_MOVE})
    text = (here / "output" / "book_report" / "lichess-1.pgn").read_text()
    assert "My book" in text and "cxd4 { no answer yet }" in text and "of games" not in text


@pytest.mark.engine
def test_a_match_of_a_repertoire_and_the_folder_of_its_judgment(here, capsys, searches):
    opponent = ("--opponent=uci(nodes=100,r=40,top_k=3)", f"--store={searches}", "--side=white")
    played = ("--games=2", "--nocontrols", "--output_dir=match")
    told = _said(capsys, "match", "--book=mine.pgn", *opponent, *played)
    assert "White's book of " in told and "made against another opponent" not in told
    assert json.loads((here / "match" / "result.json").read_text())["matches"][1]["promised"] > 0.0
    told = _said(capsys, "judge", "--book=mine.pgn", *opponent, "--penalty=0.02", "--output_dir=judged")
    order = ["Coverage", "Replies without an answer", "What to learn next", "What to drop first"]
    assert sorted(order, key=told.index) == order
    made = Preparation.read(here / "judged")
    assert made.utility == pytest.approx(made.unprepared + sum(made.gains))
    told = _said(capsys, "match", "--book=judged/book.bin", "--from=judged", *opponent[:2], *played)
    assert f"White's book of {made.book.distinct_positions} positions" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("drill --book=mine.pgn --from=x", "--from: expected none beside --book (precomp-games judge makes"),
        ("drill --book=none.pgn", "--book: expected PGN or Polyglot files, got 'none.pgn' (No such file"),
        ("drill --book=mine.pgn", "--book: expected files that tell whose book it is where no side is given"),
        ("drill --book=odd.bin --side=white", "--book: expected moves of white in 'odd.bin', got none"),
        ("match --book=mine.pgn", "--opponent: expected whom to play with --book and no --from, got none"),
        (
            "report --book=mine.pgn --export=anki",
            "--export: expected lichess with --book (precomp-games judge",
        ),
    ],
)
def test_what_is_wrong_is_one_line(here, capsys, words, told):
    (here / "odd.bin").write_bytes(bytes(range(40)))
    if words == "drill --book=mine.pgn":
        (here / "mine.pgn").write_text("1. e4 e5 2. Nf3 *")
    error = _said(capsys, *words.split(), status=1)
    assert error.startswith(f"error: {told}") and error.count("\n") == 1
