"""Opponents as policies over `ChessGame`: people, a book or an engine; known by name in specs.

    games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling,prior=games(file=others.pgn))
    polyglot(file=book.bin,weights=score,alpha=2.0)
    uci(r=40,nodes=1000,top_k=8)
    uci(engine=lc0,nodes=1,plays=bestmove,options=of(WeightsFile=maia-1500.pb.gz))
    uci(engine=stockfish,plays=bestmove,options=of(Skill_Level=5))
    games(file=karpov.pgn,player=Karpov Anatoli,prior=noisy(policy=uci(r=40,top_k=8),epsilon=0.2))

`mixture(a=...,b=...)` draws one of several for each game. Names of players are compared without commas and
dots. A file's name with parentheses, commas or equals signs in it stands in double quotes.

Specs that name a file, an engine, options or a store are made where they are trusted (`make_policy`). Without
engine=, uci(...) means the engine of whoever reads the spec (`opponent_policy`): a preparation's opponent, in
the examples the engine of the flags, whose searches are stored. An engine that a spec names is started, and
ends with the policy; its searches are kept in memory, or in store=.
"""

from __future__ import annotations

import contextvars
import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games.chess.data.game_records import read_games
from precomp_games.chess.data.move_counts import (
    CountsPolicy,
    GameTable,
    GameWeights,
    MoveCounts,
    PolyglotCounts,
    PolyglotWeights,
    game_tables,
    predicted_rows,
    warn_of,
)
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.pool import EngineError, EnginePool, find_engine
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import EngineLike, StoredEngine
from precomp_games.chess.game import ChessGame, ChessState, board_key
from precomp_games.chess.model.count_fit import CountFit, RollingCounts
from precomp_games.chess.model.engine_policies import PLAYS, SAMPLES, EnginePolicy
from precomp_games.policies.mixtures import MixturePolicy, drawn_once
from precomp_games.policies.rows import PolicyLike, is_of_history
from precomp_games.policies.specs import make_policy, register_policy

FITS = ("given", "rolling")
"""Where a `games_policy` has its half-life and alpha from."""
DEFAULT_PLIES = 60
_Alpha = Annotated[float, checks.Ge(0.0), checks.INFINITE]

_ALIKE = GameWeights()

_READER: contextvars.ContextVar[StoredEngine | None] = contextvars.ContextVar("engine", default=None)


class GamesPolicy(CountsPolicy):
    """What a person, or everybody, plays, by games.

    Attributes:
        report: what was read of the file.
        weights: how much a game counts.
        fit: what half-life and alpha were fitted, and how well they predict; None if they were given.
        read: the arguments of `reply_games` that read the same games.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        counts: MoveCounts,
        alpha: float,
        prior: PolicyLike | None,
        report: GameReport,
        weights: GameWeights,
        fit: CountFit | None,
        read: Mapping[str, Any],
    ) -> None:
        super().__init__(game, counts, alpha, prior)
        self.report, self.weights, self.fit, self.read = report, weights, fit, read

    def __str__(self) -> str:
        """One line."""
        half_life = f"H = {self.weights.half_life:.3g} years, alpha = {self.alpha:.3g}"
        fitted = f" (fitted: {self.fit.bits:.3f} bits a move)" if self.fit is not None else ""
        return f"{self.report}; {half_life}{fitted}"


@public
def read_table(
    path: checks.FilePath,
    player: str | None = None,
    *,
    without: str | None = None,
    max_plies: checks.PositiveInt = DEFAULT_PLIES,
    report: GameReport | None = None,
) -> GameTable:
    """A file's games as one table, in which the player's moves are its own, or everyone's.

    Args:
        path: see `read_games`, as for the rest.
        player: whose games; None: everyone's.
        without: whose games are left out.
        max_plies: half-moves of a game that are read.
        report: is filled with what was read and what was not.

    Raises:
        ValueError: see `read_games`; or no games.
        OSError: the file cannot be read.
    """
    report = GameReport() if report is None else report
    table = GameTable.join(_tables(path, player, without, max_plies, report))
    _check_read(report, path)
    return table


def _tables(
    path: Any,
    player: Any,
    without: Any,
    max_plies: Any,
    report: GameReport,
    copies: bool = False,
) -> Any:
    how: dict[str, Any] = {"setups": copies, "copies": copies}  # a match program's openings are its own
    how |= {"max_plies": max_plies, "report": report}
    records = read_games(path, player, without=without, **how)
    return game_tables(records, None if player is None else report.names)


def _check_read(report: GameReport, path: Any) -> None:
    if not report.games:
        raise ArgumentError(f"expected games in {path!r}, got none ({report})")


@public
def rolling_fit(
    table: GameTable,
    prior: PolicyLike | None = None,
    *,
    weights: GameWeights | None = None,
    period: checks.PositiveFloat = 1.0,
    before: Annotated[float, checks.INFINITE] = math.inf,
) -> CountFit:
    """The half-life and alpha by which earlier games predict later ones best (see `RollingCounts`).

    Args:
        table: the games.
        prior: the policy behind the counts; None: any legal move.
        weights: how much a game counts but for its age.
        period: years that are predicted at once.
        before: later periods are not looked at.

    Raises:
        ValueError: arguments of another kind, or no dated games before that.
    """
    if not (table.years <= before).any():
        raise ArgumentError(f"expected dated games before {before:g}, got none of {table.num_games}")
    rolling = RollingCounts(table, weights, period=period)
    return rolling.fits(prior_of_moves(prior, table)[rolling.moves], [before])[0]


@public
def prior_of_moves(
    policy: PolicyLike | None, table: GameTable, states: dict[int, ChessState] | None = None
) -> npt.NDArray[np.float64]:
    """float64[n]: how likely a policy (None: any legal move) finds each of a table's own moves.

    Args:
        policy: who is asked.
        table: the games.
        states: see `predicted_rows`.

    Raises:
        ValueError: no policy, or no table.
    """
    if policy is None:
        policy = CountsPolicy(ChessGame(), MoveCounts.of_tables([]))
    rows = predicted_rows(policy, table, states)
    played = table.actions[table.own].tolist()
    return np.array([row.get(action, 0.0) for row, action in zip(rows, played, strict=True)], np.float64)


@public
def games_policy(
    game: ChessGame,
    path: checks.FilePath,
    player: str | None = None,
    *,
    without: str | None = None,
    prior: PolicyLike | None = None,
    alpha: _Alpha = 1.0,
    weights: GameWeights | None = None,
    fit: Annotated[str, checks.one_of(FITS)] = "given",
    period: checks.PositiveFloat = 1.0,
    before: Annotated[float, checks.INFINITE] = math.inf,
    max_plies: checks.PositiveInt = DEFAULT_PLIES,
    copies: bool = False,
) -> GamesPolicy:
    """What a player, or everybody, plays in a file of games, with a prior behind it.

    Args:
        game: of chess.
        path: the file.
        player: who; None: everybody (see `read_games`).
        without: whose games are left out.
        prior: the policy behind the counts; None: any legal move.
        alpha: games that the prior is worth.
        weights: how much a game counts.
        fit: "given": by `alpha` and `weights`; "rolling": alpha and the half-life are those that predict
            later games best from earlier ones. That keeps all games of the player in memory. Where no
            game has a date, it is as "given".
        period: years that are predicted at once in that.
        before: a decimal year. Where it is finite, only games that are known to be older count, and their
            ages are counted up to then.
        max_plies: half-moves of a game that count.
        copies: whether the games are a match's: one that stands there twice was played twice, and one from
            another start position counts as well.

    Raises:
        ValueError: arguments of another kind; see `read_games`; or no games.
        OSError: the file cannot be read.
    """
    if copies and fit != "given":
        raise ArgumentError(f'expected fit to be "given" with copies, got {shown(fit)}')
    report = GameReport()
    tables = _tables(path, player, without, max_plies, report, copies=copies)
    read: dict[str, Any] = {"path": path, "player": player, "without": without, "max_plies": max_plies}
    read |= {"before": before, "copies": copies}
    counted: dict[str, Any] = {"alpha": alpha, "weights": weights or GameWeights()}
    return policy_of_tables(game, tables, report, read, prior, fit=fit, period=period, **counted)


def policy_of_tables(
    game: ChessGame,
    tables: Iterable[GameTable],
    report: GameReport,
    read: Mapping[str, Any],
    prior: PolicyLike | None,
    *,
    alpha: float = 1.0,
    weights: GameWeights = _ALIKE,
    fit: str = "given",
    period: float = 1.0,
) -> GamesPolicy:
    """`games_policy` of games that were read as `read` says."""
    path, before, fitted = read["path"], read["before"], None
    if math.isfinite(before):
        tables = (table.select(table.years < before) for table in tables)
        weights = weights if weights.as_of is not None else dataclasses.replace(weights, as_of=before)
    if fit == "rolling":
        table = GameTable.join(tables)
        _check_read(report, path)
        if math.isfinite(before) or not np.isnan(table.years).all():
            fitted = rolling_fit(table, prior, weights=weights, period=period, before=before)
            alpha, weights = fitted.alpha, dataclasses.replace(weights, half_life=fitted.half_life)
        tables = [table]
    counts = MoveCounts.of_tables(tables, weights)
    _check_read(report, path)
    if math.isfinite(before) and not len(counts):
        raise ArgumentError(f"expected dated games before {before:g} in {path!r}, got none")
    return GamesPolicy(game, counts, alpha, prior, report, weights, fitted, read)


@public
def polyglot_policy(
    game: ChessGame,
    path: checks.FilePath,
    weights: PolyglotWeights = "frequency",
    *,
    alpha: _Alpha = 1.0,
    prior: PolicyLike | None = None,
) -> CountsPolicy:
    """What a Polyglot book plays, with a prior behind it.

    Args:
        game: of chess.
        path: the book.
        weights: what its weights are, see `PolyglotCounts`.
        alpha: games that the prior is worth.
        prior: the policy behind the book; None: any legal move.

    Raises:
        ValueError: arguments of another kind, or a file that is no book.
        OSError: the file cannot be read.
    """
    counts = PolyglotCounts(path, weights)
    warn_of(path, counts.left_out + counts.strange)
    return CountsPolicy(game, counts, alpha, prior)


@public
def opponent_policy(
    game: ChessGame,
    spec: str | Mapping[str, Any],
    engine: EngineLike | None = None,
    *,
    trusted: bool | None = None,
) -> PolicyLike:
    """The policy of a spec, in which `engine` is that of `uci(...)` without engine=.

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
    if type(policy) is MixturePolicy and drawn_once(policy):
        key = None if is_of_history(policy) else board_key
        return MixturePolicy(policy.policies, policy.weights.tolist(), position_key=key)
    return policy


# -- by name -----------------------------------------------------------------------------------------------


def _prior(game: pyspiel.Game, spec: str | Mapping[str, Any]) -> PolicyLike | None:
    return None if spec == "uniform" else make_policy(game, spec)


def _games(
    game: pyspiel.Game,
    file: str = "",
    player: str = "",
    without: str = "",
    prior: str = "uniform",
    fit: str = "given",
    alpha: float = 1.0,
    half_life: float = 0.0,
    as_of: float = 0.0,
    rating: float = 0.0,
    rating_scale: float = 100.0,
    speed: str = "",
    other_speeds: float = 0.0,
    period: float = 1.0,
    before: float = 0.0,
    max_plies: int = DEFAULT_PLIES,
    copies: int = 0,
) -> GamesPolicy:
    """In a spec, 0 stands for what is not said: no half-life, no date, no rating."""
    weights = GameWeights(
        half_life=half_life or math.inf,
        as_of=as_of or None,
        rating=rating or None,
        rating_scale=rating_scale,
        speed=speed,
        other_speeds=other_speeds,
    )
    if fit == "rolling" and (half_life or alpha != 1.0):
        raise ArgumentError("expected either fit=rolling or half_life and alpha, got both")
    return games_policy(
        game,
        _named(file, "games(file=...)"),
        player or None,
        without=without or None,
        prior=_prior(game, prior),
        alpha=alpha,
        weights=weights,
        fit=fit,
        period=period,
        before=before or math.inf,
        max_plies=max_plies,
        copies=bool(copies),
    )


def _polyglot(
    game: pyspiel.Game, file: str = "", weights: str = "frequency", alpha: float = 1.0, prior: str = "uniform"
) -> CountsPolicy:
    path = _named(file, "polyglot(file=...)")
    return polyglot_policy(game, path, weights, alpha=alpha, prior=_prior(game, prior))


def _named(path: Any, spec: str) -> str:
    if not path:
        raise ArgumentError(f"expected {spec}, got none")
    return checks.check_path(path, "file")


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
        command = find_engine(engine)
        if not isinstance(command, str):  # a name may come from others, who are not to choose arguments
            raise EngineError(
                f"expected the file of an engine in a spec, got {engine!r}, which is no such file"
            )
        pool = EnginePool(command, workers=workers or None, options=_options(options))
        searcher = StoredEngine(EvaluationStore(os.path.expanduser(store) or ":memory:"), pool)
    return EnginePolicy(game, searcher, limit, r, top_k, plays=plays, samples=samples)


def _options(given: Any) -> dict[str, str | int | bool]:
    """UCI options of "of(Name=value,...)"; underscores are spaces, but in names that begin with UCI_."""
    if given == "":
        return {}
    if not isinstance(given, Mapping) or given.get("name") != "of":
        raise ArgumentError(f"expected options such as of(Hash=64), got {shown(given)}")
    options = {
        name if name.upper().startswith("UCI_") else name.replace("_", " "): value
        for name, value in given.items()
        if name != "name"
    }
    for name, value in options.items():
        if isinstance(value, float):  # as numbers come in specs
            if not value.is_integer():
                raise ArgumentError(f"expected option {name} to be text or a whole number, got {value!r}")
            options[name] = int(value)
    return options


for _name, _factory, _touches in (
    ("games", _games, ("file",)),
    ("polyglot", _polyglot, ("file",)),
    ("uci", _uci, ("engine", "options", "store", "workers")),
):
    register_policy(_name, _factory, touches=_touches)
