"""Reviews games played with a repertoire: where it was left, at what cost, and the lessons from that.

Each game is followed by positions. It leaves the repertoire if its owner plays another move, the opponent a
reply that the repertoire does not have, or a line ends; it comes back if other moves lead to a position of
the repertoire, and may leave it again. The opponent's replies are then added to the model of it:
`CountsPolicy`, with the earlier model as the prior.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import chess
import numpy as np

from precomp_games._support.deadlines import sample_in_time
from precomp_games._support.results import Result
from precomp_games.chess.data.game_records import GameRecord
from precomp_games.chess.data.move_counts import CountsPolicy, MoveCounts
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.game import ChessState, action_of, board_after, board_key, move_of
from precomp_games.chess.model.model import PreparationPolicies, by_player
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.judging import line_of
from precomp_games.policies.rows import as_batch_policy, is_of_history

# Reasons for leaving a repertoire: a move of either side, or the end of a line.
BY_OWNER = "you"
BY_OPPONENT = "the opponent"
AT_ITS_END = "the book's end"
_SHARE = 0.3  # of the remaining time, for following games

_LEAST = 5e-5  # anything less is shown as 0.00 points in 100 games


@dataclasses.dataclass(frozen=True)
class GamesReview(Result):
    """Results of a review of games; lines and moves are in SAN, costs are utilities in [-1, 1].

    Attributes:
      games: Rows, one for each time that a game left the book, with its number ("game"), the side that left
        it ("left_by"), the line up to there ("after"), the move that was played, the book's ("book"), a
        better one, each "" if there is none, the cost of the move played, below 0 if it is worth more than
        the book's, and the move by which the game came back ("back"), "" if it did not. A move is called
        better only if each search that has both moves agrees.
      to_learn: Rows with positions ("after") in which a better move is known ("learn"), the number of games
        and their loss there, the largest loss first.
      replies: Rows with the opponent's replies while the book was followed ("after", "reply", "games"), with
        their probabilities before these games ("was") and now ("is").
      policies: Both sides' play, the opponent's with the replies of these games.
      looked_at: Number of games in the rows, drawn at random if there was no time for all.
    """

    games: list[dict[str, Any]]
    to_learn: list[dict[str, Any]]
    replies: list[dict[str, Any]]
    policies: PreparationPolicies
    looked_at: int

    @property
    def left_by(self) -> collections.Counter[str]:
        """Number of times that games left the book, by `BY_OWNER` and the other reasons."""
        return collections.Counter(row["left_by"] for row in self.games)


def review_games(
    repertoire: Repertoire,
    games: Mapping[int, GameRecord],
    settings: PreparationSettings,
    policies: PreparationPolicies,
    prior_games: float,
) -> GamesReview:
    """Follow games through a repertoire.

    Args:
      repertoire: the book.
      games: its owner's games, from the book's start position, by any number.
      settings: of the preparation.
      policies: policies and values for costs; the opponent's is its model before these games.
      prior_games: number of games that this model is worth, more than 0.
    """
    start, replies = settings.game().new_initial_state(), _answered(repertoire)
    now = _updated(policies, settings, repertoire, list(games.values()), prior_games)

    def looked(drawn: list[int]) -> GamesReview:
        departures: list[_Departure] = []
        met: list[tuple[ChessState, int]] = []
        for number in drawn:
            found, answered = _followed(number, games[number].actions, repertoire, replies, start)
            departures += found
            met += answered
        rows = _departure_rows(departures, repertoire, policies) if departures else []
        answers = _reply_rows(met, repertoire, policies, now)
        return GamesReview(rows, _lessons(rows), answers, now, len(drawn))

    _, review = sample_in_time(list(games), looked, seed=settings.seed, share=_SHARE)
    return review


class _Departure(NamedTuple):
    """A departure of a game from the book.

    Attributes:
      number: of the game.
      by: the reason, see `BY_OWNER` and the others.
      state: the position, with the book's owner to move.
      played: the move that was played there.
      book: the book's move there, None if it has none.
      back: the move by which the game came back, "" if it did not.
    """

    number: int
    by: str
    state: ChessState
    played: int
    book: int | None
    back: str = ""


def _answered(book: Repertoire) -> set[str]:
    """Return the positions in which the book has an answer to some reply."""
    boards: dict[tuple[int, ...], chess.Board] = {(): book.start}
    for line in book.lines:
        for k in range(1, len(line)):
            if line[:k] not in boards:
                boards[line[:k]] = board_after(boards[line[: k - 1]], move_of(line[k - 1]))
    return {boards[line[:-1]].epd() for line in book.lines if line}


def _followed(
    number: int, actions: Sequence[int], book: Repertoire, replies: set[str], start: ChessState
) -> tuple[list[_Departure], list[tuple[ChessState, int]]]:
    """Return a game's departures, and the opponent's replies, with their positions, while in the book."""
    departures: list[_Departure] = []
    met: list[tuple[ChessState, int]] = []
    state, before, away = start, None, False
    for action in (*actions, None):  # None: the game is over, or its record
        key, own = board_key(state), state.current_player() == book.player
        known = book.actions_at(key) if own else ()
        if away and before is not None and (known or (not own and key in replies)):
            moved = before.board.variation_san([state.moves()[-1]])
            departures[-1], away = departures[-1]._replace(back=moved), False
        if action is None:
            break
        if not own and not away:
            met.append((state, action))
        elif own and not away and action not in known:
            answered = before is not None and board_key(before) in replies
            by = BY_OWNER if known else BY_OPPONENT if answered else AT_ITS_END
            departures.append(_Departure(number, by, state, action, known[0] if known else None))
            away = True
        before, state = state, state.child(action)
        if state.is_terminal():
            break
    return departures, met


def _departure_rows(
    departures: Sequence[_Departure], book: Repertoire, policies: PreparationPolicies
) -> list[dict[str, Any]]:
    """Return a row for each departure, with the cost of the move played according to the analyst.

    A search of the position compares the two moves; if it lacks one of them, searches of the positions after
    them do. These have an error: by the first search, a move that it has is better than any that it lacks,
    and if the two kinds of searches differ, neither move is called better.
    """
    evaluation = policies.leaf_value
    epds = [board_key(each.state) for each in departures]
    searches = evaluation.engine.search(epds, evaluation.limit, evaluation.multipv)
    rows = []
    for each, search in zip(departures, searches, strict=True):
        board, played = each.state.board, each.played
        worth = {
            action_of(chess.Move.from_uci(line.move)): evaluation.utility.mover_utility(line, board)
            for line in search.lines
        }
        other = next(iter(worth)) if each.book is None else each.book
        agreed = other in worth or played not in worth
        if other != played and not {other, played} <= worth.keys():
            worth = {move: _worth_of(each.state, move, policies) for move in (other, played)}
        cost = worth[other] - worth[played] if other != played else 0.0
        rows.append(
            {
                "game": each.number,
                "left_by": each.by,
                "after": line_of(book.start, each.state.moves()),
                "played": board.san(move_of(played)),
                "book": "" if each.book is None else board.san(move_of(each.book)),
                "better": board.san(move_of(other)) if agreed and cost >= _LEAST else "",
                "cost": cost,
                "back": each.back,
            }
        )
    return rows


def _worth_of(state: ChessState, action: int, policies: PreparationPolicies) -> float:
    """Return the value of the position after a move to the side that made it."""
    then = state.child(action)
    white = float(then.returns()[0] if then.is_terminal() else policies.leaf_value.evaluate_batch([then])[0])
    return white if state.current_player() == 0 else 1.0 - white


def _lessons(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the positions in which a better move is known, by the total loss in these games."""
    total: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for row in rows:
        if row["better"]:
            total[row["after"], row["better"]].append(row["cost"])
    lessons = [
        {"after": after, "learn": move, "games": len(costs), "cost": sum(costs)}
        for (after, move), costs in total.items()
    ]
    return sorted(lessons, key=lambda row: (-row["cost"], row["after"]))


def _updated(
    policies: PreparationPolicies,
    settings: PreparationSettings,
    book: Repertoire,
    games: Sequence[GameRecord],
    prior_games: float,
) -> PreparationPolicies:
    """Return the policies with an opponent whose model has the replies of these games."""
    rival = 1 - book.player
    replies = [
        each
        for record in games
        for ply, each in enumerate(zip(record.keys, record.actions, strict=True))
        if record.mover(ply) != book.side
    ]
    keys, actions = (np.array([each[k] for each in replies], kind) for k, kind in enumerate("QH"))
    counts = MoveCounts(keys, actions, np.ones(len(replies)))
    model = CountsPolicy(settings.game(), counts, prior_games, policies.sigma[rival])
    own = policies.sigma[book.player]
    return dataclasses.replace(policies, sigma=by_player(book.player, own, model))


def _reply_rows(
    replies: Iterable[tuple[ChessState, int]],
    book: Repertoire,
    before: PreparationPolicies,
    after: PreparationPolicies,
) -> list[dict[str, Any]]:
    """Return the opponent's replies while the book was followed, with their probabilities before and now."""
    met: dict[tuple[Hashable, int], list[ChessState]] = collections.defaultdict(list)
    rival = 1 - book.player
    whole = any(is_of_history(each.sigma[rival]) for each in (before, after))
    for state, action in replies:
        met[tuple(state.history()) if whole else board_key(state), action].append(state)
    states = [each[0] for each in met.values()]
    old_rows, new_rows = (as_batch_policy(each.sigma[rival])(states) for each in (before, after))
    rows = [
        {
            "after": line_of(book.start, times[0].moves()),
            "reply": times[0].board.san(move_of(action)),
            "games": len(times),
            "was": float(old.get(action, 0.0)),
            "is": float(new.get(action, 0.0)),
        }
        for ((_, action), times), old, new in zip(met.items(), old_rows, new_rows, strict=True)
    ]
    return sorted(rows, key=lambda row: (row["was"] - row["is"], row["after"]))
