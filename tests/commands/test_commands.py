"""`precomp-games`, called as a function: its output, its end, and what it leaves behind."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from absl import flags

from precomp_games._support import config
from precomp_games.commands import COMMANDS, main


def test_without_a_command_it_says_what_there_is(capsys):
    assert main(["precomp-games"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert all([name, what] in lines for name, what in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command, run):
    printed = run(command, "--help")
    module = importlib.import_module(f"precomp_games.commands.{command}")
    words = " [GAMES] [PLAYER]" if command in ("opponent", "scout") else ""
    assert printed.startswith(f"usage: precomp-games {command}{words} [--flags]\n")
    assert module.__doc__ in printed and f"precomp-games {command}" in module.__doc__
    without = ("solve", "drill", "report", "scout")  # which need none
    assert ("\n  --engine:" in printed) == (command not in without)


def test_a_call_leaves_the_process_as_it_was(tmp_path, monkeypatch, capsys):
    """And so the next one may have other flags."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("precomp_games.chess.engines.pool.DEFAULT_PATHS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("STOCKFISH", raising=False)
    before = sys.stdout, sys.stdout.errors, dict(config._settings), set(flags.FLAGS)
    for learn in ("0", "3"):
        assert main(["precomp-games", "judge", f"--learn={learn}", "--output_dir=out"]) == 0
        assert (learn == "3") == ("What to learn next" in capsys.readouterr().out)
        assert (tmp_path / "out" / "learn.csv").exists() == (learn == "3")
    assert main(["precomp-games", "judge", "--book=none.pgn", "--output_dir=more/out"]) == 1
    assert not (tmp_path / "more").exists()
    assert (sys.stdout, sys.stdout.errors, dict(config._settings), set(flags.FLAGS)) == before


# Costs seconds: imports in a process of its own.
def test_what_is_not_used_is_not_imported():
    """The list of commands needs no numbers, and no command's help a linear program."""
    code = f"""
import contextlib, io, sys
from precomp_games.commands import main
seen = []
with contextlib.redirect_stdout(io.StringIO()):
    for words in [[], *([name, "--help"] for name in {list(COMMANDS)})]:
        assert main(["precomp-games", *words]) == 0
        seen.append({{"numpy", "numba", "chess", "highspy", "scipy.linalg"}} & set(sys.modules))
print(sorted(seen[0]), sorted(seen[1]), sorted(seen[-1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[] ['chess', 'numba', 'numpy'] ['chess', 'numba', 'numpy']\n", "")


def limited(mebibytes, *words):
    """Run a command with so much address space; return its exit status, output and errors."""
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({mebibytes << 20},) * 2)\n"
        f"from precomp_games.__main__ import main; raise SystemExit(main(['precomp-games', *{list(words)}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


_MORE = pytest.mark.slow("at more places in the imports")


# Costs seconds: imports in processes of their own.
@pytest.mark.parametrize("mebibytes", [280, *(pytest.param(n, marks=_MORE) for n in (400, 480, 560)), 640])
def test_address_space_that_is_not_enough_is_an_error_of_one_line(mebibytes, capsys):
    """One error line, where libraries would spin on a core for ever; the time limit would end that."""
    status, _, error = limited(mebibytes, "solve", "--game=kuhn_poker")
    *_, last = error.splitlines()  # before it a bar may be printed, while kernels are compiled
    assert status == 1 and last.startswith("error: expected ") and error.count("error: ") == 1, error
    if mebibytes == 280:  # which does for the list of commands
        main(["precomp-games"])
        assert limited(280) == (0, capsys.readouterr().out, "")


def test_a_list_of_commands_that_nobody_reads_to_its_end_is_no_error():
    words = f'set -o pipefail; "{sys.executable}" -m precomp_games | true'
    done = subprocess.run(["bash", "-c", words], stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


# -- of a wheel, in an empty folder and outside of the checkout: what they do by default ------------------

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
