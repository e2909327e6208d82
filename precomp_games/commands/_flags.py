"""Flags that several commands have: engines and settings of a preparation, what may be learned, matches.

Each function gives flags to the `FlagValues` of a command, or to absl's global ones; help shows them among
the caller's own. `settings_of` makes settings of them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from precomp_games.chess.engines.searches import MAX_LIMIT, MAX_MULTIPV, SearchLimit
from precomp_games.chess.evaluation.policies import PLAYS
from precomp_games.chess.preparation.settings import EVALUATIONS, PreparationSettings
from precomp_games.cluster.client import cluster_client
from precomp_games.tree.base_game import named_game as named_game

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them


class Define:
    """Absl's functions that define flags, for one command: `Define(own).string("name", None, "help")`."""

    def __init__(self, own: flags.FlagValues) -> None:
        self._own = own

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """What absl calls DEFINE_ and the kind."""
        define: Callable[..., Any] = getattr(flags, f"DEFINE_{kind}")
        return functools.partial(define, flag_values=self._own)


CLUSTER = (
    'a Dask cluster: its scheduler, such as "tcp://host:8786", a scheduler file *.json, or "local:4" for '
    "four workers on this machine. See docs/cluster.md."
)
"""What --cluster may be, for its help."""
STORE = "output/evaluations.sqlite"
"""Where searches are kept by default."""


def check_workers(workers: int | None, cluster: str | None) -> None:
    """Refuses a --cluster that is none, and --workers beside it."""
    if cluster is not None:
        cluster_client(cluster)  # which begins nothing
        if workers is not None:
            raise ValueError('--workers: expected none with --cluster, which has its own ("local:4" has 4)')


def numbers(flag: Any, allowed: str, fits: Callable[[Any], bool], kind: type = float) -> list[Any]:
    """The numbers that a flag lists, in its order.

    Args:
      flag: a list, as an entry of `FlagValues` or as what defines a global flag returns.
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


def positive_numbers(flag: Any) -> list[float]:
    """`numbers` greater than 0."""
    return numbers(flag, "positive numbers separated by commas", lambda value: 0.0 < value < math.inf)


def define_memory_flag(own: flags.FlagValues) -> None:
    """How much memory the process may take."""
    define = Define(own)
    define.string(
        "max_memory",
        None,
        "Give up, and say what to change, before the process takes more than this, such as 2GB. "
        "Default: four fifths of the machine's.",
    )


def define_minutes_flag(own: flags.FlagValues, default: float | None = None) -> None:
    """How long the command may take; whoever has this flag ends by it (`run_command`)."""
    Define(own).float(
        "minutes",
        default,
        "End after so long, all in all, with what there is by then. What there is no time for is done in "
        "part, or on a sample that is drawn with --seed, and it is said which. Searches are kept: the same "
        "command goes on from there.",
        lower_bound=0.0,
    )


def define_engine_flags(own: flags.FlagValues) -> None:
    """The engines, and where their searches are kept."""
    define = Define(own)
    define.string(
        "engine",
        None,
        'UCI engine, a path or a command, with its arguments if it takes any: "gnuchess --uci". Default: '
        "$STOCKFISH, stockfish on PATH, /usr/games/stockfish.",
    )
    define.multi_string("engine_option", [], 'UCI option of the engine, "Name=value"; may be repeated.')
    define.string(
        "opponent_engine", None, "UCI engine of the opponent, as --engine, where it is another one."
    )
    define.multi_string(
        "opponent_option",
        [],
        'UCI option of the opponent\'s engine, "Name=value"; may be repeated. Those that limit its strength '
        "(UCI_LimitStrength with UCI_Elo, Skill Level) need --opponent_plays=bestmove or game, since they "
        "leave its scores as they are.",
    )
    define.integer("workers", None, "Engine processes. Default: one a core.", lower_bound=1)
    define.string("cluster", None, f"Search on {CLUSTER}")
    define.string(
        "store",
        STORE,
        "Where searches are kept: each is made once, ever. Shared by all runs.",
    )
    define.string(
        "stored_engine", None, "Without an engine: whose stored searches to use, where there are several."
    )


def define_chess_flags(own: flags.FlagValues) -> None:
    """The engines, and how they search, the penalty, and how positions are evaluated."""
    define_engine_flags(own)
    define = Define(own)
    define.enum(
        "opponent_plays",
        "softmax",
        list(PLAYS),
        "How the opponent chooses its move: at random by its scores, the move that its engine answers, or "
        "what its engine answers in games that are played to it as match programs do.",
    )
    define.integer(
        "opponent_samples",
        20,
        "With --opponent_plays=bestmove and options that make the engine draw its moves, or "
        "--opponent_plays=game and a clock: how often it is asked in each position.",
        lower_bound=1,
    )
    define.float("penalty", 1e-4, "Memory penalty lambda: utility in [0, 1] that a position costs.")
    limit: dict[str, Any] = {"lower_bound": 1, "upper_bound": MAX_LIMIT}
    define.integer("opponent_nodes", 1000, "Nodes a move of the opponent.", **limit)
    define.integer(
        "own_nodes", None, "Nodes a move of our own play out of book. Default: the opponent's.", **limit
    )
    define.bool("own_repeats", True, "Whether our own play may repeat positions while it is ahead.")
    define.integer("analyst_nodes", 5000, "Nodes a move of the book.", **limit)
    define.integer(
        "opponent_movetime_ms",
        None,
        "Milliseconds a move of the opponent, in place of nodes (not reproducible).",
        **limit,
    )
    define.integer(
        "analyst_movetime_ms",
        None,
        "Milliseconds a move of the book, in place of nodes (not reproducible).",
        **limit,
    )
    define.integer(
        "top_k",
        None,
        "Moves considered in a position (MultiPV). Default: 2; with --opponent_plays=game, which has no use "
        "for it, 1: we then search as match programs do, too.",
        lower_bound=1,
        upper_bound=MAX_MULTIPV,
    )
    define.integer("max_plies", 100, "Half-moves until a draw is declared.", lower_bound=1)
    define.string("fen", "", "Start position. Default: the usual one.")
    define.enum(
        "evaluation",
        "linear",
        list(EVALUATIONS),
        "What play after the book is worth: linear in centipawns, won from a threshold on, by the "
        "engine's win-draw-loss model, the mean of games that both sides' engines play on, or by a function "
        "of the analyst's score that was fitted to such games.",
    )
    define.string(
        "calibration",
        "",
        "For calibrated: a file of `precomp-games calibrate`, or people, the fit of the package to "
        "games of grandmasters by 5000 nodes, or people_20000, by 20000, or engines, to games of Stockfish "
        "15.1 under a clock by 50000. Default: its fit for Stockfish 15.1 with 1000 and 5000 nodes.",
    )
    define.float("scale_cp", 400.0, "Centipawns of a sure win, for linear and threshold.")
    define.float(
        "rollout_epsilon", 0.2, "What roll-outs may cost in value; their number grows as its -2nd power."
    )
    define.integer("seed", 0, "Seed of games that say what positions are worth.", lower_bound=0)


def define_opponent_flag(own: flags.FlagValues) -> None:
    """Another opponent than the engine's."""
    define = Define(own)
    define.string(
        "opponent",
        "",
        "Another opponent than the engine's softmax, by name: a person's games, such as "
        "games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling), a book, polyglot(file=book.bin), an "
        "engine, uci(r=40,top_k=8), or mixture(a=...,b=...) of them; see "
        "docs/opponents.md. --opponent_nodes and --top_k then say how we play out of book, and --r nothing.",
    )


def define_export_store_flag(own: flags.FlagValues) -> None:
    """Where the searches of a run are written once more."""
    define = Define(own)
    define.string(
        "export_store", None, "Also write the searches that this run needs to a store of their own."
    )


def define_menu_flags(own: flags.FlagValues, default: int | None, by_default: str) -> None:
    """What may be learned; `by_default` is a sentence that says what there is by default."""
    define = Define(own)
    define.integer(
        "menu",
        default,
        "How many of the analyst's best moves a book may choose among. 1: the best one, and of several best "
        f"moves one. 0: all of several best moves, as in the paper. {by_default}",
        lower_bound=0,
    )
    define.float(
        "menu_window_cp", 100.0, "How much worse than the best move one of several may be, in centipawns."
    )


def define_match_flags(own: flags.FlagValues) -> None:
    """How many games a book is tried in, and by which seed."""
    define = Define(own)
    define.integer(
        "match_games", 100, "Games that the book is tried in, by the rules of chess. 0: none.", lower_bound=0
    )
    define.integer(
        "match_seed", 0, "Seed of these games; they train nothing, whatever other seeds are.", lower_bound=0
    )


def settings_of(
    given: flags.FlagValues,
    player: int,
    opponent_r: float | Sequence[float],
    *,
    weights: Sequence[float] = (),
    evaluated: bool = False,
    menu: tuple[int, float] = (0, 100.0),
    opponent: str = "",
) -> PreparationSettings:
    """The settings that flags describe; a wrong one is an error before an engine is started.

    Args:
      given: with the flags of `define_chess_flags`.
      player: who prepares.
      opponent_r: the opponent's temperature, in centipawns; of several, one is drawn for the whole game.
      weights: how often each of several is drawn; (): equally often.
      evaluated: stopped play must be valued by an engine's evaluation, not by roll-outs.
      menu: how many moves the book may choose among, and how much worse than the best they may be.
      opponent: another opponent, by name, which may open and run what it names; "": the engine's.
    """
    if evaluated and given.evaluation == "rollouts":
        raise ValueError("--evaluation: expected an engine's evaluation for --chess, got 'rollouts'")
    return PreparationSettings(
        player=player,
        penalty=given.penalty,
        opponent_temperature_cp=opponent_r,
        opponent_weights=weights,
        analyst_limit=limit_of(given.analyst_nodes, given.analyst_movetime_ms),
        opponent_limit=limit_of(given.opponent_nodes, given.opponent_movetime_ms),
        own_limit=None if given.own_nodes is None else SearchLimit(nodes=given.own_nodes),
        own_repeats=given.own_repeats,
        top_k=top_k_of(given),
        opponent_plays=given.opponent_plays,
        opponent_samples=given.opponent_samples,
        menu=menu[0],
        menu_window_cp=menu[1],
        max_plies=given.max_plies,
        fen=given.fen,
        evaluation=given.evaluation,
        scale_cp=given.scale_cp,
        calibration=given.calibration,
        rollout_epsilon=given.rollout_epsilon,
        seed=given.seed,
        opponent=opponent,
        trusted=True,
    )


_OVERRIDDEN: dict[str, tuple[str, ...]] = {
    "penalty": ("penalty",),
    "opponent_temperature_cp": ("r",),
    "analyst_limit": ("analyst_nodes", "analyst_movetime_ms"),
    "opponent_limit": ("opponent_nodes", "opponent_movetime_ms"),
    "own_limit": ("own_nodes",),
    "own_repeats": ("own_repeats",),
    "top_k": ("top_k",),
    "opponent_plays": ("opponent_plays",),
    "opponent_samples": ("opponent_samples",),
    "menu_window_cp": ("menu_window_cp",),
    "max_plies": ("max_plies",),
    "fen": ("fen",),
    "evaluation": ("evaluation",),
    "scale_cp": ("scale_cp",),
    "rollout_epsilon": ("rollout_epsilon",),
    "seed": ("seed",),
}
"""Which flags say otherwise than the settings of an earlier run, by what they say."""


def with_flags(
    settings: PreparationSettings, given: flags.FlagValues, said: PreparationSettings
) -> PreparationSettings:
    """The settings of an earlier run, but for what stands on the command line.

    What the earlier ones name is neither opened nor run (`PreparationSettings.trusted`): an opponent by its
    games is what lies in the run's folder.

    Args:
      settings: of the earlier run.
      given: the flags.
      said: the settings that these describe.
    """
    names = [
        name
        for name, each in _OVERRIDDEN.items()
        if any(flag in given and given[flag].present for flag in each)
    ]
    if "opponent_temperature_cp" in names:
        names.append("opponent_weights")
    if given["opponent"].present:
        names += ["opponent", "calibration", "trusted"]
    elif given["calibration"].present:
        names.append("calibration")
        if "opponent" not in settings.touches:  # so nothing but what the flag says is opened
            names.append("trusted")
    return dataclasses.replace(settings, **{name: getattr(said, name) for name in names})


def top_k_of(given: flags.FlagValues) -> int:
    """--top_k, or what it is by default."""
    top_k: int | None = given.top_k
    if top_k is None:
        return 1 if given.opponent_plays == "game" else 2
    return top_k


def limit_of(nodes: int, movetime_ms: int | None) -> SearchLimit:
    """The limit of two flags, of which the time counts where it is given."""
    return SearchLimit(nodes=nodes) if movetime_ms is None else SearchLimit(movetime_ms=movetime_ms)
