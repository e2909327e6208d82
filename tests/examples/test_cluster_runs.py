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
from tools.soak.clusters import SEARCHES, SECONDS, campaign, engine_file, finished, prepare, rows_of
from tools.soak.runs import all_gone, stored

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Dask's own, of workers that are killed
    pytest.mark.slow("clusters; test_limited_lookahead_is_the_same_on_processes_and_on_a_cluster starts one"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the run without a cluster."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    found = finished(prepare(folder), folder)
    assert len(found.rows) == SEARCHES
    assert found.files.keys() == {"book.bin", "book.pgn", "result.json"}
    assert len(found.files["book.bin"]) > 16  # more than one move
    return found


def test_workers_are_killed_added_and_retired_at_random(whole, tmp_path):
    found = campaign(tmp_path, 9, whole)
    assert all(found.counts.values())


def certificates(folder):
    """Return a new authority and a certificate by it, as Dask's configuration."""

    def openssl(*command):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)

    folder.mkdir(exist_ok=True)
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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_encrypted(whole, tmp_path):
    """With certificates the same files; without, or with those of another authority, one error."""
    own, others = certificates(tmp_path), certificates(tmp_path / "others")
    env = {f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": value for name, value in own.items()}
    with started(tmp_path, "--protocol", "tls", env=env) as path:
        address = json.loads(path.read_text())["address"]
        assert address.startswith("tls://")
        found = finished(prepare(tmp_path / "run", f"--cluster={address}", env=env), tmp_path / "run")
        assert found.files == whole.files and found.rows == whole.rows
        for given, wanted, what in (
            ({}, address, f"'{address}'.*distributed.comm.tls"),
            (others, address, f"'{address}'.*certificate does not match"),
            (own, address.replace("tls", "tcp"), r"a scheduler at 'tcp.*encryption required"),
        ):
            message = rf"DaskEngine\(\): expected .*{what}"
            with dask.config.set(given), pytest.raises(ConnectionError, match=message):
                DaskEngine(FAKE, wanted, startup_seconds=5.0)


def test_games_of_a_match(tmp_path):
    flags = ("--evaluation=linear", "--scale_cp=1000", "--penalty=0.0002", "--max_plies=4", "--top_k=3")
    made = (f"--engine={engine_file(tmp_path, slow=False)}", "--store=s.sqlite", "--output_dir=made")
    few_men = ("--fen=8/8/4k3/8/4P3/4K3/8/8 w - - 0 1", "--r=300", "--match_games=0")
    printed("chess_preparation", *flags, *few_men, *made, cwd=tmp_path)
    found = []
    for where in ("--workers=1", "--cluster=local:2"):
        folder = tmp_path / where
        folder.mkdir()
        engine = engine_file(folder, slow=False)
        own = (where, f"--engine={engine}", "--store=s.sqlite", "--output_dir=out", "--nocontrols")
        printed("book_match", "--from=../made", "--games=2", *own, cwd=folder)
        assert all_gone(folder)
        found.append((files(folder / "out"), rows_of(folder / "s.sqlite")))
    assert found[0] == found[1]


def starts(process):
    """Return whether a run has begun to start Dask's workers."""
    for file in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            for child in file.read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


@pytest.mark.parametrize("searches", [0, 12])
def test_an_interrupt_is_one_line(searches, tmp_path):
    """As a terminal sends it, to all processes: while a cluster of this machine starts, and amid searches."""
    folder = tmp_path / "run"
    process = prepare(folder, "--cluster=local:2", slow=True)
    try:
        while stored(folder / "s.sqlite") < searches or not starts(process):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(SECONDS)
    finally:
        process.kill()
    output = (folder / "output.txt").read_text()
    assert code == 130 and "Traceback" not in output, output
    message = "error: interrupted (finished searches are in the store)"
    assert output.splitlines()[-1].startswith(message), output
    assert all_gone(folder)
