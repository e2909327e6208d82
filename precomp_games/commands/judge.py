r"""Judges the opening book that you have: what it is worth against an opponent, what it lacks, what can go.

  precomp-games judge --book=mine.pgn --book=more.bin --side=white --r=20

The book is PGN, games with variations, or Polyglot (.bin); of several moves for a position the first one
counts. The opponent is an engine, as in `precomp-games prepare`, or whatever --opponent names; with
--from=FOLDER of `precomp-games opponent` or `prepare` it is that run's, with all settings, and so is the book
where there is no --book. On a tree with the book's moves and the analyst's, of all that comes up in a share
of --penalty of games or more, it says

  * what the book is worth, and its regret: how much more the best book of as many positions is worth, and the
    best one that is made of the book's own moves;
  * what forgetting each position costs, and what to drop first;
  * what to learn next: the positions that add most together, given the book, in the order to learn them;
  * holes: replies without an answer, by what they cost;
  * moves of the book that are worth less than another one, and positions that this opponent never lets you
    reach.

Without flags, a small book is judged against a person of whom there are a few games, without an engine.
Prints points in 100 games, and writes shares of a game: result.json, positions.csv, learn.csv, holes.csv and
not_met.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

import chess
from absl import flags

from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder
from precomp_games.commands._judging import (
    book_and_settings,
    define_judging_flags,
    judged_by_flags,
    print_summary,
    print_tables,
    write_judgment,
)
from precomp_games.commands._showing import print_games, told_opponent


def define(own: flags.FlagValues) -> None:
    """Defines the flags."""
    define_judging_flags(own, "output/judge_book")


def run(given: flags.FlagValues) -> None:
    """Judges the book of the flags."""
    book, settings = book_and_settings(given)
    folder = output_folder(given.output_dir)
    with open_engines(given, settings) as engines:
        needed = engines.start_record()
        print(
            f"{chess.COLOR_NAMES[book.side].capitalize()}'s book against "
            f"{told_opponent(settings, engines.opponent.engine_id)}, judged by "
            f"{engines.analyst.engine_id} ({settings.analyst_limit}).\n{'Book':<20}{book.report}",
            flush=True,
        )
        print_games(settings, engines)
        for line in engines.misfits(settings):
            print(line, flush=True)
        judged = judged_by_flags(given, book, settings, engines)
        tables = judged.tables()
        print_summary(judged, settings)
        print(f"{'Searches':<20}{len(needed)} needed, {engines.searches} of them new")
        print_tables(tables, settings, given.rows)
        result = {"known": given.known, "score": settings.kind.score_name, **judged.to_json()}
        write_judgment(given, folder, settings, engines, result, tables)
        if given.export_store:
            engines.export(given.export_store, needed)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return run_command(__doc__, define, run, argv, stops=True)
