"""What the files that a preparation's settings name have come to, as data that lies in its folder.

An opponent may be a person's games or a book, and an evaluation a fit of one's own. Elsewhere, or later,
those files are not there; and what is read from a result opens nothing. So there is `opponent.npz` beside
`result.json`, with the counts, as they were fitted, and the calibration: no games.

What runs an engine of its own, `uci(engine=...)`, has no such form: there the spec is repeated by the user.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support.files import read_archive, write_archive
from precomp_games._support.validation import ArgumentError, check_integer, check_number, one_line, shown
from precomp_games.chess.evaluation import calibration as fits
from precomp_games.chess.evaluation.calibration import CalibratedUtility
from precomp_games.chess.opponents.policies import opponent_policy
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.records.move_counts import CountsPolicy, MoveCounts, MoveSource, PolyglotCounts
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.rows import PolicyLike
from precomp_games.policies.specs import parsed_spec, touched

if TYPE_CHECKING:
    from precomp_games.chess.engines.stored_engine import StoredEngine


MODEL_FILE = "opponent.npz"
"""What lies beside a result where its settings name files."""


_FORMAT = "precomp-games opponent 1"
_COUNTS = "counts"  # what stands in place of a file's spec
_KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "games": (MoveCounts, ("keys", "actions", "weights")),
    "polyglot": (PolyglotCounts, ("entries",)),
}
_MOST_SOURCES = 64
_MOST_GAMES = 1e15
_PROBLEMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclasses.dataclass(frozen=True, eq=False)
class ModelFiles:
    """The data behind settings.

    Attributes:
      named: what the settings say, by field, where it names files: "opponent" and "calibration".
      opponent: the opponent's spec as a dictionary, with counts in place of files.
      sources: the counts.
      calibration: None where settings name no file.
    """

    named: Mapping[str, str]
    opponent: Mapping[str, Any]
    sources: tuple[MoveSource, ...]
    calibration: CalibratedUtility | None

    @classmethod
    def of(cls, settings: PreparationSettings, opponent: Any, leaf_value: Any) -> ModelFiles | None:
        """What settings came to, where they name files; None where they do not, or name an engine.

        Args:
          settings: of a preparation.
          opponent: the policy that was made of them.
          leaf_value: the evaluation.
        """
        sources: list[MoveSource] = []
        named = {name: str(getattr(settings, name)) for name in settings.touches}
        kept = _kept(settings.opponent, opponent, sources) if "opponent" in named else {}
        if not named or kept is None:
            return None
        return cls(named, kept, tuple(sources), leaf_value.utility if "calibration" in named else None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that `load` reads, whole or not at all."""
        kinds, arrays = [], dict[str, Any]()
        for number, source in enumerate(self.sources):
            kind = next(name for name, (made, _) in _KINDS.items() if isinstance(source, made))
            kinds.append([kind, getattr(source, "weights", "") if kind == "polyglot" else ""])
            given: Any = source
            arrays |= {f"{name}_{number}": array for name, array in given.as_arrays().items()}
        fit = None if self.calibration is None else fits.as_json(self.calibration)
        header = {"format": _FORMAT, "named": dict(self.named), "opponent": dict(self.opponent)}
        write_archive(path, header | {"sources": kinds, "calibration": fit}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelFiles:
        """Reads what `save` wrote; nothing of it is trusted.

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
                [f"{name}_{number}" for name in _KINDS[kind][1]]
                for number, (kind, _) in enumerate(header["sources"])
            ]
            _, arrays = read_archive(path, (name for each in names for name in each))
            sources = tuple(
                _source(kind, weights, *(arrays[name] for name in each))
                for (kind, weights), each in zip(header["sources"], names, strict=True)
            )
            fit = None if header["calibration"] is None else fits.of_json(header["calibration"])
            return cls(dict(header["named"]), dict(header["opponent"]), sources, fit)
        except _PROBLEMS as error:
            raise ArgumentError(
                f"expected what write_preparation() writes, got {os.fspath(path)!r} ({one_line(repr(error))})"
            ) from None

    def policy(self, game: pyspiel.Game, engine: StoredEngine | None) -> PolicyLike:
        """The opponent.

        Raises:
          ValueError: its data are none of an opponent's.
        """
        try:
            return opponent_policy(game, self._made(self.opponent, game, engine), engine, trusted=False)
        except _PROBLEMS as error:
            raise ArgumentError(f"expected data of an opponent, got others ({one_line(error)})") from None

    def _made(self, told: Any, game: pyspiel.Game, engine: StoredEngine | None) -> Any:
        """What a spec has, with policies in place of counts."""
        if not isinstance(told, Mapping):
            return told
        if told.get("name") != _COUNTS:
            return {key: self._made(value, game, engine) for key, value in told.items()}
        prior = self._made(told["prior"], game, engine) if "prior" in told else None
        if prior is not None and not isinstance(prior, openspiel_policy.Policy):
            prior = opponent_policy(game, prior, engine, trusted=False)
        number = check_integer(told["source"], "source", least=0, most=len(self.sources) - 1)
        alpha = check_number(told["alpha"], "alpha", least=0.0, finite=False)
        return CountsPolicy(game, self.sources[number], alpha, prior)


def _source(kind: str, weights: str, *arrays: Any) -> MoveSource:
    """Counts of arrays."""
    if kind == "polyglot":
        return PolyglotCounts.of_arrays(weights, *arrays)
    if not (np.abs(arrays[2]) <= _MOST_GAMES).all():
        raise ValueError(f"weights of more than {_MOST_GAMES:g} games")
    return MoveCounts(*arrays)


def _kept(spec: Any, policy: Any, sources: list[MoveSource]) -> dict[str, Any] | None:
    """A spec with counts in place of files; None where it names something else."""
    arguments = parsed_spec(spec)
    if not touched(arguments):
        return arguments
    if isinstance(policy, CountsPolicy):
        sources.append(policy.counts)
        found: dict[str, Any] = {"name": _COUNTS, "source": len(sources) - 1, "alpha": policy.alpha}
        parts = [] if policy.prior is None else [("prior", arguments["prior"], policy.prior)]
        arguments = found
    elif isinstance(policy, MixturePolicy):
        given = {"a": "uniform"} | {k: each for k, each in arguments.items() if len(k) == 1}
        named = [(k, each) for k, each in sorted(given.items()) if each not in ("none", {"name": "none"})]
        if len(named) < len(policy.policies):  # one of them is several players itself
            return None
        parts = [(*each, part) for each, part in zip(named, policy.policies, strict=True)]
    elif arguments["name"] == "noisy":
        parts = [("policy", arguments["policy"], policy.policy)]
    else:
        return None
    for name, part, made in parts:
        arguments[name] = _kept(part, made, sources)
    return None if any(arguments[name] is None for name, *_ in parts) else arguments


# -- of settings -------------------------------------------------------------------------------------------


def named_opponent(settings: PreparationSettings, game: pyspiel.Game, engine: StoredEngine) -> PolicyLike:
    """The opponent that settings name; of a folder's data where the settings are not trusted."""
    if (files := _data_of(settings, "opponent")) is not None:
        return files.policy(game, engine)
    return opponent_policy(game, settings.opponent, engine, trusted=settings.trusted)


def named_calibration(settings: PreparationSettings) -> CalibratedUtility:
    """The calibration that settings name; of a folder's data where the settings are not trusted.

    Raises:
      ValueError: it is in a file, and the settings are not trusted; see `load_calibration`.
    """
    if (files := _data_of(settings, "calibration")) is not None and files.calibration is not None:
        return files.calibration
    if not settings.trusted and "calibration" in settings.touches:
        raise ArgumentError(
            "expected a calibration that is shipped, got "
            f"{shown(settings.calibration)}: trusted=True opens it, for settings that you or your user wrote"
        )
    return fits.load_calibration(settings.calibration or None)


def _data_of(settings: PreparationSettings, field: str) -> ModelFiles | None:
    """What lay beside settings that are not trusted, where it is of what a field of them says."""
    files: ModelFiles | None = settings.files
    if files is None or settings.trusted or files.named.get(field) != getattr(settings, field):
        return None
    return files
