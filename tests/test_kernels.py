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

HEAD = "from __future__ import annotations\nfrom precomp_games._support.kernels import kernel\n"


def run(program, cwd=None, **environment):
    command, where = [sys.executable, "-c", program], os.environ | environment
    return subprocess.run(
        command, cwd=cwd, env=where, capture_output=True, text=True, timeout=120, check=True
    )


def folder_of(kernel):
    return kernel._cache.cache_path


@pytest.fixture
def stamp(tmp_path, monkeypatch):
    """Return what writes modules, and gives the stamp of the function `outer` in the last one."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def made(**modules):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(HEAD + text)
        importlib.invalidate_caches()
        kernels._text.cache_clear()
        found = kernels._stamp(importlib.import_module(list(modules)[-1]).outer.py_func)
        for name in modules:
            del sys.modules[name]
        return found

    return made


def test_a_kernel_is_another_one_when_what_it_calls_or_uses_has_changed(stamp):
    def changed(inner="return x", limit=3, outer="return inner(x) + LIMIT"):
        return stamp(
            inner_module=f"LIMIT = {limit}\n@kernel\ndef inner(x):\n    {inner}\n",
            outer_module=f"from inner_module import LIMIT, inner\n@kernel\ndef outer(x):\n    {outer}\n",
        )

    assert changed() == changed()
    assert len({changed(), changed("return 2 * x"), changed(limit=4), changed(outer="return x")}) == 4


def test_a_kernel_is_another_one_when_the_fields_of_what_it_takes_or_its_module_have_moved(stamp):
    """Numba's files have a module's name in them."""
    taking = "from pair_module import Pair\n@kernel\ndef outer(pair: Pair) -> int:\n    return pair.a\n"
    pair = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    {}\n"
    one, other = (pair.format(fields) for fields in ("a: int; b: int", "b: int; a: int"))
    modules = (one, "taking_module"), (other, "taking_module"), (other, "moved_module")
    assert len({stamp(pair_module=text, **{module: taking}) for text, module in modules}) == 3


def test_compiled_kernels_serve_a_copy_of_the_library_elsewhere(tmp_path):
    """One subprocess (0.6 s) asks a copy; what its kernel was compiled to has the same place."""
    copy = tmp_path / "elsewhere" / "precomp_games"
    ignored = shutil.ignore_patterns("__pycache__", "algorithms", "vendor", "data")
    shutil.copytree(pathlib.Path(precomp_games.__file__).parent, copy, ignore=ignored)
    program = "import precomp_games.tree.facts as it; print(it.__file__, it._look._cache.cache_path)"
    result = run(program, cwd=tmp_path, PYTHONPATH=str(copy.parent))
    assert result.stderr == ""
    assert result.stdout.split() == [str(copy / "tree" / "facts.py"), folder_of(tree_facts._look)]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))  # a file: no folder can be made in it

    @kernels.kernel
    def twice(x):
        return 2 * x

    assert twice(4) == 8
    assert str(tmp_path) not in folder_of(twice)


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
    assert values.flags.writeable
    compiled: list[Any] = [_difference, _three]
    assert all(len(each.signatures) <= 1 for each in compiled)


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
    message = "precomp_games: compiling with numba, which takes some seconds the first time\n"
    for expected in (message, ""):
        assert run(program, NUMBA_CACHE_DIR=str(tmp_path)).stderr == expected
