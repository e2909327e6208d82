"""How much randomness protects: the entropy bounds on preparation, and the sets that they are made of.

Let a player's **advantage lines** at v be the histories at which it is to move, or the game is over, and
where stopping is first worth at least v to it. P(v) is the probability that it comes to one while it plays
sigma_pre, H(v) the entropy, in nats, of which one it comes to. With utilities in [0, 1], at most L moves:

  * Lemma 2. Of a distribution of entropy H, the z >= gamma e^(H / (1 - gamma)) likeliest have at least gamma.
  * Theorem 1. Memorising what leads to the z = ceil((1 - eps) e^(H(v) / eps)) likeliest lines takes at most
    L z histories and is worth at least (1 - eps) v P(v): little entropy is cheaply prepared for.
  * Theorem 2. An opponent against whom no preparation is worth more than `value` has
    H(v) >= (v - value - 0.01) (log(1 / (lambda L)) - 5), for v > value + 0.01, if sigma_pre always wins.

Theorem 2 asks for P(v) = 1, and its proof drops Theorem 1's ceiling. In general, with w = v P(v), Theorem
1 gives value >= (1 - eps) w - lambda L ((1 - eps) e^(H / eps) + 1) for all eps in (0, 1). For any c between 0
and w - value - lambda L, put 1 - eps = (value + lambda L) / (w - c); then

    H(v) >= (w - value - lambda L - c) / (w - c) log(c / (lambda L)).                                    (*)

`entropy_lower_bound` is (*) with the best c. It holds for any strategy of the opponent; `value` is what the
best preparation against it is worth; in equilibrium that is the meta-game's, give or take the NashConv.

All of it is about the game that a tree stands for, whose cut leaves are worth u^sigma: strategies have the
same utilities there, so bounds of the tree bound the game too, with the tree's own L.

Source: `precomputation`, Definition 3, Theorems 1 and 2, Lemma 2 and its appendix.

Deviations: utilities of any range; either player; moves by chance count as the opponent's.

Cost: a pass down the tree and one back, a pass for each v, and sorting the lines.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any

import numba
import numpy as np

from precomp_games.algorithms.memory_gains import gains_and_worths
from precomp_games.history_tree import HistoryTree

__all__ = [
    "AdvantageLines",
    "AdvantageSet",
    "EntropyBounds",
    "entropy_lower_bound",
    "lines_needed",
    "theorem_2_bound",
]


@dataclasses.dataclass(frozen=True, eq=False)
class AdvantageLines:
    """The distribution of Definition 3, for one v.

    v: the advantage, in the player's own base-game utility.
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
class AdvantageSet:
    """Theorem 1's construction: what leads to the likeliest advantage lines is memorised.

    Utilities are the player's own, in the base game's units.

    v, epsilon: what it was made for. lines: how many. size: |S|. memorization_set: int32[size].
    utility: of playing it against the opponent, exactly (on the tree).
    size_bound: L z, with z the theorem's number of lines, math.inf where it is beyond floats.
    utility_bound: what the theorem promises.
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

    def __init__(
        self,
        tree: HistoryTree,
        player: int,
        *,
        opponent: Any = None,
        utilities: tuple[float, float] | None = None,
    ) -> None:
        """Makes the passes over the tree.

        Args:
          tree: of a game of perfect information, expanded for `player`.
          player: 0 or 1.
          opponent: a `MetaStrategy` of the other player's; None: it plays its sigma.
          utilities: the least and the most that the player can get; by default the game's.

        Raises:
          ValueError: an argument is not as above.
        """
        caller = "EntropyBounds()"
        gains, self._reach, self._worth = gains_and_worths(tree, player, opponent, caller)
        if tree.infoset_keys is not None:
            raise ValueError(f"{caller}: expected a game of perfect information, got {tree.game_string!r}")
        if utilities is None:
            low, high = tree.game.min_utility(), tree.game.max_utility()
            utilities = (low, high) if player == 0 else (tree.utility_sum - high, tree.utility_sum - low)
        pair = isinstance(utilities, tuple | list) and len(utilities) == 2
        given = pair and all(isinstance(u, numbers.Real) for u in utilities)
        if not given or not -math.inf < utilities[0] < utilities[1] < math.inf:
            raise ValueError(f"{caller}: expected utilities to be (least, most), got {utilities!r}")
        self.tree = tree
        self.player = int(player)
        self.low, self.range = float(utilities[0]), float(utilities[1] - utilities[0])
        self.moves = _longest(tree.parent)  # L, of the tree
        self._gain, self.unprepared = gains.gains()
        # Elsewhere nobody asks what stopping is worth, and evaluated trees do not know it.
        self._own = (tree.player == player) | (tree.num_children == 0)

    def __repr__(self) -> str:
        return f"EntropyBounds({self.tree!r}, player={self.player}, unprepared={self.unprepared:.6g})"

    def lines(self, v: float) -> AdvantageLines:
        """The advantage lines at v (in base-game utility) and their probabilities.

        Raises:
          ValueError: v is no number.
        """
        v = _number(v, "EntropyBounds.lines()", "v")
        found = np.zeros(self.tree.num_histories, np.bool_)
        _first(self.tree.parent, self._own & (self._worth >= v), self._reach, found)
        histories = np.flatnonzero(found)
        histories = histories[np.argsort(-self._reach[histories], kind="stable")]
        return AdvantageLines(
            v=v,
            histories=histories.astype(np.int32),
            reach=self._reach[histories],
            worth=self._worth[histories],
        )

    def thresholds(self, count: int = 20) -> np.ndarray:
        """Values of v to try: what stopping is worth where sigma_pre comes; if many, `count` quantiles.

        With u^sigma, the most that is promised for memorising nothing.

        Raises:
          ValueError: `count` is no positive integer.
        """
        if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 1:
            raise ValueError(
                f"EntropyBounds.thresholds(): expected count to be an integer of at least 1, got {count!r}"
            )
        worths = self._worth[self._own & (self._reach > 0.0)]
        values = np.unique(worths)
        if len(values) > count:
            values = np.quantile(worths, np.linspace(0.0, 1.0, count), method="nearest")
        return np.unique(np.append(values, self.unprepared))

    def construct(self, v: float, epsilon: float) -> AdvantageSet:
        """Theorem 1's strategy for an advantage v and a loss epsilon.

        Raises:
          ValueError: v is below the least utility or epsilon not between 0 and 1.
        """
        caller = "EntropyBounds.construct()"
        v, epsilon = _number(v, caller, "v"), _number(epsilon, caller, "epsilon")
        if not self.low <= v < math.inf:
            raise ValueError(
                f"{caller}: expected a finite v of at least {self.low}, the least utility, got {v!r}"
            )
        lines = self.lines(v)
        z = lines_needed(lines.entropy, 1.0 - epsilon, caller)
        count = int(min(z, len(lines.histories)))
        members = self.leading_to(lines.histories[:count])
        scaled = (v - self.low) / self.range
        return AdvantageSet(
            v=v,
            epsilon=epsilon,
            lines=count,
            size=len(members),
            memorization_set=members,
            utility=self.utility(members),
            size_bound=self.moves * z,
            utility_bound=self.low + self.range * (1.0 - epsilon) * scaled * lines.p_norm,
        )

    def leading_to(self, histories: np.ndarray) -> np.ndarray:
        """int32: the player's information states on the way to histories, these not included."""
        tree = self.tree
        marked = np.zeros(tree.num_histories, np.bool_)
        for h in histories.tolist():
            h = int(tree.parent[h])
            while h >= 0 and not marked[h]:
                marked[h] = True
                h = int(tree.parent[h])
        own = np.flatnonzero(marked & (tree.player == self.player) & (tree.infoset >= 0))
        return np.sort(tree.infoset[own])

    def utility(self, memorization_set: np.ndarray) -> float:
        """What playing a memorization set is worth to the player, penalties aside."""
        return self.unprepared + float(self._gain[memorization_set].sum())

    def best_bound(self, penalty: float, count: int = 20) -> AdvantageSet:
        """The v and epsilon whose promise, less the penalty of its size bound, is greatest on a grid.

        Raises:
          ValueError: the penalty is not positive and finite.
        """
        return self._best(penalty, count, promise=True)

    def best_construction(self, penalty: float, count: int = 20) -> AdvantageSet:
        """The v and epsilon whose strategy is worth most, less the penalty of its size, on a grid.

        Raises:
          ValueError: the penalty is not positive and finite.
        """
        return self._best(penalty, count, promise=False)

    def _best(self, penalty: float, count: int, promise: bool) -> AdvantageSet:
        caller = f"EntropyBounds.best_{'bound' if promise else 'construction'}()"
        penalty = _number(penalty, caller, "penalty")
        if not 0.0 < penalty < math.inf:
            raise ValueError(f"{caller}: expected a positive, finite penalty, got {penalty!r}")
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
        if best is None:  # nothing is worth more than the least utility: memorise nothing
            best = (self.low, self.low, 0.5)
        return self.construct(best[1], best[2])

    def _prefixes(self, lines: AdvantageLines, penalty: float) -> list[tuple[float, int]]:
        """(value, z) of the sets that lead to the z likeliest lines, for z = 1, 2, 4, ... and all."""
        counts = [2**k for k in range(len(lines.histories).bit_length())]
        found = []
        for z in sorted({*counts, len(lines.histories)} - {0}):
            members = self.leading_to(lines.histories[:z])
            found.append((self.utility(members) - penalty * len(members), z))
        return found


def lines_needed(entropy: float, mass: float, caller: str = "lines_needed()") -> float:
    """Lemma 2: of any distribution of this entropy, so many of the likeliest have at least `mass`.

    Returns ceil(mass e^(entropy / (1 - mass))), math.inf where it is beyond floats.

    Raises:
      ValueError: the entropy is negative, or `mass` not between 0 and 1.
    """
    entropy = _number(entropy, caller, "entropy")
    if not 0.0 <= entropy < math.inf:
        raise ValueError(f"{caller}: expected an entropy of at least 0, got {entropy!r}")
    if not 0.0 < mass < 1.0:
        raise ValueError(f"{caller}: expected a share between 0 and 1, both excluded, got {mass!r}")
    exponent = entropy / (1.0 - mass)
    if exponent > 700.0:
        return math.inf
    return float(math.ceil(mass * math.exp(exponent)))


def entropy_lower_bound(value: float, v: float, p_norm: float, penalty: float, moves: int) -> float:
    """(*) above with the best c: the least entropy of the advantage lines, in nats; 0 where nothing follows.

    Args:
      value: the most that any preparation is worth against the opponent, its own penalties included; of a
        game with utilities in [0, 1], as the rest.
      v: the advantage, in [0, 1].
      p_norm: P(v).
      penalty: lambda of the player.
      moves: L.

    Raises:
      ValueError: an argument is not as above.
    """
    caller = "entropy_lower_bound()"
    _check_bound(caller, value, v, penalty, moves)
    if not 0.0 <= _number(p_norm, caller, "p_norm") <= 1.0 + 1e-9:
        raise ValueError(f"{caller}: expected p_norm in [0, 1], got {p_norm!r}")
    paid = penalty * moves
    w = v * p_norm
    room = w - value - paid
    # Below c = lambda L the logarithm is negative.
    if room <= paid or value + paid <= 0.0:
        return 0.0
    c = np.geomspace(paid, room, 4000)[1:-1]
    bound = (room - c) / (w - c) * np.log(c / paid)
    return max(0.0, float(bound.max()))


def theorem_2_bound(value: float, v: float, penalty: float, moves: int) -> float:
    """Theorem 2 as the paper states it, for a sigma_pre that always wins; arguments as above.

    It can be negative, and says nothing then. `value` is the meta-game's, the opponent's costs included.

    Raises:
      ValueError: an argument is not as above.
    """
    _check_bound("theorem_2_bound()", value, v, penalty, moves)
    return (v - value - 0.01) * (math.log(1.0 / (penalty * moves)) - 5.0)


def _check_bound(caller: str, value: float, v: float, penalty: float, moves: int) -> None:
    for name, number in (("value", value), ("v", v), ("penalty", penalty), ("moves", moves)):
        _number(number, caller, name)
    if not 0.0 <= v <= 1.0:
        raise ValueError(f"{caller}: expected v in [0, 1], got {v!r}")
    if not 0.0 < penalty < math.inf or not moves >= 1:
        raise ValueError(f"{caller}: expected penalty > 0 and moves >= 1, got {penalty!r} and {moves!r}")


def _number(value: Any, caller: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        raise ValueError(f"{caller}: expected {name} to be a number, got {value!r}")
    return float(value)


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


def _longest(parent: np.ndarray) -> int:
    """The length of the longest history."""
    moves = 0
    h = len(parent) - 1  # levels follow each other
    while h > 0:
        h = int(parent[h])
        moves += 1
    return moves


@numba.njit(cache=True)
def _first(parent: np.ndarray, holds: np.ndarray, reach: np.ndarray, found: np.ndarray) -> None:
    """Marks where something holds for the first time on the way from the root, if that can be reached."""
    passed = np.zeros(len(parent), np.bool_)
    for h in range(len(parent)):
        before = passed[parent[h]] if h > 0 else False
        passed[h] = before or holds[h]
        found[h] = holds[h] and not before and reach[h] > 0.0
