"""Files in a preparation's folder that replace those its settings name, and sparring with them."""

import dataclasses
import io
import json
import os
import sys

import chess
import numpy as np
import pytest

from precomp_games._support.files import read_archive, write_archive
from precomp_games.chess import ChessGame, Preparation, PreparationSettings, action_of, write_polyglot
from precomp_games.chess.model.calibration import load_calibration, save_calibration
from precomp_games.chess.model.model import MODEL_FILE, ModelFiles, named_people, preparation_policies
from precomp_games.chess.model.people_values import load_people, save_people
from precomp_games.commands.uci import main
from tests.chess import fake_engine
from tests.chess.test_preparation import HashEngine
from tests.examples.launcher import launch
from tools.samples import results, sample_games, small_book
from tools.soak.clusters import engine_file

ENGINE = "noisy(policy=uci(r=40,nodes=7),epsilon=0.2)"
GAMES = f"games(file=games.pgn,player=Karpov Anatoli,fit=rolling,prior={ENGINE})"
OTHERS = "games(file=games.pgn,without=Karpov,alpha=2.5)"
SPECS = (
    GAMES,
    OTHERS,
    "polyglot(file=book.bin,weights=score,alpha=2,prior=uci(nodes=5))",
    f"polyglot(file=book.bin,prior={OTHERS})",
    f"noisy(policy={GAMES},epsilon=0.3)",
    f"mixture(a={GAMES},b=polyglot(file=book.bin),weights=of(a=3,b=1))",
    f"mixture(a=uci(nodes=9),b=noisy(policy={OTHERS}),per=move)",
)


AFTER_D4 = chess.Board("rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder with games and a book, which is the working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "games.pgn").write_bytes(b"".join(sample_games()[:16]))
    write_polyglot(small_book(), folder / "book.bin")
    monkeypatch.chdir(folder)
    return folder


def line(*moves):
    """Return the states before each of these moves."""
    board, state, found = chess.Board(), ChessGame().new_initial_state(), []
    for san in moves:
        found.append(state.clone())
        state.apply_action(action_of(board.push_san(san)))
    return found


def made(settings, folder):
    """Write a preparation's folder and read it as somebody else does."""
    policies = preparation_policies(settings, HashEngine())
    (told,) = results()
    nothing = {"memorized": [], "exits": [], "stops": [], "replies": []}
    folder.mkdir()
    files = ModelFiles.of(settings, policies.sigma[1 - settings.player], policies.leaf_value)
    if files is not None:
        files.save(folder / MODEL_FILE)
    (folder / "result.json").write_text(json.dumps(told | nothing | {"settings": settings.as_dict()}))
    return policies


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("player", [0, 1])
def test_the_opponent_is_the_same_without_its_files(spec, player, here, tmp_path):
    settings = PreparationSettings(player=player, opponent=spec, trusted=True)
    before = made(settings, tmp_path / "out").sigma[1 - player]
    here.rename(tmp_path / "moved")
    os.chdir("/")
    found = Preparation.read(tmp_path / "out").settings
    assert not found.trusted
    after = preparation_policies(found, HashEngine()).sigma[1 - player]
    for san in ("e4 e5 Nf3 Nc6 Bb5 a6", "d4 d5 c4 e6", "Nf3 Nf6 a4"):
        asked = line(*san.split())
        rows, others = ([policy.action_probabilities(state) for state in asked] for policy in (before, after))
        assert rows == others


def test_a_calibration_lies_there_too(here, tmp_path):
    save_calibration(dataclasses.replace(load_calibration(), prior_games=7.5), here / "fit.json")
    settings = PreparationSettings(evaluation="calibrated", calibration="fit.json", trusted=True)
    made(settings, tmp_path / "out")
    (here / "fit.json").unlink()
    found = Preparation.read(tmp_path / "out").settings
    assert preparation_policies(found, HashEngine()).leaf_value.utility.prior_games == 7.5
    # Data of other settings are not taken.
    with pytest.raises(ValueError, match="a calibration that is shipped"):
        preparation_policies(dataclasses.replace(found, calibration="other.json"), HashEngine())


def test_fits_to_peoples_games_lie_there_too(here, tmp_path):
    fit = dataclasses.replace(load_people(), source="one's own")
    save_people(fit, here / "fit.json")
    settings = PreparationSettings(evaluation="people", calibration="fit.json", rating=1234, trusted=True)
    made(settings, tmp_path / "out")
    (here / "fit.json").unlink()
    found = Preparation.read(tmp_path / "out").settings
    assert named_people(found) == fit
    utility = preparation_policies(found, HashEngine()).leaf_value.utility
    assert utility == fit.at("blitz", 1234)


def test_where_nothing_is_named_or_an_engine_nothing_is_written(here, tmp_path):
    made(PreparationSettings(opponent="uci(r=40)"), tmp_path / "one")
    assert not (tmp_path / "one" / "opponent.npz").exists()
    engine = f"uci(engine={engine_file(here, slow=False)})"
    for number, spec in enumerate((engine, f"games(file=games.pgn,prior={engine})")):
        made(PreparationSettings(opponent=spec, trusted=True), tmp_path / str(number))
        with pytest.raises(ValueError, match="opens and runs nothing"):
            preparation_policies(Preparation.read(tmp_path / str(number)).settings, HashEngine())


def test_data_that_are_none(here, tmp_path):
    made(PreparationSettings(opponent=f"noisy(policy={OTHERS})", trusted=True), tmp_path / "out")
    path = tmp_path / "out" / "opponent.npz"
    names = ("keys_0", "actions_0", "weights_0")
    header, arrays = read_archive(path, names)
    wrong = (
        ({"format": "x"}, {}),
        ({"sources": [["games", ""]] * 100}, {}),
        ({"sources": [["people", ""]]}, {}),
        ({"calibration": {"format": "x"}}, {}),
        ({}, {"weights_0": -arrays["weights_0"]}),
        ({}, {"weights_0": np.full_like(arrays["weights_0"], np.nan)}),
        ({}, {"weights_0": np.full_like(arrays["weights_0"], 1e308)}),  # whose sum is infinite
        ({}, {"keys_0": arrays["keys_0"][:-1]}),
        ({}, {"actions_0": arrays["actions_0"].astype(float)}),
    )
    for told, changed in wrong:
        write_archive(path, header | told, arrays | changed)
        with pytest.raises(ValueError, match=r"expected what Preparation\.write"):
            Preparation.read(tmp_path / "out")
    for part in (
        {"name": "counts", "source": 5, "alpha": 1.0},
        {"name": "counts", "source": 0, "alpha": -1.0},
        {"name": "noisy", "policy": {"name": "counts"}},
        {"name": "games", "file": "/etc/passwd"},
        {"name": "counts", "source": 0, "alpha": 1.0, "prior": {"name": "uci", "engine": "/bin/true"}},
        {},
    ):
        write_archive(path, header | {"opponent": part}, arrays)
        with pytest.raises(ValueError, match="expected data of an opponent, got others"):
            preparation_policies(Preparation.read(tmp_path / "out").settings, HashEngine())


# -- sparring ------------------------------------------------------------------------------------------------


def prepared(here, *flags):
    """A preparation by the example, in `here`, with paths as users type them."""
    quick = ("--evaluation=linear", "--max_plies=2", "--match_games=0", "--penalty=0.05", "--workers=1")
    done = launch("chess_preparation", *quick, "--store=s.sqlite", "--output_dir=out", *flags, cwd=here)
    assert done.returncode == 0, done.stderr


def answer(monkeypatch, capsys, *flags, moves="d2d4"):
    """Return the entry point's last line in a game."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"uci\nposition startpos moves {moves}\ngo\nquit\n"))
    assert main(["precomp-games-uci", *map(str, flags), "--seed=1"]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()[-1]


# Costs seconds: engines play in three examples.
def test_sparring_and_matches_elsewhere_with_a_person(here, tmp_path, monkeypatch, capsys):
    engine = engine_file(tmp_path, slow=False)
    prepared(here, f"--engine={engine}", f"--opponent={OTHERS[:-1]},prior=uci(nodes=20))")
    here.rename(tmp_path / "moved")
    (tmp_path / "moved" / "games.pgn").unlink()
    monkeypatch.chdir(tmp_path)
    said = answer(monkeypatch, capsys, "--opponent=moved/out", f"--engine={engine}")
    assert chess.Move.from_uci(said.removeprefix("bestmove ")) in AFTER_D4.legal_moves
    flags = ("--nocontrols", "--games=1", "--store=:memory:", "--workers=1", f"--engine={engine}")
    done = launch("book_match", "--from=moved/out", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_sparring_with_ones_own_engine(here, tmp_path, monkeypatch, capsys):
    """The flags of a preparation against an engine of one's own are those of sparring with it."""
    engine = engine_file(tmp_path, slow=False)
    own = [f"--opponent_engine={engine}", "--opponent_option=Hash=64", "--opponent_option=Style=Wild"]
    prepared(here, f"--engine={engine}", *own, "--r=1e-6")
    assert Preparation.read(here / "out").engines == ("Fake 1.0", "Fake 1.0 [Hash=64, Style=Wild]")
    best = f"bestmove {fake_engine.ranked(AFTER_D4, 3)[0]}"
    assert answer(monkeypatch, capsys, "--opponent=out", *own) == best
    same = ["--engine_option=Hash=64", "--engine_option=Style=Wild"]
    assert answer(monkeypatch, capsys, "--opponent=out", f"--engine={engine}", *same) == best
    assert answer(monkeypatch, capsys, "--opponent=out", f"--engine={engine}", *own[1:]) == best
    for flags, options in (([f"--engine={engine}"], "engine"), (own[:2], "opponent")):
        assert main(["x", "--opponent=out", *flags]) == 1
        error = capsys.readouterr().err
        assert f"--{options}_option='Hash=64' --{options}_option='Style=Wild'" in error
        assert error.count("\n") == 1
    # Our own play is the other engine's.
    own_play = ("--book=out", "--play=model", f"--engine={engine}")
    assert "bestmove" in answer(monkeypatch, capsys, *own_play, moves="a2a3 a7a6")


def test_a_spec_that_names_an_engine_is_repeated(here, tmp_path, monkeypatch, capsys):
    engine = engine_file(tmp_path, slow=False)
    spec = f"uci(engine={engine},nodes=20,r=1e-6)"
    prepared(here, f"--engine={engine}", f"--opponent={spec}")
    flags = ("--opponent=out", f"--engine={engine}")
    assert main(["x", *flags]) == 1
    assert "--opponent_spec repeats it" in capsys.readouterr().err
    assert main(["x", *flags, "--opponent_spec=uci(engine=/bin/true)"]) == 1
    assert "--opponent_spec: expected the spec of the preparation" in capsys.readouterr().err
    said = answer(monkeypatch, capsys, *flags, f"--opponent_spec={spec}")
    assert said == f"bestmove {fake_engine.ranked(AFTER_D4, 3)[0]}"
