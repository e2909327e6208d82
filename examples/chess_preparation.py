r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorise what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning? (Algorithm 1 of "Modeling Precomputation in Games Played
Under Computational Constraints".)

  python examples/chess_preparation.py --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import common
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import BestPrecomputation, best_precomputation
from precomp_games.chess import (
    Book,
    PreparationSettings,
    preparation_book,
    preparation_tree,
    write_pgn,
    write_polyglot,
)
from precomp_games.files import atomic_write

FLAGS = flags.FLAGS
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Who prepares.")
_R = flags.DEFINE_float(
    "r", 10.0, "Randomness of the opponent, in centipawns; 0.1 is predictable, 100 costs a pawn."
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
        "distinct_positions": best.positions,
        "tree": {
            "histories": tree.num_histories,
            "positions": tree.num_positions,
            "fingerprint": tree.fingerprint,
        },
        "memorised": [
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
    settings = common.chess_settings(player, _R.value)
    folder = common.output_folder(_OUTPUT_DIR.value)
    with common.engines() as engines:
        print(
            f"{_SIDE.value.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {engines.opponent.engine_id} "
            f"({settings.opponent_limit}, r = {settings.opponent_temperature_cp:g} cp); "
            f"a position costs {settings.penalty:g}.",
            flush=True,
        )
        needed = engines.start_record()
        with engines.progress("Searching") as progress:
            tree = preparation_tree(settings, engines.analyst, engines.opponent, progress)
        best = best_precomputation(tree, player)
        book = preparation_book(tree, player, best.states())
        searches = engines.searches
        if _EXPORT_STORE.value:
            engines.analyst.store.export(_EXPORT_STORE.value, keys=sorted(needed))

        result = result_json(settings, engines, tree, best, book)
        write_files(folder, book, player, engines.opponent.engine_id, result)

    print(
        f"\nExpected score      {best.unprepared:.4f} unprepared, {best.utility:.4f} with the book\n"
        f"Value               {best.value:.4f}, less {best.size} x {settings.penalty:g} for learning it\n"
        f"Size                {best.size} positions to learn ({best.positions} distinct), "
        f"{tree.work['expanded']} histories were looked at\n"
        f"Searches            {len(needed)} needed, {searches} of them new\n"
    )
    if best.size > 2 * best.positions:
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if best.size:
        if _LINES.value:
            print(f"First lines of the book:\n{book.first_lines(_LINES.value)}\n")
        _print_most_valuable(best, book)
    else:
        print("Nothing is worth learning at this penalty; lower --penalty to learn more.\n")
    print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json")


def write_files(folder: pathlib.Path, book: Book, player: int, opponent: str, result: dict[str, Any]) -> None:
    """Writes book.bin, book.pgn and result.json, which belong together: all of them or none."""
    names = ("Book", opponent) if player == 0 else (opponent, "Book")
    headers = {"Event": f"Preparation against {opponent}", "White": names[0], "Black": names[1]}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as draft:
        write_polyglot(book, pathlib.Path(draft, "book.bin"))
        write_pgn(book, pathlib.Path(draft, "book.pgn"), headers=headers)
        with atomic_write(pathlib.Path(draft, "result.json")) as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        for name in ("book.bin", "book.pgn", "result.json"):
            os.replace(pathlib.Path(draft, name), folder / name)


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
