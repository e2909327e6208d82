"""A page and files to study with, where flags ask for them; how folders of results are read."""

from __future__ import annotations

import csv
import importlib.util
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import chess
from absl import flags

from precomp_games._support.messages import one_line, pasteable
from precomp_games.chess.opponents.policies import GamesPolicy
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.preparation.model import Engines
from precomp_games.chess.preparation.preparation import Preparation, read_preparation
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.study.exports import EXPORTS, write_exports
from precomp_games.chess.study.report import ReportBook, report_book, write_report
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands._app import errors_by_flag
from precomp_games.commands._flags import Define

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them


def define_showing_flags(own: flags.FlagValues, *, report: bool = False) -> None:
    """Whether to write a page, and which files to study with; `report` is the page's default."""
    define = Define(own)
    define.bool("report", report, "Also write a page to look at the book with: report.html.")
    define.list(
        "export",
        [],
        f"Also write the book for study: {', '.join(EXPORTS)}, or several of them; anki needs the extra "
        "precomp-games[study].",
    )


def check_exports(formats: Sequence[str]) -> None:
    """Refuses what --export cannot be, before any work is done."""
    for name in formats:
        if name not in EXPORTS:
            raise ValueError(f"--export: expected some of {','.join(EXPORTS)}, got {name!r}")
    if "anki" in formats and importlib.util.find_spec("genanki") is None:
        raise ValueError("--export: expected genanki for anki, got none: pip install 'precomp-games[study]'")


def told_opponent(settings: PreparationSettings, engine: str) -> str:
    """Who the opponent is, in words; of an engine also its limit and its r."""
    return OpponentWords(settings, engine).told


def print_games(settings: PreparationSettings, engines: Engines) -> None:
    """Prints what was read of the opponent's games, and what was not, where it is a person by its games."""
    model = engines.policies(settings).sigma[1 - settings.player]
    if isinstance(model, GamesPolicy):
        print(f"Opponent's games    {model.report}", flush=True)


def read_folder(folder: str) -> Preparation:
    """The preparation in a folder that --book_dir names."""
    with errors_by_flag("book_dir", "an output folder of precomp-games prepare"):
        return read_preparation(folder)


def define_from_flag(own: flags.FlagValues) -> None:
    """An earlier run, whose settings count."""
    define = Define(own)
    define.string(
        "from",
        None,
        "Output folder of `precomp-games opponent` or `prepare`: its books, its opponent, and all settings "
        "that do not stand beside this flag.",
    )


class Earlier(NamedTuple):
    """An earlier preparation, and its folder."""

    folder: pathlib.Path
    made: Preparation


def earlier_runs(given: flags.FlagValues) -> list[Earlier]:
    """The preparations in the folder of --from, one a color, or that of --side alone; none without the flag.

    Raises:
      ValueError: there is no preparation in it, or none of --side.
    """
    path = given["from"].value
    if path is None:
        return []
    folders = [pathlib.Path(path), *(pathlib.Path(path) / side for side in reversed(chess.COLOR_NAMES))]
    expected = "an output folder of precomp-games opponent or prepare"
    with errors_by_flag("from", expected):
        found = [
            Earlier(folder, read_preparation(folder))
            for folder in folders
            if (folder / "result.json").is_file()
        ]
    wanted = [each for each in found if not given["side"].present or each.made.side == given.side]
    if not wanted:
        none = f"no preparation of {given.side.capitalize()}'s" if found else "no preparation"
        raise ValueError(f"--from: expected {expected}, got {path!r}, with {none} in it")
    return wanted


def read_runs(given: flags.FlagValues) -> list[Earlier]:
    """The preparations of --from or of --book_dir, one a color; none without either."""
    if not given.book_dir:
        return earlier_runs(given)
    if given["from"].value:
        raise ValueError("--book_dir: expected none beside --from, which has its books")
    found = [Earlier(pathlib.Path(folder), read_folder(folder)) for folder in given.book_dir]
    if len({each.made.side for each in found}) < len(found):
        raise ValueError(f"--book_dir: expected one book a color, got {', '.join(given.book_dir)}")
    return found


def earlier_run(given: flags.FlagValues) -> Earlier | None:
    """The one of `earlier_runs`, of two the first whose book has positions; None without --from."""
    runs = earlier_runs(given)
    runs.sort(key=lambda each: not each.made.book)
    if len(runs) > 1:
        one, other = (each.made.side for each in runs)
        print(f"{one.capitalize()}'s of {given['from'].value}; --side={other} is for the other.")
    return runs[0] if runs else None


def not_said(given: flags.FlagValues, settings: PreparationSettings, flag: str) -> str:
    """An error about a flag that has to say again what a folder's settings name."""
    named, said = settings.touches[flag], pasteable(getattr(settings, flag))
    return (
        f"--{flag}: expected {said} as in the folder, since {named} is opened or run where you say so, and "
        f"not a file, got {given[flag].value!r}"
    )


def sizes_of(folder: pathlib.Path, made: Preparation) -> list[tuple[int, float]]:
    """(positions, utility) of the best book of each size, from the table that stands beside a preparation."""
    path = folder / "memory.csv"
    # One that is there may be of a preparation before this one.
    if made.budget is None or "truncation_loss" not in made.search or not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [(int(row["positions"]), float(row["utility"])) for row in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        told = one_line(repr(error))
        raise ValueError(f"expected a table of precomp-games prepare, got {str(path)!r} ({told})") from None


def write_shown(
    given: flags.FlagValues,
    folder: pathlib.Path,
    made: Preparation,
    matches: Mapping[str, MatchResult] | None = None,
    plots: Mapping[str, str] | None = None,
) -> None:
    """Writes a preparation's page and exports, where flags ask for them."""
    if given.report or given.export:
        shown = [report_book(made, matches, plots=plots, sizes=sizes_of(folder, made))]
        write_books(given, folder, shown)


def write_books(given: flags.FlagValues, folder: pathlib.Path, books: Sequence[ReportBook]) -> None:
    """Writes a page about books and exports of them, as flags say."""
    sides = " and ".join(chess.COLOR_NAMES[each.book.side].capitalize() for each in books)
    opponents = set(filter(None, (each.opponent for each in books)))
    title = f"{sides} against {opponents.pop()}" if len(opponents) == 1 else f"{sides}: what to prepare"
    if given.report:
        write_report(folder / "report.html", books, title)
        print(f"Page: {folder}/report.html (open it in a browser)")
    if given.export:
        names = write_exports(folder, books, given.export, title)
        print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")
        if "anki" in given.export:
            print('In Anki, import cards with "Update notes: Always": so it takes over what has changed.')
