"""Commands of a wheel, in an empty folder and outside of the checkout: what they do by default."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from precomp_games.commands import COMMANDS

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PACKAGED = {"precomp_games", "algorithms", "pyproject.toml", "README.md", "LICENSE"}
# One process for all that needs no engine, on a machine without one, wherever this one has it.
_WITHOUT_ENGINE = """
import io, sys
from precomp_games.chess.engines import pool
from precomp_games.commands import main
pool.DEFAULT_PATHS = ()
for command in ("prepare", "report", "drill", "judge", "review", "equilibrium"):
    words = ["--from=output/chess_preparation"] if command in ("report", "drill") else []
    sys.stdin = io.StringIO("e4\\nq\\n")
    assert main(["precomp-games", command, *words]) == 0, command
"""
_WITH_ENGINE = """
from precomp_games.commands import main
played = ["--from=output/chess_preparation", "--games=2", "--nocontrols"]
for words in (["estimate", "--nodes=10,20"], ["prepare", "--minutes=0"], ["match", *played]):
    assert main(["precomp-games", *words]) == 0, words
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed wheel, built of a copy: setuptools leaves files beside what it reads."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = shutil.copytree(_ROOT, folder / "checkout", ignore=_not_packaged)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, copy]
    subprocess.run(built, check=True)
    (wheel,) = folder.glob("*.whl")
    there = ["--no-deps", "--no-index", "--target", folder / "site", wheel]
    subprocess.run([*pip, "install", *there], check=True)
    shutil.rmtree(copy)
    return folder / "site"


def _not_packaged(folder, names):
    return set(names) - _PACKAGED if pathlib.Path(folder) == _ROOT else set(names) & {"__pycache__"}


def python(installed, folder, *words, **environment):
    """Run Python with what is installed, in a folder, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(installed)} | environment
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert str(_ROOT) not in done.stdout
    return done.stdout


@pytest.mark.slow("installed from a wheel")
def test_without_an_engine_stored_searches_do(installed, tmp_path):
    printed = python(installed, tmp_path, installed / "bin" / "precomp-games")
    assert all(f"\n  {name} " in printed for name in COMMANDS)
    printed = python(installed, tmp_path, "-c", _WITHOUT_ENGINE, PATH="/nowhere", STOCKFISH="")
    assert printed.count("No engine found: using the stored searches") == 4
    made = ["book_report/report.html", "drill.sqlite", "judge_book/positions.csv"]
    made += ["review_games/to_learn.csv", "chess_equilibrium/white.bin"]
    made += [f"chess_preparation/{name}" for name in ("book.bin", "book.pgn", "result.json")]
    for name in made:
        assert (tmp_path / "output" / name).stat().st_size


@pytest.mark.engine
@pytest.mark.slow("installed from a wheel")
def test_with_an_engine_they_search_and_play(installed, tmp_path, searches):
    kept = tmp_path / "output" / "evaluations.sqlite"
    kept.parent.mkdir()
    shutil.copy(searches, kept)
    assert "0 to learn what positions are worth" in python(installed, tmp_path, "-c", _WITH_ENGINE)
    for made in ("estimate_opponent/result.json", "chess_preparation/book.pgn", "book_match/games.pgn"):
        assert (tmp_path / "output" / made).stat().st_size
