"""What engines, stores and settings ask of positions, commands, options and opponents."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import chess
import chess.engine

from precomp_games.arguments import ArgumentError
from precomp_games.checks import check_function, check_instance, check_integer, check_number, shown
from precomp_games.chess.searches import MAX_MULTIPV, MAX_SAMPLES, SearchLimit

__all__ = [
    "EngineArguments",
    "check_command",
    "check_engine_arguments",
    "check_opponents",
    "check_options",
    "check_position",
    "check_positions",
    "check_search",
    "check_strength",
    "identity_options",
    "named_options",
    "weakened_by",
]

MAX_SECONDS = 1e6  # some days; event loops refuse what is much more
MAX_RETRIES = 1000

# With these an engine searches as ever, and then draws another move than the one it found: what it plays is
# weaker, and its scores are not.
_CHOOSE_OF_MOVES = frozenset({"uci_limitstrength", "uci_elo", "skill level", "skill", "temperature"})


def check_positions(epds: Iterable[str]) -> list[str]:
    """Positions as text, none empty; `check_position` says whether they are any."""
    if isinstance(epds, str | bytes) or not isinstance(epds, Iterable):
        raise ArgumentError(f"expected a list of positions as EPD, got {shown(epds)}")
    given = list(epds)
    for epd in given:
        if not isinstance(epd, str) or not epd:
            raise ArgumentError(f"expected a position as EPD without clocks, got {shown(epd)}")
    return given


def check_position(epd: str) -> chess.Board:
    """The board of an EPD with at least one legal move, clocks at 0 1; ValueError otherwise."""
    problem = "which is no EPD of four fields"
    with contextlib.suppress(ValueError):
        if len(epd.split()) == 4:
            board = chess.Board(epd + " 0 1")
            if not board.is_valid():
                problem = f"which cannot come up in chess ({board.status()!r})"
            elif not any(board.legal_moves):
                problem = "which has no legal move to search"
            else:
                return board
    raise ArgumentError(f"expected a position as EPD without clocks, got {shown(epd)}, {problem}")


def check_search(
    epds: Iterable[str],
    limit: SearchLimit,
    multipv: int,
    samples: int,
    on_result: Callable[..., None] | None = None,
) -> tuple[list[str], SearchLimit, int, int]:
    """What a search is asked for; whether positions are any, `check_position` says."""
    check_function(on_result, "on_result", optional=True)
    return (
        check_positions(epds),
        check_instance(limit, SearchLimit, "limit"),
        check_integer(multipv, "multipv", least=1, most=MAX_MULTIPV),
        check_integer(samples, "samples", least=0, most=MAX_SAMPLES),
    )


@dataclass(frozen=True)
class EngineArguments:
    """What engines are started with, checked."""

    command: list[str]
    options: dict[str, str | int | bool]
    timeout_seconds: float
    retries: int
    startup_seconds: float


def check_engine_arguments(
    command: Any, options: Any, timeout_seconds: Any, retries: Any, startup_seconds: Any
) -> EngineArguments:
    """What engines are started with; which options an engine has is seen when it runs."""
    seconds: Any = {"above": 0.0, "most": MAX_SECONDS}
    return EngineArguments(
        command=check_command(command),
        options=check_options(options),
        timeout_seconds=check_number(timeout_seconds, "timeout_seconds", **seconds),
        retries=check_integer(retries, "retries", least=0, most=MAX_RETRIES),
        startup_seconds=check_number(startup_seconds, "startup_seconds", **seconds),
    )


def check_command(command: Any) -> list[str]:
    """A command as a list."""
    given = [command] if isinstance(command, str) else command
    if isinstance(given, list | tuple) and given and all(isinstance(a, str) and a for a in given):
        return list(given)
    raise ArgumentError(f"expected command to be text or a list of texts, none empty, got {shown(command)}")


def check_options(options: Any) -> dict[str, str | int | bool]:
    """Options by name, those that can be told apart without the engine's own list of them."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ArgumentError(f"expected options by name, got {shown(options)}")
    for name, value in options.items():
        problem = None
        if not isinstance(name, str) or not isinstance(value, (str, int, bool)):
            problem = "options as UCI names with a str, int or bool"
        elif not f"{name}{value}".isprintable():  # a line break would be another command
            problem = "options without control characters"
        elif name.lower() in chess.engine.MANAGED_OPTIONS:
            problem = "options that the pool does not set itself"
        if problem is not None:
            raise ArgumentError(f"expected {problem}, got {shown(name)}: {shown(value)}")
    return dict(options)


def named_options(texts: Iterable[str] | None, flag: str) -> dict[str, str]:
    """The options of a flag that may be repeated, each "Name=value"."""
    options = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ValueError(f'--{flag}: expected "Name=value", got {text!r}')
        options[name.strip()] = value.strip()
    return options


def identity_options(engine_id: str) -> list[str]:
    """The options that an engine's identity names, as "Name=value"."""
    match = re.search(r" \[(.*)\]$", engine_id)
    return match[1].split(", ") if match else []


def weakened_by(engine_id: str) -> str:
    """The first option of an engine's identity by which it draws worse moves than it finds, or ""."""
    options = identity_options(engine_id)
    return next((text for text in options if text.partition("=")[0].lower() in _CHOOSE_OF_MOVES), "")


def check_strength(options: Iterable[str]) -> None:
    """Refuses a rating, among options as "Name=value", to which the engine does not limit itself."""
    told = [text.lower() for text in options]
    rating = next((text for text in options if text.lower().startswith("uci_elo=")), None)
    if rating is not None and "uci_limitstrength=true" not in told:
        raise ArgumentError(
            f"expected UCI_LimitStrength=true beside {rating!r}, got it left off: without "
            "it the rating changes nothing, neither moves nor scores"
        )


def check_opponents(
    temperature: Any, weights: Any, plays: Any
) -> tuple[float | tuple[float, ...], tuple[float, ...]]:
    """`opponent_temperature_cp` and `opponent_weights` of preparation settings: one opponent, or several.

    Raises:
      ValueError: they are no positive numbers, as many of one as of the other; or there are several of an
        opponent that has no use for them.
    """
    name = "opponent_temperature_cp"
    several = isinstance(temperature, list | tuple) and len(temperature) > 0
    given = list(temperature) if several else [temperature]
    checked = tuple(
        check_number(r, f"{name}[{k}]" if several else name, above=0.0) for k, r in enumerate(given)
    )
    if len(given) > 1 and plays == "bestmove":
        raise ArgumentError(
            f'expected one {name} with opponent_plays="bestmove", which has no use for it, got '
            f"{shown(temperature)}"
        )
    if not isinstance(weights, list | tuple) or len(weights) not in (0, len(given)):
        raise ArgumentError(
            f"expected opponent_weights to be () or {len(given)} numbers, one for each {name}, got "
            f"{shown(weights)}"
        )
    shares = (check_number(w, f"opponent_weights[{k}]", above=0.0) for k, w in enumerate(weights))
    return checked if several else checked[0], tuple(shares)
