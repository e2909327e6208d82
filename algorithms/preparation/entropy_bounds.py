"""How much randomness protects: the entropy bounds on preparation, and the sets that they are made of.

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

`entropy_lower_bound` is (*) with the best c. It holds for any strategy of the opponent, where `value` is
what the best preparation against that strategy is worth. In equilibrium, that is the value of the meta-game
to within the NashConv.

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
from typing import Annotated, Any

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, check_memorization_set

from .decisions import Decisions

_ROUNDING = 1e-9  # of the range of utilities


@dataclasses.dataclass(frozen=True, eq=False)
class AdvantageLines(Result):
    """The distribution of Definition 3, for one v.

    Attributes:
      v: The advantage, in the player's own base-game utility.
      histories: int32[k], the lines, indices of the tree, the likeliest first.
      reach: float64[k], probability of coming there by sigma_pre, positive and falling.
      worth: float64[k], what stopping there is worth, at least v.
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
      lines: How many of the likeliest advantage lines it leads to.
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
        self,
        tree: HistoryTree,
        player: checks.Player,
        *,
        opponent: MetaStrategy | None = None,
        utilities: tuple[float, float] | None = None,
    ) -> None:
        """Makes the passes over the tree.

        Args:
          tree: of a game of perfect information, expanded for `player`, whose sigma_pre is a policy and no
            menu.
          player: 0 or 1.
          opponent: a `MetaStrategy` of the other player's; None: it plays its sigma.
          utilities: the least and the most that the player can get; by default the game's.

        Raises:
          ValueError: an argument is not as above.
        """
        decisions = Decisions.against(tree, player, opponent)
        self._reach, self._worth = decisions.history_reach, decisions.worth
        if tree.infoset_keys is not None:
            raise ArgumentError(f"expected a game of perfect information, got {tree.game_string!r}")
        if decisions.has_choice:
            raise ArgumentError(
                f"expected sigma_pre of player {player} to be a policy, since the bounds are on "
                f"lines that it plays, got menus to choose among on {tree}"
            )
        if utilities is None:
            low, high = tree.game.min_utility(), tree.game.max_utility()
            if low == high:  # any range will do where all payoffs are equal
                high = low + max(1.0, abs(low))
            utilities = (low, high) if player == 0 else (tree.utility_sum - high, tree.utility_sum - low)
        low, high = _least_and_most(utilities)
        got = self._worth[(tree.num_children == 0) & (self._reach > 0.0)]
        slack = _ROUNDING * (high - low)
        if not ((got >= low - slack) & (got <= high + slack)).all():
            raise ArgumentError(
                "expected utilities to be (least, most) of what the player can get, which is from "
                f"{got.min():g} to {got.max():g} on this tree, got {utilities!r}"
            )
        self.tree = tree
        self.player = player
        self.low, self.range = low, high - low
        self.moves = len(tree.levels) - 1  # L, of the tree
        self._gain, self.unprepared = decisions.gains()
        # Elsewhere nobody asks what stopping is worth, and evaluated trees do not know it.
        self._own = (tree.player == player) | (tree.num_children == 0)

    def __repr__(self) -> str:
        return f"EntropyBounds({self.tree!r}, player={self.player}, unprepared={self.unprepared:.6g})"

    @public
    def lines(self, v: float) -> AdvantageLines:
        """The advantage lines at v (in base-game utility) and their probabilities.

        Raises:
          ValueError: v is no finite number.
        """
        first = np.zeros(self.tree.num_histories, np.bool_)
        _first(self.tree.parent, self._own & (self._worth >= v), self._reach, first)
        histories = np.flatnonzero(first)
        histories = histories[np.argsort(-self._reach[histories], kind="stable")]
        return AdvantageLines(
            v=v,
            histories=histories.astype(np.int32),
            reach=self._reach[histories],
            worth=self._worth[histories],
        )

    @public
    def thresholds(self, count: checks.PositiveInt = 20) -> np.ndarray:
        """Values of v to try: what stopping is worth where sigma_pre comes; if many, `count` quantiles.

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
        """Theorem 1's strategy for an advantage v and a loss epsilon.

        Raises:
          ValueError: v is below the least utility or epsilon not between 0 and 1.
        """
        v = checks.check_number(v, "v", least=self.low)  # the least utility
        lines = self.lines(v)
        z = lines_needed(lines.entropy, 1.0 - epsilon)
        count = int(min(z, len(lines.histories)))
        members = self.leading_to(lines.histories[:count])
        scaled = (v - self.low) / self.range
        return AdvantageSet(
            v=v,
            epsilon=epsilon,
            lines=count,
            size=len(members),
            memorization_set=members,
            utility=self._utility(members),
            size_bound=self.moves * z,
            utility_bound=self.low + self.range * (1.0 - epsilon) * scaled * lines.p_norm,
        )

    @public
    def leading_to(self, histories: np.ndarray) -> np.ndarray:
        """int32: the player's information states among the ancestors of histories.

        Raises:
          ValueError: `histories` are not indices of the tree's.
        """
        histories, tree = checks.check_indices(histories, self.tree.num_histories, "histories"), self.tree
        marked = np.zeros(tree.num_histories, np.bool_)
        for h in histories.tolist():
            h = int(tree.parent[h])
            while h >= 0 and not marked[h]:
                marked[h] = True
                h = int(tree.parent[h])
        own = np.flatnonzero(marked & (tree.player == self.player) & (tree.infoset >= 0))
        return np.sort(tree.infoset[own])

    @public
    def utility(self, memorization_set: np.ndarray) -> float:
        """What playing a memorization set is worth to the player, penalties aside.

        Raises:
          ValueError: the set holds what is not the player's to memorize, or lacks what comes before it.
        """
        return self._utility(check_memorization_set(memorization_set, self.tree, self.player))

    def _utility(self, members: np.ndarray) -> float:
        """Of a set that is known to be one: `_prefixes` makes hundreds, and checks would be a fifth of it."""
        return self.unprepared + float(self._gain[members].sum())

    @public
    def best_bound(self, penalty: checks.PositiveFloat, count: checks.PositiveInt = 20) -> AdvantageSet:
        """The v and epsilon whose promise, less the penalty of its size bound, is greatest on a grid.

        Raises:
          ValueError: the penalty is not positive and finite, or `count` no positive integer.
        """
        return self._best(penalty, count, promise=True)

    @public
    def best_construction(
        self, penalty: checks.PositiveFloat, count: checks.PositiveInt = 20
    ) -> AdvantageSet:
        """The v and epsilon whose strategy is worth most, less the penalty of its size, on a grid.

        Raises:
          ValueError: the penalty is not positive and finite, or `count` no positive integer.
        """
        return self._best(penalty, count, promise=False)

    def _best(self, penalty: float, count: int, promise: bool) -> AdvantageSet:
        best: tuple[float, float, float] | None = None
        for v in self.thresholds(count).tolist():
            if v <= self.low:
                continue
            lines = self.lines(v)
            if promise:
                scaled = (v - self.low) / self.range * lines.p_norm
                for epsilon in np.linspace(0.0, 1.0, 201)[1:-1].tolist():
                    z = lines_needed(lines.entropy, 1.0 - epsilon)
                    value = self.low + self.range * (1.0 - epsilon) * scaled - penalty * self.moves * z
                    best = max(best or (-math.inf, v, epsilon), (value, v, epsilon))
                continue
            for value, z in self._prefixes(lines, penalty):
                best = max(best or (-math.inf, v, 0.5), (value, v, _loss(lines.entropy, z)))
        if best is None:  # nothing is worth more than the least utility: memorize nothing
            best = (self.low, self.low, 0.5)
        return self.construct(best[1], best[2])

    def _prefixes(self, lines: AdvantageLines, penalty: float) -> list[tuple[float, int]]:
        """(value, z) of the sets that lead to the z likeliest lines, for z = 1, 2, 4, ... and all."""
        counts = [2**k for k in range(len(lines.histories).bit_length())]
        prefixes = []
        for z in sorted({*counts, len(lines.histories)} - {0}):
            members = self.leading_to(lines.histories[:z])
            prefixes.append((self._utility(members) - penalty * len(members), z))
        return prefixes


@public
def lines_needed(
    entropy: checks.NonNegativeFloat, mass: Annotated[float, checks.Gt(0.0), checks.Lt(1.0)]
) -> float:
    """Lemma 2: of any distribution of this entropy, so many of the likeliest have at least `mass`.

    Returns ceil(mass e^(entropy / (1 - mass))), math.inf where it is beyond floats.

    Raises:
      ValueError: the entropy is negative, or `mass` not between 0 and 1.
    """
    exponent = entropy / (1.0 - mass)
    if exponent > 700.0:
        return math.inf
    return float(math.ceil(mass * math.exp(exponent)))


def _share(value: Any, name: str) -> float:
    """A number in [0, 1], where rounding may have taken it a little beyond."""
    number = checks.check_number(value, name)
    if not -_ROUNDING <= number <= 1.0 + _ROUNDING:
        raise ArgumentError(f"expected {name} in [0, 1], got {number!r}")
    return min(max(number, 0.0), 1.0)


Share = Annotated[float, checks.Check(_share)]
"""A number in [0, 1], up to rounding."""


@public
def entropy_lower_bound(
    value: Share, v: Share, p_norm: Share, penalty: checks.PositiveFloat, moves: checks.PositiveInt
) -> float:
    """(*) above with the best c: the least entropy of the advantage lines, in nats; 0 where nothing follows.

    Args:
      value: the most that any preparation is worth against the opponent, the player's own penalties included.
        Like all of these numbers it belongs to a game with utilities in [0, 1], and so lies in [0, 1].
      v: the advantage, in [0, 1].
      p_norm: P(v), the probability of coming to an advantage line.
      penalty: lambda of the player.
      moves: L.

    Raises:
      ValueError: an argument is not as above.
    """
    paid = penalty * moves
    w = v * p_norm
    room = w - value - paid
    # Below c = lambda L the logarithm is negative.
    if room <= paid or value + paid <= 0.0:
        return 0.0
    c = np.geomspace(paid, room, 4000)[1:-1]
    bound = (room - c) / (w - c) * np.log(c / paid)
    return max(0.0, float(bound.max()))


@public
def theorem_2_bound(
    value: Share, v: Share, penalty: checks.PositiveFloat, moves: checks.PositiveInt
) -> float:
    """Theorem 2 as the paper states it, for a sigma_pre that always wins; 0 where it says nothing.

    That is where v <= value + 0.01, and where lambda L >= e^-5.

    Args:
      value: the value of the meta-game, the opponent's costs included.
      v: the advantage, in [0, 1].
      penalty: lambda of the player.
      moves: L.

    Raises:
      ValueError: an argument is not as above.
    """
    lacking, room = v - value - 0.01, math.log(1.0 / (penalty * moves)) - 5.0
    return lacking * room if lacking > 0.0 and room > 0.0 else 0.0


def _least_and_most(utilities: Any) -> tuple[float, float]:
    """The two of `utilities`."""
    if isinstance(utilities, tuple | list) and len(utilities) == 2:
        low, high = (checks.check_number(u, "utilities") for u in utilities)
        if low < high:
            return low, high
    raise ArgumentError(f"expected utilities to be (least, most), got {shown(utilities)}")


def _loss(entropy: float, z: int) -> float:
    """The least epsilon, to within rounding, for which Lemma 2 asks for at most z lines."""
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
    """Marks where something holds and held at no ancestor, if that can be reached."""
    passed = np.zeros(len(parent), np.bool_)
    for h in range(len(parent)):
        before = passed[parent[h]] if h > 0 else False
        passed[h] = before or holds[h]
        first[h] = holds[h] and not before and reach[h] > 0.0
