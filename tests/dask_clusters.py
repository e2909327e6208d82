"""Clusters for tests: within this process, of processes, and of a scheduler and a worker started by hand."""

import contextlib
import functools
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.soak import clusters


@functools.cache
def cluster_address() -> str:
    """Return the scheduler of a cluster within this process, which all tests of behavior share.

    It is there in a fraction of a second, and ends with Python, when there is nowhere left to tell it.
    """
    logging.getLogger("distributed").setLevel(logging.ERROR)
    address: str = cluster_of_threads().scheduler_address
    return address


def cluster_of_threads() -> Any:
    """Return a scheduler and a worker within this process."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None
    )


def local_cluster(workers: int) -> contextlib.AbstractContextManager[Any]:
    """Dask's cluster of this machine, whose workers come again when they are killed."""
    pytest.importorskip("distributed")
    return clusters.local_cluster(workers)


@contextlib.contextmanager
def started(folder: Path, *flags: str, env: dict[str, str] | None = None) -> Iterator[Path]:
    """Start a scheduler and one worker, as by hand, and yield the scheduler file."""
    path = folder / "scheduler.json"
    own = os.environ | {"DASK_LOGGING__DISTRIBUTED": "error"} | (env or {})
    dask = [sys.executable, "-m", "dask"]
    with contextlib.ExitStack() as stack:

        def run(*command: str) -> None:
            output = stack.enter_context((folder / f"{command[0]}.txt").open("w"))
            process = subprocess.Popen(
                [*dask, *command, "--scheduler-file", str(path), *flags, "--no-dashboard"],
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=own,
            )
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)

        run("scheduler", "--port", "0", "--host", "127.0.0.1")
        run("worker", "--nthreads", "1", "--no-nanny")
        for _ in range(600):
            if path.exists() and path.stat().st_size:
                break
            time.sleep(0.1)
        yield path
