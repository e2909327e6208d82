"""Runs examples as a user does, but for the imports: a process that has made them forks for each run.

Importing the library takes a second, and many runs end right after it, at a flag. What an example does with
its output, signals, errors of imports and processes of its own is tested by running it from the start.
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

_ROOT = pathlib.Path(__file__).parents[2]
_SECONDS = 300
_LAUNCHER = """
import json, os, runpy, signal, sys
import matplotlib, precomp_games.algorithms.efce, precomp_games.algorithms.lookahead
import precomp_games.algorithms.search, precomp_games.chess

for line in sys.stdin:
    seconds, folder, out, err, *words = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.alarm(seconds)
os.chdir(folder)
for number, path in enumerate((os.devnull, out, err)):
    os.dup2(os.open(path, os.O_RDWR), number)
sys.argv, sys.path[0] = words, os.path.dirname(words[0])
runpy.run_path(words[0], run_name="__main__")
"""


@functools.cache
def _launcher() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)  # the end of its input is its end
    return process


def launch(
    example: str, *flags: object, cwd: str | os.PathLike[str] = _ROOT
) -> subprocess.CompletedProcess[str]:
    """What `python examples/EXAMPLE.py FLAGS` does in a folder."""
    words = [str(_ROOT / "examples" / f"{example}.py"), *map(str, flags)]
    process = _launcher()
    assert process.stdin is not None and process.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        process.stdin.write(json.dumps([_SECONDS, os.fspath(cwd), out.name, err.name, *words]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return subprocess.CompletedProcess(words, code, out.read(), err.read())
