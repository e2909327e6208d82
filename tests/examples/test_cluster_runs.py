"""Examples on a cluster: the same files as on one machine, whatever becomes of its workers."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from precomp_games.chess import DaskEngine
from tests.chess.test_engine import FAKE
from tests.dask_clusters import started
from tests.examples.launcher import files, printed
from tools.soak.clusters import (
    SEARCHES,
    SECONDS,
    Outcome,
    campaign,
    disturbed,
    engine_file,
    finished,
    prepare,
    rows_of,
)
from tools.soak.runs import all_gone, stored

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
]  # Dask's own, of workers that are killed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return the run without a cluster."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    found = finished(prepare(folder), folder)
    assert len(found.rows) == SEARCHES
    assert set(found.files) == {"book.bin", "book.pgn", "result.json"}
    assert len(found.files["book.bin"]) > 16  # more than one move
    return found


@pytest.mark.slow("deaths of workers")
def test_a_worker_is_killed_and_another_added(whole: Outcome, tmp_path: Path) -> None:
    found = disturbed(tmp_path / "run", 2, [(12, "kill"), (20, "add")])
    assert found.counts == {"kill": 1, "add": 1, "retire": 0}
    assert found.files == whole.files
    assert found.rows == whole.rows


@pytest.mark.slow("deaths of workers")
def test_things_happen_at_random(whole: Outcome, tmp_path: Path) -> None:
    found = campaign(tmp_path, 9, whole)
    assert all(found.counts.values())


@pytest.mark.slow("a second cluster")
def test_a_scheduler_file(whole: Outcome, tmp_path: Path) -> None:
    with started(tmp_path) as path:
        found = finished(prepare(tmp_path / "run", f"--cluster={path}"), tmp_path / "run")
        assert found.files == whole.files and found.rows == whole.rows
        assert all_gone(tmp_path / "run")


def certificates(folder: Path) -> dict[str, str]:
    """Return a new authority and a certificate by it, as Dask's configuration."""

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
@pytest.mark.slow("TLS")
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
            with dask.config.set(own), pytest.raises(ConnectionError, match=told):
                DaskEngine(FAKE, address, startup_seconds=5.0)
        told = r"DaskEngine\(\): expected a scheduler at 'tcp.*encryption required"
        with dask.config.set(certificates(tmp_path)), pytest.raises(ConnectionError, match=told):
            DaskEngine(FAKE, address.replace("tls", "tcp"), startup_seconds=5.0)


_TINY = ("--evaluation=linear", "--scale_cp=1000", "--penalty=0.0002", "--max_plies=4", "--top_k=3")


@pytest.mark.slow("clusters of this machine; test_jobs_on_a_cluster starts one")
@pytest.mark.parametrize(
    ("example", "flags"),
    [
        ("randomness_vs_precomputation", (*_TINY, "--sides=black", "--r_values=100,300")),
        ("book_match", ("--from=../made", "--games=2", "--nocontrols")),
    ],
)
def test_sweeps_and_matches(example: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    found = []
    if example == "book_match":  # few men are left: games are short
        made = (f"--engine={engine_file(tmp_path, slow=False)}", "--store=s.sqlite", "--output_dir=made")
        small = (*_TINY, "--fen=8/8/4k3/8/4P3/4K3/8/8 w - - 0 1", "--r=300", "--match_games=0")
        printed("chess_preparation", *small, *made, cwd=tmp_path)
    for where in ("--workers=1", "--cluster=local:2"):
        folder = tmp_path / where
        folder.mkdir()
        engine = engine_file(folder, slow=False)
        own = (where, f"--engine={engine}", "--store=s.sqlite", "--output_dir=out")
        printed(example, *flags, *own, cwd=folder)
        assert all_gone(folder)
        found.append((files(folder / "out"), rows_of(folder / "s.sqlite")))
    assert found[0] == found[1]


def _starts(process: subprocess.Popen[str]) -> bool:
    """Return whether a run has begun to start Dask's workers."""
    for file in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            for child in file.read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


@pytest.mark.parametrize("searches", [0, 12])
@pytest.mark.slow("interrupts on a cluster")
def test_an_interrupt_is_told_in_one_line(searches, tmp_path):
    """As a terminal sends it, to all processes: while a cluster of this machine starts, and amid searches."""
    folder = tmp_path / "run"
    process = prepare(folder, "--cluster=local:2", slow=True)
    try:
        while stored(folder / "s.sqlite") < searches or not _starts(process):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(SECONDS)
    finally:
        process.kill()
    output = (folder / "output.txt").read_text()
    assert code == 130 and "Traceback" not in output, output
    assert output.splitlines()[-1].startswith("error: interrupted (finished searches are in the store)"), (
        output
    )
    assert all_gone(folder)
