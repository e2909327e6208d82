"""What settings mean on engines: what both sides play and may memorize, and what leaves are worth.

The opponent plays Softmax(cp / r) of a shallow search, or what its engine answers, or what a spec says. Our
side can memorize what a deep search, the analyst's, recommends. `Engines` are the two engines of a
preparation, with what is asked of them and how often.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import pyspiel

from precomp_games._support.results import Shown
from precomp_games._support.validation import each_of, public
from precomp_games.chess.books.book import Book
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, StoredEngine, check_scores
from precomp_games.chess.evaluation.policies import (
    ANSWERS,
    EngineEvaluation,
    EngineMenu,
    EnginePolicy,
    score_utility,
)
from precomp_games.chess.game import board_key
from precomp_games.chess.play.match import MatchResult, play_match
from precomp_games.chess.preparation.model_files import named_calibration, named_opponent
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.policies.leaf_values import RolloutValues
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.rows import PolicyLike


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
    value = leaf_value(settings, analyst)
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


def leaf_value(settings: PreparationSettings, analyst: EngineLike) -> EngineEvaluation | RolloutValues:
    """What stopped play is worth to White.

    Raises:
      ValueError: there is no such value of this engine, or the settings name a file and are not trusted.
    """
    if settings.evaluation == "rollouts":
        return RolloutValues(
            epsilon=settings.rollout_epsilon, delta=settings.rollout_delta, seed=settings.seed
        )
    utility = (
        named_calibration(settings)
        if settings.kind.fitted
        else score_utility(settings.evaluation, settings.scale_cp, analyst.engine_id)
    )
    return EngineEvaluation(analyst, settings.analyst_limit, settings.multipv, utility)


def check_opponent(settings: PreparationSettings, opponent: EngineLike | None) -> None:
    """Refuses an engine without scores for an opponent that plays by scores."""
    if opponent is not None and settings.opponent_plays not in ANSWERS:
        check_scores(opponent, "opponent")


@public
@dataclasses.dataclass
class Engines(Shown):
    """The analyst's and the opponent's engine; often one and the same.

    Attributes:
      known: Opponents by their spec, of which nothing is read again.
    """

    analyst: StoredEngine
    opponent: StoredEngine
    _policies: dict[PreparationSettings, PreparationPolicies] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )
    known: dict[str, PolicyLike] = dataclasses.field(default_factory=dict, init=False, repr=False)

    @public
    def policies(self, settings: PreparationSettings) -> PreparationPolicies:
        """`preparation_policies`, made once: an opponent may be a file of games, read and fitted."""
        key = dataclasses.replace(settings, penalty=1.0, distrust=0.0)  # which policies do not depend on
        if key not in self._policies:
            replies = self.known.get(settings.opponent)
            self._policies[key] = preparation_policies(settings, self.analyst, self.opponent, replies=replies)
        return self._policies[key]

    @public
    def misfits(self, settings: PreparationSettings) -> list[str]:
        """Lines that say where a fitted evaluation was fitted to something else than these settings."""
        if not settings.kind.fitted:
            return []
        value = self.policies(settings).leaf_value
        return list(value.utility.misfits(settings, self.analyst.engine_id))

    @property
    def ids(self) -> tuple[str, str]:
        """The identities of both."""
        return self.analyst.engine_id, self.opponent.engine_id

    @property
    def searches(self) -> int:
        """How many searches have been made; all others were in the store."""
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

    @public
    def export(
        self,
        path: str | os.PathLike[str],
        record: Annotated[Iterable[tuple[str, str, int, str]], each_of(tuple)],
    ) -> None:
        """Writes the searches that a record names to a store of their own."""
        self.analyst.store.export(path, keys=sorted(record))

    @public
    def match(
        self,
        book: Book,
        settings: PreparationSettings,
        games: int,
        *,
        seed: int | Sequence[int] = 0,
        own: Any = None,
        against: PreparationSettings | None = None,
    ) -> MatchResult:
        """Plays a match of a book.

        Args:
          book: what is played, and then what `settings` say we play out of book.
          settings: what the book was made by.
          games: how many.
          seed: of the games; they train nothing, whatever other seeds are.
          own: another policy for our play out of book.
          against: settings with another opponent.

        Raises:
          ValueError, EngineError: as `play_match`.
        """
        player = settings.player
        policies, other = self.policies(settings), self.policies(against or settings)
        return play_match(
            book,
            other.sigma[1 - player],
            policies.sigma[player] if own is None else own,
            games,
            seed=seed,
            min_probability=settings.min_probability,
        )

    def _distinct(self) -> list[StoredEngine]:
        return [self.analyst] + ([self.opponent] if self.opponent is not self.analyst else [])
