r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning, and which of the good moves there? (Algorithm 1 of
"Modeling Precomputation in Games Played Under Computational Constraints", with a choice of moves.)

  python examples/chess_preparation.py --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. What positions are worth is
a fitted evaluation, corrected by games between both sides' play (--play_budget), and what the book promises
is what such games score; --evaluation has the paper's evaluations, which play no games. With --budget=50 it
learns the best 50 positions. With --menu=1 or 0, an evaluation of the paper's, and a budget, it also says
and plots what 50 more would be worth: memory.csv, memory.png and memory.svg. It ends with a match
(--match_games): what the book promised beside what it scored; examples/book_match.py looks closer. --report
writes all of it as a page to look at, report.html, and --export=lichess,pgn,anki,csv as files to study with:
studies, arrows, cards and a table. examples/book_report.py does both with books that are there.

Where the whole tree is looked at (--menu=1 or 0, without games), a position may have one price however it
is reached (--price=positions); what is known already costs nothing and stays (--keep=mine.pgn); and
--plan=10,20,50 makes books of these sizes, each of which contains the one before: plan.csv, plan.png.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import preparation_flags
import preparation_results
from absl import flags
from preparation_books import Prepared, prepared

from precomp_games.chess import Book, EngineError, MatchResult, PreparationSettings

FLAGS = flags.FLAGS
for _shared in (common, chess_runs, preparation_flags, preparation_results):
    flags.adopt_module_key_flags(_shared)


def main(argv: Sequence[str]) -> None:
    del argv
    preparation_results.check_exports()
    settings = preparation_flags.settings(FLAGS.side)
    folder = common.output_folder(FLAGS.output_dir, draws=bool(FLAGS.plan) or FLAGS.budget is not None)
    with chess_runs.engines() as engines:
        print(
            f"{FLAGS.side.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {settings.opponent_name(engines.opponent.engine_id)}; "
            + (
                f"a position costs {settings.penalty:g}."
                if FLAGS.budget is None and not FLAGS.plan
                else f"at most {FLAGS.plan[-1] if FLAGS.plan else FLAGS.budget} positions are learnt."
            ),
            flush=True,
        )
        needed = engines.start_record()
        found = prepared(settings, engines, folder, FLAGS.budget)
        searches, asked = engines.searches, len(needed)
        told = preparation_results.write_files(folder, settings, engines, found)
        preparation_results.print_result(settings, found, asked, searches, folder)
        matches = play(settings, engines, found)
        preparation_results.write_shown(folder, told, matches)
        if FLAGS.export_store:
            engines.export(FLAGS.export_store, needed)


def play(
    settings: PreparationSettings, engines: chess_runs.Engines, found: Prepared
) -> list[tuple[str, MatchResult]]:
    """What the book promises beside what games score: (player, match) of the book and of no book, if any."""
    if not FLAGS.match_games or not found.book.positions:
        return []
    empty = Book(found.book.start, found.book.side, ())
    try:
        with_book = chess_runs.match("With the book", found.book, settings, engines)
        without = chess_runs.match("Without it", empty, settings, engines)
    except EngineError:
        if engines.can_search:
            raise
        print("No match: games need an engine, and these ones leave what is stored.")
        return []
    replayed = "" if engines.can_search else " (from stored searches)"
    print(f"Match               {chess_runs.match_line(found.utility, with_book, without)}{replayed}")
    low, high = without.interval
    if not low <= found.unprepared <= high:
        name = chess_runs.score_name(settings, played=found.error is not None)
        print(
            f"Refuted             {name} {found.unprepared:.2f} unprepared: games without the book score "
            f"{without.score:.2f} (95 %: {low:.2f} to {high:.2f})"
        )
    several = () if settings.opponent else settings.opponent_temperatures_cp
    for r in several if len(several) > 1 else ():
        against = dataclasses.replace(settings, opponent_temperature_cp=r, opponent_weights=())
        result = chess_runs.match(f"Against r = {r:g}", found.book, settings, engines, against=against)
        print(f"  r = {r:<14g}{chess_runs.match_line(None, result, None)}")
    return [("the book", with_book), ("no book", without)]


if __name__ == "__main__":
    common.run(main)
