"""The engines of a command, by its flags: programs here or on a cluster, or stored searches alone."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from absl import flags

from precomp_games.chess.engines.cluster import DaskEngine
from precomp_games.chess.engines.pool import (
    Demand,
    EngineError,
    EngineNotFoundError,
    EnginePool,
    engine_troubles,
    find_engine,
)
from precomp_games.chess.engines.searches import check_command, named_options
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.model.engine_policies import ANSWERS
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.commands._files import DATA, shown_path
from precomp_games.commands._flags import check_workers


def _pool(
    given: flags.FlagValues, command: str | list[str], options: dict[str, str]
) -> EnginePool | DaskEngine:
    """Engines on this machine, or on the cluster of --cluster."""
    if given.cluster is None:
        return EnginePool(command, workers=given.workers, options=options)
    check_workers(given.workers, given.cluster)
    pool = DaskEngine(command, given.cluster, options=options)
    for address, why in sorted(pool.refused.items()):
        print(f"Worker {address} is not used: {why}", file=sys.stderr)
    return pool


@contextlib.contextmanager
def open_engines(given: flags.FlagValues, settings: PreparationSettings | None = None) -> Iterator[Engines]:
    """Opens the engines of the flags, or stored searches where no engine is to be had.

    Args:
      given: the flags.
      settings: what they have to be able to do, which is tried first.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = find_engine(given.engine)
        except EngineNotFoundError:
            named = ("engine", "opponent_engine", "engine_option", "opponent_option", "workers", "cluster")
            if any(given[name].value for name in named):
                raise  # stored searches are those of one engine as it was
            own = given["store"].present or os.path.exists(given.store)
            shipped = given.store if own else shown_path(DATA / "evaluations.sqlite")
            store = stack.enter_context(EvaluationStore(shipped, read_only=True))
            if len(store.engines()) > 1:
                raise EngineError(
                    f"--store: expected searches of one engine where no engine is found, got {shipped}, with "
                    f"those of {', '.join(map(repr, store.engines()))}"
                ) from None
            stored = StoredEngine(store)
            print(
                f"No engine found: using the stored searches of {stored.engine_id} in {shipped}. "
                "To search other positions, install Stockfish (Debian: apt-get install stockfish) or "
                "name an engine with --engine or $STOCKFISH."
            )
            yield Engines(stored, stored)
            return
        _refuse_troubles(given, path, settings)
        folder = os.path.dirname(given.store)
        if folder and not given["store"].present:
            os.makedirs(folder, exist_ok=True)
        store = stack.enter_context(EvaluationStore(given.store))

        def start(command: str | list[str], options: dict[str, str]) -> StoredEngine:
            pool = _pool(given, command, options)
            stack.callback(pool.close)
            return StoredEngine(store, pool)

        analyst = start(path, named_options(given.engine_option, "engine_option"))
        opponent = analyst
        if given.opponent_engine is not None or given.opponent_option:
            command = find_engine(given.opponent_engine) if given.opponent_engine else path
            opponent = start(command, named_options(given.opponent_option, "opponent_option"))
        _warn_of_other_results(given)
        yield Engines(analyst, opponent)


def _refuse_troubles(
    given: flags.FlagValues, path: str | list[str], settings: PreparationSettings | None
) -> None:
    """Refuses engines that flags name, where they cannot do what settings ask for; prints all of that."""
    names = ("engine", "opponent_engine", "engine_option", "opponent_option")
    if settings is None or given.cluster is not None or not any(given[name].value for name in names):
        return
    theirs, top_k, few = settings.opponent_limit, settings.top_k, "--top_k=1 --menu=1"
    demands = [
        Demand(settings.analyst_limit, settings.multipv, "--analyst_movetime_ms=50", few),
        Demand(theirs, settings.multipv, "--opponent_movetime_ms=50", few),
    ]
    own = named_options(given.engine_option, "engine_option")
    asked = [(path, own, "engine_option", demands)]
    others = named_options(given.opponent_option, "opponent_option")
    if given.opponent_engine is not None or others:
        lines = 0 if settings.opponent_plays in ANSWERS else top_k
        fewer = "--opponent_plays=bestmove, or --top_k=1"
        demand = Demand(theirs, lines, "--opponent_movetime_ms=50", fewer)
        named = find_engine(given.opponent_engine) if given.opponent_engine else path
        asked.append((named, others, "opponent_option", [demand]))
    refused = [(" ".join(check_command(each[0])), line) for each in asked for line in engine_troubles(*each)]
    if len(refused) > 1:
        print(*(f"{command} {line}" for command, line in refused), sep="\n", flush=True)
    if refused:
        command, first = refused[0]
        more = f"; {len(refused) - 1} more stand above" if len(refused) > 1 else ""
        raise EngineError(f"expected engines that do what flags ask for, got {command}, which {first}{more}")


def _warn_of_other_results(given: flags.FlagValues) -> None:
    """Prints which flags make a run that no other repeats."""
    causes = [
        f"--{flag}={name}={value}"
        for flag in ("engine_option", "opponent_option")
        for name, value in named_options(given[flag].value, flag).items()
        if name.lower() == "threads" and value != "1"
    ]
    timed = ("opponent_movetime_ms", "analyst_movetime_ms")
    causes += [f"--{flag}" for flag in timed if flag in given and given[flag].value]
    if causes:
        print(
            f"Not reproducible: with {' and '.join(causes)} searches differ from run to run, and so may "
            "everything that follows.",
            flush=True,
        )
