"""Preparing one side against one opponent, or both: from engine settings to a history tree, and to a book.

The opponent plays Softmax(cp / r) of a shallow search, or what its engine answers, or what a spec says, such
as the games of a person (`precomp_games.chess.opponents`). Our side can memorize what
a deep search, the analyst's, recommends. Where it stops, play is worth what the analyst's score of the
position says, or what roll-outs of both sides' shallow policies say.

Source: `precomputation`, section 5 and appendix, "Experimental Details": k = 2 moves a position, L = 100
half-moves, the preparing side's policies at r = 1e-6.

Deviations: node limits in place of move times, so that results reproduce; positions are searched without
their history, and no draw by repetition or by the fifty-move rule ends a game before L (`ChessGame`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import chess
import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import (
    ArgumentError,
    Ge,
    Gt,
    Le,
    Lt,
    NonNegativeFloat,
    NonNegativeInt,
    Player,
    PositiveFloat,
    PositiveInt,
    one_of,
    public,
)
from precomp_games._support.memory import Memory
from precomp_games._support.messages import plain_text
from precomp_games.chess.engines.pool import SearchLimit
from precomp_games.chess.engines.searches import MAX_MULTIPV, Multipv, SomeSamples
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, check_scores
from precomp_games.chess.evaluation.policies import (
    SAMPLES,
    EngineEvaluation,
    EngineMenu,
    EnginePolicy,
    Plays,
    check_opponents,
)
from precomp_games.chess.evaluation.scores import Scale, ScoreUtility, score_utility
from precomp_games.chess.game import RULES_OF_CHESS, Plies, board_key, check_fen, position_key
from precomp_games.chess.preparation.kept import KeptMoves, check_kept
from precomp_games.chess.preparation.model_files import (
    ModelFiles,
    named_calibration,
    named_opponent,
    named_things,
)
from precomp_games.policies.leaf_values import RolloutValues
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.rows import LeastProbability, PolicyLike
from precomp_games.policies.specs import check_spec
from precomp_games.tree.expansion.options import Price, Progress, Truncation
from precomp_games.tree.history_tree import HistoryTree

__all__ = [
    "EVALUATIONS",
    "PreparationPolicies",
    "PreparationSettings",
    "equilibrium_tree",
    "kept_entries",
    "preparation_policies",
    "preparation_tree",
]

EVALUATIONS = ("linear", "threshold", "wdl", "calibrated", "rollouts")
"""What stopped play may be valued by: see `score_utility`, `CalibratedUtility` and `RolloutValues`."""

_ANALYST_LIMIT = SearchLimit(nodes=5000)
_OPPONENT_LIMIT = SearchLimit(nodes=1000)


@public
@dataclasses.dataclass(frozen=True)
class PreparationSettings:
    """What is prepared, against whom, and how it is valued.

    Attributes:
      player: Whose book, 0 White, 1 Black.
      penalty: lambda, utility in [0, 1] that a memorized history costs.
      opponent_temperature_cp: r of the opponent. Several: one of these opponents is drawn for the whole game
        (`MixturePolicy`).
      own_temperature_cp: r of the book and of our own play.
      analyst_limit, opponent_limit: Searches behind the book and behind play; also our own play's.
      top_k: Moves a position.
      opponent_plays, opponent_samples: How the opponent chooses its move, see `EnginePolicy`. "bestmove" has
        use for neither a temperature nor a number of moves.
      menu: How many of the analyst's best moves the book may choose among. 1: the best one, and of several
        best moves one. 0: the paper's sigma_pre, which plays them all and must know them all.
      menu_window_cp: How much worse than the best move, in centipawns, one of several may be.
      max_plies: L.
      fen: The start position, "" for the usual one.
      evaluation: What stopped play is worth: one of `EVALUATIONS`.
      scale_cp: Centipawns of a sure win.
      rollout_epsilon, rollout_delta, seed: For "rollouts", see `RolloutValues`.
      min_probability: Less likely moves are not looked at.
      calibration: For "calibrated", a file of `save_calibration`; "" for the fit that is shipped.
      opponent_weights: How often each of several opponents is drawn; (): equally often.
      opponent: Another opponent, as a spec (see `opponent_policy`). The other fields that are named after
        the opponent then say what our own play is like, and nothing of it. "": the engine's softmax.
      price: What the penalty is paid for: "infosets", each history, or "positions", each position, however it
        is reached. A position then has one move: of several best ones, the first that the analyst reports.
      trusted: Whether `opponent` and `calibration` may name files and engines, which are then opened and run
        (see `make_policy`). False of settings that come from a file; `as_dict` leaves it out.
      files: What these files came to, where `read_preparation` found it in the folder; it is played where
        settings are not trusted. `as_dict` leaves it out as well.
    """

    player: Player = 0
    penalty: PositiveFloat = 1e-4
    opponent_temperature_cp: float | Sequence[float] = 10.0
    own_temperature_cp: PositiveFloat = 1e-6
    analyst_limit: SearchLimit = _ANALYST_LIMIT
    opponent_limit: SearchLimit = _OPPONENT_LIMIT
    top_k: Multipv = 2
    opponent_plays: Plays = "softmax"
    opponent_samples: SomeSamples = SAMPLES
    menu: Annotated[int, Ge(0), Le(MAX_MULTIPV)] = 0
    menu_window_cp: NonNegativeFloat = 100.0
    max_plies: Plies = 100
    fen: str = ""
    evaluation: Annotated[str, one_of(EVALUATIONS)] = "linear"
    scale_cp: Scale = 400.0
    rollout_epsilon: PositiveFloat = 0.2
    rollout_delta: Annotated[float, Gt(0.0), Lt(1.0)] = 0.05
    seed: NonNegativeInt = 0
    min_probability: LeastProbability = 1e-9
    calibration: str = ""
    opponent_weights: Sequence[float] = ()
    opponent: str = ""
    price: Price = "infosets"
    trusted: bool = False
    files: ModelFiles | None = None

    def __post_init__(self) -> None:
        """Checks the rest, so that a wrong value is told before an engine is started.

        Raises:
          ValueError: names the setting, what was expected, and what came.
        """
        temperatures, weights = check_opponents(
            self.opponent_temperature_cp, self.opponent_weights, self.opponent_plays
        )
        object.__setattr__(self, "opponent_temperature_cp", temperatures)
        object.__setattr__(self, "opponent_weights", weights)
        check_fen(self.fen)
        if self.opponent != "":
            check_spec(self.opponent, "opponent")

    def game(self) -> pyspiel.Game:
        """The base game."""
        return pyspiel.load_game("python_chess", {"fen": self.fen, "max_plies": self.max_plies})

    def played_game(self) -> pyspiel.Game:
        """The same game by the rules of chess: what is scored, and of which a book sees `max_plies`."""
        return pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "fen": self.fen})

    @property
    def multipv(self) -> int:
        """Lines of the analyst's searches: one search of a position serves its menu and its evaluation."""
        return max(self.top_k, self.menu)

    @public
    def opponent_name(self, engine_id: str) -> str:
        """Who the opponent is, in words: an engine, its limit, and how it plays; or the spec."""
        if self.opponent:
            return self.opponent_play
        return plain_text(f"{engine_id} ({self.opponent_limit}, {self.opponent_play})")

    @property
    def opponent_play(self) -> str:
        """How the opponent plays, in words."""
        if self.opponent:
            return plain_text(self.opponent)
        if self.opponent_plays == "bestmove":
            return "the move it answers"
        last = " of what it reports last" if self.opponent_plays == "last_lines" else ""
        each = ", ".join(f"{r:g}" for r in self.opponent_temperatures_cp)
        shares = ", ".join(f"{w:g}" for w in self.opponent_weights)
        drawn = f", drawn as {shares}" if shares else ", drawn once per game" if "," in each else ""
        return f"r = {each} cp{last}{drawn}"

    @property
    def opponent_temperatures_cp(self) -> tuple[float, ...]:
        """R of each opponent; of one, where there are not several."""
        given = self.opponent_temperature_cp
        return tuple(given) if isinstance(given, Sequence) else (given,)

    @property
    def touches(self) -> dict[str, str]:
        """What names files or engines, by field: opened and run where settings are trusted."""
        return named_things(self)

    def as_dict(self) -> dict[str, Any]:
        """Settings as JSON has them, limits as text; whoever reads them says whether they are trusted."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del values["trusted"], values["files"]
        return {k: str(v) if isinstance(v, SearchLimit) else v for k, v in values.items()}


@dataclasses.dataclass(frozen=True)
class PreparationPolicies:
    """What settings mean on an engine, over `settings.game()`.

    Attributes:
      sigma_pre: What players 0 and 1 can memorize, a policy or a menu; None for the opponent.
      sigma: What they compute during play; several opponents are a `MixturePolicy`.
      leaf_value: What stopped play is worth to player 0: an `EngineEvaluation`, or `RolloutValues`.
    """

    sigma_pre: tuple[Any, Any]
    sigma: tuple[PolicyLike, PolicyLike]
    leaf_value: Any


@public
def preparation_policies(
    settings: PreparationSettings, analyst: ScoringEngine, opponent: EngineLike | None = None
) -> PreparationPolicies:
    """The policies and values that one side prepares with.

    Args:
      settings: see there.
      analyst: searches for the book, for evaluations and, at the opponent's limit, for our own play.
      opponent: searches for the opponent; by default the analyst's engine.

    Raises:
      ValueError: settings or engines that are none; `evaluation` "wdl" of an engine without a model.
    """
    _check_opponent(settings, opponent)
    book = _book_choice(settings, analyst)
    play = modelled_play(settings, settings.player, analyst)
    replies = modelled_play(settings, 1 - settings.player, opponent or analyst)
    value = _leaf_value(settings, analyst)
    if settings.player == 0:
        return PreparationPolicies((book, None), (play, replies), value)
    return PreparationPolicies((None, book), (replies, play), value)


def modelled_play(settings: PreparationSettings, player: int, engine: EngineLike) -> PolicyLike:
    """What a player computes during play by its engine, as the preparation of one side has it."""
    game = settings.game()
    if player != settings.player:
        return _opponents_play(settings, game, engine)
    return EnginePolicy(game, engine, settings.opponent_limit, settings.own_temperature_cp, settings.top_k)


def _opponents_play(settings: PreparationSettings, game: pyspiel.Game, engine: EngineLike) -> PolicyLike:
    if settings.opponent:
        return named_opponent(settings, game, engine)
    each = [
        EnginePolicy(
            game,
            engine,
            settings.opponent_limit,
            temperature,
            settings.top_k,
            plays=settings.opponent_plays,
            samples=settings.opponent_samples,
        )
        for temperature in settings.opponent_temperatures_cp
    ]
    if len(each) == 1:
        return each[0]
    return MixturePolicy(each, settings.opponent_weights or None, position_key=board_key)


def _book_choice(settings: PreparationSettings, analyst: EngineLike) -> EnginePolicy | EngineMenu:
    """What can be memorized."""
    limit, lines = settings.analyst_limit, settings.multipv
    if settings.menu == 0:
        return EnginePolicy(settings.game(), analyst, limit, settings.own_temperature_cp, lines)
    # One move is the best one: others only where they are as good.
    several = settings.menu > 1
    alike = 1 if settings.price == "positions" else lines
    return EngineMenu(
        analyst,
        limit,
        lines,
        settings.menu if several else alike,
        settings.menu_window_cp if several else 0.0,
        settings.max_plies,
    )


@public
def preparation_tree(
    settings: PreparationSettings,
    analyst: ScoringEngine,
    opponent: EngineLike | None = None,
    progress: Progress | None = None,
    *,
    policies: PreparationPolicies | None = None,
    truncate: Truncation = "values",
    keep: Mapping[str, chess.Move] | None = None,
    announce: Callable[[int, int], Any] | None = None,
    max_memory: Memory | None = None,
) -> HistoryTree:
    """Expands the tree of Algorithm 1 for one side.

    With a price per position, histories share everything by `board_key`.

    Args:
      settings: see there.
      analyst: see `preparation_policies`.
      opponent: see there.
      progress: called after each level with (level, histories so far).
      policies: of `preparation_policies`, where they have been made already.
      truncate: see `HistoryTree.from_game`.
      keep: a book that is there already: the move by the EPD of the position (`board_key`). There it is what
        can be memorized, and it costs nothing: the tree has weight 0 there. What solvers are told of it is
        `keep=kept_entries(tree, player)`.
      announce: called with (positions, games from each) before roll-outs begin.
      max_memory: see `HistoryTree.from_game`.

    Raises:
      ValueError, EngineError, StoreError: settings, the engine or the store are not what they should be.
    """
    if policies is None:
        policies = preparation_policies(settings, analyst, opponent)
    else:
        _check_opponent(settings, opponent)
    how: dict[str, Any] = {"price": settings.price}
    if keep is not None:
        book = policies.sigma_pre[settings.player]
        known = KeptMoves(book, check_kept(keep, settings.player))
        pre = (known, None) if settings.player == 0 else (None, known)
        policies, how["weight"] = dataclasses.replace(policies, sigma_pre=pre), known.weight
    if settings.price == "positions":
        how["position_key"] = board_key
    if isinstance(policies.leaf_value, RolloutValues):
        value = dataclasses.replace(policies.leaf_value, announce=announce)
        policies = dataclasses.replace(policies, leaf_value=value)
    penalties = (settings.penalty, math.inf) if settings.player == 0 else (math.inf, settings.penalty)
    how |= {"truncate": truncate, "stop_value": "evaluate", "progress": progress, "max_memory": max_memory}
    return _tree(settings, policies, penalties, **how)


@public
def kept_entries(tree: HistoryTree, player: Player) -> npt.NDArray[np.int64]:
    """int64[k]: the entries of a tree that are known already, of `preparation_tree` with a book to keep.

    Raises:
      ValueError: an argument is not as above.
    """
    own = tree.entry_player == player
    return np.flatnonzero(own & (tree.infoset_weight[tree.entry_infoset] == 0.0))


@public
def equilibrium_tree(
    settings: PreparationSettings,
    analyst: EngineLike,
    opponent: EngineLike | None = None,
    progress: Progress | None = None,
    *,
    max_histories: PositiveInt = 50_000_000,
    max_memory: Memory | None = None,
) -> HistoryTree:
    """Expands the tree of the meta-game in which both sides prepare.

    Both play as the opponent does, at its limit and temperature, and may memorize what a search at the
    analyst's limit says: `settings.menu` and `own_temperature_cp` are both sides'. White has the engine
    `analyst`, Black `opponent`, and neither may be a weakened one, since books are read from scores.
    `settings.player` has no meaning here, and `settings.penalty` is both sides'. A player who stops is worth
    what sigma plays on to; evaluations, White's engine's, stand at the leaves, and end lines where stopping
    alone is better (`truncate="values"`).

    With `settings.menu` of 2 or more, no penalty ends a line on which both sides memorize: neither one's
    choices make it less likely, so there are as many lines as menus have entries, to the power of plies.
    Books then look `settings.max_plies` far, a few, and beyond that the game goes on by the rules of chess:
    leaves are evaluated, and not drawn.

    Args:
      settings: see there.
      analyst: White's engine.
      opponent: Black's; by default the analyst's.
      progress: called after each level with (level, histories so far).
      max_histories: see `HistoryTree.from_game`.
      max_memory: see there as well.

    Raises:
      ValueError, EngineError, StoreError: as `preparation_tree`; more histories than `max_histories`.
    """
    white, black = engines = (analyst, analyst if opponent is None else opponent)
    for engine, name in zip(engines, ("analyst", "opponent"), strict=True):
        check_scores(engine, name, otherwise="preparation_tree() prepares against what one answers")
    if settings.opponent:
        raise ArgumentError(
            "expected settings without an opponent of its own, since both sides prepare and play "
            f"as the engine does, got {settings.opponent!r}"
        )
    several = settings.menu > 1
    game = settings.played_game() if several else settings.game()
    both = PreparationPolicies(
        (_book_choice(settings, white), _book_choice(settings, black)),
        (_opponents_play(settings, game, white), _opponents_play(settings, game, black)),
        _leaf_value(settings, analyst),
    )
    return _tree(
        settings,
        both,
        (settings.penalty,) * 2,
        truncate="values",
        progress=progress,
        max_histories=max_histories,
        max_memory=max_memory,
        **({"game": game, "position_key": board_key} if several else {}),
    )


def _tree(
    settings: PreparationSettings, policies: PreparationPolicies, penalties: tuple[float, float], **how: Any
) -> HistoryTree:
    """The tree of these policies; `how` it is expanded is what `HistoryTree.from_game` is told besides."""
    told = {"game": settings.game(), "position_key": position_key} | how
    return HistoryTree.from_game(
        sigma_pre=policies.sigma_pre,
        sigma=policies.sigma,
        penalties=penalties,
        leaf_value=policies.leaf_value,
        min_probability=settings.min_probability,
        **told,
    )


def _check_opponent(settings: PreparationSettings, opponent: EngineLike | None) -> None:
    if opponent is not None and settings.opponent_plays != "bestmove":
        check_scores(opponent, "opponent")


def _leaf_value(settings: PreparationSettings, analyst: EngineLike) -> Any:
    """What stopped play is worth by these settings."""
    if settings.evaluation == "rollouts":
        return RolloutValues(
            epsilon=settings.rollout_epsilon, delta=settings.rollout_delta, seed=settings.seed
        )
    return EngineEvaluation(
        analyst, settings.analyst_limit, settings.multipv, _score_utility(settings, analyst)
    )


def _score_utility(settings: PreparationSettings, analyst: EngineLike) -> ScoreUtility:
    """What the analyst's scores are worth."""
    if settings.evaluation == "calibrated":
        return named_calibration(settings)
    return score_utility(settings.evaluation, settings.scale_cp, analyst.engine_id)
