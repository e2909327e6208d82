"""Examples on a cluster: the same files as on one machine, whatever becomes of its workers.

For hours of it: tools/soak.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from precomp_games.chess import DaskEngine, EngineError
from tests.chess.test_engine import FAKE
from tests.dask_clusters import local_cluster, started
from tests.examples.launcher import files, printed
from tests.examples.test_examples import ROOT, stored

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
]  # Dask's own, of workers that are killed

_SECONDS = 600.0  # until a run is given up, on a machine that does much else
# Some 70 searches by the fake engine, whose scores are far apart.
_FLAGS = (
    *("--evaluation=linear", "--scale_cp=1000", "--penalty=0.0002", "--max_plies=6", "--top_k=3"),
    *("--side=black", "--r=300", "--match_games=0"),
)
_SEARCHES = 68


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happens to a cluster.

    searches: how many are stored when it does.
    what: "kill" one worker or "kill all", with SIGKILL; "add" one; "retire" one, which is told to end.
    """

    searches: int
    what: str


@dataclasses.dataclass
class Outcome:
    """What a run left, beside what happened during it."""

    output: str
    files: dict[str, bytes]
    rows: list[tuple[Any, ...]]
    kills: int = 0
    added: int = 0
    retired: int = 0
    seconds: float = 0.0


def engine_file(folder: Path, *, slow: bool) -> Path:
    """An engine of this folder alone, which tells its processes; a slow one leaves time to be killed."""
    path = folder / "engine.py"
    wait = 'sys.argv[1:] = ["--fault", "slow", "--only", " b "]\n' if slow else ""
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{wait}"
        "import tests.chess.fake_engine as fake\nfake.main()\n"
    )
    path.chmod(0o700)
    return path


def start(
    example: str, folder: Path, *flags: str, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts an example in a folder, with output to a file there."""
    with (folder / "output.txt").open("w") as output:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / f"{example}.py"), *flags],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=None if env is None else os.environ | env,
            start_new_session=True,  # what a terminal would interrupt, without the tests
        )


def prepare(
    folder: Path, *flags: str, slow: bool = False, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts a preparation in a new folder."""
    folder.mkdir(parents=True)
    engine = engine_file(folder, slow=slow)
    store = (f"--engine={engine}", "--store=s.sqlite", "--output_dir=out")
    return start("chess_preparation", folder, *_FLAGS, *store, *flags, env=env)


def finished(process: subprocess.Popen[str], folder: Path) -> Outcome:
    """What a run left when it has ended, as it should."""
    try:
        code = process.wait(_SECONDS)
    finally:
        process.kill()
    output = (folder / "output.txt").read_text()
    assert code == 0, output
    rows = rows_of(folder / "s.sqlite")
    assert f"{len(rows)} of them new" in output  # nothing was stored twice
    return Outcome(output, files(folder / "out"), rows)


def rows_of(store: Path) -> list[tuple[Any, ...]]:
    """What a store holds, in an order of its own."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return db.execute(
            "SELECT engines.name, budgets.name, multipv, epd, depth, nodes, lines FROM searches"
            " JOIN engines ON engines.id = engine JOIN budgets ON budgets.id = budget ORDER BY 1, 2, 3, 4"
        ).fetchall()


def engines_of(folder: Path) -> list[int]:
    """The processes of a folder's engine, whoever started them."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and str(folder / "engine.py").encode() in (
                process / "cmdline"
            ).read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def no_engine_is_left(folder: Path) -> bool:
    """Whether engines end within some seconds of their run."""
    for _ in range(600):
        if not engines_of(folder):
            return True
        time.sleep(0.1)
    return False


def disturbed(folder: Path, workers: int, events: Sequence[Event], seed: int = 0) -> Outcome:
    """A preparation on a cluster to which things happen.

    Args:
      folder: a new one.
      workers: how many there are at first.
      events: what happens, in order; what would come after the end does not.
      seed: of who is killed.
    """
    rng, began = random.Random(seed), time.monotonic()
    counts = dict.fromkeys(("kill", "add", "retire"), 0)
    with local_cluster(workers) as cluster:

        def alive() -> list[int]:
            # One that is killed while it starts does not come again: Dask gives it up.
            ready = [n.process for n in list(cluster.workers.values()) if n.process is not None]
            return [p.pid for p in ready if p.status == distributed.Status.running]

        process = prepare(folder, f"--cluster={cluster.scheduler_address}", slow=True)
        for event in events:
            while process.poll() is None and (stored(folder / "s.sqlite") < event.searches or not alive()):
                assert time.monotonic() - began < _SECONDS, (folder / "output.txt").read_text()
                time.sleep(0.02)
            if process.poll() is not None:
                break
            if event.what.startswith("kill"):
                pids = alive()
                for pid in pids if event.what == "kill all" else rng.sample(pids, min(1, len(pids))):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        counts["kill"] += 1
            elif event.what == "add" or len(cluster.worker_spec) > 1:
                cluster.scale(len(cluster.worker_spec) + (1 if event.what == "add" else -1))
                counts[event.what] += 1
        outcome = finished(process, folder)
        assert no_engine_is_left(folder)  # with the workers there
    outcome.kills, outcome.added, outcome.retired = counts.values()
    outcome.seconds = time.monotonic() - began
    return outcome


def campaign(folder: Path, seed: int, whole: Outcome | None = None) -> Outcome:
    """A run to which things happen at random; it must end as one without a cluster does.

    Args:
      folder: a new one.
      seed: of the number of workers, of what happens and of when.
      whole: of the run without a cluster, if that has been made.

    Raises:
      AssertionError: something was lost, was different, or was left behind.
    """
    rng = random.Random(seed)
    kinds = ["kill"] * 4 + ["add", "add", "retire", "kill all"]
    moments = sorted(rng.randrange(_SEARCHES) for _ in range(rng.randint(1, 8)))
    events = [Event(moment, rng.choice(kinds)) for moment in moments]
    if whole is None:
        whole = finished(prepare(folder / "whole"), folder / "whole")
    found = disturbed(folder / "cluster", rng.randint(1, 3), events, seed)
    assert found.files == whole.files and found.rows == whole.rows, (seed, events)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The run without a cluster."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    found = finished(prepare(folder), folder)
    assert len(found.rows) == _SEARCHES
    assert set(found.files) == {"book.bin", "book.pgn", "result.json"}
    assert len(found.files["book.bin"]) > 16  # more than one move
    return found


@pytest.mark.test_all("deaths of workers")
def test_a_worker_is_killed_and_another_added(whole: Outcome, tmp_path: Path) -> None:
    found = disturbed(tmp_path / "run", 2, [Event(12, "kill"), Event(20, "add")])
    assert (found.kills, found.added) == (1, 1)
    assert found.files == whole.files
    assert found.rows == whole.rows


@pytest.mark.test_all("deaths of workers")
def test_things_happen_at_random(whole: Outcome, tmp_path: Path) -> None:
    found = campaign(tmp_path, 9, whole)
    assert found.kills and found.added and found.retired


@pytest.mark.test_all("a second cluster")
def test_a_scheduler_file(whole: Outcome, tmp_path: Path) -> None:
    with started(tmp_path) as path:
        found = finished(prepare(tmp_path / "run", f"--cluster={path}"), tmp_path / "run")
        assert found.files == whole.files and found.rows == whole.rows
        assert no_engine_is_left(tmp_path / "run")


def certificates(folder: Path) -> dict[str, str]:
    """A new authority and a certificate by it, as Dask's configuration."""

    def openssl(*command: str) -> None:
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    openssl("req", *new[:3], "-keyout", "key.pem", "-out", "asked.pem", "-subj", "/CN=cluster")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", "asked.pem", *signed, "-out", "cert.pem")
    comm = "distributed.comm"
    found = {f"{comm}.require-encryption": "true", f"{comm}.tls.ca-file": str(folder / "ca.pem")}
    for role in ("scheduler", "worker", "client"):
        found[f"{comm}.tls.{role}.cert"] = str(folder / "cert.pem")
        found[f"{comm}.tls.{role}.key"] = str(folder / "key.pem")
    return found


def in_environment(configuration: dict[str, str]) -> dict[str, str]:
    """Dask's configuration as variables of the environment."""
    names = {name: name.upper().replace(".", "__").replace("-", "_") for name in configuration}
    return {f"DASK_{names[name]}": value for name, value in configuration.items()}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
@pytest.mark.test_all("TLS")
def test_encrypted(whole: Outcome, tmp_path: Path) -> None:
    """With certificates the same files; without, or with those of another authority, one error."""
    env = in_environment(certificates(tmp_path))
    (tmp_path / "others").mkdir()
    with started(tmp_path, "--protocol", "tls", env=env) as path:
        address = json.loads(path.read_text())["address"]
        assert address.startswith("tls://")
        found = finished(prepare(tmp_path / "run", f"--cluster={address}", env=env), tmp_path / "run")
        assert found.files == whole.files and found.rows == whole.rows
        others = certificates(tmp_path / "others")
        for own, what in (({}, "distributed.comm.tls"), (others, "certificate does not match")):
            told = rf"DaskEngine\(\): expected .*'{address}'.*{what}"
            with dask.config.set(own), pytest.raises(EngineError, match=told):
                DaskEngine(FAKE, address, startup_seconds=5.0)
        told = r"DaskEngine\(\): expected a scheduler at 'tcp.*encryption required"
        with dask.config.set(certificates(tmp_path)), pytest.raises(EngineError, match=told):
            DaskEngine(FAKE, address.replace("tls", "tcp"), startup_seconds=5.0)


_TINY = ("--evaluation=linear", "--scale_cp=1000", "--penalty=0.0002", "--max_plies=4", "--top_k=3")


@pytest.mark.parametrize(
    ("example", "flags"),
    [
        ("randomness_vs_precomputation", ("--sides=black", "--r_values=100,300")),
        # Few men are left: games are short.
        ("book_match", ("--fen=8/8/4k3/8/4P3/4K3/8/8 w - - 0 1", "--r=300", "--games=2", "--nocontrols")),
    ],
)
@pytest.mark.test_all("clusters of this machine; test_jobs_on_a_cluster starts one")
def test_sweeps_and_matches(example: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    found = []
    for where in ("--workers=1", "--cluster=local:2"):
        folder = tmp_path / where
        folder.mkdir()
        engine = engine_file(folder, slow=False)
        own = (where, f"--engine={engine}", "--store=s.sqlite", "--output_dir=out")
        printed(example, *_TINY, *flags, *own, cwd=folder)
        assert no_engine_is_left(folder)
        found.append((files(folder / "out"), rows_of(folder / "s.sqlite")))
    assert found[0] == found[1]


def _starts(process: subprocess.Popen[str]) -> bool:
    """Whether a run has begun to start Dask's workers."""
    for file in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            for child in file.read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


@pytest.mark.parametrize("searches", [0, 12])
@pytest.mark.test_all("interrupts on a cluster")
def test_an_interrupt_is_told_in_one_line(searches, tmp_path):
    """As a terminal sends it, to all processes: while a cluster of this machine starts, and amid searches."""
    folder = tmp_path / "run"
    process = prepare(folder, "--cluster=local:2", slow=True)
    try:
        while stored(folder / "s.sqlite") < searches or not _starts(process):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(_SECONDS)
    finally:
        process.kill()
    output = (folder / "output.txt").read_text()
    assert code == 130 and "Traceback" not in output, output
    assert output.splitlines()[-1].startswith("error: interrupted (finished searches are in the store)"), (
        output
    )
    assert no_engine_is_left(folder)
