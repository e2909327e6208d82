"""Flags made of dataclasses, flags that several commands share, and settings made of flags.

A field of a dataclass is a flag: its name, type, bounds and default are those of the field, and its help is
the field's text in the class's docstring. `PreparationSettings` is such a dataclass, and so are the `Flags`
of each command. Flags are defined in the `FlagValues` of a command, or among absl's global ones; help lists
them with the caller's own.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import math
import pathlib
import re
import types
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Literal

from absl import flags

from precomp_games._support import checks
from precomp_games.algorithms.preparation.evaluated_search import ORDERS
from precomp_games.chess.engines.searches import MAX_LIMIT, SearchLimit
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.cluster import cluster_client
from precomp_games.tree.base_game import named_game as named_game

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them

DATA = pathlib.Path(__file__).parent / "data"
"""The samples, and the searches that the defaults need."""
Listed = Annotated[Sequence[str], "separated by commas"]
Repeated = Annotated[Sequence[str], "the flag may be repeated"]

STORE = "output/evaluations.sqlite"
"""Default file of kept searches."""
_NO_FLAGS = {"player", "own_temperature_cp", "own_repeats", "min_probability", "trusted", "files"}
_NO_FLAGS |= {"rollout_epsilon", "rollout_delta"}


# -- flags of a dataclass ----------------------------------------------------------------------------------


def define_flags(own: flags.FlagValues, *kinds: type, without: Collection[str] = (), **defaults: Any) -> None:
    """Define a flag for each field of dataclasses.

    Args:
      own: the flags to define them in.
      kinds: the dataclasses. The bounds of `PreparationSettings` are checked when settings are made of flags.
      without: fields that are no flags.
      defaults: other defaults of flags, by name.
    """
    for kind in kinds:
        hints, descriptions = typing.get_type_hints(kind, include_extras=True), _descriptions(kind)
        for field in dataclasses.fields(kind):
            if field.name not in without:
                bounded = kind is not PreparationSettings
                _define(own, field, hints[field.name], descriptions.get(field.name, ""), bounded)
    for name, value in defaults.items():
        own.set_default(name, value)


def _descriptions(kind: type) -> dict[str, str]:
    """Read the descriptions of attributes in a docstring."""
    _, _, attributes = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    found = re.findall(r"^  (\w+): (.*?)(?=^  \w|\Z)", attributes, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in found}


def _define(own: flags.FlagValues, field: Any, hint: Any, text: str, bounded: bool) -> None:
    name, default = _names(field)[0], field.default
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = [each for each in typing.get_args(hint) if each is not types.NoneType] if union else [hint]
    kind, *marks = typing.get_args(kinds[0]) if typing.get_origin(kinds[0]) is Annotated else kinds[:1]
    words: Collection[str] = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    words = words or next((mark.words for mark in marks if isinstance(mark, checks.Check)), ())
    bounds: dict[str, Any] = {}
    for mark in marks if bounded else ():
        if isinstance(mark, checks.Ge | checks.Le):
            bounds |= {"lower_bound": mark.ge} if isinstance(mark, checks.Ge) else {"upper_bound": mark.le}
    how: dict[str, Any] = {"flag_values": own}
    if kind is SearchLimit:
        most = {"lower_bound": 1, "upper_bound": MAX_LIMIT, **how}
        flags.DEFINE_integer(name, None if default is None else default.nodes, f"{text} In nodes.", **most)
        for other in _names(field)[1:]:
            text = f"{text} In milliseconds, in place of nodes (not reproducible)."
            flags.DEFINE_integer(other, None, text, **most)
    elif words:
        flags.DEFINE_enum(name, default, list(words), text, **how)
    elif Repeated.__metadata__[0] in marks:  # type: ignore[attr-defined]
        flags.DEFINE_multi_string(name, default, text, **how)
    elif len(kinds) > 1 or typing.get_origin(kind) is collections.abc.Sequence:
        several = [f"{default:g}"] if isinstance(default, float) else default and list(default)
        flags.DEFINE_list(name, several, text, **how)
    else:
        by_kind: dict[Any, Callable[..., Any]] = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer}
        by_kind |= {float: flags.DEFINE_float, str: flags.DEFINE_string}
        by_kind[kind](name, default, text, **bounds, **how)


def _names(field: Any) -> list[str]:
    """Return the names of a field's flags: of a limit that is not another one by default, nodes and time."""
    stem = field.name.removesuffix("_limit")
    if stem != field.name:
        return [f"{stem}_nodes", *[f"{stem}_movetime_ms"] * (field.default is not None)]
    return [field.metadata.get("flag", field.name)]


# -- flags of several commands -----------------------------------------------------------------------------


@dataclasses.dataclass
class EngineFlags:
    """Flags of the engines and of the file that keeps their searches.

    Attributes:
      engine: UCI engine, a path or a command, with its arguments if it takes any: "gnuchess --uci".
        Default: $STOCKFISH, stockfish on PATH, /usr/games/stockfish.
      engine_option: UCI option of the engine, "Name=value"; may be repeated.
      opponent_engine: UCI engine of the opponent, if it is another one than --engine.
      opponent_option: UCI option of the opponent's engine, "Name=value"; may be repeated. Those that limit
        its strength (UCI_LimitStrength with UCI_Elo, Skill Level) need --opponent_plays=bestmove or game,
        since they leave its scores as they are.
      workers: Engine processes. Default: one a core.
      cluster: Search on a Dask cluster: its scheduler, such as "tcp://host:8786", a scheduler file *.json,
        or "local:4" for four workers on this machine. See docs/cluster.md.
      store: File that keeps searches, so that each is made only once. Shared by all runs.
      maia: Networks of people's moves, for human(rating=...): a file of Maia's (.pb.gz), or a folder of them.
        Default: $PRECOMP_MAIA.
    """

    engine: str | None = None
    engine_option: Repeated = ()
    opponent_engine: str | None = None
    opponent_option: Repeated = ()
    workers: checks.PositiveInt | None = None
    cluster: str | None = None
    store: str = STORE
    maia: str | None = None


@dataclasses.dataclass
class MemoryFlags:
    """The flag that limits the memory of the process.

    Attributes:
      max_memory: Stop with an error, which names flags to change, before the process takes more than this,
        such as 2GB. Default: four fifths of what is available.
    """

    max_memory: str | None = None


@dataclasses.dataclass
class MinutesFlags:
    """The flag that limits the time of a command; `run_command` ends the command by it.

    Attributes:
      minutes: End after so many minutes in all, with the results so far. Steps without enough time are done
        in part, or on a sample drawn with --seed, as the output states. Searches are kept: the same command
        goes on from there.
    """

    minutes: Annotated[float, checks.Ge(0.0)] | None = None


def define_chess_flags(own: flags.FlagValues, without: Collection[str] = (), **defaults: Any) -> None:
    """Define the flags of engines, and of settings but for some fields."""
    if "top_k" not in without:
        defaults["top_k"] = None
    define_flags(own, EngineFlags, PreparationSettings, without={*_NO_FLAGS, *without}, **defaults)


@dataclasses.dataclass
class PreparingFlags:
    """Flags of a preparation: the side, the size of the book, and the way it is found.

    Attributes:
      side: The side that prepares.
      budget: Find the best book of at most so many positions. --penalty then only sets the search depth:
        smaller is more thorough. Default: 150 if games are played, else all positions that are worth their
        penalty.
      order: With --menu of 2 or more and without games, the lines to search first: the most promising,
        which is quick, or those that narrow the bounds of the best book's value.
      max_evaluations: With --menu of 2 or more: stop after so many evaluations.
      play_budget: With --evaluation=calibrated: games between both sides' policies. At most a sixth of them
        correct leaf values; the others measure the book, as many as that takes, and at most 100 play without
        it. 0: play no games; trust the evaluation.
      keep: A repertoire that is known already, PGN with variations or Polyglot (.bin): its moves of the
        preparing side are in the book wherever lines reach them, and cost nothing. May be repeated.
      plan: Increasing numbers of positions, such as 10,20,50, to learn in this order. Each book contains
        the one before.
    """

    side: Literal["white", "black"] = "white"
    budget: checks.NonNegativeInt | None = None
    order: Annotated[str, checks.one_of(ORDERS)] = "optimistic"
    max_evaluations: checks.PositiveInt = 20_000
    play_budget: checks.NonNegativeInt = 1200
    keep: Repeated = ()
    plan: Listed = ()


def define_preparation_flags(own: flags.FlagValues, without: Collection[str] = ()) -> None:
    """Define the flags of whoever prepares: against whom, how much, and how."""
    define_flags(own, PreparingFlags, MemoryFlags, MinutesFlags, without=without)
    define_chess_flags(own, evaluation="calibrated", menu=None)
    own["menu"].help += " Default: 8 with the calibrated evaluation, which games correct, and otherwise 1."
    own["top_k"].help += " Default: 2; with --opponent_plays=game, which has no use for it, 1."


# -- values of flags ---------------------------------------------------------------------------------------


def check_workers(workers: int | None, cluster: str | None) -> None:
    """Refuse a --cluster that is none, and --workers beside it."""
    if cluster is not None:
        cluster_client(cluster)  # which begins nothing
        if workers is not None:
            raise ValueError('--workers: expected none with --cluster, which has its own ("local:4" has 4)')


def numbers(
    flag: Any, allowed: str, fits: Callable[[Any], bool], kind: type = float, count: int | None = None
) -> list[Any]:
    """Read the numbers that a flag lists, in its order.

    Args:
      flag: a list flag, an entry of `FlagValues` or the holder of a global flag.
      allowed: the expected numbers, in words for the error.
      fits: whether a number is allowed.
      kind: float or int.
      count: the required count of numbers, if any.
    """
    try:
        values = [kind(text) for text in flag.value]
    except ValueError:
        values = []
    if not values or not all(map(fits, values)) or count not in (None, len(values)):
        raise ValueError(f"--{flag.name}: expected {allowed}, got {','.join(flag.value)!r}")
    return values


def positive_numbers(flag: Any) -> list[float]:
    """Read `numbers` greater than 0."""
    return numbers(flag, "positive numbers separated by commas", lambda value: 0.0 < value < math.inf)


def settings_of(
    given: flags.FlagValues, player: int, *, evaluated: bool = False, **other: Any
) -> PreparationSettings:
    """Make the settings that flags describe; a wrong one is an error before an engine is started.

    Args:
      given: the flags, those of `define_chess_flags` among them.
      player: the player who prepares.
      evaluated: stopped play must be valued by an engine's evaluation, not by roll-outs.
      other: fields that flags do not set.
    """
    if evaluated and given.evaluation == "rollouts":
        raise ValueError("--evaluation: expected an engine's evaluation for --chess, got 'rollouts'")
    return PreparationSettings(player=player, trusted=True, **given_in(given, but=other), **other)


def given_in(given: flags.FlagValues, *, present: bool = False, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of settings that flags set; with `present` those on the command line."""
    settings = {}
    for field in dataclasses.fields(PreparationSettings):
        names = _names(field)
        if field.name in _NO_FLAGS or field.name in but:  # another flag may have its name
            continue
        if names[0] in given and (not present or any(given[name].present for name in names)):
            value = _value(given, names)
            if value is not None:
                settings[field.name] = value
    if (weights := settings.get("opponent_weights")) and len(weights) != len(given.r):
        expected = f"{len(given.r)} numbers, one for each --r, got {','.join(given.r_weights)!r}"
        raise ValueError(f"--r_weights: expected {expected}")
    return {"opponent_weights": ()} | settings if "opponent_temperature_cp" in settings else settings


def _value(given: flags.FlagValues, names: Sequence[str]) -> Any:
    """Return the value of a field by its flags; None if they leave the default."""
    value = given[names[0]].value
    if names[0].endswith("_nodes"):
        time = given[names[1]].value if len(names) > 1 else None
        limit = {"nodes": value} if time is None else {"movetime_ms": time}
        return None if limit.get("nodes", time) is None else SearchLimit(**limit)
    if names[0] in ("r", "r_weights") and value:
        several = positive_numbers(given[names[0]])
        return several[0] if names[0] == "r" and len(several) == 1 else several
    if names[0] == "top_k" and value is None and "opponent_plays" in given:
        return 1 if given.opponent_plays == "game" else 2
    return value


def shown_path(path: pathlib.Path) -> str:
    """Return a path as it is printed: from where the command runs, if it lies below, and whole otherwise."""
    here = pathlib.Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
