"""Runs of examples that can be killed: forked from a process that has made the imports, or from the start."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).parents[2]
MOST_SECONDS = 900
"""What a run may take, engines that hang included; one that takes longer is a finding."""

_SERVER = """
import json, os, runpy, signal, sys, threading
import matplotlib.backends.backend_agg, matplotlib.pyplot, pyspiel, tqdm
import precomp_games.algorithms.efce, precomp_games.algorithms.lookahead
import precomp_games.algorithms.search, precomp_games.chess

# The first compiled function that is called loads what numba has for all of them: half a second.
game = pyspiel.load_game("kuhn_poker")
uniform = precomp_games.make_policy(game, "uniform")
tree = precomp_games.HistoryTree.from_game(game, sigma_pre=uniform, sigma=uniform, penalties=0.1)
precomp_games.algorithms.best_precomputation(tree, 0)
precomp_games.chess.EnginePool.__init__.__kwdefaults__["timeout_seconds"] = float(sys.argv[1])
for line in sys.stdin:
    seconds, folder, out, err, environment, words = json.loads(line)
    if not (child := os.fork()):
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.setsid()
signal.alarm(seconds)
os.chdir(folder)
os.environ.update(environment)
for number, path in enumerate((os.devnull, out, err)):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
tqdm.tqdm.set_lock(threading.RLock())  # its own is shared by all processes, and stays with one that is killed
sys.argv, sys.path[0] = words, os.path.dirname(words[0])
runpy.run_path(words[0], run_name="__main__")
"""


def command(example: str, flags: tuple[str, ...]) -> list[str]:
    return [str(ROOT / "examples" / f"{example}.py"), *flags]


@dataclasses.dataclass
class Ended:
    """A run that is over.

    Attributes:
      code: its exit status; negative: the signal.
      stderr: what it said there, without bars and warnings.
      seconds: how long it took.
    """

    code: int
    stderr: str
    seconds: float

    @property
    def error(self) -> str:
        """The one line of an error; anything else is told whole, and is a finding."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        if len(lines) == 1 and "Traceback" not in self.stderr:
            return lines[0]
        return f"not one line: {self.stderr[-2000:]!r}"


class Server:
    """Forks runs, one at a time.

    Args:
      search_seconds: what a search of theirs may take before its engine is taken for hung.
    """

    def __init__(self, search_seconds: float = 60.0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(search_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        words: list[str],
        folder: pathlib.Path,
        environment: dict[str, str],
        *,
        after: float | None = None,
        log: pathlib.Path | None = None,
        whole_group: bool = True,
    ) -> Ended:
        """A run to its end, or to SIGKILL `after` seconds, of its process alone or its group."""
        log = log or folder / "stderr.txt"
        log.unlink(missing_ok=True)
        order = [MOST_SECONDS, str(folder), os.devnull, str(log), environment, words]
        assert self._process.stdin is not None and self._process.stdout is not None
        begin = time.monotonic()
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        timer = None
        if after is not None:
            timer = threading.Timer(after, _kill, (child, whole_group))
            timer.start()
        code = int(self._process.stdout.readline())
        if timer is not None:
            timer.cancel()
            timer.join()
        return Ended(code, _text(log), time.monotonic() - begin)

    def close(self) -> None:
        self._process.communicate()


def _kill(child: int, whole_group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(child, signal.SIGKILL)


class Started:
    """A run from the start, with all its imports, in a group of its own."""

    def __init__(
        self, words: list[str], folder: pathlib.Path, environment: dict[str, str], log: pathlib.Path
    ) -> None:
        self._log, self._begin = log, time.monotonic()
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )

    def interrupt(self) -> None:
        """What Ctrl-C does: all processes of the terminal's group are told."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> Ended:
        try:
            code = self.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(self.process.pid, True)
            code = self.process.wait()
        return Ended(code, _text(self._log), time.monotonic() - self._begin)


def _text(log: pathlib.Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


def alive(folder: pathlib.Path) -> list[int]:
    """Processes that work in a folder, or whose commands name it, as those of its engines do."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            at = pathlib.Path(os.readlink(path / "cwd"))
            if at.is_relative_to(folder) or str(folder).encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def all_gone(folder: pathlib.Path, seconds: float = 60.0) -> bool:
    """Whether no process of a folder is left after some seconds.

    A worker looks for its parent when its imports are made, which can take long on a busy machine.
    """
    end = time.monotonic() + seconds
    while alive(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
