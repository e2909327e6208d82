"""Resolving: from a blueprint and subgames to refined subgames, once or again as play goes on, and back.

`Resolving` holds a blueprint and a decomposition, and makes each subgame's refinement problem; subgames are
held one at a time.

    resolving = Resolving.of(game, uniform_blueprint(), public_moves(game, 1))
    refined = refine_lp(resolving.problem(name))
    deeper = resolving.deeper(refined, public_moves(game, 2))

`stitch` makes one plan of all subgames' refinements, and `safety` measures whether it is safe.

Source: `efce_resolving`, Algorithm 1; Definitions 8 and 9.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Annotated

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.config import bar

from .bounds import BoundsKind, Inherited, PlayerRows, SubgameBounds, player_rows, trunk_bounds
from .constraints import RefinementProblem
from .correlation_plans import AnyBlueprint, Blueprint, CorrelationPlan, TrunkConnections
from .refinement import Refinement
from .sequence_game import CorrelatedGame, PublicInformation, SequenceGame, same_game
from .subgames import check_apart, decompose, infoset_marks
from .triggers import exploitability, trigger_gains

_Refinements = Annotated[Iterable[Refinement], checks.each_of(Refinement)]

_SAME = 1e-9
"""By how much entries of the same blueprint differ, in several parts of a game."""


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """Numbers of relevant pairs of a game.

    Attributes:
      trunk: Pairs before all subgames.
      subgames: Pairs of each subgame alone, by its name.
    """

    trunk: int
    subgames: dict[Hashable, int]

    @property
    def total(self) -> int:
        """The whole game's."""
        return self.trunk + sum(self.subgames.values())


class Resolving:
    """Subgames of a blueprint, and bounds for refining each.

    Use `of`, `of_subgames` or `deeper`.

    Attributes:
      names: Of the subgames.
      trunk: The blueprint on the trunk.
      counts: Of relevant pairs.
      game: The game that holds all subgames, None if they are held one at a time.
      refined: The refined subgame whose subgames these are, None for subgames of a game.
    """

    refined: Refinement | None = None

    def __init__(
        self,
        names: list[Hashable],
        trunk: CorrelationPlan,
        part: Callable[[Hashable], CorrelationPlan],
        bounds: BoundsKind,
        inherited: Inherited | None = None,
        game: SequenceGame | None = None,
    ) -> None:
        self.game = game
        self.names = names
        self.trunk = trunk
        self._part = part
        self._kind: BoundsKind = bounds
        self._inherited = inherited
        self._rows: dict[Hashable, Sequence[PlayerRows]] = {}
        subgames: dict[Hashable, int] = {}
        marks: dict[Hashable, np.ndarray] = {}
        connections = TrunkConnections()
        with bar("Blueprint", "subgames", len(names), leave=False) as show:
            for name in names:
                plan = part(name)
                self._rows[name] = [player_rows(plan, player, bounds, inherited) for player in (0, 1)]
                subgames[name] = plan.pairs.num_in_subgames
                marks[name] = infoset_marks(plan.game)
                connections.add(plan.game, plan.pairs.first, plan.pairs.second)
                show(len(marks))
        check_apart(marks)
        connections.check()
        self.counts = PairCounts(len(trunk.pairs), subgames)

    def __repr__(self) -> str:
        return f"Resolving({self.trunk.game.game}: {len(self.names)} subgames, {self._kind!r} bounds)"

    @classmethod
    @public
    def of(
        cls,
        game: CorrelatedGame,
        blueprint: AnyBlueprint,
        public: PublicInformation,
        bounds: BoundsKind = "aggregate",
    ) -> Resolving:
        """Read the subgames from OpenSpiel's states, one at a time: memory is that of the largest subgame.

        Args:
          game: as for `SequenceGame`.
          blueprint: for all of the game.
          public: names the subgames.
          bounds: see `bounds`.

        Raises:
          ValueError: the game or the blueprint will not do, or `public` names no valid subgames.
        """

        def part(name: Hashable) -> CorrelationPlan:
            return CorrelationPlan.of(SequenceGame.of(game, public=public, only=name), blueprint)

        trunk = SequenceGame.of(game, public=public, trunk=True)
        if not trunk.labels:
            raise ArgumentError("expected subgames, but `public` names none")
        return cls(list(trunk.labels), CorrelationPlan.of(trunk, blueprint), part, bounds)

    @classmethod
    @public
    def of_subgames(
        cls, game: SequenceGame, blueprint: AnyBlueprint, bounds: BoundsKind = "aggregate"
    ) -> Resolving:
        """Read the subgames from a game that is held whole, see `subgames.decompose`.

        Raises:
          ValueError: it has none, or is a part of a game.
        """
        if not game.labels:
            raise ArgumentError("expected a game with subgames, got none; see decompose()")
        game.check_whole()
        return cls._of_held(game, blueprint, bounds)

    @classmethod
    def _of_held(
        cls, game: SequenceGame, blueprint: Blueprint, bounds: BoundsKind, inherited: Inherited | None = None
    ) -> Resolving:
        """Read the subgames from a game that is held whole, for a checked blueprint."""

        def part(label: int) -> CorrelationPlan:
            return CorrelationPlan.of(game.restrict(label)[0], blueprint)

        index = {name: k for k, name in enumerate(game.labels)}
        return cls(list(index), part(-1), lambda name: part(index[name]), bounds, inherited, game=game)

    @public
    def problem(self, name: Hashable) -> RefinementProblem:
        """Return the refinement problem of a subgame.

        Raises:
          ValueError: there is no subgame of this name.
        """
        bounds, plan = self.bounds(name), self._part(name)
        # max(0, delta), which means something where all that follows a sequence is in the plan's subgame.
        one, two = (np.maximum(0.0, trigger_gains(plan, player, inside=True)) for player in (0, 1))
        return RefinementProblem(name, plan, bounds, (one, two))

    @public
    def bounds(self, name: Hashable) -> SubgameBounds:
        """Return a subgame's (B) and (C).

        Raises:
          ValueError: there is no subgame of this name.
        """
        if name not in self.names:
            raise ArgumentError(
                f"expected the name of a subgame, such as {self.names[0]!r}, got {shown(name)}"
            )
        return self._bounds[name]

    @functools.cached_property
    def _bounds(self) -> dict[Hashable, SubgameBounds]:
        return trunk_bounds(self.trunk, self._kind, self._rows, self._inherited)

    @public
    def deeper(self, refined: Refinement, public: PublicInformation) -> Resolving:
        """Return the refined subgame's own subgames, with bounds of the same kind that keep the trunks safe.

        Raises:
          ValueError: `refined` is no refinement of one of these subgames; `public` names no subgame in it, or
            no valid ones.
        """
        self.bounds(refined.problem.name)  # refuses what is no subgame
        base = refined.plan.game
        theirs = refined.problem.bounds
        own = self.trunk.game
        same = str(base.game) == str(own.game) and same_game(base.restrict(-1)[0], own)
        if theirs is None or theirs.kind != self._kind or not same:
            raise ArgumentError(
                f"expected a refinement of one of these subgames, with {self._kind!r} bounds, got "
                f"{shown(refined)}"
            )
        game = decompose(base, public)
        if any(
            ((old.label < 0) & (new.label >= 0)).any()
            for old, new in zip(base.players, game.players, strict=True)
        ):
            raise ArgumentError("expected subgames of the refined subgame, got some that reach before it")
        deeper = self._of_held(game, refined.plan, self._kind, Inherited(base, theirs))
        deeper.refined = refined
        return deeper

    @public
    def complete(self, refinements: _Refinements) -> Refinement:
        """Return the refined subgame whose subgames these are, with their refinements in place.

        Args:
          refinements: at most one for each of these subgames.

        Raises:
          ValueError: these are no subgames of a refined one (`deeper`), or as `stitch`.
        """
        if self.refined is None or self.game is None:
            raise ArgumentError("expected subgames of a refined subgame; see deeper()")
        stitched = stitch(self.game, self.refined.plan, refinements)
        plan = CorrelationPlan(self.refined.plan.pairs, stitched.xi)
        return dataclasses.replace(self.refined, plan=plan, welfare=plan.welfare(0))


@dataclasses.dataclass(frozen=True)
class Safety:
    """A complete refinement beside its blueprint.

    Attributes:
      violation: The worst delta_refined(s) - max(0, delta_blueprint(s)) of a trigger; at most 0 if safe.
      exploitability, blueprint_exploitability: The greatest delta of each.
      welfare, blueprint_welfare: Of all of the game.
    """

    violation: float
    exploitability: float
    blueprint_exploitability: float
    welfare: float
    blueprint_welfare: float


@public
def stitch(game: SequenceGame, blueprint: AnyBlueprint, refinements: _Refinements) -> CorrelationPlan:
    """Return the complete refinement: each refined subgame's entries, the blueprint's elsewhere.

    Args:
      game: held whole, with the subgames that were refined.
      blueprint: the plan that was refined.
      refinements: at most one for each subgame.

    Raises:
      ValueError: a refinement is of another game, of another blueprint, or of a subgame that was given
        already.
    """
    before = CorrelationPlan.of(game, blueprint)
    pairs, xi = before.pairs, before.xi.copy()
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
        apart = float(np.abs(refined.problem.blueprint.xi - before.xi[place]).max())
        if apart > _SAME:
            raise ArgumentError(
                f"expected refinements of the blueprint {shown(blueprint)}, got one of subgame "
                f"{name!r} from another blueprint, whose entries differ by up to {apart:.1e}"
            )
        inside = own.pair_label >= 0
        xi[place[inside]] = refined.plan.xi[inside]
    return CorrelationPlan(pairs, xi)


@public
def safety(refined: CorrelationPlan, blueprint: AnyBlueprint) -> Safety:
    """Measure the safety of a refinement by Definition 9, trigger by trigger.

    Raises:
      ValueError: the blueprint is of another game.
    """
    if not isinstance(blueprint, CorrelationPlan):
        blueprint = CorrelationPlan.of(refined.game, blueprint)
    if not same_game(refined.game, blueprint.game):
        raise ArgumentError("expected two plans of the same game")
    after, before = exploitability(refined), exploitability(blueprint)
    changes = (new - np.maximum(0.0, old) for new, old in zip(after.delta, before.delta, strict=True))
    return Safety(
        violation=float(max(change.max() for change in changes)),
        exploitability=after.worst,
        blueprint_exploitability=before.worst,
        welfare=refined.welfare(),
        blueprint_welfare=blueprint.welfare(),
    )
