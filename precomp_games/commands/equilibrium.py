r"""Both sides of a chess game prepare against each other: mixed opening books, and what they are worth.

  precomp-games equilibrium --penalty=1e-4 --output_dir=output/equilibrium

White and Black play their k best moves by a small search, with probabilities proportional to exp(cp / r), and
may each memorize what a larger search recommends, at a penalty a position; with --menu, which of its best
moves is up to them. Each knows that the other prepares too, so what is worth learning is uncertain: in
equilibrium both draw their books at random. Prints the value of the game with nobody prepared, one side, and
both; what each side learns that the other's preparation makes necessary, and what it would learn in any
case; the values for larger penalties, from the same searches. Equilibria are exact. A line ends after
--max_plies half-moves, by default early.

Writes white.bin, white.pgn, black.bin and black.pgn, a pair of books drawn from the equilibrium (--seed);
result.json with all positions and the probability that each is memorized; tree.npz, from which OpenSpiel can
load the game (python_meta_precomputation, tree_file=...); penalties.csv and penalties.png.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import chess
import numpy as np
from absl import flags

from precomp_games._support import checks
from precomp_games._support.files import write_together
from precomp_games.algorithms.preparation.best_precomputation import (
    BestPrecomputation,
    best_precomputation,
    memorized_states,
)
from precomp_games.algorithms.zero_sum.equilibrium import meta_equilibrium
from precomp_games.algorithms.zero_sum.exploitability import MetaEquilibrium, meta_exploitability
from precomp_games.chess.data.book import Book, percent, points, points_axis, write_pgn, write_polyglot
from precomp_games.chess.game import move_of
from precomp_games.chess.plan.trees import equilibrium_tree, preparation_book
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands._app import progress_bar
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import (
    end_of,
    figure,
    output_folder,
    print_table,
    solved_by,
    write_csv,
    write_json,
)
from precomp_games.commands._flags import (
    Listed,
    MemoryFlags,
    define_chess_flags,
    define_flags,
    numbers,
    settings_of,
)
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MemorizedState, MetaStrategy

_SIDES = ("white", "black")


@dataclasses.dataclass
class Flags:
    """For which penalties equilibria are computed, and what is told of them.

    Attributes:
      penalty_factors: Also solve for --penalty times these, at least 1; the first one is what books are
        drawn for.
      states: How many positions of each side to print that it learns because the other one prepares, and
        how many that it learns in any case.
      max_histories: Give up beyond so many; menus make trees grow fast.
      output_dir: Where files go.
      export_store: Also write the whole store, compact, to a file of its own.
    """

    penalty_factors: Listed = ("1", "1.5", "2", "3", "5", "10")
    states: checks.NonNegativeInt = 5
    max_histories: checks.PositiveInt = 5_000_000
    output_dir: str = "output/chess_equilibrium"
    export_store: str | None = None


def define(own: flags.FlagValues) -> None:
    """Defines the flags: those of engines, and its own."""
    define_flags(own, Flags, MemoryFlags)
    define_chess_flags(own, ("opponent_weights", "opponent", "distrust", "price"), penalty=5e-3, max_plies=30)


def run(given: flags.FlagValues) -> None:
    """Solves the game in which both sides prepare, draws books, writes and prints what both sides learn."""
    settings = settings_of(given, 0)
    factors = numbers(given["penalty_factors"], "numbers of at least 1", lambda f: 1.0 <= f < math.inf)
    folder = output_folder(given.output_dir)
    with open_engines(given, settings) as engines:
        names = (engines.analyst.engine_id, engines.opponent.engine_id)
        print(
            f"White ({names[0]}) and Black ({names[1]}) play by "
            f"{settings.opponent_limit}, {OpponentWords(settings, names[1]).play}, and prepare by "
            f"{settings.analyst_limit}; a position costs {points(settings.penalty)} points in 100 games.",
            flush=True,
        )
        tree = equilibrium_tree(
            settings, engines.analyst, engines.opponent, max_histories=given.max_histories
        )
        searches = engines.searches
        if given.export_store:
            engines.analyst.store.export(given.export_store)
    rows, first, alone = _sweep(tree, factors)
    sides = _prepared_sides(tree.with_penalties(settings.penalty * factors[0]), first, alone, given.seed)
    result = {
        "settings": settings.as_dict(),
        "engines": names,
        "value": first.value,
        "utility": first.utility,
        "nash_conv": first.nash_conv,
        "solver": first.solver,
        "iterations": first.iterations,
        "sizes": first.sizes,
        "tree": {"histories": tree.num_histories, "fingerprint": tree.fingerprint},
        "penalties": rows,
        "unaware": {side.name: {"loss": side.unaware_loss, "size": len(side.alone)} for side in sides},
        "memorized": {side.name: _memorized_json(side) for side in sides},
    }
    _write_files(folder, tree, [side.book for side in sides], result)
    score = settings.kind.score_name.lower()
    _plot(folder / "penalties.png", rows, settings.opponent_temperatures_cp[0], score)
    _print_values(tree, first, rows, score, searches)
    print(f"\n{settings.kind.note()}", end="")
    for side in sides:
        _print_side(side, given.states)
    print(f"\nWritten: {folder}/white.bin, .pgn, black.bin, .pgn (books drawn), result.json, tree.npz,")
    print("penalties.csv, penalties.png")


def _sweep(
    tree: HistoryTree, factors: Sequence[float]
) -> tuple[list[dict[str, Any]], MetaEquilibrium, list[BestPrecomputation]]:
    """A row for each penalty; of the first one the equilibrium, and what each side would learn alone."""
    rows, equilibria, unaware = [], [], []
    for factor in progress_bar(factors, desc="Solving", unit=" penalties"):
        penalty = tree.penalties[0] * factor
        dearer = tree.with_penalties(penalty)
        alone: list[BestPrecomputation] = [best_precomputation(dearer, i) for i in (0, 1)]
        both = meta_equilibrium(dearer)
        equilibria.append(both)
        unaware.append(alone)
        rows.append(
            {
                "penalty": penalty,
                "penalty_text": f"{penalty:.2g}",
                "nobody": alone[0].unprepared,
                "white": alone[0].utility,
                "black": tree.utility_sum - alone[1].utility,
                "both": both.utility,
                "size_white_alone": alone[0].size,
                "size_black_alone": alone[1].size,
                "size_white": both.sizes[0],
                "size_black": both.sizes[1],
                "value_both": both.value,
                "nash_conv": both.nash_conv,
            }
        )
    return rows, equilibria[0], unaware[0]


def _print_values(
    tree: HistoryTree,
    first: MetaEquilibrium,
    rows: Sequence[dict[str, Any]],
    score: str,
    searches: int,
) -> None:
    """Prints what the game is worth, at the first penalty and at all of them."""
    print(
        f"\n{tree.num_histories} histories ({tree.work['expanded']} looked at), {tree.num_infosets} may be "
        f"worth memorizing; {searches} new searches\n"
        f"{solved_by(first)}\n"
        f"Value to White {points(first.value)}; before penalties, {score} {points(first.utility)}\n"
    )
    print_table(
        [
            (
                *(row["penalty_text"], *(points(row[k]) for k in ("nobody", "white", "black", "both"))),
                *(row["size_white_alone"], row["size_black_alone"]),
                *(f"{row['size_white']:.1f}", f"{row['size_black']:.1f}"),
            )
            for row in rows
        ],
        ("penalty", "nobody", "White", "Black", "both prepared", "alone W", "alone B", "both W", "both B"),
    )
    print(f"({score} of White in 100 games; positions memorized by the one who prepares alone, and by both)")


@dataclasses.dataclass(frozen=True)
class _Side:
    """What a side learns in equilibrium, beside what it would learn against an unprepared opponent.

    Attributes:
      name: "white" or "black".
      tree: at the penalty that counts.
      states: all that may be in its book, with probabilities.
      unprepared: the same as far as the opponent is not prepared: reach and gains are others.
      alone: the entry that it would memorize of each information state if the opponent were unprepared.
      unaware_loss: what it would lose by bringing that book to a prepared opponent.
      book: one that was drawn.
    """

    name: str
    tree: HistoryTree
    states: Sequence[MemorizedState]
    unprepared: Sequence[MemorizedState]
    alone: dict[int, int]
    unaware_loss: float
    book: Book

    def same_alone(self, state: MemorizedState) -> bool:
        """Whether it would learn this alone as well, and not another move there, or nothing."""
        return self.alone.get(state.infoset) == state.entry


def _prepared_sides(
    tree: HistoryTree, equilibrium: MetaEquilibrium, alone: Sequence[BestPrecomputation], seed: int
) -> list[_Side]:
    """Both sides, with a book of each drawn from its mixture."""
    rng = np.random.default_rng(seed)
    sides = []
    for i, strategy in enumerate(equilibrium.strategies):
        possible = memorized_states(strategy, equilibrium.strategies[1 - i])
        drawn = set(strategy.draw(rng).tolist())
        members = alone[i].memorization_set
        unaware = list(equilibrium.strategies)
        unaware[i] = MetaStrategy.of_set(strategy.tree, i, members)
        lost = meta_exploitability(strategy.tree, (unaware[0], unaware[1])).incentives[i]
        sides.append(
            _Side(
                _SIDES[i],
                tree,
                possible,
                memorized_states(strategy),
                dict(zip(tree.entry_infoset[members].tolist(), members.tolist(), strict=True)),
                max(lost, 0.0),
                preparation_book(strategy.tree, i, [s for s in possible if s.entry in drawn]),
            )
        )
    return sides


def _moves_json(tree: HistoryTree, entry: int) -> dict[str, float]:
    return {move_of(a).uci(): p for a, p in tree.memorized_row(entry).items()}


def _memorized_json(side: _Side) -> list[dict[str, Any]]:
    return [
        {
            "after": [move_of(action).uci() for action in state.actions],
            "play": _moves_json(side.tree, state.entry),
            "probability": state.probability,
            "also_alone": side.same_alone(state),
            "alone": _moves_json(side.tree, side.alone[state.infoset])
            if state.infoset in side.alone
            else None,
            "instead": {
                move_of(action).uci(): -other.loss for other in state.alternatives for action in other.row
            },
            "reach": state.reach,
            "reach_unprepared": unprepared.reach,
            "gain": state.gain,
            "net_gain": state.net_gain,
            "net_gain_unprepared": unprepared.net_gain,
        }
        for state, unprepared in zip(side.states, side.unprepared, strict=True)
    ]


def _write_files(
    folder: pathlib.Path, tree: HistoryTree, books: Sequence[Book], result: Mapping[str, Any]
) -> None:
    """Writes what belongs together: all of it or nothing."""
    white, black = result["engines"]
    headers = {"Event": "Preparation of both sides", "White": white, "Black": black}
    with write_together(folder) as drafts:
        for side, book in zip(_SIDES, books, strict=True):
            write_polyglot(book, drafts / f"{side}.bin")
            write_pgn(book, drafts / f"{side}.pgn", headers=headers)
        tree.save(drafts / "tree.npz")
        write_csv(drafts / "penalties.csv", result["penalties"])
        write_json(drafts / "result.json", result)


def _print_side(side: _Side, states: int) -> None:
    """What a side learns, and which of it is due to the other one's preparation."""
    rival = _SIDES[1 - _SIDES.index(side.name)].capitalize()
    size = sum(state.probability for state in side.states)
    due = [state for state in side.states if not side.same_alone(state)]
    provoked = sum(state.probability for state in due)
    elsewise = sum(state.probability for state in due if state.infoset in side.alone)
    dropped = len(side.alone.keys() - {state.infoset for state in side.states})
    other_move = f" ({elsewise:.1f} with another move than alone)" if side.tree.has_menus else ""
    print(
        f"\n{side.name.capitalize()} memorizes {size:.1f} positions on average, {provoked:.1f} of them only "
        f"because the other side prepares{other_move},\n"
        f"and never {dropped} of the {len(side.alone)} that it would learn alone. "
        f"That book would lose {points(side.unaware_loss)} points in 100 games to a prepared {rival}.\n"
        f"(of {len(side.states)} positions; {len(side.book)} were drawn)"
    )
    if not states:
        return
    both = sorted(
        zip(side.states, side.unprepared, strict=True),
        key=lambda pair: (-pair[0].probability * pair[0].net_gain, pair[0].infoset),
    )
    for title, same in (
        (f"Because {rival} prepares, {side.name.capitalize()} learns", False),
        ("In any case it learns", True),
    ):
        chosen = [pair for pair in both if side.same_alone(pair[0]) == same][:states]
        print(f"\n{title}{':' if chosen else ' nothing.'}")
        if chosen:
            print_table(
                [_table_row(side, *pair) for pair in chosen],
                ("probability", "net gain", "reach", "if unprepared", "learn", "alone", "after"),
            )


def _table_row(side: _Side, state: MemorizedState, unprepared: MemorizedState) -> tuple[Any, ...]:
    board = side.book.start.copy()
    moves = [move_of(action) for action in state.actions]
    line = board.variation_san(moves) or "(start)"
    for move in moves:
        board.push(move)
    known = side.alone.get(state.infoset)
    return (
        state.probability,
        points(state.net_gain),
        percent(state.reach),
        percent(unprepared.reach),
        _moves_text(side.tree, state.entry, board),
        "-" if known is None else _moves_text(side.tree, known, board),
        end_of(line),
    )


def _moves_text(tree: HistoryTree, entry: int, board: chess.Board) -> str:
    row = sorted(tree.memorized_row(entry).items(), key=lambda move: -move[1])
    return "/".join(board.san(move_of(action)) for action, _ in row)


def _plot(path: pathlib.Path, rows: Sequence[dict[str, Any]], r: float, score: str) -> None:
    with figure(path, 1, 2, figsize=(10, 4.2), layout="constrained") as (drawing, (left, right)):
        penalties = [row["penalty"] for row in rows]
        lines = (
            ("nobody", "nobody", "k:"),
            ("white", "White", "C0--o"),
            ("black", "Black", "C3--s"),
            ("both", "both", "k-"),
        )
        for key, label, style in lines:
            left.plot(penalties, [row[key] for row in rows], style, ms=4, label=label)
        left.set(xscale="log", xlabel="penalty a position", ylabel=f"{score} of White, in 100 games")
        points_axis(left.yaxis)
        left.legend(title="who prepares")
        for key, label, style in (
            ("size_white", "White, both prepare", "C0-o"),
            ("size_black", "Black, both prepare", "C3-s"),
            ("size_white_alone", "White alone", "C0--o"),
            ("size_black_alone", "Black alone", "C3--s"),
        ):
            right.plot(penalties, [row[key] for row in rows], style, ms=4, label=label)
        nothing = any(row[key] < 0.1 for row in rows for key in row if key.startswith("size"))
        right.set(
            xscale="log",
            yscale="symlog" if nothing else "log",
            xlabel="penalty a position",
            ylabel="positions memorized (expected)",
        )
        if nothing:
            right.set_ylim(bottom=0)
        right.legend()
        drawing.suptitle(f"Both sides prepare, r = {r:g} centipawns")
