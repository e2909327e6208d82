"""The campaign of faults, for some seconds: it works, and it finds what is wrong."""

import random

import pytest

from precomp_games.chess import find_engine
from tools.forked_runs import RunServer
from tools.soak.cases import CASES
from tools.soak.runs import all_gone
from tools.soak.trials import KINDS, Finding, Trial, drawn, reference

pytestmark = pytest.mark.slow("a campaign")


@pytest.fixture(scope="module")
def server():
    server = RunServer(search_seconds=3.0)  # searches of milliseconds, of engines that hang as well
    yield server
    server.close()


def trial_of(server, name, folder, expected=None, seconds=0.0, engine_path="/nowhere"):
    case = next(case for case in CASES if case.name == name)
    return Trial(server, case, expected or {}, seconds, engine_path, folder, random.Random(0))


@pytest.fixture(scope="module")
def lookahead(server, tmp_path_factory):
    return reference(trial_of(server, "limited_lookahead", tmp_path_factory.mktemp("reference")))


@pytest.mark.parametrize("kind", ["kills", "interrupts"])
def test_nothing_is_lost(server, lookahead, kind, tmp_path):
    counts = KINDS[kind][0](trial_of(server, "limited_lookahead", tmp_path / "trial", *lookahead))
    assert counts["searches made again"] == 0
    assert all_gone(tmp_path)


def test_another_file_is_found(server, lookahead, tmp_path):
    expected, seconds = lookahead
    wrong = {**expected, "draws.csv": b"other"}
    with pytest.raises(Finding, match=r"^other files: draws.csv$"):
        trial_of(server, "limited_lookahead", tmp_path / "trial", wrong, seconds).finish()


@pytest.mark.engine
def test_engines_that_misbehave(server, tmp_path):
    name = "chess_preparation, certified"
    expected, seconds = reference(trial_of(server, name, tmp_path / "reference", engine_path=find_engine()))
    trial = trial_of(server, name, tmp_path / "trial", expected, seconds, find_engine())
    trial.run(faults=0.02, may=(0, 1))
    trial.finish()
    trial.searched.write_text(trial.searched.read_text() * 2)
    with pytest.raises(Finding, match="searches were lost in 1 ends"):
        trial.check_lost(1)


def test_every_kind_is_drawn_with_a_case_for_it():
    rng = random.Random(0)
    assert {drawn(rng, list(KINDS))[0] for _ in range(1000)} == set(KINDS)
    kind, case = drawn(rng, ["engine faults"])
    assert kind == "engine faults" and case.searches
