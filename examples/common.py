"""What the examples share: flags for engines, one error line in place of a traceback, progress bars."""

from __future__ import annotations

import concurrent.futures
import contextlib
import csv
import dataclasses
import difflib
import logging
import math
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyspiel
from absl import app, flags
from tqdm import tqdm

from precomp_games import HistoryTree
from precomp_games.chess import (
    EngineError,
    EngineNotFoundError,
    EnginePool,
    EvaluationStore,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    StoreError,
    find_engine,
)
from precomp_games.chess.preparation import EVALUATIONS
from precomp_games.files import atomic_write
from precomp_games.policy_specs import policy_names

FLAGS = flags.FLAGS
SHIPPED_STORE = pathlib.Path(__file__).parent / "data" / "evaluations.sqlite"


def run(main: Callable[[Sequence[str]], None]) -> None:
    """Runs an example; what a user can put right is told in one line, with exit status 1."""

    def guarded(argv: Sequence[str]) -> None:
        # An interrupt can close the engines' event loop before it has seen them end; that is no news.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        if len(argv) > 1:
            _fail(f"expected flags only, got {' '.join(argv[1:])!r} (see --help)")
        try:
            main(argv)
        except (ValueError, EngineError, StoreError, OSError, pyspiel.SpielError) as error:
            lines = str(error).splitlines() or [repr(error)]
            _fail(lines[0])  # OpenSpiel lists every game that it knows
        except KeyboardInterrupt:
            kept = " (finished searches are in the store)" if "store" in FLAGS else ""
            _fail(f"interrupted{kept}", 130)

    app.run(guarded)


def _fail(message: str, status: int = 1) -> None:
    for folder in _made_folders:
        with contextlib.suppress(OSError):  # not empty: what has been finished stays
            folder.rmdir()
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)


# -- flags for any game ----------------------------------------------------------------------------


def load_game(text: str) -> pyspiel.Game:
    """OpenSpiel's load_game, without its list of all games where the name is wrong."""
    name = text.partition("(")[0]
    if name not in pyspiel.registered_names():
        near = difflib.get_close_matches(name, pyspiel.registered_names(), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"expected an OpenSpiel game such as kuhn_poker, got {text!r}{hint}")
    return pyspiel.load_game(text)


def define_game_flags() -> None:
    known = ", ".join(f"{name}({arguments})" for name, arguments in policy_names().items())
    flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string.")
    flags.DEFINE_string("sigma", "uniform", f"What players compute during play. Policies: {known}.")
    flags.DEFINE_string("sigma_pre", "cfr(iterations=300)", "What can be memorised; policies as for --sigma.")


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
        'UCI option of the opponent\'s engine, e.g. "Skill Level=5"; may be repeated.',
    )
    flags.DEFINE_integer("workers", None, "Engine processes. Default: one a core.", lower_bound=1)
    flags.DEFINE_string(
        "store",
        "output/evaluations.sqlite",
        "Where searches are kept: each is made once, ever. Shared by all runs.",
    )
    flags.DEFINE_float("penalty", 1e-4, "Memory penalty lambda: utility in [0, 1] that a position costs.")
    flags.DEFINE_integer("opponent_nodes", 1000, "Nodes a move of the opponent.", lower_bound=1)
    flags.DEFINE_integer("analyst_nodes", 5000, "Nodes a move of the book.", lower_bound=1)
    flags.DEFINE_integer(
        "opponent_movetime_ms",
        None,
        "Milliseconds a move of the opponent, in place of nodes (not reproducible).",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "analyst_movetime_ms",
        None,
        "Milliseconds a move of the book, in place of nodes (not reproducible).",
        lower_bound=1,
    )
    flags.DEFINE_integer("top_k", 2, "Moves considered in a position (MultiPV).", lower_bound=1)
    flags.DEFINE_integer("max_plies", 100, "Half-moves until a draw is declared.", lower_bound=1)
    flags.DEFINE_string("fen", "", "Start position. Default: the usual one.")
    flags.DEFINE_enum(
        "evaluation",
        "linear",
        list(EVALUATIONS),
        "What play after the book is worth: linear in centipawns, won from a threshold on, by the "
        "engine's win-draw-loss model, or the mean of games that both sides' engines play on.",
    )
    flags.DEFINE_float("scale_cp", 400.0, "Centipawns of a sure win, for linear and threshold.")
    flags.DEFINE_float(
        "rollout_epsilon", 0.2, "What roll-outs may cost in value; their number grows as its -2nd power."
    )
    flags.DEFINE_integer("seed", 0, "Seed of the roll-outs.", lower_bound=0)
    flags.DEFINE_string(
        "stored_engine", None, "Without an engine: whose stored searches to use, where there are several."
    )


def chess_settings(player: int, opponent_r: float) -> PreparationSettings:
    """The settings that the flags describe; a wrong one is told before an engine is started."""
    return PreparationSettings(
        player=player,
        penalty=FLAGS.penalty,
        opponent_temperature_cp=opponent_r,
        analyst_limit=_limit(FLAGS.analyst_nodes, FLAGS.analyst_movetime_ms),
        opponent_limit=_limit(FLAGS.opponent_nodes, FLAGS.opponent_movetime_ms),
        top_k=FLAGS.top_k,
        max_plies=FLAGS.max_plies,
        fen=FLAGS.fen,
        evaluation=FLAGS.evaluation,
        scale_cp=FLAGS.scale_cp,
        rollout_epsilon=FLAGS.rollout_epsilon,
        seed=FLAGS.seed,
    )


def _limit(nodes: int, movetime_ms: int | None) -> SearchLimit:
    return SearchLimit(nodes=nodes) if movetime_ms is None else SearchLimit(movetime_ms=movetime_ms)


# -- engines ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Engines:
    """The analyst's and the opponent's engine; often one and the same."""

    analyst: StoredEngine
    opponent: StoredEngine

    @property
    def searches(self) -> int:
        """Searches made in this run, the rest having been in the store."""
        return sum(engine.searches for engine in self._distinct())

    def start_record(self) -> set[tuple[str, str, int, str]]:
        """A set that the store's keys of all that is asked for from now on go into."""
        record: set[tuple[str, str, int, str]] = set()
        for engine in self._distinct():
            engine.record = record
        return record

    @contextlib.contextmanager
    def progress(self, description: str) -> Iterator[Callable[[int, int], None]]:
        """A bar of searches with rate and ETA (of those known to be needed; more follow level by level).

        Gives a function for `HistoryTree`'s progress.
        """
        with tqdm(desc=description, unit=" searches", disable=None, dynamic_ncols=True) as bar:
            engines = self._distinct()
            before = [engine.searches for engine in engines]
            state: dict[int, tuple[int, int]] = {}

            def on_progress(which: int, done: int, needed: int) -> None:
                state[which] = (done - before[which], needed - before[which])
                bar.n = sum(done for done, _ in state.values())
                bar.total = sum(needed for _, needed in state.values())
                bar.update(0)

            for which, engine in enumerate(engines):
                engine.progress = lambda done, needed, which=which: on_progress(which, done, needed)
            try:
                yield lambda level, histories: bar.set_postfix_str(f"ply {level}, {histories} histories")
            finally:
                for engine in engines:
                    engine.progress = None

    def _distinct(self) -> list[StoredEngine]:
        return [self.analyst] + ([self.opponent] if self.opponent is not self.analyst else [])


@contextlib.contextmanager
def engines() -> Iterator[Engines]:
    """The engines of the flags, or stored searches where no engine is to be had."""
    with contextlib.ExitStack() as stack:
        try:
            path = find_engine(FLAGS.engine)
        except EngineNotFoundError:
            named = ("engine", "opponent_engine", "engine_option", "opponent_option", "workers")
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
            pool = EnginePool(command, workers=FLAGS.workers, options=options)
            return StoredEngine(store, stack.enter_context(pool))

        analyst = start(path, _options("engine_option"))
        opponent = analyst
        if FLAGS.opponent_engine is not None or FLAGS.opponent_option:
            command = find_engine(FLAGS.opponent_engine) if FLAGS.opponent_engine else path
            opponent = start(command, _options("opponent_option"))
        yield Engines(analyst, opponent)


def _options(flag: str) -> dict[str, str]:
    options = {}
    for text in FLAGS[flag].value:
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
    with tqdm(total=len(tasks), unit=f" {unit}", disable=None, dynamic_ncols=True) as bar:
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
