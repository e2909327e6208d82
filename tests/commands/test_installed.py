"""Commands of a wheel, in an empty folder and outside of the checkout: what they do by default."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from precomp_games.commands import COMMANDS
from tests.examples.launcher import files, launch

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PACKAGED = {"precomp_games", "algorithms", "pyproject.toml", "README.md", "LICENSE"}
# A machine without an engine, wherever this one has it.
_WITHOUT_ENGINE = """
import runpy, sys
from precomp_games.chess.engines import pool
pool.DEFAULT_PATHS = ()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed wheel, built of a copy: setuptools leaves files beside what it reads."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = shutil.copytree(_ROOT, folder / "checkout", ignore=_not_packaged)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, copy],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", "--target", folder / "site", wheel], check=True
    )
    shutil.rmtree(copy)
    return folder / "site"


def _not_packaged(folder, names):
    return set(names) - _PACKAGED if pathlib.Path(folder) == _ROOT else set(names) & {"__pycache__"}


@pytest.fixture
def run(installed, tmp_path):
    """Run a command in an empty folder and return what it prints."""

    def run_there(*words, has_engine, typed=""):
        environment = os.environ | {"PYTHONPATH": str(installed)}
        program = [str(installed / "bin" / "precomp-games")]
        if not has_engine:
            environment |= {"PATH": "/nowhere", "STOCKFISH": ""}
            program = ["-c", _WITHOUT_ENGINE, *program]
        done = subprocess.run(
            [sys.executable, *program, *words],
            cwd=tmp_path,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=1800.0,
        )
        assert done.returncode == 0, done.stderr
        assert str(_ROOT) not in done.stdout
        return done.stdout

    return run_there


@pytest.mark.slow("installed from a wheel")
def test_it_says_what_there_is(run):
    said = run(has_engine=False)
    assert all(f"\n  {name} " in said for name in COMMANDS)


@pytest.mark.slow("installed from a wheel")
def test_prepare_does_what_the_example_does(run, tmp_path):
    said = run("prepare", has_engine=False)
    assert "(from stored searches)" in said
    (tmp_path / "example").mkdir()
    assert launch("chess_preparation", cwd=tmp_path / "example", has_engine=False).returncode == 0
    made = files(tmp_path / "output" / "chess_preparation")
    assert made == files(tmp_path / "example" / "output" / "chess_preparation")
    assert {"book.bin", "book.pgn", "result.json"} <= made.keys()
    made_from = "--from=output/chess_preparation"
    run("report", made_from, has_engine=False)
    run("drill", made_from, has_engine=False, typed="e4\nq\n")
    for written in ("book_report/report.html", "drill.sqlite"):
        assert (tmp_path / "output" / written).stat().st_size


_BY_STORED_SEARCHES = {
    "judge": ("judge_book", "positions.csv"),
    "review": ("review_games", "to_learn.csv"),
    "equilibrium": ("chess_equilibrium", "white.bin"),
}


@pytest.mark.slow("installed from a wheel")
@pytest.mark.parametrize("command", _BY_STORED_SEARCHES)
def test_commands_by_stored_searches(run, command, tmp_path):
    folder, written = _BY_STORED_SEARCHES[command]
    said = run(command, has_engine=False, typed="e4\nq\n")
    assert "No engine found: using the stored searches" in said
    assert (tmp_path / "output" / folder / written).stat().st_size


_BY_AN_ENGINE = {
    "estimate": ("estimate_opponent", "result.json"),
    "prepare": ("chess_preparation", "book.bin"),
}


@pytest.mark.engine
@pytest.mark.slow("installed from a wheel")
@pytest.mark.parametrize("command", _BY_AN_ENGINE)
def test_commands_by_an_engine(run, command, tmp_path, searches):
    folder, written = _BY_AN_ENGINE[command]
    kept = tmp_path / "output" / "evaluations.sqlite"
    kept.parent.mkdir()
    shutil.copy(searches, kept)
    run(command, has_engine=True)
    assert (tmp_path / "output" / folder / written).stat().st_size
    if command == "prepare":
        run("match", f"--from=output/{folder}", "--games=2", "--nocontrols", has_engine=True)
        assert (tmp_path / "output" / "book_match" / "games.pgn").stat().st_size
    shutil.copy(kept, searches)
