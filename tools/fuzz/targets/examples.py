"""Flags of the examples.

A process for each example has imported it and waits; it forks for each input, which runs `main` as the
command does, from an empty folder and without an engine. What passes the checks of flags would work for long:
it is ended after a part of a second of the processor's time, and counts as accepted.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import os
import pathlib
import random
import re
import resource
import signal
import sys
import threading
import time
import traceback
from unittest import mock

import tqdm

from precomp_games import commands
from precomp_games.chess import write_polyglot
from precomp_games.chess.engines import pool as engine
from precomp_games.commands import report
from tools.forked_runs import EXAMPLES
from tools.fuzz import target
from tools.fuzz.mutate import bent_json
from tools.fuzz.targets.books import make_pgn, sample_games, small_book

_EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
_COMMANDS = pathlib.Path(commands.__file__).parent
_IMPORT = r"^\s*(?:import|from) (?:precomp_games\.commands(?:\.| import ))?(\w+)"
_CPU_SECONDS = 0.1
_SECONDS = 8.0
_NUMBERS = ("0", "1", "2", "3", "7", "50", "1000", "-1", "0.5", "1e-9", "1e300", "nan", "inf", "9" * 30)
_VALUES = (
    *(
        "",
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "1e-9",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "9" * 30,
        "9" * 5000,
        "0x10",
        "²",
    ),
    *(
        "true",
        "false",
        "none",
        "x",
        "white",
        "black",
        "both",
        "a,b",
        ",",
        ",,",
        "1,2,3",
        "0.1,0.2",
        "1,x",
        "é😀",
    ),
    *("kuhn_poker", "leduc_poker", "tic_tac_toe", "kuhn_poker(", "nim(pile_sizes=1;2)", "go", "matrix_rps"),
    *(
        "uniform",
        "cfr(iterations=2)",
        "noisy(policy=uniform,epsilon=2)",
        "mcts(simulations=1)",
        "random(seed=x)",
    ),
    *(
        "games.pgn",
        "book.bin",
        "result",
        ".",
        "/",
        "nothing",
        "../x",
        "out",
        "games.pgn/x",
        "\x1b[2J",
        "a\nb",
    ),
    *("8/8/8/8/8/8/8/K1k5 w - - 0 1", "8/P7/8/8/8/k7/8/K7 w - - 0 1", "Karpov", "Karpov Anatoli", "nobody"),
    *("2GB", "1KB", "local:0", "tcp://127.0.0.1:1", "x.json", "lichess,pgn,anki,csv", "pgn,x", "Name=value"),
    *("games(file=games.pgn,player=Karpov)", "polyglot(file=book.bin)", "uci(r=1)"),
    *("softmax", "bestmove", "rollouts", "calibrated", "people", "linear", "audit", "cfr+", "double_oracle"),
)


@functools.cache
def flags_of(example: str) -> dict[str, str]:
    """The kind of each flag of an example, by its source and those of what it imports, and so on."""
    waiting, whole = [example], {}
    while waiting:
        name = waiting.pop()
        for path in (_EXAMPLES / f"{name}.py", _COMMANDS / f"{name}.py"):
            if path.exists() and path not in whole:
                whole[path] = path.read_text(encoding="utf-8")
                waiting += re.findall(_IMPORT, whole[path], re.M)
    kinds = re.findall(r'(?:DEFINE_|define\.|Define\(own\)\.)(\w+)\(\s*"(\w+)"', "".join(whole.values()))
    return {flag: kind for kind, flag in sorted(kinds, key=lambda kind: kind[1])}


@functools.cache
def _flags() -> dict[str, tuple[tuple[str, str], ...]]:
    """What is tried of each example: no programs."""
    return {name: tuple(x for x in flags_of(name).items() if "engine" not in x[0]) for name in EXAMPLES}


def _make_flags(rng: random.Random) -> bytes:
    name = rng.choice(sorted(_flags()))
    words = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        flag, type_name = rng.choice(_flags()[name])
        numeric = type_name in ("integer", "float") and rng.random() < 0.8
        value = rng.choice(_NUMBERS if numeric else _VALUES)
        kind = rng.randrange(12)
        if kind == 0:
            words.append(f"--{flag}")
        elif kind == 1:
            words.append(rng.choice((value, f"--{flag}{value}", f"--no{flag}", f"-{flag}", "--", "--x=1")))
        elif kind == 2:
            words += [f"--{flag}", value]
        else:
            words.append(f"--{flag}={value}")
    return json.dumps([name, *words]).encode()


def _serve(name: str, orders: int, answers: int) -> None:
    """Imports an example; for each order forks a process that runs it. Never returns."""
    script = _EXAMPLES / f"{name}.py"
    sys.path.insert(0, str(_EXAMPLES))
    mock.patch.object(engine, "DEFAULT_PATHS", ()).start()
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.environ.pop("STOCKFISH", None)
    os.environ["PATH"] = "/nowhere"
    importlib.import_module(name)
    tqdm.tqdm.set_lock(threading.RLock())  # its own would be shared, and stay with a run that is killed
    with os.fdopen(orders) as stream:
        for line in stream:
            folder, words = json.loads(line)
            child = os.fork()
            if not child:
                os.setpgrp()
                os.chdir(folder)
                for number, file in ((1, "stdout"), (2, "stderr")):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
                sys.stdout, sys.stderr = (
                    io.TextIOWrapper(io.FileIO(number, "w"), errors="backslashreplace") for number in (1, 2)
                )
                signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
                _run(name, [str(script), *words])
            os.write(answers, b"%d\n" % _ended(child))
    os._exit(0)


def _run(name: str, words: list[str]) -> None:
    """What the command does, after the imports; never returns."""
    status = 1
    try:
        sys.argv = words
        example = vars(sys.modules[name])
        if "main" in example:
            sys.modules["common"].run(example["main"])
        for value in example.values():
            if getattr(value, "__name__", "").startswith("precomp_games.commands."):
                status = value.main(words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _ended(child: int) -> int:
    """The exit status of a process, which is killed where it takes too long."""
    end = time.monotonic() + _SECONDS
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            return -signal.SIGALRM
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started
    return os.waitstatus_to_exitcode(status)


@functools.cache
def _server(name: str) -> tuple[int, int]:
    """(where orders go, where exit statuses come from)."""
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    if not os.fork():
        try:
            # What else is open here belongs to others, who wait for its end.
            for number in map(int, os.listdir("/proc/self/fd")):
                if number > 2 and number not in (orders_out, answers_in):
                    with contextlib.suppress(OSError):
                        os.close(number)
            _serve(name, orders_out, answers_in)
        finally:
            os._exit(1)
    os.close(orders_out)
    os.close(answers_in)
    return orders_in, answers_out


def _files(folder: pathlib.Path) -> None:
    (folder / "games.pgn").write_bytes(sample_games()[-1])
    write_polyglot(small_book(), folder / "book.bin")


_MATCH = {"matches": [{"side": "white", "player": "the book", "positions": 4, "games": 2, "score": 0.5}]}


def _make_shown(rng: random.Random) -> bytes:
    # python-chess reads some hundred thousand bytes a second, and all of them.
    return bent_json(rng, [_MATCH]) if rng.random() < 0.2 else make_pgn(rng)[: 1 << 18]


@target("report", _make_shown, prepare=sample_games)
def _(data: bytes, folder: pathlib.Path) -> object:
    """What pages are made of besides books."""
    (folder / "result.json").write_bytes(data)
    if data.startswith(b"{"):
        return report._read_match(str(folder))
    return report._read_notes(str(folder / "result.json")), report._read_plot(folder / "result.json")


def _import_all() -> None:
    """What examples import, made once."""
    for name in (
        "matplotlib.pyplot",
        *(f"precomp_games.algorithms.{part}" for part in ("efce", "lookahead", "search")),
    ):
        importlib.import_module(name)


@target("flags", _make_flags, prepare=_import_all, names_files=True)
def _(data: bytes, folder: pathlib.Path) -> object:
    name, *words = json.loads(data)
    if name not in _flags():  # an input that was cut
        raise ValueError("no example")
    _files(folder)
    orders, answers = _server(name)
    os.write(orders, json.dumps([str(folder), words]).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        read = os.read(answers, 100)
        assert read, f"{name} ended"
        line += read
    status = int(line)
    said = (folder / "stderr").read_text(errors="replace")
    told = [line for line in said.splitlines() if line.startswith("error: ")]
    if "Traceback" in said:
        raise AssertionError(f"{name}: {said.splitlines()[-1][:200]}")
    if status in (0, -signal.SIGPROF):
        return None
    if status == 1 and "FATAL Flags parsing error" in said:
        raise ValueError("a flag of another kind")
    assert status == 1 and len(told) == 1 and said.endswith(told[0] + "\n"), (
        f"{name}: status {status}: {said[-500:]!r}"
    )
    raise ValueError(told[0])
