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

from absl import flags
from absl.testing import flagsaver

from tools.forked_runs import EXAMPLES as EXAMPLES
from tools.forked_runs import RunServer

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples"
SERVER = RunServer()


def launch(example, *flags, cwd=ROOT, has_engine=True, folder=FOLDER):
    """Run `python examples/EXAMPLE.py FLAGS` in a folder.

    Args:
      example: its name.
      flags: its flags.
      cwd: the folder.
      has_engine: on this machine, as it is.
      folder: where the example is.
    """
    words = [str(folder / f"{example}.py"), *map(str, flags)]
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        streams = (os.devnull, out.name, err.name)
        code = SERVER.run(words, cwd, seconds=300, files=streams, has_engine=has_engine)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


@contextlib.contextmanager
def imported(name):
    """Yield a module of the examples, for its functions, with flags at their defaults.

    Nothing of it stays: others define flags of the same names.
    """
    values = flags.FLAGS
    path, modules, hook, parsed = sys.path[:], set(sys.modules), sys.excepthook, values.is_parsed()
    with flagsaver.flagsaver():  # which takes new ones away
        try:
            sys.path.insert(0, str(FOLDER))
            module = importlib.import_module(name)
            if not parsed:
                values(["test"])
            yield module
        finally:
            sys.path[:], sys.excepthook = path, hook
            for other in sys.modules.keys() - modules:
                if os.path.dirname(getattr(sys.modules[other], "__file__", None) or "") == str(FOLDER):
                    del sys.modules[other]
            if not parsed:
                values.unparse_flags()


def printed(example, *flags, **where):
    """Return the output of a run that must end well; `where` is as for `launch`."""
    result = launch(example, *flags, **where)
    assert result.returncode == 0, f"{example} {flags}:\n{result.stdout}{result.stderr}"
    return result.stdout


def fails(example, *flags, message, **where):
    """Check that a run fails with one clear error line, which has all these words, and no traceback."""
    result = launch(example, *flags, **where)
    assert result.returncode == 1, f"{example} {flags}:\n{result.stdout}{result.stderr}"
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    for words in [message] if isinstance(message, str) else message:
        assert words in lines[0], (flags, words)


def files(folder):
    """Return the contents of a folder's files, by name."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def table(path):
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def result_of(folder, name="result.json"):
    """Read a JSON file of a run's folder."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def is_png(path):
    """Return whether a file is a PNG figure."""
    return path.read_bytes().startswith(b"\x89PNG")
