"""A repertoire of one's own in commands: drilled, played and made into studies, without a preparation."""

import io
import json
import sys

import chess.pgn
import pytest

from precomp_games.chess import Preparation

_MINE = ("--book=mine.pgn", "--side=white")


def test_a_drill_of_positions_by_how_many_lines_pass_through_them(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("e4\nNc3\nNf3\nq\n"))
    printed = run("drill", *_MINE, "--drill_seed=0", "--nounicode", "--progress=mine.sqlite")
    assert "(start)   100 % of lines" in printed and "Right: e4.\n" in printed
    assert "1. e4 c5   50 % of lines" in printed and "No: Nf3.\n" in printed
    assert "1 of 2 right. 1 of 7 positions are known by now. Of all lines 100% pass" in printed
    assert "points" not in printed  # which nobody knows


def test_studies_of_any_repertoire(folder, run):
    printed = run("report", *_MINE, "--output_dir=studies")
    assert "For study: studies/lichess-1.pgn" in printed
    text = (folder / "studies" / "lichess-1.pgn").read_text(encoding="utf-8")
    game = chess.pgn.read_game(io.StringIO(text))
    sicilian = next(each for each in game.variations[0].variations if each.san() == "c5")
    assert (sicilian.comment, sicilian.nags) == ("the Sicilian", {chess.pgn.NAG_GOOD_MOVE})
    assert "My book" in text and "cxd4 { no answer yet }" in text and "of games" not in text


@pytest.mark.engine
# Costs seconds: two matches and a judgment, with a real engine.
def test_a_match_of_a_repertoire_and_the_folder_of_its_judgment(folder, run, searches):
    opponent = ("--opponent=uci(nodes=100,r=40,top_k=3)", f"--store={searches}")
    played = ("--games=2", "--nocontrols", "--output_dir=own_match")
    printed = run("match", *_MINE, *opponent, *played)
    assert "White's book of " in printed and "made against another opponent" not in printed
    assert json.loads((folder / "own_match" / "result.json").read_text())["matches"][1]["promised"] > 0.0
    printed = run("judge", *_MINE, *opponent, "--penalty=0.02", "--output_dir=own")
    order = ["Coverage", "Replies without an answer", "What to learn next", "What to drop first"]
    assert sorted(order, key=printed.index) == order
    made = Preparation.read(folder / "own")
    assert made.utility == pytest.approx(made.unprepared + sum(made.gains))
    printed = run("match", "--book=own/book.bin", "--from=own", *opponent, *played)
    assert f"White's book of {made.book.distinct_positions} positions" in printed
