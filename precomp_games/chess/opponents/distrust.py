"""How far a model of a person is from the person where it matters: by later games and what replies are worth.

A book that is best for a model is best for its errors: it goes where the model expects mistakes. How many of
these are made is what games say that the model has not seen. At each position of theirs let v(m) be what the
other side has after reply m, p the model, and s the share of p that the person's own games do not say,
alpha / (n + alpha). Then

    c = sum of [p . v - v(played)] / sum of s [p . v - min v],        over the moves of later games,

is the part of what the worst reply would take that was in fact missing: with c as the model's distrust,
Contamination(c s) promises what the games gave, on average over the positions in which they were. 0 is a
model that expects just the mistakes that are made, 1 one whose every mistake is hoped for in vain.

Source: ours; contamination that shrinks with the counts is data-biased response (Johanson and Bowling 2009).
Cost: an evaluation after each reply of each position of these games.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from precomp_games._support.arguments import Ge, Lt, public
from precomp_games._support.checks import ArgumentError, check_instance
from precomp_games._support.results import Result
from precomp_games.chess.books.book import points
from precomp_games.chess.game import ChessState
from precomp_games.chess.records.move_counts import CountsPolicy, GameTable, own_states


@dataclasses.dataclass(frozen=True)
class DistrustFit(Result):
    """How far a model is to distrust itself.

    Attributes:
        share: c, from 0 to 1.
        standard_error: of c, as if moves were independent.
        moves: by how many.
        missing: how much less the other side had after a move than the model had promised, on average.
    """

    share: float
    standard_error: float
    moves: int
    missing: float

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.share:.2f} +- {self.standard_error:.2f}, by {self.moves} moves, after which there were "
            f"{points(self.missing)} points in 100 games less than was expected"
        )


@public
def fit_distrust(
    model: CountsPolicy,
    table: GameTable,
    leaf_value: Any,
    *,
    min_probability: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0,
) -> DistrustFit:
    """The distrust of a model by which what it promises is what later games gave.

    Args:
        model: of earlier games.
        table: the later games.
        leaf_value: what positions are worth to White, in [0, 1], as a preparation has it.
        min_probability: less likely replies are not looked at, as in the preparation.

    Raises:
        ValueError: no such model or table, or no moves whose reply could be worse than expected.
    """
    check_instance(model, CountsPolicy, "model")
    check_instance(table, GameTable, "table")
    states = own_states(table)
    rows = model.action_probabilities_batch(list(states.values()))
    replies = {key: _likely(row, min_probability) for key, row in zip(states, rows, strict=True)}
    played = [
        (key, action)
        for key, action in zip(table.keys[table.own].tolist(), table.actions[table.own].tolist(), strict=True)
        if key in states
    ]
    children = {
        (key, action): states[key].child(action)
        for key, action in [*((key, action) for key, row in replies.items() for action in row), *played]
    }
    worth = dict(zip(children, _worth(list(children.values()), leaf_value), strict=True))
    missing, most = np.zeros(len(played)), np.zeros(len(played))
    for k, (key, action) in enumerate(played):
        sign = -1.0 if states[key].current_player() == 0 else 1.0  # the other side is White where Black moves
        row = {reply: sign * worth[key, reply] for reply in replies[key]}
        expected = math.fsum(p * row[reply] for reply, p in replies[key].items())
        missing[k] = expected - sign * worth[key, action]
        most[k] = model.prior_share(states[key]) * (expected - min(row.values()))
    if most.sum() <= 0.0:
        raise ArgumentError(f"expected table to have moves among several replies, got {len(played)} moves")
    share = float(missing.sum() / most.sum())
    error = float(np.sqrt(((missing - share * most) ** 2).sum()) / most.sum())
    return DistrustFit(min(max(share, 0.0), 1.0), error, len(played), float(missing.mean()))


def _likely(row: Mapping[int, float], least: float) -> dict[int, float]:
    """The replies of a row without what is hardly ever played."""
    kept = {action: p for action, p in row.items() if p > 0.0 and p >= least}
    kept = kept or {max(row, key=row.__getitem__): 1.0}
    total = math.fsum(kept.values())
    return {action: p / total for action, p in kept.items()}


def _worth(states: list[ChessState], leaf_value: Any) -> list[float]:
    """What states are worth to White."""
    told = iter(leaf_value.evaluate_batch([state for state in states if not state.is_terminal()]))
    return [state.returns()[0] if state.is_terminal() else float(next(told)) for state in states]
