"""Shared by commands about chess: engines by flags, folders of earlier runs, pages, files to study with."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import importlib.util
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import chess
from absl import flags

from precomp_games._support.checks import one_line, pasteable
from precomp_games.chess.data.exits import LIKELY
from precomp_games.chess.data.repertoire import Repertoire, read_repertoire
from precomp_games.chess.engines import pool
from precomp_games.chess.engines.cluster import DaskEngine
from precomp_games.chess.engines.searches import check_command, named_options
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.model.engine_policies import ANSWERS
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Preparation, Share, WholeTree
from precomp_games.chess.study.exports import EXPORTS, write_exports
from precomp_games.chess.study.page import BookPage, report_matches, write_report
from precomp_games.chess.study.sentences import BookSentences
from precomp_games.commands import _app, _flags

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them


# -- engines ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_engines(
    given: flags.FlagValues, settings: PreparationSettings, *, plays: bool = False
) -> Iterator[Engines]:
    """Open the engines of the flags, or stored searches where no engine is to be had.

    Args:
      given: the flags.
      settings: the searches that they have to be capable of, which is tried first.
      plays: whether games will be played, for which stored searches do not suffice.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = pool.find_engine(given.engine)
        except pool.EngineNotFoundError:
            named = ("engine", "opponent_engine", "engine_option", "opponent_option", "workers", "cluster")
            if any(given[name].value for name in named):
                raise  # stored searches are those of one engine as it was
            own = given["store"].present or os.path.exists(given.store)
            shipped = given.store if own else _flags.shown_path(_flags.DATA / "evaluations.sqlite")
            store = stack.enter_context(EvaluationStore(shipped, read_only=True))
            if len(store.engines()) > 1:
                raise pool.EngineError(
                    f"--store: expected searches of one engine where no engine is found, got {shipped}, with "
                    f"those of {', '.join(map(repr, store.engines()))}"
                ) from None
            stored = StoredEngine(store)
            if plays:
                raise pool.EngineError("expected an engine to play games, got stored searches") from None
            print(
                f"No engine found: using the stored searches of {stored.engine_id} in {shipped}. "
                "To search other positions, install Stockfish (Debian: apt-get install stockfish) or "
                "name an engine with --engine or $STOCKFISH."
            )
            yield Engines(stored, stored)
            return
        used = {"engine_option": path}
        if given.opponent_engine is not None or given.opponent_option:
            used["opponent_option"] = pool.find_engine(given.opponent_engine or given.engine)
        _refuse_troubles(given, settings, used)
        folder = os.path.dirname(given.store)
        if folder and not given["store"].present:
            os.makedirs(folder, exist_ok=True)
        store = stack.enter_context(EvaluationStore(given.store))

        def start(option: str) -> StoredEngine:
            options = named_options(given[option].value, option)
            searcher: pool.EnginePool | DaskEngine
            if given.cluster is None:
                searcher = pool.EnginePool(used[option], workers=given.workers, options=options)
            else:
                _flags.check_workers(given.workers, given.cluster)
                searcher = DaskEngine(used[option], given.cluster, options=options)
                for address, why in sorted(searcher.refused.items()):
                    print(f"Worker {address} is not used: {why}", file=sys.stderr)
            stack.callback(searcher.close)
            return StoredEngine(store, searcher)

        analyst = start("engine_option")
        opponent = start("opponent_option") if len(used) > 1 else analyst
        _warn_of_other_results(given)
        yield Engines(analyst, opponent)


def _refuse_troubles(
    given: flags.FlagValues, settings: PreparationSettings, used: Mapping[str, str | list[str]]
) -> None:
    """Refuse engines of the flags that cannot do what settings ask for, and print all that they cannot.

    `used` has their commands, by the flags of their options.
    """
    names = ("engine", "opponent_engine", "engine_option", "opponent_option")
    if given.cluster is not None or not any(given[name].value for name in names):
        return
    limit, timed, few = settings.opponent_limit, "--opponent_movetime_ms=50", "--top_k=1 --menu=1"
    lines = 0 if settings.opponent_plays in ANSWERS else settings.top_k
    analyst = pool.Demand(settings.analyst_limit, settings.multipv, "--analyst_movetime_ms=50", few)
    own = [analyst, pool.Demand(limit, settings.multipv, timed, few)]
    theirs = [pool.Demand(limit, lines, timed, "--opponent_plays=bestmove, or --top_k=1")]
    refused = []
    for (option, command), demands in zip(used.items(), (own, theirs), strict=False):
        options = named_options(given[option].value, option)
        troubles = pool.engine_troubles(command, options, option, demands)
        refused += [(" ".join(check_command(command)), line) for line in troubles]
    if len(refused) > 1:
        print(*(f"{command} {line}" for command, line in refused), sep="\n")
    if refused:
        command, first = refused[0]
        more = f"; {len(refused) - 1} more stand above" if len(refused) > 1 else ""
        expected = f"engines that do what flags ask for, got {command}, which {first}{more}"
        raise pool.EngineError(f"expected {expected}")


def _warn_of_other_results(given: flags.FlagValues) -> None:
    """Print which flags make a run that no other repeats."""
    causes = [
        f"--{flag}={name}={value}"
        for flag in ("engine_option", "opponent_option")
        for name, value in named_options(given[flag].value, flag).items()
        if name.lower() == "threads" and value != "1"
    ]
    timed = ("opponent_movetime_ms", "analyst_movetime_ms")
    causes += [f"--{flag}" for flag in timed if flag in given and given[flag].value]
    if causes:
        print(
            f"Not reproducible: with {' and '.join(causes)} searches differ from run to run, and so may "
            "everything that follows."
        )


# -- folders, and what is shown of them -------------------------------------------------------------------


@dataclasses.dataclass
class ShowingFlags:
    """Flags of the page and of the files to study with.

    Attributes:
      report: Also write a page to look at the book with: report.html.
      export: Also write the book for study: lichess, pgn, anki, csv, or several of them; anki needs the extra
        precomp-games[study].
      min_share: In --export, leave out of studies, PGN and cards the replies that the opponent makes in a
        smaller share of cases, with the lines after them. 0: leave none out.
    """

    report: bool = False
    export: _flags.Listed = ()
    min_share: Share = LIKELY


def check_exports(formats: Sequence[str]) -> None:
    """Refuse what --export cannot be, before any work is done."""
    for name in formats:
        if name not in EXPORTS:
            raise ValueError(f"--export: expected some of {','.join(EXPORTS)}, got {name!r}")
    if "anki" in formats and importlib.util.find_spec("genanki") is None:
        raise ValueError("--export: expected genanki for anki, got none: pip install 'precomp-games[study]'")


def print_games(settings: PreparationSettings, engines: Engines) -> None:
    """Print which games of the opponent were read and which were not, if it is a person by its games."""
    model = engines.policies(settings).sigma[1 - settings.player]
    if isinstance(model, GamesPolicy):
        print(f"Opponent's games    {model.report}")


def print_model(settings: PreparationSettings, engines: Engines) -> None:
    """Print the same, and warn where an evaluation was fitted to something else."""
    print_games(settings, engines)
    for line in engines.misfits(settings):
        print(line)


@dataclasses.dataclass
class FolderFlags:
    """Flags of an earlier run, whose settings count, and of the choice of its book.

    Attributes:
      folder: Output folder of `precomp-games opponent` or `prepare`: its books, its opponent, and all
        settings that other flags do not change. May be repeated, for a folder of each color.
      book: Your own book, PGN or Polyglot (.bin); may be repeated.
      side: The color of the book. Default: all books of the folder; for --book, the color that has one
        move in its files where the other color has many.
    """

    folder: _flags.Repeated = dataclasses.field(default=(), metadata={"flag": "from"})  # a word of Python's
    book: _flags.Repeated = ()
    side: Literal["white", "black"] | None = None


class Earlier(NamedTuple):
    """An earlier preparation, and its folder."""

    folder: pathlib.Path
    made: Preparation


def earlier_runs(given: flags.FlagValues) -> list[Earlier]:
    """Read the preparations in the folders of --from, one a color, or that of --side alone.

    Raises:
      ValueError: no folder is given, there is no preparation in one, or none of --side.
    """
    expected = "an output folder of precomp-games opponent or prepare"
    if not given["from"].value:
        raise ValueError(f"--from: expected {expected}, got none: run precomp-games prepare first")
    paths = ", ".join(given["from"].value)
    found = []
    with _app.errors_by_flag("from", expected):
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
    """Return the earlier run; of two, the first whose book has positions."""
    runs = earlier_runs(given)
    runs.sort(key=lambda each: not each.made.book)
    if len(runs) > 1:
        (one, other), paths = (each.made.side for each in runs), ", ".join(given["from"].value or ())
        print(f"{one.capitalize()}'s of {paths}; --side={other} is for the other.")
    return runs[0]


def own_book(given: flags.FlagValues, fen: str = "") -> Repertoire:
    """Read the book of --book, of the color of --side, or else of the color in its files.

    Raises:
      ValueError: there is none.
    """
    side = None if given.side is None else given.side == "white"
    with _app.errors_by_flag("book", "PGN or Polyglot files"):
        return read_repertoire(given.book, side, fen=fen)


def check_alone(given: flags.FlagValues) -> None:
    """Refuse --from beside --book, where nothing would be made of both."""
    if given["from"].value:
        both = "precomp-games judge makes a folder of both"
        raise ValueError(f"--from: expected none beside --book ({both}), got {given['from'].value[0]!r}")


def as_given(given: flags.FlagValues, settings: PreparationSettings) -> PreparationSettings:
    """Return a folder's settings; the files and engines that they name are opened only if flags repeat them.

    Raises:
      ValueError: a flag differs, and the folder has no copy of the file or engine that is named.
    """
    for flag, named in settings.touches.items():
        value = getattr(settings, flag)
        if not given[flag].present or given[flag].value != value:
            if settings.files is not None:
                return settings  # the folder's own copy is played
            raise ValueError(
                f"--{flag}: expected {pasteable(value)} as in the folder, since {named} is opened or run "
                f"where you say so, and not a file, got {given[flag].value!r}"
            )
    return dataclasses.replace(settings, trusted=True)


def sizes_of(folder: pathlib.Path, made: Preparation) -> list[tuple[int, float]]:
    """Return (positions, utility) of the best book of each size, from the table beside a preparation."""
    path = folder / "memory.csv"
    # An existing one may be of an earlier preparation.
    whole = isinstance(made.search, WholeTree) and made.search.truncation_loss is not None
    if made.budget is None or not whole or not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [(int(row["positions"]), float(row["utility"])) for row in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        reason = one_line(repr(error))
        raise ValueError(f"expected a table of precomp-games prepare, got {str(path)!r} ({reason})") from None


def write_shown(
    given: flags.FlagValues, folder: pathlib.Path, made: Preparation, matches: Any, **more: Any
) -> None:
    """Write a preparation's page, with matches by name, and exports, where flags ask for them."""
    if given.report or given.export:
        played, sizes = report_matches(made, matches), sizes_of(folder, made)
        write_books(given, folder, [BookPage(made, matches=played, sizes=sizes, **more)])


def write_books(given: flags.FlagValues, folder: pathlib.Path, books: Sequence[BookPage]) -> None:
    """Write a page about books and exports of them, by the flags."""
    sides = " and ".join(each.made.side.capitalize() for each in books)
    opponents = {each.opponent.title for each in books}
    title = f"{sides} against {opponents.pop()}" if len(opponents) == 1 else f"{sides}: what to prepare"
    if given.report:
        write_report(folder / "report.html", books, title)
        print(f"Page: {folder}/report.html (open it in a browser)")
    if given.export:
        names = write_exports(folder, books, given.export, title, given.min_share)
        print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")
        whole = [(BookSentences(each.made), each.made.book.positions) for each in books]
        rare = [text.is_rare(one.history, given.min_share) for text, positions in whole for one in positions]
        if sum(rare) and set(given.export) - {"csv"}:
            left_out = f"{sum(rare)} of {len(rare)} positions, behind replies below {given.min_share:.3g}"
            print(f"Left out there: {left_out}; --min_share=0 has them.")
        if "anki" in given.export:
            print('In Anki, import cards with "Update notes: Always": so it takes over what has changed.')
