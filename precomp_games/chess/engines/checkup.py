"""What an engine cannot do of what it will be asked for, found out at the start and told at once.

A run that fails for a limit that an engine does not heed fails after work has been done, and then for the
next reason. So a process of its own is asked once: which options it has, how many lines, and whether it keeps
each of the limits, in the start position.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence

import chess
import chess.engine

from precomp_games.chess.engines._questions import Question
from precomp_games.chess.engines._uci import (
    BASE_OPTIONS,
    BadOutput,
    EngineProcess,
    NoNodes,
    NoScores,
    SearchCommand,
    TooFewLines,
)
from precomp_games.chess.engines.searches import Asked, SearchLimit, check_command

_START = 10.0  # seconds that a start may take, and
_PATIENCE = 10.0  # a search over its limit
_ENOUGH = SearchLimit(nodes=20_000), SearchLimit(movetime_ms=200)  # who keeps these keeps larger ones
_FAILURES = (chess.engine.EngineError, BadOutput, TimeoutError, OSError)


@dataclasses.dataclass(frozen=True)
class Demand:
    """What an engine will be asked for, and what helps where it cannot do it.

    Attributes:
      limit: of searches.
      lines: MultiPV; 0: the answer alone is read, and no score.
      limit_help: what to do where it does not keep the limit.
      lines_help: what to do where it has fewer lines.
    """

    limit: SearchLimit
    lines: int
    limit_help: str
    lines_help: str


def engine_troubles(
    command: str | list[str], options: Mapping[str, str], flag: str, demands: Sequence[Demand]
) -> list[str]:
    """What an engine cannot do, a line each with what helps; nothing of one that does not start.

    Args:
      command: the engine's.
      options: UCI options that it is to have.
      flag: which sets them.
      demands: what it will be asked for.
    """
    return asyncio.run(_troubles(check_command(command), options, flag, demands))


async def _troubles(
    command: list[str], options: Mapping[str, str], flag: str, demands: Sequence[Demand]
) -> list[str]:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    engine: EngineProcess | None = None
    try:
        engine = await _started(command)
    except _FAILURES:  # whoever starts it for good says why
        return []
    known = ", ".join(sorted(engine.options)) or "none"
    told = [
        f"has no option {name!r}: leave out --{flag}={name}={value} (it has {known})"
        for name, value in options.items()
        if name not in engine.options
    ]
    multipv = engine.options.get("MultiPV")
    most = 1 if multipv is None else multipv.max or max(each.lines for each in demands)
    for lines, what in {each.lines: each.lines_help for each in demands if each.lines > most}.items():
        has = "no MultiPV" if multipv is None else f"MultiPV up to {most}"
        told.append(f"has {has}, and {lines} lines are asked for: {what}")
    given = {name: value for name, value in options.items() if name in engine.options}
    try:
        kinds = {(_least(each.limit), each.lines > 0): each.limit_help for each in demands}
        for (limit, scores), what in kinds.items():
            engine = engine or await _started(command)
            base = {name: str(value) for name, value in BASE_OPTIONS.items() if name in engine.options}
            try:
                problem = await _kept(engine, base | given, limit, scores)
            except NoScores as error:
                told += [line for line in [f"gives {error}"] if line not in told]
                continue
            if problem:
                told.append(f"does not keep {limit}, {problem}: {what}")
                await engine.kill()  # it may still be at it
                engine = None
    except _FAILURES:  # said by whoever asks it next
        pass
    finally:
        if engine is not None:
            await engine.quit_or_kill()
    return told


async def _started(command: list[str]) -> EngineProcess:
    _, engine = await EngineProcess.popen(command, setpgrp=True)
    try:
        async with asyncio.timeout(_START):
            await engine.initialize()
    except _FAILURES:
        await engine.kill()
        raise
    return engine


def _least(limit: SearchLimit) -> SearchLimit:
    """The limit, or a smaller one of its kind that says as much."""
    nodes, time = _ENOUGH
    if limit.nodes is not None and nodes.nodes is not None and limit.nodes > nodes.nodes:
        return nodes
    if (
        limit.movetime_ms is not None
        and time.movetime_ms is not None
        and limit.movetime_ms > time.movetime_ms
    ):
        return time
    return limit


async def _kept(engine: EngineProcess, options: Mapping[str, str], limit: SearchLimit, scores: bool) -> str:
    """What an engine did in place of keeping a limit; "" where it kept it. NoScores where it lacks these."""
    await engine.configure(options)
    asked = Question.of(0, Asked(chess.Board().epd(), limit, 1, samples=0 if scores else 1))
    try:
        async with asyncio.timeout(_PATIENCE + (limit.movetime_ms or 0) / 1000.0):
            await engine.ask(SearchCommand(engine, asked))
    except TimeoutError:
        return f"with no move in {_PATIENCE:g} s"
    except NoNodes:
        return "since it does not report nodes"
    except TooFewLines:
        return ""
    except NoScores:
        raise
    except BadOutput as error:
        return f"with {error}"
    return ""
