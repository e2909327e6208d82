"""What the examples share: flags, one error line in place of a traceback, progress bars, files, figures."""

# ruff: noqa: E402  (what an interrupt says is settled before the imports)

from __future__ import annotations

import os
import sys

_IN_WORKER = "multiprocessing.spawn" in sys.modules  # before the imports below, which load it anywhere


def _tell_uncaught(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    """An interrupt outside of `run`, which is while modules are imported, is told as one inside is."""
    interrupt = issubclass(kind, KeyboardInterrupt)
    if not interrupt and not isinstance(error.__cause__, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    if not _IN_WORKER:  # in a worker it is no news
        print("error: interrupted", file=sys.stderr, flush=True)
    if not interrupt:  # modules written in C++ make an ImportError of it, which would end with another status
        os._exit(130)


def _open_closed_streams() -> None:
    """Streams that were closed (`>&-`) go nowhere; else the next file that is opened would be one of them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


# Before the imports below, which take a second.
sys.excepthook = _tell_uncaught
_open_closed_streams()

import contextlib
import csv
import difflib
import functools
import importlib.util
import io
import itertools
import json
import logging
import math
import pathlib
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import parallel
import pyspiel
from absl import app, flags
from tqdm import tqdm

from precomp_games import HistoryTree, atomic_write, make_policy, policy_names, use_progress_bars
from precomp_games.algorithms import MetaEquilibrium
from precomp_games.chess import (
    EVALUATIONS,
    MAX_LIMIT,
    PLAYS,
    EngineError,
    StoreError,
)

FLAGS = flags.FLAGS


def run(main: Callable[[Sequence[str]], None]) -> None:
    """Runs an example; what a user can put right is told in one line, with exit status 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding does not have is no reason to end
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout = _Output(sys.stdout)

    def guarded(argv: Sequence[str]) -> None:
        # An interrupt can close the engines' event loop before it has seen them end; that is no news.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        if len(argv) > 1:
            _fail(f"expected flags only, got {' '.join(argv[1:])!r} (see --help)")
        try:
            use_progress_bars(functools.partial(progress_bar, delay=1.0, leave=False))  # in a log, too
            with _clock.running():
                main(argv)
            sys.stdout.flush()
        except (ValueError, EngineError, StoreError, OSError, pyspiel.SpielError) as error:
            told = _by_file(error) if isinstance(error, OSError) else ""
            lines = (told or str(error)).splitlines() or [repr(error)]
            _fail(_by_flag(lines[0]))  # OpenSpiel lists every game that it knows
        except MemoryError:
            _fail("expected work that fits into memory, got none left: lower the flags that count")
        except KeyboardInterrupt as error:
            kept = [str(error)] if error.args else []
            kept += ["finished searches are in the store"] if "store" in FLAGS else []
            _fail("interrupted" + (f" ({', '.join(kept)})" if kept else ""), 130)

    for word in itertools.takewhile(lambda word: word != "--", sys.argv[1:]):
        name = word.partition("=")[0]
        if name.startswith("-") and len(name) > _LONGEST_FLAG:  # absl looks for similar ones by recursion
            _fail(f"expected a flag, got {name[:_LONGEST_FLAG]}... of {len(name)} characters (see --help)")
    app.run(guarded, flags_parser=_parsed)


def _parsed(argv: Sequence[str]) -> list[str]:
    """What is left of a command line without its flags; one that asks for help ends here, with status 0."""
    try:
        return list(FLAGS(argv))
    except SystemExit:  # absl's flags for help exit with 1, as for an error
        sys.stdout.flush()
        sys.exit(0)
    except flags.Error:
        return list(app.parse_flags_with_usage(list(argv)))  # tells it


_LONGEST_FLAG = 100  # characters of a name
_LONGEST_ERROR = 2000  # characters


def _fail(message: str, status: int = 1) -> None:
    for folder in _made_folders:
        with contextlib.suppress(OSError):  # not empty: what has been finished stays
            folder.rmdir()
    if len(message) > _LONGEST_ERROR:  # a flag of thousands of characters, say
        message = f"{message[: _LONGEST_ERROR // 2]} ... {message[-_LONGEST_ERROR // 4 :]}"
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)


_FLAGS_OF_ARGUMENTS = {"opponent_temperature_cp": "r"}


def _by_flag(message: str) -> str:
    """An error about an argument that a flag has set, as one about the flag."""
    match = re.fullmatch(r"[\w.]+\(\): expected (\w+) (?:to be )?(.*)", message)
    if match is None:
        return message
    flag = _FLAGS_OF_ARGUMENTS.get(match[1], match[1])
    if flag not in FLAGS or f", got {FLAGS[flag].value!r}" not in match[2]:
        return message  # some other argument of that name
    return f"--{flag}: expected {match[2]}"


def _by_file(error: OSError) -> str:
    """An error about a file that a flag names, as one about the flag; "" if none does."""
    if error.filename is None:
        return ""
    # Other flags have specs with a file in them.
    whole = re.compile(rf"(?<![\w./-]){re.escape(str(error.filename))}(?![\w./-])")
    for flag in FLAGS:
        given = FLAGS[flag].value
        values = given if isinstance(given, list) else [given]
        if FLAGS[flag].present and any(whole.search(str(value)) for value in values):
            return _no_file(flag, "a file", error)
    return ""


def _no_file(flag: str, expected: str, error: OSError) -> str:
    return f"--{flag}: expected {expected}, got {str(error.filename)!r} ({error.strerror})"


@contextlib.contextmanager
def told_as(flag: str, expected: str) -> Iterator[None]:
    """An error about what stands in a file, or that it cannot be read, is told as one about a flag.

    Args:
      flag: which names the file, or files.
      expected: what they have to be.
    """
    try:
        yield
    except ValueError as error:
        reason = str(error).partition(": ")[2]
        raise ValueError(f"--{flag}: {reason}" if reason.startswith("expected") else str(error)) from None
    except OSError as error:
        raise ValueError(_no_file(flag, expected, error)) from None


class _Output:
    """Standard output, of which `| head` may read no more: the run goes on, for the files that it writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        _clock.said()
        with self._may_end():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._may_end():
            self._stream.flush()

    @contextlib.contextmanager
    def _may_end(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is still to be written, or stands in the buffer, goes nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, "standard output") from None


# -- progress --------------------------------------------------------------------------------------

_SECONDS_FIRST = 2.0  # that a run says nothing, at first
_SECONDS_A_LINE = 10.0  # in a log


class _Log:
    """Where bars go that nobody sees move: a line of them now and then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        self._next = time.monotonic() + min(_SECONDS_FIRST, _SECONDS_A_LINE)

    def write(self, text: str) -> None:
        line = text.strip()
        with self._lock:
            if line and time.monotonic() >= self._next:
                self._next = time.monotonic() + _SECONDS_A_LINE
                print(line, file=sys.stderr, flush=True)

    def flush(self) -> None:
        pass


_log = _Log()
_bars: weakref.WeakValueDictionary[int, tqdm] = weakref.WeakValueDictionary()  # in the order of their making
_number = itertools.count()


def progress_bar(iterable: Iterable[Any] | None = None, **arguments: Any) -> tqdm:
    """tqdm's bar on a terminal; elsewhere, such as in a log, a line with count and rate every ten seconds."""
    if sys.stderr.isatty():
        bar = tqdm(iterable, dynamic_ncols=True, **arguments)
    else:
        bar = tqdm(iterable, file=_log, ncols=100, mininterval=0.5, **arguments)
    _bars[next(_number)] = bar
    return bar


class _Clock:
    """Shows that a run goes on while it counts nothing: the seconds of its bar, or else where it is.

    What has no bar is told by the function of the library that runs, after two seconds of silence.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._bar: tqdm | None = None  # of a terminal, while there is no other
        self.waits = False  # for what is typed

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread, main = threading.Thread(target=self._run, daemon=True), threading.get_ident()
        self._main, self._begun = main, time.monotonic()
        self._ended.clear()
        _log.begin()
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self.said()

    def said(self) -> None:
        """Something else is about to be written."""
        with self._lock:
            self._begun = time.monotonic()
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def _run(self) -> None:
        while not self._ended.wait(1.0):
            with contextlib.suppress(RuntimeError, OSError, ValueError):  # a bar just opened; nobody listens
                self._tick()

    def _tick(self) -> None:
        counting = [bar for bar in _bars.values() if not bar.disable]
        if counting:
            self.said()
            if sys.stderr.isatty():
                for bar in counting:
                    bar.refresh()
            else:
                _log.write("\n".join(map(str, counting)))
            return
        with self._lock:
            silent = time.monotonic() - self._begun
            if silent < _SECONDS_FIRST or self.waits or self._ended.is_set():
                return
            what = f"Working: {self._where()}"
            if not sys.stderr.isatty():
                _log.write(f"{what}, {silent:.0f} s")
            elif self._bar is None:
                self._bar = tqdm(desc=what, bar_format="{desc}, {elapsed}", leave=False)
                self._bar.start_t -= silent
            else:
                self._bar.set_description_str(what)

    def _where(self) -> str:
        """The first function outside of the examples that the run is in; its own where it is in none."""
        frame, name = sys._current_frames().get(self._main), "main"
        own = os.path.dirname(os.path.abspath(__file__))
        while frame is not None:
            code = frame.f_code
            if (
                frame.f_globals.get("__name__") == "__main__"
                or os.path.dirname(os.path.abspath(code.co_filename)) == own
            ):
                return name if name != "main" else code.co_name
            if code.co_name.isidentifier():
                name = code.co_name
            frame = frame.f_back
        return name


_clock = _Clock()


def typed(prompt: str) -> str:
    """`input`, for which nobody need be told that the run goes on."""
    _clock.waits = True
    try:
        return input(prompt)
    finally:
        _clock.said()
        _clock.waits = False


@contextlib.contextmanager
def progress(description: str, unit: str, **arguments: Any) -> Iterator[Callable[..., None]]:
    """A bar for work that says how far it is.

    Gives a function of the work that is done so far, None where that is as before, and of a note.
    """
    with progress_bar(desc=description, unit=f" {unit}", **arguments) as bar:

        def show(done: int | None = None, note: str | None = None) -> None:
            if note is not None:
                bar.set_postfix_str(note)
            if done is not None:
                bar.update(done - bar.n)

        yield show


# -- flags for any game ----------------------------------------------------------------------------


def load_game(text: str) -> pyspiel.Game:
    """OpenSpiel's load_game, without its list of all games where the name is wrong."""
    name = text.partition("(")[0]
    if name not in pyspiel.registered_names():
        near = difflib.get_close_matches(name, pyspiel.registered_names(), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"expected an OpenSpiel game such as kuhn_poker, got {text!r}{hint}")
    return pyspiel.load_game(text)


def policy(game: pyspiel.Game, spec: str) -> Any:
    """The policy that a flag names; what the user names is opened and run."""
    return make_policy(game, spec, trusted=True)


def check_game(game: pyspiel.Game, *, perfect: bool = False) -> None:
    """Refuses a game that the library would refuse later, after work has been done.

    Args:
      game: that of --game.
      perfect: information must be perfect.
    """
    kind, name = game.get_type(), game.get_type().short_name
    sums = (kind.Utility.ZERO_SUM, kind.Utility.CONSTANT_SUM)
    if game.num_players() != 2 or kind.dynamics != kind.Dynamics.SEQUENTIAL or kind.utility not in sums:
        raise ValueError(f"--game: expected a sequential two-player game of constant sum, got {name}")
    if kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"--game: expected explicit chance nodes, got {name} with sampled ones")
    if perfect and kind.information != kind.Information.PERFECT_INFORMATION:
        raise ValueError(f"--game: expected a game of perfect information, got {name}")


def seats(player: int, own: Any, other: Any) -> tuple[Any, Any]:
    """What is the player's and what is its opponent's, in the order of players."""
    return (own, other) if player == 0 else (other, own)


def numbers(
    flag: flags.FlagHolder[Any], allowed: str, fits: Callable[[Any], bool], kind: type = float
) -> list[Any]:
    """The numbers that a flag lists, in its order.

    Args:
      flag: a list.
      allowed: what its error says that is expected.
      fits: whether a number is that.
      kind: float or int.
    """
    try:
        values = [kind(text) for text in flag.value]
    except ValueError:
        values = []
    if not values or not all(map(fits, values)):
        raise ValueError(f"--{flag.name}: expected {allowed}, got {','.join(flag.value)!r}")
    return values


def positive_numbers(flag: flags.FlagHolder[Any]) -> list[float]:
    """`numbers` greater than 0."""
    return numbers(flag, "positive numbers separated by commas", lambda value: 0.0 < value < math.inf)


def known_policies() -> str:
    """Specs of policies, for a flag's help."""
    return ", ".join(f"{name}({arguments})" for name, arguments in policy_names().items())


def define_game_flags() -> None:
    flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string.")
    flags.DEFINE_string(
        "sigma", "uniform", f"What players compute during play. Policies: {known_policies()}."
    )
    flags.DEFINE_string("sigma_pre", "cfr(iterations=300)", "What can be memorized; policies as for --sigma.")


def define_memory_flag() -> None:
    flags.DEFINE_string(
        "max_memory",
        None,
        "Give up, and say what to change, before the process takes more than this, such as 2GB. "
        "Default: four fifths of the machine's.",
    )


# -- chess flags -----------------------------------------------------------------------------------


def define_chess_flags() -> None:
    flags.DEFINE_string(
        "engine",
        None,
        "UCI engine, a path or a command. Default: $STOCKFISH, stockfish on PATH, /usr/games/stockfish.",
    )
    flags.DEFINE_multi_string("engine_option", [], 'UCI option of the engine, "Name=value"; may be repeated.')
    flags.DEFINE_string("opponent_engine", None, "UCI engine of the opponent, where it is another one.")
    flags.DEFINE_multi_string(
        "opponent_option",
        [],
        'UCI option of the opponent\'s engine, "Name=value"; may be repeated. Those that limit its strength '
        "(UCI_LimitStrength with UCI_Elo, Skill Level) need --opponent_plays=bestmove, since they leave its "
        "scores as they are.",
    )
    flags.DEFINE_enum(
        "opponent_plays",
        "softmax",
        list(PLAYS),
        "How the opponent chooses its move: at random by its scores, the move that its engine answers, or at "
        "random by what it reports last, of an unfinished iteration too.",
    )
    flags.DEFINE_integer(
        "opponent_samples",
        20,
        "With --opponent_plays=bestmove and options that make the engine draw its moves: how often it is "
        "asked in each position.",
        lower_bound=1,
    )
    flags.DEFINE_integer("workers", None, "Engine processes. Default: one a core.", lower_bound=1)
    flags.DEFINE_string(
        "cluster",
        None,
        f"Search on {parallel.CLUSTER}",
    )
    flags.DEFINE_string(
        "store",
        "output/evaluations.sqlite",
        "Where searches are kept: each is made once, ever. Shared by all runs.",
    )
    flags.DEFINE_float("penalty", 1e-4, "Memory penalty lambda: utility in [0, 1] that a position costs.")
    limit: dict[str, Any] = {"lower_bound": 1, "upper_bound": MAX_LIMIT}
    flags.DEFINE_integer("opponent_nodes", 1000, "Nodes a move of the opponent.", **limit)
    flags.DEFINE_integer("analyst_nodes", 5000, "Nodes a move of the book.", **limit)
    flags.DEFINE_integer(
        "opponent_movetime_ms",
        None,
        "Milliseconds a move of the opponent, in place of nodes (not reproducible).",
        **limit,
    )
    flags.DEFINE_integer(
        "analyst_movetime_ms",
        None,
        "Milliseconds a move of the book, in place of nodes (not reproducible).",
        **limit,
    )
    flags.DEFINE_integer("top_k", 2, "Moves considered in a position (MultiPV).", lower_bound=1)
    flags.DEFINE_integer("max_plies", 100, "Half-moves until a draw is declared.", lower_bound=1)
    flags.DEFINE_string("fen", "", "Start position. Default: the usual one.")
    flags.DEFINE_enum(
        "evaluation",
        "linear",
        list(EVALUATIONS),
        "What play after the book is worth: linear in centipawns, won from a threshold on, by the "
        "engine's win-draw-loss model, the mean of games that both sides' engines play on, or by a function "
        "of the analyst's score that was fitted to such games.",
    )
    flags.DEFINE_string(
        "calibration",
        "",
        "For calibrated: a file of examples/calibrate_evaluation.py, or people, the fit of the package to "
        "games of grandmasters. Default: its fit for Stockfish 15.1 with 1000 and 5000 nodes.",
    )
    flags.DEFINE_float("scale_cp", 400.0, "Centipawns of a sure win, for linear and threshold.")
    flags.DEFINE_float(
        "rollout_epsilon", 0.2, "What roll-outs may cost in value; their number grows as its -2nd power."
    )
    flags.DEFINE_integer("seed", 0, "Seed of games that say what positions are worth.", lower_bound=0)
    flags.DEFINE_string(
        "stored_engine", None, "Without an engine: whose stored searches to use, where there are several."
    )


# -- output ----------------------------------------------------------------------------------------


_made_folders: list[pathlib.Path] = []


def output_folder(path: str, *, draws: bool = False) -> pathlib.Path:
    """Makes the folder of --output_dir, before any work is done that could not be written, or drawn.

    A run that fails removes it again if nothing is in it.
    """
    if draws and importlib.util.find_spec("matplotlib") is None:
        raise ValueError("expected matplotlib for the figures, got none: pip install 'precomp-games[plots]'")
    folder = pathlib.Path(path)
    try:
        _made_folders.extend(f for f in (folder, *folder.parents) if not f.exists())
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise ValueError(f"--output_dir: expected a folder, got {path!r} ({error.strerror})") from None
    if not writable:
        raise ValueError(f"--output_dir: expected a folder that can be written to, got {path!r}")
    return folder


def game_folder() -> pathlib.Path:
    """`output_folder` of figures too; by default another game than the example's own is in its name."""
    path = FLAGS.output_dir
    game = "chess" if "chess" in FLAGS and FLAGS.chess else FLAGS.game
    if not FLAGS["output_dir"].present and game != FLAGS["game"].default:
        path += "_" + re.sub(r"\W+", "_", game).strip("_")[:100]
    return output_folder(path, draws=True)


def solved_by(found: MetaEquilibrium) -> str:
    """How an equilibrium was found, and how good it is."""
    counted = "programs" if found.solver == "double_oracle" else "iterations"
    return f"{found.solver}: NashConv {found.nash_conv:.2g} after {found.iterations} {counted}"


def infoset_name(tree: HistoryTree, infoset: int) -> str:
    """An information state as the game writes it; a history, by its actions, where it writes none."""
    if tree.infoset_keys is not None:
        return tree.infoset_keys[infoset].replace("\n", " ")
    state, words = tree.game.new_initial_state(), []
    for action in tree.actions(int(tree.infoset_history[infoset])):
        words.append(state.action_to_string(state.current_player(), action))
        state.apply_action(action)
    return " ".join(words) or "(start)"


def write_csv(path: pathlib.Path, rows: Sequence[dict[str, Any]]) -> None:
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_json(path: pathlib.Path, value: Any) -> None:
    with atomic_write(path) as file:
        json.dump(value, file, indent=1)
        file.write("\n")


_STYLE: Any = {
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.titlesize": 10,
    "figure.titlesize": 10,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "precomp-games",
}


def curve_style(number: int) -> str:
    """Color, line and marker of one of several curves; in grey, line and marker tell them apart."""
    return f"C{number % 10}{('-', '--', '-.', ':')[number % 4]}{'os^Dv'[number % 5]}"


@contextlib.contextmanager
def figure(
    path: pathlib.Path,
    rows: int = 1,
    columns: int = 1,
    *,
    dpi: int = 150,
    page: bool = False,
    **arguments: Any,
) -> Iterator[tuple[Any, Any]]:
    """A figure and its panels, as pyplot's subplots gives them, to draw in; it is written as a PNG.

    With `page` also as an SVG file beside it, for a page.
    """
    import matplotlib

    matplotlib.use("Agg")  # needs no display
    from matplotlib import pyplot

    # Without the date and the version, the same run gives the same file.
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}}
    if page:
        kinds["svg"] = {"Date": None, "Creator": None}
    with matplotlib.rc_context(_STYLE):
        drawn, panels = pyplot.subplots(rows, columns, **arguments)
        yield drawn, panels
        for kind, metadata in kinds.items():
            with atomic_write(path.with_suffix(f".{kind}"), "wb") as file:
                drawn.savefig(file, format=kind, dpi=dpi, metadata=metadata)
        pyplot.close(drawn)


def print_table(rows: Iterable[Sequence[Any]], header: Sequence[str]) -> None:
    """Columns aligned right, the last one left."""
    cells = [list(map(_cell, row)) for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    for row in cells:
        aligned = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([*aligned[:-1], row[-1]]).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return str(value)
