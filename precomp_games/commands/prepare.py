r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning, and which of the good moves there? (Algorithm 1 of
"Modeling Precomputation in Games Played Under Computational Constraints", with a choice of moves.)

  precomp-games prepare --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. What positions are worth is
a fitted evaluation, corrected by games between both sides' play (--play_budget), and what the book promises
is what such games score; --evaluation has the paper's evaluations, which play no games. With --budget=50 it
learns the best 50 positions. With --menu=1 or 0, an evaluation of the paper's, and a budget, it also says
and plots what 50 more would be worth: memory.csv, memory.png and memory.svg. It ends with a match
(--match_games): what the book promised beside what it scored; `precomp-games match` looks closer. --report
writes all of it as a page to look at, report.html, and --export=lichess,pgn,anki,csv as files to study with:
studies, arrows, cards and a table. `precomp-games report` does both with books that are there.

With a choice of moves or games, the best book so far is written as it improves. Ctrl-C ends the looking, and
games then say what the book is worth; pressed again, it ends the program, and the book stays.

Where the whole tree is looked at (--menu=1 or 0, without games), a position may have one price however it
is reached (--price=positions); what is known already costs nothing and stays (--keep=mine.pgn); and
--plan=10,20,50 makes books of these sizes, each of which contains the one before: plan.csv, plan.png.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from absl import flags

from precomp_games._support import checks
from precomp_games.chess.data.book import Book
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.store import StoreError
from precomp_games.chess.model.model import Engines
from precomp_games.chess.plan.controls import play_neighbors
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.study.words import points, range_words, signed_points
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder, print_table
from precomp_games.commands._flags import define_flags
from precomp_games.commands._preparing import (
    best_book_in,
    define_preparation_flags,
    memory_lines,
    preparation_settings,
    prepared,
    print_preparation,
)
from precomp_games.commands._showing import (
    ShowingFlags,
    check_exports,
    print_games,
    told_opponent,
    write_shown,
)

_NEAR = 20  # games against a neighbor


@dataclasses.dataclass
class Flags:
    """What else is done with the book.

    Attributes:
      match_games: Games that the book is tried in, by the rules of chess. 0: none.
      match_seed: Seed of these games; they train nothing, whatever other seeds are.
      neighbors: Games that the book, and no book, is tried in against each of the opponent's neighbors:
        half and twice the nodes, 5 and 20 % more, half and twice the r, a move more, and the engine as it
        answers. 0: none. Default: 20, or --match_games where that is less.
      output_dir: Where files go.
      export_store: Also write the searches that this run needs to a store of their own.
    """

    match_games: checks.NonNegativeInt = 100
    match_seed: checks.NonNegativeInt = 0
    neighbors: checks.NonNegativeInt | None = None
    output_dir: str = "output/chess_preparation"
    export_store: str | None = None


def define(own: flags.FlagValues) -> None:
    """Defines the flags."""
    define_preparation_flags(own)
    define_flags(own, ShowingFlags, Flags)


def run(given: flags.FlagValues) -> None:
    """Prepares by the flags."""
    check_exports(given.export)
    settings = preparation_settings(given)
    folder = output_folder(given.output_dir)
    with open_engines(given, settings) as engines:
        print(
            f"{given.side.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {told_opponent(settings, engines.opponent.engine_id)}; "
            + (
                f"a position costs {points(settings.penalty)} points in 100 games."
                if given.budget is None and not given.plan
                else f"at most {given.plan[-1] if given.plan else given.budget} positions are learnt."
            ),
            flush=True,
        )
        needed = engines.start_record()
        print_games(settings, engines)
        with best_book_in(folder) as improved:
            kept = improved if engines.can_search else None  # what is stored may end amid the way
            made = prepared(given, settings, engines, given.budget, kept)
        searches, asked = engines.searches, len(needed)
        extra = memory_lines(made, folder)
        made.write(folder)  # whatever ends the games, the book is there
        print_preparation(given, made, extra, needed=asked, searches=searches)
        try:
            matches = _matches(given, made, engines)
            made = _among_neighbors(given, made, engines)
        finally:
            made.write(folder)
            files = ", memory.csv, memory.png, memory.svg" if made.frontier is not None else ""
            files = ", plan.csv, plan.png" if given.plan else files
            print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json{files}")
        _print_games(made, matches, engines)
        write_shown(given, folder, made, matches or {})
        if given.export_store:
            engines.export(given.export_store, needed)


def _matches(given: flags.FlagValues, made: Preparation, engines: Engines) -> dict[str, MatchResult] | None:
    """Matches of the book and of no book, if any; None where they leave what is stored."""
    if not given.match_games or not made.book.positions:
        return {}
    settings = made.settings
    how = {"games": given.match_games, "seed": given.match_seed}
    empty = Book(made.book.start, made.book.side, ())
    try:
        with_book = engines.match(made.book, settings, **how)
        without = engines.match(empty, settings, **how)
    except EngineError as error:
        if engines.can_search or isinstance(error, StoreError):
            raise
        return None
    return {"the book": with_book, "no book": without}


def _among_neighbors(given: flags.FlagValues, made: Preparation, engines: Engines) -> Preparation:
    """The preparation with what it scores against opponents near the model."""
    games = min(_NEAR, given.match_games) if given.neighbors is None else given.neighbors
    if not games or not made.book.positions or not engines.can_search:
        return made
    return dataclasses.replace(made, neighbors=play_neighbors(made, engines, games, seed=given.match_seed))


def _print_games(made: Preparation, matches: Mapping[str, MatchResult] | None, engines: Engines) -> None:
    """Prints what the book promised beside what it scored, against its opponent and those near the model."""
    if matches is None:
        print("No match: games need an engine, and these ones leave what is stored.")
    elif matches:
        without = matches["no book"]
        replayed = "" if engines.can_search else " (from stored searches)"
        print(f"Match               {match_line(made.utility, matches['the book'], without)}{replayed}")
        low, high = without.interval
        if not low <= made.unprepared <= high:
            print(
                f"Refuted             {made.score_name} {points(made.unprepared)} unprepared: games without "
                f"the book score {points(without.score)} (95 %: {range_words((low, high))})"
            )
    if made.neighbors:
        rows = [
            (
                *(points(each.score), points(each.unprepared)),
                *(f"{signed_points(each.gain)} +- {points(each.standard_error)}", each.name),
            )
            for each in made.neighbors
        ]
        print(f"\nAgainst neighbors of the model, {made.neighbors[0].games} games each, points in 100 games:")
        print_table(rows, ("the book", "no book", "gain", "opponent"))


def match_line(promised: float | None, result: MatchResult, without: MatchResult | None) -> str:
    """What a book promised and what it scored, in words."""
    scored = f"scored {points(result.score)} +- {points(result.standard_error)} in {len(result.games)} games"
    line = scored if promised is None else f"promised {points(promised)}, {scored}"
    line = line if without is None else f"{line}; without the book {points(without.score)}"
    return f"{line} (points in 100 games)"
