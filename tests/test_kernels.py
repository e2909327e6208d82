"""Compiled kernels of numba are found again by their source, wherever the source is."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import precomp_games
from precomp_games._support import kernels
from precomp_games.tree import facts as tree_facts

_PROGRAM = """
import precomp_games.tree.facts as facts
assert facts.__file__.startswith({home!r}), facts.__file__
print(facts._look._cache.cache_path)
"""


def _run(program: str, cwd: pathlib.Path | None = None, **environment: str) -> Any:
    command, where = [sys.executable, "-c", program], os.environ | environment
    return subprocess.run(
        command, cwd=cwd, env=where, capture_output=True, text=True, timeout=120, check=True
    )


def _folder(kernel: Any) -> str:
    return kernel._cache.cache_path


def _times_compiled(kernel: Any) -> int:
    return len(kernel.signatures)


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write modules of kernels, and give the stamp of `outer` in the one that calls the other."""
    monkeypatch.syspath_prepend(tmp_path)
    head = "from precomp_games._support.kernels import kernel\n"

    def stamp(inner: str, outer: str = "return inner(x) + LIMIT", limit: str = "3") -> str:
        for name, text in (
            ("inner_module", f"{head}LIMIT = {limit}\n@kernel\ndef inner(x):\n    {inner}\n"),
            (
                "outer_module",
                f"{head}from inner_module import LIMIT, inner\n@kernel\ndef outer(x):\n    {outer}\n",
            ),
        ):
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        kernels._text.cache_clear()
        return kernels._stamp(importlib.import_module("outer_module").outer.py_func)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield stamp
    for name in ("inner_module", "outer_module"):
        sys.modules.pop(name, None)


def test_a_kernel_is_another_one_when_what_it_calls_or_uses_has_changed(modules):
    first = modules("return x")
    assert modules("return x") == first
    stamps = {first, modules("return 2 * x"), modules("return x", limit="4"), modules("return x", "return x")}
    assert len(stamps) == 4


def test_a_kernel_is_another_one_when_the_fields_of_what_it_takes_have_moved(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "taking_module.py").write_text(
        "from __future__ import annotations\nfrom pair_module import Pair\n"
        "from precomp_games._support.kernels import kernel\n"
        "@kernel\ndef take(pair: Pair) -> int:\n    return pair.a\n"
    )
    stamps = set()
    for fields in ("a: int; b: int", "b: int; a: int"):
        text = f"from typing import NamedTuple\nclass Pair(NamedTuple):\n    {fields}\n"
        (tmp_path / "pair_module.py").write_text(text)
        importlib.invalidate_caches()
        kernels._text.cache_clear()
        stamps.add(kernels._stamp(importlib.import_module("taking_module").take.py_func))
        for name in ("taking_module", "pair_module"):
            sys.modules.pop(name)
    # A module that has moved: numba's files have its old name in them.
    (tmp_path / "taking_module.py").rename(tmp_path / "moved_module.py")
    importlib.invalidate_caches()
    stamps.add(kernels._stamp(importlib.import_module("moved_module").take.py_func))
    for name in ("moved_module", "pair_module"):
        sys.modules.pop(name)
    assert len(stamps) == 3


def test_compiled_kernels_serve_a_copy_of_the_library_elsewhere(tmp_path):
    """One subprocess (0.6 s) asks a copy; what its kernel was compiled to has the same place."""
    home = pathlib.Path(precomp_games.__file__).parent
    copy = tmp_path / "elsewhere" / "precomp_games"
    ignored = shutil.ignore_patterns("__pycache__", "algorithms", "vendor", "data")
    shutil.copytree(home, copy, ignore=ignored)
    result = _run(_PROGRAM.format(home=str(copy)), cwd=tmp_path, PYTHONPATH=str(copy.parent))
    assert result.stderr == ""
    assert result.stdout.strip() == _folder(tree_facts._look)


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))  # a file: no folder can be made in it

    @kernels.kernel
    def twice(x):
        return 2 * x

    assert twice(4) == 8
    assert str(tmp_path) not in _folder(twice)


@kernels.kernel
def _difference(values: np.ndarray, first: int, last: int) -> float:
    return float(values[last] - values[first])


@kernels.kernel
def _three(values: np.ndarray, last: int) -> float:
    return _difference(values, 0, 1) + _difference(values, 1, 2) + _difference(values, 0, last)


def test_a_kernel_is_compiled_once_whatever_numbers_calls_have():
    """And whether others may write to what it reads, where that is handed over as `read_only`."""
    values, frozen = np.array([1.0, 3.0, 10.0]), np.array([1.0, 3.0, 10.0])
    frozen.flags.writeable = False
    for given in (values, frozen):
        assert _three(kernels.read_only(given), 1) == 2.0 + 7.0 + 2.0
    assert values.flags.writeable and max(_times_compiled(_difference), _times_compiled(_three)) <= 1


@pytest.mark.slow("compiles a kernel")
def test_compiling_is_announced_once(tmp_path):
    """With an empty cache the first run prints that it compiles; the second one does not compile."""
    program = (
        "import pyspiel\n"
        "from precomp_games.algorithms.search import SimulationBudget, mcts\n"
        "state = pyspiel.load_game('tic_tac_toe').new_initial_state()\n"
        "for _ in range(2):\n"
        "    assert mcts(state, SimulationBudget(10)).simulations == 10\n"
    )
    told = "precomp_games: compiling with numba, which takes some seconds the first time\n"
    for expected in (told, ""):
        assert _run(program, NUMBA_CACHE_DIR=str(tmp_path)).stderr == expected
