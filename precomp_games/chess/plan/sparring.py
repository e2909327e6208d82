"""Prepares by games that were played: by the opponent's moves in them, and by their results.

A model predicts the opponent's moves; its games show them. So its model is the prior behind the games
(`games_policy`), with the weight of one game: the posterior mean of independent Dirichlet distributions, one
a position, which is all that matters for the next game, since a position comes up at most once in it. With
several possible opponents, a mixture, each game is evidence of who it is, and unlikely ones are left out.

The results give leaf values where games left the book, and at our turns after that: they count as the games
that teach `confirmed_precomputation`. They also correct the analyst's scores for these engines and their
speed, by a fit with the given one as its prior. Without that, lines that no game has seen would seem better
than those that some have lost, and each book would be another one.

Values here are not validated: the best book by all that is known so far is chosen for luck as well, and its
value is measured by games that come after it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.results import Shown
from precomp_games.algorithms import confirmed_precomputation
from precomp_games.algorithms.preparation.confirmed import CREDITED, PlayedGame
from precomp_games.chess.data import game_records
from precomp_games.chess.data.book import Book
from precomp_games.chess.data.move_counts import GameSelection, GameWeights, MoveCounts, game_tables
from precomp_games.chess.data.pgn_files import GameReport, pgn_names
from precomp_games.chess.game import ChessState, board_key, move_of
from precomp_games.chess.model import model
from precomp_games.chess.model.calibration import after_games, material
from precomp_games.chess.model.engine_policies import ANSWERS, EngineEvaluation
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import BySparring, Preparation
from precomp_games.chess.plan.prepare import stops_of
from precomp_games.chess.plan.trees import certified_book
from precomp_games.chess.play.engine_games import Clock
from precomp_games.chess.play.match import memorized_rows
from precomp_games.policies.mixtures import MixturePolicy, drawn_once
from precomp_games.policies.rows import PolicyLike
from precomp_games.policies.specs import quoted

_LIKELY = 0.02  # relative to the most likely opponent; less likely ones are left out
_LOGITS_OF_TWICE_THE_TIME = 1.0  # effect on an expected score between engines, see docs/sparring.md
_UNLIKELY = 1e-3  # of a mixture's component that plays otherwise: one move may be an accident


@public
@dataclasses.dataclass(frozen=True)
class SparringGames(Shown):
    """The games of one opponent in a file, as a match program or `play_engine_games` wrote them.

    Attributes:
      name: The opponent's, as in tags.
      records: Its games, in their order; each counts, even if it is a copy of another.
      path: The file, PGN; "" for games that are in none.
      report: Counts of what was read of the file.
    """

    name: str
    records: Annotated[tuple[game_records.GameRecord, ...], checks.each_of(game_records.GameRecord)] = ()
    path: str = ""
    report: GameReport = dataclasses.field(default_factory=GameReport)

    @classmethod
    @public
    def read(cls, path: checks.FilePath, name: str, *, own: bool = False) -> SparringGames:
        """Read the games of an opponent in a file.

        Args:
          path: the file.
          name: the opponent's, see `read_games`.
          own: whether the file grows as games are played: it may be missing, or have no games yet.

        Raises:
          ValueError: nobody has that name.
          OSError: the file cannot be read.
        """
        report, where = GameReport(), os.fspath(path)
        if own and not (os.path.exists(where) and name in pgn_names(where)):
            return cls(name, (), where, report)
        records = tuple(game_records.read_games(where, name, setups=True, copies=True, report=report))
        return cls(name, records, where, report)

    @public
    def against(self, settings: PreparationSettings) -> list[tuple[game_records.GameRecord, float]]:
        """Return the finished games of these settings, from their start and by their side, with scores."""
        side = settings.side
        start = game_records.position_hash(settings.game().new_initial_state().board)
        return [
            (record, score if side == chess.WHITE else 1.0 - score)
            for record in self.records
            if record.own == (not side,) and record.keys[:1] == (start,)
            if (score := game_records.WHITE_SCORES.get(record.result)) is not None
        ]


def left_at(record: game_records.GameRecord, side: chess.Color) -> int | None:
    """Return the half-move of a side's first move that is not of a book; None if there is none."""
    plies = range(0 if record.first == side else 1, len(record.actions), 2)
    return next((ply for ply in plies if ply not in record.booked), None)


def _taught(games: SparringGames, settings: PreparationSettings) -> list[tuple[list[ChessState], float]]:
    """Return our turns in each game since it left the book, and its score."""
    root, taught = settings.played_game().new_initial_state(), list[tuple[list[ChessState], float]]()
    for record, score in games.against(settings):
        state, passed, first = root.clone(), list[ChessState](), left_at(record, settings.side)
        for ply, action in enumerate(record.actions):
            if state.is_terminal() or first is None or len(passed) == CREDITED:
                break
            if ply >= first and state.current_player() == settings.player:
                passed.append(state.clone())
            state.apply_action(action)
        taught.append((passed, score))
    return taught


def _time_saved(clock: Clock, player: int, state: ChessState) -> float:
    """Return the value, on the logit, to a state's mover of a player's time saved by a book."""
    gained = _LOGITS_OF_TWICE_THE_TIME * math.log2(clock.time_gained(state.ply // 2))
    return gained if state.current_player() == player else -gained


def _timed(value: Any, clock: Clock | None, player: int) -> Any:
    """Return an evaluation that includes the time left on a clock when moves of a book have taken none."""
    if clock is None or not isinstance(value, EngineEvaluation):
        return value
    return dataclasses.replace(value, beside=functools.partial(_time_saved, clock, player))


def _learned(
    value: Any, taught: Sequence[tuple[list[ChessState], float]]
) -> tuple[Any, Sequence[PlayedGame]]:
    """Return an evaluation corrected by games, each counted where it left the book, with these games.

    At later turns a game counts as if it had left the book there, with the time that this would have saved.
    """
    left = [(passed, score) for passed, score in taught if passed]
    if not left or not isinstance(value, EngineEvaluation):  # others need no correction here
        return value, taught
    results = value.engine.search([passed[0].epd for passed, _ in left], value.limit, value.multipv)
    lines = [
        (result.lines[0], material(passed[0].board))
        for (passed, _), result in zip(left, results, strict=True)
    ]
    known = [[value.beside(state) if value.beside else 0.0 for state in passed] for passed, _ in left]
    utility: Any = value.utility
    utility = after_games(utility, lines, [score for _, score in left], [each[0] for each in known])
    value = dataclasses.replace(value, utility=utility)
    if value.beside is None:
        return value, left
    later = list[PlayedGame]()
    for (passed, score), (line, _), each in zip(left, lines, known, strict=True):
        worth = [utility.mover_utility(line, passed[0].board, beside) for beside in each]
        later.append((passed, [score + there - worth[0] for there in worth]))
    return value, later


def _identified(prior: Any, settings: PreparationSettings, games: SparringGames) -> PolicyLike:
    """Return the posterior of a mixture after all games, in which the opponent is the same."""
    root, rival = settings.played_game().new_initial_state(), 1 - settings.player
    ends = []
    for record, _ in games.against(settings):
        state = root.clone()
        for action in record.actions:
            if state.is_terminal():
                break
            state.apply_action(action)
        ends.append(state)
    # The posterior is the prior times the game's likelihood, which is bounded: one move may be an accident.
    evidence = np.log(np.maximum(prior.posteriors(ends, rival), _UNLIKELY)) - np.log(prior.weights)
    total = evidence.sum(axis=0) + np.log(prior.weights)
    weights = np.exp(total - total.max())
    likely = np.flatnonzero(weights >= _LIKELY).tolist()
    each = [prior.policies[k] for k in likely]
    return MixturePolicy(each, weights[likely].tolist(), position_key=board_key)


@public
def informed_policies(
    settings: PreparationSettings, engines: model.Engines, games: SparringGames
) -> model.PreparationPolicies:
    """Return the policies of settings, in which the opponent plays as its games show.

    Raises:
      ValueError, OSError, EngineError: as `preparation_policies` and `games_policy`.
    """
    if not games.records:
        return engines.policies(settings)
    replies = model.modelled_play(settings, 1 - settings.player, engines.opponent)
    if drawn_once(replies):
        replies = _identified(replies, settings, games)
    else:
        counts, player = MoveCounts.of_tables(game_tables(games.records)), games.name if games.path else None
        read = GameSelection(games.path, player, max_plies=game_records.MAX_PLIES, copies=True)
        game, weights = settings.game(), GameWeights()
        replies = GamesPolicy(game, counts, 1.0, replies, games.report, weights, None, read)
    return model.preparation_policies(settings, engines.analyst, engines.opponent, replies=replies)


@public
def prepare_from_games(
    settings: PreparationSettings,
    engines: model.Engines,
    games: SparringGames,
    *,
    budget: checks.NonNegativeInt = 150,
    max_evaluations: checks.PositiveInt = 20_000,
    enough: Callable[[], bool] | None = None,
    doubt: float = 0.0,
    optimism: checks.NonNegativeFloat | None = None,
    clock: Clock | None = None,
) -> Preparation:
    """Find the best book by an opponent's games, and by an evaluation that their scores correct.

    Args:
      settings: of the preparation, with a choice of moves (`menu`), and a fitted evaluation.
      engines: engines of the searches.
      games: the games so far.
      budget: positions at most.
      max_evaluations: largest number of evaluations.
      enough: called now and then; true stops the search.
      doubt: number of standard deviations that are subtracted from each leaf value: the last book should go
        where games have scored. If negative, they are added while a book is chosen: it goes where few games
        have been, at a small cost, and games teach the value there.
      optimism: optimism about unsearched lines, see `confirmed_precomputation`.
      clock: time of each side, if a clock runs: a move of the book leaves more time for later moves, whose
        value is that measured between engines (docs/sparring.md).

    Returns:
      The preparation. Its utilities are estimates, which later games confirm or refute.

    Raises:
      ValueError, EngineError, OSError: an argument, the engines, the store or the file are not valid.
    """
    if not settings.kind.fitted or settings.menu < 1 or settings.distrust or settings.price != "infosets":
        raise ArgumentError(
            "expected settings with a fitted evaluation, a menu, no distrust and a price per history, got "
            f"evaluation={settings.evaluation!r}, menu={settings.menu}, distrust={settings.distrust:g}, "
            f"price={settings.price!r}"
        )
    policies = informed_policies(settings, engines, games)
    timed = _timed(policies.leaf_value, clock, settings.player)
    value, taught = _learned(timed, _taught(games, settings))
    found = confirmed_precomputation(
        *model.searched(dataclasses.replace(policies, leaf_value=value), settings.played_game(), settings),
        budget=budget,
        games=0,
        promise_games=0,
        prior_games=value.utility.prior_games,
        played=taught,
        doubt=doubt,
        optimism=optimism,
        max_evaluations=max_evaluations,
        position_key=board_key,
        min_probability=settings.min_probability,
        seed=settings.seed,
        enough=enough,
    )
    book, gains = certified_book(found.preparation), found.preparation.gain.tolist()
    played = {"played": len(games.records)}
    search = BySparring(games=played, work=found.preparation.work, stops=stops_of(found))
    worth = found.promise, found.unprepared, found.promise - settings.penalty * len(book)
    return Preparation(settings, book, engines.ids, *worth, gains, budget=budget, search=search)


def spec_of_games(settings: PreparationSettings, games: SparringGames) -> str:
    """Return the opponent of `prepare_from_games` as a spec, for games in a file and a single opponent."""
    prior = settings.opponent
    if not prior:
        limit = str(settings.opponent_limit).replace("movetime", "movetime_ms")
        how = f"r={settings.opponent_temperatures_cp[0]:.15g},top_k={settings.top_k}"
        if settings.opponent_plays in ANSWERS:
            how = f"samples={settings.opponent_samples}"
        prior = f"uci({limit},plays={settings.opponent_plays},{how})"
    whose = f"file={quoted(games.path)},player={quoted(games.name)}"
    return f"games({whose},prior={prior},max_plies={game_records.MAX_PLIES},copies=1)"


# -- lines by which games left a book ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PlayedLine:
    """A line by which games left a book, with their score and the present book's move.

    Attributes:
      moves: Up to the position without a move of the book.
      games: Number of games.
      score: Their mean.
      now: The present book's move there, in words.
    """

    moves: tuple[chess.Move, ...]
    games: int
    score: float
    now: str


@public
def played_lines(
    played: Sequence[tuple[game_records.GameRecord, float]], settings: PreparationSettings, now: Book
) -> list[PlayedLine]:
    """Return the lines by which games left their book, largest loss first, with another book's moves there.

    Args:
      played: games and their scores, see `SparringGames.against`.
      settings: of our side.
      now: the book that comes after them.
    """
    rows, scores = memorized_rows(now), dict[tuple[int, ...], list[float]]()
    for record, score in played:
        ply = left_at(record, settings.side)
        scores.setdefault(record.actions[:ply], []).append(score)
    lines = [
        PlayedLine(tuple(map(move_of, line)), len(each), float(np.mean(each)), _now(line, now, rows))
        for line, each in scores.items()
    ]
    return sorted(lines, key=lambda line: -line.games * (1.0 - line.score))


def _now(line: tuple[int, ...], book: Book, rows: dict[tuple[int, ...], dict[int, float]]) -> str:
    """Describe a book's move in a line by which games left another book."""
    board = book.start.copy(stack=False)
    for ply, action in enumerate((*line, None)):
        if board.turn == book.side:
            row = rows.get(line[:ply])
            if row is None:
                return "as before" if action is None else f"ends at move {board.fullmove_number}"
            best = max(row, key=lambda move: row[move])
            if action is None or action not in row:
                where = "goes on with" if action is None else "plays"
                dots = "." if board.turn else "..."
                return f"{where} {board.fullmove_number}{dots}{board.san(move_of(best))}"
        if action is not None:
            board.push(move_of(action))
    return "as before"
