"""Protection by randomness: the entropy bounds on preparation, and the sets that they are made of.

A player's **advantage lines** at v are histories at which the player is to move or the game is over. A
history is one if stopping is worth at least v to the player there, and at no such history before it. P(v)
is the probability that the player comes to an advantage line while it plays sigma_pre. H(v) is the entropy,
in nats, of which line it comes to. The three results are stated for utilities in [0, 1] and at most L
moves:

  * Lemma 2. Of a distribution of entropy H, the z >= gamma e^(H / (1 - gamma)) likeliest have at least gamma.
  * Theorem 1. Memorizing what leads to the z = ceil((1 - eps) e^(H(v) / eps)) likeliest lines takes at most
    L z histories and is worth at least (1 - eps) v P(v): little entropy is cheaply prepared for.
  * Theorem 2. An opponent against whom no preparation is worth more than `value` has
    H(v) >= (v - value - 0.01) (log(1 / (lambda L)) - 5), for v > value + 0.01, if sigma_pre always wins.

Theorem 2 asks for P(v) = 1, and its proof drops Theorem 1's ceiling. In general, with w = v P(v), Theorem
1 gives value >= (1 - eps) w - lambda L ((1 - eps) e^(H / eps) + 1) for all eps in (0, 1). For any c between 0
and w - value - lambda L, put 1 - eps = (value + lambda L) / (w - c); then

    H(v) >= (w - value - lambda L - c) / (w - c) log(c / (lambda L)).                                    (*)

`EntropyBounds.entropy_lower_bound` is (*) with the best c. It holds for any strategy of the opponent, where
`value` is what the best preparation against that strategy is worth. In equilibrium, that is the value of the
meta-game to within the NashConv.

Everything here is about the game that a tree stands for. Its cut leaves are worth u^sigma, so strategies
have the same utilities there as in the base game. Bounds of the tree therefore bound the game too, with the
tree's own L.

Source: `precomputation`, Definition 3, Theorems 1 and 2, Lemma 2 and its appendix.

Deviations: utilities may have any range, either player may be meant, and moves by chance count as the
opponent's.

Cost: one pass down the tree and one back, one pass for each v, and sorting the lines.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from .decisions import Decisions


@dataclasses.dataclass(frozen=True, eq=False)
class AdvantageLines(Result):
    """The distribution of Definition 3, for one v.

    Attributes:
      v: The advantage, in the player's own base-game utility.
      histories: int32[k], the lines, indices of the tree, the likeliest first.
      reach: float64[k], probability of coming there by sigma_pre, positive and falling.
      worth: float64[k], the value of stopping there, at least v.
    """

    v: float
    histories: np.ndarray
    reach: np.ndarray
    worth: np.ndarray

    @property
    def p_norm(self) -> float:
        """P(v), the probability of coming to any of them."""
        return min(1.0, float(self.reach.sum()))

    @property
    def entropy(self) -> float:
        """H(v), in nats; 0 where there are no lines."""
        if not len(self.reach):
            return 0.0
        p = self.reach / self.reach.sum()
        return max(0.0, float(-(p * np.log(p)).sum()))


@dataclasses.dataclass(frozen=True, eq=False)
class AdvantageSet(Result):
    """Theorem 1's construction: what leads to the likeliest advantage lines is memorized.

    Utilities are the player's own, in the base game's units.

    Attributes:
      v: The advantage that it was made for.
      epsilon: The loss that it was made for.
      lines: The number of the likeliest advantage lines that it leads to.
      size: |S|.
      memorization_set: int32[size], indices of information states, increasing.
      utility: The exact utility, on the tree, of playing it against the opponent.
      size_bound: L z, the theorem's bound on the size, with z the theorem's number of lines; math.inf where
        it is too large for a float.
      utility_bound: The utility that the theorem promises.
    """

    v: float
    epsilon: float
    lines: int
    size: int
    memorization_set: np.ndarray = dataclasses.field(repr=False)
    utility: float
    size_bound: float
    utility_bound: float


class EntropyBounds:
    """The bounds of one player on one tree, against its opponent's sigma or strategy."""

    @public
    def __init__(
        self, tree: HistoryTree, player: checks.Player, *, opponent: MetaStrategy | None = None
    ) -> None:
        """Make the passes over the tree.

        Args:
          tree: of a game of perfect information, expanded for `player`, whose sigma_pre is a policy and no
            menu.
          player: 0 or 1.
          opponent: a `MetaStrategy` of the other player's; None: it plays its sigma.
        """
        decisions = Decisions.against(tree, player, opponent)
        if tree.infoset_keys is not None:
            raise ArgumentError(f"expected a game of perfect information, got {tree.game_string!r}")
        if decisions.has_choice:
            raise ArgumentError(
                f"expected sigma_pre of player {player} to be a policy, since the bounds are on "
                f"lines that it plays, got menus to choose among on {tree}"
            )
        low, high = float(tree.game.min_utility()), float(tree.game.max_utility())
        self.tree = tree
        self.player = player
        self.low = low if player == 0 else tree.utility_sum - high
        self.range = high - low or max(1.0, abs(low))  # any range will do where all payoffs are equal
        self.moves = len(tree.levels) - 1  # L, of the tree
        self._reach, self._worth = decisions.history_reach, decisions.worth
        self._gain, self.unprepared = decisions.gains()
        # Elsewhere nobody asks what stopping is worth, and evaluated trees do not know it.
        self._own = (tree.player == player) | (tree.num_children == 0)

    def __repr__(self) -> str:
        return f"EntropyBounds({self.tree!r}, player={self.player}, unprepared={self.unprepared:.6g})"

    @public
    def lines(self, v: float) -> AdvantageLines:
        """Return the advantage lines at v (in base-game utility) and their probabilities.

        Raises:
          ValueError: v is no finite number.
        """
        first = np.zeros(self.tree.num_histories, np.bool_)
        _first(self.tree.parent, self._own & (self._worth >= v), self._reach, first)
        histories = np.flatnonzero(first)
        histories = histories[np.argsort(-self._reach[histories], kind="stable")]
        return AdvantageLines(v, histories.astype(np.int32), self._reach[histories], self._worth[histories])

    @public
    def thresholds(self, count: checks.PositiveInt = 20) -> np.ndarray:
        """Return values of v to try: values of stopping where sigma_pre comes; if many, `count` quantiles.

        With u^sigma, the most that is promised for memorizing nothing.

        Raises:
          ValueError: `count` is no positive integer.
        """
        worths = self._worth[self._own & (self._reach > 0.0)]
        values = np.unique(worths)
        if len(values) > count:
            values = np.quantile(worths, np.linspace(0.0, 1.0, count), method="nearest")
        return np.unique(np.append(values, self.unprepared))

    @public
    def construct(self, v: float, epsilon: Annotated[float, checks.Gt(0.0), checks.Lt(1.0)]) -> AdvantageSet:
        """Construct Theorem 1's strategy for an advantage v and a loss epsilon.

        Raises:
          ValueError: v is below the least utility or epsilon not between 0 and 1.
        """
        v = checks.check_number(v, "v", least=self.low)  # the least utility
        lines = self.lines(v)
        z = lines_needed(lines.entropy, 1.0 - epsilon)
        count = int(min(z, len(lines.histories)))
        members = self._leading_to(lines.histories[:count])
        return AdvantageSet(
            v=v,
            epsilon=epsilon,
            lines=count,
            size=len(members),
            memorization_set=members,
            utility=self._utility(members),
            size_bound=self.moves * z,
            utility_bound=self._promise(lines, epsilon),
        )

    def _promise(self, lines: AdvantageLines, epsilon: float) -> float:
        """Return the utility that Theorem 1 promises."""
        return self.low + self.range * (1.0 - epsilon) * ((lines.v - self.low) / self.range) * lines.p_norm

    def _leading_to(self, histories: np.ndarray) -> np.ndarray:
        """Return int32: the player's information states among the ancestors of histories."""
        tree, marked = self.tree, np.zeros(self.tree.num_histories, np.bool_)
        for h in histories.tolist():
            h = int(tree.parent[h])
            while h >= 0 and not marked[h]:
                marked[h] = True
                h = int(tree.parent[h])
        own = np.flatnonzero(marked & (tree.player == self.player) & (tree.infoset >= 0))
        return np.sort(tree.infoset[own])

    def _utility(self, members: np.ndarray) -> float:
        """Return the player's utility of playing a set, without penalties."""
        return self.unprepared + float(self._gain[members].sum())

    @public
    def best_bound(self, penalty: checks.PositiveFloat, count: checks.PositiveInt = 20) -> AdvantageSet:
        """Return the v and epsilon whose promise, less the penalty of its size bound, is greatest on a grid.

        Raises:
          ValueError: the penalty is not positive and finite, or `count` no positive integer.
        """
        return self._best(penalty, count, promise=True)

    @public
    def best_construction(
        self, penalty: checks.PositiveFloat, count: checks.PositiveInt = 20
    ) -> AdvantageSet:
        """Return the v and epsilon whose strategy is worth most, less the penalty of its size, on a grid.

        Raises:
          ValueError: the penalty is not positive and finite, or `count` no positive integer.
        """
        return self._best(penalty, count, promise=False)

    def _best(self, penalty: float, count: int, promise: bool) -> AdvantageSet:
        """Return the advantage set of the greatest (value, v, epsilon), or the empty one."""
        found = [(-math.inf, self.low, 0.5)]
        for v in self.thresholds(count).tolist():
            if v <= self.low:
                continue
            lines = self.lines(v)
            if promise:
                for epsilon in np.linspace(0.0, 1.0, 201)[1:-1].tolist():
                    price = penalty * self.moves * lines_needed(lines.entropy, 1.0 - epsilon)
                    found.append((self._promise(lines, epsilon) - price, v, epsilon))
                continue
            k = len(lines.histories)
            for z in {2**power for power in range(k.bit_length())} | ({k} - {0}):
                members = self._leading_to(lines.histories[:z])
                value = self._utility(members) - penalty * len(members)
                found.append((value, v, _loss(lines.entropy, z)))
        _, v, epsilon = max(found)
        return self.construct(v, epsilon)

    @public
    def entropy_lower_bound(self, value: float, v: float, penalty: checks.PositiveFloat) -> float:
        """Return (*) above with the best c: the least that H(v) can be, in nats; 0 where nothing follows.

        Args:
          value: the most that any preparation is worth against the opponent, the player's own penalties
            included; in the base game's utility, as `v` and `penalty`.
          v: the advantage.
          penalty: lambda of the player.

        Raises:
          ValueError: an argument is no finite number, or the penalty not positive.
        """
        value, paid = self._share(value), penalty / self.range * self.moves
        w = self._share(v) * self.lines(v).p_norm
        room = w - value - paid
        # Below c = lambda L the logarithm is negative.
        if room <= paid or value + paid <= 0.0:
            return 0.0
        c = np.geomspace(paid, room, 4000)[1:-1]
        bound = (room - c) / (w - c) * np.log(c / paid)
        return max(0.0, float(bound.max()))

    @public
    def theorem_2_bound(self, value: float, v: float, penalty: checks.PositiveFloat) -> float:
        """Return Theorem 2's bound for a sigma_pre that always wins; 0 where it is void.

        That is where v <= value + 0.01, with utilities in [0, 1], and where lambda L >= e^-5.

        Args:
          value: the value of the meta-game, the opponent's costs included.
          v: the advantage.
          penalty: lambda of the player.

        Raises:
          ValueError: an argument is no finite number, or the penalty not positive.
        """
        lacking = self._share(v) - self._share(value) - 0.01
        room = math.log(1.0 / (penalty / self.range * self.moves)) - 5.0
        return lacking * room if lacking > 0.0 and room > 0.0 else 0.0

    def _share(self, utility: float) -> float:
        """Return a utility as one in [0, 1]."""
        return min(max((utility - self.low) / self.range, 0.0), 1.0)


def lines_needed(entropy: float, mass: float) -> float:
    """Return how many of the likeliest have at least `mass`, in (0, 1), at this entropy: Lemma 2.

    Returns ceil(mass e^(entropy / (1 - mass))), math.inf where it is beyond floats.
    """
    exponent = entropy / (1.0 - mass)
    return math.inf if exponent > 700.0 else float(math.ceil(mass * math.exp(exponent)))


def _loss(entropy: float, z: int) -> float:
    """Return the least epsilon, to within rounding, for which Lemma 2 asks for at most z lines."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2.0
        if lines_needed(entropy, 1.0 - middle) <= z:
            high = middle
        else:
            low = middle
    return high


@kernel
def _first(parent: np.ndarray, holds: np.ndarray, reach: np.ndarray, first: np.ndarray) -> None:
    """Mark where something holds and held at no ancestor, if that can be reached."""
    passed = np.zeros(len(parent), np.bool_)
    for h in range(len(parent)):
        before = passed[parent[h]] if h > 0 else False
        passed[h] = before or holds[h]
        first[h] = holds[h] and not before and reach[h] > 0.0
