"""Searches on a cluster are those of a pool, whatever happens to the workers."""

import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time

import psutil  # type: ignore[import-untyped,unused-ignore]
import pytest

from precomp_games import cluster as clusters
from precomp_games import cluster_client
from precomp_games.chess import DaskEngine
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import StoredEngine
from tests.chess.test_engine import EPDS, FAKE, LIMIT, expected, gone, opening_positions
from tests.dask_clusters import cluster_address, cluster_of_threads, local_cluster, started

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, of ports and of workers that are killed
FOUND = [expected(epd, 2) for epd in EPDS]


@pytest.fixture(scope="module")
def mortal():
    """Yield a cluster whose workers are processes, and can be killed."""
    with local_cluster(2) as made:
        yield made


def workers_of(engine):
    return list(engine._client.run(os.getpid).values())


def engines_of(pids):
    """Return the fake engines that processes have started."""
    children = [child for pid in pids for child in psutil.Process(pid).children()]
    return {child.pid for child in children if "fake_engine.py" in " ".join(child.cmdline())}


def test_a_cluster_answers_as_a_pool_does():
    with DaskEngine(FAKE, cluster_address()) as engine:
        assert engine.engine_id == "Fake 1.0" and engine.workers == 1 and engine.refused == {}
        came = {}
        assert engine.search([*EPDS, EPDS[0]], LIMIT, 2, came.__setitem__) == [*FOUND, FOUND[0]]
        assert came == dict(zip(EPDS, FOUND, strict=True))
        assert engine.search([], LIMIT, 2) == []
        with pickle.loads(pickle.dumps(engine)) as again:
            assert again.search(EPDS[:2], LIMIT, 1) == [expected(epd, 1) for epd in EPDS[:2]]


@pytest.mark.slow("a second cluster")
def test_each_of_two_clients_hears_of_its_own_results(monkeypatch):
    """However long it would otherwise be until it looks."""
    monkeypatch.setattr("precomp_games.cluster._LOOK_SECONDS", 3600.0)
    with DaskEngine(FAKE, cluster_address()) as first, DaskEngine(FAKE, "local:1") as second:
        for engine in (first, second, first):
            assert engine.search(EPDS, LIMIT, 2) == FOUND


def test_logs_are_as_before_after_the_last_client():
    address, logger = cluster_address(), logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.INFO)
    with cluster_client(address), cluster_client(address):
        assert logger.level >= logging.WARNING
    assert logger.level == logging.INFO
    logger.setLevel(before)


@pytest.mark.slow("deaths of workers")
def test_a_worker_that_is_killed_costs_nothing(mortal, tmp_path):
    """A SIGKILL in the middle, others asked for: every search is stored once, and no engine is left."""
    with (
        EvaluationStore(tmp_path / "searches") as store,
        DaskEngine([*FAKE, "--fault=slow"], mortal.scheduler_address) as engine,
    ):
        victims = workers_of(engine)
        engines = engines_of(victims)
        assert len(engines) >= 2
        counts: list[int] = []

        def count(number):
            counts.append(number)
            if number == 2:
                os.kill(victims[0], signal.SIGKILL)
                mortal.scale(3)

        assert StoredEngine(store, engine, on_search=count).search(EPDS, LIMIT, 2) == FOUND
        assert counts == list(range(1, len(EPDS) + 1))
        assert store.get_many("Fake 1.0", LIMIT, 2, EPDS) == dict(zip(EPDS, FOUND, strict=True))
        left = engines | engines_of(workers_of(engine))
    assert all(gone(pid) for pid in left)


@pytest.mark.slow("deaths of workers")
def test_a_hung_engine_dies_with_its_worker_and_its_search_goes_to_another(mortal, tmp_path):
    """An engine that heeds nothing, not the end of its input either."""
    epd, state = "7k/8/5KQ1/8/8/8/8/8 w - -", tmp_path / "state"
    once = [*FAKE, "--fault=hang", "--only=5KQ1", "--times=1", f"--state={state}"]
    with DaskEngine(once, mortal.scheduler_address, timeout_seconds=600.0) as engine:
        workers = workers_of(engine)
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.extend(engine.search([epd], LIMIT, 1)))
        thread.start()
        end = time.monotonic() + 300.0
        while not state.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        engines = engines_of(workers)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        assert engines and all(gone(pid) for pid in engines)
        thread.join(timeout=300)
        assert found == [expected(epd, 1)]


def wrong_engine(folder, *wrong):
    """Return an engine of which these processes answer otherwise, in the order of their starts from 0."""
    script = folder / "engine.py"
    script.write_text(
        "import sys\n"
        f"sys.path[:] = {sys.path!r}\n"
        "import tests.chess.fake_engine as fake\n"
        "score = fake.score\n"
        f"with open({str(folder / 'starts')!r}, 'ab') as file:\n"
        "    number = file.tell()\n"
        "    file.write(b'x')\n"
        f"if number in {wrong}:\n"
        "    fake.score = lambda board, move, depth: -score(board, move, depth)\n"
        "fake.main()\n"
    )
    return [sys.executable, str(script)]


def test_a_wrong_engine_is_refused(tmp_path):
    """The client's own is the first that starts."""
    with pytest.raises(EngineError, match=r"expected workers with the client's engine.*other lines of"):
        DaskEngine(wrong_engine(tmp_path, 1, 2), cluster_address())


@pytest.mark.slow("a cluster of two processes")
def test_the_others_search_where_one_is_wrong(mortal, tmp_path):
    with DaskEngine(wrong_engine(tmp_path, 1), mortal.scheduler_address) as engine:
        end = time.monotonic() + 10.0
        while len(engine.refused) != 1 and time.monotonic() < end:
            time.sleep(0.1)
        ((address, why),) = engine.refused.items()
        assert address in engine._client.run(os.getpid)
        assert "other lines of" in why and "in place of" in why
        assert engine.search(EPDS, LIMIT, 2) == FOUND


def test_what_names_no_cluster_is_refused(tmp_path):
    for name in ("", "local", "local:0", "local:x.json", "host:8786", "http://x", "tcp://h", "tcp://..:1"):
        with pytest.raises(ValueError, match=r"DaskEngine\(\): expected cluster to be a scheduler's address"):
            DaskEngine(FAKE, name)
    path = tmp_path / "scheduler.json"
    for text, message in (
        (None, "No such file"),
        *((text, "it is no scheduler file") for text in ("", "[]", '{"address": 5}', '{"address": "x"}')),
        ('{"address": "tcp://127.0.0.1:70000"}', "Timed out"),
    ):
        if text is not None:
            path.write_text(text)
        message = rf"expected a scheduler at '{path}', got none .*{message}"
        with pytest.raises(ConnectionError, match=message), cluster_client(str(path), startup_seconds=0.2):
            pass


def test_a_scheduler_that_is_not_there_or_says_nothing_ends_in_an_error(monkeypatch):
    with pytest.raises(ConnectionError, match=r"expected a scheduler at 'tcp://127\.0\.0\.1:1', got none"):
        DaskEngine(FAKE, "tcp://127.0.0.1:1", startup_seconds=0.5)
    monkeypatch.setattr(clusters, "ANSWER_SECONDS", 0.5)
    message = r"expected a scheduler at 'tcp.*', got none \(no answer within 0\.7 s\)"
    with socket.socket() as silent, pytest.raises(ConnectionError, match=message):
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with cluster_client(f"tcp://127.0.0.1:{silent.getsockname()[1]}", startup_seconds=0.2):
            pass


def test_a_scheduler_that_goes_is_one_error_after_what_was_finished():
    made = cluster_of_threads()
    came: dict[str, object] = {}

    def keep(epd, result):
        came[epd] = result
        made.close()

    with DaskEngine(FAKE, made.scheduler_address, startup_seconds=1.0) as engine:
        message = r"DaskEngine\.search\(\): expected the scheduler at 'tcp://.*' to stay, got .*run again"
        with pytest.raises(ConnectionError, match=message):
            engine.search([*EPDS, *opening_positions(40)], LIMIT, 2, keep)
    assert 0 < len(came) < 40
    with pytest.raises(EngineError, match=r"DaskEngine\.search\(\): expected open engines, got closed ones"):
        engine.search(EPDS, LIMIT, 2)


@pytest.mark.slow("deaths of schedulers; of one more in test_a_scheduler_that_goes_is_one_error")
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_scheduler_that_is_stopped_or_dies_while_engines_start(how, monkeypatch, tmp_path):
    register, stopped = distributed.Client.register_plugin, []

    async def dying(client, plugin, name):
        stopped.append(await client.run_on_scheduler(os.getpid))
        os.kill(stopped[0], how)
        return await register(client, plugin, name=name)

    monkeypatch.setattr(clusters, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("precomp_games.chess.engines.cluster._END_SECONDS", 1.0)
    monkeypatch.setattr(distributed.Client, "register_plugin", dying)
    message = r"DaskEngine\(\): expected the scheduler at '.*' to stay, got .*run again"
    with started(tmp_path) as path, pytest.raises(ConnectionError, match=message):
        try:
            DaskEngine(FAKE, str(path), startup_seconds=3.0)
        finally:
            os.kill(stopped[0], signal.SIGCONT)


def test_a_worker_of_this_machine_that_dies_while_it_starts_is_named(monkeypatch):
    """And no missing scheduler."""
    start = distributed.nanny.AsyncProcess.start

    async def dying(process):
        await start(process)
        os.kill(process.pid, signal.SIGKILL)

    monkeypatch.setattr(distributed.nanny.AsyncProcess, "start", dying)
    message = r"expected 1 worker\(s\) of 'local:1' to start, got one that did not .*memory"
    with pytest.raises(ConnectionError, match=message), cluster_client("local:1"):
        pass


def test_workers_of_this_machine_end_without_a_word(capfd, monkeypatch):
    """Even if they are slow to go."""
    join = distributed.nanny.AsyncProcess.join

    async def slow(process, timeout=None):
        if timeout < 5.0:  # until Dask kills it
            raise TimeoutError
        await join(process, timeout)

    monkeypatch.setattr(distributed.nanny.AsyncProcess, "join", slow)
    with DaskEngine(FAKE, "local:1") as engine:
        engines = engines_of(workers_of(engine))
        assert len(engines) == 1
        assert engine.search(EPDS[:3], LIMIT, 2) == FOUND[:3]
    assert all(gone(pid) for pid in engines)
    assert "still alive" not in capfd.readouterr().err
