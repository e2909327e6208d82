"""An upper bound on what correlated equilibria are worth, from multipliers and one pass over the game.

Let w be weights of both players' utilities. For a trigger s+ let a deviation be given, and a multiplier
m(s+) >= 0; for a player's floor f another one, n >= 0. An equilibrium xi has dev(s+; xi) <= v(s+; xi) + e,
where e is what deltas may be, and u_i(xi) >= f_i. So what it is worth is at most

    max over xi in Xi of   sum over i of (w_i + n_i) u_i(xi) - n_i f_i
                           - sum over s+ of m(s+) (dev(s+; xi) - v(s+; xi) - e),

whatever the multipliers and the deviations are; with those of a program's optimum it is the optimum. All of
it is linear in xi: a sum over leaves, of pairs of sequences. A linear function is maximized over Xi along the
scaled extensions, from the last step to the first: a simplex step takes its best entry, a sum step hands on.

Multipliers come as one weight for each trigger and own sequence after it: m(s+) times the probability that
the deviation plays so. Whatever comes is made that: negative weights become 0, at I+ weights are what they
are, and below they are shares of what leads there.

Of a solver this takes the multipliers alone: triggers, leaves and pairs are looked up here once more.

Source: weak duality; scaled extensions as in `scaled_extensions`.

Cost: for each leaf, the triggers whose deviations lead there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from .correlation_plans import RelevantPairs
from .scaled_extensions import ScaledExtensions
from .sequence_game import PlayerForm, find, spread
from .triggers import Notion


class TriggerWeights(NamedTuple):
    """One player's multipliers.

    Attributes:
      trigger: int64[n], a sequence, or an information set for coarse notions.
      sequence: int64[n], the player's own, after the trigger.
      weight: float64[n]; what is not named is 0.
    """

    trigger: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


class Multipliers(NamedTuple):
    """What an upper bound is made of.

    Attributes:
      weights: float64[2], of utilities.
      floors: float64[2], of floors.
      triggers: Both players'.
    """

    weights: npt.NDArray[np.float64]
    floors: npt.NDArray[np.float64]
    triggers: tuple[TriggerWeights, TriggerWeights]


def greatest(
    pairs: RelevantPairs,
    notion: Notion,
    multipliers: Multipliers,
    allowance: float,
    floors: npt.NDArray[np.float64],
) -> float:
    """What no equilibrium's weighted utilities exceed, those that keep the floors; see above.

    Args:
      pairs: the game's, which is held whole.
      notion: what a trigger is.
      multipliers: any. The smaller of two utilities is at most their mean with any weights.
      allowance: the greatest delta of equilibria.
      floors: float64[2], -infinity where there is none.
    """
    game = pairs.game
    worth, bound = np.zeros(len(pairs)), 0.0
    for player in (0, 1):
        payoffs = game.payoffs[player]
        center = 0.5 * payoffs.min() + 0.5 * payoffs.max()
        utility = game.leaf_utility[player] - center * game.leaf_chance
        floor_weight = max(float(multipliers.floors[player]), 0.0) if floors[player] > -np.inf else 0.0
        weight = float(multipliers.weights[player]) + floor_weight
        after = _Deviations.of(game.players[player], notion, multipliers.triggers[player])
        bound += weight * center + allowance * float(after.trigger_weight.sum())
        bound -= floor_weight * floors[player] if floor_weight else 0.0
        own, other = game.leaf_sequence[player], game.leaf_sequence[1 - player]

        def pair(mine: np.ndarray, theirs: np.ndarray, player: int = player) -> np.ndarray:
            return pairs.index(mine, theirs) if player == 0 else pairs.index(theirs, mine)

        # Following, and the objective.
        np.add.at(worth, pair(own, other), utility * (weight + after.followed[own]))
        # Deviating: each leaf, with each trigger whose deviation leads there.
        leaf, place = spread(np.diff(after.start)[own])
        entry = after.start[own[leaf]] + place
        used = after.weight[entry] > 0.0
        leaf, entry = leaf[used], entry[used]
        np.subtract.at(worth, pair(after.told[entry], other[leaf]), utility[leaf] * after.weight[entry])
    steps = ScaledExtensions.of(pairs, whole=True)
    best_of(steps, worth)
    return bound + float(worth[0])


class _Deviations(NamedTuple):
    """One player's deviations, by the sequence that they lead to.

    Attributes:
      start: int64[S + 1], each sequence's first entry.
      told: int64[n], the sequence that was recommended last.
      weight: float64[n].
      trigger_weight: float64, of each trigger, by its number.
      followed: float64[S], the weight of all triggers that a sequence's leaves count for.
    """

    start: np.ndarray
    told: np.ndarray
    weight: np.ndarray
    trigger_weight: np.ndarray
    followed: np.ndarray

    @classmethod
    def of(cls, form: PlayerForm, notion: Notion, given: TriggerWeights) -> _Deviations:
        """All triggers and sequences after them, with the weights that are given."""
        sequences = np.arange(form.num_sequences)
        which, path = form.path(sequences)  # a sequence, and one on the way to it
        top = form.infoset[path].astype(np.int64)
        if notion == "efce":
            # Each other action there is a trigger from which it is gone this way.
            entry, k = spread(form.num_actions[top])
            trigger = form.first[top[entry]] + k
            kept = trigger != path[entry]
            entry, trigger = entry[kept], trigger[kept]
            sequence, top, told, numbers = which[entry], top[entry], trigger, form.num_sequences
        elif notion == "efcce":
            sequence, trigger, told, numbers = which, top, form.parent[top], form.num_infosets
        else:
            sequence, top = sequences, np.zeros(len(sequences), np.int64)
            trigger = told = top
            numbers = form.num_infosets
        order = np.lexsort((trigger, sequence))
        sequence, top, trigger, told = sequence[order], top[order], trigger[order], told[order]
        infoset = form.infoset[sequence]
        code = sequence * numbers + trigger
        root = infoset == top
        parent = np.where(root, -1, find(code, form.parent[infoset].astype(np.int64) * numbers + trigger))
        weight = np.zeros(len(code))
        at = find(code, given.sequence * numbers + given.trigger)
        np.add.at(weight, at[at >= 0], np.maximum(given.weight, 0.0)[at >= 0])
        _, group = np.unique(infoset.astype(np.int64) * numbers + trigger, return_inverse=True)
        total = np.bincount(group, weight)[group]
        share = np.where(
            total > 0.0, weight / np.where(total > 0.0, total, 1.0), 1.0 / form.num_actions[infoset]
        )
        # Sequences are in ascending order, and so parents come first.
        _spread_down(parent, share, weight)
        trigger_weight = np.bincount(trigger[root], weight[root], numbers)
        followed = np.zeros(form.num_sequences)
        if notion == "nfcce":
            followed[:] = trigger_weight[0]
        else:
            np.add.at(followed, which, trigger_weight[path if notion == "efce" else form.infoset[path]])
        start = np.searchsorted(sequence, np.arange(form.num_sequences + 1))
        return cls(start, told, weight, trigger_weight, followed)


@kernel
def _spread_down(parent: np.ndarray, share: np.ndarray, weight: np.ndarray) -> None:
    """Makes weights shares of their parents'; those without one stay as they are."""
    for n in range(len(parent)):
        if parent[n] >= 0:
            weight[n] = weight[parent[n]] * share[n]


@kernel
def best_of(steps: ScaledExtensions, worth: np.ndarray) -> None:
    """The greatest of `worth @ xi` over Xi, left in worth[0]; `worth`, float64[pairs], is used up."""
    for n in range(len(steps.start) - 1, -1, -1):
        at, stride, other = steps.start[n], steps.stride[n], steps.other[n]
        if steps.is_sum[n]:
            for k in range(steps.size[n]):
                worth[at + k * stride] += worth[other]
        else:
            best = worth[at]
            for k in range(1, steps.size[n]):
                best = max(best, worth[at + k * stride])
            worth[other] += best
