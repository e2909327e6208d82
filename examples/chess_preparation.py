r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning? (Algorithm 1 of "Modeling Precomputation in Games Played
Under Computational Constraints".)

  python examples/chess_preparation.py --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. With --budget=200 it learns
the best 200 positions in place of those that are worth --penalty each, and says and plots what 50 more would
be worth: memory.csv and memory.png. It ends with a match (--match_games): what the book promised beside what
it scores; examples/book_match.py looks closer.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import common
import numpy as np
from absl import flags

from precomp_games import HistoryTree, write_together
from precomp_games.algorithms import (
    ORDERS,
    BestPrecomputation,
    MemoryFrontier,
    best_first_precomputation,
    best_of_frontier,
    best_precomputation,
    memory_frontier,
)
from precomp_games.chess import (
    Book,
    PreparationSettings,
    certified_book,
    position_key,
    preparation_book,
    preparation_policies,
    preparation_tree,
    write_pgn,
    write_polyglot,
)

_SHORT = 10  # own moves; with fewer, what keeps a book empty may be the horizon
_MORE = 50  # positions on top of the budget, of which it is told what they would be worth

FLAGS = flags.FLAGS
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Who prepares.")
_R = flags.DEFINE_float(
    "r", 10.0, "Randomness of the opponent, in centipawns; 0.1 is predictable, 100 costs a pawn."
)
_BUDGET = flags.DEFINE_integer(
    "budget",
    None,
    "Learn at most so many positions, as well as possible. --penalty then only says how far is looked: the "
    "smaller, the less may be missed, which is told.",
    lower_bound=0,
)
_MENU = flags.DEFINE_integer(
    "menu",
    1,
    "How many of the analyst's best moves the book may choose among. 1: the best one, and of several best "
    "moves one. 0: all of several best moves, as in the paper.",
    lower_bound=0,
)
_MENU_WINDOW_CP = flags.DEFINE_float(
    "menu_window_cp", 100.0, "How much worse than the best move one of several may be, in centipawns."
)
_ORDER = flags.DEFINE_enum(
    "order",
    "optimistic",
    list(ORDERS),
    "With --menu of 2 or more, which lines are looked at first: those that promise most, which is quick, or "
    "those that settle what the best book is worth.",
)
_GAP = flags.DEFINE_float("gap", 0.001, "With --menu of 2 or more: stop when no book is worth more by this.")
_MAX_EVALUATIONS = flags.DEFINE_integer(
    "max_evaluations", 20_000, "With --menu of 2 or more: stop after so many evaluations.", lower_bound=1
)
_LINES = flags.DEFINE_integer("lines", 12, "How many lines of the book to print.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/chess_preparation", "Where files go.")
_EXPORT_STORE = flags.DEFINE_string(
    "export_store", None, "Also write the searches that this run needs to a store of their own."
)
common.define_chess_flags()
common.define_match_flags()
flags.adopt_module_key_flags(common)


class Prepared(NamedTuple):
    """A book, and what it is worth to the preparing side, in [0, 1].

    Attributes:
      value: utility less the penalties.
      gains: of each of the book's positions.
      told: lines about how it was found.
      numbers: the same for result.json.
    """

    book: Book
    value: float
    utility: float
    unprepared: float
    gains: Sequence[float]
    told: str
    numbers: dict[str, Any]


def result_json(settings: PreparationSettings, engines: common.Engines, found: Prepared) -> dict[str, Any]:
    """The result for programs; utilities are the preparing side's, in [0, 1]."""
    return {
        "settings": settings.as_dict(),
        "analyst": engines.analyst.engine_id,
        "opponent": engines.opponent.engine_id,
        "value": found.value,
        "utility": found.utility,
        "unprepared": found.unprepared,
        "size": len(found.book),
        "distinct_positions": found.book.distinct_positions,
        "budget": _BUDGET.value,
        **found.numbers,
        "memorized": [
            {
                "after": [move.uci() for move in position.history],
                "play": {play.move.uci(): play.probability for play in position.moves},
                "instead": {move.uci(): -loss for move, loss in position.others},
                "reach": position.reach,
                "gain": float(gain),
                "net_gain": position.worth,
            }
            for position, gain in zip(found.book.positions, found.gains, strict=True)
        ],
    }


def by_tree(settings: PreparationSettings, engines: common.Engines, folder: pathlib.Path) -> Prepared:
    """All that the penalty allows is looked at, and the best book of it is taken."""
    with engines.progress("Searching") as progress:
        tree = preparation_tree(settings, engines.analyst, engines.opponent, progress)
    told = f"{tree.work['expanded']} histories were looked at"
    if _BUDGET.value is None:
        best = best_precomputation(tree, settings.player)
    else:
        frontier = memory_frontier(tree, settings.player)
        best = best_of_frontier(frontier, _BUDGET.value)
        told += "\n" + _told_budget(frontier, best, common.score_name(settings), folder)
    if not best.size:
        told += f"\n\n{_why_nothing(tree, best, settings)}"
    return Prepared(
        preparation_book(tree, settings.player, best.states()),
        best.value,
        best.utility,
        best.unprepared,
        best.gain.tolist(),
        told,
        {
            "truncation_loss": best.truncation_loss,
            "tree": {
                "histories": tree.num_histories,
                "positions": tree.num_positions,
                "fingerprint": tree.fingerprint,
            },
        },
    )


def by_best_first(settings: PreparationSettings, engines: common.Engines) -> Prepared:
    """Where there are several moves to choose among, lines are looked at in the order of their promise."""
    policies = preparation_policies(settings, engines.analyst, engines.opponent)
    with common.progress("Searching", "evaluations") as show:
        found = best_first_precomputation(
            settings.game(),
            policies.sigma_pre,
            policies.sigma,
            settings.penalty,
            settings.player,
            policies.leaf_value,
            gap=_GAP.value,
            order=_ORDER.value,
            budget=_BUDGET.value,
            max_evaluations=_MAX_EVALUATIONS.value,
            position_key=position_key,
            min_probability=settings.min_probability,
            progress=lambda done, lower, upper: show(done, f"worth {lower:.4f} to {upper:.4f}"),
        )
    utility = found.lower + found.penalty * found.size
    told = (
        f"{found.work['opened']} positions were opened, {found.work['evaluations']} evaluated\n"
        f"{'Any such book':<20}has {found.upper:.4f} at most, by these scores"
    )
    if found.work["evaluations"] >= _MAX_EVALUATIONS.value:
        told += "\nStopped at --max_evaluations: what was not evaluated by then counts as lost"
    if not found.size:
        told += (
            "\n\nNo move was found that is worth learning; lower --penalty, or raise --budget or --max_plies."
        )
    return Prepared(
        certified_book(found),
        found.lower,
        utility,
        utility - float(found.gain.sum()),
        found.gain.tolist(),
        told,
        {"upper": found.upper, "order": _ORDER.value, "work": found.work},
    )


def main(argv: Sequence[str]) -> None:
    del argv
    player = 0 if _SIDE.value == "white" else 1
    choice = (_MENU.value, _MENU_WINDOW_CP.value)
    settings = common.chess_settings(player, _R.value, evaluated=_MENU.value > 1, menu=choice)
    folder = common.output_folder(_OUTPUT_DIR.value)
    with common.engines() as engines:
        print(
            f"{_SIDE.value.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {engines.opponent.engine_id} "
            f"({settings.opponent_limit}, {settings.opponent_play}); "
            + (
                f"a position costs {settings.penalty:g}."
                if _BUDGET.value is None
                else f"at most {_BUDGET.value} positions are learnt."
            ),
            flush=True,
        )
        needed = engines.start_record()
        found = by_best_first(settings, engines) if settings.menu > 1 else by_tree(settings, engines, folder)
        searches = engines.searches
        if _EXPORT_STORE.value:
            engines.analyst.store.export(_EXPORT_STORE.value, keys=sorted(needed))
        write_files(
            folder, found.book, player, engines.opponent.engine_id, result_json(settings, engines, found)
        )
        report(settings, found, len(needed), searches, folder)
        play(settings, engines, found)


def play(settings: PreparationSettings, engines: common.Engines, found: Prepared) -> None:
    """What the book promises beside what games score."""
    if not FLAGS.match_games or not found.book.positions:
        return
    if not engines.can_search:
        print("No match: games need an engine, and there are only stored searches.")
        return
    empty = Book(found.book.start, found.book.side, ())
    with_book = common.match("With the book", found.book, settings, engines)
    without = common.match("Without it", empty, settings, engines)
    print(f"Match               {common.match_line(found.utility, with_book, without)}")


def report(
    settings: PreparationSettings, found: Prepared, needed: int, searches: int, folder: pathlib.Path
) -> None:
    """Prints the result."""
    score, book = common.score_name(settings), found.book
    price = f"{len(book)} x {settings.penalty:g} for learning it"
    worth = f"Value               {found.value:.4f} = {found.utility:.4f} - {price}\n"
    size = f"{len(book)} positions to learn ({book.distinct_positions} distinct)"
    print(
        f"\n{score:<20}{found.unprepared:.4f} unprepared, {found.utility:.4f} with the book\n"
        + (worth if _BUDGET.value is None else "")
        + f"Size                {size}, {found.told}\n"
        f"Searches            {needed} needed, {searches} of them new\n"
    )
    if len(book) > 2 * book.distinct_positions:
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if book.positions:
        note = common.score_note(settings)
        if note:
            print(note)
        if _LINES.value:
            print(f"First lines of the book:\n{book.first_lines(_LINES.value)}\n")
        _print_most_valuable(book)
    plotted = _BUDGET.value is not None and settings.menu <= 1
    extra = ", memory.csv, memory.png" if plotted else ""
    print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json{extra}")


def _why_nothing(tree: HistoryTree, best: BestPrecomputation, settings: PreparationSettings) -> str:
    """Why the book is empty, and what would change that."""
    start = tree.game.new_initial_state()
    if start.is_terminal():
        return "The game is over where it starts: there is nothing to learn."
    first = 0 if start.current_player() == best.player else 1
    own_moves = len(range(first, settings.max_plies, 2))
    within = f"within --max_plies={settings.max_plies}"
    if own_moves == 0:
        return f"It is never {_SIDE.value.capitalize()}'s move {within}: there is nothing to learn."
    if best.budget == 0:
        return "Nothing is worth learning at this budget; raise --budget to learn more."
    if own_moves == 1:
        return f"No move is worth learning {within}, since a draw follows; raise it to learn more."
    more = f", or raise --max_plies={settings.max_plies}, after which games are draws," * (own_moves < _SHORT)
    return f"Nothing is worth learning at this penalty; lower --penalty{more} to learn more."


def _told_budget(frontier: MemoryFrontier, best: BestPrecomputation, score: str, folder: pathlib.Path) -> str:
    """Lines about a budget; plots and writes what memory is worth."""
    assert best.budget is not None
    more = best_of_frontier(frontier, best.budget + _MORE)
    rows = [
        {"positions": int(size), "utility": float(utility), "worth_of_one": float(worth)}
        for size, utility, worth in zip(
            frontier.sizes, frontier.utilities, [math.nan, *frontier.breakpoints], strict=True
        )
    ]
    common.write_csv(folder / "memory.csv", rows)
    plot(frontier, best, more, score, folder / "memory.png")
    worth, left_out = more.utility - best.utility, frontier.penalty
    return (
        f"{_MORE} more positions   {worth:+.4f} ({more.size} would give {more.utility:.4f})\n"
        f"Not looked at       --penalty={left_out:g} left out what could give {best.budget} positions up to "
        f"{best.truncation_loss:.4f} more, {more.budget} up to {more.truncation_loss:.4f}\n"
    )


def plot(
    frontier: MemoryFrontier,
    best: BestPrecomputation,
    more: BestPrecomputation,
    score: str,
    path: pathlib.Path,
) -> None:
    """Utility against positions, with the budget and what some more would be worth."""
    assert best.budget is not None and more.budget is not None
    with common.figure(path, figsize=(7.0, 4.0)) as (figure, panel):
        right = 1.5 * more.budget
        highest = float(frontier.upper_bound(right))
        exact = frontier.sizes <= frontier.exact_size
        panel.plot(frontier.sizes[exact], frontier.utilities[exact], "C0-", lw=2.0, label="no book has more")
        beyond = np.append(frontier.sizes[frontier.sizes >= frontier.exact_size], right)
        panel.plot(
            beyond, frontier.upper_bound(beyond), "C0:", lw=1.5, label="the same, of what was looked at alone"
        )
        panel.plot([best.size], [best.utility], "C1o", label=f"at most {best.budget}: {best.utility:.4f}")
        gain = more.utility - best.utility
        label = f"at most {more.budget}: {more.utility:.4f} ({gain:+.4f})"
        panel.plot([more.size], [more.utility], "C2s", ms=4, label=label)
        pad = max(0.05 * (highest - frontier.unprepared), 1e-3)
        panel.set_xlim(0.0, right)
        panel.set_ylim(frontier.unprepared - pad, highest + pad)
        panel.set_xlabel("positions in the book")
        panel.set_ylabel(score.lower())
        panel.grid(alpha=0.3)
        panel.legend(loc="lower right", frameon=False)
        figure.tight_layout()


def write_files(folder: pathlib.Path, book: Book, player: int, opponent: str, result: dict[str, Any]) -> None:
    """Writes book.bin, book.pgn and result.json, which belong together: all of them or none."""
    names = ("Book", opponent) if player == 0 else (opponent, "Book")
    headers = {"Event": f"Preparation against {opponent}", "White": names[0], "Black": names[1]}
    with write_together(folder) as drafts:
        write_polyglot(book, drafts / "book.bin")
        write_pgn(book, drafts / "book.pgn", headers=headers)
        common.write_json(drafts / "result.json", result)


def _print_most_valuable(book: Book, count: int = 5) -> None:
    print("Worth the most (what forgetting the position and all after it would cost):")
    rows = []
    for position in sorted(book.positions, key=lambda position: -position.worth)[:count]:
        board = book.start.copy()
        line = board.variation_san(position.history) or "(start)"
        for move in position.history:
            board.push(move)
        line = line if len(line) <= 90 else f"... {line[-86:].partition(' ')[2]}"
        play = board.san(position.moves[0].move)
        rows.append((position.worth, f"{100 * position.reach:.1f}%", play, line))
    common.print_table(rows, ("value", "reach", "play", "after"))
    print()


if __name__ == "__main__":
    common.run(main)
