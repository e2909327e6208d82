"""What the examples share: flags, one error line in place of a traceback, progress bars, files, figures."""

# ruff: noqa: E402  (what an interrupt says is settled before the imports)

from __future__ import annotations

import sys


def _tell_uncaught(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    """An interrupt outside of `run`, which is while modules are imported, is told as one inside is."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    elif "multiprocessing.spawn" not in sys.modules:  # in a worker it is no news
        print("error: interrupted", file=sys.stderr)


# Before the imports below, which take a second.
sys.excepthook = _tell_uncaught

import concurrent.futures
import contextlib
import csv
import dataclasses
import difflib
import json
import logging
import math
import multiprocessing
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyspiel
from absl import app, flags
from tqdm import tqdm

from precomp_games import HistoryTree, atomic_write, policy_names
from precomp_games.algorithms import MetaEquilibrium
from precomp_games.chess import (
    EVALUATIONS,
    MAX_LIMIT,
    PLAYS,
    Book,
    DaskEngine,
    EngineError,
    EngineNotFoundError,
    EnginePool,
    EvaluationStore,
    MatchResult,
    PreparationPolicies,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    StoreError,
    find_engine,
    play_match,
    preparation_policies,
)

FLAGS = flags.FLAGS
SHIPPED_STORE = pathlib.Path(__file__).parent / "data" / "evaluations.sqlite"


def run(main: Callable[[Sequence[str]], None]) -> None:
    """Runs an example; what a user can put right is told in one line, with exit status 1."""
    sys.stdout = _Output(sys.stdout)

    def guarded(argv: Sequence[str]) -> None:
        # An interrupt can close the engines' event loop before it has seen them end; that is no news.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        if len(argv) > 1:
            _fail(f"expected flags only, got {' '.join(argv[1:])!r} (see --help)")
        try:
            main(argv)
            sys.stdout.flush()
        except (ValueError, EngineError, StoreError, OSError, pyspiel.SpielError) as error:
            lines = str(error).splitlines() or [repr(error)]
            _fail(_by_flag(lines[0]))  # OpenSpiel lists every game that it knows
        except MemoryError:
            _fail("expected work that fits into memory, got no more of it: ask for less, by flags that count")
        except KeyboardInterrupt:
            kept = " (finished searches are in the store)" if "store" in FLAGS else ""
            _fail(f"interrupted{kept}", 130)

    app.run(guarded)


_LONGEST_MESSAGE = 2000


def _fail(message: str, status: int = 1) -> None:
    for folder in _made_folders:
        with contextlib.suppress(OSError):  # not empty: what has been finished stays
            folder.rmdir()
    if len(message) > _LONGEST_MESSAGE:  # flags can be of any length
        message = f"{message[:_LONGEST_MESSAGE]} ... {message[-100:]}"
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


class _Output:
    """Standard output, of which `| head` may read no more: the run goes on, for the files that it writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
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

_SECONDS_A_LINE = 10.0


class _Log:
    """Where bars go that nobody sees move: a line of them now and then."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _SECONDS_A_LINE

    def write(self, text: str) -> None:
        line = text.strip()
        if line and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_A_LINE
            print(line, file=sys.stderr, flush=True)

    def flush(self) -> None:
        pass


_log = _Log()


def progress_bar(iterable: Iterable[Any] | None = None, **arguments: Any) -> tqdm:
    """tqdm's bar on a terminal; elsewhere, such as in a log, a line with count and rate every ten seconds."""
    if sys.stderr.isatty():
        return tqdm(iterable, dynamic_ncols=True, **arguments)
    return tqdm(iterable, file=_log, ncols=100, mininterval=0.5, **arguments)


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
        'Search on a Dask cluster: its scheduler, such as "tcp://host:8786", a scheduler file *.json, or '
        '"local:4" for four workers on this machine. See docs/cluster.md.',
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


def define_opponent_flag() -> None:
    flags.DEFINE_string(
        "opponent",
        "",
        "Another opponent than the engine's softmax, by name: a person's games, such as "
        "games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling), a book, polyglot(file=book.bin), answers "
        "of the opening explorer, explorer(folder=answers), an engine, uci(r=40,top_k=8), or "
        "mixture(a=...,b=...) of them; see docs/opponents.md. --opponent_nodes and --top_k then say how we "
        "play out of book, and --r nothing.",
    )


def define_menu_flags(default: int | None, told: str) -> None:
    """Flags of what may be learned; `told` says what there is by default."""
    flags.DEFINE_integer(
        "menu",
        default,
        "How many of the analyst's best moves a book may choose among. 1: the best one, and of several best "
        f"moves one. 0: all of several best moves, as in the paper. {told}",
        lower_bound=0,
    )
    flags.DEFINE_float(
        "menu_window_cp", 100.0, "How much worse than the best move one of several may be, in centipawns."
    )


def chess_settings(
    player: int,
    opponent_r: float | Sequence[float],
    *,
    weights: Sequence[float] = (),
    evaluated: bool = False,
    menu: tuple[int, float] = (0, 100.0),
) -> PreparationSettings:
    """The settings that the flags describe; a wrong one is told before an engine is started.

    Args:
      player: who prepares.
      opponent_r: the opponent's temperature, in centipawns; of several, one is drawn for the whole game.
      weights: how often each of several is drawn; (): equally often.
      evaluated: stopped play must be valued by an engine's evaluation, not by roll-outs.
      menu: how many moves the book may choose among, and how much worse than the best they may be.
    """
    if evaluated and FLAGS.evaluation == "rollouts":
        raise ValueError("--evaluation: expected an engine's evaluation for --chess, got 'rollouts'")
    return PreparationSettings(
        player=player,
        penalty=FLAGS.penalty,
        opponent_temperature_cp=opponent_r,
        opponent_weights=weights,
        analyst_limit=_limit(FLAGS.analyst_nodes, FLAGS.analyst_movetime_ms),
        opponent_limit=_limit(FLAGS.opponent_nodes, FLAGS.opponent_movetime_ms),
        top_k=FLAGS.top_k,
        opponent_plays=FLAGS.opponent_plays,
        opponent_samples=FLAGS.opponent_samples,
        menu=menu[0],
        menu_window_cp=menu[1],
        max_plies=FLAGS.max_plies,
        fen=FLAGS.fen,
        evaluation=FLAGS.evaluation,
        scale_cp=FLAGS.scale_cp,
        calibration=FLAGS.calibration,
        rollout_epsilon=FLAGS.rollout_epsilon,
        seed=FLAGS.seed,
        # The flag of `define_opponent_flag`: other examples have others of that name.
        opponent=FLAGS.opponent if FLAGS.find_module_defining_flag("opponent") == __name__ else "",
    )


def score_name(settings: PreparationSettings, *, played: bool = False) -> str:
    """What the score of a book is: expected where games say so, and otherwise an opinion, with its owner.

    Args:
      settings: what the book was made by.
      played: whether games have been played for it, besides roll-outs.
    """
    if played or settings.evaluation == "rollouts":
        return "Expected score"
    return "Fitted score" if settings.evaluation == "calibrated" else "Analyst's score"


def score_note(settings: PreparationSettings, *, played: bool = False) -> str:
    """A line that says what such scores are not; no line for expected scores."""
    name = score_name(settings, played=played)
    if name == "Expected score":
        return ""
    what = "a fitted evaluation's" if name == "Fitted score" else "the analyst's evaluations"
    return (
        f"Scores are {what} of where lines leave the book, not results of games, which\n"
        'come out lower: see "What games score" in docs/chess.md.\n'
    )


def _limit(nodes: int, movetime_ms: int | None) -> SearchLimit:
    return SearchLimit(nodes=nodes) if movetime_ms is None else SearchLimit(movetime_ms=movetime_ms)


# -- engines ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Engines:
    """The analyst's and the opponent's engine; often one and the same."""

    analyst: StoredEngine
    opponent: StoredEngine
    _policies: dict[PreparationSettings, PreparationPolicies] = dataclasses.field(default_factory=dict)

    def policies(self, settings: PreparationSettings) -> PreparationPolicies:
        """`preparation_policies`, made once: an opponent may be a file of games, read and fitted."""
        if settings not in self._policies:
            self._policies[settings] = preparation_policies(settings, self.analyst, self.opponent)
        return self._policies[settings]

    @property
    def searches(self) -> int:
        """Searches made in this run, the rest having been in the store."""
        return sum(engine.searches for engine in self._distinct())

    @property
    def can_search(self) -> bool:
        """Whether there are engines, and not stored searches alone."""
        return all(engine.pool is not None for engine in self._distinct())

    def start_record(self) -> set[tuple[str, str, int, str]]:
        """A set that the store's keys of all that is asked for from now on go into."""
        record: set[tuple[str, str, int, str]] = set()
        for engine in self._distinct():
            engine.record = record
        return record

    @contextlib.contextmanager
    def progress(self, description: str) -> Iterator[Callable[[int, int], None]]:
        """A count of searches with their rate; how many are needed shows only level by level.

        Gives a function for `HistoryTree`'s progress.
        """
        with progress(description, "searches") as show:
            engines, before = self._distinct(), self.searches
            for engine in engines:
                engine.progress = lambda done, needed: show(self.searches - before)
            try:
                yield lambda level, histories: show(note=f"ply {level}, {histories} histories")
            finally:
                for engine in engines:
                    engine.progress = None

    def _distinct(self) -> list[StoredEngine]:
        return [self.analyst] + ([self.opponent] if self.opponent is not self.analyst else [])


def _pool(command: str, options: dict[str, str]) -> EnginePool | DaskEngine:
    """Engines on this machine, or on the cluster of --cluster."""
    if FLAGS.cluster is None:
        return EnginePool(command, workers=FLAGS.workers, options=options)
    if FLAGS.workers is not None:
        raise ValueError('--workers: expected none with --cluster, which has its own ("local:4" has 4)')
    pool = DaskEngine(command, FLAGS.cluster, options=options)
    for address, why in sorted(pool.refused.items()):
        print(f"Worker {address} is not used: {why}", file=sys.stderr)
    return pool


@contextlib.contextmanager
def engines() -> Iterator[Engines]:
    """The engines of the flags, or stored searches where no engine is to be had."""
    with contextlib.ExitStack() as stack:
        try:
            path = find_engine(FLAGS.engine)
        except EngineNotFoundError:
            named = ("engine", "opponent_engine", "engine_option", "opponent_option", "workers", "cluster")
            if any(FLAGS[name].value for name in named):
                raise  # stored searches are those of one engine as it was
            own = FLAGS["store"].present or os.path.exists(FLAGS.store)
            path = FLAGS.store if own else os.path.relpath(SHIPPED_STORE)
            store = stack.enter_context(EvaluationStore(path, read_only=True))
            if FLAGS.stored_engine is None and len(store.engines()) > 1:
                raise EngineError(
                    f"--stored_engine: expected one of {', '.join(map(repr, store.engines()))}, whose "
                    f"searches are in {path}, got none"
                ) from None
            stored = StoredEngine(store, engine_id=FLAGS.stored_engine)
            print(
                f"No engine found: using the stored searches of {stored.engine_id} in {path}. "
                "To search other positions, install Stockfish (Debian: apt-get install stockfish) or "
                "name an engine with --engine or $STOCKFISH."
            )
            yield Engines(stored, stored)
            return
        folder = os.path.dirname(FLAGS.store)
        if folder and not FLAGS["store"].present:
            os.makedirs(folder, exist_ok=True)
        store = stack.enter_context(EvaluationStore(FLAGS.store))

        def start(command: str, options: dict[str, str]) -> StoredEngine:
            pool = _pool(command, options)
            stack.callback(pool.close)
            return StoredEngine(store, pool)

        analyst = start(path, _options("engine_option"))
        opponent = analyst
        if FLAGS.opponent_engine is not None or FLAGS.opponent_option:
            command = find_engine(FLAGS.opponent_engine) if FLAGS.opponent_engine else path
            opponent = start(command, _options("opponent_option"))
        _warn_of_other_results()
        yield Engines(analyst, opponent)


def define_match_flags() -> None:
    flags.DEFINE_integer(
        "match_games", 100, "Games that the book is tried in, by the rules of chess. 0: none.", lower_bound=0
    )
    flags.DEFINE_integer(
        "match_seed", 0, "Seed of these games; they train nothing, whatever other seeds are.", lower_bound=0
    )


def match(
    description: str,
    book: Book,
    settings: PreparationSettings,
    engines: Engines,
    *,
    own: Any = None,
    against: PreparationSettings | None = None,
) -> MatchResult:
    """Plays the flags' match, with a bar of games and of what they need in searches.

    Args:
      description: of the bar.
      book: what is played, and then what `settings` say we play out of book.
      settings: what the book was made by.
      engines: whose searches.
      own: another policy for our play out of book.
      against: another opponent.
    """
    player, before, began = settings.player, engines.searches, time.monotonic()
    policies, other = engines.policies(settings), engines.policies(against or settings)
    with progress(description, "games", total=FLAGS.match_games) as show:

        def told(finished: int) -> None:
            made = engines.searches - before
            show(finished, f"{made} searches, {made / max(time.monotonic() - began, 1e-9):.0f}/s")

        return play_match(
            book,
            other.sigma[1 - player],
            policies.sigma[player] if own is None else own,
            FLAGS.match_games,
            seed=FLAGS.match_seed,
            min_probability=settings.min_probability,
            progress=told,
        )


def match_line(promised: float | None, result: MatchResult, without: MatchResult | None) -> str:
    """What a book promised and what it scored, in words."""
    scored = f"scored {result.score:.2f} +- {result.standard_error:.2f} in {len(result.games)} games"
    told = scored if promised is None else f"promised {promised:.2f}, {scored}"
    return told if without is None else f"{told}; without the book {without.score:.2f}"


def _warn_of_other_results() -> None:
    """Says which flags make a run that no other repeats."""
    causes = [
        f"--{flag}={name}={value}"
        for flag in ("engine_option", "opponent_option")
        for name, value in _options(flag).items()
        if name.lower() == "threads" and value != "1"
    ]
    causes += [f"--{flag}" for flag in ("opponent_movetime_ms", "analyst_movetime_ms") if FLAGS[flag].value]
    if causes:
        print(
            f"Not reproducible: with {' and '.join(causes)} searches differ from run to run, and so may "
            "everything that follows.",
            flush=True,
        )


def _options(flag: str) -> dict[str, str]:
    options = {}
    for text in FLAGS[flag].value or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ValueError(f'--{flag}: expected "Name=value", got {text!r}')
        options[name.strip()] = value.strip()
    return options


# -- many tasks ------------------------------------------------------------------------------------


def each_done(
    solve: Callable[[Any], Any], tasks: Sequence[Any], workers: int | None, unit: str
) -> Iterator[Any]:
    """solve(task) of every task, in the order in which they are done, with a bar.

    Args:
      solve: a function of a module's top level; tasks are sent to other processes.
      tasks: what it takes.
      workers: processes. None: one a core.
      unit: what the bar counts.
    """
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    with progress_bar(total=len(tasks), unit=f" {unit}") as bar:
        if workers <= 1:
            for task in tasks:
                yield solve(task)
                bar.update()
            return
        # Started anew, and not forked: solvers have threads of their own.
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
            try:
                waiting = [pool.submit(solve, task) for task in tasks]
                for done in concurrent.futures.as_completed(waiting):
                    yield done.result()
                    bar.update()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


# -- output ----------------------------------------------------------------------------------------


_made_folders: list[pathlib.Path] = []


def output_folder(path: str) -> pathlib.Path:
    """Makes the folder of --output_dir, before any work is done that could not be written.

    A run that fails removes it again if nothing is in it.
    """
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
