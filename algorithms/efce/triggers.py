"""Gains of a player who leaves its recommendations, trigger by trigger.

A *trigger* is a sequence s+ = I+ a+: at I+ the player is recommended a+, takes another action, and from there
on gets no recommendations. With xi the plan,

    v(s)        = sum over tau of u(s, tau) xi[s, tau] + sum over I right after s of v(I)
    v(I)        = sum over a of v(I a)
    beta(s; s+) = sum over tau of u(s, tau) xi[s+, tau] + sum over I right after s of beta(I; s+)
    beta(I; s+) = max over a of beta(I a; s+)
    delta(s+)   = max over a' other than a+ of beta(I+ a'; s+) - v(s+)

where u(s, tau) is the sum over the leaves whose last sequences are s and tau of utility times the probability
of chance's moves. The plan is an EFCE if no delta is positive. Values are weighted with the probability of
the recommendation.

In the *coarse* notions a player decides before it hears the recommendation. A trigger is then an information
set I+ to which its recommendations led the player: there it asks for none, plays as it likes, and gets no
more. It has heard all up to parent(I+), the sequence before I+, so that leaves after it are weighted with
xi[parent(I+), tau], no action is left out, and

    delta(I+) = max over a of beta(I+ a; I+) - v(I+).

Triggers of the extensive-form notion ("efcce") are all information sets; of the normal-form notion ("nfcce")
only number 0, which stands for before the game. An EFCE is an EFCCE, and that is an NFCCE.

The player who deviates after s+ is called the *trigger agent* of s+: a player of its
own, whose information sets are I+ and those below it. All agents of one player stand in flat arrays. A
*group* is a pair (I+, I) of the player's information sets, where I is I+ or below it: I is an information set
of the agents of all triggers at I+. For each of them, numbered k+ as its action a+ at I+, the group has a
*set* and *lanes*. The set is the agent's information set I, whose value is beta(I; s+); a lane (k+, a) is the
agent's sequence Ia, whose value is beta(I a; s+). Below I+ the recommended action itself leads nowhere; its
lanes are there to keep the arrays regular, and are skipped. Coarse notions have one trigger at I+, and all
lanes are used.

Source: `efce_resolving`, Definition 4 and equations 1 to 4. Deviation: the recommended action does not count
as a deviation, as in the paper's figures. Coarse notions: Farina, Bianchi and Sandholm, "Coarse Correlation
in Extensive-Form Games", 2020; Moulin and Vial 1978.

Cost: for each leaf, the actions at each player's information sets on the way, once.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import public
from precomp_games._support.kernels import kernel, read_only

from .correlation_plans import CorrelationPlan, RelevantPairs
from .sequence_game import find, spread

Notion = Literal["efce", "efcce", "nfcce"]
"""When a player decides whether to follow: told its move, before it is told, or before the game."""


class Deviations(NamedTuple):
    """Groups of one player, sorted by (I+, I); a tuple, so that numba takes it.

    Attributes:
      top, infoset: int64[G], I+ and I.
      trigger: int64[G], the number of the first trigger at I+: its first sequence, or I+ for coarse notions.
      through: int32[G], the action at I+ that leads to I, -1 where I is I+; 1 for coarse notions, whose one
        trigger, 0, leaves out none.
      parent: int64[G], the group (I+, J) with J the player's information set before I, -1 where I is I+.
      parent_action: int32[G], the action at J.
      num_triggers, num_actions: int32[G], |A(I+)|, or 1 for coarse notions, and |A(I)|.
      lane, set_: int64[G + 1], the first lane and set of each group. Lane (k+, a) is lane + k+ * |A(I)| +
        a.
      term: int64[G + 1], the first term of each group; its terms are the leaves of I, sequence by sequence,
        in the order of `leaf`, from `leaf_start[I]` on.
      pair: int32 or int64[T], for each term, the pair (first sequence of I+, the opponent's), or
        (parent(I+), the opponent's) for coarse notions.
      leaf: int64[L], leaves in the order of the player's sequences.
      leaf_start: int64[S + 1], by sequence.
      first: int64[m + 1], as `PlayerForm.first`.
      utility: float64[L], the player's, in the order of `leaf`.
      stride: int32[L], in the order of `leaf`: from a pair (s, tau) to the one with the player's next
        action.
    """

    top: npt.NDArray[np.int64]
    infoset: npt.NDArray[np.int64]
    trigger: npt.NDArray[np.int64]
    through: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int64]
    parent_action: npt.NDArray[np.int32]
    num_triggers: npt.NDArray[np.int32]
    num_actions: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int64]
    set_: npt.NDArray[np.int64]
    term: npt.NDArray[np.int64]
    pair: np.ndarray
    leaf: npt.NDArray[np.int64]
    leaf_start: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    utility: npt.NDArray[np.float64]
    stride: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls, pairs: RelevantPairs, player: int, inside: bool = False, notion: Notion = "efce"
    ) -> Deviations:
        """Return a player's deviations; with `inside`, only groups whose I lies in a subgame (of EFCEs)."""
        game = pairs.game
        form, other = game.players[player], game.players[1 - player]
        m = form.num_infosets
        counts = form.num_actions
        at = np.arange(1, m)
        if inside:
            at = at[form.label[at] >= 0]
        if notion == "nfcce":
            top, infoset, through = np.zeros(m, np.int64), np.arange(m), np.zeros(m, np.int64)
        else:
            which, path = form.path(form.parent[at])
            top, infoset = np.append(at, form.infoset[path]), np.append(at, at[which])
            through = np.append(np.full(len(at), -1), path - form.first[form.infoset[path]])
        if coarse := notion != "efce":
            through[:] = 1
        code = top * m + infoset
        order = np.argsort(code)
        top, infoset, through, code = top[order], infoset[order], through[order], code[order]
        before = form.parent[infoset].astype(np.int64)
        previous = form.infoset[before].astype(np.int64)
        parent = np.where(top != infoset, find(code, top * m + previous), -1)

        leaf_sequence = game.leaf_sequence[player]
        leaf = np.argsort(leaf_sequence, kind="stable")
        leaf_start = np.searchsorted(leaf_sequence[leaf], np.arange(form.num_sequences + 1))
        tau = game.leaf_sequence[1 - player][leaf]
        size = leaf_start[form.first[infoset + 1]] - leaf_start[form.first[infoset]]
        term = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        source = np.repeat(leaf_start[form.first[infoset]] - term[:-1], size) + np.arange(term[-1])
        own = np.repeat(np.maximum(form.parent[top], 0) if coarse else form.first[top], size)
        theirs = tau[source]
        pair = pairs.index(own, theirs) if player == 0 else pairs.index(theirs, own)
        if (pair < 0).any():
            raise RuntimeError("a leaf's pair is not relevant")
        stride = other.num_actions[other.infoset[tau]] if player == 0 else np.ones(len(leaf), np.int64)
        width, triggers = counts[infoset], np.ones_like(top) if coarse else counts[top]
        index = np.int32 if len(pairs) < 2**31 else np.int64
        return cls(
            top=top,
            infoset=infoset,
            trigger=top if coarse else form.first[top],
            through=through.astype(np.int32),
            parent=parent,
            parent_action=np.where(parent >= 0, before - form.first[previous], -1).astype(np.int32),
            num_triggers=triggers.astype(np.int32),
            num_actions=width.astype(np.int32),
            lane=np.concatenate([[0], np.cumsum(width * triggers)]),
            set_=np.concatenate([[0], np.cumsum(triggers)]),
            term=term,
            pair=pair.astype(index),
            leaf=leaf,
            leaf_start=leaf_start,
            first=form.first,
            utility=np.ascontiguousarray(game.leaf_utility[player][leaf]),
            stride=stride.astype(np.int32),
        )

    def triggers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (set, number) of each trigger whose I+ is one of the groups' I: int64 each.

        A trigger's number is its sequence, or its information set for coarse notions.
        """
        roots = np.flatnonzero(self.top == self.infoset)
        which, k = spread(self.num_triggers[roots])
        return self.set_[roots[which]] + k, self.trigger[roots[which]] + k

    def lanes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (group, k+, action) of each lane: int64 each."""
        group, inner = spread(np.diff(self.lane))
        return group, *np.divmod(inner, self.num_actions[group])

    @property
    def num_lanes(self) -> int:
        """Number of lanes, unused ones included."""
        return int(self.lane[-1])

    @property
    def num_sets(self) -> int:
        """Number of sets, unused ones included."""
        return int(self.set_[-1])

    def group(self, top: np.ndarray, infoset: np.ndarray) -> np.ndarray:
        """Return the groups of (I+, I), -1 where there is none."""
        m = np.int64(len(self.first) - 1)
        return find(self.top * m + self.infoset, np.asarray(top, np.int64) * m + infoset)

    def lane_of(
        self, group: npt.NDArray[np.int64], trigger: npt.NDArray[np.int64], action: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return lanes of groups, by the recommended action at I+ and the action taken at I."""
        return self.lane[group] + trigger * self.num_actions[group] + action


@dataclasses.dataclass(frozen=True, eq=False)
class Exploitability:
    """delta of every trigger of both players.

    Attributes:
      delta: beta* - v, float64, for both players; by sequence, and for coarse notions by information set. It
        is -inf where there is nothing to deviate to, and where there is no trigger.
    """

    delta: tuple[np.ndarray, np.ndarray]

    @property
    def worst(self) -> float:
        """The greatest delta; at most 0 for an equilibrium."""
        return float(max(d.max() for d in self.delta))


@public
def exploitability(plan: CorrelationPlan, notion: Notion = "efce") -> Exploitability:
    """Measure a plan that is held whole.

    Args:
      plan: the plan.
      notion: when a player decides whether to follow: after it has heard its move ("efce", extensive-form
        correlated equilibria), at an information set before it hears it ("efcce", coarse ones), or before the
        game ("nfcce", normal-form coarse ones).

    Raises:
      ValueError: it is no plan, or another notion.
    """
    return Exploitability((trigger_gains(plan, 0, notion=notion), trigger_gains(plan, 1, notion=notion)))


def trigger_gains(
    plan: CorrelationPlan, player: int, inside: bool = False, notion: Notion = "efce"
) -> npt.NDArray[np.float64]:
    """Return each trigger's delta: float64, by its number; with `inside`, only of triggers in a subgame.

    It is -inf for what is no trigger.

    A constant that is added to all of a player's utilities is worth as much after deviating as before. It is
    taken off, so that what is left does not drown in its rounding.
    """
    game, payoffs = plan.game, plan.game.payoffs[player]
    center = 0.5 * payoffs.min() + 0.5 * payoffs.max()
    by_sequence, by_infoset = following_values(plan, player, center)
    v = by_sequence if notion == "efce" else by_infoset
    deviations = Deviations.of(plan.pairs, player, inside, notion)
    zero = center * game.leaf_chance[deviations.leaf]
    _, sets = deviation_values(deviations._replace(utility=deviations.utility - zero), plan.xi)
    delta = np.full(len(v), -np.inf)
    at, trigger = deviations.triggers()
    delta[trigger] = sets[at] - v[trigger]
    return delta


def following_values(
    plan: CorrelationPlan, player: int, center: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return (v(s) by sequence, v(I) by information set), with `center` taken off all utilities."""
    form = plan.game.players[player]
    game = plan.game
    worth = plan.xi[plan.pairs.leaves()] * (game.leaf_utility[player] - center * game.leaf_chance)
    v = np.bincount(game.leaf_sequence[player], worth, form.num_sequences).astype(np.float64)
    of_infoset = np.zeros(form.num_infosets)
    sum_back(form.parent, form.first, v, of_infoset)
    return v, of_infoset


@kernel
def sum_back(parent: np.ndarray, first: np.ndarray, v: np.ndarray, of_infoset: np.ndarray) -> None:
    """Add up from the last information set to the first; `v` has the leaves to begin with."""
    for k in range(len(parent) - 1, -1, -1):
        total = 0.0
        for s in range(first[k], first[k + 1]):
            total += v[s]
        of_infoset[k] = total
        if k > 0:
            v[parent[k]] += total


def deviation_values(deviations: Deviations, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (beta of each lane, beta of each set); -inf for sets without lanes, anything in unused lanes."""
    lanes, sets = leaf_lanes(deviations, xi), np.full(deviations.num_sets, -np.inf)
    respond(deviations, lanes, sets)
    return lanes, sets


def leaf_lanes(deviations: Deviations, xi: np.ndarray) -> npt.NDArray[np.float64]:
    """Return the values of the leaves right after each lane: float64[lanes]."""
    lanes = np.empty(deviations.num_lanes)
    leaf_values(deviations, read_only(xi), lanes)
    return lanes


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def leaf_values(deviations: Deviations, xi: np.ndarray, lanes: np.ndarray) -> None:
    """Write the values of `leaf_lanes` into `lanes`."""
    infosets, triggers, actions = deviations.infoset, deviations.num_triggers, deviations.num_actions
    first, leaf_start, term, pair = deviations.first, deviations.leaf_start, deviations.term, deviations.pair
    utility, stride, lane = deviations.utility, deviations.stride, deviations.lane
    for x in range(len(lanes)):
        lanes[x] = 0.0
    for g in range(len(infosets)):
        s, n, m = first[infosets[g]], actions[g], triggers[g]
        shift = term[g] - leaf_start[s]
        for a in range(n):
            for leaf in range(leaf_start[s + a], leaf_start[s + a + 1]):
                u = utility[leaf]
                if u == 0.0:
                    continue
                at, step = np.uint64(pair[leaf + shift]), np.uint64(stride[leaf])
                to = np.uint64(lane[g] + a)
                # Lanes that lead nowhere are written too: their values are never read.
                for _ in range(m):
                    lanes[to] += u * xi[at]
                    at += step
                    to += np.uint64(n)


@kernel
def respond(deviations: Deviations, lanes: np.ndarray, sets: np.ndarray) -> None:
    """Compute best responses from the last group to the first; `lanes` has the leaves to begin with."""
    through, triggers, actions = deviations.through, deviations.num_triggers, deviations.num_actions
    parent, parent_action = deviations.parent, deviations.parent_action
    lane, set_ = deviations.lane, deviations.set_
    for g in range(len(through) - 1, -1, -1):
        n, skip, up = actions[g], through[g], parent[g]
        for k in range(triggers[g]):
            if k == skip:
                continue
            best, base = -np.inf, lane[g] + k * n
            for a in range(n):
                if skip >= 0 or a != k:
                    best = max(best, lanes[base + a])
            sets[set_[g] + k] = best
            if up >= 0:
                lanes[lane[up] + k * actions[up] + parent_action[g]] += best
