"""Everything that an engine cannot do is reported at the start, at once, with the flags that help."""

import dataclasses
import shlex
import sys

import pytest

from precomp_games.chess import SearchLimit
from precomp_games.chess.engines import pool
from precomp_games.chess.engines.pool import Demand, engine_troubles
from precomp_games.commands import main
from tests.chess import fake_engine

NODES = Demand(SearchLimit(nodes=300), 2, "--analyst_movetime_ms=50", "--top_k=1 --menu=1")
DEPTH = Demand(SearchLimit(depth=3), 1, "another depth", "")


def troubles(*words, options=None, demands=(NODES, DEPTH)):
    command = [sys.executable, fake_engine.__file__, *words]
    return engine_troubles(command, options or {}, "engine_option", demands)


def test_an_engine_that_can_do_all_of_it():
    assert troubles(options={"Hash": "32"}) == []


def test_everything_is_told_at_once():
    told = troubles("--lacking=MultiPV", "--fault=no-nodes", options={"Contempt": "9", "hash": "8"})
    assert told[0].startswith("has no option 'Contempt': leave out --engine_option=Contempt=9 (it has Hash, ")
    assert told[1:] == [
        "has no MultiPV, and 2 lines are asked for: --top_k=1 --menu=1",
        "does not keep nodes=300, since it does not report nodes: --analyst_movetime_ms=50",
    ]


def test_an_engine_that_answers_its_move_alone():
    """It suffices if no score is read, and is reported once if one is."""
    answer = [dataclasses.replace(each, lines=0) for each in (NODES, DEPTH)]
    assert troubles("--fault=move-alone", "--lacking=MultiPV", demands=answer) == []
    (told,) = troubles("--fault=move-alone", demands=[NODES, DEPTH, *answer])
    assert told.startswith("gives no 1 exact line(s)") and "--opponent_plays=bestmove" in told


@pytest.mark.parametrize("fault", ["no-limit", "no-nodes-no-end"])
def test_an_engine_that_goes_on(fault, monkeypatch):
    """It is killed, and another process is asked for the next limit."""
    monkeypatch.setattr("precomp_games.chess.engines.uci.COUNT_SECONDS", 0.1)
    told = troubles(f"--fault={fault}", demands=[NODES])
    assert len(told) == 1 and told[0].startswith("does not keep nodes=300, ")


def test_one_that_hangs_or_does_not_start(monkeypatch):
    monkeypatch.setattr(pool, "_PATIENCE", 0.5)
    (told,) = troubles("--fault=hang", demands=[NODES])
    assert told == "does not keep nodes=300, with no move in 0.5 s: --analyst_movetime_ms=50"
    assert engine_troubles("/no/such/engine", {}, "engine_option", [NODES]) == []


def test_a_command_lists_it_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}" --lacking=MultiPV\n')
    engine.chmod(0o755)
    words = [f"--opponent_engine={engine}", f"--engine={engine}", "--engine_option=Contempt=9"]
    assert main(["precomp-games", "prepare", *words]) == 1
    said = capsys.readouterr()
    told = said.out.splitlines()
    assert len(told) == 3 and all(line.startswith(f"{engine} has no ") for line in told)
    assert told[-1].endswith(": --opponent_plays=bestmove, or --top_k=1")
    assert "which has no option 'Contempt'" in said.err and "more stand above" in said.err
    assert said.err.count("\n") == 1 and not list((tmp_path / "output").glob("*.sqlite"))


def test_a_command_takes_an_engine_with_arguments_that_answers_its_move_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fake = shlex.join([sys.executable, fake_engine.__file__])
    words = [f"--engine={fake}", f"--opponent_engine={fake} --fault=move-alone --lacking=MultiPV"]
    words += ["--max_plies=4", "--evaluation=linear", "--analyst_nodes=20", "--match_games=2"]
    assert main(["precomp-games", "prepare", *words]) == 1
    told = capsys.readouterr()
    assert (
        "has no MultiPV" in told.out
        and "and no score" in told.out
        and "--opponent_plays=bestmove" in told.err
    )
    for plays in ("bestmove", "game"):
        assert main(["precomp-games", "prepare", *words, f"--opponent_plays={plays}"]) == 0
        assert "Stockfish" not in (said := capsys.readouterr().out) and "Fake 1.0" in said
