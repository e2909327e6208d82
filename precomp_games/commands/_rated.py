"""The work of `calibrate --games`: fits values of people's games and the time people spend; checks both."""

from __future__ import annotations

import dataclasses

from absl import flags

from precomp_games._support.checks import counted
from precomp_games._support.deadlines import part, sample_in_time, time_is_up
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.searches import Line, SearchLimit
from precomp_games.chess.model import people_checks
from precomp_games.chess.model.clock_times import fit_clock_times
from precomp_games.chess.model.people_values import PeopleFit, fit_people, save_people
from precomp_games.chess.model.rated_games import RatedPosition, rated_games, spread
from precomp_games.commands import _app, _chess, _files, _flags

_NODES = 20_000
_POSITIONS = 8000
_TESTED = 0.3  # positions to test with, times those that are fitted to
_READING = 0.4  # of --minutes


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


def _print(
    people: PeopleFit, values: list[people_checks.ValueCheck], seconds: list[people_checks.SecondsCheck]
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
