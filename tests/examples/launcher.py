"""Runs examples as a user does, but for the imports: a process that has made them forks for each run.

Importing the library takes two seconds, more than most runs take, and so does what a run then does with what
has been imported: the first kernel that it calls, garbage that it looks for there, and taking it all apart at
its end. What an example does with its output, with signals and with errors of imports is tested by running it
from the start, and each example is run so once.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

_ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted(
    path.stem
    for path in (_ROOT / "examples").glob("*.py")
    if "\n    common.run(main)\n" in path.read_text("utf-8")
)
"""What is run; the other modules there are what these share."""
_SECONDS = 300
_LAUNCHER = """
import atexit, gc, json, os, runpy, signal, sys, threading
status = None

@atexit.register
def end():  # the last that is called: to take all modules apart takes longer than most runs
    if status is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

import absl.app, matplotlib.backends.backend_agg, matplotlib.pyplot, pyspiel, tqdm
import precomp_games.algorithms.efce, precomp_games.algorithms.lookahead, precomp_games.algorithms.search
import precomp_games.chess
from precomp_games import HistoryTree, make_policy
from precomp_games.algorithms import best_precomputation

# Of all kernels the first one that is called takes half a second.
game = pyspiel.load_game("kuhn_poker")
play = make_policy(game, "uniform")
best_precomputation(HistoryTree.from_game(game, sigma=play, sigma_pre=play, penalties=0.1), 0)
# Runs look for garbage seldom, and never among what is here already.
gc.set_threshold(100_000, 50, 50)
gc.collect()
gc.freeze()

for line in sys.stdin:
    seconds, folder, has_engine, given, out, err, *words = json.loads(line)
    if not (child := os.fork()):
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.alarm(seconds)
os.chdir(folder)
for number, path in enumerate((given, out, err)):
    os.dup2(os.open(path, os.O_RDWR), number)
if not has_engine:
    precomp_games.chess.engine.DEFAULT_PATHS = ()
    os.environ.pop("STOCKFISH", None)
    os.environ["PATH"] = "/nowhere"
tqdm.tqdm.set_lock(threading.RLock())  # its own is shared by all processes, and stays with one that is killed
sys.argv, sys.path[0] = words, os.path.dirname(words[0])
try:
    runpy.run_path(words[0], run_name="__main__")
    status = 0
except SystemExit as error:
    if error.code is None or isinstance(error.code, int):
        status = error.code or 0
    raise
"""


@functools.cache
def _launcher() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)  # the end of its input is its end
    return process


def launch(
    example: str,
    *flags: object,
    cwd: str | os.PathLike[str] = _ROOT,
    has_engine: bool = True,
    typed: str | os.PathLike[str] = os.devnull,
    folder: pathlib.Path = _ROOT / "examples",
    meanwhile: Callable[[int], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What `python examples/EXAMPLE.py FLAGS` does in a folder.

    Args:
      example: its name.
      flags: its flags.
      cwd: the folder.
      has_engine: on this machine, as it is.
      typed: a file of what is typed.
      folder: where the example is.
      meanwhile: called with the process's id, which is gone once the process has ended.
    """
    words = [str(folder / f"{example}.py"), *map(str, flags)]
    process = _launcher()
    assert process.stdin is not None and process.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        order = [_SECONDS, os.fspath(cwd), has_engine, os.fspath(typed), out.name, err.name, *words]
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        try:
            if meanwhile is not None:
                meanwhile(child)
        finally:
            code = int(process.stdout.readline())
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


launch_without_engine = functools.partial(launch, has_engine=False)
