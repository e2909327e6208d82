"""Commands that resume from a folder, as readers of each file in it.

They run in this process: an engine scores moves by number, and games between engines are one that is there
already. An input is the number of a file in the folder that a whole run has left, and what stands in it in
place of that; a result is a run to its end. Nothing but files of that folder, of names that are known, may be
there afterwards.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import json
import pathlib
import random
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from unittest import mock

import chess
import chess.pgn

from precomp_games.chess import Engines
from precomp_games.chess.data.book import pgn_text
from precomp_games.commands import _chess, _files, drill, opponent, prepare, report, spar
from precomp_games.commands._app import run_command
from tools import samples
from tools.fuzz.mutate import Plain, changed
from tools.readers import READERS, Reader, hostile_files, numbering_engine

__all__ = ["WATCHED", "changed_state", "left", "resume"]

_ENDGAME = "8/5k2/8/8/8/8/3PK3/8 w - - 0 1"
_FEW = "--opponent_nodes=10 --analyst_nodes=20 --top_k=2"
_PLACES = "--store=./kept.sqlite --output_dir=."
_NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def _played(book: Any, own: Any, opponent: Any, headers: Any, ended: Any, **how: Any) -> None:
    """Return, in place of games between engines, one that is drawn by agreement."""
    for tags in headers:
        game = chess.pgn.Game()
        game.setup(book.start)
        game.add_line(map(chess.Move.from_uci, ("d2d4", "f7e6", "e2e3")))
        names = {"White": own.name, "Black": opponent.name, "Result": "1/2-1/2"}
        game.headers.update(
            {**tags, **(names if book.side else {**names, "White": opponent.name, "Black": own.name})}
        )
        ended(pgn_text(game))


@contextlib.contextmanager
def _no_figure(*arguments: Any, **how: Any) -> Iterator[tuple[Any, Any]]:
    yield mock.MagicMock(), mock.MagicMock()


@contextlib.contextmanager
def _engines(given: Any, *more: Any, **how: Any) -> Iterator[Engines]:
    with numbering_engine(given.store) as engine:
        yield Engines(engine, engine)


class _Refused(ValueError):
    """Error: a command has ended with one line."""


def _run(name: str, folder: pathlib.Path) -> str:
    """Return a command's output, run in a folder, with no process."""
    command: Any = _COMMANDS[name].module
    replaced: dict[Any, dict[str, Any]] = {
        _chess: {"open_engines": _engines},
        command: {"find_engine": str, "_now": lambda: _NOW},
        spar: {"find_engine": str, "play_engine_games": _played},
        spar.Sparring: {"_plot": lambda *arguments: None},
        _files: {"figure": _no_figure},
    }
    output, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.ExitStack() as stack:
        for module, each in replaced.items():
            for key, value in each.items():
                if hasattr(module, key):
                    stack.enter_context(mock.patch.object(module, key, value))
        stack.enter_context(mock.patch.object(sys, "stdin", io.StringIO("e2e4\nd2d4\n\nx\n")))
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(errors))
        stack.enter_context(contextlib.chdir(folder))  # names of files that are written are then always these
        status = run_command(command, [name, *shlex.split(_COMMANDS[name].flags)])
    for path in folder.rglob("*"):
        if path.is_file() and not _KNOWN.fullmatch(path.relative_to(folder).as_posix()):
            raise AssertionError(f"wrote {path.relative_to(folder)}")
    if status:
        (line,) = errors.getvalue().splitlines()
        raise _Refused(line)
    output.seek(0)
    return output.read()


_KNOWN = re.compile(
    r"input|black|white|((black|white)/)?(result\.json|book\.(bin|pgn)|traps\.pgn|opponent\.npz|(memory|plan|positions)\.csv)"
    r"|sparring\.json|(games|last|without|last_\d{1,20})\.pgn|rounds\.csv|.*\.sqlite(-wal|-shm|-journal)?|run"
    r"|report\.html|policy\.npz|nash_conv\.png|study\.pgn|lichess[\w-]*\.pgn|[\w-]+\.(csv|pgn)"
)


@functools.cache
def _left(name: str) -> dict[str, bytes]:
    """Return the files that a whole run has left, by name."""
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where)
        for file, data in _COMMANDS[name].first().items():
            (folder / file).write_bytes(data)
        _run(name, folder)
        return {
            path.relative_to(folder).as_posix(): _without_journal(path.read_bytes())
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def _without_journal(data: bytes) -> bytes:
    """Return a database as one that has no journal of its own, which can be opened in memory."""
    return data[:18] + b"\1\1" + data[20:] if data.startswith(b"SQLite format 3\0") else data


def _prepared() -> dict[str, bytes]:
    """Return a folder to drill."""
    (result,) = samples.results()
    return {"result.json": json.dumps(result).encode(), "progress.sqlite": samples.drills()[0]}


def _games() -> dict[str, bytes]:
    """Return games of a person, with both colors, in two years."""
    text = "".join(
        f'[Event "?"]\n[Date "{year}.01.01"]\n[White "{one}"]\n[Black "{other}"]\n[Result "1-0"]\n\n'
        f"{moves} 1-0\n\n"
        for year in (1990, 1991)
        for one, other in (("A", "B"), ("B", "A"))
        for moves in ("1. e4 e5 2. Nf3 Nc6", "1. d4 d5 2. c4 e6")
    )
    return {"games.pgn": text.encode()}


def _sized() -> dict[str, bytes]:
    """Return a folder to look at."""
    return {name: _left("prepare")[name] for name in ("result.json", "memory.csv")}


def _kept() -> dict[str, bytes]:
    return {"kept.pgn": f'[FEN "{_ENDGAME}"]\n[SetUp "1"]\n\n1. d4 Ke6 2. Ke3 *\n\n'.encode()}


class _Command(NamedTuple):
    """A command to run, the files that it reads in its folder as state, and what a first run needs there."""

    module: Any
    flags: str
    state: tuple[str, ...]
    first: Callable[[], Mapping[str, bytes]]


_COMMANDS = {
    "spar": _Command(
        spar,
        f"{_FEW} {_PLACES} --max_plies=4 --fen='{_ENDGAME}' --menu=2 --play=2 --round=2 --last=1 --minutes=9"
        " --budget=3 --max_evaluations=20 --opponent_plays=softmax --calibration=engines --engine=x",
        ("result.json", "sparring.json", "games.pgn", "last.pgn", "opponent.npz", "kept.sqlite"),
        dict,
    ),
    "drill": _Command(
        drill,
        "--from=. --progress=./progress.sqlite --questions=1 --drill_seed=0",
        ("result.json", "progress.sqlite"),
        _prepared,
    ),
    "prepare": _Command(
        prepare,
        f"{_FEW} {_PLACES} --max_plies=4 --fen='{_ENDGAME}' --menu=1 --evaluation=linear --minutes=0"
        " --budget=2 --penalty=0.05 --match_games=0 --neighbors=0 --keep=./kept.pgn",
        ("kept.sqlite", "kept.pgn"),
        _kept,
    ),
    "report": _Command(report, "--from=. --output_dir=. --export=csv", ("memory.csv", "result.json"), _sized),
    "opponent": _Command(
        opponent,
        f"{_FEW} {_PLACES} --max_plies=2 --player=B --behind=uniform --plies=4 --distrust=0.05"
        " --evaluation=linear --penalty=0.05 --budget=2 --minutes=1 --noreport --export=csv"
        " --games=./games.pgn",
        ("games.pgn", "kept.sqlite"),
        _games,
    ),
}


def resume(name: str, folder: pathlib.Path, changes: Mapping[str, bytes]) -> str:
    """Return a command's output in the folder of a whole run, after changes of some files.

    Raises:
      ValueError: the command's one line.
    """
    for file, data in {**_left(name), **changes}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
    return _run(name, folder)


def left(name: str) -> dict[str, bytes]:
    """Return the files that a whole run of a command has left, by name."""
    return dict(_left(name))


def _use(name: str, path: pathlib.Path) -> None:
    """Run a command in the folder of an input."""
    files = _COMMANDS[name].state
    number, data = _number_of(name, path.read_bytes())
    resume(name, path.parent, {files[number]: data})


def _number_of(name: str, data: bytes) -> tuple[int, bytes]:
    """Return the number of the file that an input replaces, and its contents."""
    number, _, data = data.partition(b"\n")
    return int(number) % len(_COMMANDS[name].state) if number.isdigit() and len(number) < 4 else 0, data


def _input(number: int, data: bytes) -> bytes:
    return b"%d\n" % number + data


def changed_state(name: str, rng: random.Random, data: bytes, plain: Plain, words: Sequence[bytes]) -> bytes:
    """Return an input of a command with its file changed."""
    number, data = _number_of(name, data)
    suffix = pathlib.Path(_COMMANDS[name].state[number]).suffix
    return _input(number, changed(rng, data, plain, words, suffix))


def _good(name: str) -> list[bytes]:
    there = _left(name)
    return [_input(k, there[file]) for k, file in enumerate(_COMMANDS[name].state)]


def _hostile(name: str) -> Iterable[bytes]:
    for k, file in enumerate(_COMMANDS[name].state):
        for data in hostile_files(file, _left(name)[file]):
            yield _input(k, data)


WATCHED = READERS | {
    f"command_{name}": Reader(
        (name,),
        functools.partial(_good, name),
        functools.partial(_use, name),
        "input",
        more=functools.partial(_hostile, name),
    )
    for name in _COMMANDS
}
"""All readers by name."""
