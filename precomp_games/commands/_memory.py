"""What memory is worth, as lines, CSV files and plots: a budget's book, and a plan's books."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from precomp_games.algorithms import BestPrecomputation, MemoryFrontier, best_of_frontier
from precomp_games.chess.books.book import points, points_axis
from precomp_games.chess.preparation.preparation import PlanStep, Preparation, WholeTree
from precomp_games.chess.study.words import signed_points
from precomp_games.commands._files import figure, rows_of, write_csv

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
