"""From settings to policies on engines: both sides' play, the candidate moves, and leaf values.

The opponent plays Softmax(cp / r) of a shallow search, or its engine's move, or the policy of a spec. Our
side can memorize the moves that a deep search, the analyst's, recommends. `Engines` are the two engines of a
preparation, with the questions to them and their number.

An opponent may be a person's games or a book, and an evaluation may be a user's own fit. On another machine,
or later, those files are missing; and data read from a result must not open files. So `opponent.npz` beside
`result.json` contains the counts, as fitted, and the calibration, but no games (`ModelFiles`). A spec that
runs an engine of its own, `uci(engine=...)`, cannot be stored so: the user repeats it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.config import networks_named
from precomp_games._support.files import read_archive, write_archive
from precomp_games._support.results import Shown
from precomp_games.chess.data.book import Book
from precomp_games.chess.data.move_counts import CountsPolicy, MoveCounts, PolyglotCounts
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, StoredEngine, check_scores
from precomp_games.chess.game import board_key
from precomp_games.chess.model import calibration as fits
from precomp_games.chess.model import engine_policies, people_values
from precomp_games.chess.model.calibration import CalibratedUtility
from precomp_games.chess.model.engine_policies import EngineEvaluation, EngineMenu, EnginePolicy
from precomp_games.chess.model.human import HumanPolicy
from precomp_games.chess.model.opponents import opponent_policy
from precomp_games.chess.model.people_values import PeopleFit
from precomp_games.chess.model.saved_time import SavedTime
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.play.match import MatchResult, play_match
from precomp_games.policies.leaf_values import RolloutValues
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.rows import PolicyLike
from precomp_games.policies.specs import parsed_spec, touched


@dataclasses.dataclass(frozen=True)
class PreparationPolicies:
    """Policies and leaf values of a preparation, over `settings.game()`.

    Attributes:
      sigma_pre: Candidate moves of players 0 and 1, a policy or a menu; None for the opponent.
      sigma: Their policies during play; several opponents are a `MixturePolicy`.
      leaf_value: Value to player 0 where play leaves the book: an `EngineEvaluation`, or `RolloutValues`.
    """

    sigma_pre: tuple[Any, Any]
    sigma: tuple[PolicyLike, PolicyLike]
    leaf_value: Any


def by_player(player: int, own: Any, rival: Any) -> tuple[Any, Any]:
    """Return the pair for players 0 and 1, from one's own and the other's."""
    return (own, rival) if player == 0 else (rival, own)


def searched(
    policies: PreparationPolicies, game: pyspiel.Game, settings: PreparationSettings
) -> tuple[Any, ...]:
    """Return the first arguments of the best-first solvers."""
    return game, policies.sigma_pre, policies.sigma, settings.penalty, settings.player, policies.leaf_value


@public
def preparation_policies(
    settings: PreparationSettings,
    analyst: ScoringEngine,
    opponent: EngineLike | None = None,
    *,
    replies: PolicyLike | None = None,
) -> PreparationPolicies:
    """Return the policies and leaf values with which one side prepares.

    Args:
      settings: of the preparation.
      analyst: searches for the book, for evaluations and, at the opponent's limit, for our own play.
      opponent: searches for the opponent; by default the analyst's engine.
      replies: the opponent's policy, if a better model than the settings' is at hand.

    Raises:
      ValueError: `evaluation` "wdl" with an engine that has no such model.
    """
    check_opponent(settings, opponent)
    book = book_choice(settings, analyst)
    play = modelled_play(settings, settings.player, analyst)
    if replies is None:
        replies = modelled_play(settings, 1 - settings.player, opponent or analyst)
    value = leaf_value(settings, analyst)
    both = by_player(settings.player, book, None), by_player(settings.player, play, replies)
    return PreparationPolicies(*both, value)


def modelled_play(settings: PreparationSettings, player: int, engine: EngineLike) -> PolicyLike:
    """Return the policy of a player during play with its engine, as a preparation of one side models it."""
    game = settings.game()
    if player != settings.player:
        return opponents_play(settings, game, engine)
    if settings.of_people and settings.evaluation == "people" and networks_named():
        return HumanPolicy(game, settings.rating)
    limit = settings.own_limit or settings.opponent_limit
    temperature, repeats = settings.own_temperature_cp, settings.own_repeats
    return EnginePolicy(game, engine, limit, temperature, settings.top_k, repeats=repeats)


def opponents_play(settings: PreparationSettings, game: pyspiel.Game, engine: EngineLike) -> PolicyLike:
    """Return the opponent's policy over `game`; several opponents are a `MixturePolicy`."""
    if settings.opponent:
        if (files := _data_of(settings, "opponent")) is not None:
            return files.policy(game, engine)
        return opponent_policy(game, settings.opponent, engine, trusted=settings.trusted)
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
    """Return the policy or menu of candidate moves."""
    limit, lines = settings.analyst_limit, settings.multipv
    if settings.menu == 0:
        return EnginePolicy(settings.game(), analyst, limit, settings.own_temperature_cp, lines)
    # A menu of one is the best move: others only if they are equally good.
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
    """Return the leaf values: White's value of a position after the book.

    Raises:
      ValueError: the engine has no such value, or the settings name a file and are not trusted.
    """
    if settings.evaluation == "rollouts":
        return RolloutValues(
            epsilon=settings.rollout_epsilon, delta=settings.rollout_delta, seed=settings.seed
        )
    utility: engine_policies.ScoreUtility
    if settings.evaluation == "people":
        utility = named_people(settings).at(settings.speed, settings.rating)
    elif settings.kind.fitted:
        utility = named_calibration(settings)
    else:
        utility = engine_policies.score_utility(settings.evaluation, settings.scale_cp, analyst.engine_id)
    # Of thousands of evaluated positions, hundreds need a menu: one line errs less for the same work.
    lines = 1 if settings.evaluation == "people" and settings.menu > 1 else settings.multipv
    return EngineEvaluation(analyst, settings.analyst_limit, lines, utility)


def check_opponent(settings: PreparationSettings, opponent: EngineLike | None) -> None:
    """Raise ArgumentError for an engine without scores if the opponent plays by scores."""
    if opponent is not None and settings.opponent_plays not in engine_policies.ANSWERS:
        check_scores(opponent, "opponent")


@public
@dataclasses.dataclass
class Engines(Shown):
    """The analyst's and the opponent's engine; often the same.

    Attributes:
      known: Opponents by their spec, which are not read again.
    """

    analyst: StoredEngine
    opponent: StoredEngine
    _policies: dict[PreparationSettings, PreparationPolicies] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )
    known: dict[str, PolicyLike] = dataclasses.field(default_factory=dict, init=False, repr=False)

    @public
    def policies(self, settings: PreparationSettings) -> PreparationPolicies:
        """Return `preparation_policies`, made once: an opponent may be a file of games, read and fitted."""
        key = dataclasses.replace(settings, penalty=1.0, distrust=0.0)  # policies do not depend on these
        if key not in self._policies:
            replies = self.known.get(settings.opponent)
            self._policies[key] = preparation_policies(settings, self.analyst, self.opponent, replies=replies)
        return self._policies[key]

    @public
    def misfits(self, settings: PreparationSettings) -> list[str]:
        """Return lines on how these settings differ from those that the evaluation was fitted to."""
        if not settings.kind.fitted:
            return []
        value = self.policies(settings).leaf_value
        return list(value.utility.misfits(settings, self.analyst.engine_id))

    @property
    def ids(self) -> tuple[str, str]:
        """Identities of both engines."""
        return self.analyst.engine_id, self.opponent.engine_id

    @property
    def searches(self) -> int:
        """Number of searches made; other results were in the store."""
        return sum(engine.searches for engine in self._distinct())

    @property
    def can_search(self) -> bool:
        """Return whether new searches are possible, and not only stored ones."""
        return all(engine.pool is not None for engine in self._distinct())

    def start_record(self) -> set[tuple[str, str, int, str]]:
        """Return a set that collects the store's keys of all searches asked for from now on."""
        record: set[tuple[str, str, int, str]] = set()
        for engine in self._distinct():
            engine.record = record
        return record

    @public
    def export(
        self,
        path: str | os.PathLike[str],
        record: Annotated[Iterable[tuple[str, str, int, str]], checks.each_of(tuple)],
    ) -> None:
        """Write the searches that a record names to a store of their own."""
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
        """Play a match of a book.

        Args:
          book: the book; out of book our side plays as `settings` say.
          settings: the settings of the book's preparation.
          games: number of games.
          seed: of the games, which are independent of training games with any seed.
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


MODEL_FILE = "opponent.npz"
"""The file beside a result whose settings name files."""


_FORMAT = "precomp-games opponent 1"
_COUNTS = "counts"  # stands in place of a file's spec
_ARRAYS = {"games": ("keys", "actions", "weights"), "polyglot": ("entries",)}  # by kind of source
_Source = MoveCounts | PolyglotCounts
_MOST_SOURCES = 64
_MOST_GAMES = 1e15
_PROBLEMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclasses.dataclass(frozen=True, eq=False)
class ModelFiles:
    """The data of the files that settings name.

    Attributes:
      named: the settings' values that name files, by field: "opponent" and "calibration".
      opponent: the opponent's spec as a dictionary, with counts in place of files.
      sources: the counts.
      calibration: an evaluation's fit, or fits to people's games; None if settings name no file.
    """

    named: Mapping[str, str]
    opponent: Mapping[str, Any]
    sources: tuple[_Source, ...]
    calibration: CalibratedUtility | PeopleFit | None

    @classmethod
    def of(cls, settings: PreparationSettings, opponent: Any, leaf_value: Any) -> ModelFiles | None:
        """Collect the data of the files that settings name; None if they name none, or an engine.

        Args:
          settings: of a preparation.
          opponent: the opponent's policy.
          leaf_value: the evaluation.
        """
        sources: list[_Source] = []
        named = {name: str(getattr(settings, name)) for name in settings.touches}
        kept = _kept(settings.opponent, opponent, sources) if "opponent" in named else {}
        if not named or kept is None:
            return None
        fit = None
        if "calibration" in named:
            fit = named_people(settings) if settings.evaluation == "people" else leaf_value.utility
        return cls(named, kept, tuple(sources), fit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads, complete or not at all."""
        kinds, arrays = [], dict[str, Any]()
        for number, source in enumerate(self.sources):
            kinds.append(
                ["polyglot", source.weights] if isinstance(source, PolyglotCounts) else ["games", ""]
            )
            arrays |= {f"{name}_{number}": array for name, array in source.as_arrays().items()}
        fit: dict[str, Any] | None = None
        if isinstance(self.calibration, PeopleFit):
            fit = people_values.as_json(self.calibration)
        elif self.calibration is not None:
            fit = fits.as_json(self.calibration)
        header = {"format": _FORMAT, "named": dict(self.named), "opponent": dict(self.opponent)}
        write_archive(path, header | {"sources": kinds, "calibration": fit}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelFiles:
        """Read a file of `save`, which is not trusted.

        Raises:
          ValueError: it is no such file.
          OSError: it cannot be read.
        """
        try:
            header, _ = read_archive(path, ())
            if header["format"] != _FORMAT:
                raise ValueError(f"format {shown(header['format'])}")
            if len(header["sources"]) > _MOST_SOURCES:
                raise ValueError(f"more than {_MOST_SOURCES} sources")
            names = [
                [f"{name}_{number}" for name in _ARRAYS[kind]]
                for number, (kind, _) in enumerate(header["sources"])
            ]
            _, arrays = read_archive(path, (name for each in names for name in each))
            sources = tuple(
                _source(kind, weights, *(arrays[name] for name in each))
                for (kind, weights), each in zip(header["sources"], names, strict=True)
            )
            kept, fit = header["calibration"], None
            if kept is not None:  # the format distinguishes the kinds of fits
                of_people = kept["format"] == people_values.FORMAT
                fit = people_values.of_json(kept) if of_people else fits.of_json(kept)
            return cls(dict(header["named"]), dict(header["opponent"]), sources, fit)
        except _PROBLEMS as error:
            raise ArgumentError(
                f"expected what Preparation.write() writes, got {os.fspath(path)!r} ({one_line(repr(error))})"
            ) from None

    def policy(self, game: pyspiel.Game, engine: StoredEngine | None) -> PolicyLike:
        """Return the opponent's policy.

        Raises:
          ValueError: the data are not an opponent's.
        """
        try:
            return opponent_policy(game, self._made(self.opponent, game, engine), engine, trusted=False)
        except _PROBLEMS as error:
            raise ArgumentError(f"expected data of an opponent, got others ({one_line(error)})") from None

    def _made(self, spec: Any, game: pyspiel.Game, engine: StoredEngine | None) -> Any:
        """Return a spec with policies in place of counts."""
        if not isinstance(spec, Mapping):
            return spec
        made = {key: self._made(value, game, engine) for key, value in spec.items()}
        if made.get("name") != _COUNTS:
            return made
        prior = opponent_policy(game, made["prior"], engine, trusted=False) if "prior" in made else None
        number = checks.check_integer(made["source"], "source", least=0, most=len(self.sources) - 1)
        alpha = checks.check_number(made["alpha"], "alpha", least=0.0, finite=False)
        return CountsPolicy(game, self.sources[number], alpha, prior)


def _source(kind: str, weights: str, *arrays: Any) -> _Source:
    """Return counts from arrays."""
    if kind == "polyglot":
        return PolyglotCounts(arrays[0].tobytes(), weights)
    if not (np.abs(arrays[2]) <= _MOST_GAMES).all():
        raise ValueError(f"weights of more than {_MOST_GAMES:g} games")
    return MoveCounts(*arrays)


def _kept(spec: Any, policy: Any, sources: list[_Source]) -> dict[str, Any] | None:
    """Return a spec with counts in place of files; None if it names something else."""
    arguments = parsed_spec(spec)
    if not touched(arguments):
        return arguments
    parts: dict[str, Any]  # policies within, by argument
    if isinstance(policy, CountsPolicy):
        parts = {} if policy.prior is None else {"prior": policy.prior}
        sources.append(policy.counts)  # type: ignore[arg-type]
        found = {"name": _COUNTS, "source": len(sources) - 1, "alpha": policy.alpha}
        arguments = found | {name: arguments[name] for name in parts}
    elif isinstance(policy, MixturePolicy):
        arguments.setdefault("a", "uniform")
        named = (k for k, each in arguments.items() if len(k) == 1 and each not in ("none", {"name": "none"}))
        letters = sorted(named)
        if len(letters) != len(policy.policies):  # one of them is a mixture itself
            return None
        parts = dict(zip(letters, policy.policies, strict=True))
    elif arguments["name"] == "noisy":
        parts = {"policy": policy.policy}
    else:
        return None
    arguments |= {name: _kept(arguments[name], part, sources) for name, part in parts.items()}
    return None if any(arguments[name] is None for name in parts) else arguments


# -- of settings -------------------------------------------------------------------------------------------


def named_calibration(settings: PreparationSettings) -> CalibratedUtility:
    """Return the settings' calibration; from a folder's data if the settings are not trusted.

    Raises:
      ValueError: it is in a file, and the settings are not trusted; see `load_calibration`.
    """
    if isinstance(kept := _kept_fit(settings), CalibratedUtility):
        return kept
    return fits.load_calibration(settings.calibration or None)


def named_people(settings: PreparationSettings) -> PeopleFit:
    """Return the settings' fits to people's games, as `named_calibration`.

    Raises:
      ValueError: they are in a file, and the settings are not trusted; see `load_people`.
    """
    if isinstance(kept := _kept_fit(settings), PeopleFit):
        return kept
    return people_values.load_people(settings.calibration or None)


def saved_time(settings: PreparationSettings) -> SavedTime:
    """Return the time that the preparing side saves by its memory, in people's games."""
    people, of = named_people(settings), (settings.speed, settings.rating)
    return SavedTime(people.times_at(*of), people.at(*of), settings.player)


def _kept_fit(settings: PreparationSettings) -> CalibratedUtility | PeopleFit | None:
    """Return the fit that lay beside settings; None if the named file may be opened."""
    if (files := _data_of(settings, "calibration")) is not None and files.calibration is not None:
        return files.calibration
    if not settings.trusted and "calibration" in settings.touches:
        raise ArgumentError(
            "expected a calibration that is shipped, got "
            f"{shown(settings.calibration)}: trusted=True opens it, for settings that you or your user wrote"
        )
    return None


def _data_of(settings: PreparationSettings, field: str) -> ModelFiles | None:
    """Return data that lay beside untrusted settings, if they belong to this field's value."""
    files: ModelFiles | None = settings.files
    if files is None or settings.trusted or files.named.get(field) != getattr(settings, field):
        return None
    return files
