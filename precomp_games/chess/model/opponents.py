"""Opponents as policies over `ChessGame`: people, their games, a book or an engine; by name in specs.

    games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling,prior=games(file=others.pgn))
    polyglot(file=book.bin,weights=score,alpha=2.0)
    uci(r=40,nodes=1000,top_k=8)
    uci(engine=lc0,nodes=1,plays=bestmove,options=of(WeightsFile=maia-1500.pb.gz))
    uci(engine=stockfish,plays=bestmove,options=of(Skill_Level=5))
    games(file=karpov.pgn,player=Karpov Anatoli,prior=noisy(policy=uci(r=40,top_k=8),epsilon=0.2))
    human(rating=1500)
    games(file=club.pgn,player=A Friend,fit=rolling,prior=human(rating=1640))

`mixture(a=...,b=...)` draws one of several for each game. Names of players are compared without commas and
dots. A file's name with parentheses, commas or equals signs in it is put in double quotes.

Specs that name a file, an engine, options or a store must be trusted (`make_policy`). Without engine=,
uci(...) means the caller's engine (`opponent_policy`): a preparation's opponent, or in the examples the
engine of the flags, whose searches are stored. An engine that a spec names is started, and ends with the
policy; its searches are kept in memory, or in store=.
"""

from __future__ import annotations

import contextvars
import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games.chess.data import move_counts
from precomp_games.chess.data.move_counts import CountsPolicy, GameSelection, GameTable, GameWeights
from precomp_games.chess.data.names import printable_name
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.move_stats import StatsEngine
from precomp_games.chess.engines.pool import EngineError, EnginePool, find_engine
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import EngineLike, StoredEngine
from precomp_games.chess.game import ChessGame, ChessState, board_key
from precomp_games.chess.model.count_fit import CountFit, RollingCounts
from precomp_games.chess.model.engine_policies import PLAYS, SAMPLES, EnginePolicy
from precomp_games.chess.model.human import EnginePeople, HumanPolicy, PeoplePolicy, Rating
from precomp_games.policies.mixtures import MixturePolicy, drawn_once
from precomp_games.policies.rows import PolicyLike, is_of_history
from precomp_games.policies.specs import make_policy, quoted, register_policy

FITS = ("given", "rolling")
"""Sources of a `games_policy`'s half-life and alpha."""
_Alpha = Annotated[float, checks.Ge(0.0), checks.INFINITE]
_ALIKE = GameWeights()
_IN_SPECS = str.maketrans(dict.fromkeys('(),="', " "))

_READER: contextvars.ContextVar[StoredEngine | None] = contextvars.ContextVar("engine", default=None)


class GamesPolicy(CountsPolicy):
    """The play of a person, or of everybody, by games.

    Attributes:
        report: counts of what was read of the file.
        weights: settings of games' weights.
        fit: the fitted half-life and alpha, with their quality; None if they were given.
        read: the games.
        table: the games, if they are at hand; None: they are only in their file.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        counts: move_counts.MoveCounts,
        alpha: float,
        prior: PolicyLike | None,
        report: GameReport,
        weights: GameWeights,
        fit: CountFit | None,
        read: GameSelection,
        table: GameTable | None = None,
    ) -> None:
        super().__init__(game, counts, alpha, prior)
        self.table = table
        self.report, self.weights, self.fit, self.read = report, weights, fit, read

    def __str__(self) -> str:
        """Return the policy's data in one line."""
        half_life = f"H = {self.weights.half_life:.3g} years, alpha = {self.alpha:.3g}"
        fitted = f" (fitted: {self.fit.bits:.3f} bits a move)" if self.fit is not None else ""
        return f"{self.report}; {half_life}{fitted}"

    def spec(self, behind: str, *, rolling: bool = False) -> str:
        """Return the policy as a spec, by which it can be made again.

        Args:
            behind: the spec of the prior behind the games.
            rolling: whether half-life and alpha are fitted again to predict all games best.
        """
        read, half_life = self.read, self.weights.half_life
        whose = f"without={_name_in_spec(read.without)}" if read.without is not None else ""
        whose = whose or f"player={_name_in_spec(read.player or '')}"
        counted = f"half_life={half_life:.4g}," if math.isfinite(half_life) else ""
        counted = "fit=rolling" if rolling else f"{counted}alpha={self.alpha:.3g}"
        until = f",before={read.before:g}" if math.isfinite(read.before) else ""
        least = f",least={read.least}" if read.least > 1 else ""
        return (
            f"games(file={quoted(read.path)},{whose},{counted},"
            f"max_plies={read.max_plies}{until}{least},prior={behind})"
        )


def _name_in_spec(name: str) -> str:
    """Return a name for specs, where commas separate arguments, and for terminals."""
    return quoted(" ".join(printable_name(name).translate(_IN_SPECS).split()))


def rolling_fit(
    table: GameTable,
    prior: PolicyLike | None = None,
    *,
    weights: GameWeights | None = None,
    before: float = math.inf,
) -> CountFit:
    """Fit the half-life and alpha by which earlier games predict later ones best (see `RollingCounts`).

    Args:
        table: the games.
        prior: the policy behind the counts; None: any legal move.
        weights: settings of games' weights, except for age.
        before: later years are ignored.

    Raises:
        ValueError: no dated games before that.
    """
    if not (table.years <= before).any():
        raise ArgumentError(f"expected dated games before {before:g}, got none of {table.num_games}")
    rolling = RollingCounts(table, weights)
    return rolling.fits(prior_of_moves(prior, table)[rolling.moves], [before])[0]


def prior_of_moves(
    policy: PolicyLike | None, table: GameTable, states: dict[int, ChessState] | None = None
) -> npt.NDArray[np.float64]:
    """Return float64[n]: a policy's probability (None: any legal move) of each of a table's own moves.

    Args:
        policy: the policy.
        table: the games.
        states: see `predicted_rows`.
    """
    if policy is None:
        policy = CountsPolicy(ChessGame(), move_counts.MoveCounts.of_tables([]))
    rows = move_counts.predicted_rows(policy, table, states)
    played = table.actions[table.own].tolist()
    return np.array([row.get(action, 0.0) for row, action in zip(rows, played, strict=True)], np.float64)


@public
def games_policy(
    game: pyspiel.Game,
    file: checks.FilePath = "",
    player: str = "",
    without: str = "",
    prior: Any = "uniform",
    fit: Annotated[str, checks.one_of(FITS)] = "given",
    alpha: _Alpha = 1.0,
    half_life: checks.NonNegativeFloat = 0.0,
    rating: float = 0.0,
    rating_scale: float = 100.0,
    speed: str = "",
    other_speeds: float = 0.0,
    before: float = 0.0,
    max_plies: checks.PositiveInt = move_counts.DEFAULT_PLIES,
    copies: int = 0,
    least: checks.PositiveInt = 1,
) -> GamesPolicy:
    """Return the play of a player, or of everybody, in a file of games, with a prior; in a spec, games(...).

    Args:
        game: of chess.
        file: PGN.
        player: the player; "": everybody (see `read_games`).
        without: a player whose games are left out.
        prior: the policy behind the counts, or its spec; "uniform": any legal move.
        fit: "given": `alpha` and `half_life` are used; "rolling": those that predict later games best from
            earlier ones, which keeps all games of the player in memory. If no game has a date, as "given".
        alpha: number of games that the prior is worth.
        half_life: years in which a game's weight is halved; 0: age makes no difference.
        rating: of the mover, see `GameWeights`; 0: ratings make no difference.
        rating_scale: see `GameWeights`.
        speed: see `GameWeights`.
        other_speeds: see `GameWeights`.
        before: a decimal year. Only games that are known to be older count, with ages up to then; 0: all
            games count.
        max_plies: half-moves of a game that count.
        copies: 1 if the games are a match's: then copies of a game, and games from another start position,
            count as well.
        least: games in which a position must have come up for its moves to count. `alpha` is fitted to all.

    Raises:
        ValueError: see `read_games`; or no games.
        OSError: the file cannot be read.
    """
    if copies and fit != "given":
        raise ArgumentError(f'expected fit to be "given" with copies, got {shown(fit)}')
    if fit == "rolling" and (half_life or alpha != 1.0):
        raise ArgumentError("expected either fit=rolling or half_life and alpha, got both")
    weights = GameWeights(half_life or math.inf, None, rating or None, rating_scale, speed, other_speeds)
    whose, until = (player or None, without or None), before or math.inf
    read = GameSelection(_named(file, "games"), *whose, max_plies, until, bool(copies), least)
    behind, report = _prior(game, prior), GameReport()
    tables = move_counts.game_tables(read.records(report))
    return policy_of_tables(game, tables, report, read, behind, alpha=alpha, weights=weights, fit=fit)


def policy_of_tables(
    game: ChessGame,
    tables: Iterable[GameTable],
    report: GameReport,
    read: GameSelection,
    prior: PolicyLike | None,
    *,
    alpha: float = 1.0,
    weights: GameWeights = _ALIKE,
    fit: str = "given",
) -> GamesPolicy:
    """Return `games_policy` of games that were read; a sequence of tables is kept, and so is the fit."""
    before, fitted = read.before, None
    kept = fit == "rolling" or read.least > 1 or isinstance(tables, Sequence)
    if math.isfinite(before):
        tables = (table.select(table.years < before) for table in tables)
        weights = dataclasses.replace(weights, as_of=before)
    table = GameTable.join(tables) if kept else None
    if table is not None:
        tables = [table]
    if table is not None and fit == "rolling":
        read.check_read(report)
        if math.isfinite(before) or not np.isnan(table.years).all():
            fitted = rolling_fit(table, prior, weights=weights, before=before)
            alpha, weights = fitted.alpha, dataclasses.replace(weights, half_life=fitted.half_life)
    frequent = [table.frequent(read.least)] if table is not None and read.least > 1 else tables
    counts = move_counts.MoveCounts.of_tables(frequent, weights)
    read.check_read(report)
    if math.isfinite(before) and read.least == 1 and not len(counts):
        raise ArgumentError(f"expected dated games before {before:g} in {read.path!r}, got none")
    return GamesPolicy(game, counts, alpha, prior, report, weights, fitted, read, table)


@public
def polyglot_policy(
    game: pyspiel.Game,
    file: checks.FilePath = "",
    weights: move_counts.PolyglotWeights = "frequency",
    alpha: _Alpha = 1.0,
    prior: Any = "uniform",
) -> CountsPolicy:
    """Return the play of a Polyglot book, with a prior behind it; in a spec, polyglot(...).

    Args:
        game: of chess.
        file: the book.
        weights: meaning of its weights, see `PolyglotCounts`.
        alpha: number of games that the prior is worth.
        prior: the policy behind the book, or its spec; "uniform": any legal move.

    Raises:
        ValueError: a file that is no book.
        OSError: the file cannot be read.
    """
    path, behind = _named(file, "polyglot"), _prior(game, prior)
    counts = move_counts.PolyglotCounts.read(path, weights)
    move_counts.warn_of(path, counts.left_out + counts.strange)
    return CountsPolicy(game, counts, alpha, behind)


def _prior(game: pyspiel.Game, given: Any) -> PolicyLike | None:
    if given is None or given == "uniform":
        return None
    return make_policy(game, given) if isinstance(given, str | Mapping) else given


def _named(path: str | os.PathLike[str], name: str) -> str:
    if not path:
        raise ArgumentError(f"expected {name}(file=...), got none")
    return os.fspath(path)


@public
def opponent_policy(
    game: ChessGame,
    spec: str | Mapping[str, Any],
    engine: EngineLike | None = None,
    *,
    trusted: bool | None = None,
) -> PolicyLike:
    """Return the policy of a spec, in which `engine` is that of `uci(...)` without engine=.

    A mixture asks each of its components once about a position, however games come there.

    Args:
        game: of chess.
        spec: see `make_policy`.
        engine: its engine; None: specs must name one.
        trusted: whether files and engines that it names are opened and run, see `make_policy`.

    Raises:
        ValueError: no such spec.
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
    """Return an engine's policy; 0 stands for the default, and the default limit is 1,000 nodes."""
    limits = {"nodes": nodes, "depth": depth, "movetime_ms": movetime_ms}
    given = {name: value for name, value in limits.items() if value} or {"nodes": 1000}
    if len(given) > 1:
        raise ArgumentError(f"expected one of nodes, depth and movetime_ms, got {', '.join(given)}")
    limit = SearchLimit(**given)
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
        if not isinstance(command, str):  # a name from an untrusted spec must not choose arguments
            raise EngineError(
                f"expected the file of an engine in a spec, got {engine!r}, which is no such file"
            )
        pool = EnginePool(command, workers=workers or None, options=_options(options))
        searcher = StoredEngine(EvaluationStore(os.path.expanduser(store) or ":memory:"), pool)
    return EnginePolicy(game, searcher, limit, r, top_k, plays=plays, samples=samples)


def _human(
    game: ChessGame,
    rating: Rating = 1500.0,
    spread: Rating = 0.0,
    maia: str = "",
    engine: str = "",
    options: str = "",
) -> PeoplePolicy:
    """Return the play of people of a rating, by networks, or by an engine that contains one."""
    if engine:
        if maia:
            raise ArgumentError("expected either maia= or engine=, got both")
        return EnginePeople(game, StatsEngine(engine, _options(options)))
    if options:
        raise ArgumentError("expected engine= beside options=, got no engine")
    return HumanPolicy(game, rating, maia or None, spread=spread)


def _options(given: Any) -> dict[str, str | int | bool]:
    """Return UCI options of "of(Name=value,...)"; underscores are spaces, except in names with UCI_."""
    if given == "":
        return {}
    if not isinstance(given, Mapping) or given.get("name") != "of":
        raise ArgumentError(f"expected options such as of(Hash=64), got {shown(given)}")
    options = {}
    for key, value in given.items():
        name = key if key.upper().startswith("UCI_") else key.replace("_", " ")
        if isinstance(value, float) and not value.is_integer():
            raise ArgumentError(f"expected option {name} to be text or a whole number, got {value!r}")
        options[name] = int(value) if isinstance(value, float) else value  # as numbers come in specs
    del options["name"]
    return options


register_policy("games", games_policy, touches=("file",))
register_policy("human", _human, touches=("maia", "engine", "options"))
register_policy("polyglot", polyglot_policy, touches=("file",))
register_policy("uci", _uci, touches=("engine", "options", "store", "workers"))
