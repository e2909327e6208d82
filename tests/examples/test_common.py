"""Shared behavior of all examples: output that nobody reads on, interrupts, progress in logs, and errors."""

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from tests.examples.launcher import EXAMPLES, FOLDER, fails, launch, result_of
from tests.oracles.pgn import game

EXAMPLE = FOLDER / "best_precomputation.py"


@pytest.fixture
def run_code(tmp_path):
    """Return a function that runs code as an example that has imported what they share."""

    def run(code):
        begin = f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nimport common\n"
        begin += "from precomp_games.commands import _app\n"
        (tmp_path / "snippet.py").write_text(begin + code)
        return launch("snippet", folder=tmp_path)

    return run


def from_nothing(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=120.0, **options)


def without_progress(stderr):
    """On a busy machine anything takes more than two seconds, and on a new one kernels are compiled."""
    message = r"^(CFR\+|Expanding): .*\n|^.*: compiling with numba, .*\n"
    return re.sub(message, "", stderr, flags=re.MULTILINE)


# Costs seconds: the example from the start.
@pytest.mark.parametrize("end", ["| head -n 1 > /dev/null", "<&- >&- 2>&-"])
def test_a_pipe_that_closes_early_and_closed_streams_are_no_errors(end, tmp_path):
    command = f'set -o pipefail; "{sys.executable}" "{EXAMPLE}" --output_dir=out {end}'
    result = from_nothing("bash", "-c", command, cwd=tmp_path)
    assert (result.returncode, without_progress(result.stderr)) == (0, "")
    assert result_of(tmp_path / "out")  # the run went on for its files


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_named(run_code):
    code = "import os\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\ncommon.run(lambda argv: print('lost'))"
    result = run_code(code)
    assert result.returncode == 1
    assert result.stderr == "error: [Errno 28] No space left on device: 'standard output'\n"


def test_a_character_that_an_encoding_lacks_is_escaped(run_code):
    ascii_alone = "sys.stdout = open(1, 'w', encoding='ascii', closefd=False)"
    result = run_code(f"{ascii_alone}\ncommon.run(lambda argv: print('\u2654'))")
    assert (result.returncode, result.stdout) == (0, "\\u2654\n"), result.stderr


_OTHERS = pytest.mark.slow("examples whose help is made as that of the first one")


@pytest.mark.parametrize(
    "example", [EXAMPLES[0], *(pytest.param(each, marks=_OTHERS) for each in EXAMPLES[1:])]
)
def test_each_example_has_help(example):
    shown = launch(example, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"examples/{example}.py" in shown.stdout and re.search(r"^  --\w+: ", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("module", "text", "status", "message"),
    [
        ("pyspiel", "signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "error: interrupted\n"),
        ("numpy", "signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "error: interrupted\n"),
        ("pyspiel", "raise ImportError('no') from KeyboardInterrupt()", 130, "error: interrupted\n"),
        # Other errors are printed in full.
        ("pyspiel", "raise ImportError('no such thing')", 1, "Traceback .*no such thing\n"),
    ],
)
def test_what_becomes_of_errors_of_imports(module, text, status, message, tmp_path):
    (tmp_path / f"{module}.py").write_text(f"import signal\n{text}\n")
    result = from_nothing(sys.executable, EXAMPLE, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (status, "")
    assert re.fullmatch(message, result.stderr, re.DOTALL)


# -- what `common.run` makes of errors ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "message"),
    [
        # An error about no file is of no flag.
        ("OSError(28, 'No space left on device')", r"\[Errno 28\] No space left on device"),
        ("OSError(2, 'No such file', 'None')", r"\[Errno 2\] No such file: 'None'"),
        ("MemoryError", "expected work that fits into memory.*"),
    ],
)
def test_errors_are_one_line(error, message, run_code):
    result = run_code(f"def main(argv):\n    raise {error}\ncommon.run(main)")
    assert result.returncode == 1 and re.fullmatch(f"error: {message}\n", result.stderr), result.stderr


def test_a_file_that_cannot_be_written_to_its_end_is_named_and_gone(run_code, tmp_path):
    path = tmp_path / "out.csv"
    code = f"""
def main(argv):
    import pathlib, resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    common.write_csv(pathlib.Path({str(path)!r}), [dict(a=k) for k in range(1000)])
common.run(main)
"""
    result = run_code(code)
    assert result.returncode == 1
    assert result.stderr == f"error: [Errno 27] File too large: '{path}'\n" and not path.exists()


def test_an_argument_has_its_flags_name_only_where_that_set_it():
    result = launch("best_precomputation", "--sigma_pre=cfr(iterations=-1)")
    assert result.returncode == 1 and result.stderr.startswith("error: ") and "--" not in result.stderr


def test_flags_of_any_length_are_refused_in_one_short_line():
    result = launch("chess_preparation", "--plan=" + "9" * 5000)
    assert result.returncode == 1 and len(result.stderr) < 3000
    assert re.fullmatch("error: --plan: expected .*\n", result.stderr)


# -- progress ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "fewest"), [(9.0, 0), (0.25, 1)])
def test_progress_that_nobody_sees_move_is_a_line_now_and_then(seconds, fewest, run_code):
    """Of examples' bars, and of the library's."""
    code = f"""
import time
from precomp_games._support.config import bar
_app._SECONDS_FIRST = _app._SECONDS_A_LINE = {seconds}; _app._log = _app._Log()
def main(argv):
    for _ in common.progress_bar(range(8), desc="Counting", unit=" things"):
        time.sleep(0.1)
    with bar("CFR+", "iterations", 3) as show:
        for done in (1, 2):
            time.sleep(0.6)
            show(done)
    print("done")
common.run(main)
"""
    result = run_code(code)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    for begin, count in (("Counting", r"[1-8]/8 \[.*(things/s|s/ things)"), (r"CFR\+", r"[12]/3 \[00:0\d")):
        lines = re.findall(rf"^{begin}: .* {count}.*$", result.stderr, re.MULTILINE)
        assert fewest <= len(lines) <= 4 * fewest
    assert len(result.stderr.splitlines()) <= 8 * fewest


def test_work_is_stopped_while_its_bar_is_drawn(run_code):
    code = """
import io, os, signal
class Terminal(io.RawIOBase):
    calls = 0
    def writable(self):
        return True
    def fileno(self):
        return 2
    def write(self, data):
        self.calls += 1
        if self.calls == 1:
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


# -- wrong flags: one error line that names the flag, no traceback, and no folder left behind ----------

_WRONG = [
    ("best_precomputation", "--game=no_such_game", ("expected an OpenSpiel game", "no_such_game")),
    ("kuhn_exploitability", "--penalty_values=0.1,0", ("--penalty_values", "positive", "'0.1,0'")),
    ("certified_preparation", "--game=kuhn_poker", "perfect information"),
    ("limited_lookahead", "--cluster=nowhere", ("--cluster: expected a scheduler's address", "'nowhere'")),
    ("efce_resolving", "--cluster=local:2 --workers=2", "--workers: expected none with --cluster"),
    ("clock_precomputation", "--times=0", ("--times", "at least 1")),
    ("efce_resolving", "--rows=5", ("--rows", "5")),
    ("efce_resolving", "--rows= --figure=", "something to do"),
    ("efce_resolving", "--rows=2 --seeds=0 --figure= --time_limit=0.01", ("ime limit", "--time_limit")),
    ("entropy_bounds", "--r_values=0", ("--r_values", "positive")),
    ("kuhn_exploitability", "--game='breakthrough(rows=4,columns=3)'", ("--game", "information state")),
    ("kuhn_exploitability", "--max_histories=50", ("--max_histories", "50 histories")),
    ("kuhn_exploitability", "--output_dir=prose.md", ("--output_dir", "prose.md")),
    ("limited_lookahead", "--gammas=-1", ("--gammas", "at least 0", "-1")),
    ("limited_lookahead", "--lookaheads=0", ("--lookaheads", "at least 1")),
    ("limited_lookahead", "--types=1,2 --lookaheads=1", ("--lookaheads", "none with --types")),
    ("limited_lookahead", "--players=3", ("--players", "0 or 1")),
    ("limited_lookahead", "--noise=loud", ("--noise", "loud")),
    ("limited_lookahead", "--games=leduc_poker --max_histories=100", "--max_histories"),
    ("mediator", "--game=sherif", "did you mean sheriff"),
    ("mediator", "--game=tic_tac_toe", "battleship, sheriff or turn-based goofspiel"),
    ("mediator", "--blueprint=equilibrium --notion=nfcce", ("--notion", "--resolve=none")),
    ("mediator", "--blueprint=equilibrium --objective=best", ("--objective", "smaller", "'best'")),
    ("payoff_frontier", "--objective=1,2,3", ("--objective", "two weights", "'1,2,3'")),
    ("payoff_frontier", "--game=kuhn_poker", "triangle"),
    ("opponent_model", "--games=games.pgn", "--player: expected"),
    ("opponent_model", "--games=games.pgn --player=Us --since=1980", ("--since", "within 1990 and 1990")),
    ("opponent_model", "--since=1991 --until=1990", "--since: expected"),
    ("opponent_model", "--population=games.pgn --since=1985", "--population: expected games before 1985"),
    ("people_check", "", "--games: expected rated games with clocks"),
    ("search_match", "--game=tic_tac_toe --opening_moves=9", ("--opening_moves", "9")),
    ("search_precomputation", "--sigma=uniform", "SearchPolicy"),
    ("search_precomputation", "--game='hex(board_size=3)' --leaf_value=evaluator", ("--leaf_value", "hex")),
    ("book_size", "", "expected an engine"),
    ("book_size", "--sizes=0", "--sizes"),
]


@pytest.mark.parametrize(("example", "flags", "words"), _WRONG)
def test_wrong_flags_of_examples(example, flags, words, tmp_path):
    (tmp_path / "games.pgn").write_text(game("1. e4 e5 2. Nf3", "Us", "Them", Date="1990.??.??"))
    (tmp_path / "prose.md").touch()
    more = [] if "--output_dir" in flags else ["--output_dir=some/out"]
    fails(example, *more, *shlex.split(flags), message=words, cwd=tmp_path, has_engine=False)
    assert not (tmp_path / "some").exists()
