"""`precomp-games-uci`: opponents of preparations, and people, as UCI engines."""

import io
import os
import sys

import chess
import pytest

from precomp_games.chess import Preparation
from precomp_games.commands.uci import main
from tests.chess import fake_engine
from tests.commands.conftest import ENGINE, GAMES

_AFTER_D4 = chess.Board("rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1")
_BEST = f"bestmove {fake_engine.ranked(_AFTER_D4, 3)[0]}"
_QUICK = (
    "--evaluation=linear",
    "--max_plies=2",
    "--match_games=0",
    "--penalty=0.05",
    "--neighbors=0",
    "--menu=1",
)


@pytest.fixture
def prepared(folder, run, monkeypatch):
    """Return a function that prepares in the folder, with paths as users type them."""
    monkeypatch.chdir(folder)
    return lambda output, *flags: run("prepare", *_QUICK, *ENGINE, *flags, f"--output_dir={output}")


@pytest.fixture
def answer(monkeypatch, capsys):
    """Return a function from flags to the entry point's last line in a game, or to its one error line."""

    def answer(*flags, moves="d2d4", status=0):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"uci\nposition startpos moves {moves}\ngo\nquit\n"))
        assert main(["precomp-games-uci", *map(str, flags), "--seed=1"]) == status
        printed = capsys.readouterr()
        assert printed.err.count("\n") == status
        return printed.err if status else printed.out.splitlines()[-1]

    return answer


def test_a_person_plays_elsewhere_by_what_lies_in_the_folder(prepared, answer, folder, run, tmp_path):
    prepared("of others", f'--opponent=games(file="{GAMES}",without=Nobody,alpha=2.5,prior=uci(nodes=20))')
    (folder / "of others").rename(tmp_path / "moved")
    os.chdir(tmp_path)
    engine = f"--engine={folder / 'engine.py'}"
    move = answer("--opponent=moved", engine).removeprefix("bestmove ")
    assert chess.Move.from_uci(move) in _AFTER_D4.legal_moves
    few = ("--nocontrols", "--games=1", "--store=:memory:", "--workers=1", f"--output_dir={tmp_path}/match")
    assert "White's book of " in run("match", f"--from={tmp_path}/moved", *few, engine)


def test_flags_of_an_engine_of_ones_own_are_those_of_sparring_with_it(prepared, answer):
    own = ["--opponent_engine=./engine.py", "--opponent_option=Hash=64", "--opponent_option=Style=Wild"]
    prepared("of Wild", *own, "--r=1e-6")
    assert Preparation.read("of Wild").engines == ("Fake 1.0", "Fake 1.0 [Hash=64, Style=Wild]")
    same = ["--engine_option=Hash=64", "--engine_option=Style=Wild"]
    for flags in (own, [ENGINE[0], *same], [ENGINE[0], *own[1:]]):
        assert answer("--opponent=of Wild", *flags) == _BEST
    for flags, option in (([ENGINE[0]], "engine"), (own[:2], "opponent")):
        error = answer("--opponent=of Wild", *flags, status=1)
        assert f"--{option}_option='Hash=64' --{option}_option='Style=Wild'" in error
    # Our own play is the other engine's.
    assert "bestmove" in answer("--book=of Wild", "--play=model", ENGINE[0], moves="a2a3 a7a6")


def test_a_spec_that_names_an_engine_is_repeated(prepared, answer):
    spec = "uci(engine=./engine.py,nodes=20,r=1e-6)"
    prepared("of spec", f"--opponent={spec}")
    flags = ("--opponent=of spec", ENGINE[0])
    assert "--opponent_spec repeats it" in answer(*flags, status=1)
    error = answer(*flags, "--opponent_spec=uci(engine=/bin/true)", status=1)
    assert "--opponent_spec: expected the spec of the preparation" in error
    assert answer(*flags, f"--opponent_spec={spec}") == _BEST


def test_people_play_by_their_networks(folder, monkeypatch, capsys, answer):
    monkeypatch.chdir(folder)
    lines = iter(["uci\n", "position startpos moves e2e4\n", "go infinite\n", "stop\n", "quit\n"])
    monkeypatch.setattr("sys.stdin", type("Input", (), {"readline": lambda self, _: next(lines, "")})())
    assert main(["precomp-games-uci", "--play=human(rating=1300)", "--maia=networks", "--seed=1"]) == 0
    printed = capsys.readouterr().out
    assert "players rated about 1300" in printed and "bestmove " in printed
    assert "networks of people's moves" in answer("--play=human(rating=1300)", status=1)
    assert "engine, model" in answer("--play=nobody", status=1)
