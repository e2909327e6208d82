"""What engines, stores and settings ask of positions, commands, options and opponents."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import chess
import chess.engine

from precomp_games._support.arguments import ArgumentError, Check, Ge, Le
from precomp_games._support.checks import check_number, shown

__all__ = [
    "Options",
    "Positions",
    "Retries",
    "check_command",
    "check_opponents",
    "check_position",
    "check_strength",
    "identity_options",
    "named_options",
    "weakened_by",
]

Retries = Annotated[int, Ge(0), Le(1000)]
"""How often an engine is asked again."""

# With these an engine searches as ever, and then draws another move than the one it found: what it plays is
# weaker, and its scores are not.
_CHOOSE_OF_MOVES = frozenset({"uci_limitstrength", "uci_elo", "skill level", "skill", "temperature"})


def _positions(epds: Any, name: str) -> list[str]:
    if isinstance(epds, str | bytes) or not isinstance(epds, Iterable):
        raise ArgumentError(f"expected a list of positions as EPD, got {shown(epds)}")
    given = list(epds)
    for epd in given:
        if not isinstance(epd, str) or not epd:
            raise ArgumentError(f"expected a position as EPD without clocks, got {shown(epd)}")
    return given


Positions = Annotated[Iterable[str], Check(_positions)]
"""Positions as text, none empty, given as a list; `check_position` says whether they are any."""


def check_position(epd: str) -> chess.Board:
    """The board of an EPD with at least one legal move, clocks at 0 1; ValueError otherwise."""
    problem = "which is no EPD of four fields"
    with contextlib.suppress(ValueError):
        if isinstance(epd, str) and len(epd.split()) == 4:
            board = chess.Board(epd + " 0 1")
            if not board.is_valid():
                problem = f"which cannot come up in chess ({board.status()!r})"
            elif not any(board.legal_moves):
                problem = "which has no legal move to search"
            else:
                return board
    raise ArgumentError(f"expected a position as EPD without clocks, got {shown(epd)}, {problem}")


def check_command(command: Any) -> list[str]:
    """A command as a list."""
    given = [command] if isinstance(command, str) else command
    if isinstance(given, list | tuple) and given and all(isinstance(a, str) and a for a in given):
        return list(given)
    raise ArgumentError(f"expected command to be text or a list of texts, none empty, got {shown(command)}")


def _options(options: Any, name: str) -> dict[str, str | int | bool]:
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


Options = Annotated[Mapping[str, str | int | bool], Check(_options)]
"""UCI options by name, those that can be told apart without the engine's own list of them."""


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
