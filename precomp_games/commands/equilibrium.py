r"""Both sides of a chess game prepare against each other: mixed opening books, and what they are worth.

  precomp-games equilibrium --penalty=1e-4 --output_dir=output/equilibrium

White and Black play their k best moves by a small search, with probabilities proportional to exp(cp / r), and
may each memorize the moves of a larger search, at a penalty for each position; with --menu they choose among
its best moves. Each knows that the other prepares too, so in equilibrium both draw their books at random.
Prints the value of the game with nobody prepared, one side, and both; the positions that each side learns
only because the other one prepares, and those that it would learn in any case; and the values for larger
penalties, from the same searches. Equilibria are exact. A line ends after --max_plies half-moves, by default
early.

Writes white.bin, white.pgn, black.bin and black.pgn, a pair of books drawn from the equilibrium (--seed);
result.json with all positions and the probability that each is memorized; tree.npz, from which OpenSpiel can
load the game (python_meta_precomputation, tree_file=...); penalties.csv and penalties.png.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import chess
import numpy as np
from absl import flags

from precomp_games import algorithms
from precomp_games._support import checks
from precomp_games._support.files import write_together
from precomp_games.algorithms.zero_sum.exploitability import MetaEquilibrium
from precomp_games.chess.data.book import Book, percent, points, points_axis, write_pgn, write_polyglot
from precomp_games.chess.game import move_of
from precomp_games.chess.plan.trees import equilibrium_tree, preparation_book
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands import _app, _chess, _files, _flags
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

_SIDES = ("white", "black")


@dataclasses.dataclass
class Flags:
    """Flags of the penalties to solve for, and of the output.

    Attributes:
      penalty_factors: Solve for --penalty times each of these, at least 1; books are drawn for the first
        one.
      states: Number of positions of each side to print that it learns only because the other side
        prepares, and of those that it learns in any case.
      max_histories: Stop with an error beyond so many histories; menus make trees grow fast.
      output_dir: Where files go.
    """

    penalty_factors: _flags.Listed = ("1", "1.5", "2", "3", "5", "10")
    states: checks.NonNegativeInt = 5
    max_histories: checks.PositiveInt = 5_000_000
    output_dir: str = "output/chess_equilibrium"


def define(own: flags.FlagValues) -> None:
    """Define the flags: those of engines, and its own."""
    without = ("opponent_weights", "opponent", "distrust", "price")
    _flags.define_flags(own, Flags, _flags.MemoryFlags)
    _flags.define_chess_flags(own, without, penalty=5e-3, max_plies=30)


def run(given: flags.FlagValues) -> None:
    """Solve the game in which both sides prepare, draw books, write and print what both sides learn."""
    settings = _flags.settings_of(given, 0)
    factors = _flags.numbers(given["penalty_factors"], "numbers of at least 1", lambda f: 1.0 <= f < math.inf)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings) as engines:
        print(
            f"White ({engines.ids[0]}) and Black ({engines.ids[1]}) play by "
            f"{settings.opponent_limit}, {OpponentWords(settings, engines.ids[1]).play}, and prepare by "
            f"{settings.analyst_limit}; a position costs {points(settings.penalty)} points in 100 games."
        )
        players = (engines.analyst, engines.opponent)
        tree = equilibrium_tree(settings, *players, max_histories=given.max_histories)
        searches = engines.searches
    rows, first, alone = _sweep(tree, factors)
    sides = _prepared_sides(tree.with_penalties(settings.penalty * factors[0]), first, alone, given.seed)
    result = {
        "settings": settings.as_dict(),
        "engines": engines.ids,
        **{name: getattr(first, name) for name in ("value", "utility", "nash_conv")},
        **{name: getattr(first, name) for name in ("solver", "iterations", "sizes")},
        "tree": {"histories": tree.num_histories, "fingerprint": tree.fingerprint},
        "penalties": rows,
        "unaware": {side.name: {"loss": side.unaware_loss, "size": side.alone} for side in sides},
        "memorized": {side.name: side.memorized for side in sides},
    }
    headers = dict(zip(("Event", "White", "Black"), ("Preparation of both sides", *engines.ids), strict=True))
    with write_together(folder) as drafts:  # all of it or nothing
        for side in sides:
            write_polyglot(side.book, drafts / f"{side.name}.bin")
            write_pgn(side.book, drafts / f"{side.name}.pgn", headers=headers)
        tree.save(drafts / "tree.npz")
        _files.write_csv(drafts / "penalties.csv", rows)
        _files.write_json(drafts / "result.json", result)
    score = settings.kind.score_name.lower()
    _plot(folder / "penalties.png", rows, settings.opponent_temperatures_cp[0], score)
    print(
        f"\n{tree.num_histories} histories ({tree.work['expanded']} looked at), {tree.num_infosets} may be "
        f"worth memorizing; {searches} new searches\n"
        f"{_files.solved_by(first)}\n"
        f"Value to White {points(first.value)}; before penalties, {score} {points(first.utility)}\n"
    )
    table = [
        (
            *(row["penalty_text"], *(points(row[k]) for k in ("nobody", "white", "black", "both"))),
            *(row["size_white_alone"], row["size_black_alone"]),
            *(f"{row['size_white']:.1f}", f"{row['size_black']:.1f}"),
        )
        for row in rows
    ]
    who = ("nobody", "White", "Black", "both prepared", "alone W", "alone B", "both W", "both B")
    _files.print_table(table, ("penalty", *who))
    print(f"({score} of White in 100 games; positions memorized by the one who prepares alone, and by both)")
    print(f"\n{settings.kind.note()}", end="")
    for side in sides:
        _print_side(side, given.states, menus=tree.has_menus)
    print(f"\nWritten: {folder}/white.bin, .pgn, black.bin, .pgn (books drawn), result.json, tree.npz,")
    print("penalties.csv, penalties.png")


def _sweep(
    tree: HistoryTree, factors: Sequence[float]
) -> tuple[list[dict[str, Any]], MetaEquilibrium, list[algorithms.BestPrecomputation]]:
    """Return a row for each penalty, the first one's equilibrium, and each side's best book alone."""
    rows, found = [], []
    for factor in _app.progress_bar(factors, desc="Solving", unit=" penalties"):
        penalty = tree.penalties[0] * factor
        dearer = tree.with_penalties(penalty)
        alone: list[algorithms.BestPrecomputation] = [
            algorithms.best_precomputation(dearer, i) for i in (0, 1)
        ]
        both = algorithms.meta_equilibrium(dearer)
        found.append((both, alone))
        rows.append(
            {
                "penalty": penalty,
                "penalty_text": f"{penalty:.2g}",
                "nobody": alone[0].unprepared,
                "white": alone[0].utility,
                "black": tree.utility_sum - alone[1].utility,
                "both": both.utility,
                **{f"size_{side}_alone": each.size for side, each in zip(_SIDES, alone, strict=True)},
                **{f"size_{side}": size for side, size in zip(_SIDES, both.sizes, strict=True)},
                "value_both": both.value,
                "nash_conv": both.nash_conv,
            }
        )
    return rows, *found[0]


class _Side(NamedTuple):
    """A side's book in equilibrium, beside its book against an unprepared opponent.

    Attributes:
      name: "white" or "black".
      memorized: all positions that may be in its book, as JSON.
      alone: number of positions that it would learn against an unprepared opponent.
      dropped: number of those that are never in its book.
      unaware_loss: its loss by bringing that book to a prepared opponent.
      book: a book drawn from the equilibrium.
    """

    name: str
    memorized: list[dict[str, Any]]
    alone: int
    dropped: int
    unaware_loss: float
    book: Book


def _prepared_sides(
    tree: HistoryTree, equilibrium: MetaEquilibrium, alone: Sequence[algorithms.BestPrecomputation], seed: int
) -> list[_Side]:
    """Return both sides, with a book of each drawn from its mixture."""
    rng = np.random.default_rng(seed)
    sides = []
    for i, strategy in enumerate(equilibrium.strategies):
        possible = algorithms.memorized_states(strategy, equilibrium.strategies[1 - i])
        drawn = set(strategy.draw(rng).tolist())
        members = alone[i].memorization_set
        known = dict(zip(tree.entry_infoset[members].tolist(), members.tolist(), strict=True))
        unaware = list(equilibrium.strategies)
        unaware[i] = MetaStrategy.of_set(strategy.tree, i, members)
        lost = algorithms.meta_exploitability(strategy.tree, (unaware[0], unaware[1])).incentives[i]
        memorized = [
            {
                "after": [move_of(action).uci() for action in state.actions],
                "play": _moves(tree.memorized_row(state.entry)),
                "probability": state.probability,
                "also_alone": known.get(state.infoset) == state.entry,
                "alone": _moves(tree.memorized_row(known[state.infoset])) if state.infoset in known else None,
                "instead": _moves({a: -other.loss for other in state.alternatives for a in other.row}),
                "reach": state.reach,
                "reach_unprepared": unprepared.reach,
                "gain": state.gain,
                "net_gain": state.net_gain,
                "net_gain_unprepared": unprepared.net_gain,
            }
            for state, unprepared in zip(possible, algorithms.memorized_states(strategy), strict=True)
        ]
        dropped = len(known.keys() - {state.infoset for state in possible})
        book = preparation_book(strategy.tree, i, [state for state in possible if state.entry in drawn])
        sides.append(_Side(_SIDES[i], memorized, len(known), dropped, max(lost, 0.0), book))
    return sides


def _moves(row: Mapping[int, float]) -> dict[str, float]:
    return {move_of(action).uci(): number for action, number in row.items()}


def _print_side(side: _Side, states: int, *, menus: bool) -> None:
    """Print what a side memorizes, and which part is due to the other side's preparation."""
    name, rival = side.name.capitalize(), _SIDES[1 - _SIDES.index(side.name)].capitalize()
    size = sum(row["probability"] for row in side.memorized)
    due = [row for row in side.memorized if not row["also_alone"]]
    elsewise = sum(row["probability"] for row in due if row["alone"] is not None)
    other_move = f" ({elsewise:.1f} with another move than alone)" if menus else ""
    print(
        f"\n{name} memorizes {size:.1f} positions on average, {sum(row['probability'] for row in due):.1f} "
        f"of them only because the other side prepares{other_move},\n"
        f"and never {side.dropped} of the {side.alone} that it would learn alone. "
        f"That book would lose {points(side.unaware_loss)} points in 100 games to a prepared {rival}.\n"
        f"(of {len(side.memorized)} positions; {len(side.book)} were drawn)"
    )
    best = sorted(side.memorized, key=lambda row: -row["probability"] * row["net_gain"])
    titles = (f"Because {rival} prepares, {name} learns", "In any case it learns")
    for title, same in zip(titles, (False, True), strict=True):
        chosen = [_table_row(side.book.start, row) for row in best if row["also_alone"] == same][:states]
        if states:
            print(f"\n{title}{':' if chosen else ' nothing.'}")
        if chosen:
            header = ("probability", "net gain", "reach", "if unprepared", "learn", "alone", "after")
            _files.print_table(chosen, header)


def _table_row(start: chess.Board, row: Mapping[str, Any]) -> tuple[Any, ...]:
    board, line = start.copy(), [chess.Move.from_uci(move) for move in row["after"]]
    for move in line:
        board.push(move)

    def played(moves: Mapping[str, float]) -> str:
        return "/".join(
            board.san(chess.Move.from_uci(move)) for move in sorted(moves, key=lambda m: -moves[m])
        )

    return (
        *(row["probability"], points(row["net_gain"]), percent(row["reach"])),
        *(percent(row["reach_unprepared"]), played(row["play"]), played(row["alone"] or {}) or "-"),
        _files.end_of(start.variation_san(line) or "(start)"),
    )


def _plot(path: pathlib.Path, rows: Sequence[dict[str, Any]], r: float, score: str) -> None:
    whose = {"nobody": ("nobody", "k:"), "white": ("White", "C0--o"), "black": ("Black", "C3--s")}
    whose |= {"both": ("both", "k-")}
    sizes = {"white": ("White, both prepare", "C0-o"), "black": ("Black, both prepare", "C3-s")}
    sizes |= {"white_alone": ("White alone", "C0--o"), "black_alone": ("Black alone", "C3--s")}
    sizes = {f"size_{key}": value for key, value in sizes.items()}
    with _files.figure(path, 1, 2, figsize=(10, 4.2), layout="constrained") as (drawing, (left, right)):
        for panel, curves in ((left, whose), (right, sizes)):
            for key, (label, style) in curves.items():
                penalties = [row["penalty"] for row in rows]
                panel.plot(penalties, [row[key] for row in rows], style, ms=4, label=label)
            panel.set(xscale="log", xlabel="penalty a position")
        left.set_ylabel(f"{score} of White, in 100 games")
        points_axis(left.yaxis)
        left.legend(title="who prepares")
        nothing = any(row[key] < 0.1 for row in rows for key in sizes)  # which a logarithm does not show
        right.set(yscale="symlog" if nothing else "log", ylabel="positions memorized (expected)")
        if nothing:
            right.set_ylim(bottom=0)
        right.legend()
        drawing.suptitle(f"Both sides prepare, r = {r:g} centipawns")
