"""Files in a preparation's folder that replace those its settings name."""

import dataclasses
import json
import os

import numpy as np
import pytest

from precomp_games._support.files import read_archive, write_archive
from precomp_games.chess import ChessGame, Preparation, PreparationSettings, action_of, write_polyglot
from precomp_games.chess.model.calibration import load_calibration, save_calibration
from precomp_games.chess.model.model import MODEL_FILE, ModelFiles, named_people, preparation_policies
from precomp_games.chess.model.people_values import load_people, save_people
from tests.oracles.engines import HashEngine
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


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder with games and a book, which is the working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "games.pgn").write_bytes(b"".join(sample_games()[:16]))
    write_polyglot(small_book(), folder / "book.bin")
    monkeypatch.chdir(folder)
    return folder


def states(line):
    """Return the states before each move of a line in SAN."""
    state, found = ChessGame().new_initial_state(), []
    for san in line.split():
        found.append(state.clone())
        state.apply_action(action_of(state.board.parse_san(san)))
    return found


ASKED = [state for line in ("e4 e5 Nf3 Nc6 Bb5 a6", "d4 d5 c4 e6", "Nf3 Nf6 a4") for state in states(line)]


def made(settings, folder):
    """Write a preparation's folder and read it as somebody else does."""
    policies = preparation_policies(settings, HashEngine())
    (data,) = results()
    nothing = {"memorized": [], "exits": [], "stops": [], "replies": []}
    folder.mkdir()
    files = ModelFiles.of(settings, policies.sigma[1 - settings.player], policies.leaf_value)
    if files is not None:
        files.save(folder / MODEL_FILE)
    (folder / "result.json").write_text(json.dumps(data | nothing | {"settings": settings.as_dict()}))
    return policies


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("player", [0, 1])
def test_the_opponent_is_the_same_without_its_files(spec, player, here, tmp_path):
    settings = PreparationSettings(player=player, opponent=spec, trusted=True)
    before = made(settings, tmp_path / "out").sigma[1 - player]
    expected = [before.action_probabilities(state) for state in ASKED]
    here.rename(tmp_path / "moved")
    os.chdir("/")
    found = Preparation.read(tmp_path / "out").settings
    assert not found.trusted
    after = preparation_policies(found, HashEngine()).sigma[1 - player]
    assert [after.action_probabilities(state) for state in ASKED] == expected


def test_fits_lie_there_too(here, tmp_path):
    people = dataclasses.replace(load_people(), source="one's own")
    save_calibration(dataclasses.replace(load_calibration(), prior_games=7.5), here / "calibrated.json")
    save_people(people, here / "people.json")
    found = {}
    for kind in ("calibrated", "people"):
        settings = PreparationSettings(evaluation=kind, calibration=f"{kind}.json", rating=1234, trusted=True)
        made(settings, tmp_path / kind)
        (here / f"{kind}.json").unlink()
        found[kind] = Preparation.read(tmp_path / kind).settings
    values = {kind: preparation_policies(each, HashEngine()).leaf_value for kind, each in found.items()}
    assert values["calibrated"].utility.prior_games == 7.5
    assert values["people"].utility == people.at("blitz", 1234) and named_people(found["people"]) == people
    # Data of other settings are not taken.
    with pytest.raises(ValueError, match="a calibration that is shipped"):
        other = dataclasses.replace(found["calibrated"], calibration="other.json")
        preparation_policies(other, HashEngine())


def test_where_nothing_is_named_or_an_engine_nothing_is_written(here, tmp_path):
    made(PreparationSettings(opponent="uci(r=40)"), tmp_path / "one")
    assert not (tmp_path / "one" / "opponent.npz").exists()
    spec = f"games(file=games.pgn,prior=uci(engine={engine_file(here, slow=False)}))"
    made(PreparationSettings(opponent=spec, trusted=True), tmp_path / "two")
    with pytest.raises(ValueError, match="opens and runs nothing"):
        preparation_policies(Preparation.read(tmp_path / "two").settings, HashEngine())


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
    for head, changed in wrong:
        write_archive(path, header | head, arrays | changed)
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
