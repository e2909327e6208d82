"""Fits of values of people's games: what `calibrate --games` does, and `opponent` at other ratings."""

from __future__ import annotations

import dataclasses
import pathlib

from absl import flags

from precomp_games._support.checks import ArgumentError, counted
from precomp_games._support.deadlines import part, sample_in_time, time_is_up
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.searches import Line, SearchLimit
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.model import people_checks
from precomp_games.chess.model.clock_times import fit_clock_times
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.people_values import (
    PeopleFit,
    fit_beyond,
    fit_people,
    load_people,
    save_people,
)
from precomp_games.chess.model.rated_games import BAND, RatedPosition, rated_games, spread
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.commands import _app, _chess, _files, _flags

_NODES = 20_000
_POSITIONS = 8000
_TESTED = 0.3  # positions to test with, times those that are fitted to
_READING = 0.4  # of --minutes
_OWN = 600  # positions of a person's games, three of each
_OF_TIME = 0.2  # that is left, for them


def run(given: flags.FlagValues) -> None:
    """Read the games, search positions of them, fit, check, and write."""
    unknown = sorted(set(given.speeds) - set(SPEEDS))
    if unknown or not given.speeds:
        raise ValueError(f"--speeds: expected {', '.join(SPEEDS)}, got {','.join(given.speeds)!r}")
    settings = _flags.settings_of(given, 0, menu=1)
    chosen = given["analyst_nodes"].present or given.analyst_movetime_ms is not None
    limit = settings.analyst_limit if chosen else SearchLimit(nodes=_NODES)
    folder = _app.output_folder(given.output_dir)
    report = GameReport()
    with part(_READING), _app.errors_by_flag("games", "a PGN file"):
        read = rated_games(given.games, speeds=given.speeds, seed=given.seed, report=report)
        cut = "; read no further, by --minutes" if time_is_up() else ""
    print(f"{'Games':<20}{report}{cut}")
    earlier, later = read.parted()
    count = given.positions or _POSITIONS
    drawn = [(False, each) for each in spread(earlier.positions, count, given.seed)]
    tested = spread(later.positions, round(_TESTED * count), given.seed, bands=False)
    drawn += [(True, each) for each in tested]
    with _chess.open_engines(given, settings) as engines:
        analyst = engines.analyst

        def searched(some: list[tuple[bool, RatedPosition]]) -> list[tuple[bool, RatedPosition, Line]]:
            results = analyst.search([each.epd for _, each in some], limit, 1)
            return [(*each, result.lines[0]) for each, result in zip(some, results, strict=True)]

        looked_at, found = sample_in_time(drawn, searched, seed=given.seed, first=500)
    if looked_at < len(drawn):
        print(f"{looked_at} of {counted(len(drawn), 'position')}, drawn with --seed, as --minutes allow.")
    first, last = (
        (
            [each for test, each, _ in found if test is which],
            [line for test, _, line in found if test is which],
        )
        for which in (False, True)
    )
    people = PeopleFit(
        rows=fit_people(*first),
        times=fit_clock_times(earlier.moves),
        source=f"{earlier.games:,} rated games",
        engine=analyst.engine_id.partition(" [")[0],
        analyst=str(limit),
    )
    values = people_checks.check_values(people, first, last)
    seconds = people_checks.check_seconds(people, later.moves)
    _print(people, values, seconds)
    evidence = {
        "kept_out_games": later.games,
        "values": [dataclasses.asdict(each) for each in values],
        "seconds": [dataclasses.asdict(each) for each in seconds],
    }
    path = folder / "people_games.json"
    save_people(dataclasses.replace(people, evidence=evidence), path)
    print(f"\nWritten: {path}, for --evaluation=people --calibration={path}")


def values_beyond(
    given: flags.FlagValues,
    games: str,
    rating: float | None,
    settings: PreparationSettings,
    engines: Engines,
    folder: pathlib.Path,
) -> str:
    """Set --calibration where a person's rating is beyond the games that values were fitted to.

    Returns:
      a line about it; "" elsewhere.
    """
    if settings.evaluation != "people" or settings.calibration or rating is None:
        return ""
    people = load_people()
    low, high = people.ratings
    if low - BAND / 2 <= rating <= high + BAND / 2:
        return ""
    told = f"\n{'Beyond':<20}what positions are worth is known of games at {low:.0f} to {high:.0f}; here, "
    found = _fit_person(games, rating, settings, engines.analyst) if engines.can_search else None
    if found is None:
        return f"{told}as at the nearest"
    path, row = folder / "people_games.json", found.rows[-1]
    save_people(found, path)
    given["calibration"].value = str(path)
    each, near = (25.0 * of.pawn for of in (row.utility, people.at(row.speed, row.rating)))
    return (
        f"{told}by {row.games} games of the file at {row.rating:.0f}: a pawn more is worth {each:.1f} points "
        f"in 100 games, and not {near:.1f}"
    )


def _fit_person(
    games: str, rating: float, settings: PreparationSettings, analyst: StoredEngine
) -> PeopleFit | None:
    """Fit values to the games of a file at such ratings; None where they are too few."""

    def lines(some: list[RatedPosition]) -> list[tuple[RatedPosition, Line]]:
        found = analyst.search([each.epd for each in some], SearchLimit(nodes=_NODES), 1)
        return [(each, result.lines[0]) for each, result in zip(some, found, strict=True)]

    try:
        with part(_OF_TIME):
            read = rated_games(games, positions=3, speeds=(settings.speed,), seed=settings.seed, clocks=False)
    except ArgumentError:
        return None
    drawn = spread([each for each in read.positions if abs(each.rating - rating) <= BAND], _OWN)
    _, found = sample_in_time(drawn, lines, seed=settings.seed, share=_OF_TIME, first=200)
    return fit_beyond(load_people(), [each for each, _ in found], [line for _, line in found])


def _print(
    people: PeopleFit,
    values: list[people_checks.ValueCheck],
    seconds: list[people_checks.SecondsCheck],
) -> None:
    """Print what was fitted, and how games that took no part compare."""
    print(f"\nFitted to {people.source}, by {people.engine} at {people.analyst}: on the logit,\n")
    table = []
    for row in people.rows:
        u = row.utility
        band = "all" if row.band is None else f"{row.rating:.0f}"
        fitted = (
            (u.pawn, u.pawn_error),
            (u.rating, u.rating_error),
            (u.clock, u.clock_error),
            (u.move, u.move_error),
        )
        shown = (f"{value:.3f} +- {error:.3f}" for value, error in fitted)
        table.append((row.speed, band, row.games, row.positions, *shown))
    terms = ("a pawn", "400 points", "log of clocks' ratio", "the move")
    header = ("speed", "rating", "games", "positions", *terms)
    _files.print_table(table, header)
    if values:
        print("\nKept out, the last games by date: bits a position, and real on predicted scores\n")
        table = [
            (
                *(each.speed, each.by, each.games, each.positions, f"{each.bits:.4f}"),
                "" if each.slope is None else f"{each.slope:.2f} +- {each.slope_error:.2f}",
            )
            for each in values
        ]
        _files.print_table(table, ("speed", "by", "games", "positions", "bits", "slope"))
    if seconds:
        print("\nKept out: seconds of moves, in ten classes by what was expected\n")
        table = [
            (each.speed, each.moves, f"{each.expected:.2f}", f"{each.spent:.2f} +- {each.error:.2f}")
            for each in seconds
        ]
        _files.print_table(table, ("speed", "moves", "expected", "spent"))
