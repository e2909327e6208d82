r"""Reviews games that you have played: where your book was left, by whom, what that cost, what to learn now.

  python examples/review_games.py --games=new.pgn --player="Me" --book=mine.pgn --side=white

In each game it follows the book to the move at which you played something else, the opponent a reply that the
book does not have, or its line was at an end, and says how much less the move that you then played is worth
than the book's, or the analyst's. The opponent's replies in these games are then added to the model of it,
which is worth --prior_games games, and the book is judged once more, as judge_book.py does, against the
opponent as it is known now. Flags are those of judge_book.py. Without flags, on a small sample, without an
engine. Writes result.json, games.csv, to_learn.csv, replies.csv, and the tables of judge_book.py.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import book_judgments
import chess
import chess_runs
from absl import flags

from precomp_games.chess import (
    ChessState,
    CountsPolicy,
    GameRecord,
    GameReport,
    PreparationPolicies,
    PreparationSettings,
    Repertoire,
    action_of,
    board_key,
    move_of,
    position_hash,
    read_games,
)
from precomp_games.commands._files import DATA, shown_path

FLAGS = flags.FLAGS
_GAMES = flags.DEFINE_string("games", None, "Your new games, in PGN. Default: a shipped sample.")
_PLAYER = flags.DEFINE_string("player", None, "Who you are, as the file has the name.")
_PRIOR_GAMES = flags.DEFINE_float(
    "prior_games", 5.0, "Games that the model of the opponent was worth before these.", 1e-9
)
for _shared in (common, chess_runs, book_judgments):
    flags.adopt_module_key_flags(_shared)
FLAGS.set_default("output_dir", "output/review_games")

_YOU, _OPPONENT, _END = "you", "the opponent", "the book's end"


class Departure(NamedTuple):
    """Where a game left the book.

    Attributes:
      number: of the game, among yours in the file.
      by: who left it, or that its line was at an end.
      state: the position, one of yours.
      played: the move that was played there.
      book: what the book plays there, None where it has nothing.
    """

    number: int
    by: str
    state: ChessState
    played: int
    book: int | None


def my_games(book: Repertoire) -> tuple[dict[int, GameRecord], GameReport]:
    """Your games with the book's side, from its start, by their number among yours; what was read."""
    path, player = _GAMES.value, _PLAYER.value
    if path is None:
        path, player = shown_path(DATA / "review_sample.pgn"), player or "You"
    elif player is None:
        raise ValueError("--player: expected whose games in --games are reviewed, got none")
    report, kept = GameReport(), {}
    start = position_hash(book.start)
    for number, record in enumerate(read_games(path, player, setups=True, report=report), start=1):
        own = record.white if book.side == chess.WHITE else record.black
        if own not in report.names:
            report.left_out["games with the other side"] += 1
        elif record.keys[0] != start:
            report.left_out["another start position"] += 1
        else:
            kept[number] = record
    if not kept:
        side = chess.COLOR_NAMES[book.side].capitalize()
        raise ValueError(f"--games: expected games of {player!r} as {side}, got none ({report})")
    return kept, report


def answered(book: Repertoire) -> set[str]:
    """The positions in which the book has an answer to some reply."""
    boards: dict[tuple[int, ...], chess.Board] = {(): book.start}
    found = set()
    for line in book.lines:
        for k in range(1, len(line)):
            if line[:k] not in boards:
                board = boards[line[: k - 1]].copy(stack=False)
                board.push(move_of(line[k - 1]))
                boards[line[:k]] = board
        if line:
            found.add(boards[line[:-1]].epd())
    return found


def departure(
    number: int, actions: Sequence[int], book: Repertoire, replies: set[str], start: ChessState
) -> Departure | None:
    """Where a game left the book; None where it ended in it."""
    state, before = start, ""
    for action in actions:
        if state.current_player() == book.player:
            known = book.actions_at(board_key(state))
            if not known:
                return Departure(number, _OPPONENT if before in replies else _END, state, action, None)
            if action not in known:
                return Departure(number, _YOU, state, action, known[0])
        before = board_key(state)
        state = state.child(action)
        if state.is_terminal():
            return None
    return None


def game_rows(
    departures: Sequence[Departure], book: Repertoire, policies: PreparationPolicies
) -> list[dict[str, Any]]:
    """Each game's departure, with what the move that was played there cost by the analyst.

    A search of the position compares the two moves; where it does not have one of them, searches of the
    positions after them do.
    """
    evaluation = policies.leaf_value
    epds = [board_key(each.state) for each in departures]
    searches = evaluation.engine.search(epds, evaluation.limit, evaluation.multipv)
    rows = []
    for each, search in zip(departures, searches, strict=True):
        board, played = each.state.board, each.played
        lines = {action_of(chess.Move.from_uci(line.move)): line for line in search.lines}
        better = next(iter(lines)) if each.book is None else each.book
        if better == played:
            cost = 0.0
        elif better in lines and played in lines:
            best, own = (evaluation.utility.mover_utility(lines[move], board) for move in (better, played))
            cost = best - own
        else:
            cost = after(each.state, better, policies) - after(each.state, played, policies)
        rows.append(
            {
                "game": each.number,
                "left_by": each.by,
                "after": book_judgments.line_of(book.start, each.state.moves()),
                "played": board.san(move_of(played)),
                "better": board.san(move_of(better)) if better != played else "",
                "cost": cost,
            }
        )
    return rows


def after(state: ChessState, action: int, policies: PreparationPolicies) -> float:
    """What the position after a move is worth to the side that made it."""
    then = state.child(action)
    white = float(then.returns()[0] if then.is_terminal() else policies.leaf_value.evaluate_batch([then])[0])
    return white if state.current_player() == 0 else 1.0 - white


def lessons(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What these games teach: positions in which a better move is known, by what that cost in all of them."""
    total: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for row in rows:
        if row["cost"] > 0.0:
            total[row["after"], row["better"]].append(row["cost"])
    found = [
        {"after": after, "learn": move, "games": len(costs), "cost": sum(costs)}
        for (after, move), costs in total.items()
    ]
    return sorted(found, key=lambda row: (-row["cost"], row["after"]))


class Replies:
    """How often each reply was played in games, as `CountsPolicy` asks for it."""

    def __init__(self, games: Sequence[GameRecord], side: chess.Color) -> None:
        """Counts the moves of one side."""
        self._played: dict[int, collections.Counter[int]] = collections.defaultdict(collections.Counter)
        for record in games:
            for ply, (key, action) in enumerate(zip(record.keys, record.actions, strict=True)):
                if record.mover(ply) == side:
                    self._played[key][action] += 1

    def at(self, board: chess.Board) -> tuple[dict[int, float], float]:
        """Games by action at a position; none of them with a reply that is not listed."""
        found = self._played.get(position_hash(board), collections.Counter())
        return {action: float(count) for action, count in found.items()}, 0.0


def updated(
    policies: PreparationPolicies,
    settings: PreparationSettings,
    book: Repertoire,
    games: Sequence[GameRecord],
) -> PreparationPolicies:
    """The same, with an opponent whose model has the replies of these games."""
    rival = 1 - book.player
    counts = Replies(games, not book.side)
    model = CountsPolicy(settings.game(), counts, _PRIOR_GAMES.value, policies.sigma[rival])
    sigma = (policies.sigma[0], model) if rival == 1 else (model, policies.sigma[1])
    return dataclasses.replace(policies, sigma=sigma)


def reply_rows(
    games: Sequence[GameRecord],
    book: Repertoire,
    settings: PreparationSettings,
    before: PreparationPolicies,
    after: PreparationPolicies,
) -> list[dict[str, Any]]:
    """The opponent's replies while the book was followed, and how likely they were and are."""
    met: dict[tuple[str, int], tuple[ChessState, list[int]]] = {}
    for record in games:
        state = settings.game().new_initial_state()
        for action in record.actions:
            if state.current_player() == book.player:
                if action not in book.actions_at(board_key(state)):
                    break
            else:
                met.setdefault((board_key(state), action), (state, []))[1].append(action)
            state = state.child(action)
            if state.is_terminal():
                break
    rival = 1 - book.player
    rows = []
    for (_, action), (state, times) in met.items():
        old, new = (
            each.sigma[rival].action_probabilities(state).get(action, 0.0) for each in (before, after)
        )
        rows.append(
            {
                "after": book_judgments.line_of(book.start, state.moves()),
                "reply": state.board.san(move_of(action)),
                "games": len(times),
                "was": float(old),
                "is": float(new),
            }
        )
    return sorted(rows, key=lambda row: (row["was"] - row["is"], row["after"]))


def main(argv: Sequence[str]) -> None:
    del argv
    book = book_judgments.my_book()
    settings = book_judgments.my_settings(book)
    games, read = my_games(book)
    with book_judgments.session(book, settings) as session:
        print(
            f"{'Games':<20}{len(games)} with the book's side, of {read}\n"
            f"{'Book':<20}{book.report}\n{'Opponent before':<20}{session.opponent}",
            flush=True,
        )
        policies = session.policies()
        start, replies = settings.game().new_initial_state(), answered(book)
        found = [departure(k, game.actions, book, replies, start) for k, game in games.items()]
        departures = [each for each in found if each is not None]
        rows = game_rows(departures, book, policies) if departures else []
        now = updated(policies, settings, book, list(games.values()))
        first = session.judged(policies)
        second = session.judged(now, "Searching again")
        by = collections.Counter(row["left_by"] for row in rows)
        print(
            f"{'The book was left':<20}by you in {by[_YOU]} games, by the opponent in {by[_OPPONENT]}, "
            f"at its end in {by[_END]}, and never in {len(games) - len(rows)}"
        )
        to_learn, changes = lessons(rows), reply_rows(list(games.values()), book, settings, policies, now)
        print_games(rows, to_learn, changes)
        print("\nThe book against the opponent as it was known before:")
        book_judgments.print_summary(first, settings)
        print("\nThe book against the opponent as it is known now:")
        book_judgments.print_summary(second, settings)
        tables = book_judgments.print_tables(second, settings)
        run = {"prior_games": _PRIOR_GAMES.value, "reviewed": len(games), "left_by": dict(by)}
        before, after = (book_judgments.report_dict(judged) for judged in (first, second))
        extra = {"games": rows, "to_learn": to_learn, "replies": changes}
        session.write(run, {"before": before, **after}, extra | tables)


def print_games(
    rows: Sequence[dict[str, Any]], to_learn: Sequence[dict[str, Any]], changes: Sequence[dict[str, Any]]
) -> None:
    """What games say: where they left the book, what they teach, and what the opponent replied."""
    book_judgments.print_rows(
        "Where each game left the book, and what the move that was played there cost",
        rows,
        {"game": "game", "left_by": "left by", "cost": "cost", "played": "played", "better": "better"},
    )
    book_judgments.print_rows(
        "What these games teach", to_learn, {"cost": "cost", "games": "games", "learn": "play"}
    )
    book_judgments.print_rows(
        f"Replies of the opponent, whose model was worth {_PRIOR_GAMES.value:g} games before",
        changes,
        {"was": "was", "is": "is now", "games": "games", "reply": "reply"},
    )


if __name__ == "__main__":
    common.run(main)
