r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning? (Algorithm 1 of "Modeling Precomputation in Games Played
Under Computational Constraints".)

  python examples/chess_preparation.py --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. With --budget=200 it learns
the best 200 positions in place of those that are worth --penalty each, and says and plots what 50 more would
be worth: memory.csv and memory.png.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
from absl import flags

from precomp_games import HistoryTree, write_together
from precomp_games.algorithms import (
    BestPrecomputation,
    MemoryFrontier,
    best_of_frontier,
    best_precomputation,
    memory_frontier,
)
from precomp_games.chess import (
    Book,
    PreparationSettings,
    preparation_book,
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
_LINES = flags.DEFINE_integer("lines", 12, "How many lines of the book to print.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/chess_preparation", "Where files go.")
_EXPORT_STORE = flags.DEFINE_string(
    "export_store", None, "Also write the searches that this run needs to a store of their own."
)
common.define_chess_flags()
flags.adopt_module_key_flags(common)


def result_json(
    settings: PreparationSettings,
    engines: common.Engines,
    tree: HistoryTree,
    best: BestPrecomputation,
    book: Book,
) -> dict[str, Any]:
    """The result for programs; utilities are the preparing side's, in [0, 1]."""
    return {
        "settings": settings.as_dict(),
        "analyst": engines.analyst.engine_id,
        "opponent": engines.opponent.engine_id,
        "value": best.value,
        "utility": best.utility,
        "unprepared": best.unprepared,
        "size": best.size,
        "distinct_positions": best.num_positions,
        "budget": best.budget,
        "truncation_loss": best.truncation_loss,
        "tree": {
            "histories": tree.num_histories,
            "positions": tree.num_positions,
            "fingerprint": tree.fingerprint,
        },
        "memorized": [
            {
                "after": [move.uci() for move in position.history],
                "play": {play.move.uci(): play.probability for play in position.moves},
                "reach": state.reach,
                "gain": state.gain,
                "net_gain": state.net_gain,
            }
            for position, state in zip(book.positions, best.states(), strict=True)
        ],
    }


def main(argv: Sequence[str]) -> None:
    del argv
    player = 0 if _SIDE.value == "white" else 1
    settings = common.chess_settings(player, _R.value, menu=(_MENU.value, _MENU_WINDOW_CP.value))
    folder = common.output_folder(_OUTPUT_DIR.value)
    with common.engines() as engines:
        print(
            f"{_SIDE.value.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {engines.opponent.engine_id} "
            f"({settings.opponent_limit}, r = {settings.opponent_temperature_cp:g} cp); "
            + (
                f"a position costs {settings.penalty:g}."
                if _BUDGET.value is None
                else f"at most {_BUDGET.value} positions are learnt."
            ),
            flush=True,
        )
        needed = engines.start_record()
        with engines.progress("Searching") as progress:
            tree = preparation_tree(settings, engines.analyst, engines.opponent, progress)
        if _BUDGET.value is None:
            best = best_precomputation(tree, player)
        else:
            frontier = memory_frontier(tree, player)
            best = best_of_frontier(frontier, _BUDGET.value)
        book = preparation_book(tree, player, best.states())
        searches = engines.searches
        if _EXPORT_STORE.value:
            engines.analyst.store.export(_EXPORT_STORE.value, keys=sorted(needed))

        result = result_json(settings, engines, tree, best, book)
        write_files(folder, book, player, engines.opponent.engine_id, result)

    score = common.score_name(settings)
    print(
        f"\n{score:<20}{best.unprepared:.4f} unprepared, {best.utility:.4f} with the book\n"
        + (
            f"Value               {best.value:.4f} = {best.utility:.4f} - {best.size} x {settings.penalty:g} "
            "for learning it\n"
            if best.budget is None
            else _told_budget(frontier, best, score, folder)
        )
        + f"Size                {best.size} positions to learn ({best.num_positions} distinct), "
        f"{tree.work['expanded']} histories were looked at\n"
        f"Searches            {len(needed)} needed, {searches} of them new\n"
    )
    if best.size > 2 * best.num_positions:
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if best.size:
        note = common.score_note(settings)
        if note:
            print(note)
        if _LINES.value:
            print(f"First lines of the book:\n{book.first_lines(_LINES.value)}\n")
        _print_most_valuable(best, book)
    else:
        print(f"{_why_nothing(tree, best, settings)}\n")
    extra = ", memory.csv, memory.png" if best.budget is not None else ""
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


def _print_most_valuable(best: BestPrecomputation, book: Book, count: int = 5) -> None:
    print("Worth the most (what forgetting the position and all after it would cost):")
    states = list(best.states())
    order = sorted(range(len(states)), key=lambda k: (-states[k].net_gain, k))
    rows = []
    for k in order[:count]:
        position = book.positions[k]
        board = book.start.copy()
        line = board.variation_san(position.history) or "(start)"
        for move in position.history:
            board.push(move)
        line = line if len(line) <= 90 else f"... {line[-86:].partition(' ')[2]}"
        play = board.san(position.moves[0].move)
        rows.append((states[k].net_gain, f"{100 * states[k].reach:.1f}%", play, line))
    common.print_table(rows, ("value", "reach", "play", "after"))
    print()


if __name__ == "__main__":
    common.run(main)
