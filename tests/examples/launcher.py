"""Runs examples as a user does, but for the imports, and reads what they leave.

What an example does with its output, with signals and with errors of imports is tested by running it from the
start (test_common.py).
"""

import contextlib
import csv
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from absl import flags
from absl.testing import flagsaver

from tools.forked_runs import EXAMPLES as EXAMPLES
from tools.forked_runs import RunServer
from tools.forked_runs import command_of as command_of

_ROOT = pathlib.Path(__file__).parents[2]
_SECONDS = 300
_SERVER = RunServer()


def launch(
    example: str,
    *flags: object,
    cwd: str | os.PathLike[str] = _ROOT,
    has_engine: bool = True,
    typed: str | os.PathLike[str] = os.devnull,
    folder: pathlib.Path = _ROOT / "examples",
    meanwhile: Callable[[int], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `python examples/EXAMPLE.py FLAGS` in a folder.

    Args:
      example: its name.
      flags: its flags.
      cwd: the folder.
      has_engine: on this machine, as it is.
      typed: a file of what is typed.
      folder: where the example is.
      meanwhile: called with the process's id, which is gone once the process has ended.
    """
    words = [str(folder / f"{example}.py"), *map(str, flags)]
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        code = _SERVER.run(
            words,
            cwd,
            seconds=_SECONDS,
            files=(os.fspath(typed), out.name, err.name),
            has_engine=has_engine,
            meanwhile=meanwhile,
        )
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


@contextlib.contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """Yield a module of the examples, for its functions, with flags at their defaults.

    Nothing of it stays: others define flags of the same names.
    """
    values, folder = flags.FLAGS, str(_ROOT / "examples")
    path, modules, hook, parsed = sys.path[:], set(sys.modules), sys.excepthook, values.is_parsed()
    with flagsaver.flagsaver():  # which takes new ones away
        try:
            sys.path.insert(0, folder)
            module = importlib.import_module(name)
            if not parsed:
                values(["test"])
            yield module
        finally:
            sys.path[:], sys.excepthook = path, hook
            for other in sys.modules.keys() - modules:
                if os.path.dirname(getattr(sys.modules[other], "__file__", None) or "") == folder:
                    del sys.modules[other]
            if not parsed:
                values.unparse_flags()


def printed(example: str, *flags: object, **where: Any) -> str:
    """Return the output of a run that must end well; `where` is as for `launch`."""
    result = launch(example, *flags, **where)
    assert result.returncode == 0, f"{example} {flags}:\n{result.stdout}{result.stderr}"
    return result.stdout


def fails(example: str, *flags: object, told: str | Sequence[str], **where: Any) -> None:
    """Check that a run fails with one clear error line, which has all these words, and no traceback."""
    result = launch(example, *flags, **where)
    assert result.returncode == 1, f"{example} {flags}:\n{result.stdout}{result.stderr}"
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    for words in [told] if isinstance(told, str) else told:
        assert words in lines[0], (flags, words)


def files(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the contents of a folder's files, by name."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def table(path: pathlib.Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def result_of(folder: pathlib.Path, name: str = "result.json") -> Any:
    """Read a JSON file of a run's folder."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def is_png(path: pathlib.Path) -> bool:
    """Return whether a file is a PNG figure."""
    return path.read_bytes().startswith(b"\x89PNG")
