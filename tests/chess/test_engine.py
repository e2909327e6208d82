"""The pool: the same answers from any number of engines, through any accident; or one error.

And what engines cannot do, which is reported at the start.
"""

import asyncio
import concurrent.futures
import dataclasses
import functools
import gc
import multiprocessing
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest

from precomp_games.chess.engines import pool as pool_module
from precomp_games.chess.engines import uci as uci_module
from precomp_games.chess.engines.pool import EngineError, EngineNotFoundError, EnginePool, find_engine
from precomp_games.chess.engines.searches import Line, SearchLimit, SearchResult
from precomp_games.chess.engines.uci import BadOutput, EngineProcess, EngineThread, SearchReport
from precomp_games.commands import main
from tests.chess import fake_engine

LIMIT, DEPTH = SearchLimit(nodes=1000), SearchLimit(depth=4)
FAKE = [sys.executable, fake_engine.__file__]
START = chess.Board().epd()
MATE_IN_1 = "7k/8/5KQ1/8/8/8/8/8 w - -"
ONE_MOVE = "7k/6Q1/8/8/8/8/8/K7 b - -"
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - -"


def opening_positions(number: int) -> list[str]:
    """Return the start, and what follows on it move by move."""
    epds = [START]
    for epd in epds:
        if len(epds) >= number:
            break
        for move in chess.Board(epd + " 0 1").legal_moves:
            board = chess.Board(epd + " 0 1")
            board.push(move)
            epds.append(board.epd())
    return epds[:number]


EPDS = opening_positions(24)


def expected(epd: str, multipv: int, limit: SearchLimit = LIMIT) -> SearchResult:
    """Return the result of the fake engine's last finished iteration."""
    board, depth = chess.Board(epd + " 0 1"), limit.depth or 3
    moves = fake_engine.ranked(board, depth)[:multipv]
    lines = tuple(Line(m.uci(), fake_engine.score(board, m, depth), None) for m in moves)
    return SearchResult(lines, depth, limit.nodes or 10 * depth)


def answered(epd: str, multipv: int, limit: SearchLimit = LIMIT, samples: int = 1) -> SearchResult:
    """Return the same with the move that the engine plays."""
    found = expected(epd, multipv, limit)
    return dataclasses.replace(found, played=((found.lines[0].move, samples),))


def pids(pool: EnginePool) -> list[int]:
    return [e.transport.get_pid() for e in pool._slots if e is not None and e.transport is not None]


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Return whether a process ends in time and leaves no zombie of ours."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state, parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            return True
        # A child of a killed parent stays a zombie where nobody reaps orphans: dead all the same.
        if state == "Z" and int(parent) != os.getpid():
            return True
        time.sleep(0.02)
    return False


def forked(work: Callable[..., None], *arguments: object) -> Any:
    """Return a process that does this, and where to hear what it tells by its first argument."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=work, args=(theirs.send, *arguments))
    process.start()
    theirs.close()
    return process, ours


@pytest.fixture(scope="module")
def pool():
    """For tests that leave it as they found it."""
    with EnginePool(FAKE, workers=2, timeout_seconds=20) as it:
        yield it


def test_a_limit_is_a_text_and_the_text_a_limit():
    for limit, text in (
        (LIMIT, "nodes=1000"),
        (SearchLimit(movetime_ms=50), "movetime=50"),
        (SearchLimit(nodes=10**15), f"nodes={10**15}"),
        (SearchLimit(depth=10_000), "depth=10000"),
    ):
        assert (str(limit), limit.uci, SearchLimit.parse(text)) == (text, text.replace("=", " "), limit)
    for text in ("", "5000", "nodes=", "nodes=-1", "depth=10001", "nodes=5 ", "nodes=9" * 9):
        with pytest.raises(ValueError, match=r"SearchLimit\.parse\(\): expected"):
            SearchLimit.parse(text)


def test_an_engine_is_found_where_it_is_named_or_else_installed(tmp_path, monkeypatch):
    program = tmp_path / "stockfish"
    program.write_text("#!/bin/sh\n")
    monkeypatch.delenv("STOCKFISH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(pool_module, "DEFAULT_PATHS", (str(program),))
    with pytest.raises(EngineNotFoundError, match="apt install stockfish"):
        find_engine()
    with pytest.raises(EngineError, match=r"find_engine\(\): .*is not executable"):
        find_engine(str(program))
    program.chmod(0o755)
    assert find_engine() == find_engine(str(program)) == str(program)
    assert find_engine("stockfish --uci") == [str(program), "--uci"]  # where Debian puts it, off PATH
    monkeypatch.setattr(pool_module, "DEFAULT_PATHS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine() == find_engine("stockfish") == str(program)
    monkeypatch.setenv("STOCKFISH", "no-such-engine")
    with pytest.raises(EngineError, match=r"expected \$STOCKFISH to be .* got 'no-such-engine'"):
        find_engine()
    assert find_engine(str(program)) == str(program)


def test_an_engine_may_have_arguments_as_in_a_shell(tmp_path, monkeypatch):
    for name in ("engine", "my engine (1)", "engine --uci=x", "engine --plain"):  # the last is no program
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o644 if name == "engine --plain" else 0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for words, program, *arguments in (
        ("engine --uci", "engine", "--uci"),
        (f"{tmp_path}/engine --uci", "engine", "--uci"),
        (f"{tmp_path}/my\\ engine\\ (1) -q", "my engine (1)", "-q"),
        ("engine 'a b' \"\"", "engine", "a b", ""),
    ):
        assert find_engine(words) == [str(tmp_path / program), *arguments]
    for words in (f"{tmp_path}/my engine (1)", "'my engine (1)'", "engine --uci=x"):  # taken as a whole
        assert find_engine(words) == str(tmp_path / words.strip("'"))
    for words in ("engine --plain", "my engine --uci", "engine 'a", "--uci", " ", "", "."):
        with pytest.raises(EngineError, match=r"^find_engine\(\): expected path to be an engine's file"):
            find_engine(words)


@pytest.mark.parametrize(("workers", "multipv", "limit"), [(1, 1, LIMIT), (3, 2, LIMIT), (2, 2, DEPTH)])
def test_results_come_in_the_order_asked(workers, multipv, limit):
    asked = [*EPDS, EPDS[3], ONE_MOVE]
    seen = {}
    with EnginePool(FAKE, workers=workers) as pool:
        assert len(pids(pool)) == 1  # the others when there is work for them
        results = pool.search(asked, limit, multipv, seen.__setitem__)
        assert len(pids(pool)) == workers
        assert pool.search([], limit, multipv) == []
        assert pool.search(asked[::-1], limit, multipv) == results[::-1]
        played = pool.search(asked[-6:], limit, multipv, samples=workers)
    assert results == [expected(epd, multipv, limit) for epd in asked]
    assert seen == dict(zip(asked, results, strict=True))
    assert played == [answered(epd, multipv, limit, workers) for epd in asked[-6:]]


@pytest.mark.parametrize(
    ("fault", "limit", "what"),
    [
        ("exit", LIMIT, "engine process died unexpectedly .exit code: 1"),
        ("hang", LIMIT, "no answer in time"),
        ("illegal", LIMIT, "an illegal move"),
        ("endless", LIMIT, "without a line break"),
        ("no-limit", LIMIT, "2000000 nodes and no end, 1000 asked"),
        ("no-limit", DEPTH, "no heed of depth limits"),
        ("no-move", LIMIT, "an illegal move.*none"),
        ("nonsense", LIMIT, "no 2 exact.*it wrote.*depth nine"),
        ("shallow", DEPTH, "2 depth reported of 4 asked"),
    ],
)
def test_a_fault_is_cured_by_another_process_or_ends_in_one_error(fault, limit, what, tmp_path):
    state, seen = tmp_path / "count", dict[str, SearchResult]()
    command = [*FAKE, f"--fault={fault}", f"--only={EPDS[2]}", "--times=3", f"--state={state}"]
    seconds = 0.7 if fault == "hang" else 20.0
    with EnginePool(command, workers=1, retries=1, timeout_seconds=seconds) as pool:
        message = rf"{EPDS[2]!r} at {limit} from .*fake_engine.py.*{what}.*, 2 times running"
        with pytest.raises(EngineError, match=message):
            pool.search(EPDS[:4], limit, 2, seen.__setitem__)
        assert seen == {epd: expected(epd, 2, limit) for epd in EPDS[:2]}  # what was finished before
        assert pool.search(EPDS[:4], limit, 2) == [expected(epd, 2, limit) for epd in EPDS[:4]]
    assert state.stat().st_size == 3


def test_too_few_lines_are_searched_on_for(caplog, tmp_path):
    """At 300 nodes it has three lines of four in the first position, and all of them at 1,200."""
    asked, limit = [START, *EPDS[1:4]], SearchLimit(nodes=300)
    found = []
    for workers in (1, 2):
        with EnginePool([*FAKE, "--fault=few-lines", "--only=w KQkq"], workers=workers) as pool:
            alive = pids(pool)
            found.append(pool.search(asked, limit, 4))
            assert set(alive) <= set(pids(pool))  # no engine was at fault
    assert [(len(result.lines), result.nodes) for result in found[0]] == [(4, 1200), *3 * [(4, 300)]]
    assert found[0] == found[1]
    message = [record.getMessage() for record in caplog.records]
    assert len(message) == 2 and all("nodes=300 is too little for 4 lines" in text for text in message)
    # If it was an accident, the same is asked again.
    command = [*FAKE, "--fault=few-lines", "--times=1", f"--state={tmp_path / 'count'}"]
    with EnginePool(command, workers=1) as pool:
        assert pool.search([START], LIMIT, 2) == [expected(START, 2)]


@pytest.mark.parametrize("fault", ["no-nodes", "no-nodes-no-end"])
def test_an_engine_that_reports_no_nodes_is_refused_at_once(fault, monkeypatch):
    monkeypatch.setattr(uci_module, "COUNT_SECONDS", 0.3)
    with EnginePool([*FAKE, "--fault", fault], workers=1) as pool:
        with pytest.raises(EngineError, match=r"to report nodes.*--opponent_movetime_ms") as caught:
            pool.search(EPDS, LIMIT, 2)
        assert "times running" not in str(caught.value)
        if fault == "no-nodes":
            for limit in (SearchLimit(movetime_ms=5), DEPTH):
                assert pool.search([START], limit, 2)[0].nodes == 0


@pytest.mark.parametrize("limit", [LIMIT, DEPTH, SearchLimit(movetime_ms=5)], ids=str)
def test_an_engine_may_answer_its_move_alone_where_no_score_is_asked(limit):
    command = [*FAKE, "--fault=move-alone", "--lacking=MultiPV"]
    with EnginePool(command, workers=1, options={"Skill Level": 1}) as pool:
        (drawn,) = pool.search([START], limit, 1, samples=30)
        assert drawn.samples == 30 and not drawn.lines
        assert len(drawn.played) == (1 if limit == DEPTH else 3)
        message = r"got no 1 exact .* and no score: .*plays=bestmove.*2 times running"
        with pytest.raises(EngineError, match=message):
            pool.search([START], limit, 1)


@pytest.mark.parametrize("fault", ["exit-at-start", "hang-at-start"])
def test_a_start_is_tried_again(fault, tmp_path):
    """The first one of all, and that of an engine which takes a dead one's place."""
    state, seconds = tmp_path / "count", 1.5 if fault == "hang-at-start" else 20.0
    command = [*FAKE, f"--fault={fault}", "--times=1", f"--state={state}"]
    with EnginePool(command, workers=1, startup_seconds=seconds) as pool:
        state.unlink()
        os.kill(pids(pool)[0], signal.SIGKILL)
        assert pool.search([START], LIMIT, 2) == [expected(START, 2)]
    assert state.stat().st_size == 1


def test_engines_that_cannot_start_are_refused(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    plain.chmod(0o755)
    for command, options, what in (
        (str(tmp_path / "none"), {}, "No such file"),
        (str(plain), {}, "Exec format error"),
        (str(tmp_path), {}, "Permission denied"),
        ([*FAKE, "--fault=exit-at-start"], {}, "exit code: 3.*cannot load the network.*3 times running"),
        ([*FAKE, "--fault=no-uciok"], {}, "no answer within 0.3 s, 2 times running"),
        ([*FAKE, "--lacking=name"], {}, "no 'id name'"),
        (FAKE, {"Contempt": 3}, "no option 'Contempt' .it has: Hash, MultiPV"),
        (FAKE, {"Hash": 128}, "expected value for option 'Hash' to be at most 64"),
        (FAKE, {"Style": "Bold"}, "invalid value for combo option 'Style'"),
    ):
        started, seconds = time.monotonic(), 0.3 if "0.3 s" in what else 120
        with pytest.raises(EngineError, match=rf"^EnginePool\(\): expected .*{what}"):
            EnginePool(command, startup_seconds=seconds, retries=2, options=options)
        assert time.monotonic() - started < 60  # none that has ended is waited for


def test_an_engine_without_multipv_gives_one_line(pool):
    with EnginePool([*FAKE, "--lacking=MultiPV"], workers=1) as lacking:
        assert lacking.search(EPDS[:3], LIMIT, 1) == [expected(epd, 1) for epd in EPDS[:3]]
        alive = pids(lacking)
        message = r"^EnginePool\.search\(\): expected .* 2 lines, got an engine with no MultiPV: .*--top_k=1"
        with pytest.raises(EngineError, match=message):
            lacking.search(EPDS[:3], LIMIT, 2)
        assert pids(lacking) == alive  # nothing was tried again
    with pytest.raises(EngineError, match="MultiPV up to 10"):
        pool.search(EPDS[:3], LIMIT, 11)


WILD = "Fake 1.0 [Hash=32, Own Book=true, Style=Wild]"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"hash": 16, "Threads": "1", "Own Book": False}, "Fake 1.0"),
        ({"style": "Wild", "HASH": 32, "own book": True}, WILD),
        ({"Own Book": "true", "Style": "Wild", "Hash": "32"}, WILD),
        ({"UCI_LimitStrength": True, "UCI_Elo": 1400}, "Fake 1.0 [UCI_Elo=1400, UCI_LimitStrength=true]"),
        ({"skill level": "0"}, "Fake 1.0 [Skill Level=0]"),
        ({"Skill Level": 20, "UCI_LimitStrength": False}, "Fake 1.0"),  # full strength is no option
    ],
)
def test_an_identity_has_the_options_that_are_not_usual(options, found):
    """Usual are one thread and 16 MB of hash, unless the engine has no such options, and its defaults."""
    lacking = [] if found == WILD or "hash" in options else ["--lacking=Hash"]
    with EnginePool([*FAKE, *lacking], workers=1, options=options) as pool:
        assert pool.engine_id == found
        assert pool._slots[0].config["Threads"] == 1
        assert lacking or pool._slots[0].config["Hash"] == (32 if found == WILD else 16)


def test_every_draw_counts_once_also_where_processes_die(tmp_path):
    fault = ["--fault=exit", "--times=2", f"--state={tmp_path / 'count'}"]
    with EnginePool([*FAKE, *fault], workers=2, options={"Skill Level": 5}) as pool:
        assert pool.engine_id == "Fake 1.0 [Skill Level=5]"
        results = pool.search(EPDS[:2], LIMIT, 2, samples=60)
    assert (tmp_path / "count").stat().st_size == 2
    for epd, result in zip(EPDS, results, strict=False):
        moves, counts = zip(*result.played, strict=True)
        # Some 20 times each: one of three is missing once in 10 billion times.
        assert sorted(moves) == sorted(m.uci() for m in fake_engine.ranked(chess.Board(epd + " 0 1"), 3)[:3])
        assert sum(counts) == result.samples == 60 and list(counts) == sorted(counts, reverse=True)
        assert result.lines == expected(epd, 2).lines


def test_nothing_is_searched_where_a_position_is_none(pool):
    no_king, with_clocks = "8/8/8/8/8/8/8/8 w - -", chess.STARTING_FEN
    seen = []
    for epd in (with_clocks, no_king, START.replace("K", "k", 1), STALEMATE, START + "\nquit"):
        with pytest.raises(ValueError, match=r"EnginePool\.search\(\): expected a position"):
            pool.search([START, epd], LIMIT, 2, lambda epd, _: seen.append(epd))
    assert seen == []


@pytest.mark.usefixtures("ends_in_time")
def test_callbacks_may_fail_and_may_not_search(pool):
    seen = []

    def failing(epd, result):
        seen.append(epd)
        if len(seen) == 4:
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        pool.search(EPDS, LIMIT, 2, failing)
    assert len(seen) == 4
    with pytest.raises(EngineError, match="expected no search within on_result"):
        pool.search(EPDS, LIMIT, 2, lambda epd, result: pool.search([epd], LIMIT, 2))
    assert pool.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]


def test_an_interrupt_hands_over_what_was_finished():
    def interrupted(epds, on_result):
        with pytest.raises(KeyboardInterrupt):
            pool.search(epds, LIMIT, 2, on_result)
        assert all(result == expected(epd, 2) for epd, result in seen.items())

    def once(epd, result):
        seen[epd] = result
        if len(seen) == 1:
            raise KeyboardInterrupt

    with EnginePool([*FAKE, "--fault=slow"], workers=2) as pool:
        pool.search(EPDS[:2], LIMIT, 2)
        before, seen = pids(pool), {}
        timer = threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        interrupted(EPDS * 5, seen.__setitem__)
        timer.join()
        assert 2 <= len(seen) <= 10
        assert all(gone(pid) for pid in before)  # no search goes on unasked
        seen.clear()
        interrupted(EPDS[:8], once)


def test_a_pool_may_be_closed_during_a_search():
    pool = EnginePool([*FAKE, "--fault=hang"], workers=2)
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        search = beside.submit(pool.search, EPDS, LIMIT, 2)
        while len(pids(pool)) < 2:
            time.sleep(0.02)
        before = pids(pool)
        pool.close()
        assert "got it closed meanwhile" in str(search.exception(timeout=10))
    assert all(gone(pid) for pid in before)
    pool.close()
    with pytest.raises(EngineError, match="got a closed one"):
        pool.search(EPDS, LIMIT, 2)


def test_a_thread_ends_at_once_while_an_engine_starts():
    """asyncio's own task goes on, which connects the pipes."""
    thread, began = EngineThread("engine", 0), threading.Event()

    async def start():
        starting = asyncio.create_task(EngineProcess.popen(FAKE))
        while len(asyncio.all_tasks()) < 3 and not starting.done():
            await asyncio.sleep(0)
        began.set()
        time.sleep(0.1)  # until the end is asked for

    asyncio.run_coroutine_threadsafe(start(), thread.loop)
    assert began.wait(60.0)
    asked = time.monotonic()
    thread.end()
    assert time.monotonic() - asked < 8.0 and not thread.is_alive


def test_no_process_outlives_its_pool():
    pool = EnginePool(FAKE, workers=2)
    pool.search(EPDS[:4], LIMIT, 2)
    engines, threads = pids(pool), threading.active_count()
    pool.close()
    assert threading.active_count() < threads
    forgotten = EnginePool(FAKE, workers=1)
    engines += pids(forgotten)
    del forgotten
    gc.collect()
    # Another Python ends without closing it.
    code = (
        "import sys; from precomp_games.chess.engines.pool import EnginePool; pool = EnginePool(sys.argv[1:])"
        "; print(pool._slots[0].transport.get_pid())"
    )
    ended = subprocess.run([sys.executable, "-c", code, *FAKE], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert all(gone(pid) for pid in [*engines, int(ended.stdout)])


@pytest.mark.parametrize(
    "command", [[*FAKE, "--fault=slow"], pytest.param(None, id="stockfish", marks=pytest.mark.engine)]
)
def test_no_engine_outlives_a_python_that_is_killed_as_they_search(command):
    def search(tell: Callable[[object], None]) -> None:
        pool = EnginePool(command or find_engine(), workers=2)
        pool.search(EPDS[:2], SearchLimit(nodes=10), 1)
        tell(pids(pool))
        pool.search(EPDS[:2] * 10**5, SearchLimit(nodes=10**9), 1)

    process, heard = forked(search)
    engines = heard.recv()
    assert len(engines) == 2
    time.sleep(0.3)
    process.kill()
    process.join()
    assert all(gone(pid) for pid in engines)


# What an engine's output means, line by line.


def report(text, lines=2):
    it = SearchReport(lines)
    for line in text.strip().splitlines():
        it.info(("info " + line.strip()).split())
    return it


FEN = chess.STARTING_FEN
DEPTH_1 = """
    depth 1 seldepth 1 multipv 1 score cp 20 nodes 20 pv e2e4 e7e5
    depth 1 seldepth 1 multipv 2 score cp 10 nodes 20 pv d2d4
"""
DEPTH_2 = """
    depth 2 seldepth 2 multipv 1 score cp 35 nodes 90 nps 5 tbhits 0 time 1 pv d2d4 d7d5
    depth 2 seldepth 2 multipv 2 score mate -3 nodes 90 pv e2e4
"""
ONE = (Line("e2e4", 20, None), Line("d2d4", 10, None))
TWO = (Line("d2d4", 35, None), Line("e2e4", None, -3))


def lines_of(it, nodes=50):
    result = it.result(FEN, "e2e4", SearchLimit(nodes=nodes))
    return result.depth, result.lines


# Each of these may follow a finished iteration.
INTERRUPTED = [
    # stale scores under the new depth
    "depth 3 multipv 1 score cp 35 nodes 100 pv d2d4\ndepth 3 multipv 2 score mate -3 nodes 100 pv e2e4",
    "depth 3 multipv 1 score cp 99 nodes 100 pv a2a3\ndepth 2 multipv 2 score cp 35 nodes 100 pv d2d4",
    "depth 3 multipv 1 score cp 99 lowerbound nodes 100 pv a2a3",
    "depth 3 multipv 1 score cp 35 nodes 100 pv d2d4\n"
    "depth 3 multipv 2 score cp 10 upperbound nodes 100 pv d2d4",
]
FIRST_HALF = "depth 2 multipv 1 score cp 35 nodes 50 pv d2d4\n"
LATER = "depth 3 multipv 1 score cp 1 nodes 99 pv a2a3"


@pytest.mark.parametrize(
    ("text", "depth", "lines"),
    [
        *((DEPTH_1 + DEPTH_2 + last, 2, TWO) for last in INTERRUPTED),
        # After three seconds Stockfish reports each line as it comes, with the others as they stand:
        # such a half of an iteration must not count, else results depended on the machine's load.
        (DEPTH_1 + DEPTH_2, 1, ONE),
        (DEPTH_1 + DEPTH_2.replace("mate -3", "mate -3 lowerbound"), 1, ONE),
        # Half reports are replaced.
        *(
            (f"{DEPTH_1}{FIRST_HALF}depth {depth} multipv 2 score cp 20 pv e2e4{DEPTH_2}{LATER}", 2, TWO)
            for depth in (1, 2)
        ),
    ],
)
def test_the_last_iteration_that_was_finished_counts(text, depth, lines):
    result = report(text).result(FEN, "g1f3", SearchLimit(nodes=50), play=True)
    assert (result.depth, result.lines, result.played) == (depth, lines, (("g1f3", 1),))
    assert result.nodes == (100 if "100" in text else 99 if "99" in text else 90)
    assert lines_of(report(text)) == (depth, lines)


def test_what_is_not_read_may_be_anything():
    noise = """
        string depth 9 score cp 1 pv e2e4
        depth 5 currmove e2e4 currmovenumber 1
        nodes 60 nps 1000
        depth 7 multipv 3 score cp 1 nodes 70 pv a2a3
        score cp 4
    """
    assert lines_of(report(DEPTH_1 + noise)) == (1, ONE)
    order = "pv e2e4 e7e5 score cp 7 wdl 1 2 3 nodes 60 depth 4"  # no multipv, another order
    strange = f"depth 4 time {10**30} nps -5 hashfull x wdl {10**30} -1 0 score cp 7 nodes 60 pv e2e4"
    for text in (order, strange):
        assert lines_of(report(text, lines=1)) == (4, (Line("e2e4", 7, None),))
    for bad in ("depth x", "depth", "score cp", "score cp x pv e2e4"):
        with pytest.raises((ValueError, IndexError)):
            report(bad)
    castle = report("depth 1 score cp 7 nodes 60 pv e1h1", lines=1)
    found = castle.result("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1h1", SearchLimit(nodes=50))
    assert found.lines == (Line("e1g1", 7, None),)


def test_bad_reports_are_refused():
    for text, what in (
        ("", "no 2 exact"),
        (DEPTH_1.replace("d2d4", "e2e4"), "no 2 exact"),  # the same move twice
        (DEPTH_1.replace("d2d4", "d2d5"), "illegal move"),
        (DEPTH_1.replace("nodes 20", "nodes 19"), "19 nodes reported of 20 asked"),
        (DEPTH_1.replace("nodes 20 ", ""), "lines without nodes"),
        *((f"depth {number}", f"depth '{number}'") for number in (-1, 10_001)),
        *((f"score cp {number}", f"cp '{number}'") for number in (-50_001, 50_001)),
        ("score mate " + 20 * "9", f"mate '{20 * '9'}'"),
        ("multipv 0", "multipv '0'"),
        *((f"nodes {number}", f"nodes '{number[:20]}'") for number in (str(2**63), 5000 * "9")),
    ):
        with pytest.raises(BadOutput, match=what):
            report(text).result(FEN, "e2e4", SearchLimit(nodes=20))


def test_a_search_may_end_before_its_limit_where_nothing_is_left_to_search():
    for line in ["depth 60 score cp 1", "depth 5 score mate 3", "depth 3 score mate -2"]:
        assert lines_of(report(f"{line} nodes 5 pv e2e4", lines=1))[1][0].move == "e2e4"
    for line in ["depth 59 score cp 1", "depth 4 score mate 3"]:
        with pytest.raises(BadOutput, match="5 nodes reported of 50"):
            lines_of(report(f"{line} nodes 5 pv e2e4", lines=1))
    single = report("depth 1 score cp 1 nodes 5 pv h8g7", lines=1)
    assert single.result(ONE_MOVE + " 0 1", "h8g7", SearchLimit(nodes=50)).depth == 1


def test_a_result_that_comes_as_a_wait_for_it_ends_is_delivered(pool):
    batch: Any = pool_module._Batch(pool, [])
    last = (0, expected(START, 1))

    class LateQueue(queue.SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if batch._task is None:  # the first wait: the result and the end come just after it
                self.put(last)
                batch._task = types.SimpleNamespace(done=lambda: True)
                raise queue.Empty
            return super().get(block, timeout)

    batch._queue = LateQueue()
    assert list(batch._results()) == [last]


# What an engine cannot do.

BY_NODES = pool_module.Demand(SearchLimit(nodes=300), 2, "--analyst_movetime_ms=50", "--top_k=1 --menu=1")
BY_BOTH = [BY_NODES, pool_module.Demand(SearchLimit(depth=3), 1, "another depth", "")]
ANSWERS = [dataclasses.replace(each, lines=0) for each in BY_BOTH]
NO_OPTION = "has no option 'Contempt': leave out --engine_option=Contempt=9 (it has Hash, "
NO_MULTIPV = "has no MultiPV, and 2 lines are asked for: --top_k=1 --menu=1"
NO_SCORES = "gives no 1 exact line(s)"


@pytest.mark.parametrize(
    ("words", "options", "demands", "message"),
    [
        ("", {"Hash": "32"}, BY_BOTH, []),  # it can do all of it
        (
            "--lacking=MultiPV --fault=no-nodes",
            {"Contempt": "9", "hash": "8"},
            BY_BOTH,
            [NO_OPTION, NO_MULTIPV, "does not keep nodes=300, since it does not report nodes: --analyst_"],
        ),
        # A move alone suffices if no score is read, and is reported once if one is.
        ("--fault=move-alone --lacking=MultiPV", {}, ANSWERS, []),
        ("--fault=move-alone", {}, [*BY_BOTH, *ANSWERS], [NO_SCORES]),
        # One that goes on, or hangs, is killed, and another process is asked for the next limit.
        ("--fault=no-limit", {}, [BY_NODES], ["does not keep nodes=300, with "]),
        ("--fault=no-nodes-no-end", {}, [BY_NODES], ["does not keep nodes=300, "]),
        ("--fault=hang", {}, [BY_NODES], ["does not keep nodes=300, with no move in 0.5 s: --analyst_"]),
        ("--fault=exit-at-start", {}, [BY_NODES], []),  # it fails when it is started for good
    ],
)
def test_what_an_engine_cannot_do_is_an_error_at_once(words, options, demands, message, monkeypatch):
    monkeypatch.setattr(uci_module, "COUNT_SECONDS", 0.1)
    if words == "--fault=hang":
        monkeypatch.setattr(pool_module, "_PATIENCE", 0.5)
    found = pool_module.engine_troubles([*FAKE, *words.split()], options, "engine_option", demands)
    assert len(found) == len(message) and all(map(str.startswith, found, message))
    assert message != [NO_SCORES] or "--opponent_plays=bestmove" in found[0]


def test_a_command_lists_it_before_any_work(tmp_path, monkeypatch, capsys):
    """Of an engine with arguments, for both sides; where its moves alone are read, they suffice."""
    monkeypatch.chdir(tmp_path)
    fake = shlex.join(FAKE)
    other = f"{fake} --fault=move-alone --lacking=MultiPV"
    words = ["precomp-games", "prepare", f"--engine={fake}", f"--opponent_engine={other}"]
    words += ["--max_plies=4", "--evaluation=linear", "--analyst_nodes=20", "--match_games=2"]
    assert main([*words, "--engine_option=Contempt=9"]) == 1
    output, error = capsys.readouterr()
    assert output.startswith(f"{fake} has no option 'Contempt'") and f"{other} has no MultiPV" in output
    assert "and no score" in output and "--opponent_plays=bestmove" in output
    assert "more stand above" in error and error.count("\n") == 1
    assert not list((tmp_path / "output").glob("*.sqlite"))
    for plays in ("bestmove", "game"):
        assert main([*words, f"--opponent_plays={plays}"]) == 0
        output = capsys.readouterr().out
        assert "Stockfish" not in output and "Fake 1.0" in output


# With a real Stockfish.

# Of 4,000 positions that random moves led to, 88 had fewer than 4 lines after 300 nodes.
FEW_LINES = [
    "6nr/3nk3/1pp4p/r3Pb2/2pp1pPp/P5R1/Q3KP2/RBB5 b - -",
    "rnq1kbnr/pbppp3/QN6/1p3p1p/1P6/2P2P2/P2P2PP/R1B1KBNR w KQkq -",
]


@functools.cache
def undisturbed(nodes: int) -> list[SearchResult]:
    """Return the results of one engine, at a node limit."""
    with EnginePool(find_engine(), workers=1) as pool:
        return pool.search(EPDS, SearchLimit(nodes=nodes), 2)


@pytest.mark.engine
def test_stockfish_answers_the_same_in_any_number_and_order():
    asked, depth = [*EPDS[:5], *FEW_LINES, MATE_IN_1, ONE_MOVE], SearchLimit(depth=6)
    options = {"move overhead": 30, "Hash": 32}
    with EnginePool(find_engine(), workers=1, options=options) as pool:
        assert pool.engine_id.endswith(" [Hash=32, Move Overhead=30]")
    found, few = [], []
    for workers, order in ((1, 1), (3, -1)):
        with EnginePool(find_engine(), workers=workers) as pool:
            found.append(pool.search(asked[::order], depth, 3)[::order])
            few += [pool.search(FEW_LINES, SearchLimit(nodes=nodes), 4) for nodes in (300, 600)]
            if workers == 3:
                assert pool.search(EPDS[::-1], SearchLimit(nodes=3000), 2)[::-1] == undisturbed(3000)
            assert pool.engine_id.startswith("Stockfish") and "[" not in pool.engine_id
    assert {result.depth for result in found[0]} == {6} and found[0] == found[1]
    assert all(each == few[0] for each in few)
    assert all(len(result.lines) == 4 and result.nodes >= 600 for result in few[0])


@pytest.mark.engine
def test_stockfish_gives_the_lines_of_a_fixed_depth_and_plays_what_it_answers_outside():
    """An independent reading: python-chess's, of a search that ends with the iteration, and of a play."""
    with EnginePool(find_engine(), workers=1) as pool:
        played = pool.search(EPDS, LIMIT, 1, samples=1)
    with chess.engine.SimpleEngine.popen_uci(find_engine()) as engine:
        engine.configure({"Threads": 1, "Hash": 16})
        for epd, result, answer in zip(EPDS, undisturbed(3000), played, strict=True):
            board, limit = chess.Board(epd + " 0 1"), chess.engine.Limit(depth=result.depth)
            infos = engine.analyse(board, limit, multipv=2, game=object())
            found = tuple(
                Line(i["pv"][0].uci(), i["score"].relative.score(), i["score"].relative.mate()) for i in infos
            )
            assert result.lines == found, epd
            assert result.nodes >= 3000
            move = engine.play(board, chess.engine.Limit(nodes=1000), game=object()).move
            assert answer.played == ((move.uci(), 1),)


@pytest.mark.engine
def test_stockfish_searches_odd_positions():
    odd = [MATE_IN_1, ONE_MOVE, "8/8/8/8/8/5k2/8/4K3 w - -", "8/7k/5K2/8/8/8/8/6Q1 b - -"]
    with EnginePool(find_engine(), workers=2) as pool:
        for limit in (SearchLimit(nodes=1), SearchLimit(movetime_ms=20), SearchLimit(nodes=30_000)):
            results = pool.search(odd, limit, 2)
            assert [len(r.lines) for r in results] == [2, 1, 2, 2]
    assert results[0].lines[0] == Line("g6g7", None, 1)  # which reaches the greatest depth before the limit
    assert results[0].nodes < 30_000
    assert [(line.move, line.mate) for line in results[3].lines] == [("h7h8", -1), ("h7h6", -1)]
