"""Trials of runs. A trial returns the fault's counts; what it finds wrong is a `Finding`.

After each fault, a run without faults must end with the files and the store of an undisturbed one.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from tools.forked_runs import RunServer
from tools.soak import engine, runs
from tools.soak.cases import CASES, STORE, Case, difference, outcome
from tools.soak.clusters import campaign
from tools.soak.runs import Ended, all_gone, stored

__all__ = ["KINDS", "Finding", "Trial", "reference"]

Counts = dict[str, int]

ENGINES = os.cpu_count() or 1
_MOST_SECONDS = 900  # of a run, engines that hang included; one that takes longer is a finding
_FULL = r"error: (?!.*'None').*(No space left on device|database or disk is full)"


class Finding(Exception):
    """Error: something was lost, or reported in another way than it should be."""


@dataclasses.dataclass
class Trial:
    """A case in a folder of its own.

    server: forks its runs.
    case: what runs.
    expected: the outcome of a run that nothing happens to.
    seconds: how long that takes; less when the trial has seen a run that took less.
    engine_path: the engine behind `engine.py`.
    folder: an empty one.
    rng: draws what happens.
    """

    server: RunServer
    case: Case
    expected: dict[str, bytes]
    seconds: float
    engine_path: str
    folder: pathlib.Path
    rng: random.Random

    def __post_init__(self) -> None:
        self.work = self.folder / "work"  # what the run sees
        self.work.mkdir(parents=True)
        self.searched = self.folder / "searched.txt"

    def environment(self, faults: float = 0.0) -> dict[str, str]:
        """Return the environment: it names the engine, which misbehaves in that share of its searches."""
        script = self.folder / f"engine-{faults}"
        if not script.exists():
            words = [sys.executable, "-S", engine.__file__, self.engine_path, str(self.searched), str(faults)]
            words.append(str(self.rng.randrange(10**9)))
            script.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
            script.chmod(0o700)
        return {"STOCKFISH": str(script)}

    def run(
        self,
        after: float | None = None,
        how: Callable[[int], object] = int,
        *,
        faults: float = 0.0,
        server: RunServer | None = None,
        may: tuple[int, ...] = (0,),
        says: str = "",
    ) -> Ended:
        """Run to the end in a forked process.

        Args:
          after: after so many seconds `how` is called with its process.
          how: what is done to it.
          faults: the share of searches in which its engine misbehaves.
          server: forks it, in place of the trial's own.
          may: how it may end; any other status is a finding.
          says: a pattern of the one line that it prints when it fails, if it can.
        """
        name, *flags = self.case.command
        log = self.folder / f"stderr-{server is None}.txt"
        log.unlink(missing_ok=True)

        def disturb(child: int) -> None:
            if after is not None:
                time.sleep(after)
                with contextlib.suppress(ProcessLookupError):
                    how(child)

        begin = time.monotonic()
        code = (server or self.server).run(
            [str(runs.ROOT / "examples" / f"{name}.py"), *flags],
            self.work,
            seconds=_MOST_SECONDS,
            files=(os.devnull, os.devnull, str(log)),
            environment=self.environment(faults),
            meanwhile=disturb,
        )
        ended = Ended(code, log.read_text(errors="replace"), time.monotonic() - begin)
        if code not in may:
            raise Finding(f"a run ended with {code}: {ended.stderr[-2000:]}")
        if code and says and not re.match(says, ended.error):
            raise Finding(f"reported as {ended.error}")
        return ended

    def check_left(self) -> int:
        """Check the searches of a store that no run has open; it must be sound, whatever happened."""
        if not all_gone(self.folder):
            raise Finding("processes outlive their run")
        try:
            return stored(self.work / STORE)
        except AssertionError as error:
            raise Finding("the store is not sound") from error

    def finish(self) -> None:
        """Run once more, undisturbed; this must end with the files of an undisturbed run."""
        self.seconds = min(self.seconds, self.run().seconds)
        self.check_same()

    def check_same(self) -> None:
        self.check_left()
        if differing := difference(self.expected, outcome(self.case, self.work)):
            raise Finding(f"other files: {differing}")

    def check_lost(self, ends: int) -> int:
        """Check for searches that were made again though they had finished when a run ended.

        Each engine may have one on its way to the store.
        """
        if not self.searched.exists():
            return 0
        lines = self.searched.read_text().splitlines()
        made = collections.Counter(line for line in lines if not line.startswith("fault "))
        again = made.total() - len(made)
        if again > ends * ENGINES:
            raise Finding(f"{again} searches were lost in {ends} ends of {ENGINES} engines")
        return again


def reference(trial: Trial) -> tuple[dict[str, bytes], float]:
    """Return the outcome of an undisturbed run, and its seconds.

    Raises:
      Finding: it failed.
    """
    seconds = trial.run().seconds
    return outcome(trial.case, trial.work), seconds


def kills(trial: Trial) -> Counts:
    """Send SIGKILL, once or more, to the process alone or with all that it started."""
    killed, before, latest = 0, 0, trial.seconds
    for _ in range(trial.rng.randint(2, 6)):
        how = os.killpg if trial.rng.random() < 0.5 else os.kill
        ended = trial.run(
            trial.rng.uniform(0.0, latest),
            lambda child, how=how: how(child, signal.SIGKILL),
            may=(0, -signal.SIGKILL),
        )
        if ended.code == 0:
            trial.check_same()
            return {"kills": killed, "searches made again": trial.check_lost(killed)}
        killed += 1
        latest *= 0.9  # less is left to do
        after = trial.check_left()
        if after < before:
            raise Finding(f"the store had {before} searches, and has {after}")
        before = after
    trial.finish()
    return {"kills": killed, "searches made again": trial.check_lost(killed)}


def interrupts(trial: Trial) -> Counts:
    """Press Ctrl-C: all processes of the terminal's group get it."""
    ended = trial.run(
        trial.rng.uniform(0.0, trial.seconds),
        lambda child: os.killpg(child, signal.SIGINT),
        may=(0, 130, -signal.SIGINT),  # a shell's 130 is either of the two
        says="error: interrupted",
    )
    trial.check_left()
    trial.finish()
    return {"interrupts": int(ended.code != 0), "searches made again": trial.check_lost(1)}


def engine_faults(trial: Trial) -> Counts:
    """Run with engines that die, hang, stop, or report errors."""
    ended = trial.run(faults=trial.rng.choice((0.002, 0.01, 0.03)), may=(0, 1), says="error: ")
    happened = trial.searched.read_text().count("fault ") if trial.searched.exists() else 0
    if ended.code == 0:
        trial.check_same()
    trial.finish()
    return {"faults": happened, "runs that gave up": int(ended.code == 1)}


def full_disks(trial: Trial) -> Counts:
    """Run on a disk that is full at some point, and then is not."""
    size = trial.rng.randint(16, 700)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", trial.work], check=True, capture_output=True
    )
    try:
        ended = trial.run(may=(0, 1), says=_FULL)
        subprocess.run(["mount", "-o", "remount,size=200m", trial.work], check=True, capture_output=True)
        trial.finish()
    finally:
        subprocess.run(["umount", "--lazy", trial.work], check=False, capture_output=True)
    return {"full disks": int(ended.code == 1), "enough in the end": int(ended.code == 0)}


def pairs(trial: Trial) -> Counts:
    """Run twice at once with the same store and folder."""
    with contextlib.closing(RunServer()) as server, concurrent.futures.ThreadPoolExecutor(1) as beside:
        other = beside.submit(trial.run, server=server)
        trial.run()
        other.result()
    trial.check_same()
    trial.finish()
    return {"pairs": 1}


def cluster_workers(trial: Trial) -> Counts:
    """Kill, add and retire workers of a cluster; the run is always a preparation."""
    try:
        found = campaign(trial.folder, trial.rng.randrange(10**6))
    except AssertionError as error:
        raise Finding(f"on a cluster: {error}") from error
    return found.counts


KINDS: dict[str, tuple[Callable[[Trial], Counts], int, Callable[[Case], bool]]] = {
    "kills": (kills, 70, lambda case: True),
    "interrupts": (interrupts, 12, lambda case: True),
    "full disks": (full_disks, 6, lambda case: True),
    "pairs": (pairs, 5, lambda case: True),
    "cluster workers": (cluster_workers, 2, lambda case: case.name == "chess_preparation"),
    "engine faults": (engine_faults, 10, lambda case: case.searches),
}
"""By name: what it does, how often it is drawn, and which cases it is for."""


@contextlib.contextmanager
def trial_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Make a folder that is removed, unless something was found."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def drawn(rng: random.Random, only: Sequence[str]) -> tuple[str, Case]:
    """Draw a kind of trial and its case."""
    (name,) = rng.choices(only, [KINDS[each][1] for each in only])
    cases = [case for case in CASES if KINDS[name][2](case)]
    return name, rng.choices(cases, [case.weight for case in cases])[0]
