"""A run on a cluster whose workers are killed, added and retired; it leaves the same files as any other."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.soak.runs import ROOT, all_gone, stored

SECONDS = 600.0  # until a run is given up, on a machine that does much else
# Some 70 searches by the fake engine, whose scores are far apart.
FLAGS = (
    *("--evaluation=linear", "--scale_cp=1000", "--penalty=0.0002", "--max_plies=6", "--top_k=3"),
    *("--side=black", "--r=300", "--match_games=0"),
)
SEARCHES = 68


@dataclasses.dataclass
class Outcome:
    """Files and stored rows of a run, with counts of the events during it."""

    files: dict[str, bytes]
    rows: list[tuple[Any, ...]]
    counts: dict[str, int] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """Start Dask's cluster on this machine, which replaces workers that are killed."""
    import dask
    import distributed

    with (
        # On a busy machine 15 s is short for that.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as made,
    ):
        yield made
        # Closing fails where Dask is about to start a worker again.
        limit = time.monotonic() + 30.0
        while len(_alive(made)) < len(made.workers) and time.monotonic() < limit:
            time.sleep(0.05)


def _alive(cluster: Any) -> list[int]:
    """Return the ids of workers that run; one that is killed while it starts does not come again."""
    started = [nanny.process for nanny in list(cluster.workers.values()) if nanny.process is not None]
    return [process.pid for process in started if process.status.name == "running"]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def engine_file(folder: Path, *, slow: bool) -> Path:
    """Write an engine of this folder alone, which marks its processes; a slow one leaves time to kill it."""
    path = folder / "engine.py"
    wait = 'sys.argv[1:] = ["--fault", "slow", "--only", " b "]\n' if slow else ""
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{wait}"
        "import tests.chess.fake_engine as fake\nfake.main()\n"
    )
    path.chmod(0o700)
    return path


def prepare(
    folder: Path, *flags: str, slow: bool = False, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a preparation in a new folder, with output to a file there."""
    folder.mkdir(parents=True)
    own = (f"--engine={engine_file(folder, slow=slow)}", "--store=s.sqlite", "--output_dir=out")
    with (folder / "output.txt").open("w") as output:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "chess_preparation.py"), *FLAGS, *own, *flags],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | (env or {}),
            start_new_session=True,  # what a terminal would interrupt, without the tests
        )


def finished(process: subprocess.Popen[str], folder: Path) -> Outcome:
    """Return the outcome of a run that has ended as it should."""
    try:
        code = process.wait(SECONDS)
    finally:
        process.kill()
    output = (folder / "output.txt").read_text()
    assert code == 0, output
    rows = rows_of(folder / "s.sqlite")
    assert f"{len(rows)} of them new" in output  # nothing was stored twice
    return Outcome(files(folder / "out"), rows)


def rows_of(store: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a store, sorted."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return db.execute(
            "SELECT engines.name, budgets.name, multipv, epd, depth, nodes, lines FROM searches"
            " JOIN engines ON engines.id = engine JOIN budgets ON budgets.id = budget ORDER BY 1, 2, 3, 4"
        ).fetchall()


def disturbed(folder: Path, workers: int, events: Sequence[tuple[int, str]], seed: int = 0) -> Outcome:
    """Run a preparation on a cluster, with disturbances.

    Args:
      folder: a new one.
      workers: how many there are at first.
      events: what happens, in order, and how many searches are stored when it does: "kill" one worker or
        "kill all", with SIGKILL; "add" one; "retire" one, which is asked to end.
      seed: of who is killed.
    """
    rng, began = random.Random(seed), time.monotonic()
    counts = dict.fromkeys(("kill", "add", "retire"), 0)
    with local_cluster(workers) as cluster:
        process = prepare(folder, f"--cluster={cluster.scheduler_address}", slow=True)
        for searches, what in events:
            while process.poll() is None and (stored(folder / "s.sqlite") < searches or not _alive(cluster)):
                assert time.monotonic() - began < SECONDS, (folder / "output.txt").read_text()
                time.sleep(0.02)
            if process.poll() is not None:
                break
            if what.startswith("kill"):
                pids = _alive(cluster)
                for pid in pids if what == "kill all" else rng.sample(pids, min(1, len(pids))):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        counts["kill"] += 1
            elif what == "add" or len(cluster.worker_spec) > 1:
                cluster.scale(len(cluster.worker_spec) + (1 if what == "add" else -1))
                counts[what] += 1
        outcome = finished(process, folder)
        assert all_gone(folder)  # with the workers there
    return dataclasses.replace(outcome, counts=counts)


def campaign(folder: Path, seed: int, whole: Outcome | None = None) -> Outcome:
    """Run with random disturbances; the run must end as one without a cluster does.

    Args:
      folder: a new one.
      seed: of the number of workers, of what happens and of when.
      whole: of the run without a cluster, if that has been made.

    Raises:
      AssertionError: something was lost, was different, or was left behind.
    """
    rng = random.Random(seed)
    kinds = ["kill"] * 4 + ["add", "add", "retire", "kill all"]
    moments = sorted(rng.randrange(SEARCHES) for _ in range(rng.randint(1, 8)))
    events = [(moment, rng.choice(kinds)) for moment in moments]
    if whole is None:
        whole = finished(prepare(folder / "whole"), folder / "whole")
    found = disturbed(folder / "cluster", rng.randint(1, 3), events, seed)
    assert found.files == whole.files and found.rows == whole.rows, (seed, events)
    return found
