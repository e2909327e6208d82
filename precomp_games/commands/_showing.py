"""A page and files to study with, where flags ask for them; how folders of results are read."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import pathlib
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import chess
from absl import flags

from precomp_games._support.checks import one_line, pasteable
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Preparation, WholeTree
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.study.exports import EXPORTS, write_exports
from precomp_games.chess.study.page import BookPage, report_matches, write_report
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands._app import errors_by_flag
from precomp_games.commands._flags import Listed, Repeated

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them


@dataclasses.dataclass
class ShowingFlags:
    """Whether to write a page, and which files to study with.

    Attributes:
      report: Also write a page to look at the book with: report.html.
      export: Also write the book for study: lichess, pgn, anki, csv, or several of them; anki needs the extra
        precomp-games[study].
    """

    report: bool = False
    export: Listed = ()


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


@dataclasses.dataclass
class FolderFlags:
    """An earlier run, whose settings count, and which of its books is meant.

    Attributes:
      folder: Output folder of `precomp-games opponent` or `prepare`: its books, its opponent, and all
        settings that do not stand beside this flag. May be repeated, for a folder of each color.
      side: Whose book. Default: each that there is.
    """

    folder: Repeated = dataclasses.field(default=(), metadata={"flag": "from"})  # a word of Python's
    side: Literal["white", "black"] | None = None


class Earlier(NamedTuple):
    """An earlier preparation, and its folder."""

    folder: pathlib.Path
    made: Preparation


def earlier_runs(given: flags.FlagValues) -> list[Earlier]:
    """Reads the preparations in the folders of --from, one a color, or that of --side alone.

    Raises:
      ValueError: no folder is given, there is no preparation in one, or none of --side.
    """
    expected = "an output folder of precomp-games opponent or prepare"
    if not given["from"].value:
        raise ValueError(f"--from: expected {expected}, got none: run precomp-games prepare first")
    paths = ", ".join(given["from"].value)
    found = []
    with errors_by_flag("from", expected):
        for path in map(pathlib.Path, given["from"].value):
            folders = [path, *(path / side for side in reversed(chess.COLOR_NAMES))]
            there = [each for each in folders if (each / "result.json").is_file()]
            if not there:
                raise ValueError(f"--from: expected {expected}, got {str(path)!r}, with no preparation in it")
            found += [Earlier(folder, Preparation.read(folder)) for folder in there]
    wanted = [each for each in found if not given["side"].present or each.made.side == given.side]
    if not wanted:
        none = f"no preparation of {given.side.capitalize()}'s"
        raise ValueError(f"--from: expected {expected}, got {paths!r}, with {none} in it")
    if len({each.made.side for each in wanted}) < len(wanted):
        raise ValueError(f"--from: expected one book a color, got {paths}")
    return wanted


def earlier_run(given: flags.FlagValues) -> Earlier:
    """The one of `earlier_runs`, of two the first whose book has positions."""
    runs = earlier_runs(given)
    runs.sort(key=lambda each: not each.made.book)
    if len(runs) > 1:
        (one, other), paths = (each.made.side for each in runs), ", ".join(given["from"].value or ())
        print(f"{one.capitalize()}'s of {paths}; --side={other} is for the other.")
    return runs[0]


def as_said(given: flags.FlagValues, settings: PreparationSettings) -> PreparationSettings:
    """Settings of a folder. What they name is opened and run where the flags say the same.

    Raises:
      ValueError: a flag says something else, and the folder has nothing in place of what is named.
    """
    for flag, named in settings.touches.items():
        said = getattr(settings, flag)
        if not given[flag].present or given[flag].value != said:
            if settings.files is not None:
                return settings  # what the folder has in place of files is played
            raise ValueError(
                f"--{flag}: expected {pasteable(said)} as in the folder, since {named} is opened or run "
                f"where you say so, and not a file, got {given[flag].value!r}"
            )
    return dataclasses.replace(settings, trusted=True)


def sizes_of(folder: pathlib.Path, made: Preparation) -> list[tuple[int, float]]:
    """(positions, utility) of the best book of each size, from the table that stands beside a preparation."""
    path = folder / "memory.csv"
    # One that is there may be of a preparation before this one.
    whole = isinstance(made.search, WholeTree) and made.search.truncation_loss is not None
    if made.budget is None or not whole or not path.is_file():
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
        told, sizes = report_matches(made, matches or {}), sizes_of(folder, made)
        write_books(given, folder, [BookPage(made, matches=told, plots=plots or {}, sizes=sizes)])


def write_books(given: flags.FlagValues, folder: pathlib.Path, books: Sequence[BookPage]) -> None:
    """Writes a page about books and exports of them, as flags say."""
    sides = " and ".join(each.made.side.capitalize() for each in books)
    opponents = {each.opponent.title for each in books}
    title = f"{sides} against {opponents.pop()}" if len(opponents) == 1 else f"{sides}: what to prepare"
    if given.report:
        write_report(folder / "report.html", books, title)
        print(f"Page: {folder}/report.html (open it in a browser)")
    if given.export:
        names = write_exports(folder, books, given.export, title)
        print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")
        if "anki" in given.export:
            print('In Anki, import cards with "Update notes: Always": so it takes over what has changed.')
