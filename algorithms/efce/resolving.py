"""Resolving: from a blueprint and subgames to refined subgames, once or again and again as play goes on.

`Resolving` holds a blueprint and a decomposition, and makes each subgame's refinement problem; subgames are
held one at a time.

    resolving = Resolving.of(game, uniform_blueprint(), public_moves(game, 1))
    refined = refine_lp(resolving.problem(name))
    deeper = resolving.deeper(refined, public_moves(game, 2))

Source: `efce_resolving`, Algorithm 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pyspiel

from precomp_games._support.arguments import ArgumentError, public
from precomp_games._support.checks import shown

from .blueprints import AnyBlueprint, Blueprint, plan_of
from .bounds import Inherited, SubgameBounds, trunk_bounds
from .constraints import RefinementProblem
from .correlation_plans import CorrelationPlan
from .public_information import PublicInformation, subgame_names
from .refinement import Refinement
from .sequence_game import SequenceGame, same_game
from .sequence_pairs import PairCounts, RelevantPairs
from .subgame_rows import BoundsKind, PlayerRows, player_rows
from .subgames import check_apart, decompose, infoset_marks, one_subgame
from .triggers import trigger_gains

__all__ = ["Resolving", "whole_game_problem"]


class Resolving:
    """A blueprint's subgames and what each may become.

    Use `of`, `of_subgames` or `deeper`.

    names: of the subgames. trunk: the blueprint on the trunk. counts: of relevant pairs.
    game: what all subgames are held in, None if they are held one at a time.
    """

    def __init__(
        self,
        names: list[Hashable],
        trunk: CorrelationPlan,
        part: Callable[[Hashable], CorrelationPlan],
        bounds: BoundsKind,
        inherited: Inherited | None = None,
        progress: Callable[[Hashable], None] | None = None,
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
        for name in names:
            plan = part(name)
            self._rows[name] = [player_rows(plan, player, bounds) for player in (0, 1)]
            subgames[name] = int(np.diff(plan.pairs.start)[plan.pairs.label >= 0].sum())
            marks[name] = infoset_marks(plan.game)
            if progress is not None:
                progress(name)
        check_apart(marks)
        self.counts = PairCounts(len(trunk.pairs), subgames)

    def __repr__(self) -> str:
        return f"Resolving({self.trunk.game.game}: {len(self.names)} subgames, {self._kind!r} bounds)"

    @classmethod
    @public
    def of(
        cls,
        game: pyspiel.Game,
        blueprint: AnyBlueprint,
        public: PublicInformation,
        bounds: BoundsKind = "aggregate",
        progress: Callable[[Hashable], None] | None = None,
    ) -> Resolving:
        """From OpenSpiel's states, one subgame at a time: memory is that of the largest subgame.

        Args:
          game: as for `SequenceGame`.
          blueprint: for all of the game.
          public: names the subgames.
          bounds: see `bounds`.
          progress: told each subgame's name when what it is worth to the trunk is known.

        Raises:
          ValueError: the game or the blueprint will not do, or `public` names no valid subgames.
        """
        names = subgame_names(game, public)
        if not names:
            raise ArgumentError("expected subgames, but `public` names none")

        def part(name: Hashable) -> CorrelationPlan:
            pairs = RelevantPairs.of(SequenceGame.of(game, public=public, only=name))
            return plan_of(blueprint, pairs)

        trunk_game = SequenceGame.of(game, public=public, trunk=True)
        trunk = plan_of(blueprint, RelevantPairs.of(trunk_game))
        return cls(names, trunk, part, bounds, progress=progress)

    @classmethod
    @public
    def of_subgames(
        cls, game: SequenceGame, blueprint: AnyBlueprint, bounds: BoundsKind = "aggregate"
    ) -> Resolving:
        """From a game that is held whole, with its subgames (`subgames.decompose`).

        Raises:
          ValueError: it has none, or is a part of a game.
        """
        if not game.labels:
            raise ArgumentError("expected a game with subgames, got none; see decompose()")
        _check_whole(game)
        return cls._of_held(game, blueprint, bounds)

    @classmethod
    def _of_held(
        cls, game: SequenceGame, blueprint: Blueprint, bounds: BoundsKind, inherited: Inherited | None = None
    ) -> Resolving:
        """From a game with its subgames, for what has been checked."""

        def part(label: int) -> CorrelationPlan:
            return plan_of(blueprint, RelevantPairs.of(game.restrict(label)[0]))

        index = {name: k for k, name in enumerate(game.labels)}
        return cls(list(index), part(-1), lambda name: part(index[name]), bounds, inherited, game=game)

    @public
    def problem(self, name: Hashable) -> RefinementProblem:
        """What refining a subgame means.

        Raises:
          ValueError: there is no subgame of this name.
        """
        bounds, plan = self.bounds(name), self._part(name)
        return RefinementProblem(name, plan, bounds, (_allowed(plan, 0), _allowed(plan, 1)))

    @public
    def bounds(self, name: Hashable) -> SubgameBounds:
        """A subgame's (B) and (C).

        Raises:
          ValueError: there is no subgame of this name.
        """
        self._check_name(name)
        return self._bounds[name]

    @functools.cached_property
    def _bounds(self) -> dict[Hashable, SubgameBounds]:
        return trunk_bounds(self.trunk, self._kind, self._rows, self._inherited)

    def _check_name(self, name: Hashable) -> None:
        if name not in self.names:
            raise ArgumentError(
                f"expected the name of a subgame, such as {self.names[0]!r}, got {shown(name)}"
            )

    @public
    def deeper(self, refined: Refinement, public: PublicInformation) -> Resolving:
        """The refined subgame's own subgames; bounds are of the same kind, and safe for the trunks before.

        Raises:
          ValueError: `refined` is no refinement of one of these subgames; `public` names no subgame in it, or
            no valid ones.
        """
        self._check_name(refined.problem.name)
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
        inherited = Inherited(
            bounds=theirs,
            frozen=[form.num_sequences for form in own.players],
            infoset=_base_infosets(base, game, -1),
            part_infosets={name: _base_infosets(base, game, k) for k, name in enumerate(game.labels)},
        )
        return self._of_held(game, refined.plan, self._kind, inherited)


@public
def whole_game_problem(
    game: SequenceGame, blueprint: AnyBlueprint, allowance: float = 0.0
) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    _check_whole(game)
    whole = one_subgame(game)
    pairs = RelevantPairs.of(whole)
    plan = plan_of(blueprint, pairs)
    allowed = [np.full(form.num_sequences, allowance) for form in whole.players]
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(allowed[0], allowed[1]))


def _check_whole(game: SequenceGame) -> None:
    if not game.is_whole:
        raise ArgumentError(f"expected a game that is held whole, got {game}")


def _allowed(plan: CorrelationPlan, player: int) -> np.ndarray:
    """max(0, delta) by sequence; of meaning where all that follows a sequence is in the plan's subgame."""
    return np.maximum(0.0, trigger_gains(plan, player, inside=True))


def _base_infosets(base: SequenceGame, game: SequenceGame, label: int) -> list[np.ndarray]:
    """The base's information sets of the trunk and one subgame of its decomposition, for both players."""
    small, old = game.restrict(label)
    return [base.players[i].infoset[old[i][small.players[i].first[:-1]]] for i in (0, 1)]
