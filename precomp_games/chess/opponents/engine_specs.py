"""Engines in specs of policies, and specs where there is an engine already.

    uci(r=40,nodes=1000,top_k=8)
    uci(engine=lc0,nodes=1,plays=bestmove,options=of(WeightsFile=maia-1500.pb.gz))
    games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling,prior=noisy(policy=uci(r=40,top_k=8),epsilon=0.2))

Specs that name an engine, options or a store are made where they are trusted (`make_policy`).

Without engine=, a spec means the engine of whoever reads it (`opponent_policy`): a preparation's opponent, in
the examples the engine of the flags, whose searches are stored. An engine that a spec names is started, and
ends with the policy; its searches are kept in memory, or in store=.
"""

from __future__ import annotations

import contextvars
import math
import os
from collections.abc import Mapping
from typing import Any

import pyspiel

from precomp_games._support.arguments import ArgumentError, public
from precomp_games._support.checks import shown
from precomp_games._support.messages import one_line
from precomp_games.chess.engines.pool import EnginePool, SearchLimit, find_engine
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import EngineLike, StoredEngine
from precomp_games.chess.evaluation.policies import PLAYS, SAMPLES, EnginePolicy
from precomp_games.chess.game import ChessGame, board_key
from precomp_games.policies.mixtures import MixturePolicy, drawn_once
from precomp_games.policies.rows import PolicyLike
from precomp_games.policies.specs import make_policy, register_policy

__all__ = ["opponent_policy"]

_READER: contextvars.ContextVar[StoredEngine | None] = contextvars.ContextVar("engine", default=None)


@public
def opponent_policy(
    game: ChessGame,
    spec: str | Mapping[str, Any],
    engine: EngineLike | None = None,
    *,
    trusted: bool | None = None,
) -> PolicyLike:
    """The policy of a spec, in which `uci(...)` without engine= is `engine`.

    A mixture asks each of its components once about a position, however games come there.

    Args:
        game: of chess.
        spec: see `make_policy`.
        engine: what searches for it; None: specs must say which engine.
        trusted: see `make_policy`: whether files and engines that it names are opened and run.

    Raises:
        ValueError: another game, no such spec, or an engine that is none.
        OSError: a file of the spec cannot be read.
        EngineError: an engine of the spec cannot be started.
    """
    token = _READER.set(engine)
    try:
        policy = make_policy(game, spec, trusted=trusted)
    except ValueError as error:
        raise ArgumentError(
            f"expected spec to name an opponent, got {shown(spec)} ({one_line(error)})"
        ) from None
    finally:
        _READER.reset(token)
    if isinstance(policy, MixturePolicy) and drawn_once(policy):
        return MixturePolicy(policy.policies, policy.weights.tolist(), position_key=board_key)
    return policy


def _uci(
    game: pyspiel.Game,
    engine: str = "",
    nodes: int = 0,
    depth: int = 0,
    movetime_ms: int = 0,
    r: float = 10.0,
    top_k: int = 2,
    plays: str = PLAYS[0],
    samples: int = SAMPLES,
    options: str = "",
    store: str = "",
    workers: int = 0,
) -> EnginePolicy:
    """In a spec, 0 stands for what is not said; 1,000 nodes where no limit is."""
    limits = {"nodes": nodes, "depth": depth, "movetime_ms": movetime_ms}
    given = {name: value for name, value in limits.items() if value} or {"nodes": 1000}
    if len(given) > 1:
        raise ArgumentError(f"expected one of nodes, depth and movetime_ms, got {', '.join(given)}")
    ((name, value),) = given.items()
    limit = SearchLimit(**{name: value})
    own = {"options": options, "store": store, "workers": workers}
    reader = _READER.get()
    if not engine:
        named = next((name for name, value in own.items() if value), None)
        if named is not None or reader is None:
            asked = f"engine= beside {named}=" if named else "uci(engine=...), a path or a command"
            raise ArgumentError(f"expected {asked}, got no engine")
        searcher = reader
    else:
        pool = EnginePool(find_engine(engine), workers=workers or None, options=_options(options))
        searcher = StoredEngine(EvaluationStore(os.path.expanduser(store) or ":memory:"), pool)
    return EnginePolicy(game, searcher, limit, r, top_k, plays=plays, samples=samples)


def _options(given: Any) -> dict[str, str | int | bool]:
    """UCI options of "of(Name=value,...)"."""
    if given == "":
        return {}
    if not isinstance(given, Mapping) or given.get("name") != "of":
        raise ArgumentError(f"expected options such as of(Hash=64), got {shown(given)}")
    found: dict[str, str | int | bool] = {}
    for name, value in given.items():
        if name == "name":
            continue
        if isinstance(value, float) and (math.isinf(value) or value != int(value)):
            raise ArgumentError(f"expected option {name} to be text or a whole number, got {value!r}")
        found[name] = int(value) if isinstance(value, float) else value
    return found


register_policy("uci", _uci, touches=("engine", "options", "store", "workers"))
