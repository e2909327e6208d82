"""Searches on a cluster are those of a pool, whatever happens to the workers."""

import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped,unused-ignore]
import pytest

from precomp_games import cluster as clusters
from precomp_games import cluster_client
from precomp_games.chess import DaskEngine
from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import StoredEngine
from tests.chess.test_engine import EPDS, FAKE, LIMIT, ROOT, expected, gone, opening_positions
from tests.dask_clusters import cluster_address, cluster_of_threads, local_cluster, started

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Dask's own, of ports and of workers that are killed
]


@pytest.fixture(scope="module")
def mortal():
    """Yield a cluster whose workers are processes, and can be killed."""
    with local_cluster(2) as made:
        yield made


def _engines_of(pids: list[int]) -> set[int]:
    """Return the fake engines that processes have started."""
    children = [child for pid in pids for child in psutil.Process(pid).children()]
    return {child.pid for child in children if "fake_engine.py" in " ".join(child.cmdline())}


def test_the_same_as_a_pool() -> None:
    with EnginePool(FAKE, workers=2) as pool:
        whole = pool.search(EPDS, LIMIT, 2)
    with DaskEngine(FAKE, cluster_address()) as engine:
        assert engine.engine_id == "Fake 1.0" and engine.workers == 1 and engine.refused == {}
        came = {}
        assert engine.search([*EPDS, EPDS[0]], LIMIT, 2, came.__setitem__) == [*whole, whole[0]]
        assert came == dict(zip(EPDS, whole, strict=True))
        assert engine.search([], LIMIT, 2) == []
        with pickle.loads(pickle.dumps(engine)) as again:
            assert again.search(EPDS[:2], LIMIT, 1) == [expected(epd, 1) for epd in EPDS[:2]]


@pytest.mark.slow("a second cluster")
def test_two_clients(monkeypatch) -> None:
    """Each hears of its own results, however long it would otherwise be until it looks."""
    monkeypatch.setattr("precomp_games.cluster._LOOK_SECONDS", 3600.0)
    with DaskEngine(FAKE, cluster_address()) as first, DaskEngine(FAKE, "local:1") as second:
        for engine in (first, second, first):
            assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]


def test_what_is_told_ends_with_the_last_client() -> None:
    address, logger = cluster_address(), logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.INFO)
    with cluster_client(address), cluster_client(address):
        assert logger.level >= logging.WARNING
    assert logger.level == logging.INFO
    logger.setLevel(before)


@pytest.mark.slow("deaths of workers")
def test_a_worker_that_is_killed_costs_nothing(mortal, tmp_path: Path) -> None:
    """A SIGKILL in the middle, others asked for: every search is stored once, and no engine is left."""
    with (
        EvaluationStore(tmp_path / "searches") as store,
        DaskEngine([*FAKE, "--fault", "slow"], mortal.scheduler_address) as engine,
    ):
        victims = list(engine._client.run(os.getpid).values())
        engines = _engines_of(victims)
        assert len(engines) >= 2

        def kill() -> None:
            time.sleep(1.0)
            os.kill(victims[0], signal.SIGKILL)
            mortal.scale(3)

        killer = threading.Thread(target=kill)
        killer.start()
        counts: list[int] = []
        found = StoredEngine(store, engine, on_search=counts.append).search(EPDS, LIMIT, 2)
        killer.join()
        assert found == [expected(epd, 2) for epd in EPDS]
        assert counts == list(range(1, len(EPDS) + 1))
        assert store.get_many("Fake 1.0", LIMIT, 2, EPDS) == dict(zip(EPDS, found, strict=True))
        left = engines | _engines_of(list(engine._client.run(os.getpid).values()))
    assert all(gone(pid) for pid in left)


@pytest.mark.slow("deaths of workers")
def test_the_last_worker_dies_between_a_search_and_its_fetching(monkeypatch) -> None:
    """Dask would wait for the result of whoever is there next, who has no engine yet and is given no task."""
    with local_cluster(1) as made, DaskEngine(FAKE, made.scheduler_address) as engine:
        pids, gather = list(engine._client.run(os.getpid).values()), engine._client.gather

        def killing(futures):
            while pids:
                os.kill(pids.pop(), signal.SIGKILL)
                time.sleep(0.2)
            return gather(futures)

        monkeypatch.setattr(engine._client, "gather", killing)
        assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]
        assert not pids


@pytest.mark.slow("deaths of workers")
def test_a_hung_engine_dies_with_its_worker(mortal, tmp_path: Path) -> None:
    """An engine that heeds nothing, not the end of its input either."""
    epd, state = "7k/8/5KQ1/8/8/8/8/8 w - -", tmp_path / "state"
    once = [*FAKE, "--fault", "hang", "--only", "5KQ1", "--times", "1", "--state", str(state)]
    with DaskEngine(once, mortal.scheduler_address, timeout_seconds=600.0) as engine:
        workers = list(engine._client.run(os.getpid).values())
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.extend(engine.search([epd], LIMIT, 1)))
        thread.start()
        end = time.monotonic() + 300.0
        while not state.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.5)
        engines = _engines_of(workers)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        assert engines and all(gone(pid) for pid in engines)
        thread.join(timeout=300)
        assert found == [expected(epd, 1)]


def _wrong_engine(folder: Path, *wrong: int) -> list[str]:
    """Return an engine of which these processes answer otherwise, in the order of their starts from 0."""
    script, starts = folder / "engine.py", folder / "starts"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import tests.chess.fake_engine as fake\n"
        "score = fake.score\n"
        f"with open({str(starts)!r}, 'ab') as file:\n"
        "    number = file.tell()\n"
        "    file.write(b'x')\n"
        f"if number in {wrong}:\n"
        "    fake.score = lambda board, move, depth: -score(board, move, depth)\n"
        "fake.main()\n"
    )
    return [sys.executable, str(script)]


def test_a_wrong_engine_is_refused(tmp_path: Path) -> None:
    """The client's own is the first that starts."""
    with pytest.raises(EngineError, match=r"expected workers with the client's engine.*other lines of"):
        DaskEngine(_wrong_engine(tmp_path, 1, 2), cluster_address())


@pytest.mark.slow("a cluster of two processes")
def test_the_others_search_where_one_is_wrong(mortal, tmp_path: Path) -> None:
    with DaskEngine(_wrong_engine(tmp_path, 1), mortal.scheduler_address) as engine:
        for _ in range(100):
            if len(engine.refused) == 1:
                break
            time.sleep(0.1)
        ((address, why),) = engine.refused.items()
        assert address in engine._client.run(os.getpid)
        assert "other lines of" in why and "in place of" in why
        assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]


def test_what_is_no_cluster() -> None:
    for name in (
        "",
        "local",
        "local:0",
        "local:x.json",
        "local:x",
        "host:8786",
        "http://x",
        "tcp://host",
        "tcp://..:1",
    ):
        with pytest.raises(ValueError, match=r"DaskEngine\(\): expected cluster to be a scheduler's address"):
            DaskEngine(FAKE, name)


def test_what_is_no_scheduler_file(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.json"
    for text, told in (
        (None, "No such file"),
        *((text, "it is no scheduler file") for text in ("", "[]", '{"address": 5}', '{"address": "x"}')),
        ('{"address": "tcp://127.0.0.1:70000"}', "Timed out"),
    ):
        if text is not None:
            path.write_text(text)
        named = rf"expected a scheduler at '{path}', got none .*{told}"
        with (
            pytest.raises(ConnectionError, match=named),
            cluster_client(str(path), startup_seconds=0.2),
        ):
            pass


def test_a_scheduler_that_is_not_there_or_says_nothing(monkeypatch) -> None:
    with pytest.raises(ConnectionError, match=r"expected a scheduler at 'tcp://127\.0\.0\.1:1', got none"):
        DaskEngine(FAKE, "tcp://127.0.0.1:1", startup_seconds=2.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        told = r"expected a scheduler at 'tcp.*', got none \(no answer within 1\.5 s\)"
        name = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(clusters, "ANSWER_SECONDS", 1.0)
        with pytest.raises(ConnectionError, match=told), cluster_client(name, startup_seconds=0.5):
            pass


@pytest.mark.slow("deaths of schedulers; of one more in test_a_scheduler_that_goes")
def test_a_scheduler_that_is_stopped(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clusters, "ANSWER_SECONDS", 1.0)
    with started(tmp_path) as path, DaskEngine(FAKE, str(path)) as engine:
        scheduler = engine._client.run_on_scheduler(os.getpid)
        os.kill(scheduler, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionError, match=r"scheduler at .* to stay, got no answer within 1 s"):
                engine.search(EPDS, LIMIT, 2)
        finally:
            os.kill(scheduler, signal.SIGCONT)


@pytest.mark.slow("deaths of schedulers; of one more in test_a_scheduler_that_goes")
def test_a_scheduler_that_dies_while_engines_start(monkeypatch, tmp_path: Path) -> None:
    register = distributed.Client.register_plugin

    async def dying(client, plugin, name):
        os.kill(await client.run_on_scheduler(os.getpid), signal.SIGKILL)
        return await register(client, plugin, name=name)

    monkeypatch.setattr(clusters, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(distributed.Client, "register_plugin", dying)
    told = r"DaskEngine\(\): expected the scheduler at '.*' to stay, got .*run again"
    with started(tmp_path) as path, pytest.raises(ConnectionError, match=told):
        DaskEngine(FAKE, str(path), startup_seconds=3.0)


def test_a_worker_of_this_machine_that_dies_while_it_starts(monkeypatch) -> None:
    """The error names the worker, and no missing scheduler."""
    started = distributed.nanny.AsyncProcess.start

    async def dying(process) -> None:
        await started(process)
        os.kill(process.pid, signal.SIGKILL)

    monkeypatch.setattr(distributed.nanny.AsyncProcess, "start", dying)
    told = r"expected 1 worker\(s\) of 'local:1' to start, got one that did not .*memory"
    with pytest.raises(ConnectionError, match=told), cluster_client("local:1"):
        pass


def test_a_scheduler_that_goes() -> None:
    """One error, and what was finished has been handed over."""
    made = cluster_of_threads()
    came: dict[str, object] = {}

    def keep(epd: str, result: object) -> None:
        came[epd] = result
        made.close()

    with DaskEngine(FAKE, made.scheduler_address, startup_seconds=3.0) as engine:
        told = r"DaskEngine\.search\(\): expected the scheduler at 'tcp://.*' to stay, got .*run again"
        with pytest.raises(ConnectionError, match=told):
            engine.search([*EPDS, *opening_positions(40)], LIMIT, 2, keep)
    assert 0 < len(came) < 40
    with pytest.raises(EngineError, match=r"DaskEngine\.search\(\): expected open engines, got closed ones"):
        engine.search(EPDS, LIMIT, 2)


def test_workers_on_this_machine(capfd, monkeypatch) -> None:
    """A normal end prints nothing, even if workers are slow to go."""
    join = distributed.nanny.AsyncProcess.join

    async def slow(process, timeout=None) -> None:
        if timeout < 5.0:  # until Dask kills it
            raise TimeoutError
        await join(process, timeout)

    monkeypatch.setattr(distributed.nanny.AsyncProcess, "join", slow)
    with DaskEngine(FAKE, "local:1") as engine:
        workers = list(engine._client.run(os.getpid).values())
        engines = _engines_of(workers)
        assert len(engines) == 1
        assert engine.search(EPDS[:3], LIMIT, 2) == [expected(epd, 2) for epd in EPDS[:3]]
    assert all(gone(pid) for pid in engines)
    assert "still alive" not in capfd.readouterr().err
