"""What numba compiled is found again by what it was made of, wherever that stands."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

import precomp_games
from precomp_games import kernels, tree_facts

_PROGRAM = """
import precomp_games.tree_facts as facts
assert facts.__file__.startswith({home!r}), facts.__file__
print(facts._entry_counts._cache.cache_path)
"""


def _folder(kernel: Any) -> str:
    return kernel._cache.cache_path


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes modules of kernels, and gives the stamp of `outer` in the one that calls the other."""
    monkeypatch.syspath_prepend(tmp_path)
    head = "from precomp_games.kernels import kernel\n"

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


def test_compiled_kernels_serve_a_copy_of_the_library_elsewhere(tmp_path):
    """One subprocess (0.6 s) asks a copy; what its kernel was compiled to has the same place."""
    home = pathlib.Path(precomp_games.__file__).parent
    copy = tmp_path / "elsewhere" / "precomp_games"
    ignored = shutil.ignore_patterns("__pycache__", "algorithms", "vendor", "data")
    shutil.copytree(home, copy, ignore=ignored)
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(home=str(copy))],
        cwd=tmp_path,  # where no other copy is
        env=os.environ | {"PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stderr == ""
    assert result.stdout.strip() == _folder(tree_facts._entry_counts)


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))  # a file: no folder can be made in it

    @kernels.kernel
    def twice(x):
        return 2 * x

    assert twice(4) == 8
    assert str(tmp_path) not in _folder(twice)
