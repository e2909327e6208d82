"""What memory is worth, as lines, CSV files and plots: a budget's book, and a plan's books."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import numpy as np

from precomp_games.algorithms import BestPrecomputation, MemoryFrontier, PlanStep, best_of_frontier

_MORE = 50  # positions on top of the budget, of which it is told what they would be worth


def told_budget(frontier: MemoryFrontier, best: BestPrecomputation, score: str, folder: pathlib.Path) -> str:
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
    _plot(frontier, best, more, score, folder / "memory.png")
    worth, left_out = more.utility - best.utility, frontier.penalty
    return (
        f"{_MORE} more positions   {worth:+.4f} ({more.size} would give {more.utility:.4f})\n"
        f"Not looked at       --penalty={left_out:g} left out what could give {best.budget} positions up to "
        f"{best.truncation_loss:.4f} more, {more.budget} up to {more.truncation_loss:.4f}\n"
    )


def _plot(
    frontier: MemoryFrontier,
    best: BestPrecomputation,
    more: BestPrecomputation,
    score: str,
    path: pathlib.Path,
) -> None:
    """Utility against positions, with the budget and what some more would be worth."""
    assert best.budget is not None and more.budget is not None
    with common.figure(path, figsize=(7.0, 4.0), page=True) as (figure, panel):
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
        panel.legend(loc="lower right")
        figure.tight_layout()


def told_plan(steps: Sequence[PlanStep], score: str, folder: pathlib.Path) -> str:
    """Lines about a plan; plots and writes it."""
    rows = [
        {
            "positions": step.budget,
            "learned": step.learned,
            "utility": step.chosen.utility,
            "best_of_this_size": step.best.utility,
            "loss": step.loss,
        }
        for step in steps
    ]
    common.write_csv(folder / "plan.csv", rows)
    with common.figure(folder / "plan.png", figsize=(7.0, 4.0)) as (figure, panel):
        sizes = [0, *(step.budget for step in steps)]
        unprepared = steps[0].chosen.unprepared
        panel.plot(sizes, [unprepared, *(s.best.utility for s in steps)], "C0o-", label="the best book")
        nested = [unprepared, *(s.chosen.utility for s in steps)]
        panel.plot(sizes, nested, "C1s--", ms=4, label="the plan's, which contains the one before")
        panel.set_xlabel("positions to learn")
        panel.set_ylabel(score.lower())
        panel.grid(alpha=0.3)
        panel.legend(loc="lower right", frameon=False)
        figure.tight_layout()
    lines = [
        f"  {step.learned:<18}{step.chosen.utility:.4f}, and the best book of this size {step.loss:.4f} more"
        for step in steps
    ]
    return "\n".join(["Plan, by positions learned:", *lines])
