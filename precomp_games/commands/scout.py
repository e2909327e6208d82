r"""Scouts a player by its games: its lines and scores, what is new, and where it leaves what it knows.

  precomp-games scout games.pgn "Name"
  precomp-games scout games.pgn "Name" --since=2021-03-01 --speed=blitz,rapid --output_dir=output/name

The first word is a file of games, the second the player's name. Nothing is searched: the command counts lines
by color, with their share of games, points in 100 games, performance, and when they were last played; the
form in the last games and in the last year against the time before; moves that are new in the last year; the
move by which games leave what the player has met before; speeds, and the time for moves if the file has
clocks. Filters choose the games that count; what the player knew before is looked up in all of them. With
--output_dir it also writes scout.html, a page; scout.pgn, the lines with variations and comments; and
scout.json. Without words, it scouts Karpov by a shipped sample.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted, plain_text
from precomp_games._support.files import atomic_write
from precomp_games.chess.data.game_records import SPEEDS, bounds_of
from precomp_games.chess.data.move_counts import DEFAULT_PLIES
from precomp_games.chess.data.names import fitting_names
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.data.scouting import ColorScouting, GameFilter, ScoutedGames, Scouting, scout
from precomp_games.chess.study import scout_page
from precomp_games.commands import _app, _files, _flags

WORDS = ("games", "player")
"""Flags that words without one are the values of, in their order."""
_LISTED = 8  # names, of several that fit
_NEW = 5  # new moves of a color that are printed


@dataclasses.dataclass
class Flags:
    """Flags of the player and of the games that count.

    Attributes:
      games: The player's games, in PGN: the first word.
      player: The player's name, as in the file: the second word.
      all_spellings: Count all names in the file that may be that player's.
      color: Only games with this color of the player.
      since: Only games from a day on, such as 2021-03-01; or a month, 2021-03; or a year.
      until: Only games up to a day, a month or a year, with it.
      speed: Only games at these speeds: bullet, blitz, rapid, classical.
      rating: Only games against opponents rated from and to, such as 1500-1900.
      rated: Only games that the Event tag calls rated.
      plies: Half-moves of each game that count.
      known: Number of earlier games with that color that make a position known.
      last: Number of games that count as the last ones.
      least: Leave lines of fewer games out of the files. Default: one in 200 of the games with that color,
        and at least 2.
      rows: Rows of lines of each color that are printed.
      output_dir: Where files go. Default: no files.
    """

    games: str | None = None
    player: str | None = None
    all_spellings: bool = False
    color: Literal["white", "black", "both"] = "both"
    since: str | None = None
    until: str | None = None
    speed: _flags.Listed = ()
    rating: str | None = None
    rated: bool = False
    plies: checks.PositiveInt = DEFAULT_PLIES
    known: checks.PositiveInt = 3
    last: checks.PositiveInt = 100
    least: Annotated[int, checks.Ge(1)] | None = None
    rows: checks.PositiveInt = 12
    output_dir: str | None = None


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, Flags)


def run(given: flags.FlagValues) -> None:
    """Count the games of the flags, print what there is, and write it."""
    chosen = _chosen(given)
    path, player = named_player(given)
    folder = None if given.output_dir is None else _app.output_folder(given.output_dir)
    with _app.errors_by_flag("games", "a PGN file"):
        games = ScoutedGames.read(path, player, given.plies)
    found = scout(games, chosen, least=given.least, known=given.known, recent=given.last)
    if not found.games:
        taken = scout_page.taken_words(found)
        summary = f"{found.read}; left out: {taken}" if taken else found.read
        raise ValueError(f"expected games of {player!r} that fit all filters, got none ({summary})")
    _print_scouting(found, given.rows)
    if folder is not None:
        write_files(found, folder)
        print(f"\nPage: {folder}/scout.html (open it in a browser); lines: scout.pgn; numbers: scout.json")


def write_files(found: Scouting, folder: pathlib.Path, **beside: str) -> None:
    """Write the page, the lines and the numbers; the page also leads to files `beside` it, by title."""
    _files.write_json(folder / "scout.json", found.to_json())
    with atomic_write(folder / "scout.pgn") as file:
        file.write(scout_page.scout_pgn(found))
    files = {**beside, "Lines as PGN": "scout.pgn", "All numbers": "scout.json"}
    scout_page.write_scout_page(folder / "scout.html", found, files)


# -- whose games, and which --------------------------------------------------------------------------------


def named_player(given: flags.FlagValues) -> tuple[str, str]:
    """Return the file of games, and whose they are, as the file has the name; without words, a sample's.

    Raises:
      ValueError: no player, no games, or a name that fits several people without a terminal to ask on.
    """
    path, player = given.games, given.player
    if path is None:
        return str(_flags.DATA / "karpov_sample.pgn"), player or "Karpov Anatoli"
    with _app.errors_by_flag("games", "a PGN file"):
        names = pgn_names(path)
    if not names:
        raise ValueError(f"--games: expected a PGN file with games, got {path!r}")
    if player is None:
        most = ", ".join(f"{name!r}" for name in map(plain_text, list(names)[:3]))
        raise ValueError(f"--player: expected whose games in --games are meant, such as {most}, got none")
    spellings: list[str] = []
    every = given.all_spellings
    for name, fitting in zip(player.split(";"), fitting_names(player, names, all_alike=every), strict=True):
        ask = len(fitting) > 1 and not every
        spellings += _asked(name, {each: names[each] for each in fitting}) if ask else fitting or [name]
    return path, "; ".join(name.replace(";", ",") for name in dict.fromkeys(spellings))


def _asked(player: str, names: Mapping[str, int]) -> list[str]:
    """Ask on a terminal which of several matching names is meant; elsewhere raise an error with the list."""
    shown = {name: f"{plain_text(name)} ({counted(games, 'game')})" for name, games in names.items()}
    listed = list(shown)[:_LISTED]
    if not sys.stdin.isatty():
        raise ValueError(
            f"--player: expected one person, got {player!r}, which fits "
            f"{'; '.join(shown[name] for name in listed)}: give one of them, several separated by "
            "semicolons, or --all_spellings"
        )
    print(f"{len(names)} names fit {player!r}:")
    for number, name in enumerate(listed, start=1):
        print(f"  {number}  {shown[name]}")
    while True:
        words = input("Which are meant? Numbers, such as 1 2, or all: ").replace(",", " ").split()
        if words == ["all"]:
            return list(names)
        if words and all(word.isdecimal() and 1 <= int(word) <= len(listed) for word in words):
            return [listed[int(word) - 1] for word in dict.fromkeys(words)]


def _chosen(given: flags.FlagValues) -> GameFilter:
    """Return the games that count by the flags."""
    if unknown := [name for name in given.speed if name not in SPEEDS]:
        raise ValueError(f"--speed: expected some of {', '.join(SPEEDS)}, got {unknown[0]!r}")
    rating = None
    if given.rating is not None:
        match = re.fullmatch(r"\s*(\d{1,4})\s*-\s*(\d{1,4})\s*", given.rating)
        rating = (float(match[1]), float(match[2])) if match else (1.0, 0.0)
        if rating[0] > rating[1]:
            expected = "ratings from and to, such as 1500-1900"
            raise ValueError(f"--rating: expected {expected}, got {given.rating!r}")
    color = "" if given.color == "both" else given.color
    since, until = _bounds(given["since"])[0], _bounds(given["until"])[1]
    return GameFilter(color, since, until, tuple(given.speed), rating, given.rated)


def _bounds(flag: flags.Flag[str]) -> tuple[float, float]:
    """Return the begin and the end of a flag's time; without one, all time."""
    try:
        return (-math.inf, math.inf) if flag.value is None else bounds_of(flag.value)
    except ValueError as error:
        raise ValueError(f"--{flag.name}: {error}") from None


# -- what is printed ---------------------------------------------------------------------------------------


def print_lines(color: ColorScouting, rows: int) -> None:
    """Print the lines of a color in so many rows."""
    print(f"\nWith {color.color.capitalize()}")
    lines = [
        (
            *(row.line.tally.games, f"{row.share:.0%}", scout_page.score_words(row.line.tally)),
            scout_page.rating_words(row.line.tally.performance),
            *(scout_page.last_words(row.line), f"{'  ' * depth}{row.text}"),
        )
        for depth, row in scout_page.fitting_rows(color, rows)
    ]
    _files.print_table(lines, ("games", "share", "points", "perf.", "last", "line"))


def _print_scouting(found: Scouting, rows: int) -> None:
    """Print the counts, with so many rows of lines of each color."""
    print(f"{'Player':<20}{plain_text(found.player)}: {scout_page.games_words(found)}")
    print(f"{'Read':<20}{found.read}")
    if taken := scout_page.taken_words(found):
        print(f"{'Left out':<20}{taken}")
    for color in found.colors:
        print_lines(color, rows)
        form = [(*row[1:], row[0]) for row in scout_page.form_rows(found, color)]
        print(f"{scout_page.leaving_words(found, color).capitalize()}:")
        _files.print_table(form, (*scout_page.FORM[1:], "of"))
        if color.new:
            print("New in the last year:")
            new = [(*row[:-1], _files.end_of(row[-1])) for row in scout_page.new_rows(color)[:_NEW]]
            _files.print_table(new, scout_page.NEW)
    header, speeds = scout_page.speed_table(found)
    print("\nSpeeds" + (", and seconds a move" if len(header) > 5 else ""))
    _files.print_table([(*row[1:], row[0]) for row in speeds], (*header[1:], header[0]))
