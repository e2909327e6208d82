"""From settings to policies: what a side plays by its engine and may memorize, and what leaves are worth."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyspiel

from precomp_games._support.arguments import public
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, check_scores
from precomp_games.chess.evaluation.policies import ANSWERS, EngineMenu, EnginePolicy
from precomp_games.chess.game import board_key
from precomp_games.chess.opponents.family import EngineFamily
from precomp_games.chess.opponents.family_values import FamilyEvaluation
from precomp_games.chess.preparation.model_files import named_opponent
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.policies.mixtures import MixturePolicy, drawn_once
from precomp_games.policies.rows import PolicyLike

_OWN_NODES = 1000  # that our own play is taken to search where its limit is another one


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
    settings: PreparationSettings,
    analyst: ScoringEngine,
    opponent: EngineLike | None = None,
    *,
    replies: PolicyLike | None = None,
) -> PreparationPolicies:
    """The policies and values that one side prepares with.

    Args:
      settings: see there.
      analyst: searches for the book, for evaluations and, at the opponent's limit, for our own play.
      opponent: searches for the opponent; by default the analyst's engine.
      replies: what the opponent plays, where more is known of it than the settings say.

    Raises:
      ValueError: settings or engines that are none; `evaluation` "wdl" of an engine without a model.
    """
    check_opponent(settings, opponent)
    book = book_choice(settings, analyst)
    play = modelled_play(settings, settings.player, analyst)
    if replies is None:
        replies = modelled_play(settings, 1 - settings.player, opponent or analyst)
    value = settings.kind.leaf_value(settings, analyst)
    if settings.kind.fitted and isinstance(replies, EngineFamily) and drawn_once(replies):
        limit = settings.own_limit or settings.opponent_limit
        value = FamilyEvaluation(
            *(analyst, settings.analyst_limit, settings.multipv, value.utility),
            *(replies, settings.player, limit.nodes or _OWN_NODES),
        )
    if settings.player == 0:
        return PreparationPolicies((book, None), (play, replies), value)
    return PreparationPolicies((None, book), (replies, play), value)


def modelled_play(settings: PreparationSettings, player: int, engine: EngineLike) -> PolicyLike:
    """What a player computes during play by its engine, as the preparation of one side has it."""
    game = settings.game()
    if player != settings.player:
        return opponents_play(settings, game, engine)
    limit = settings.own_limit or settings.opponent_limit
    temperature, repeats = settings.own_temperature_cp, settings.own_repeats
    return EnginePolicy(game, engine, limit, temperature, settings.top_k, repeats=repeats)


def opponents_play(settings: PreparationSettings, game: pyspiel.Game, engine: EngineLike) -> PolicyLike:
    """What the opponent plays over `game`; several opponents are a `MixturePolicy`."""
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


def book_choice(settings: PreparationSettings, analyst: EngineLike) -> EnginePolicy | EngineMenu:
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


def check_opponent(settings: PreparationSettings, opponent: EngineLike | None) -> None:
    """Refuses an engine without scores for an opponent that plays by scores."""
    if opponent is not None and settings.opponent_plays not in ANSWERS:
        check_scores(opponent, "opponent")
