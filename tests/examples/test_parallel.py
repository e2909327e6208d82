"""Tasks of examples on several processes and on a cluster: what is found, and what becomes of deaths."""

import asyncio
import contextlib
import dataclasses
import functools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from precomp_games import map_on_cluster
from precomp_games.cluster import UnderWay
from tests.dask_clusters import cluster_of_threads, local_cluster, started
from tests.examples.launcher import files, imported, printed


@pytest.fixture(scope="module")
def parallel() -> Iterator[ModuleType]:
    """Yield the module, from where workers find it too."""
    with imported("parallel") as module:
        yield module


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with local_cluster(2) as cluster:
        yield cluster.scheduler_address


@dataclasses.dataclass(frozen=True)
class Task:
    """A number to square, and how often its process dies of it, which is counted in a file."""

    number: int
    deaths: int = 0
    counted: str = ""


def square(task: Task) -> int:
    if task.deaths:
        with open(task.counted, "ab") as file:
            if file.tell() < task.deaths:
                file.write(b"x")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
    return task.number**2


def power(exponent: int, number: int) -> int:
    if number < 0:
        raise ValueError(f"expected a number of at least 0, got {number}")
    return number**exponent


@pytest.fixture(params=["workers", "cluster"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "workers":
        return {"workers": 2}
    return {"cluster": request.getfixturevalue("address")}


def test_one_process(parallel: ModuleType) -> None:
    assert list(parallel.each_done(abs, [-1, 2, -3], workers=1)) == [(0, 1), (1, 2), (2, 3)]
    assert list(parallel.each_done(abs, [])) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow("deaths of workers")
def test_deaths(parallel: ModuleType, where: dict[str, Any], tmp_path: Path) -> None:
    tasks = [Task(k, 2 if k == 3 else 0, str(tmp_path / "deaths")) for k in range(12)]
    found = dict(parallel.each_done(square, tasks, **where))
    assert [found[k] for k in range(12)] == [k**2 for k in range(12)]
    assert (tmp_path / "deaths").stat().st_size == 2
    assert dict(parallel.each_done(functools.partial(power, 3), [1, 2], **where)) == {0: 1, 1: 8}
    with pytest.raises(ValueError, match=r"expected a number of at least 0, got -2"):
        list(parallel.each_done(functools.partial(power, 3), [1, -2, 3], **where))


@pytest.mark.slow("deaths of processes")
def test_what_no_process_lives_through(parallel: ModuleType, tmp_path: Path) -> None:
    """It is named, and not one that ran beside it."""
    tasks = [*map(Task, range(5)), Task(5, 100, str(tmp_path / "deaths"))]
    told = r"expected workers to live through their tasks, got 4 deaths with Task\(number=5, .* alone"
    found = parallel.each_done(square, tasks, workers=2)
    with pytest.raises(ChildProcessError, match=told):
        list(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow("deaths of workers")
def test_what_no_worker_lives_through(address: str, tmp_path: Path) -> None:
    tasks = [Task(0), Task(1, 100, str(tmp_path / "deaths"))]
    told = r"expected workers to live through their tasks, got several .* of Task\(number=1,"
    with pytest.raises(ChildProcessError, match=told):
        list(map_on_cluster(square, tasks, address))


@dataclasses.dataclass(frozen=True)
class Slow:
    """A task that writes to a file when it begins, and takes a second; or fails at once."""

    begun: str
    fails: bool = False


def linger(task: Slow) -> None:
    with open(task.begun, "ab") as file:
        file.write(b"x")
    if task.fails:
        raise ValueError("it fails")
    time.sleep(1.0)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.slow("interrupts of workers")
def test_nothing_goes_on_for_nobody(parallel: ModuleType, fails: bool, tmp_path: Path) -> None:
    """After an error, and where results are no longer wanted."""
    begun = tmp_path / "begun"
    tasks = [Slow(str(begun), fails and k == 0) for k in range(12)]
    found = parallel.each_done(linger, tasks, workers=2)
    if fails:
        with pytest.raises(ValueError, match="it fails"):
            list(found)
    else:
        next(found)
        found.close()
    size = begun.stat().st_size
    assert size < 8
    time.sleep(2.5)
    assert begun.stat().st_size == size


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_goes(tmp_path: Path) -> None:
    made = cluster_of_threads()
    tasks = [Slow(str(tmp_path / "begun"))] * 20
    found = map_on_cluster(linger, tasks, made.scheduler_address, startup_seconds=3.0)
    next(found)
    made.close()
    with pytest.raises(ConnectionError, match=r"expected (the scheduler|a worker) at 'tcp"):
        list(found)


@pytest.mark.filterwarnings("ignore")
def test_a_client_that_has_closed(address: str) -> None:
    """As Dask's does when it has tried for long enough to reach its scheduler again."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(address, set_as_default=False) as client:
        under_way = UnderWay(client, address)
        under_way.submit(0, time.sleep, 600.0)
        client.close()
        with pytest.raises(ConnectionError, match=r"^expected the scheduler at 'tcp://.*' to stay"):
            under_way.submit(1, abs, -1)
        under_way.cancel()
        assert not under_way


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow("deaths of workers")
def test_a_result_that_goes_with_its_worker() -> None:
    """It is made again, where it was lost before somebody fetched it; meanwhile nobody waits for it."""
    distributed = pytest.importorskip("distributed")
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


@pytest.mark.filterwarnings("ignore")
def test_a_result_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker is there and does not answer: the task is given to others, some times."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("precomp_games.cluster.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("precomp_games.cluster._FETCH_LOOK_SECONDS", 0.05)
    with cluster_of_threads() as made, distributed.Client(made) as client:
        under_way = UnderWay(client, "tcp://x:1", words=lambda purpose: f"{purpose!r}")
        under_way.submit("late", abs, -7)

        async def never(futures: list[Any]) -> None:
            await asyncio.sleep(600.0)

        monkeypatch.setattr(client, "gather", never)
        with pytest.raises(ChildProcessError, match=r"^.* said nothing for .* 4 times, of 'late'"):
            while True:
                assert not under_way.done(5.0)
        under_way.cancel()


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_never_reaches_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy scheduler may give up a message: no error is raised, and the task is sent again."""
    distributed = pytest.importorskip("distributed")
    send, dropped = distributed.Client._send_to_scheduler, []

    def forgetful(client: Any, message: dict[str, Any]) -> None:
        if message["op"] == "update-graph" and len(dropped) < 2:
            dropped.append(message)
        else:
            send(client, message)

    monkeypatch.setattr(distributed.Client, "_send_to_scheduler", forgetful)
    monkeypatch.setattr("precomp_games.cluster._LOOK_SECONDS", 0.1)
    with cluster_of_threads() as made:
        found = map_on_cluster(abs, [-1, -2, -3], made.scheduler_address)
        assert sorted(found) == [(0, 1), (1, 2), (2, 3)] and len(dropped) == 2


def test_a_cluster_without_workers() -> None:
    with local_cluster(0) as cluster, pytest.raises(ConnectionError) as told:
        list(map_on_cluster(abs, [-1], cluster.scheduler_address, startup_seconds=2.0))
    assert str(told.value).startswith(f"expected a worker at '{cluster.scheduler_address}'")


_LOOKAHEAD = ("--games=kuhn_poker", "--gammas=0,0.5", "--draws=2")
_STITCHING = ("--rows=1", "--seeds=1", "--stitch_bounds=aggregate", "--figure=")


@pytest.mark.parametrize(
    ("example", "flags", "names", "is_local"),
    [
        ("limited_lookahead", _LOOKAHEAD, {"draws.csv", "independent.png", "cumulative.png"}, True),
        pytest.param(
            "efce_resolving",
            _STITCHING,
            {"stitched.csv"},
            False,
            marks=pytest.mark.slow("another cluster"),
        ),
    ],
)
# Costs seconds: a cluster starts.
def test_jobs_on_a_cluster(example, flags, names, is_local, tmp_path) -> None:
    """Of the example's own process, that is: its functions are those of no module."""
    pytest.importorskip("distributed")
    found = []
    # The worker of a scheduler that was started by hand has never seen the example.
    with contextlib.nullcontext("local:2") if is_local else started(tmp_path) as cluster:
        for k, where in enumerate(("--workers=1", "--workers=2", f"--cluster={cluster}")):
            folder = tmp_path / str(k)
            printed(example, *flags, where, f"--output_dir={folder}")
            found.append({name: data for name, data in files(folder).items() if name in names})
    assert found[0] == found[1] == found[2] and found[0].keys() == names
