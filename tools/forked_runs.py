"""Fast runs of examples: a process that has made the imports forks for each run.

Importing the library takes two seconds, more than most runs take, and so does what a run then does with what
has been imported: the first kernel that it calls, garbage that it looks for there, and taking it all apart at
its end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import inspect
import json
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping

_ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = sorted(
    path.stem
    for path in (_ROOT / "examples").glob("*.py")
    if '\nif __name__ == "__main__":\n' in path.read_text("utf-8")
)
"""The examples to run; the other modules there are shared by them."""


def command_of(example: str) -> str | None:
    """Return the command that an example starts, None where it does its own work."""
    text = (_ROOT / "examples" / f"{example}.py").read_text("utf-8")
    match = re.search(r"\n    common\.end_with\((\w+)\)\n", text)
    return None if match is None else match[1]


class RunServer:
    """A server that forks runs, one at a time; its own process starts with the first one.

    Args:
      search_seconds: what a search of theirs may take before its engine is taken for hung.
    """

    def __init__(self, search_seconds: float = 60.0) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._search_seconds = search_seconds

    def run(
        self,
        words: list[str],
        folder: str | os.PathLike[str],
        *,
        seconds: int,
        files: tuple[str, str, str],
        environment: Mapping[str, str | None] | None = None,
        has_engine: bool = True,
        meanwhile: Callable[[int], None] | None = None,
    ) -> int:
        """Return the exit status of a run in a group of its own, negative for a signal.

        Args:
          words: the example's path and its flags.
          folder: where it runs.
          seconds: after these it gets SIGALRM.
          files: paths for what it reads, and for its two outputs.
          environment: what differs there.
          has_engine: on this machine, as it is.
          meanwhile: called with the process's id, which is gone once the process has ended.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.forked_runs", str(self._search_seconds)],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            atexit.register(self.close)
        assert self._process.stdin is not None and self._process.stdout is not None
        order = [words, os.fspath(folder), seconds, files, dict(environment or {}), has_engine]
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        try:
            if meanwhile is not None:
                meanwhile(child)
        finally:
            code = int(self._process.stdout.readline())
        return code

    def close(self) -> None:
        """End the process; the next run starts another one."""
        if self._process is not None:
            self._process.communicate()  # the end of its input is its end
            self._process = None
            atexit.unregister(self.close)


_status: int | None = None


def _end() -> None:
    """End the process without taking all modules apart, which takes longer than most runs."""
    if _status is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_status)


def _serve(search_seconds: float) -> None:
    """Read orders and forks for each; return in the forked process once its run is over, and at the end."""
    atexit.register(_end)  # before all others, which makes it the last one that is called

    import absl.app  # noqa: F401
    import matplotlib.backends.backend_agg
    import matplotlib.pyplot  # noqa: F401
    import pyspiel

    import precomp_games.algorithms.efce
    import precomp_games.algorithms.lookahead
    import precomp_games.algorithms.search  # noqa: F401
    from precomp_games import HistoryTree, make_policy
    from precomp_games.algorithms import best_precomputation
    from precomp_games.chess import EnginePool

    inspect.unwrap(EnginePool.__init__).__kwdefaults__["timeout_seconds"] = search_seconds
    # Of all kernels the first one that is called takes half a second.
    game = pyspiel.load_game("kuhn_poker")
    play = make_policy(game, "uniform")
    best_precomputation(HistoryTree.from_game(game, sigma=play, sigma_pre=play, penalties=0.1), 0)
    # Runs look for garbage seldom, and never among what is here already.
    gc.set_threshold(100_000, 50, 50)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        if not (child := os.fork()):
            _run(*json.loads(line))
            return
        print(child, flush=True)
        try:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        except KeyboardInterrupt:  # the group of the run does not get the signal
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            raise


def _run(
    words: list[str],
    folder: str,
    seconds: int,
    files: list[str],
    environment: dict[str, str | None],
    has_engine: bool,
) -> None:
    import tqdm

    from precomp_games.chess.engines import pool as engine

    os.setsid()
    signal.alarm(seconds)
    os.chdir(folder)
    for number, path in enumerate(files):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    if not has_engine:
        engine.DEFAULT_PATHS = ()
        environment = {"STOCKFISH": None, "PATH": "/nowhere"} | environment
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    # Its own lock is shared by all processes, and stays with one that is killed.
    tqdm.tqdm.set_lock(threading.RLock())
    sys.argv, sys.path[0] = words, os.path.dirname(words[0])
    global _status
    try:
        runpy.run_path(words[0], run_name="__main__")
        _status = 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            _status = error.code or 0
        raise


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
