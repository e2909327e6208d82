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
from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games.checks import check_choice, check_function, check_game, check_instance, shown

from .blueprints import Blueprint, check_blueprint, plan_for
from .bounds import Inherited, SubgameBounds, TrunkBounds
from .constraints import RefinementProblem
from .correlation_plans import CorrelationPlan
from .public_information import PublicInformation, names_of_subgames
from .refinement import Refinement
from .sequence_game import SequenceGame, check_sequence_game, same_game
from .sequence_pairs import PairCounts, RelevantPairs
from .subgame_rows import BOUNDS, BoundsKind, player_rows
from .subgames import (
    check_apart,
    decompose_for,
    infoset_marks,
    one_subgame,
)
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
        self._bounds = TrunkBounds(trunk, bounds, inherited)
        subgames: dict[Hashable, int] = {}
        marks: dict[Hashable, np.ndarray] = {}
        for name in names:
            plan = part(name)
            self._bounds.add(name, (player_rows(plan, 0, bounds), player_rows(plan, 1, bounds)))
            subgames[name] = int(np.diff(plan.pairs.start)[plan.pairs.label >= 0].sum())
            marks[name] = infoset_marks(plan.game)
            if progress is not None:
                progress(name)
        check_apart("Resolving", marks)
        self.counts = PairCounts(len(trunk.pairs), subgames)

    def __repr__(self) -> str:
        return f"Resolving({self.trunk.game.game}: {len(self.names)} subgames, {self._kind!r} bounds)"

    @classmethod
    def of(
        cls,
        game: pyspiel.Game,
        blueprint: Blueprint,
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
        caller = "Resolving.of()"
        check_game(game, caller, constant_sum=False, chance=False)
        check_blueprint(blueprint, caller)
        check_choice(bounds, BOUNDS, "bounds", caller)
        check_function(progress, "progress", caller, optional=True)
        names = names_of_subgames(game, public, caller)
        if not names:
            raise ValueError("Resolving.of(): expected subgames, but `public` names none")

        def part(name: Hashable) -> CorrelationPlan:
            pairs = RelevantPairs.of(SequenceGame.of(game, public=public, only=name))
            return plan_for(blueprint, pairs, caller)

        trunk_game = SequenceGame.of(game, public=public, trunk=True)
        trunk = plan_for(blueprint, RelevantPairs.of(trunk_game), caller)
        return cls(names, trunk, part, bounds, progress=progress)

    @classmethod
    def of_subgames(
        cls, game: SequenceGame, blueprint: Blueprint, bounds: BoundsKind = "aggregate"
    ) -> Resolving:
        """From a game that is held whole, with its subgames (`subgames.decompose`).

        Raises:
          ValueError: it has none, or is a part of a game.
        """
        check_sequence_game(game, "Resolving.of_subgames()")
        check_blueprint(blueprint, "Resolving.of_subgames()")
        check_choice(bounds, BOUNDS, "bounds", "Resolving.of_subgames()")
        if not game.labels:
            raise ValueError(
                "Resolving.of_subgames(): expected a game with subgames, got none; see decompose()"
            )
        _check_whole(game, "Resolving.of_subgames()")
        part = functools.partial(_restricted_plan, game, blueprint, "Resolving.of_subgames()")
        index = {name: k for k, name in enumerate(game.labels)}
        return cls(list(game.labels), part(-1), lambda name: part(index[name]), bounds, game=game)

    def problem(self, name: Hashable) -> RefinementProblem:
        """What refining a subgame means.

        Raises:
          ValueError: there is no subgame of this name.
        """
        self._check_name(name, "Resolving.problem()")
        return RefinementProblem(
            name=name,
            blueprint=(plan := self._part(name)),
            bounds=self.bounds(name),
            allowed=(_allowed(plan, 0), _allowed(plan, 1)),
        )

    def bounds(self, name: Hashable) -> SubgameBounds:
        """A subgame's (B) and (C).

        Raises:
          ValueError: there is no subgame of this name.
        """
        self._check_name(name, "Resolving.bounds()")
        return self._bounds.bounds(name)

    def _check_name(self, name: Hashable, caller: str) -> None:
        if name not in self.names:
            raise ValueError(
                f"{caller}: expected the name of a subgame, such as {self.names[0]!r}, got {shown(name)}"
            )

    def deeper(self, refined: Refinement, public: PublicInformation) -> Resolving:
        """The refined subgame's own subgames; bounds are of the same kind, and safe for the trunks before.

        Raises:
          ValueError: `refined` is no refinement of one of these subgames; `public` names no subgame in it, or
            no valid ones.
        """
        caller = "Resolving.deeper()"
        check_instance(refined, Refinement, "refined", caller)
        self._check_name(refined.problem.name, caller)
        base = refined.plan.game
        theirs = refined.problem.bounds
        own = self.trunk.game
        same = str(base.game) == str(own.game) and same_game(base.restrict(-1)[0], own)
        if theirs is None or theirs.kind != self._kind or not same:
            raise ValueError(
                f"{caller}: expected a refinement of one of these subgames, with {self._kind!r} bounds, got "
                f"{shown(refined)}"
            )
        game = decompose_for(base, public, caller)
        if any(((self_label < 0) & (game.players[i].label >= 0)).any()
               for i, self_label in enumerate(form.label for form in base.players)):  # fmt: skip
            raise ValueError(
                f"{caller}: expected subgames of the refined subgame, got some that reach before it"
            )
        index = {name: k for k, name in enumerate(game.labels)}
        trunk_game, old = game.restrict(-1)
        infoset = tuple(_old_infosets(base, trunk_game, i, old[i]) for i in (0, 1))
        frozen = tuple(base.players[i].sequence_label[old[i]] < 0 for i in (0, 1))
        parts = {}
        for name, k in index.items():
            small, old_sequences = game.restrict(k)
            parts[name] = tuple(_old_infosets(base, small, i, old_sequences[i]) for i in (0, 1))
        inherited = Inherited(
            bounds=theirs,
            frozen=(frozen[0], frozen[1]),
            infoset=(infoset[0], infoset[1]),
            part_infosets={name: (maps[0], maps[1]) for name, maps in parts.items()},
        )
        part = functools.partial(_restricted_plan, game, refined.plan, caller)
        names = list(game.labels)
        return Resolving(names, part(-1), lambda name: part(index[name]), self._kind, inherited, game=game)


def whole_game_problem(
    game: SequenceGame, blueprint: Blueprint, allowance: float = 0.0, caller: str = "whole_game_problem()"
) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    _check_whole(game, caller)
    whole = one_subgame(game)
    pairs = RelevantPairs.of(whole)
    plan = plan_for(blueprint, pairs, caller)
    allowed = [np.full(form.num_sequences, allowance) for form in whole.players]
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(allowed[0], allowed[1]))


def _check_whole(game: SequenceGame, caller: str) -> None:
    if not game.is_whole:
        raise ValueError(f"{caller}: expected a game that is held whole, got {game}")


def _allowed(plan: CorrelationPlan, player: int) -> np.ndarray:
    """max(0, delta) by sequence; of meaning where all that follows a sequence is in the plan's subgame."""
    return np.maximum(0.0, trigger_gains(plan, player, inside=True))


def _restricted_plan(game: SequenceGame, blueprint: Blueprint, caller: str, label: int) -> CorrelationPlan:
    return plan_for(blueprint, RelevantPairs.of(game.restrict(label)[0]), caller)


def _old_infosets(
    base: SequenceGame, small: SequenceGame, player: int, old: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """The base's information set of each of a restricted game's."""
    form = small.players[player]
    return base.players[player].infoset[old[form.first[:-1]]].astype(np.int64)
