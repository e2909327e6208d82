"""Flags of the examples.

Each input is a run of an example in an empty folder, without an engine. What passes the checks of flags would
work for long: it is ended after a second, and counts as accepted.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import pathlib
import random
import re
import signal
import tempfile

from absl import flags

from precomp_games.chess import write_polyglot
from precomp_games.commands._flags import define_flags
from precomp_games.commands._preparing import define_preparation_flags
from precomp_games.commands._showing import ShowingFlags
from tools.forked_runs import EXAMPLES, RunServer, command_of
from tools.fuzz import target
from tools.samples import sample_games, small_book

_EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
_IMPORT = r"^\s*(?:import|from) (\w+)"
_SERVER = RunServer()
_NUMERALS = "0 1 2 3 7 50 1000 -1 0.5 1e-9 1e300 nan inf"
_NUMBERS = (*_NUMERALS.split(), "9" * 30)
_WORDS = (
    "-inf 1e999 0x10 ² true false none x white black both a,b , ,, 1,2,3 0.1,0.2 1,x é😀 kuhn_poker "
    "leduc_poker tic_tac_toe kuhn_poker( nim(pile_sizes=1;2) go matrix_rps uniform cfr(iterations=2) "
    "random(seed=x) . / ../x noisy(policy=uniform,epsilon=2) mcts(simulations=1) games.pgn book.bin "
    "result nothing out games.pgn/x Karpov nobody 2GB 1KB local:0 tcp://127.0.0.1:1 x.json "
    "lichess,pgn,anki,csv pgn,x Name=value softmax bestmove rollouts calibrated people linear audit "
    "cfr+ double_oracle games(file=games.pgn,player=Karpov) polyglot(file=book.bin) uci(r=1)"
)
_KINDS = {flags.IntegerParser: "integer", flags.FloatParser: "float"}
_VALUES = (
    *(*_NUMBERS, *_WORDS.split(), "", "9" * 5000, "\x1b[2J", "a\nb", "Karpov Anatoli"),
    *("8/8/8/8/8/8/8/K1k5 w - - 0 1", "8/P7/8/8/8/k7/8/K7 w - - 0 1"),
)


@functools.cache
def flags_of(example: str) -> dict[str, str]:
    """The kind of each flag of an example, by its source and those of what it imports, and so on."""
    waiting, whole = [example], {}
    while waiting:
        name = waiting.pop()
        path = _EXAMPLES / f"{name}.py"
        if path.exists() and path not in whole:
            whole[path] = path.read_text(encoding="utf-8")
            waiting += re.findall(_IMPORT, whole[path], re.M)
    given = flags.FlagValues()
    if (name := command_of(example)) is not None:
        importlib.import_module(f"precomp_games.commands.{name}").define(given)
    else:  # those that prepare have some of these
        define_preparation_flags(given)
        define_flags(given, ShowingFlags)
    found = {flag: _KINDS.get(type(given[flag].parser), "string") for flag in given}
    found |= {flag: kind for kind, flag in re.findall(r'DEFINE_(\w+)\(\s*"(\w+)"', "".join(whole.values()))}
    return dict(sorted(found.items()))


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


def _files(folder: pathlib.Path) -> None:
    (folder / "games.pgn").write_bytes(sample_games()[-1])
    write_polyglot(small_book(), folder / "book.bin")


def _start() -> None:
    """Let the process that forks runs make its imports."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["equilibrium", "--help"], pathlib.Path(folder))


def _run(words: list[str], folder: pathlib.Path) -> int:
    """Return the exit status of an example, which is ended after a second."""
    children: list[int] = []
    status = _SERVER.run(
        [str(_EXAMPLES / f"{words[0]}.py"), *words[1:]],
        folder,
        seconds=1,
        files=(os.devnull, str(folder / "stdout"), str(folder / "stderr")),
        has_engine=False,
        meanwhile=children.append,
    )
    with contextlib.suppress(ProcessLookupError):
        os.killpg(children[0], signal.SIGKILL)  # what it started
    return status


@target("flags", _make_flags, prepare=_start, names_files=True)
def _(data: bytes, folder: pathlib.Path) -> object:
    words = json.loads(data)
    if words[0] not in _flags():
        raise ValueError("no example")
    _files(folder)
    status = _run(words, folder)
    said = (folder / "stderr").read_text(errors="replace")
    told = [line for line in said.splitlines() if line.startswith("error: ")]
    if "Traceback" in said:
        raise AssertionError(f"{words[0]}: {said.splitlines()[-1][:200]}")
    if status in (0, -signal.SIGALRM):
        return None
    if status == 1 and "FATAL Flags parsing error" in said:
        raise ValueError("a flag of another kind")
    assert status == 1 and len(told) == 1 and said.endswith(told[0] + "\n"), (
        f"{words[0]}: status {status}: {said[-500:]!r}"
    )
    raise ValueError(told[0])
