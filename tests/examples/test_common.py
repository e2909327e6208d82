"""Shared behavior of all examples: output that nobody reads on, interrupts, and progress in logs."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from absl import flags

from tests.examples.launcher import EXAMPLES, fails, imported, launch, result_of
from tests.examples.test_examples import ROOT

EXAMPLE = ROOT / "examples" / "best_precomputation.py"
WORKER = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import common
from precomp_games.commands import _app
"""


def run_code(code, *flags):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "snippet.py").write_text(WORKER + code)
        return launch("snippet", ROOT / "examples", *flags, folder=pathlib.Path(folder))


def shell(command, *arguments, **options):
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", "-", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120.0,
        **options,
    )


def from_nothing(*words, **options):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120.0, **options)


def without_progress(stderr):
    """On a busy machine anything takes more than two seconds, and on a new one kernels are compiled."""
    told = r"^(CFR\+|Expanding): .*\n|^.*: compiling with numba, .*\n"
    return re.sub(told, "", stderr, flags=re.MULTILINE)


@pytest.mark.parametrize("end", ["| true", "| head -n 1 > /dev/null", ">&-", "<&- >&- 2>&-", "--help | true"])
def test_a_pipe_that_closes_early_and_closed_streams_are_no_errors(end, tmp_path):
    result = shell(f'"$1" "$2" --output_dir=out {end}', sys.executable, EXAMPLE, cwd=tmp_path)
    assert (result.returncode, without_progress(result.stderr)) == (0, "")
    assert "--help" in end or result_of(tmp_path / "out")  # the run went on for its files


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_named():
    result = shell('"$1" "$2" > /dev/full', sys.executable, EXAMPLE)
    assert result.returncode == 1
    error = "error: [Errno 28] No space left on device: 'standard output'\n"
    assert without_progress(result.stderr) == error


def test_a_file_that_cannot_be_written_to_its_end_is_named(tmp_path):
    code = """
def main(argv):
    import pathlib, resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    common.write_csv(pathlib.Path(argv[0]).absolute() / "out.csv", [{"a": k} for k in range(1000)])
sys.argv[0] = sys.argv.pop()
common.run(main)
"""
    result = run_code(code, tmp_path)
    assert result.returncode == 1
    assert result.stderr == f"error: [Errno 27] File too large: '{tmp_path / 'out.csv'}'\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reason", ["28, 'No space left on device'", "2, 'No such file', 'None'"])
def test_an_error_about_no_file_is_of_no_flag(reason):
    result = run_code(f"def main(argv):\n    raise OSError({reason})\ncommon.run(main)")
    assert result.returncode == 1
    assert result.stderr.startswith("error: [Errno ") and "--" not in result.stderr


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.slow("every example; one in test_what_becomes_of_errors_of_imports")
def test_each_example_starts(example):
    """From nothing, which no other test does with most of them."""
    shown = from_nothing(EXAMPLE.with_stem(example), "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"examples/{example}.py" in shown.stdout and re.search(r"^  --\w+: ", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("module", "text", "status", "told"),
    [
        ("pyspiel", "signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "error: interrupted\n"),
        ("numpy", "signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "error: interrupted\n"),
        ("pyspiel", "raise ImportError('no') from KeyboardInterrupt()", 130, "error: interrupted\n"),
        # Other errors are printed in full.
        ("pyspiel", "raise ImportError('no such thing')", 1, "Traceback .*no such thing\n"),
    ],
)
def test_what_becomes_of_errors_of_imports(module, text, status, told, tmp_path):
    (tmp_path / f"{module}.py").write_text(f"import signal\n{text}\n")
    result = from_nothing(EXAMPLE, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (status, "")
    assert re.fullmatch(told, result.stderr, re.DOTALL)


def test_progress_that_nobody_sees_move_is_a_line_now_and_then():
    counting = """
import time
for _ in common.progress_bar(range(8), desc="Counting", unit=" things"):
    time.sleep(0.3)
"""
    few = counting.replace("range(8)", "range(4)")
    assert run_code(few).stderr == ""  # nothing yet worth a line
    often = run_code("_app._SECONDS_A_LINE = 0.7; _app._log = _app._Log()" + counting)
    lines = often.stderr.splitlines()
    assert 2 <= len(lines) <= 4
    assert all(re.match(r"Counting: .* [1-8]/8 \[.*things", line) for line in lines)
    assert "things/s" in lines[-1] or "s/ things" in lines[-1]


def test_a_bar_of_the_library_is_in_a_log_as_well():
    code = """
import threading, time
from precomp_games._support.config import bar
_app._SECONDS_FIRST = 0.5; _app._log = _app._Log()
def main(argv):
    with bar("CFR+", "iterations", 3) as show:
        time.sleep(0.6)
        show(1)
        time.sleep(0.6)
        show(2)
    print("done")
common.run(main)
"""
    result = run_code(code)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert re.match(r"CFR\+: .* [12]/3 \[00:0\d.*", result.stderr.strip()), result.stderr


def test_work_is_stopped_while_its_bar_is_drawn():
    code = """
import io, os, signal
class Terminal(io.RawIOBase):
    told = 0
    def writable(self):
        return True
    def fileno(self):
        return 2
    def write(self, data):
        self.told += 1
        if self.told == 1:
            signal.raise_signal(signal.SIGINT)
        return os.write(2, data)
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Terminal()), write_through=True)
with common.pressed_once() as pressed:
    print("a bar", file=sys.stderr, flush=True)
    assert pressed()
"""
    result = run_code(code)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "a bar\n" and "Ctrl-C again ends the program." in result.stdout


def test_nothing_stays_of_an_imported_example():
    def traces():
        return sys.path[:], sys.excepthook, set(flags.FLAGS), flags.FLAGS.is_parsed(), "common" in sys.modules

    before = traces()
    for example in ("preparation_transfer", "book_size"):  # which share names of flags
        with imported(example) as module:
            assert flags.FLAGS.r and callable(module.main)
        assert traces() == before


def test_an_argument_is_told_by_its_flag_only_where_that_set_it():
    result = launch("best_precomputation", "--sigma_pre=cfr(iterations=-1)")
    assert result.returncode == 1 and result.stderr.startswith("error: ") and "--" not in result.stderr


def test_flags_of_any_length_are_told_in_one_short_line():
    result = launch("chess_preparation", "--plan=" + "9" * 5000)
    assert result.returncode == 1 and len(result.stderr) < 3000
    assert re.fullmatch("error: --plan: expected .*\n", result.stderr)
    name = "--" + "9" * 3000
    fails("estimate_opponent", name, told=("expected a flag, got --99", "9... of 3002 characters"))


def test_memory_that_is_not_enough_is_told_in_one_line():
    result = run_code("def main(argv):\n    raise MemoryError\ncommon.run(main)")
    assert result.returncode == 1
    assert re.fullmatch("error: expected work that fits into memory.*\n", result.stderr)
