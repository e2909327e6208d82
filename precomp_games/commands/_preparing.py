"""What commands that prepare a book share: its flags, the preparation by them, and what is printed of it."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import pathlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated, Any, Literal

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.deadlines import seconds_left
from precomp_games.algorithms import BestPrecomputation, MemoryFrontier, best_of_frontier
from precomp_games.algorithms.preparation.best_first import ORDERS
from precomp_games.chess.data.book import BookPosition, percent, points_axis
from precomp_games.chess.data.repertoire import read_repertoire
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.settings import EVALUATIONS, PreparationSettings
from precomp_games.chess.plan.preparation import (
    BestFirst,
    ByGames,
    PlanStep,
    Preparation,
    WholeTree,
)
from precomp_games.chess.plan.prepare import is_by_games, prepare
from precomp_games.chess.study.words import more_points, points, range_words, signed_points
from precomp_games.commands._app import errors_by_flag, pressed_once
from precomp_games.commands._files import end_of, figure, print_table, rows_of, write_csv
from precomp_games.commands._flags import (
    Listed,
    MemoryFlags,
    MinutesFlags,
    Repeated,
    define_chess_flags,
    define_flags,
    positive_numbers,
    settings_of,
)

_LINES = 12  # of a book, that are printed
_CHOICE = 8  # moves on a menu, where games are played and nothing else is said
LINES = "Lines, what carries most first, and how often each comes up:"
_SHOWN = 8  # opponents of a mixture, each with its value
_LOOKING = 0.5  # of --minutes: lines are looked at for so long, and then games are played
_SHORT = 10  # own moves; with fewer, what keeps a book empty may be the horizon

flags.disclaim_key_flags()  # help lists flags with those of the module that asks for them


@dataclasses.dataclass
class Flags:
    """Who prepares, how much, and how.

    Attributes:
      side: Who prepares.
      budget: Learn at most so many positions, as well as possible. --penalty then only says how far is
        looked: the smaller, the less may be missed. Default: 150 where games are played, else as many as
        are worth it.
      order: With --menu of 2 or more and without games, which lines are looked at first: those that promise
        most, which is quick, or those that settle what the best book is worth.
      max_evaluations: With --menu of 2 or more: stop after so many evaluations.
      play_budget: With --evaluation=calibrated: games between both sides' play. A sixth of them at most
        teaches what positions are worth; the others say what the book is worth, as many as that takes, and
        100 at most besides what there is without it. 0: play no games, and trust the evaluation.
      keep: A file of what is known already, PGN with variations or Polyglot (.bin): its moves of the
        preparing side are in the book wherever it comes to them, and cost nothing. May be repeated.
      plan: Numbers of positions that grow, such as 10,20,50: what to learn first, and what then. Each book
        has in it the one before.
    """

    side: Literal["white", "black"] = "white"
    budget: checks.NonNegativeInt | None = None
    order: Annotated[str, checks.one_of(ORDERS)] = "optimistic"
    max_evaluations: checks.PositiveInt = 20_000
    play_budget: checks.NonNegativeInt = 1200
    keep: Repeated = ()
    plan: Listed = ()


def define_preparation_flags(own: flags.FlagValues, without: Collection[str] = ()) -> None:
    """Defines the flags of whoever prepares: against whom, how much, and how."""
    define_flags(own, Flags, MemoryFlags, MinutesFlags, without=without)
    define_chess_flags(own, evaluation="calibrated", menu=None)
    own["menu"].help += " Default: 8 with the calibrated evaluation, which games correct, and otherwise 1."
    own["top_k"].help += " Default: 2; with --opponent_plays=game, which has no use for it, 1."


def preparation_settings(given: flags.FlagValues, side: str | None = None) -> PreparationSettings:
    """The settings of the flags, for --side or another one; a wrong one is an error before any work."""
    menu, needs_tree = given.menu, _whole_tree(given)
    if menu is None:
        menu = _CHOICE if EVALUATIONS[given.evaluation].fitted and not needs_tree else 1
    player = 0 if (side or given.side) == "white" else 1
    settings = settings_of(given, player, evaluated=menu > 1, menu=menu)
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
            raise ValueError(
                "--plan: expected no --budget beside it, since the plan says how much is learned"
            )
    if given["order"].present and is_by_games(settings, given.play_budget, whole_tree=bool(needs_tree)):
        raise ValueError("--order: expected --play_budget=0 beside it, since games set the order")
    return settings


def _chooses(given: flags.FlagValues, settings: PreparationSettings) -> bool:
    """Whether there is a best book so far, since lines are looked at one after the other."""
    whole_tree = bool(_whole_tree(given)) or settings.distrust > 0.0
    return settings.menu > 1 or is_by_games(settings, given.play_budget, whole_tree=whole_tree)


def _whole_tree(given: flags.FlagValues) -> str:
    """A flag that needs the whole tree, "" where none is given."""
    needs = {
        "price": given.price != "infosets",
        "keep": bool(given.keep),
        "plan": bool(given.plan),
        "distrust": given.distrust > 0.0,
    }
    return next((flag for flag, is_given in needs.items() if is_given), "")


def _plan_sizes(given: flags.FlagValues) -> list[int]:
    """The numbers of --plan."""
    sizes = positive_numbers(given["plan"])
    growing = all(after > before for before, after in itertools.pairwise(sizes))
    if not growing or any(size != int(size) for size in sizes):
        raise ValueError(f"--plan: expected numbers of positions that grow, got {','.join(given.plan)!r}")
    return list(map(int, sizes))


def prepared(
    given: flags.FlagValues,
    settings: PreparationSettings,
    engines: Engines,
    budget: int | None,
    improved: Callable[[Preparation], Any] | None = None,
) -> Preparation:
    """The preparation by these settings and the flags, within a budget; prints what is known before.

    Where the best book so far is kept (`improved`, see `prepare`), Ctrl-C ends the looking.
    """
    for line in engines.misfits(settings):
        print(line, flush=True)

    def announce(positions: int, games: int) -> None:
        most = positions * games * settings.max_plies
        print(
            f"Roll-outs: {games} games from each of {positions} positions, at most {most} searches, since "
            "what comes up again is not searched again.",
            flush=True,
        )

    def look(settings: PreparationSettings, enough: Callable[[], bool] | None = None) -> Preparation:
        return prepare(
            settings,
            engines,
            budget=budget,
            games=given.play_budget,
            order=given.order,
            max_evaluations=given.max_evaluations,
            plan=_plan_sizes(given) if given.plan else (),
            keep=_kept_moves(given.keep, settings) if given.keep else None,
            announce=announce,
            enough=enough,
            improved=improved,
        )

    if not _chooses(given, settings):
        made = look(settings)
        if made.settings.penalty > settings.penalty:
            at = f"at --penalty={made.settings.penalty:g}, not yet {settings.penalty:g}"
            by = "by Ctrl-C" if given.minutes is None else f"by --minutes={given.minutes:g}"
            print(f"{'Stopped':<20}{by}, {at}; the same command goes on from here.", flush=True)
        return made
    minutes = _LOOKING * seconds_left() / 60.0
    with looking_until(None if improved is None and math.isinf(minutes) else minutes) as enough:
        return look(settings, enough)


@contextlib.contextmanager
def best_book_in(folder: pathlib.Path) -> Iterator[Callable[[Preparation], None]]:
    """What writes the best book so far, where it is another one; who ends the work is told where it is."""
    written: Sequence[BookPosition] = ()

    def improved(made: Preparation) -> None:
        nonlocal written
        if made.book.positions and made.book.positions != written:
            made.write(folder)
            written = made.book.positions

    try:
        yield improved
    except KeyboardInterrupt:
        if not written:
            raise
        size = counted(len(written), "position")
        raise KeyboardInterrupt(f"the best book so far is in {folder}, {size}") from None


@contextlib.contextmanager
def looking_until(minutes: float | None) -> Iterator[Callable[[], bool] | None]:
    """Whether so long has passed, or Ctrl-C was pressed; pressed again, it interrupts as ever.

    None, and Ctrl-C as ever, where there is no such limit.
    """
    if minutes is None:
        yield None
        return
    end = time.monotonic() + 60.0 * minutes
    with pressed_once() as pressed:
        yield lambda: pressed() or time.monotonic() > end


def _kept_moves(paths: Sequence[str], settings: PreparationSettings) -> dict[str, chess.Move]:
    """The preparing side's moves in files of its own book, by position; of several, the first."""
    side = settings.side
    with errors_by_flag("keep", "PGN or Polyglot files"):
        book = read_repertoire(paths, side, fen=settings.fen)
    print(f"Kept                {book.report}", flush=True)
    return {epd: position.moves[0] for epd, position in book.positions.items()}


# -- what is printed ---------------------------------------------------------------------------------------


def print_preparation(
    given: flags.FlagValues, made: Preparation, extra: str, *, needed: int, searches: int
) -> None:
    """Prints what the book is worth, how it was found, and what is in it.

    Args:
      given: the flags.
      made: the preparation.
      extra: lines about a plan or a budget, with their line breaks.
      needed: how many searches it took.
      searches: how many of them were made now.
    """
    settings, book = made.settings, made.book
    price = f"{made.learned} x {points(settings.penalty)} for learning it"
    worth = f"Value               {points(made.value)} = {points(made.utility)} - {price}\n"
    size = f"{made.learned} positions to learn ({book.distinct_positions} distinct)"
    if made.learned < len(book):
        size = f"{made.learned} positions to learn, in a book of {book.distinct_positions}"
    whole = made.search if isinstance(made.search, WholeTree) else None
    bounded = made.budget is not None or (whole is not None and bool(whole.plan))
    error = "" if made.standard_error is None else f" +- {points(made.standard_error)}"
    promised = f"{points(made.unprepared)} unprepared, {points(made.utility)}{error} with the book"
    if whole is not None and (robust := whole.robust) is not None:
        promised = (
            f"{points(robust.unprepared)} unprepared, {points(robust.utility)} with the book, against "
            f"the worst of all opponents around the model (--distrust={made.settings.distrust:g})\n"
            f"{'By the model':<20}{promised}"
        )
    print(
        f"\n{made.score_name:<20}{promised}\n{'With it':<20}{more_points(made.utility - made.unprepared)}\n"
        + ("" if bounded else worth)
        + f"Size                {size}, {_how(given, made)}{extra}{_otherwise(made)}\n"
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


def _how(given: flags.FlagValues, made: Preparation) -> str:
    """How the book was found; why it is empty, if it is."""
    search = made.search
    if isinstance(search, WholeTree):
        return f"{search.tree.expanded} histories were looked at"
    work = search.work
    lines = [f"{work['opened']} positions were opened, {work['evaluations']} evaluated"]
    if work["evaluations"] >= given.max_evaluations:
        lines.append("Stopped at --max_evaluations: what was not evaluated by then counts as lost")
    if isinstance(search, BestFirst):
        assert search.upper is not None
        lines.append(f"{'Any such book':<20}has {points(search.upper)} at most, by these scores")
        if not made.book.positions:
            lines.append(
                "\nNo move was found that is worth learning; lower --penalty, or raise --budget or "
                "--max_plies."
            )
        return "\n".join(lines)
    assert isinstance(search, ByGames)
    games = search.games
    lines.append(
        f"Games               {games['taught']} to learn what positions are worth, {games['promise']} more "
        f"for the promise (95 %: {range_words(search.interval)})"
    )
    if (refused := search.refused) is not None:
        lines.append(
            f"\nA book of {refused.positions} positions was found, but games with it score "
            f"{points(refused.utility)} (95 %: {range_words(refused.interval)}), no more than "
            f"{points(made.unprepared)} without it (95 %: {range_words(search.unprepared_interval)}). It "
            "is no advice, and was left out; raise --play_budget or --max_evaluations to look further."
        )
    elif made.book.positions:
        ends = range_words(search.unprepared_interval)
        lines.append(f"{'':<20}{games['unprepared']} more without the book (95 %: {ends})")
    else:
        lines.append(f"\n{_why_nothing(made, by_rules=True)}")
    return "\n".join(lines)


def _otherwise(made: Preparation) -> str:
    """What keeping a book costs or saves, why the book is empty, and what it has against each opponent."""
    text = ""
    if not isinstance(made.search, WholeTree):
        return text
    if (kept := made.search.kept) is not None:
        more, less = made.utility - kept.free_utility, kept.free_learned - kept.learned
        fewer = f"{abs(less)} positions {'less' if less >= 0 else 'more'} to learn"
        text += (
            f"\nKept                {kept.histories} histories of the book are known, by {kept.given} "
            f"positions of --keep\nIf nothing is kept  {points(kept.free_utility)} with "
            f"{kept.free_learned} positions to learn: keeping them is worth {signed_points(more)}, "
            f"with {fewer}"
        )
    if not made.book.positions:
        text += f"\n\n{_why_nothing(made, by_rules=False)}"
    if each := made.search.components:
        values = ", ".join(map(points, each)) + ", in the order given"
        if len(each) > _SHOWN:
            values = f"{range_words((min(each), max(each)))}, of {len(each)} opponents"
        text += f"\n{'Against each':<20}{values}"
    return text


def _why_nothing(made: Preparation, *, by_rules: bool) -> str:
    """Why the book is empty, and what would change that; `by_rules` if games end by the rules of chess."""
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
    short = (
        f", or raise --max_plies={settings.max_plies}{'' if by_rules else ', after which games are draws,'}"
    )
    more = short * (own_moves < _SHORT)
    return f"Nothing is worth learning at this penalty; lower --penalty{more} to learn more."


def _print_most_valuable(made: Preparation, count: int = 5) -> None:
    print("Worth the most (points in 100 games that forgetting the position and all after it would cost):")
    rows = []
    both = zip(made.book.positions, made.book.boards, strict=True)
    for position, board in sorted(both, key=lambda pair: -pair[0].worth)[:count]:
        line = made.book.start.variation_san(position.history) or "(start)"
        play = board.san(position.moves[0].move)
        rows.append((points(position.worth), percent(position.reach), play, end_of(line, 90)))
    print_table(rows, ("points", "reach", "play", "after"))
    print()


_MORE = 50  # positions on top of the budget, of which it is said what they would be worth


def memory_lines(made: Preparation, folder: pathlib.Path) -> str:
    """Lines about a plan or a budget; plots and writes what memory is worth. "" where neither was given."""
    if isinstance(made.search, WholeTree) and made.search.plan:
        return "\n" + _plan_lines(made, made.search.plan, folder)
    if made.frontier is not None:
        return "\n" + _budget_lines(made, made.frontier, folder)
    return ""


def _budget_lines(made: Preparation, frontier: MemoryFrontier, folder: pathlib.Path) -> str:
    assert made.budget is not None and isinstance(made.search, WholeTree)
    more = best_of_frontier(frontier, made.budget + _MORE)
    columns = {"positions": frontier.sizes} | frontier.columns()
    del columns["size"]
    write_csv(folder / "memory.csv", rows_of(columns))
    _plot(made, frontier, more, folder / "memory.png")
    worth, missed = more.utility - made.utility, made.search.truncation_loss or 0.0
    return (
        f"{_MORE} more positions   {signed_points(worth)} ({more.size} would give {points(more.utility)})\n"
        f"Not looked at       --penalty={frontier.penalty:g} left out what could give {made.budget} "
        f"positions up to {points(missed)} more, {more.budget} up to {points(more.truncation_loss)}\n"
    )


def _plot(made: Preparation, frontier: MemoryFrontier, more: BestPrecomputation, path: pathlib.Path) -> None:
    """Utility against positions, with the budget and what some more would be worth."""
    assert more.budget is not None
    with figure(path, figsize=(7.0, 4.0), page=True) as (drawing, panel):
        right = 1.5 * more.budget
        highest = float(frontier.upper_bound(right))
        frontier.plot(panel, most=right)
        label = f"at most {made.budget}: {points(made.utility)}"
        panel.plot([len(made.book)], [made.utility], "C1o", label=label)
        gain = more.utility - made.utility
        label = f"at most {more.budget}: {points(more.utility)} ({signed_points(gain)})"
        panel.plot([more.size], [more.utility], "C2s", ms=4, label=label)
        pad = max(0.05 * (highest - frontier.unprepared), 1e-3)
        panel.set_ylim(frontier.unprepared - pad, highest + pad)
        panel.set_xlabel("positions in the book")
        panel.set_ylabel(f"{made.score_name.lower()}, points in 100 games")
        points_axis(panel.yaxis)
        panel.legend(loc="lower right")
        drawing.tight_layout()


def _plan_lines(made: Preparation, plan: Sequence[PlanStep], folder: pathlib.Path) -> str:
    rows = [
        {
            "positions": step.budget,
            "learned": step.learned,
            "utility": step.utility,
            "best_of_this_size": step.best,
            "loss": step.best - step.utility,
        }
        for step in plan
    ]
    write_csv(folder / "plan.csv", rows)
    with figure(folder / "plan.png", figsize=(7.0, 4.0)) as (drawing, panel):
        sizes = [0, *(row["positions"] for row in rows)]
        best = [made.unprepared, *(row["best_of_this_size"] for row in rows)]
        panel.plot(sizes, best, "C0o-", label="the best book")
        nested = [made.unprepared, *(row["utility"] for row in rows)]
        panel.plot(sizes, nested, "C1s--", ms=4, label="the plan's, which contains the one before")
        panel.set_xlabel("positions to learn")
        panel.set_ylabel(f"{made.score_name.lower()}, points in 100 games")
        points_axis(panel.yaxis)
        panel.grid(alpha=0.3)
        panel.legend(loc="lower right", frameon=False)
        drawing.tight_layout()
    lines = [
        f"  {row['learned']:<18}{points(row['utility'])}, and the best book of this size "
        f"{points(row['loss'])} more"
        for row in rows
    ]
    return "\n".join(["Plan, by positions learned:", *lines])
