r"""Tests if a chess book keeps its promise: plays it against the opponent that it was made for.

  precomp-games match --from=output/chess_preparation --games=200 --output_dir=output/book_match

plays the book of `precomp-games prepare` in that folder, or both of `precomp-games opponent`; --from may be
repeated, for a folder of each color. --book=mine.pgn, or mine.bin, plays a repertoire, against --opponent or
in place of the book of --from. Beside the book it plays without a book; with controls of the same size (the
most reached positions with the analyst's first move; the analyst's main lines and their likeliest departures;
the positions chosen by linear evaluation without a menu, if the book is another one); and with the analyst
all game. --opponent="uci(r=40)" puts another opponent in the place of the one that the book was made for.

Prints scores with intervals beside what was promised, the Elo difference to the opponent with the book and
without it, where games leave the book, and which of these exits score less than promised. With --sprt=0,5
the book's games, in their order, test the Elo difference of its player to the opponent: 0 (H0), or 5 (H1).
With --openings=0.5, exits at which White scored near that are written as start positions for other tests.
Writes result.json, games.pgn (the book's games), match.png and match.svg.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from absl import flags

from precomp_games._support import checks
from precomp_games._support.deadlines import OutOfTimeError, limited, part, seconds_left
from precomp_games._support.results import as_json
from precomp_games.algorithms import best_of_frontier, memory_frontier
from precomp_games.chess.data.book import Book, BookExit, points_axis
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.model.engine_policies import EnginePolicy
from precomp_games.chess.model.model import Engines, named_calibration
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.controls import MAIN_LINES, control_book
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.plan.prepare import exits_of
from precomp_games.chess.plan.repertoire_book import repertoire_preparation
from precomp_games.chess.plan.trees import looked_far, preparation_book, preparation_tree
from precomp_games.chess.play import match
from precomp_games.chess.play.match_statistics import MatchStatistics, Sprt, sprt
from precomp_games.chess.study.words import OpponentWords, points, range_words
from precomp_games.commands import _app, _chess, _files, _flags, prepare

_SHARE = 0.35  # of the time of a color, for games without a book; as many are for the book's
_PLAYERS = 6  # at most
_PENALTY = 1e-3  # of a repertoire: rarer positions are not searched for their promise
_FEW = 8  # games of a control; fewer are not worth the time
STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of a match and of the files that it writes.

    Attributes:
      opponent: Another opponent than the book's own, by name, such as uci(nodes=500,r=40); see
        docs/opponents.md. An engine or files that the folder names are opened if this repeats the same.
      calibration: The folder's calibration, repeated here if it is a file of yours that may be read.
      games: Games of each player, by the rules of chess.
      match_seed: Seed of these games; they train nothing, whatever other seeds are.
      controls: Also play controls, and the analyst all game.
      exits: Number of exits of the book to print.
      sprt: Two Elo differences of the book's player to the opponent, H0 and H1, such as 0,5, between which
        its games decide, with errors of 5 %.
      openings: Also write start positions for other tests, openings.epd and openings.pgn: exits of books
        with four or more games in which White scored within 0.1 of this, such as 0.5.
      output_dir: Where files go.
    """

    opponent: str = ""
    calibration: str = ""
    games: checks.PositiveInt = 100
    match_seed: checks.NonNegativeInt = 0
    controls: bool = True
    exits: checks.NonNegativeInt = 12
    sprt: _flags.Listed | None = None
    openings: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] | None = None
    output_dir: str = "output/book_match"


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, _chess.FolderFlags, Flags, _flags.MinutesFlags, _flags.EngineFlags, minutes=10.0)


def _own_book(given: flags.FlagValues) -> tuple[Repertoire, PreparationSettings]:
    """Return the repertoire of --book, and its opponent: of a folder, or the one that --opponent names."""
    if given["from"].value:
        made = _chess.earlier_run(given).made
        given["side"].value = made.side
        settings = _chess.as_given(given, made.settings)
        return _chess.own_book(given, settings.fen), settings
    if not given.opponent:
        raise ValueError("--opponent: expected whom to play with --book and no --from, got none")
    book, calibration = _chess.own_book(given), given.calibration or "people"
    how: dict[str, Any] = {"opponent": given.opponent, "penalty": _PENALTY, "trusted": True}
    how |= {"evaluation": "calibrated", "calibration": calibration}
    how |= prepare.of_people(given.opponent)
    settings = PreparationSettings(player=book.player, menu=1, **how)
    if settings.kind.fitted:
        settings = dataclasses.replace(settings, menu=named_calibration(settings).made_for.multipv)
    return book, settings


def _tested(given: flags.FlagValues, scores: Sequence[float]) -> Sprt | None:
    """Return the test that --sprt asks for."""
    if given.sprt is None:
        return None
    allowed = "two Elo differences, such as 0,5"
    both = _flags.numbers(given["sprt"], allowed, lambda elo: True, count=2)
    with _app.errors_by_flag("sprt", "Elo differences"):
        return sprt(scores, *both)


class Played(NamedTuple):
    """A match of one of the players; `promised` and `exits` where there is something to promise."""

    name: str
    result: match.MatchResult
    promised: float | None
    exits: list[BookExit]


def _against(given: flags.FlagValues, settings: PreparationSettings) -> PreparationSettings:
    """Return the settings with the opponent that --opponent asks for."""
    if given.opponent in ("", settings.opponent):
        return settings
    return dataclasses.replace(settings, opponent=given.opponent, calibration="", trusted=True)


def controls(made: Preparation, engines: Engines) -> Iterator[tuple[str, Book]]:
    """Yield other books of the size, by name."""
    size, settings = len(made.book), made.settings
    policies = engines.policies(dataclasses.replace(settings, menu=1))
    yield "most reached", control_book(settings, policies, positions=size)
    yield "main lines", control_book(settings, policies, positions=size, moves=MAIN_LINES)
    if settings.menu > 1 or settings.evaluation != "linear":
        plain = dataclasses.replace(settings, menu=1, evaluation="linear")
        tree = looked_far(plain, lambda each: preparation_tree(each, engines.analyst, engines.opponent))
        best = best_of_frontier(memory_frontier(tree, settings.player), size)
        yield "linear evaluation", preparation_book(tree, settings.player, best.states())


def _play(given: flags.FlagValues, made: Preparation, engines: Engines) -> list[Played]:
    """Play no book, the book, and, as far as there is time, the controls."""
    settings, book = made.settings, made.book
    against = _against(given, settings)
    policies = engines.policies(settings)
    empty = Book(book.start, book.side, ())
    played: list[Played] = []

    def play(name: str, each: Book, own: Any = None) -> None:
        with limited(None) if len(played) < 2 else contextlib.nullcontext():
            stops = made.stops if each is book else {}
            exits = list(made.exits) if each is book else []
            exits = exits or (exits_of(each, settings, policies, stops) if own is None else [])
        promises = [exit.promised for exit in exits]
        promised = None
        if each is book:
            promised = made.utility
        elif each is empty:
            promised = made.unprepared if own is None else None
        elif None not in promises:
            promised = math.fsum(exit.reach * (exit.promised or 0.0) for exit in exits)
        how = {"seed": given.match_seed, "own": own, "against": against}
        result = engines.match(each, settings, given.games, **how)
        played.append(Played(name, result, promised, exits))

    with part(_SHARE if given.controls else 0.5):
        play("no book", empty)
    began = time.monotonic()
    with part(0.5 if given.controls else 1.0):
        play("the book", book)
    few = _FEW * (time.monotonic() - began) / len(played[-1].result.games)
    others = controls(made, engines) if given.controls else iter(())
    with contextlib.suppress(OutOfTimeError):
        while (share := 1.0 / max(1, _PLAYERS - len(played))) * seconds_left() >= few:
            with part(share):
                if (other := next(others, None)) is None:
                    break
                play(*other)
        if given.controls and seconds_left() >= few:
            limit, game = settings.analyst_limit, settings.game()
            deep = EnginePolicy(game, engines.analyst, limit, settings.own_temperature_cp, settings.top_k)
            play("analyst all game", empty, deep)
    return played


def run(given: flags.FlagValues) -> None:
    """Play the matches that the flags ask for."""
    _tested(given, [0.5])  # a wrong one is an error before any work
    known = _own_book(given) if given.book else None
    read = [
        dataclasses.replace(made, settings=_chess.as_given(given, made.settings))
        for _, made in (() if known else _chess.earlier_runs(given))
    ]
    folder = _app.output_folder(given.output_dir)
    rows: list[dict[str, Any]] = []
    panels: list[tuple[Preparation, list[Played]]] = []
    with _chess.open_engines(given, known[1] if known else read[0].settings, plays=True) as engines:
        if known:
            read = [repertoire_preparation(*known, engines)]
        for made in read:
            _introduce(given, made, engines)
            before = engines.searches
            with part(1.0 / (len(read) - len(panels))):
                played = _play(given, made, engines)
            panels.append((made, played))
            _report(given, made, played, engines.searches - before)
            rows += [_row(made, each) for each in played]
            games = "games.pgn" if len(read) < 2 else f"{made.side}_games.pgn"
            (own,) = (each.result for each in played if each.name == "the book")
            names = ("Book", made.engines[1]) if made.book.side else (made.engines[1], "Book")
            match.write_match_pgn(own, folder / games, {"White": names[0], "Black": names[1]})
    if given.openings is not None:
        left = [each.result for _, played in panels for each in played if each.exits]
        near = match.openings_near(left, given.openings)
        match.write_openings(near, folder)
        scores = f"in which White scores near {given.openings:g}"
        print(f"{len(near)} start positions, {scores}: openings.epd, .pgn")
    _plot(given, panels, folder / "match.png")
    result = {"seed": given.match_seed, "settings": [made.settings.as_dict() for made, _ in panels]}
    _files.write_json(folder / "result.json", result | {"matches": rows})
    print(f"Written: {folder}/result.json, games (PGN), match.png, match.svg")


def _introduce(given: flags.FlagValues, made: Preparation, engines: Engines) -> None:
    against = _against(given, made.settings)
    print(
        f"{made.side.capitalize()}'s book of {len(made.book)} positions, {given.games} games against "
        f"{OpponentWords(against, engines.ids[1]).description}."
    )
    _chess.print_games(against, engines)
    if against != made.settings:
        modelled = OpponentWords(made.settings, made.engines[1]).description
        print(f"The book was made against another opponent ({modelled}, top_k = {made.settings.top_k}).")
    if made.engines != engines.ids:
        print(f"The book was made by {made.engines[0]} against {made.engines[1]}.")


def _report(given: flags.FlagValues, made: Preparation, played: Sequence[Played], searches: int) -> None:
    """Print scores, and where the book's games leave it."""
    print()
    if any(len(each.result.games) < given.games for each in played):
        print(f"As many of {given.games} games, and of controls, as there was time for by --minutes:\n")
    table = []
    for name, result, promised, _ in played:
        table.append(
            (
                *(len(result.book), len(result.games), "" if promised is None else points(promised)),
                *(points(result.score), points(result.standard_error), range_words(result.interval)),
                *(result.inside, name),
            )
        )
    header = ("positions", "games", "promised", "scored", "+-", "95 %", "ended in book", made.side)
    _files.print_table(table, header)
    by_name = {each.name: each for each in played}
    own = by_name["the book"]
    line = prepare.match_line(made.utility, own.result, by_name["no book"].result)
    print(f"\nMatch               {line}")
    for name, called in (("the book", "Elo with the book"), ("no book", "Elo without")):
        print(f"{called:<20}{MatchStatistics.of_scores(by_name[name].result.scores)}")
    if (test := _tested(given, own.result.scores.tolist())) is not None:
        print(f"{'SPRT with the book':<20}{test}")
    print(f"Searches            {searches} new\n")
    if given.exits and made.book.positions:
        exits = own.result.exit_scores(own.exits)
        print("Where games leave the book:")
        _print_exits(own.result, sorted(exits, key=lambda row: -row.games)[: given.exits])
        missed = sorted((row for row in exits if _loss(row) > 0.0), key=_loss, reverse=True)
        if missed:
            print("Where less was scored than promised, by more than chance explains:")
            _print_exits(own.result, missed[: given.exits])


def _loss(row: match.ExitScore) -> float:
    """Return what an exit's broken promise costs in all games; 0 if chance explains the difference."""
    if row.exit.promised is None or not row.games or row.interval[1] >= row.exit.promised:
        return 0.0
    return row.games * (row.exit.promised - row.score)


def _print_exits(result: match.MatchResult, rows: Sequence[match.ExitScore]) -> None:
    table = []
    for row in rows:
        line = result.book.start.variation_san(row.exit.history) or "(start)"
        promised = "" if row.exit.promised is None else points(row.exit.promised)
        scored = "" if math.isnan(row.score) else points(row.score)
        expected, line = (
            len(result.games) * row.exit.reach,
            _files.end_of(line, 70) + " (end)" * row.exit.over,
        )
        table.append((f"{expected:.1f}", row.games, promised, scored, line))
    _files.print_table(table, ("expected", "games", "promised", "scored", "after"))
    print()


def scored(name: str, result: match.MatchResult, promised: float | None) -> dict[str, Any]:
    """Return a player's score and what was promised of it; low and high are the ends of its 95 % interval."""
    row = {"player": name, "positions": len(result.book), "promised": promised, "games": len(result.games)}
    row |= {"score": result.score, "standard_error": as_json(result.standard_error)}
    return row | dict(zip(("low", "high"), result.interval, strict=True))


def _row(made: Preparation, played: Played) -> Any:
    """Return a match for programs; None is no number."""
    name, result, promised, exits = played
    found = MatchStatistics.of_scores(result.scores)
    row = {"side": made.side} | scored(name, result, promised)
    row |= {"wins": found.wins, "draws": found.draws, "losses": found.losses, "elo": found.elo}
    row |= dict(zip(("elo_low", "elo_high"), found.elo_interval, strict=True))
    row["ended_in_book"] = result.inside
    row["exits"] = [
        {
            **{"after": [move.uci() for move in each.exit.history], "over": each.exit.over},
            **{"reach": each.exit.reach, "promised": each.exit.promised},
            **{"games": each.games, "score": each.score},
        }
        for each in (result.exit_scores(exits) if exits else [])
    ]
    return as_json(row)


def _plot_scores(panel: Any, played: Sequence[Played]) -> None:
    """Draw scores, their intervals and promises, a line a player."""
    for k, (name, result, promised, _) in enumerate(played):
        own = name == "the book"
        color = "C1" if own else "C0"
        panel.plot(result.interval, [k, k], color=color, lw=2.0, label="95 %" if k == 0 else None)
        panel.plot([result.score], [k], "o", color=color, ms=7, label="scored" if k == 0 else None)
        if promised is not None:
            label = "promised" if own else None
            panel.plot([promised], [k], "D", mfc="none", mec="0.4", ms=7, label=label)
    panel.set_yticks(range(len(played)), [f"{each.name} ({len(each.result.book)})" for each in played])
    panel.set(xlim=(0.0, 1.02), ylim=(-0.6, len(played) - 0.4))
    points_axis(panel.xaxis)
    panel.grid(visible=False, axis="y")


def _plot(
    given: flags.FlagValues, panels: Sequence[tuple[Preparation, Sequence[Played]]], path: pathlib.Path
) -> None:
    """Plot scores with their intervals, and promises, one line a player, one panel a color."""
    lines = max(len(played) for _, played in panels)
    size = (7.0, (0.5 * lines + 1.2) * len(panels) + 0.4)
    how: dict[str, Any] = {"sharex": True, "squeeze": False, "page": True}
    with _files.figure(path, len(panels), figsize=size, **how) as (drawing, axes):
        for (made, played), panel in zip(panels, axes[:, 0], strict=True):
            _plot_scores(panel, sorted(played, key=lambda each: each.result.score))
            if made is panels[-1][0]:
                panel.set_xlabel("points in 100 games (in brackets: positions in the book)")
            against = _against(given, made.settings)
            opponent = textwrap.shorten(OpponentWords(against, made.engines[1]).description, 120)
            games = max(len(each.result.games) for each in played)
            title = f"{made.side.capitalize()}, {games} games against {opponent}"
            panel.set_title(textwrap.fill(title, 80))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="lower center", ncol=3)
        drawing.tight_layout(rect=(0.0, 0.06 / len(panels), 1.0, 1.0))
