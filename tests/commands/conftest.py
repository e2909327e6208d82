"""Fixtures of the commands' tests: games, a book, networks and an engine in a folder, and commands there."""

import contextlib
import functools
import io
import json

import pytest

from precomp_games.chess import PreparationSettings
from precomp_games.commands import main
from tests.oracles.network import random_network
from tests.oracles.pgn import game
from tools.soak.clusters import engine_file

GAMES = "my games (1), a=b.pgn"
LINES = (
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6",
    "1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6",
    "1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7",
)
BOOK = (
    "{My book} 1. e4 e5 (1... c5 $1 {the Sicilian} 2. Nf3 d6 (2... e6 3. d4) 3. d4 cxd4 {no answer yet}) "
    "(1... e6 2. Nf3 c5 3. d4) 2. Nf3 Nc6 3. Bb5 *\n"
)
ENDGAME = "--fen=8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"
"""Games from there are short, and end in all ways."""
MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 1"
ENGINE = ("--engine=./engine.py", "--store=kept.sqlite")
FEW = ("--opponent_nodes=10", "--analyst_nodes=20")


def call(folder, *words, encoding="utf-8"):
    """Call a command in a folder; return its exit status, output and errors."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["precomp-games", *words])
    return status, *(each.buffer.getvalue().decode(encoding) for each in (out, err))


def ends(folder, *words, status=0):
    """Call a command in a folder and return its output, or its one error line."""
    ended, printed, error = call(folder, *map(str, words))
    assert ended == status, printed + error
    assert not status or (error.startswith("error: ") and error.count("\n") == 1), error
    return error if status else printed


def hide_engine(patch):
    patch.setattr("precomp_games.chess.engines.pool.DEFAULT_PATHS", ())
    patch.setenv("PATH", "/nowhere")
    patch.delenv("STOCKFISH", raising=False)


def write_book(folder):
    """Write a preparation of three positions, as `precomp-games prepare` does."""
    folder.mkdir()
    worth = [("", "e2e4", 1.0, 0.4), ("e2e4 e7e5", "g1f3", 0.7, 0.3), ("e2e4 c7c5", "b1c3", 0.3, 0.1)]
    memorized = [
        {"after": line.split(), "play": {move: 1.0}, "reach": reach, "gain": gain, "net_gain": gain}
        for line, move, reach, gain in worth
    ]
    memorized[0]["instead"] = {"c2c4": -0.02, "g1f3": -0.005, "b1c3": 0.0123}
    made = {"memorized": memorized, "utility": 0.9, "unprepared": 0.5, "value": 0.9}
    made |= {"analyst": "Fake", "opponent": "Fake", "settings": PreparationSettings().as_dict()}
    (folder / "result.json").write_text(json.dumps(made))


@pytest.fixture(autouse=True)
def without_networks(monkeypatch):
    """Have no networks of people's moves but those that a flag names."""
    monkeypatch.delenv("PRECOMP_MAIA", raising=False)


@pytest.fixture
def without_engine(monkeypatch):
    """Have no engine, wherever this machine has one."""
    hide_engine(monkeypatch)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Games of a rated person by two spellings, both colors and four years; all that commands name."""
    folder = tmp_path_factory.mktemp("commands (1), a=b")
    text = ""
    for k in range(40):
        name = "Karpov, A." if k % 4 == 3 else "Karpov, Anatoly"
        result = ("1-0", "0-1", "1/2-1/2")[k % 3]
        tags = {"Date": f"{2000 + k // 10}.01.02", "Round": str(k), "TimeControl": "180+0", "Result": result}
        sides = ("Us", name) if k % 2 else (name, "Us")
        each = game(LINES[k % 3], *sides, WhiteElo="1300", BlackElo="1400", **tags)
        text += each.replace(" *\n", f" {result}\n")
    (folder / GAMES).write_text(text)
    (folder / "mine.pgn").write_text(BOOK)
    (folder / "networks").mkdir()
    for seed, rating in enumerate((1200, 1600)):
        (folder / "networks" / f"random-{rating}.pb.gz").write_bytes(random_network(seed))
    engine_file(folder, slow=False)
    return folder


@pytest.fixture(scope="session")
def run(folder):
    """Return a function that calls a command in the folder, as `ends` does."""
    return functools.partial(ends, folder)


@pytest.fixture
def here(tmp_path):
    """Return a function that calls a command in the test's own folder, as `ends` does."""
    return functools.partial(ends, tmp_path)
