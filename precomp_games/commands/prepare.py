r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize moves of the same engine with a larger budget, and pay a penalty for each
position. The command computes the positions that are worth learning, and which of the good moves to learn
there (Algorithm 1 of "Modeling Precomputation in Games Played Under Computational Constraints", with
candidate moves).

  precomp-games prepare --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. Leaf values are a fitted
evaluation, corrected by games between both sides' policies (--play_budget), and the book's promise is the
score of such games; --evaluation has the paper's evaluations, which play no games. With --budget=50 it finds
the best book of 50 positions. With --menu=1 or 0, an evaluation of the paper's, and a budget, it also prints
and plots what 50 more positions would be worth: memory.csv, memory.png and memory.svg. It ends with a match
(--match_games), which compares promise and score; `precomp-games match` looks closer. --report also writes
a page, report.html, and --export=lichess,pgn,anki,csv files to study with: studies, arrows, cards and a
table. `precomp-games report` does both with existing books.

With candidate moves or games, the best book so far is written as it improves. Ctrl-C ends the search, and
games then measure the book; pressed again, it ends the program, and the book stays.

Without games a position may have one price however it is reached (--price=positions), and with --menu of 2
or more, --check_nodes=200000 searches the positions of the book again, and keeps those that remain sound.
If the whole tree is searched (--menu=1 or 0, without games), positions that you know already cost nothing
and stay (--keep=mine.pgn); and --plan=10,20,50 makes books of these sizes, each of which contains the one
before: plan.csv, plan.png.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.deadlines import seconds_left
from precomp_games.algorithms import MemoryFrontier, best_of_frontier
from precomp_games.chess.data.book import Book, BookPosition, percent
from precomp_games.chess.data.repertoire import read_repertoire
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.store import StoreError
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.settings import EVALUATIONS, PreparationSettings
from precomp_games.chess.plan.controls import play_neighbors
from precomp_games.chess.plan.preparation import BestFirst, ByGames, Preparation, WholeTree
from precomp_games.chess.plan.prepare import is_by_games, prepare
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.study.words import (
    OpponentWords,
    coverage_words,
    more_points,
    parts_words,
    points,
    range_words,
    signed_points,
    worth_words,
)
from precomp_games.commands import _app, _chess, _files, _flags
from precomp_games.policies.specs import parsed_spec, policies_in

_LINES = 12  # of a book, that are printed
_CHOICE = 8  # candidate moves, by default, if games are played
_MORE = 50  # positions beyond the budget whose worth is printed
LINES = "Lines, what carries most first, and how often each comes up:"
_SHOWN = 8  # opponents of a mixture, each with its value
_GAP = 0.001  # between the best book and any other, at which the search ends by itself
_LOOKING = 0.5  # of --minutes for the search; the rest is for games
_SHORT = 10  # own moves; with fewer, the horizon may keep a book empty
_NEAR = 20  # games against a neighbor


OF_PEOPLE: Mapping[str, Any] = {
    "evaluation": "people",
    "menu": 4,
    "menu_window_cp": 60.0,
    "price": "positions",
    "budget": 100,
    "analyst_nodes": 5_000,
    "max_evaluations": 6_500,
    "check_nodes": 200_000,
    "min_probability": 0.02,
}
"""Defaults of flags against people."""
OF_TREES: Mapping[str, Any] = {"evaluation": "people", "analyst_nodes": 5_000, "min_probability": 0.01}
"""The same where the whole tree is looked at."""


def of_people(spec: str) -> dict[str, Any]:
    """Return the default settings against people of a rating; {} for another opponent."""
    if "human" not in policies_in(spec):
        return {}
    rating = parsed_spec(spec).get("rating", 1500.0)
    changed = {"evaluation": "people", "calibration": "", "min_probability": OF_TREES["min_probability"]}
    return changed | ({"rating": float(rating)} if isinstance(rating, int | float) else {})


def suit_people(given: flags.FlagValues, defaults: Mapping[str, Any] = OF_PEOPLE) -> None:
    """Set the flags' defaults against people of a rating."""
    if not (changed := of_people(given.opponent or "")):
        return
    defaults = {name: changed[name] for name in ("rating",) if name in changed} | dict(defaults)
    if given.evaluation != "people" and given["evaluation"].present:
        defaults = {name: value for name, value in defaults.items() if name == "min_probability"}
    set_defaults(given, defaults)


def set_defaults(given: flags.FlagValues, defaults: Mapping[str, Any]) -> None:
    """Set flags that were not given."""
    for name, value in defaults.items():
        if not given[name].present:
            given[name].value = value


def preparation_settings(given: flags.FlagValues, side: str | None = None) -> PreparationSettings:
    """Return the settings by the flags, for --side or another side; check the flags before any work."""
    menu, needs_tree = given.menu, whole_tree(given)
    if menu is None:
        menu = _CHOICE if EVALUATIONS[given.evaluation].fitted and not needs_tree else 1
    player = int((side or given.side) == "black")
    settings = _flags.settings_of(given, player, evaluated=menu > 1, menu=menu)
    limited = given.budget is not None or given.plan
    if given["minutes"].present and not limited and not _chooses(given, settings):
        raise ValueError(
            "--minutes: expected --menu of 2 or more, or games, or else --budget or --plan with it, since "
            "--penalty says what is in the book where the whole tree is looked at"
        )
    if needs_tree and menu > 1:
        raise ValueError(f"--menu: expected 0 or 1 with --{needs_tree}, got {menu}")
    if given.plan:
        _plan_sizes(given)  # a wrong one is an error before any work
        if given.budget is not None:
            raise ValueError("--plan: expected no --budget beside it, since both limit what is learned")
    by_games = is_by_games(settings, given.play_budget, whole_tree=bool(needs_tree))
    if settings.check_limit is not None and (menu < 2 or by_games):
        raise ValueError(
            "--check_nodes: expected --menu of 2 or more beside it, and no games (--play_budget=0)"
        )
    if given["order"].present and by_games:
        raise ValueError("--order: expected --play_budget=0 beside it, since games set the order")
    return settings


def _chooses(given: flags.FlagValues, settings: PreparationSettings) -> bool:
    """Return whether lines are searched one after the other, so that there is a best book so far."""
    every = bool(whole_tree(given)) or settings.distrust > 0.0
    return settings.menu > 1 or is_by_games(settings, given.play_budget, whole_tree=every)


def whole_tree(given: flags.FlagValues) -> str:
    """Return a flag that needs the whole tree, "" where none is given."""
    priced = given.price != "infosets" and (given.menu is None or given.menu < 2)
    needs = {"price": priced, "keep": given.keep, "plan": given.plan}
    needs |= {"distrust": given.distrust > 0.0}
    return next((flag for flag, is_given in needs.items() if is_given), "")


def _plan_sizes(given: flags.FlagValues) -> list[int]:
    """Return the numbers of --plan."""
    sizes = _flags.positive_numbers(given["plan"])
    growing = all(after > before for before, after in itertools.pairwise(sizes))
    if not growing or any(size != int(size) for size in sizes):
        raise ValueError(f"--plan: expected numbers of positions that grow, got {','.join(given.plan)!r}")
    return list(map(int, sizes))


def prepared(
    given: flags.FlagValues,
    settings: PreparationSettings,
    engines: Engines,
    budget: int | None,
    folder: pathlib.Path | None = None,
) -> Preparation:
    """Prepare by these settings and the flags, within a budget; print warnings about the model first.

    With a folder, the best book so far is kept there, and Ctrl-C ends the search.
    """
    for line in engines.misfits(settings):
        print(line)
    written: Sequence[BookPosition] = ()

    def improved(made: Preparation) -> None:
        nonlocal written
        if folder and made.book.positions and made.book.positions != written:
            made.write(folder)
            written = made.book.positions

    minutes = _LOOKING * seconds_left() / 60.0
    kept = improved if folder and engines.can_search else None  # what is stored may end amid the way
    chooses = _chooses(given, settings)
    never = not chooses or (kept is None and math.isinf(minutes))
    try:
        with looking_until(None if never else minutes) as enough:
            made = prepare(
                *(settings, engines),
                budget=budget,
                games=given.play_budget,
                order=given.order,
                gap=_GAP,
                max_evaluations=given.max_evaluations,
                plan=_plan_sizes(given) if given.plan else (),
                keep=_kept_moves(given.keep, settings) if given.keep else None,
                enough=enough,
                improved=kept,
            )
            stopped = enough is not None and enough()
    except KeyboardInterrupt:
        if not written:
            raise
        message = f"the best book so far is in {folder}, {counted(len(written), 'position')}"
        raise KeyboardInterrupt(message) from None
    at = ""
    if not chooses and made.settings.penalty > settings.penalty:
        at = f"at --penalty={made.settings.penalty:g}, not yet {settings.penalty:g}"
    elif stopped and isinstance(made.search, BestFirst) and (made.search.upper or 1.0) > made.value + _GAP:
        at = "before all lines were compared"
    if at:
        by = "by Ctrl-C" if given.minutes is None else f"by --minutes={given.minutes:g}"
        print(f"{'Stopped':<20}{by}, {at}; the same command goes on from here.")
    return made


@contextlib.contextmanager
def looking_until(minutes: float | None) -> Iterator[Callable[[], bool] | None]:
    """Yield a function that returns whether the time is up or Ctrl-C was pressed; a second press interrupts.

    Without a limit it yields None, and Ctrl-C interrupts at once.
    """
    if minutes is None:
        yield None
        return
    end = time.monotonic() + 60.0 * minutes
    with _app.pressed_once() as pressed:
        yield lambda: pressed() or time.monotonic() > end


def _kept_moves(paths: Sequence[str], settings: PreparationSettings) -> dict[str, chess.Move]:
    """Return the preparing side's moves in files of its own book, by position; of several, the first."""
    with _app.errors_by_flag("keep", "PGN or Polyglot files"):
        book = read_repertoire(paths, settings.side, fen=settings.fen)
    print(f"Kept                {book.report}")
    return {epd: position.moves[0] for epd, position in book.positions.items()}


# -- the command -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Flags:
    """Further flags: the match, the neighbors, and where files go.

    Attributes:
      match_games: Games of a match that tests the book, by the rules of chess. 0: none.
      min_probability: Prepare for no reply less likely than this. Default: 0.02 against people.
      match_seed: Seed of these games; nothing is fitted to them, whatever other seeds are.
      neighbors: Games with the book, and without it, against each of the opponent's neighbors: half and
        twice the nodes, 5 and 20 % more, half and twice the r, one candidate move more, and the engine's own
        answer. 0: none. Default: 20, or --match_games if that is less.
      output_dir: Where files go.
      export_store: Also write the searches that this run needs to this store.
    """

    match_games: checks.NonNegativeInt = 100
    min_probability: Annotated[float, checks.Ge(0.0), checks.Le(0.5)] = 1e-9
    match_seed: checks.NonNegativeInt = 0
    neighbors: checks.NonNegativeInt | None = None
    output_dir: str = "output/chess_preparation"
    export_store: str | None = None


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_preparation_flags(own)
    _flags.define_flags(own, _chess.ShowingFlags, Flags)


def run(given: flags.FlagValues) -> None:
    """Prepare by the flags."""
    _chess.check_exports(given.export)
    suit_people(given, OF_TREES if whole_tree(given) else OF_PEOPLE)
    settings = dataclasses.replace(preparation_settings(given), min_probability=given.min_probability)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings) as engines:
        costs = f"a position costs {points(settings.penalty)} points in 100 games."
        if given.plan or given.budget is not None:
            costs = f"at most {given.plan[-1] if given.plan else given.budget} positions are learnt."
        print(
            f"{given.side.capitalize()} prepares with {engines.ids[0]} ({settings.analyst_limit}) against "
            f"{OpponentWords(settings, engines.ids[1]).description}; {costs}"
        )
        needed = engines.start_record()
        _chess.print_games(settings, engines)
        made = prepared(given, settings, engines, given.budget, folder)
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
            files += ", traps.pgn" if made.of_people else ""
            print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json{files}")
        _print_games(made, matches, engines)
        if made.clock is not None:
            title = OpponentWords(settings, engines.ids[1]).title
            print(worth_words(title, made.utility - made.unprepared, made.clock, made.learned))
        _chess.write_shown(given, folder, made, matches or {})
        if given.export_store:
            engines.export(given.export_store, needed)


def _matches(given: flags.FlagValues, made: Preparation, engines: Engines) -> dict[str, MatchResult] | None:
    """Play the matches of the book and of no book, if any; None if stored searches do not suffice."""
    if not given.match_games or not made.book.positions:
        return {}
    how = {"games": given.match_games, "seed": given.match_seed}
    books = {"the book": made.book, "no book": Book(made.book.start, made.book.side, ())}
    try:
        return {name: engines.match(book, made.settings, **how) for name, book in books.items()}
    except EngineError as error:
        if engines.can_search or isinstance(error, StoreError):
            raise
        return None


def _among_neighbors(given: flags.FlagValues, made: Preparation, engines: Engines) -> Preparation:
    """Return the preparation with what it scores against opponents near the model."""
    games = min(_NEAR, given.match_games) if given.neighbors is None else given.neighbors
    if not games or not made.book.positions or not engines.can_search:
        return made
    return dataclasses.replace(made, neighbors=play_neighbors(made, engines, games, seed=given.match_seed))


def _print_games(made: Preparation, matches: Mapping[str, MatchResult] | None, engines: Engines) -> None:
    """Print what the book promised beside what it scored, against its opponent and those near the model."""
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
        print(f"\nAgainst neighbors of the model, {made.neighbors[0].games} games each, points in 100 games:")
        rows = []
        for each in made.neighbors:
            gain = f"{signed_points(each.gain)} +- {points(each.standard_error)}"
            rows.append((points(each.score), points(each.unprepared), gain, each.name))
        _files.print_table(rows, ("the book", "no book", "gain", "opponent"))


def match_line(promised: float, result: MatchResult, without: MatchResult) -> str:
    """Return a line with the score that a book promised and the score that it made."""
    scored = f"scored {points(result.score)} +- {points(result.standard_error)} in {len(result.games)} games"
    line = f"promised {points(promised)}, {scored}; without the book {points(without.score)}"
    return f"{line} (points in 100 games)"


# -- what is printed ---------------------------------------------------------------------------------------


def print_preparation(
    given: flags.FlagValues, made: Preparation, extra: str, *, needed: int, searches: int
) -> None:
    """Print what the book is worth, how it was found, and what is in it.

    Args:
      given: the flags.
      made: the preparation.
      extra: lines about a plan or a budget, with their line breaks.
      needed: number of searches that it needs.
      searches: number of those that were made now.
    """
    settings, book = made.settings, made.book
    size = f"{made.learned} positions to learn ({book.distinct_positions} distinct)"
    if made.learned < len(book):
        size = f"{made.learned} positions to learn, in a book of {book.distinct_positions}"
    gain = made.utility - made.unprepared
    error = "" if made.standard_error is None else f" +- {points(made.standard_error)}"
    promised = f"{points(made.unprepared)} unprepared, {points(made.utility)}{error} with the book"
    price = f"{made.learned} x {points(settings.penalty)} for learning it"
    worth = f"Value               {points(made.value)} = {points(made.utility)} - {price}\n"
    if made.budget is not None or (isinstance(made.search, WholeTree) and made.search.plan):
        worth = ""
    if isinstance(made.search, WholeTree):
        if (robust := made.search.robust) is not None:
            promised = (
                f"{points(robust.unprepared)} unprepared, {points(robust.utility)} with the book, against "
                f"the worst of all opponents around the model (--distrust={settings.distrust:g})\n"
                f"{'By the model':<20}{promised}"
            )
        how = f"{made.search.tree.expanded} histories were looked at{extra}{_otherwise(made, made.search)}"
    else:
        how = _how(given, made) + extra
    print()
    print_additions(made)
    print(
        f"{made.score_name:<20}{promised}\n{'With it':<20}{parts_words(gain, made.clock)}\n"
        f"{worth}Size                {size}, {how}\n"
        f"Searches            {needed} needed, {searches} of them new\n"
    )
    if len(book) > 2 * book.distinct_positions and settings.price == "infosets":
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if book.positions:
        if made.score_note:
            print(made.score_note)
        print(f"{LINES}\n{book.first_lines(_LINES)}\n")
        _print_most_valuable(made)
        print_exits(made)


def print_additions(made: Preparation) -> None:
    """Print what a book that was kept is worth, and what is added to it, what costs most first."""
    kept = made.search.kept if isinstance(made.search, WholeTree) else None
    if kept is None or kept.alone is None:
        return
    title = OpponentWords(made.settings, made.engines[1]).title
    met = {board.epd() for k, board in enumerate(made.book.boards) if k not in kept.additions}
    print(
        f"Your repertoire and {counted(kept.learned, 'addition')} against {title}:\n"
        f"{'Your repertoire':<20}{more_points(kept.alone - made.unprepared)}, by {len(met)} of its "
        f"{counted(kept.given, 'position')}, which come up\n"
        f"{'Additions':<20}{more_points(made.utility - kept.alone)}, by {counted(kept.learned, 'position')}"
    )
    _print_worth(made, kept.additions)


def print_exits(made: Preparation) -> None:
    """Print how long games stay in the book, and the traps that bring most."""
    if words := coverage_words(made.coverage):
        print(f"{'Coverage':<20}{words}")
    for name, trap in zip(("Traps", "", ""), made.traps, strict=False):
        print(f"{name:<20}{trap.text(made.book.start)}")


def _how(given: flags.FlagValues, made: Preparation) -> str:
    """Return text about a search of some lines, and why its book is empty, if it is."""
    search = made.search
    assert isinstance(search, BestFirst | ByGames)
    text = f"{search.work['opened']} positions were opened, {search.work['evaluations']} evaluated"
    if search.work["evaluations"] >= given.max_evaluations:
        text += "\nStopped at --max_evaluations: what was not evaluated by then counts as lost"
    if isinstance(search, BestFirst):
        text += f"\n{'Any such book':<20}has {points(search.upper or 0.0)} at most, by these scores"
        why = "No move was found that is worth learning; lower --penalty, or raise --budget or --max_plies."
        return text if made.book.positions else f"{text}\n\n{why}"
    games = search.games
    text += f"\n{'Games':<20}{games['taught']} to learn what positions are worth, {games['promise']} more "
    text += f"for the promise (95 %: {range_words(search.interval)})"
    ends = range_words(search.unprepared_interval)
    if (refused := search.refused) is not None:
        return (
            f"{text}\n\nA book of {refused.positions} positions was found, but games with it score "
            f"{points(refused.utility)} (95 %: {range_words(refused.interval)}), no more than "
            f"{points(made.unprepared)} without it (95 %: {ends}). It "
            "is no advice, and was left out; raise --play_budget or --max_evaluations to look further."
        )
    if made.book.positions:
        return f"{text}\n{'':<20}{games['unprepared']} more without the book (95 %: {ends})"
    return f"{text}\n\n{_why_nothing(made, by_rules=True)}"


def _otherwise(made: Preparation, search: WholeTree) -> str:
    """Return text about the costs of keeping a book, an empty book, and the score against each opponent."""
    text = ""
    kept = search.kept
    if kept is not None and kept.free_utility is not None and kept.free_learned is not None:
        more, less = made.utility - kept.free_utility, kept.free_learned - kept.learned
        fewer = f"{abs(less)} positions {'less' if less >= 0 else 'more'} to learn"
        text += (
            f"\nIf nothing is kept  {points(kept.free_utility)} with {kept.free_learned} positions to learn: "
            f"keeping them is worth {signed_points(more)}, with {fewer}"
        )
    if not made.book.positions:
        text += f"\n\n{_why_nothing(made, by_rules=False)}"
    if each := search.components:
        values = ", ".join(map(points, each)) + ", in the order given"
        if len(each) > _SHOWN:
            values = f"{range_words((min(each), max(each)))}, of {len(each)} opponents"
        text += f"\n{'Against each':<20}{values}"
    return text


def _why_nothing(made: Preparation, *, by_rules: bool) -> str:
    """Explain why the book is empty, and what would help; `by_rules`: games end by the rules of chess."""
    settings = made.settings
    start = settings.game().new_initial_state()
    if start.is_terminal():
        return "The game is over where it starts: there is nothing to learn."
    first = 0 if start.current_player() == settings.player else 1
    own_moves = len(range(first, settings.max_plies, 2))
    within = f"within --max_plies={settings.max_plies}"
    if own_moves == 0:
        return f"It is never {made.side.capitalize()}'s move {within}: there is nothing to learn."
    if made.budget == 0:
        return "Nothing is worth learning at this budget; raise --budget to learn more."
    if own_moves == 1 and not by_rules:
        return f"No move is worth learning {within}, since a draw follows; raise it to learn more."
    more = ""
    if own_moves < _SHORT:
        draws = "" if by_rules else ", after which games are draws,"
        more = f", or raise --max_plies={settings.max_plies}{draws}"
    return f"Nothing is worth learning at this penalty; lower --penalty{more} to learn more."


def _print_most_valuable(made: Preparation, count: int = 5) -> None:
    print("Worth the most (points in 100 games that forgetting the position and all after it would cost):")
    _print_worth(made, range(len(made.book)), count)


def _print_worth(made: Preparation, numbers: Sequence[int], count: int | None = None) -> None:
    """Print positions of the book, by their numbers, the most valuable first."""
    both = list(zip(made.book.positions, made.book.boards, strict=True))
    chosen = [both[k] for k in numbers if 0 <= k < len(both)]
    rows = []
    for position, board in sorted(chosen, key=lambda pair: -pair[0].worth)[:count]:
        line = made.book.start.variation_san(position.history) or "(start)"
        play = board.san(position.moves[0].move)
        rows.append((points(position.worth), percent(position.reach), play, _files.end_of(line, 90)))
    _files.print_table(rows, ("points", "reach", "play", "after"))
    print()


def memory_lines(made: Preparation, folder: pathlib.Path) -> str:
    """Plot and write the worth of memory by a plan or a budget; return lines about it, "" without both."""
    if isinstance(made.search, WholeTree) and made.search.plan:
        return "\n" + _plan_lines(made, made.search, folder)
    if made.frontier is not None:
        return "\n" + _budget_lines(made, made.frontier, folder)
    return ""


def _budget_lines(made: Preparation, frontier: MemoryFrontier, folder: pathlib.Path) -> str:
    """Return a line about the gain of some more positions, and plot utility against positions."""
    assert made.budget is not None and isinstance(made.search, WholeTree)
    most = made.budget + _MORE
    more = best_of_frontier(frontier, most)
    columns = {"positions": frontier.sizes} | frontier.columns()
    del columns["size"]
    _files.write_csv(folder / "memory.csv", _files.rows_of(columns))
    gain = signed_points(more.utility - made.utility)
    labels = ("positions in the book", f"{made.score_name.lower()}, points in 100 games")
    with _files.points_figure(folder / "memory.png", *labels, page=True) as panel:
        highest = float(frontier.upper_bound(1.5 * most))
        frontier.plot(panel, most=1.5 * most)
        label = f"at most {made.budget}: {points(made.utility)}"
        panel.plot([len(made.book)], [made.utility], "C1o", label=label)
        label = f"at most {most}: {points(more.utility)} ({gain})"
        panel.plot([more.size], [more.utility], "C2s", ms=4, label=label)
        pad = max(0.05 * (highest - frontier.unprepared), 1e-3)
        panel.set_ylim(frontier.unprepared - pad, highest + pad)
    missed = made.search.truncation_loss or 0.0
    return (
        f"{_MORE} more positions   {gain} ({round(more.paid)} would give {points(more.utility)})\n"
        f"Not looked at       --penalty={frontier.penalty:g} left out what could give {made.budget} "
        f"positions up to {points(missed)} more, {most} up to {points(more.truncation_loss)}\n"
    )


def _plan_lines(made: Preparation, search: WholeTree, folder: pathlib.Path) -> str:
    names = ("positions", "learned", "utility", "best_of_this_size", "loss")
    steps = [(*dataclasses.astuple(step), step.best - step.utility) for step in search.plan]
    rows = [dict(zip(names, step, strict=True)) for step in steps]
    _files.write_csv(folder / "plan.csv", rows)
    labels = ("positions to learn", f"{made.score_name.lower()}, points in 100 games")
    with _files.points_figure(folder / "plan.png", *labels) as panel:
        sizes, _, nested, best, _ = zip((0, 0, made.unprepared, made.unprepared, 0.0), *steps, strict=True)
        panel.plot(sizes, best, "C0o-", label="the best book")
        panel.plot(sizes, nested, "C1s--", ms=4, label="the plan's, which contains the one before")
    lines = [
        f"  {row['learned']:<18}{points(row['utility'])}, and the best book of this size "
        f"{points(row['loss'])} more"
        for row in rows
    ]
    return "\n".join(["Plan, by positions learned:", *lines])
