"""Resolving: from a blueprint and subgames to refined subgames, once or again and again as play goes on.

`Resolving` holds a blueprint and a decomposition, and makes each subgame's refinement problem; subgames are
held one at a time.

    resolving = Resolving.of(game, uniform(), public_moves(game, 1))
    refined = refine_lp(resolving.problem(name))
    deeper = resolving.deeper(refined, public_moves(game, 2))

Source: `efce_resolving`, Algorithm 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable

import numpy as np
import pyspiel

from .blueprints import Blueprint, plan_of
from .bounds import (
    BOUNDS,
    BoundsKind,
    Inherited,
    SubgameBounds,
    TrunkBounds,
    player_rows,
)
from .correlation_plans import CorrelationPlan
from .refinement import Refinement, RefinementProblem
from .sequence_game import PublicInformation, SequenceGame, check_game
from .sequence_pairs import PairCounts, RelevantPairs
from .subgames import (
    check_apart,
    decompose,
    infoset_marks,
    one_subgame,
    subgame_names,
)
from .triggers import Deviations, deviation_values, following_values

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
        if bounds not in BOUNDS:
            raise ValueError(f"Resolving: expected bounds to be one of {', '.join(BOUNDS)}, got {bounds!r}")
        self.names = names
        self.trunk = trunk
        self._part = part
        self._kind: BoundsKind = bounds
        self._bounds = TrunkBounds(trunk, bounds, inherited)
        subgames: dict[Hashable, int] = {}
        marks: dict[Hashable, np.ndarray] = {}
        for name in names:
            plan = part(name)
            rows = [player_rows(plan, Deviations.of(plan.pairs, i), i, bounds) for i in (0, 1)]
            self._bounds.add(name, (rows[0], rows[1]))
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
        bounds: BoundsKind = "separate",
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
        check_game(game, "Resolving.of()")
        names = subgame_names(game, public)
        if not names:
            raise ValueError("Resolving.of(): expected subgames, but `public` names none")

        def part(name: Hashable) -> CorrelationPlan:
            pairs = RelevantPairs.of(SequenceGame.of(game, public=public, only=name))
            return plan_of(blueprint, pairs)

        trunk = plan_of(blueprint, RelevantPairs.of(SequenceGame.of(game, public=public, trunk=True)))
        return cls(names, trunk, part, bounds, progress=progress)

    @classmethod
    def of_subgames(
        cls, game: SequenceGame, blueprint: Blueprint, bounds: BoundsKind = "separate"
    ) -> Resolving:
        """From a game that is held whole, with its subgames (`subgames.decompose`).

        Raises:
          ValueError: it has none, or is a part of a game.
        """
        if not game.labels:
            raise ValueError(
                "Resolving.of_subgames(): expected a game with subgames, got none; see decompose()"
            )
        _check_whole(game, "Resolving.of_subgames()")
        part = functools.partial(_restricted_plan, game, blueprint)
        index = {name: k for k, name in enumerate(game.labels)}
        return cls(list(game.labels), part(-1), lambda name: part(index[name]), bounds, game=game)

    def problem(self, name: Hashable) -> RefinementProblem:
        """What refining a subgame means.

        Raises:
          ValueError: there is no subgame of this name.
        """
        if name not in self.names:
            raise ValueError(
                f"problem(): expected the name of a subgame, such as {self.names[0]!r}, got {name!r}"
            )
        return RefinementProblem(
            name=name,
            blueprint=(plan := self._part(name)),
            bounds=self.bounds(name),
            allowed=_allowed(plan),
        )

    def bounds(self, name: Hashable) -> SubgameBounds:
        """A subgame's (B) and (C)."""
        return self._bounds.bounds(name)

    def deeper(self, refined: Refinement, public: PublicInformation) -> Resolving:
        """The refined subgame's own subgames; bounds are of the same kind, and safe for the trunks before.

        Raises:
          ValueError: `public` names no subgame in it, or no valid ones.
        """
        base = refined.plan.game
        game = decompose(base, public)
        if any(((self_label < 0) & (game.players[i].label >= 0)).any()
               for i, self_label in enumerate(form.label for form in base.players)):  # fmt: skip
            raise ValueError(
                "deeper(): expected subgames of the refined subgame, got some that reach before it"
            )
        index = {name: k for k, name in enumerate(game.labels)}
        trunk_game, old = game.restricted(-1)
        infoset = tuple(_old_infosets(base, trunk_game, i, old[i]) for i in (0, 1))
        frozen = tuple(base.players[i].sequence_label[old[i]] < 0 for i in (0, 1))
        parts = {}
        for name, k in index.items():
            small, old_sequences = game.restricted(k)
            parts[name] = tuple(_old_infosets(base, small, i, old_sequences[i]) for i in (0, 1))
        if refined.problem.bounds is None:
            inherited = None
        else:
            inherited = Inherited(
                bounds=refined.problem.bounds,
                frozen=(frozen[0], frozen[1]),
                infoset=(infoset[0], infoset[1]),
                part_infosets={name: (maps[0], maps[1]) for name, maps in parts.items()},
            )
        part = functools.partial(_restricted_plan, game, refined.plan)
        names = list(game.labels)
        return Resolving(names, part(-1), lambda name: part(index[name]), self._kind, inherited, game=game)


def whole_game_problem(game: SequenceGame, blueprint: Blueprint, allowance: float = 0.0) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    _check_whole(game, "whole_game_problem()")
    whole = one_subgame(game)
    pairs = RelevantPairs.of(whole)
    plan = plan_of(blueprint, pairs)
    allowed = [np.full(form.num_sequences, allowance) for form in whole.players]
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(allowed[0], allowed[1]))


def _check_whole(game: SequenceGame, caller: str) -> None:
    if not game.is_whole:
        raise ValueError(f"{caller}: expected a game that is held whole, got {game}")


def _allowed(plan: CorrelationPlan) -> tuple[np.ndarray, np.ndarray]:
    """max(0, delta) by sequence; of meaning where all that follows a sequence is in the plan's subgame."""
    found = []
    for player in (0, 1):
        v, _ = following_values(plan, player)
        deviations = Deviations.of(plan.pairs, player, inside=True)
        _, sets = deviation_values(deviations, plan.xi)
        allowed = np.zeros(plan.game.players[player].num_sequences)
        at, trigger = deviations.triggers()
        allowed[trigger] = np.maximum(0.0, sets[at] - v[trigger])
        found.append(allowed)
    return found[0], found[1]


def _restricted_plan(game: SequenceGame, blueprint: Blueprint, label: int) -> CorrelationPlan:
    return plan_of(blueprint, RelevantPairs.of(game.restricted(label)[0]))


def _old_infosets(base: SequenceGame, small: SequenceGame, player: int, old: np.ndarray) -> np.ndarray:
    """The base's information set of each of a restricted game's."""
    form = small.players[player]
    return base.players[player].infoset[old[form.first[:-1]]].astype(np.int64)
