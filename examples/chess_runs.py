"""What examples about chess share: settings, engines with a store of searches, and matches, by the flags."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import parallel
from absl import flags

from precomp_games.chess import (
    Book,
    DaskEngine,
    EngineError,
    EngineNotFoundError,
    EnginePool,
    EvaluationStore,
    MatchResult,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    find_engine,
    play_match,
)
from precomp_games.chess import (
    Engines as Engines,
)

FLAGS = flags.FLAGS
_SHIPPED_STORE = pathlib.Path(__file__).parent / "data" / "evaluations.sqlite"


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


def define_export_store_flag() -> None:
    flags.DEFINE_string(
        "export_store", None, "Also write the searches that this run needs to a store of their own."
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


def settings(
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
        trusted=True,
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


def _pool(command: str, options: dict[str, str]) -> EnginePool | DaskEngine:
    """Engines on this machine, or on the cluster of --cluster."""
    if FLAGS.cluster is None:
        return EnginePool(command, workers=FLAGS.workers, options=options)
    parallel.check_workers(FLAGS.workers, FLAGS.cluster)
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
            path = FLAGS.store if own else os.path.relpath(_SHIPPED_STORE)
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


# -- matches ---------------------------------------------------------------------------------------


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
    games: int | None = None,
    seed: int | None = None,
) -> MatchResult:
    """Plays the flags' match, with a bar of games and of what they need in searches.

    Args:
      description: of the bar.
      book: what is played, and then what `settings` say we play out of book.
      settings: what the book was made by.
      engines: whose searches.
      own: another policy for our play out of book.
      against: another opponent.
      games: how many, in place of --match_games.
      seed: in place of --match_seed.
    """
    games = FLAGS.match_games if games is None else games
    player, before, began = settings.player, engines.searches, time.monotonic()
    policies, other = engines.policies(settings), engines.policies(against or settings)
    with common.progress(description, "games", total=games) as show:

        def told(finished: int) -> None:
            made = engines.searches - before
            show(finished, f"{made} searches, {made / max(time.monotonic() - began, 1e-9):.0f}/s")

        return play_match(
            book,
            other.sigma[1 - player],
            policies.sigma[player] if own is None else own,
            games,
            seed=FLAGS.match_seed if seed is None else seed,
            min_probability=settings.min_probability,
            progress=told,
        )


def match_line(promised: float | None, result: MatchResult, without: MatchResult | None) -> str:
    """What a book promised and what it scored, in words."""
    scored = f"scored {result.score:.2f} +- {result.standard_error:.2f} in {len(result.games)} games"
    told = scored if promised is None else f"promised {promised:.2f}, {scored}"
    return told if without is None else f"{told}; without the book {without.score:.2f}"
