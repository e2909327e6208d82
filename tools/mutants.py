"""Whether tests notice when the code is wrong: `python -m tools.mutants algorithms/preparation/decisions.py`.

Each mutant is the code with one operator, number, condition or statement changed. It is killed if a test
fails, or if the tests take far longer than they should. A seed draws which ones are tried. They stand in a
copy of the checkout; a process that has imported the dependencies runs the tests, those first that
`seconds.json` knows as cheap.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import importlib
import json
import multiprocessing
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from absl import app, flags
from tqdm import tqdm

_COUNT = flags.DEFINE_integer("count", 20, "Mutants of each module.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Draws which ones.")
_TESTS = flags.DEFINE_list("tests", ["tests"], "Files, folders or names of tests, as pytest takes them.")
_TIER = flags.DEFINE_enum(
    "tier", "few", ["quick", "few", "rest", "all"], "Which of them; see tests/tiers.py."
)
_RESULTS = flags.DEFINE_string("results", None, "Where a line of JSON for each mutant goes.")
_SECONDS = flags.DEFINE_integer("seconds", 300, "What the tests may take for one mutant.", lower_bound=1)
_WORKERS = flags.DEFINE_integer("workers", os.cpu_count() or 1, "Mutants at once.", lower_bound=1)

_ROOT = pathlib.Path(__file__).parents[1]
_IMPORTED_ONCE: tuple[str, ...] = (
    "pyspiel",
    "numba",
    "highspy",
    "scipy.sparse.linalg",
    "chess.engine",
    "hypothesis",
    "pytest",
)
_IMPORTED_ONCE += ("open_spiel.python.policy", "matplotlib.pyplot", "selenium.webdriver", "jinja2", "psutil")

_OTHER_COMPARISON = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OTHER_COMPARISON |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
_OTHER_COMPARISON |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is}
_OTHER_OPERATOR = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
_OTHER_OPERATOR |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add}
_OTHER_NAME = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "maximum": "minimum",
    "minimum": "maximum",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change to a module."""

    module: str
    line: int
    start: int
    end: int
    was: str
    instead: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.instead.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {' '.join(self.was.split())} -> {self.instead}"


def mutants(module: str, source: bytes) -> list[Mutant]:
    """All there are of a module."""
    starts, found = [0], []
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, instead in _changes(ast.parse(source), frozenset()):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Mutant(module, node.lineno, start, end, source[start:end].decode(), instead))
    return found


def _changes(node: Any, inside: frozenset[type]) -> Iterator[tuple[Any, str]]:
    """(a part of the code, what stands there instead) for all below a node; messages and types are left."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.Assert | ast.Import | ast.ImportFrom):
        if not isinstance(node, ast.AnnAssign) or node.value is None:
            return
        node = node.value
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield from ((node, f"({ast.unparse(other)})") for other in _others(node))
    if isinstance(node, ast.AugAssign | ast.Expr | ast.Break | ast.Continue) and not _is_text(node):
        yield node, "pass"
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node, "return None"
    for name, child in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns", "type_comment"):
            continue
        for each in child if isinstance(child, list) else [child]:
            if isinstance(each, ast.AST):
                yield from _changes(each, inside | {type(node)})


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom)


def _others(node: Any) -> Iterator[ast.AST]:
    """An expression with one thing changed."""
    other = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER_COMPARISON:
        other.ops[0] = _OTHER_COMPARISON[type(node.ops[0])]()
        yield other
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER_OPERATOR:
        other.op = _OTHER_OPERATOR[type(node.op)]()
        yield other
    elif isinstance(node, ast.BoolOp):
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield other.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Call):
        function = other.func
        if isinstance(function, ast.Name) and function.id in _OTHER_NAME:
            function.id = _OTHER_NAME[function.id]
            yield other
        elif isinstance(function, ast.Attribute) and function.attr in _OTHER_NAME:
            function.attr = _OTHER_NAME[function.attr]
            yield other


def drawn(modules: Sequence[str]) -> list[Mutant]:
    """Draw `--count` of each module."""
    chosen = []
    for module in modules:
        found = mutants(module, (_ROOT / module).read_bytes())
        found = sorted(set(found), key=lambda each: (each.start, each.end, each.instead))
        picked = random.Random(f"{_SEED.value} {module}").sample(found, min(_COUNT.value, len(found)))
        chosen += sorted(picked, key=lambda each: each.start)
    return chosen


# -- Tests -------------------------------------------------------------------------------------------------


class _CheapestFirst:
    """A plugin of pytest: the order, and the names of the tests of the tier."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_finish(self, session: Any) -> None:
        from tests import tiers

        seconds = tiers.seconds_of(session.items)
        session.items.sort(key=lambda item: seconds[item.nodeid])
        self.names = [item.nodeid for item in session.items]


def _pytest(folder: pathlib.Path, words: Sequence[str]) -> tuple[int, list[str]]:
    """pytest's code and the tests' names, in a child of this process, which has most of what it imports."""
    import pytest

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        with open(folder / "mutant.log", "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.chdir(folder)
        sys.path[0:1] = [str(folder)]
        plugin, code = _CheapestFirst(), 2
        try:
            code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *words], plugins=[plugin]))
            with os.fdopen(writing, "w") as out:
                json.dump([code, plugin.names], out)
        finally:
            os._exit(code)
    os.close(writing)
    ready = select.select([reading], [], [], _SECONDS.value)[0]
    with os.fdopen(reading) as answer:
        text = answer.read() if ready else ""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not ready:
        return -1, []
    return tuple(json.loads(text)) if text else (2, [])


def _copied(folder: pathlib.Path) -> pathlib.Path:
    """A copy of what git knows, in which Python finds the library before the one that is installed."""
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=_ROOT, capture_output=True, check=True
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        if (_ROOT / name).exists():  # a file, or a link, which is copied as one
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(_ROOT / name, folder / name, follow_symlinks=False)
    return folder


_NAMES: list[str] = []
_FOLDER = pathlib.Path()


def _start(folders: Any, names: list[str]) -> None:
    global _FOLDER
    _NAMES[:] = names
    _FOLDER = _copied(pathlib.Path(folders.get()))
    for module in _IMPORTED_ONCE:
        importlib.import_module(module)


def _outcome(mutant: Mutant) -> tuple[Mutant, str, int]:
    """Return "killed", "late" or "survived", and by how many tests it might have been."""
    path = _FOLDER / mutant.module
    source = path.read_bytes()
    path.write_bytes(mutant.applied(source))
    try:
        code, _ = _pytest(_FOLDER, [f"--tier={_TIER.value}", *_NAMES])
    finally:
        path.write_bytes(source)
    return mutant, {0: "survived", 5: "survived", -1: "late"}.get(code, "killed"), len(_NAMES)


def main(argv: Sequence[str]) -> None:
    if len(argv) < 2:
        raise app.UsageError("which modules? Give their paths in the repository.")
    chosen = drawn(argv[1:])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as home:
        folders = context.Queue()
        for number in range(_WORKERS.value + 1):
            folder = pathlib.Path(home, str(number))
            folder.mkdir()
            folders.put(str(folder))
        print("The tests, of the code as it is ...", flush=True)
        _start(folders, [])
        code, names = _pytest(_FOLDER, ["--co", f"--tier={_TIER.value}", *_TESTS.value])
        if code:
            sys.exit(f"pytest ends with {code}: {(_FOLDER / 'mutant.log').read_text('utf-8')[-3000:]}")
        outcomes = []
        with context.Pool(_WORKERS.value, _start, (folders, names)) as pool:
            bar = tqdm(pool.imap_unordered(_outcome, chosen), total=len(chosen), unit=" mutants")
            for mutant, outcome, tests in bar:
                outcomes.append((mutant, outcome, tests))
                bar.set_postfix(survived=sum(each[1] == "survived" for each in outcomes))
                if _RESULTS.value is not None:
                    with open(_RESULTS.value, "a", encoding="utf-8") as out:
                        line = {"outcome": outcome, "tests": tests, "mutant": dataclasses.asdict(mutant)}
                        out.write(json.dumps(line) + "\n")
    for mutant, outcome, tests in sorted(outcomes, key=lambda each: (each[0].module, each[0].line)):
        if outcome == "survived":
            print(f"survived {tests} tests: {mutant}")
    killed = sum(outcome != "survived" for _, outcome, _ in outcomes)
    print(f"{killed} of {len(outcomes)} killed")


if __name__ == "__main__":
    app.run(main)
