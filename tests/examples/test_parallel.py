"""Tasks of examples on several processes and on a cluster, and what is kept of runs that do not end."""

import asyncio
import contextlib
import dataclasses
import functools
import importlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from precomp_games import map_on_cluster
from precomp_games.algorithms import lookahead
from precomp_games.chess import DaskEngine
from precomp_games.cluster import UnderWay
from tests.chess.test_engine import FAKE
from tests.dask_clusters import cluster_of_threads, local_cluster, started
from tests.examples.launcher import files, imported, printed, result_of, table
from tools.soak.clusters import SEARCHES, SECONDS, campaign, engine_file, finished, prepare, rows_of
from tools.soak.runs import all_gone, stored

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, of workers that are killed


@pytest.fixture(scope="module")
def parallel():
    """Yield the module, from where workers find it too."""
    with imported("parallel") as module:
        yield module


@pytest.fixture
def distributed():
    """Dask's package, which is not imported with this module: processes that are started import that."""
    return pytest.importorskip("distributed")


@dataclasses.dataclass(frozen=True)
class Task:
    """A number to square, and how often its process dies of it, which is counted in a file."""

    number: int
    deaths: int = 0
    counted: str = ""


def square(task):
    if task.deaths:
        with open(task.counted, "ab") as file:
            if file.tell() < task.deaths:
                file.write(b"x")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
    return task.number**2


def power(exponent, number):
    if number < 0:
        raise ValueError(f"expected a number of at least 0, got {number}")
    return number**exponent


def test_one_process(parallel):
    assert list(parallel.each_done(abs, [-1, 2, -3], workers=1)) == [(0, 1), (1, 2), (2, 3)]
    assert list(parallel.each_done(abs, [])) == []


@pytest.mark.parametrize("on_cluster", [False, True])
@pytest.mark.slow("deaths of workers")
def test_deaths_change_nothing_and_errors_come(parallel, on_cluster, tmp_path):
    tasks = [Task(k, 2 if k == 3 else 0, str(tmp_path / "deaths")) for k in range(12)]
    with local_cluster(2) if on_cluster else contextlib.nullcontext() as made:
        where = {"cluster": made.scheduler_address} if on_cluster else {"workers": 2}
        found = dict(parallel.each_done(square, tasks, **where))
        assert found == {k: k**2 for k in range(12)}
        assert (tmp_path / "deaths").stat().st_size == 2
        with pytest.raises(ValueError, match=r"expected a number of at least 0, got -2"):
            list(parallel.each_done(functools.partial(power, 3), [1, -2, 3], **where))


@pytest.mark.slow("deaths of workers")
def test_a_task_that_nobody_lives_through_is_named(parallel, tmp_path):
    """And not one that ran beside it."""
    begun = r"expected workers to live through their tasks, got "
    tasks = [*map(Task, range(5)), Task(5, 100, str(tmp_path / "deaths"))]
    with pytest.raises(ChildProcessError, match=rf"{begun}4 deaths with Task\(number=5, .* alone"):
        list(parallel.each_done(square, tasks, workers=2))
    fatal = Task(1, 100, str(tmp_path / "more_deaths"))
    words_of_it = rf"{begun}several .* of Task\(number=1,"
    with local_cluster(2) as made, pytest.raises(ChildProcessError, match=words_of_it):
        list(map_on_cluster(square, [Task(0), fatal], made.scheduler_address))


def linger(begun, fails):
    """Write to a file, and fail or take a second."""
    with open(begun, "ab") as file:
        file.write(b"x")
    if fails:
        raise ValueError("it fails")
    time.sleep(1.0)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.slow("interrupts of workers")
def test_nothing_goes_on_after_an_error_or_where_results_are_no_longer_wanted(parallel, fails, tmp_path):
    begun = tmp_path / "begun"
    tasks = [fails and k == 0 for k in range(12)]
    found = parallel.each_done(functools.partial(linger, begun), tasks, workers=2)
    if fails:
        with pytest.raises(ValueError, match="it fails"):
            list(found)
    else:
        next(found)
        found.close()
    size = begun.stat().st_size
    assert size < 8
    time.sleep(1.5)
    assert begun.stat().st_size == size


# -- a cluster that misbehaves; tests/chess/test_cluster.py has schedulers that go -------------------


def test_a_client_that_has_closed(distributed):
    """As Dask's does when it has tried for long enough to reach its scheduler again."""
    with cluster_of_threads() as made, distributed.Client(made, set_as_default=False) as client:
        under_way = UnderWay(client, made.scheduler_address)
        under_way.submit(0, time.sleep, 1.0)
        client.close()
        with pytest.raises(ConnectionError, match=r"^expected the scheduler at 'tcp://.*' to stay"):
            under_way.submit(1, abs, -1)
        under_way.cancel()
        assert not under_way


@pytest.mark.slow("deaths of workers")
def test_a_result_that_goes_with_its_worker_is_made_again(distributed):
    """It was lost before somebody fetched it; meanwhile nobody waits for it."""
    with local_cluster(1) as made, distributed.Client(made.scheduler_address) as client:
        under_way = UnderWay(client, made.scheduler_address)
        under_way.submit("lost", abs, -7)
        (sent,) = under_way._tasks.values()
        assert sent.future.result(60.0) == 7
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 60.0
        while sent.future.status == "finished" and time.monotonic() < end:
            time.sleep(0.01)
        assert under_way.done(0.1) == []
        found = []
        while not found and time.monotonic() < end:
            found = under_way.done(0.1)
        assert found == [("lost", 7)] and not under_way


def test_a_result_that_does_not_come(distributed, monkeypatch):
    """Its worker is there and does not answer: the task is given to others, some times."""
    monkeypatch.setattr("precomp_games.cluster.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("precomp_games.cluster._FETCH_LOOK_SECONDS", 0.05)
    with cluster_of_threads() as made, distributed.Client(made) as client:
        under_way = UnderWay(client, "tcp://x:1", words=lambda purpose: f"{purpose!r}")
        under_way.submit("late", abs, -7)
        monkeypatch.setattr(client, "gather", lambda futures: asyncio.sleep(600.0))
        with pytest.raises(ChildProcessError, match=r"^.* said nothing for .* 4 times, of 'late'"):
            while True:
                assert not under_way.done(5.0)
        under_way.cancel()


def test_a_task_that_never_reaches_the_scheduler(distributed, monkeypatch):
    """A busy scheduler may give up a message: no error is raised, and the task is sent again."""
    send, dropped = distributed.Client._send_to_scheduler, []

    def forgetful(client, message):
        if message["op"] == "update-graph" and len(dropped) < 2:
            dropped.append(message)
        else:
            send(client, message)

    monkeypatch.setattr(distributed.Client, "_send_to_scheduler", forgetful)
    monkeypatch.setattr("precomp_games.cluster._LOOK_SECONDS", 0.1)
    with cluster_of_threads() as made:
        found = map_on_cluster(square, [Task(1), Task(2), Task(3)], made.scheduler_address)
        assert sorted(found) == [(0, 1), (1, 4), (2, 9)] and len(dropped) == 2


def test_a_cluster_without_workers(distributed):
    with local_cluster(0) as made, pytest.raises(ConnectionError) as words_of_it:
        list(map_on_cluster(abs, [-1], made.scheduler_address, startup_seconds=0.5))
    assert str(words_of_it.value).startswith(f"expected a worker at '{made.scheduler_address}'")


# -- examples ----------------------------------------------------------------------------------------


# Costs seconds: processes start.
@pytest.mark.parametrize(
    "where",
    ["--workers=2", pytest.param("--cluster=local:2", marks=pytest.mark.slow("a cluster of processes"))],
)
def test_limited_lookahead_is_the_same_on_processes_and_on_a_cluster(where, tmp_path):
    """A cluster's workers have the functions of the example's own process, which are of no module."""
    flags = ("--games=kuhn_poker", "--gammas=0,0.5", "--draws=2")
    names = {"limited_lookahead.csv", "draws.csv", "independent.png", "cumulative.png", "settings.json"}
    output, found = [], []
    for k, here in enumerate(("--workers=1", where)):
        output.append(printed("limited_lookahead", *flags, here, f"--output_dir={tmp_path / str(k)}"))
        made = files(tmp_path / str(k))
        assert made.keys() == names
        found.append([made[name] for name in ("draws.csv", "independent.png", "cumulative.png")])
    assert found[0] == found[1]
    numbers = re.findall(r"expected (\S+), obtained (\S+)$", output[0], re.MULTILINE)
    assert len(numbers) == 3 + 8 and all(expected == obtained for expected, obtained in numbers)
    assert len(table(tmp_path / "0" / "limited_lookahead.csv")) == 2 * 2 * 2 * 2
    draws = table(tmp_path / "0" / "draws.csv")
    assert len(draws) == 8 + 16
    values = result_of(tmp_path / "0", "settings.json")["game_values"]
    assert values["kuhn_poker"] == pytest.approx(-1 / 18)
    # A draw made again by hand.
    h = lookahead.independent_noise(lookahead.equilibrium_values("kuhn_poker", 0), 0.5, [0, 1])
    drawn = ("independent", "1", "2", "0.5", "1")
    columns = ("noise", "rational_player", "lookahead", "gamma", "draw")
    (row,) = (row for row in draws if tuple(row[name] for name in columns) == drawn)
    assert float(row["supremum"]) == lookahead.commit_against_lookahead("kuhn_poker", 1, 2, h).supremum


@pytest.mark.slow("another cluster, whose worker has never seen the example")
def test_efce_resolving_is_the_same_on_processes_and_on_a_cluster(tmp_path, monkeypatch):
    flags = ("--rows=1", "--seeds=1", "--stitch_bounds=aggregate", "--figure=")
    with started(tmp_path) as cluster:
        for k, where in enumerate(("--workers=1", "--workers=2", f"--cluster={cluster}")):
            printed("efce_resolving", *flags, where, f"--output_dir={tmp_path / str(k)}")
        (tmp_path / "here").mkdir()
        (tmp_path / "here" / "alone.py").write_text("def double(number):\n    return 2 * number\n")
        monkeypatch.syspath_prepend(tmp_path / "here")
        double = importlib.import_module("alone").double
        assert list(map_on_cluster(double, [3], str(cluster))) == [(0, 6)]
    stitched = [(tmp_path / str(k) / "stitched.csv").read_bytes() for k in range(3)]
    assert stitched[0] == stitched[1] == stitched[2]


# -- finished tasks of runs that do not end ----------------------------------------------------------


SOLVED = []


def solve(task):
    SOLVED.append(task.number)
    return {"number": task.number, "root": math.sqrt(task.number), "none": None, "inf": math.inf}


@pytest.fixture
def kept_work():
    with imported("kept_work") as module:
        yield module


@pytest.fixture
def run(kept_work, tmp_path):
    """Return a function that returns a run's results; with `stop` it ends after so many, as if killed."""

    def run(numbers, stop=None, path=tmp_path / "tasks.unfinished"):
        SOLVED.clear()
        found = {}
        with kept_work.kept_work(path) as kept:
            for number, result in kept.each_done(solve, [Task(n) for n in numbers], "tasks", workers=1):
                found[number] = result
                if len(found) == stop:
                    raise InterruptedError
        return [found[number] for number in range(len(numbers))]

    return run


def test_finished_tasks_are_not_solved_again(run, tmp_path, capsys):
    whole = run(range(6))
    assert list(range(6)) == SOLVED and not list(tmp_path.iterdir())
    with pytest.raises(InterruptedError):
        run(range(6), stop=2)
    (kept,) = tmp_path.iterdir()
    with open(kept, "ab") as file:
        file.write(b'\n["0.1.0 solve Task(number=2)", {"num')  # a kill in the middle of a line
    with pytest.raises(InterruptedError):
        run(range(6), stop=4)
    assert SOLVED == [2, 3]
    # Runs of other tasks leave what is kept, of which they use what they can.
    run(range(7, 9))
    run([2, 3])
    assert SOLVED == []
    assert run(range(6)) == whole and SOLVED == [4, 5] and not kept.exists()
    assert "4 of 6 tasks are of a run that did not end" in capsys.readouterr().out


def test_nonsense_in_a_file_of_tasks_is_passed_over(run, tmp_path):
    (tmp_path / "tasks.0.unfinished").write_bytes(b'\xff\n1\n[]\n[1, 2, 3]\n["x", 1]\nnull\n{"a": 1}\n')
    assert [row["number"] for row in run([2, 3])] == [2, 3] and SOLVED == [2, 3]


@pytest.mark.parametrize(("stop", "folder"), [(1, ""), (None, "missing")])
def test_an_error_ends_what_solves_the_other_tasks(run, kept_work, tmp_path, monkeypatch, stop, folder):
    """Of the loop over results, or of the file that they are kept in."""
    ended = []

    def each_done(solve, tasks, **_):
        try:
            yield from enumerate(map(solve, tasks))
        finally:
            ended.append(True)

    monkeypatch.setattr(kept_work.parallel, "each_done", each_done)
    with pytest.raises((InterruptedError, FileNotFoundError)) as words_of_it:  # which keeps generators alive
        run(range(3), stop, tmp_path / folder / "tasks.unfinished")
    assert ended and SOLVED == [0], words_of_it


# -- runs on a cluster: the same files as on one machine, whatever becomes of its workers ------------

_CLUSTERS = pytest.mark.slow(
    "clusters; test_limited_lookahead_is_the_same_on_processes_and_on_a_cluster starts one"
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the run without a cluster."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    found = finished(prepare(folder), folder)
    assert len(found.rows) == SEARCHES
    assert found.files.keys() == {"book.bin", "book.pgn", "result.json"}
    assert len(found.files["book.bin"]) > 16  # more than one move
    return found


@_CLUSTERS
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


@_CLUSTERS
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_encrypted(distributed, whole, tmp_path):
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
            with pytest.importorskip("dask").config.set(given), pytest.raises(ConnectionError, match=message):
                DaskEngine(FAKE, wanted, startup_seconds=5.0)


@_CLUSTERS
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


@_CLUSTERS
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
