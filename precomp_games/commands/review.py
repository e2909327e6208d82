r"""Reviews games that you have played: where they left your book, by whom, at what cost, and what to learn.

  precomp-games review --games=new.pgn --player="Me" --from=output/karpov_anatoli
  precomp-games review --games=new.pgn --player="Me" --book=mine.pgn --side=white

It follows each game through the book's positions to the move at which you departed, the opponent's reply
that the book does not have, or the end of a line, and on if other moves lead back to the book. It prints how
much less your move there is worth than the book's, or the analyst's. It then adds the opponent's replies in
these games to the model, which weighs --prior_games games, and judges the book once more, as `precomp-games
judge` does, against the updated opponent. Flags are those of `precomp-games judge`. Without flags, it reviews
a small sample, without an engine. Writes result.json, games.csv, to_learn.csv, replies.csv, and the tables of
`precomp-games judge`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.deadlines import limited, part
from precomp_games.chess.data.game_records import GameRecord, position_hash, read_games
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.plan.review import AT_ITS_END, BY_OPPONENT, BY_OWNER, GamesReview, review_games
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands import _app, _chess, _flags, judge

STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of the games to review.

    Attributes:
      games: Your new games, in PGN. Default: a shipped sample.
      player: Your name, as in the file.
      prior_games: Weight of the opponent's model before these games, in games.
    """

    games: str | None = None
    player: str | None = None
    prior_games: Annotated[float, checks.Ge(1e-9)] = 5.0


def define(own: flags.FlagValues) -> None:
    """Define the flags: those of judging, and whose games are reviewed."""
    _flags.define_flags(own, Flags)
    judge.define_judging_flags(own, "output/review_games")


def run(given: flags.FlagValues) -> None:
    """Review the games of the flags, and judge the book once more by them."""
    book, settings = judge.book_and_settings(given)
    games, read = _games(given, book)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings) as engines:
        print(
            f"{'Games':<20}{len(games)} with the book's side, of {read}\n"
            f"{'Book':<20}{book.report}\n"
            f"{'Opponent before':<20}{OpponentWords(settings, engines.ids[1]).description}"
        )
        _chess.print_model(settings, engines)
        review = review_games(book, games, settings, engines.policies(settings), given.prior_games)
        with part(0.5):
            before = judge.judged_by_flags(given, book, settings, engines)
        now = judge.judged_by_flags(given, book, settings, engines, review.policies)
        if now.penalty != before.penalty:  # both on what comes up as often
            often = dataclasses.replace(settings, penalty=max(now.penalty, before.penalty))
            with limited(None):
                before = judge.judged_by_flags(given, book, often, engines)
                now = judge.judged_by_flags(given, book, often, engines, review.policies)
        if review.looked_at < len(games):
            print(
                f"{'Looked at':<20}{review.looked_at} of {counted(len(games), 'game')}, drawn with --seed, "
                "as there was time for by --minutes; the model of the opponent is made by all of them"
            )
        left_by, never = review.left_by, review.looked_at - len({row["game"] for row in review.games})
        print(
            f"{'The book was left':<20}{counted(left_by.total(), 'time')}: {left_by[BY_OWNER]} by you, "
            f"{left_by[BY_OPPONENT]} by the opponent, {left_by[AT_ITS_END]} at its end; "
            f"{counted(never, 'game')} never left it"
        )
        _print_review(review, given.prior_games, given.rows)
        print("\nThe book against the opponent as it was known before:")
        judge.print_summary(before, settings)
        print("\nThe book against the opponent as it is known now:")
        judge.print_summary(now, settings)
        tables = now.tables()
        judge.print_tables(tables, settings, given.rows)
        result = {
            "prior_games": given.prior_games,
            "reviewed": review.looked_at,
            "left_by": dict(left_by),
            "score": settings.kind.score_name,
            "before": before.to_json(),
        }
        rows = {"games": review.games, "to_learn": review.to_learn, "replies": review.replies}
        judge.write_judgment(given, folder, settings, engines, result | now.to_json(), rows | tables)


def _games(given: flags.FlagValues, book: Repertoire) -> tuple[dict[int, GameRecord], GameReport]:
    """Return your games of the book's color, from its start, by their number among yours, and a report."""
    path, player = given.games, given.player
    if path is None and (given.book or given["from"].value):
        raise ValueError("--games: expected the games that you have played with this book, got none")
    if path is None:
        path, player = _flags.shown_path(_flags.DATA / "review_sample.pgn"), player or "You"
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


def _print_review(review: GamesReview, prior_games: float, most: int) -> None:
    """Print where games left the book, what they teach, and what the opponent replied."""
    title = "Where each game left the book, and what your move there cost, in points of 100 games "
    columns = {"game": "game", "left_by": "left by", "cost": "cost", "played": "played", "book": "book"}
    columns |= {"better": "better", "back": "came back by"}
    judge.print_rows(f"{title}(below 0: it is worth more)", review.games, columns, most)
    title = "What these games teach, with these costs added up"
    judge.print_rows(title, review.to_learn, {"cost": "cost", "games": "games", "learn": "play"}, most)
    title = f"Replies of the opponent, whose model was worth {prior_games:g} games before"
    columns = {"was": "was", "is": "is now", "games": "games", "reply": "reply"}
    judge.print_rows(title, review.replies, columns, most)
