"""What it costs to mistake the follower: commitments that were made for one type, and meet another.

    types = [FollowerType(1, h), FollowerType(2, h)]
    hedged = commit_against_types(game, 0, types, objective="worst")
    table = type_losses(game, 0, types, [hedged])
    table.utility       # [i, j]: commitment i meets type j; the last row is the hedged one
    table.loss          # what was given away by not knowing that it is type j

The commitment to each type is played by `evaluate_against_lookahead` against all the others. A type whose
ties are broken against the leader does not reward what is only near to the best, so that a commitment that
stays `delta` away from one type's supremum can lose much more against another.

Source: ours; `limited_lookahead`, section 7, names estimates of h that err as what is to be studied.

Cost: a commitment to each type, and a pass over the lookaheads for each pair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import GeneralSumGame, Player, PositiveFloat, each_of, public
from precomp_games._support.checks import ArgumentError
from precomp_games._support.results import Result

from .commitment import Commitment, Method, TimeLimit, Types, commit_against_types
from .evaluation_functions import StrategyPolicy
from .follower import Follower, check_own, lookahead_outcome


@dataclasses.dataclass(frozen=True, eq=False)
class TypeLosses(Result):
    """What commitments earn against types of the follower; utilities are the rational player's.

    Attributes:
      commitments: One made for each type, then the others that were given.
      utility: float64[commitments, types], what each earns against each; on the diagonal, the `value` of the
        commitment that was made for the type.
      loss: float64[commitments, types], how much less that is than what the commitment made for the type
        earns; 0 on the diagonal, and elsewhere at least -`delta` where that commitment is proven optimal.
    """

    commitments: tuple[Commitment, ...]
    utility: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    loss: npt.NDArray[np.float64] = dataclasses.field(repr=False)


@public
def type_losses(
    game: GeneralSumGame,
    rational_player: Player,
    types: Types,
    others: Annotated[Iterable[Commitment], each_of(Commitment)] = (),
    *,
    delta: PositiveFloat = 1e-4,
    method: Method = "auto",
    time_limit: TimeLimit | None = None,
) -> TypeLosses:
    """What each type's commitment earns and loses against each type.

    Args:
      game: two players, sequential, perfect recall, explicit chance; any utilities.
      rational_player: 0 or 1; the other one has limited lookahead.
      types: what the follower may be, one at least.
      others: commitments of the same player in the same game, such as one to all types, further rows.
      delta: as in `commit_against_lookahead`, as the next ones.
      method: see there.
      time_limit: seconds for each commitment.

    Raises:
      ValueError: as `commit_against_types`, or another game's or player's commitments.
      LinearProgramError: HiGHS fails.
    """
    types, others = tuple(types), tuple(others)
    if not types:
        raise ArgumentError("expected types to be at least one, got none")
    for other in others:
        check_own(other, game, "others")
        if other.rational_player != rational_player:
            raise ArgumentError(
                f"expected others to be commitments of player {rational_player}, got one of player "
                f"{other.rational_player}"
            )
    made = [
        commit_against_types(game, rational_player, [kind], delta=delta, method=method, time_limit=time_limit)
        for kind in types
    ]
    followers = [Follower.of(game, rational_player, kind) for kind in types]
    rows = []
    for commitment in (*made, *others):
        strategy = StrategyPolicy(game, commitment.strategy)
        rows.append([lookahead_outcome(follower, strategy).utility for follower in followers])
    utility = np.array(rows)
    return TypeLosses((*made, *others), utility, np.diagonal(utility) - utility)
