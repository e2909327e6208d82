"""All subgames' refinements as one plan, and whether it is safe.

Source: `efce_resolving`, Definitions 8 and 9.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated

import numpy as np

from precomp_games._support.arguments import ArgumentError, each_of, public
from precomp_games._support.checks import shown

from .blueprints import AnyBlueprint, plan_of
from .correlation_plans import CorrelationPlan
from .refinement import Refinement
from .sequence_game import SequenceGame, same_game
from .sequence_pairs import RelevantPairs
from .triggers import exploitability

__all__ = ["Safety", "complete", "safety", "stitch"]

_Refinements = Annotated[Iterable[Refinement], each_of(Refinement)]

_SAME = 1e-9
"""By how much entries of the same blueprint differ, in several parts of a game."""


@dataclasses.dataclass(frozen=True)
class Safety:
    """A complete refinement beside its blueprint.

    Attributes:
      violation: The worst delta_refined(s) - max(0, delta_blueprint(s)) of a trigger; at most 0 if safe.
      trunk_violation: The same over triggers in the trunk alone.
      exploitability, blueprint_exploitability: The greatest delta of each.
      welfare, blueprint_welfare: Of all of the game.
    """

    violation: float
    trunk_violation: float
    exploitability: float
    blueprint_exploitability: float
    welfare: float
    blueprint_welfare: float


@public
def stitch(game: SequenceGame, blueprint: AnyBlueprint, refinements: _Refinements) -> CorrelationPlan:
    """The complete refinement: each refined subgame's entries, the blueprint's elsewhere.

    Args:
      game: held whole, with the subgames that were refined.
      blueprint: what was refined.
      refinements: at most one for each subgame.

    Raises:
      ValueError: a refinement is of another game, of another blueprint, or of a subgame that was given
        already.
    """
    pairs = RelevantPairs.of(game)
    before = plan_of(blueprint, pairs).xi
    xi = before.copy()
    index = {name: k for k, name in enumerate(game.labels)}
    seen = set()
    for refined in refinements:
        name = refined.problem.name
        if name not in index or name in seen:
            raise ArgumentError(f"expected one refinement of each subgame, got {name!r} again or unknown")
        seen.add(name)
        small, old = game.restrict(index[name])
        own = refined.plan.pairs
        if not same_game(small, own.game):
            raise ArgumentError(f"expected a refinement of this game's subgame {name!r}, got another's")
        s, t = own.sequences()
        place = pairs.index(old[0][s], old[1][t])
        apart = float(np.abs(refined.problem.blueprint.xi - before[place]).max())
        if apart > _SAME:
            raise ArgumentError(
                f"expected refinements of the blueprint {shown(blueprint)}, got one of subgame "
                f"{name!r} from another blueprint, whose entries differ by up to {apart:.1e}"
            )
        inside = own.pair_label >= 0
        xi[place[inside]] = refined.plan.xi[inside]
    return CorrelationPlan(pairs, xi)


@public
def complete(refined: Refinement, deeper: _Refinements, game: SequenceGame) -> Refinement:
    """A refined subgame with the refinements of its own subgames in place.

    Args:
      refined: the subgame.
      deeper: of its subgames, at most one each.
      game: the subgame with the trunk before it and its own subgames (`Resolving.game` of `deeper`).

    Raises:
      ValueError: as `stitch`, with `refined.plan` for the blueprint, or `game` is not this subgame.
    """
    if not same_game(game, refined.plan.game):
        raise ArgumentError(f"expected the game that was refined, {refined.plan.game}, got {game}")
    plan = CorrelationPlan(refined.plan.pairs, stitch(game, refined.plan, deeper).xi)
    return dataclasses.replace(refined, plan=plan, welfare=plan.welfare(0))


@public
def safety(refined: CorrelationPlan, blueprint: CorrelationPlan) -> Safety:
    """Measures Definition 9, trigger by trigger.

    Raises:
      ValueError: the plans are not of the same game.
    """
    if not same_game(refined.game, blueprint.game):
        raise ArgumentError("expected two plans of the same game")
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
