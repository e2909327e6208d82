"""All subgames' refinements as one plan, and whether it is safe.

Source: `efce_resolving`, Definitions 8 and 9.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from .blueprints import Blueprint, plan_of
from .correlation_plans import CorrelationPlan
from .refinement import Refinement
from .sequence_game import SequenceGame
from .sequence_pairs import RelevantPairs
from .triggers import exploitability

__all__ = ["Safety", "completed", "safety", "stitched"]


@dataclasses.dataclass(frozen=True)
class Safety:
    """A complete refinement beside its blueprint.

    violation: the worst delta_refined(s) - max(0, delta_blueprint(s)) of a trigger; at most 0 if safe.
    trunk_violation: the same over triggers in the trunk alone.
    exploitability, blueprint_exploitability: the greatest delta of each.
    welfare, blueprint_welfare: of all of the game.
    """

    violation: float
    trunk_violation: float
    exploitability: float
    blueprint_exploitability: float
    welfare: float
    blueprint_welfare: float


def stitched(game: SequenceGame, blueprint: Blueprint, refinements: Iterable[Refinement]) -> CorrelationPlan:
    """The complete refinement: each refined subgame's entries, the blueprint's elsewhere.

    Args:
      game: held whole, with the subgames that were refined.
      blueprint: what was refined.
      refinements: at most one for each subgame.

    Raises:
      ValueError: a refinement is of another game, or of a subgame that was given already.
    """
    pairs = RelevantPairs.of(game)
    xi = plan_of(blueprint, pairs).xi
    index = {name: k for k, name in enumerate(game.labels)}
    seen = set()
    for refined in refinements:
        name = refined.problem.name
        if name not in index or name in seen:
            raise ValueError(
                f"stitched(): expected one refinement of each subgame, got {name!r} again or unknown"
            )
        seen.add(name)
        small, old = game.restricted(index[name])
        own = refined.plan.pairs
        if any(small.players[i].keys != own.game.players[i].keys for i in (0, 1)):
            raise ValueError(
                f"stitched(): expected a refinement of this game's subgame {name!r}, got another's"
            )
        inside = np.flatnonzero(own.pair_label >= 0)
        s, t = own.sequences()
        xi[pairs.index(old[0][s[inside]], old[1][t[inside]])] = refined.plan.xi[inside]
    return CorrelationPlan(pairs, xi)


def completed(refined: Refinement, deeper: Iterable[Refinement], game: SequenceGame) -> Refinement:
    """A refined subgame with the refinements of its own subgames in place.

    Args:
      refined: the subgame.
      deeper: of its subgames, at most one each.
      game: the subgame with the trunk before it and its own subgames (`Resolving.game` of `deeper`).
    """
    plan = CorrelationPlan(refined.plan.pairs, stitched(game, refined.plan, deeper).xi)
    return dataclasses.replace(refined, plan=plan, welfare=plan.welfare(0))


def safety(refined: CorrelationPlan, blueprint: CorrelationPlan) -> Safety:
    """Measures Definition 9, trigger by trigger.

    Raises:
      ValueError: the plans are not of the same game.
    """
    if len(refined.xi) != len(blueprint.xi) or any(
        refined.game.players[i].keys != blueprint.game.players[i].keys for i in (0, 1)
    ):
        raise ValueError("safety(): expected two plans of the same game")
    after, before = exploitability(refined), exploitability(blueprint)
    worst, trunk = -np.inf, -np.inf
    for i in (0, 1):
        change = after.delta[i] - np.maximum(0.0, before.delta[i])
        worst = max(worst, float(change.max()))
        outside = refined.game.players[i].sequence_label < 0
        trunk = max(trunk, float(change[outside].max()))
    return Safety(
        violation=worst,
        trunk_violation=trunk,
        exploitability=after.worst,
        blueprint_exploitability=before.worst,
        welfare=refined.welfare(),
        blueprint_welfare=blueprint.welfare(),
    )
