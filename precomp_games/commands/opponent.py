r"""Prepares White and Black against a person, by its games: one page, studies and cards, and what to expect.

  precomp-games opponent karpov.pgn "Karpov"

The first word is a file of games, the second a person's name; if several names match, you are asked once, or
all of them count with --all_spellings. The model expects the person to play what it has played, with more
weight on recent games; the prior behind that is what others play (--population), and behind them engines
that err as the person does (--behind). The model's distrust (contamination) is fitted to the last year's
games (--distrust), and the books are the best ones against it. Leaf values are an engine's evaluation, fitted
to how people's games ended: no games are played. With networks of people's moves (--maia), people of the
person's rating are the prior in place of engines, and leaf values are those of rated games.

Writes into a folder named after the person: report.html, a page with both colors; scout.html, what the
person plays, as `precomp-games scout` counts it, which is also printed first; studies for Lichess,
PGN with arrows, cards for Anki (with the extra precomp-games[study]) and a table, by --export; and white and
black, folders as of `precomp-games prepare`, with positions.csv. `precomp-games review`, `judge`, `match`,
`report` and `drill` go on from there with --from=FOLDER. A run that was interrupted, or ended by --minutes,
goes on from its searches when it is called again. Without words, it prepares against Karpov by a shipped
sample; without an engine as well, only White.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib.util
import math
import os
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted, plain_text
from precomp_games._support.config import networks_named
from precomp_games._support.deadlines import limited, part
from precomp_games.chess.data.book import percent
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.move_counts import GameTable
from precomp_games.chess.data.repertoire import read_repertoire
from precomp_games.chess.data.scouting import ScoutedGames
from precomp_games.chess.data.scouting import scout as scouted
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.model.human import WHERE, network_ratings
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.people import FITTED, HUMAN, ModelledPerson, model_person, read_person
from precomp_games.chess.model.people_values import load_people
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Preparation, WholeTree
from precomp_games.chess.study import scout_page
from precomp_games.chess.study.exports import EXPORTS
from precomp_games.chess.study.page import BookPage
from precomp_games.chess.study.words import (
    OpponentWords,
    more_points,
    parts_words,
    points,
    share_words,
    signed_points,
    unseen_words,
)
from precomp_games.commands import _app, _chess, _files, _flags, prepare, scout

_PLAYED = 6  # rows of what a person plays with each color, and
_LINES = 5  # of each book, that are printed
_MISSING = "networks of people's moves, which would predict each move better by a bit"
_EVALUATIONS = 2500  # of positions for each side, against people: two minutes for both
_LEAST = 3  # games of a position whose moves count, where people are behind them
_SELDOM = 3  # games; positions with fewer are reported
_SHOWN = 2  # first moves, and
_ROWS = 5  # positions that are printed
_LONGEST_NAME = 60  # characters of a folder's name
WORDS = ("games", "player")
"""Flags that words without one are the values of, in their order."""
STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of the person, its games, and the output.

    Attributes:
      games: The person's games, in PGN: the first word.
      player: The person's name, as in the file: the second word.
      side: The side that prepares.
      all_spellings: Count all names in the file that may be that person's.
      population: Games of others, in PGN; the person's are left out.
      behind: The prior behind the games: human, people of the person's rating, by networks (--maia); fitted,
        engines that err as the person did before the last games; or a policy by name, such as uniform, any
        move. Default: human if --maia is given, else fitted.
      plies: Half-moves of each game that count.
      min_probability: Prepare for no reply less likely than this by the model: most of these are any legal
        move, by lapse.
      last_years: Number of years that count as the last games.
      least_games: Count the person's moves only in positions of so many games, so that no move of the book
        rests on one game. Default: 3 if people are the prior behind the games, else 1.
      output_dir: Where files go. Default: output, and a folder named after the person.
    """

    games: str | None = None
    player: str | None = None
    side: Literal["white", "black", "both"] = "both"
    all_spellings: bool = False
    population: str | None = None
    behind: str | None = None
    plies: checks.PositiveInt = 30
    min_probability: Annotated[float, checks.Ge(0.0), checks.Le(0.01)] = 0.01
    last_years: checks.PositiveInt = 1
    least_games: checks.PositiveInt | None = None
    output_dir: str | None = None


def define(own: flags.FlagValues) -> None:
    """Define the flags: those of a preparation, and whose games are read."""
    _flags.define_preparation_flags(own, without=("side",))
    defaults: dict[str, Any] = {"budget": 60, "menu": 1, "penalty": 5e-4, "play_budget": 0, "minutes": 10.0}
    # The book's searches are as deep as those of engines behind the games; people search nothing.
    defaults |= {"analyst_nodes": 20_000, "calibration": "people_20000", "report": True}
    _flags.define_flags(own, _chess.ShowingFlags, Flags, **defaults)


def run(given: flags.FlagValues) -> None:
    """Prepare by the flags."""
    if given["export"].present:
        _chess.check_exports(given.export)
    else:
        there = importlib.util.find_spec("genanki") is not None
        given["export"].value = [name for name in EXPORTS if there or name != "anki"]
    if given.opponent:
        raise ValueError(f"--opponent: expected none, since a person's games say it, got {given.opponent!r}")
    kept = _kept_files(given, ["white", "black"] if given.side == "both" else [given.side])
    sides = list(kept)
    each = _settings(given, sides)  # a wrong one is an error before any work
    path, name, population = _named(given)
    folder = _app.output_folder(given.output_dir or os.path.join("output", folder_name(name)))
    with _app.errors_by_flag("games", "a PGN file"):
        read = ScoutedGames.read(path, name, given.plies)
        person = read_person(path, name, population, given.plies, read)
        played = scouted(read)
    print(f"{'Played':<20}{scout_page.games_words(played)}")
    for color in played.colors:
        scout.print_lines(color, _PLAYED)
    if given.report:
        scout.write_files(played, folder, **{"What to prepare": "report.html"})
        print(f"\nWhat they play: {folder}/scout.html (open it in a browser)")
    print()
    rating = person.rating
    behind = given.behind or (HUMAN if networks_named() and rating else FITTED)
    if behind == HUMAN and rating and _by_people(given):
        _suit(given, rating, person.speed)
        each = _settings(given, sides)
    with _chess.open_engines(given, each[0]) as engines:
        if not engines.can_search and given.games is None and given.side == "both":
            print("White alone: the stored searches are those.")
            each = each[:1]
        needed = engines.start_record()
        robust = given.menu <= 1 and given.price == "infosets" and not (given.plan or given.keep)
        against = model_person(
            *(person, each[0], engines),
            behind=behind,
            last_years=given.last_years,
            distrusts=robust and not given["distrust"].present,
            least=given.least_games or (_LEAST if behind == HUMAN else 1),
        )
        print(_model_lines(against))
        if against.engines is not None and given.behind is None and not networks_named():
            print(f"{'Missing':<20}{_MISSING}: {WHERE}")
        made: list[Preparation] = []
        try:
            for settings in each:
                given["keep"].value = kept[chess.COLOR_NAMES[settings.side]]
                with part(1.0 / (len(each) - len(made))):
                    made.append(_prepared(given, against, settings, engines, folder))
        except KeyboardInterrupt:
            if made:
                _write_page(given, against, made, folder)
            raise
        searches = f"{len(needed)} needed, {engines.searches} of them new"
        expected = _write_page(given, against, made, folder)
        if given.export and "anki" not in given.export and not given["export"].present:
            print("No cards for Anki: pip install 'precomp-games[study]' for them.")
        print(f"Books: {', '.join(f'{folder}/{one.side}' for one in made)} ({searches} searches)")
        print("\nWhat to expect\n" + "\n".join(expected))


def _kept_files(given: flags.FlagValues, sides: list[str]) -> dict[str, Sequence[str]]:
    """Return the files of the book that is kept, by color; of two colors, those that have some."""
    if len(sides) == 1 or not given.keep:
        return dict.fromkeys(sides, given.keep)
    found: dict[str, list[str]] = {side: [] for side in sides}
    for path in given.keep:
        whose = sides  # of a file that does not tell
        with _app.errors_by_flag("keep", "PGN or Polyglot files"), contextlib.suppress(ValueError):
            whose = [chess.COLOR_NAMES[read_repertoire(path, fen=given.fen).side]]
        for side in whose:
            found[side].append(path)
    if alone := [side for side, paths in found.items() if not paths]:
        print(f"Not with {alone[0].capitalize()}: no file of --keep has a book of that color.")
    return {side: paths for side, paths in found.items() if paths}


def _settings(given: flags.FlagValues, sides: Sequence[str]) -> list[PreparationSettings]:
    """Return the settings of each side; replies that the person hardly plays are left out."""
    least = {"min_probability": given.min_probability}
    return [dataclasses.replace(prepare.preparation_settings(given, side), **least) for side in sides]


def _by_people(given: flags.FlagValues) -> bool:
    """Return whether leaf values are people's scores, if the prior is people's moves."""
    return given.evaluation == "people" or not (given["evaluation"].present or given["calibration"].present)


def _suit(given: flags.FlagValues, rating: float, speed: str) -> None:
    """Set the flags' defaults for a model with people's moves as the prior.

    Lines are then searched best first, with candidate moves, as against people of a rating.
    """
    wide = {**prepare.OF_PEOPLE, "budget": given.budget, "penalty": 1e-4, "max_evaluations": _EVALUATIONS}
    found = prepare.OF_TREES if prepare.whole_tree(given) else wide
    prepare.set_defaults(given, {**found, "calibration": "", "rating": rating, "speed": speed or given.speed})


def _write_page(
    given: flags.FlagValues, against: ModelledPerson, made: Sequence[Preparation], folder: pathlib.Path
) -> list[str]:
    """Write the page and the exports of the books so far; return what to expect."""
    with limited(None):
        sentences = expectations(against, made)
        pages = [
            BookPage(one, expect=" ".join(sentences), sizes=_chess.sizes_of(folder / one.side, one))
            for one in made
        ]
        _chess.write_books(given, folder, pages)
    return sentences


# -- whose games -------------------------------------------------------------------------------------------


def _named(given: flags.FlagValues) -> tuple[str, str, str | None]:
    """Return the file, the name as the file has it, and the file of others' games."""
    population = given.population
    if population is not None and not os.path.isfile(population):
        raise ValueError(f"--population: expected a file, got {population!r}")
    if given.games is None:
        population = population or str(_flags.DATA / "championship_sample.pgn")
    return *scout.named_player(given), population


def folder_name(name: str) -> str:
    """Return a folder named after a person, whatever characters a file has in the name."""
    words = "_".join(re.findall(r"\w+", plain_text(name.partition(";")[0]).casefold()))
    return words[:_LONGEST_NAME].strip("_") or "opponent"


def _model_lines(against: ModelledPerson) -> str:
    """Return lines about the games that were read, the prior behind them, and how well the model predicts."""
    person, model = against.person, against.model
    years = person.years
    half = model.weights.half_life
    age = f"half as much after {half:.1f} years" if math.isfinite(half) else "all alike"
    lines = {"Games": f"{model.report}" + (f"; {years.min()} to {years.max()}" if len(years) else "")}
    lines["Counted"] = f"{age}; what stands behind them is worth {model.alpha:.2g} games in a position"
    if against.looked_at < person.table.num_games:
        lines["Fitted to"] = (
            f"{against.looked_at} of {counted(person.table.num_games, 'game')}, drawn with --seed"
            f"{'' if against.engines is None else ', as there was time for by --minutes'}; all of them count"
        )
    if isinstance(model.prior, GamesPolicy):
        lines["Others"] = str(model.prior)
    if against.engines is not None:
        lines["Engines behind"] = str(against.engines)
    elif against.behind.startswith(HUMAN):
        rating = person.rating or 1500.0
        low, high = network_ratings() if networks_named() else (math.nan, math.nan)
        near = f", of whom the nearest are rated {min(max(rating, low), high):.0f}"
        near = near if rating < low or rating > high else ""
        lines["Behind them"] = f"people rated {rating:.0f}, by networks of people's moves{near}"
        if against.settings.evaluation == "people":
            low, high = load_people(against.settings.calibration or None).ratings
            if not low <= rating <= high:
                lines["Beyond"] = f"values are of games at {low:.0f} to {high:.0f}; beyond, of the nearest"
    first = f"{against.first:.0f}"
    if not len(years):
        lines["Prediction"] = "unknown: no game has a date, so all count alike"
    elif against.bits is None:
        missing = f"moves from {first} on" if (years < against.first).any() else f"games before {first}"
        lines["Prediction"] = f"unknown: no {missing}, to compare with the others"
    else:
        bits, error, moves = against.bits
        sure = f"{100.0 * 2.0**-bits:.0f} chances in 100"
        lines["Prediction"] = (
            f"{bits:.2f} +- {error:.2f} bits a move from {first} on ({counted(moves, 'move')}), as if each "
            f"had been given {sure}, by the months before each and a fit to the years before"
        )
    if against.distrust is not None:
        lines["Distrust"] = str(against.distrust)
    return "\n".join(f"{name:<20}{text}" for name, text in lines.items())


# -- a book ------------------------------------------------------------------------------------------------


def _prepared(
    given: flags.FlagValues,
    against: ModelledPerson,
    settings: PreparationSettings,
    engines: Engines,
    folder: pathlib.Path,
) -> Preparation:
    """Prepare one color's book, print it, and write it."""
    model = against.settings
    settings = dataclasses.replace(settings, opponent=model.opponent, distrust=model.distrust)
    side = chess.COLOR_NAMES[settings.side]
    print(f"\n{side.capitalize()}")
    own = _app.output_folder(str(folder / side))
    made = prepare.prepared(given, settings, engines, given.budget, own)
    rows = _position_rows(made, against)
    extra = prepare.memory_lines(made, own)
    more = {"model": _facts(against), "seldom": _seldom(rows, made), "guessed": _share_of_guesses(made)}
    made.write(own, more)
    if rows:
        _files.write_csv(own / "positions.csv", rows)
    else:
        (own / "positions.csv").unlink(missing_ok=True)  # of an earlier run
    _print_book(made, rows, extra)
    return made


def _position_rows(made: Preparation, against: ModelledPerson) -> list[dict[str, Any]]:
    """Return a row for each position of the book: its move, what it adds, and how often it came up."""
    met, met_last = (
        _games_by_position(each, made.book.side) for each in (against.person.table, against.last)
    )
    rows = []
    for position, board, gain in zip(made.book.positions, made.book.boards, made.gains, strict=True):
        key, line = position_hash(board), made.book.start.variation_san(position.history)
        row = {"after": line, "play": board.san(position.moves[0].move), "reach": position.reach}
        row |= {"adds": float(gain), "forgetting": position.worth}
        rows.append(row | {"games": met.get(key, 0), "last_games": met_last.get(key, 0)})
    return rows


def _games_by_position(table: GameTable, side: chess.Color) -> dict[int, int]:
    """Count the games in which each position came up with `side` to move, and not the person."""
    rows = ~table.own & (table.white == side)
    met = set(zip(table.keys[rows].tolist(), table.game[rows].tolist(), strict=True))
    return collections.Counter(key for key, _ in met)


def _seldom(rows: Sequence[dict[str, Any]], made: Preparation) -> dict[str, Any]:
    """Return the number of positions that came up seldom, and their share of all that the book adds."""
    rare = {k: row for k, row in enumerate(rows) if row["games"] < _SELDOM}
    total = math.fsum(row["adds"] for row in rows)
    adds = math.fsum(row["adds"] for row in rare.values())
    return {
        "positions": len({made.places[k] for k in rare}),
        "adds": adds,
        "share": adds / total if total else None,
    }


def _facts(against: ModelledPerson) -> dict[str, Any]:
    """Return the facts of the model for result.json."""
    model, doubt = against.model, against.distrust
    bits, error, moves = against.bits or (None, None, None)
    return {
        "person": against.person.name,
        "read": str(model.report),
        "half_life": model.weights.half_life if math.isfinite(model.weights.half_life) else None,
        "alpha": model.alpha,
        "behind": against.engines.spec if against.engines is not None else "given",
        "distrust": None if doubt is None else dataclasses.asdict(doubt),
        "bits": bits,
        "standard_error": error,
        "moves": moves,
        "looked_at": against.looked_at,
    }


def _print_book(made: Preparation, rows: Sequence[dict[str, Any]], extra: str) -> None:
    """Print what a book is worth, on how little that hangs, and where the last games meet it."""
    prepare.print_additions(made)
    print(
        f"{'To learn':<20}{counted(made.learned, 'position')}, worth "
        f"{parts_words(made.utility - made.unprepared, made.clock)}: "
        f"{points(made.utility)} in place of {points(made.unprepared)}{extra}"
    )
    if (worst := _at_worst(made)) is not None:
        condition = "where the person is as far from the model as --distrust says"
        print(f"{'At worst':<20}{more_points(worst)}: {condition}")
    if not rows:
        print("No position is worth learning at this penalty; lower --penalty to learn more.")
        return
    rare, size = _seldom(rows, made), len(set(made.places))
    positions, adds = made.guessed
    unseen = OpponentWords(made.settings, made.engines[1]).unseen
    print(
        f"{'Came up seldom':<20}{rare['positions']} of {size} positions, in fewer than {_SELDOM} games; "
        f"they have {share_words(rare['share'] or 0.0)} of what the book adds\n"
        f"{'Not seen':<20}{unseen_words(positions, size, adds, math.fsum(made.gains), unseen)}"
    )
    prepare.print_exits(made)
    print(f"{prepare.LINES}\n{made.book.first_lines(_LINES)}")
    print("Positions that came up most, in all games and in the last ones, and in 100 games by the model:")
    most = sorted(rows, key=lambda row: (-row["last_games"], -row["games"], -row["reach"]))
    shown = [
        (
            *(row["games"], row["last_games"], percent(row["reach"]), points(row["forgetting"])),
            *(row["play"], _files.end_of(str(row["after"]) or "(start)")),
        )
        for row in most[:_ROWS]
    ]
    _files.print_table(shown, ("games", "last", "model", "points it costs to forget", "play", "after"))


def _share_of_guesses(made: Preparation) -> float:
    """Return the share of the book's gain that rests on guesses."""
    whole = math.fsum(made.gains)
    return max(0.0, made.guessed[1] / whole) if whole > 0.0 else 0.0


def _at_worst(made: Preparation) -> float | None:
    """Return the book's gain against the worst opponent around the model; None without distrust."""
    robust = made.search.robust if isinstance(made.search, WholeTree) else None
    return None if robust is None else robust.utility - robust.unprepared


# -- what to expect ----------------------------------------------------------------------------------------


def expectations(against: ModelledPerson, made: Sequence[Preparation]) -> list[str]:
    """Return three sentences: what the person will play, what the books are worth, and how sure that is."""
    name, games = plain_text(against.person.name), against.model.report.games
    begins = "; ".join(filter(None, (_first_moves(against, each) for each in made)))
    books = [each for each in made if each.book.positions]
    if not books:
        first = f"{name}: {begins or 'nothing is expected'}."
        return [first, "Nothing is worth learning.", "Lower --penalty."]

    def in_place(each: Preparation) -> str:
        size = counted(each.learned, "position")
        return f" ({points(each.utility)} in place of {points(each.unprepared)}, {size})"

    worst = [each for each in books if _at_worst(each) is not None]

    def more(each: Preparation) -> str:
        gain = each.utility - each.unprepared
        if each.clock is None:
            return points(gain)
        return f"{signed_points(gain)} by position and {signed_points(each.clock)} on the clock"

    worth = _by_color(books, more, in_place)
    nothing = "".join(
        f", and nothing is worth learning with {each.side.capitalize()}" for each in made if each not in books
    )
    guesses = _by_color(books, lambda each: f"{share_words(_share_of_guesses(each))} of that")
    opponent = OpponentWords(made[0].settings, made[0].engines[1])
    thinks = " and an engine thinks likely" if "an engine" in opponent.guess else ""
    unseen = f"Guesses, replies that were never seen{thinks}, carry"
    if opponent.unseen != "guesses":
        unseen = "Replies not in their games, which networks of people think likely, carry"
    least = f"; at worst, {_by_color(worst, lambda each: points(_at_worst(each) or 0.0))} are left"
    return [
        f"{name}: {begins}." if begins else f"{name} has {counted(games, 'game')} in the file.",
        f"More points in 100 games: {worth}{nothing}, by a model of {counted(games, 'game')} and "
        f"{made[0].engines[0]}; nobody has played for it.",
        f"{unseen} {guesses}{least if worst else ''}.",
    ]


def _by_color(
    books: Sequence[Preparation],
    describe: Callable[[Preparation], str],
    more: Callable[[Preparation], str] = lambda each: "",
) -> str:
    """Join the texts of one or two books, each with its color."""
    return " and ".join(f"{describe(each)} with {each.side.capitalize()}{more(each)}" for each in books)


def _first_moves(against: ModelledPerson, made: Preparation) -> str:
    """Return the person's likeliest first moves, after the book's first move if the book has White."""
    state = made.settings.game().new_initial_state()
    moves: tuple[chess.Move, ...] = ()
    if state.is_terminal():
        return ""
    begins = f"with {'Black' if made.book.side else 'White'} expect"
    if state.current_player() == made.player:
        own = next((each.moves[0].move for each in made.book.positions if not each.history), None)
        if own is None:
            return ""
        begins = f"after {made.book.start.variation_san([own])} expect"
        state, moves = state.child(action_of(own)), (own,)
    row = against.model.action_probabilities(state)
    parts = []
    for action in sorted(row, key=lambda action: (-row[action], action))[:_SHOWN]:
        found = made.games.get((*moves, move_of(action)))
        seen = OpponentWords(made.settings, made.engines[1]).seen(found)
        parts.append(f"{state.board.san(move_of(action))} in {100.0 * row[action]:.0f} of 100 games ({seen})")
    return f"{begins} {' or '.join(parts)}"
