r"""Judges the opening book that you have: what it is worth against an opponent, what it lacks, what can go.

  precomp-games judge --book=mine.pgn --opponent="human(rating=1500)"
  precomp-games judge --book=mine.pgn --book=more.bin --side=white --r=20

The book is PGN, games with variations, or Polyglot (.bin); of several moves for a position the first one
counts. The opponent is an engine, as in `precomp-games prepare`, or given by --opponent; with --from=FOLDER
of `precomp-games opponent` or `prepare` it is that run's, with all settings, and so is the book without
--book. The command expands a tree of the book's moves and the analyst's candidate moves, with all that comes
up in a share of --penalty of games or more, and reports

  * what the book is worth, and its regret: how much more the best book of as many positions is worth, and the
    best one that is made of the book's own moves; and how many games are still in it at each move;
  * holes: replies without an answer, by how often they come up, and what an answer would bring;
  * moves of the book that are worth less than another one;
  * what to learn next: the positions that add most together, given the book, in the order to learn them;
  * what to drop first, and positions that this opponent never lets you reach;
  * what forgetting each position costs.

Against people (--opponent="human(rating=1500)"), leaf values are people's expected scores, and the tree goes
at most two moves beyond the book. Without flags, a small book is judged against a person with a few games,
without an engine. Prints points in 100 games, and writes shares of a game: result.json, positions.csv,
learn.csv, holes.csv and not_met.csv. The folder has the format of `precomp-games prepare`, so that `drill`,
`match` and `report` take it by --from; --report and --export work as there.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.deadlines import limited
from precomp_games.chess.data.book import percent
from precomp_games.chess.data.repertoire import Repertoire, read_repertoire
from precomp_games.chess.model.model import Engines, PreparationPolicies, named_calibration
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.judging import RepertoireJudgment, judge_repertoire
from precomp_games.chess.plan.preparation import Preparation, WholeTree
from precomp_games.chess.plan.prepare import looked_at
from precomp_games.chess.plan.repertoire_book import KNOWN, repertoire_preparation
from precomp_games.chess.study.words import OpponentWords, more_points, often, points, worth_words
from precomp_games.commands import _app, _chess, _files, _flags, prepare
from precomp_games.policies.specs import quoted

_SHARES = ("reach", "was", "is")  # columns that are no points
_LEAST = 5e-5  # less than this is printed as 0.00 points
_MINUTES = 3.0
STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of a judgment.

    Attributes:
      known: Count as known each position of the book, whatever moves led to it, or its lines alone.
      horizon: Length of the analyst's books, in half-moves, at most. Default: one more than your longest
        line, and against people two moves beyond the book.
      learn: Number of positions to learn next.
      rows: Rows of each table that are printed.
      output_dir: Where files go.
    """

    known: Annotated[str, checks.one_of(KNOWN)] = "positions"
    horizon: checks.PositiveInt | None = None
    learn: checks.NonNegativeInt = 10
    rows: checks.PositiveInt = 10
    output_dir: str = ""


def define_judging_flags(own: flags.FlagValues, output_dir: str) -> None:
    """Define the flags of a judgment; `output_dir` is where files go by default."""
    _flags.define_flags(
        own, _chess.FolderFlags, Flags, _flags.MinutesFlags, output_dir=output_dir, minutes=_MINUTES
    )
    without = ("opponent_weights", "distrust", "price")
    _flags.define_chess_flags(own, without, evaluation="calibrated", penalty=1e-3, menu=1)


def book_and_settings(given: flags.FlagValues) -> tuple[Repertoire, PreparationSettings]:
    """Return the book and the settings to judge it by; a wrong flag is an error before an engine is started.

    With --from both are an earlier run's, as far as flags do not change them.
    """
    prepare.suit_people(given, {"evaluation": "people"})
    made = None
    if given["from"].value:
        folder, made = _chess.earlier_run(given)
        given["side"].value = made.side
        given["book"].value = given.book or [str(folder / "book.pgn")]
    if not given.book:
        if given.side == "black":
            raise ValueError("--book: expected your book for Black, got none; the sample is one for White")
        sample = _flags.shown_path(_flags.DATA / "repertoire_sample.pgn")
        book = read_repertoire(sample, chess.WHITE, fen=given.fen)
    else:
        fen = given.fen if made is None or given["fen"].present else made.settings.fen
        book = _chess.own_book(given, fen)
    return book, _settings(given, book, None if made is None else made.settings)


def _settings(
    given: flags.FlagValues, book: Repertoire, before: PreparationSettings | None = None
) -> PreparationSettings:
    """Return the settings of the flags, or of an earlier run and the flags that are given beside it."""
    for flag, wanted in (("evaluation", "an engine's evaluation"), ("menu", "at least 1")):
        if (value := given[flag].value) in ("rollouts", 0):
            raise ValueError(f"--{flag}: expected {wanted} for a book to be judged, got {value!r}")
    opponent, calibration = given.opponent, given.calibration
    if before is None and not (given.book or given.opponent or given["r"].present):
        games = _flags.shown_path(_flags.DATA / "karpov_sample.pgn")
        opponent = f"games(file={quoted(games)},player=Karpov Anatoli,prior=uci(r=20,top_k=2))"
    fitted = given.evaluation if before is None or given["evaluation"].present else before.evaluation
    if opponent and not given["calibration"].present:
        calibration = "people" if fitted == "calibrated" else ""  # most of those who have a name
    if before is None:
        settings = _flags.settings_of(given, book.player, opponent=opponent, calibration=calibration)
    else:
        least = min(before.min_probability, prepare.OF_TREES["min_probability"])
        judged = {"distrust": 0.0, "price": "infosets", "min_probability": least}
        changes = _flags.given_in(given, present=True) | judged
        if given.opponent:
            changes["calibration"] = calibration
        settings = _chess.as_given(given, dataclasses.replace(before, **changes))
        if settings.evaluation == "rollouts":
            raise ValueError("--evaluation: expected another one than that of --from, got 'rollouts'")
    lines = given.menu
    if settings.kind.fitted:
        # The analyst's searches are those of the fit, however few of its moves there are to choose among.
        lines = max(lines, named_calibration(settings).made_for.multipv)
    return dataclasses.replace(settings, menu=lines)


def judged_by_flags(
    given: flags.FlagValues,
    book: Repertoire,
    settings: PreparationSettings,
    engines: Engines,
    policies: PreparationPolicies | None = None,
) -> RepertoireJudgment:
    """Return the book, judged by the flags; against another opponent if policies are given."""
    how: dict[str, Any] = {name: given[name].value for name in ("horizon", "known", "learn")}
    return judge_repertoire(book, settings, engines, policies=policies, count=given.menu, **how)


def write_judgment(
    given: flags.FlagValues,
    folder: pathlib.Path,
    settings: PreparationSettings,
    engines: Engines,
    result: Mapping[str, Any],
    tables: Mapping[str, list[dict[str, Any]]],
    made: Preparation | None = None,
) -> None:
    """Write result.json, with the tables, and a CSV file of each table that has rows.

    `result` has the further fields of result.json: first how the book was judged, then the book. With a
    preparation, the folder is a folder of it as well.
    """
    written = ["result.json"]
    if made is not None:
        made.write(folder, {**result, **tables})
        written += ["book.pgn", "book.bin"]
    else:
        made_by = {
            "settings": settings.as_dict(),
            "analyst": engines.ids[0],
            "opponent": OpponentWords(settings, engines.ids[1]).name,
        }
        _files.write_json(folder / "result.json", {**made_by, **result, **tables})
    for name, rows in tables.items():
        path = folder / f"{name}.csv"
        if rows:
            _files.write_csv(path, rows)
            written.append(path.name)
        else:
            path.unlink(missing_ok=True)  # of an earlier run
    print(f"\n{settings.kind.note()}Written: {folder}/{', '.join(written)}")


# -- what is printed ---------------------------------------------------------------------------------------


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], most: int) -> None:
    """Print a table of the first rows: shares of games in percent, utilities as points in 100 games.

    Args:
      title: above it.
      rows: the table's rows, each with a line ("after"), which is printed last.
      columns: headings of the other columns, by their keys.
      most: number of rows to print, at most.
    """
    if not rows:
        return

    def cell(key: str, value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return percent(value) if key in _SHARES else points(value)

    more = f" ({most} of {len(rows)})" if len(rows) > most else ""
    print(f"\n{title}{more}:")
    shown = [[*(cell(key, row[key]) for key in columns), _files.end_of(row["after"])] for row in rows[:most]]
    _files.print_table(shown, [*columns.values(), "after"])


def print_summary(judged: RepertoireJudgment, settings: PreparationSettings) -> None:
    """Print what the book is worth."""
    judgment, score = judged.judgment, settings.kind.score_name
    best = judgment.best
    more = best.truncation_loss
    print(
        f"{'Met':<20}{len(judged.known.met)} of {len(judged.repertoire)} positions, by "
        f"{counted(judgment.size, 'order')} of moves, each in {often(judged.penalty)} or more"
        + (
            f"; for {often(settings.penalty)} there was no time\n"
            if judged.penalty > settings.penalty
            else "\n"
        )
        + f"{score:<20}{points(judgment.unprepared)} unprepared, {points(judgment.utility)} with the book: "
        f"{more_points(judgment.utility - judgment.unprepared)}\n"
        f"{'Best of its size':<20}{points(best.utility)}: regret {points(judgment.regret)}"
        + (f", and up to {points(more)} more by rarer lines" if more > 0 else "")
        + f"\n{'Best of its moves':<20}{points(judgment.own_utility)}: regret {points(judgment.own_regret)}, "
        f"with {counted(len(judgment.own_set), 'position')}"
    )


def print_tables(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], settings: PreparationSettings, most: int
) -> None:
    """Print the tables of positions, so many rows of each."""
    positions, not_met = tables["positions"], tables["not_met"]
    print("\nThe tables count points in 100 games, over all games.")
    title = (
        "Replies without an answer, by how often they come up, and what an answer with all behind it brings"
    )
    rows = sorted(tables["holes"], key=lambda row: -row["reach"])
    columns = {"reach": "come up", "gain": "brings", "answer": "answer", "where": "where"}
    print_rows(title, rows, columns, most)
    title = "Moves of the book that are worth less than another one, by these scores"
    rows = sorted((row for row in positions if row["loss"] >= _LEAST), key=lambda row: -row["loss"])
    print_rows(title, rows, {"loss": "less", "reach": "reach", "play": "play", "better": "than"}, most)
    title = "What to learn next, the best ones together, in this order"
    columns = {"gain": "adds", "with_what_follows": "with what follows", "play": "play"}
    print_rows(title, tables["learn"], columns, most)
    title = "What to drop first (below 0, the book is better without it)"
    rows = sorted(positions, key=lambda row: row["drop"])
    print_rows(title, rows, {"threshold": "a position is worth", "reach": "reach", "play": "play"}, most)
    title = "Positions that this opponent hardly lets you reach"
    rows = [row for row in not_met if row["because"] == "the opponent"]
    print_rows(title, rows, {"play": "play", "source": "from"}, most)
    behind = sum(row["because"] != "the opponent" for row in not_met)
    if behind:
        print(f"\n{behind} more positions are behind moves that are second choices of the book itself.")
    title = "What forgetting a position, and all of the book behind it, costs"
    rows = sorted(positions, key=lambda row: -row["forgetting"])
    print_rows(title, rows, {"forgetting": "costs", "reach": "reach", "play": "play"}, most)


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, _chess.ShowingFlags)
    define_judging_flags(own, "output/judge_book")


def run(given: flags.FlagValues) -> None:
    """Judge the book of the flags."""
    _chess.check_exports(given.export)
    book, settings = book_and_settings(given)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings) as engines:
        needed = engines.start_record()
        opponent = OpponentWords(settings, engines.ids[1])
        print(
            f"{chess.COLOR_NAMES[book.side].capitalize()}'s book against {opponent.description}, judged by "
            f"{engines.ids[0]} ({settings.analyst_limit}).\n{'Book':<20}{book.report}"
        )
        _chess.print_model(settings, engines)
        judged = judged_by_flags(given, book, settings, engines)
        tables = judged.tables()
        with limited(None):  # all of which has been searched
            often = dataclasses.replace(settings, penalty=judged.penalty)
            made = repertoire_preparation(book, often, engines, known=given.known)
        search = WholeTree(learned=judged.judgment.size, tree=looked_at(judged.tree))
        made = dataclasses.replace(made, search=search)
        print_summary(judged, settings)
        prepare.print_exits(made)
        if made.clock is not None:
            print(worth_words(opponent.title, made.utility - made.unprepared, made.clock, len(book)))
        print(f"{'Searches':<20}{len(needed)} needed, {engines.searches} of them new")
        print_tables(tables, settings, given.rows)
        result = {"known": given.known, "score": settings.kind.score_name, **judged.to_json()}
        write_judgment(given, folder, settings, engines, result, tables, made)
        _chess.write_shown(given, folder, made, {})
