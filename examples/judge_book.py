r"""Judges the opening book that you have: what it is worth against an opponent, what it lacks, what can go.

  python examples/judge_book.py --book=mine.pgn --book=more.bin --side=white --r=20

The book is PGN, games with variations, or Polyglot (.bin); of several moves for a position the first one
counts. The opponent is an engine, as in chess_preparation.py, or whatever --opponent names. On a tree with
the book's moves and the analyst's, of all that comes up in a share of --penalty of games or more, it tells

  * what the book is worth, and its regret: how much more the best book of as many positions is worth, and the
    best one that is made of the book's own moves;
  * what forgetting each position costs, and what to drop first;
  * what to learn next: the positions that add most together, given the book, in the order to learn them;
  * holes: replies without an answer, by what they cost;
  * moves that lose against the analyst's, and positions that this opponent never lets you reach.

Without flags, a small book is judged against a person of whom there are a few games, without an engine.
Writes result.json, positions.csv, learn.csv, holes.csv and not_met.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import book_judgments
import chess_runs
from absl import flags

FLAGS = flags.FLAGS
for _shared in (common, chess_runs, book_judgments):
    flags.adopt_module_key_flags(_shared)


def main(argv: Sequence[str]) -> None:
    del argv
    book = book_judgments.my_book()
    settings = book_judgments.my_settings(book)
    with book_judgments.session(book, settings) as session:
        print(
            f"{FLAGS.side.capitalize()}'s book against {session.opponent}, judged by "
            f"{session.engines.analyst.engine_id} ({settings.analyst_limit}).\n{'Book':<20}{book.report}",
            flush=True,
        )
        judged = session.judged(session.policies())
        book_judgments.print_summary(judged, settings)
        print(f"{'Searches':<20}{len(session.needed)} needed, {session.engines.searches} of them new")
        tables = book_judgments.print_tables(judged, settings)
        session.write({"known": FLAGS.known}, book_judgments.report_dict(judged), tables)


if __name__ == "__main__":
    common.run(main)
