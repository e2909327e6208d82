"""Strategies of the meta-game: as data, how a player mixes memorization sets, and as policies that play.

A strategy gives, for each information state of a player, the probability of memorizing each entry of its
menu there if it has memorized everything before. By Kuhn's theorem this is as good as a mixture of
memorization sets. Entries are numbered over the whole tree (`HistoryTree.first_entry`); where every menu has
one entry, an entry and its information state have the same number.

Source: `precomputation`, section 4.1.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.files import packed, unpacked
from precomp_games._support.kernels import kernel, read_only
from precomp_games._support.results import Result, Shown
from precomp_games.policies.rows import PolicyLike, as_batch_policies, check_policies
from precomp_games.tree.facts import AnyForest, TreeArrays, edge_product
from precomp_games.tree.history_tree import HistoryTree

_SUM_TOLERANCE = 1e-9


class PrecomputationPolicy(Shown, openspiel_policy.Policy):
    """A precomputation strategy (Definition 1): the book where it reaches, sigma everywhere else.

    The book player's memorized states are looked up first; a state that is not among them, and every
    state of the other player, is answered by that player's sigma.

    It can be pickled where `lookup` can. A sigma that cannot, such as a function without a name, is not known
    in the copy, which plays the book all the same.
    """

    def __init__(
        self, game: pyspiel.Game, player: int, lookup: Callable[[Any], dict[int, float] | None], sigma: Any
    ) -> None:
        """Initialize the policy.

        Args:
          game: the base game.
          player: whose book it is, 0 or 1.
          lookup: a state's memorized row, or None off the book.
          sigma: the players' policies during play, one for both or a pair; None where it is not known.
        """
        super().__init__(game, [0, 1])
        self.player, self._lookup = player, lookup
        self._sigma = as_batch_policies(sigma, "sigma")
        self._game_string = str(game)

    def __getstate__(self) -> dict[str, Any]:
        carried = {"game": packed(self.game), "_sigma": tuple(map(packed, self._sigma))}
        return self.__dict__ | carried

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.game = unpacked(state["game"])
        self._sigma = tuple(map(unpacked, state["_sigma"]))

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} of all legal actions at a decision state.

        Args:
          state: of the base game.
          player_id: the mover there; only games in which players move at once have a choice.

        Raises:
          ValueError: the state is off the book and the player's sigma is not
            known.
        """
        player = checks.check_turn(state, player_id, self.game or self._game_string)
        if player == self.player:
            row = self._lookup(state)
            if row is not None:
                return self._whole(state, row)
        sigma = self._sigma[player]
        if sigma is None:
            way = f"give policy(sigma=...) what player {player} computes during play; files do not have it"
            got = f"{state.history_str()!r}: {way}"
            raise ArgumentError(f"expected a state on the book of player {self.player}, got {got}")
        return self._whole(state, sigma([state])[0])

    @staticmethod
    def _whole(state: Any, row: Mapping[int, float]) -> dict[int, float]:
        """Return a row with its zeros, which OpenSpiel's C++ best response asks for."""
        return dict.fromkeys(state.legal_actions(), 0.0) | dict(row)


@dataclasses.dataclass(frozen=True)
class Alternative:
    """An entry of a menu beside the memorized one.

    Attributes:
      row: {action: probability}.
      loss: How much less everything would be worth with it, and with what is best after it, at the price of
        memory that counted; utility in all games, not only in those that come here.
    """

    row: Mapping[int, float]
    loss: float


@dataclasses.dataclass(frozen=True)
class MemorizedState(Result):
    """An information state that is worth learning, with its reasons; utilities are the book player's.

    Attributes:
      infoset: Its index in the tree.
      entry: The number in the tree of what is memorized there; `HistoryTree.memorized_row` gives its moves.
      history: Its first history in the tree.
      actions: The base game's actions from the start to that history.
      reach: The probability of coming there, by the book and against the opponent.
      gain: The utility gained by knowing this state and nothing after it, compared with stopping here. Gains
        of the whole set add up to utility - unprepared.
      net_gain: The value lost by forgetting this state and all that follows it: the gains of all of these,
        less their penalties.
      probability: The probability with which it is memorized; 1 in a memorization set.
      alternatives: The other entries of the menu.
    """

    infoset: int
    entry: int
    history: int
    actions: tuple[int, ...]
    reach: float
    gain: float
    net_gain: float
    probability: float = 1.0
    alternatives: tuple[Alternative, ...] = ()


class Played(NamedTuple):
    """A strategy as a behavioral policy of the base game, on the tree.

    Attributes:
      memorizing: float64[n], the probability that the player is memorizing still when it comes to h, given
        what it has played so far; 0 where it never comes.
      probability: float64[n], of the edge that leads to h: sigma_pre and sigma mixed at the player's own
        turns, sigma elsewhere.
    """

    memorizing: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]


@public
@dataclasses.dataclass(frozen=True, eq=False)
class MetaStrategy(Result):
    """A player's strategy in the meta-game of a tree.

    Attributes:
      player: 0 or 1. memorize: float64[E], the probability of memorizing each entry where all before it is
        memorized; those of an information state add up to 1 at most. 0 at the other player's information
        states.

    Raises:
      ValueError: these are not probabilities for the tree's information states, or there is no such player.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: checks.Player
    memorize: npt.NDArray[np.float64]

    def __reduce__(self) -> tuple[Any, ...]:
        return MetaStrategy, (self.tree, self.player, self.memorize)

    def __post_init__(self) -> None:
        object.__setattr__(self, "memorize", check_memorize(self.memorize, self.tree, self.player))

    @classmethod
    @public
    def of_set(
        cls, tree: HistoryTree, player: checks.Player, memorization_set: Iterable[int]
    ) -> MetaStrategy:
        """Return the strategy that memorizes a set of entries for sure; see `check_memorization_set`.

        Raises:
          ValueError: it is no memorization set of the player.
        """
        members = check_memorization_set(memorization_set, tree, player)
        memorize = np.zeros(tree.num_entries)
        memorize[members] = 1.0
        return cls(tree, player, memorize)

    @classmethod
    @public
    def of_plan(cls, tree: HistoryTree, player: checks.Player, plan: npt.ArrayLike) -> MetaStrategy:
        """Return the strategy of a realization plan, the inverse of `plan`; 0 where the plan does not come.

        In the tree of a base game alone, all actions are alike there.

        Args:
          tree: see the class.
          player: 0 or 1.
          plan: float[E], in [0, 1], as `realization_plan()` gives it. Where it is greater than before, it is
            what was before.

        Raises:
          ValueError: these are not probabilities for the tree's entries.
        """
        own = tree.entry_player == player
        x = checks.check_numbers(plan, tree.num_entries, "plan", least=0.0, most=1.0, which=own)
        before = tree.previous[tree.entry_infoset]
        above = np.where(before >= 0, x[before], 1.0)
        memorize = np.divide(x, above, out=np.zeros(tree.num_entries), where=above > 0.0)
        return cls(tree, player, adjusted(tree, memorize, player))

    def realization_plan(self) -> npt.NDArray[np.float64]:
        """Return the realization plan: float64[E], the probability of each entry; 0 at the other's."""
        return realization_plan(self.tree, self.memorize)

    def columns(self) -> dict[str, Any]:
        """Return a row for each entry: see `strategy_columns`."""
        own = self.tree.entry_player == self.player
        return {name: column[own] for name, column in strategy_columns(self.tree, self).items()}

    def reach(self) -> npt.NDArray[np.float64]:
        """Return float64[n]: how far the player's own choices and policies let each history be reached."""
        tree, played = self.tree, self.played.probability
        return edge_product(tree, np.where(tree.player[tree.parent] == self.player, played, 1.0))

    @property
    def expected_size(self) -> float:
        """Return E|S|, the expected number of memorized information states."""
        return float(self.realization_plan().sum())

    @property
    def largest_size(self) -> int:
        """Return the most information states of a set in the mixture, and so the greatest cost of a draw."""
        start, end = self._parts()
        used = end > start
        points = np.concatenate([end[used], start[used]])  # where one ends and one begins, ends come first
        steps = np.repeat([-1, 1], np.count_nonzero(used))
        return int(np.cumsum(steps[np.argsort(points, kind="stable")]).max(initial=0))

    def mixture(self) -> list[tuple[float, npt.NDArray[np.int32]]]:
        """Return an equal mixture of memorization sets, at most one more than there are entries.

        Each entry gets a part of [0, 1] as long as its realization weight, inside that of the entry before it
        and beside those of the others of its menu; a point of [0, 1] picks a set. Where menus have one entry,
        all parts begin at 0, and the sets are nested.
        """
        start, end = self._parts()
        bounds = np.unique(np.concatenate([[0.0, 1.0], start[end > start], end[end > start]]))[::-1]
        sets = [
            (float(upper - lower), np.flatnonzero((start <= lower) & (end >= upper)).astype(np.int32))
            for upper, lower in itertools.pairwise(bounds)
        ]
        return [(probability, members) for probability, members in sets if probability > 0.0]

    @public
    def draw(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Return int32: a memorization set drawn from the mixture, entries in increasing order."""
        start, end = self._parts()
        point = rng.random()
        return np.flatnonzero((start <= point) & (point < end)).astype(np.int32)

    def _parts(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return where each entry's part of [0, 1] begins and ends, see `mixture`."""
        tree, plan = self.tree, self.realization_plan()
        start, end = np.zeros(len(plan)), np.zeros(len(plan))
        _lay_out(tree.first_entry, tree.previous, plan, start, end)
        return start, end

    @public
    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """Return a policy of the base game that plays like this strategy, and sigma for the other player.

        At a history of the tree it mixes sigma_pre and sigma by how likely the player is to be memorizing
        still, given what it has played so far.

        Args:
          sigma: the players' policies during play, one or a pair; by default what the tree was
            expanded with (a tree that was loaded from a file has none).

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        return strategy_policy(self, sigma, self.tree.stop_value == "backup")

    @functools.cached_property
    def totals(self) -> npt.NDArray[np.float64]:
        """float64[m]: the probability of memorizing I, by any entry, where all before it is memorized."""
        return _totals(self.tree, self.memorize)

    @functools.cached_property
    def played(self) -> Played:
        """Behavioral strategy in the base game, on the histories of the tree."""
        tree = self.tree
        if not tree.may_stop:
            own = np.append(False, tree.player[tree.parent[1:]] == self.player)
            chosen = np.append(self.memorize, 0.0)[tree.edge_entry] * tree.sigma_pre  # -1 where nobody moves
            return Played(np.ones(tree.num_histories), np.where(own, chosen, tree.sigma))
        memorizing, probability = np.ones(tree.num_histories), np.array(tree.sigma)
        totals = read_only(self.totals)
        _mix(tree.arrays, tree.edge_entry, self.player, self.memorize, totals, memorizing, probability)
        return Played(memorizing, probability)


def strategy_columns(tree: HistoryTree, *strategies: MetaStrategy) -> dict[str, Any]:
    """Return columns with a row for each entry of a tree: player, infoset, action, probability, plan.

    The strategies, one a player, are 0 at each other's entries. An entry is an action of the game alone, or
    what is memorized.
    """
    names = np.array([tree.key(k) for k in range(tree.num_infosets)], object)
    return {
        "player": tree.entry_player,
        "infoset": names[tree.entry_infoset],
        "action": tree.entry_action,
        "probability": np.sum([each.memorize for each in strategies], axis=0),
        "plan": np.sum([each.realization_plan() for each in strategies], axis=0),
    }


def strategy_policy(strategy: MetaStrategy, sigma: Any, knows_sigma: bool = False) -> PrecomputationPolicy:
    """Return `MetaStrategy.policy`, for a public function that errors name.

    `knows_sigma`: where no sigma is at hand, the tree's own is played as far as the tree goes.
    """
    tree = strategy.tree
    play = tree.policies if sigma is None else check_policies(sigma, "sigma")
    # A tree from a file has no policies, but it knows what sigma plays where one may stop.
    stops = knows_sigma and play[strategy.player] is None
    return PrecomputationPolicy(tree.game, strategy.player, functools.partial(_row, strategy, stops), play)


def _row(strategy: MetaStrategy, stops: bool, state: Any) -> dict[int, float] | None:
    """Return the policy at a state; None where nothing is memorized, so that sigma plays.

    `stops`: return the tree's own sigma where nothing is memorized, as far as the tree goes.
    """
    tree, infoset = strategy.tree, strategy.tree.infoset_of(state)
    if infoset < 0:
        return None
    # One history speaks for all: the player's own choices at its ancestors are the same.
    history = int(tree.infoset_history[infoset])
    if strategy.played.memorizing[history] * strategy.totals[infoset] == 0.0 and not stops:
        return None
    children = tree.children(history)
    part = slice(children.start, children.stop)
    row = strategy.played.probability[part]
    return {int(a): float(p) for a, p in zip(tree.action[part], row, strict=True) if p > 0.0}


def check_meta_tree(tree: Any) -> HistoryTree:
    """Return the tree if it is a meta-game's with strategies: no evaluated stops, and not a game alone.

    Raises:
      ValueError: it is none.
    """
    if (played := check_constant_sum(check_played_tree(tree))).may_stop:
        return played
    raise ArgumentError(f"expected the tree of a meta-game, got that of a game alone: {tree}")


def check_played_tree(tree: Any) -> HistoryTree:
    """Return a tree on which strategies are known, of a meta-game or of a game alone.

    Raises:
      ValueError: it is none.
    """
    if isinstance(tree, HistoryTree) and tree.stop_value != "evaluate":
        return tree
    wanted = 'a HistoryTree with stop_value="backup", where both players\' sigma are known'
    raise ArgumentError(f"expected {wanted}, got {shown(tree)}")


def check_constant_sum(tree: HistoryTree) -> HistoryTree:
    """Return a tree on which what one player gets is what the other one lacks.

    Raises:
      ValueError: it is none.
    """
    if tree.of_constant_sum:
        return tree
    got = f"that of {tree.game_string}; {checks.TAKES_ANY_SUM}"
    raise ArgumentError(f"expected the tree of a zero-sum or constant-sum game, got {got}")


def check_memorization_set(value: Any, tree: HistoryTree, player: int) -> npt.NDArray[np.int64]:
    """Return a memorization set of one player: numbers of entries, increasing.

    With an entry it holds the player's entry before it, and no other entry of the same information state.

    Raises:
      ValueError: it is none.
    """
    members = np.unique(checks.check_indices(value, tree.num_entries, "memorization_set"))
    infosets = tree.entry_infoset[members]
    before = tree.previous[infosets]
    closed = np.isin(before[before >= 0], members).all()
    if (tree.infoset_player[infosets] != player).any() or not closed or (np.diff(infosets) == 0).any():
        wanted = f"information states of player {player}, each with all of its own earlier ones"
        got = shown(members.tolist())
        raise ArgumentError(f"expected {wanted}, and one entry of each, got {got}")
    return members


def check_memorize(value: Any, tree: AnyForest, player: int) -> npt.NDArray[np.float64]:
    """Return `MetaStrategy.memorize` of one player, 0 at the other's, as an array that cannot be written to.

    Raises:
      ValueError: these are not probabilities for the tree's entries.
    """
    own = tree.entry_player == player
    memorize = checks.check_numbers(value, tree.num_entries, "memorize", least=0.0, most=1.0, which=own)
    if not tree.may_stop:
        short = _totals(tree, memorize)[tree.infoset_player == player] < 1.0 - _SUM_TOLERANCE
        if short.any():
            where = f"at each information state of player {player} in the game alone"
            raise ArgumentError(f"expected memorize to add up to 1 {where}, got {shown(value)}")
    if tree.has_menus and (_totals(tree, memorize) > 1.0 + _SUM_TOLERANCE).any():
        where = "at each information state"
        raise ArgumentError(f"expected memorize to add up to at most 1 {where}, got {shown(value)}")
    return memorize


def realization_plan(tree: AnyForest, memorize: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return float64[E]: the probability of memorizing each entry; `memorize` is `MetaStrategy.memorize`."""
    plan = np.array(memorize)
    _multiply_down(tree.previous[tree.entry_infoset], plan)
    return plan


def adjusted(tree: AnyForest, memorize: npt.NDArray[np.float64], player: int) -> npt.NDArray[np.float64]:
    """Return a player's probabilities with sums corrected for rounding and for plans that do not come.

    At most 1 at each information state. Where nobody can stop, 1: all alike where they are 0.
    """
    if tree.may_stop:
        return at_most_one(tree, memorize)
    counts, whose = np.diff(tree.first_entry)[tree.entry_infoset], tree.entry_player == player
    totals = _totals(tree, memorize)[tree.entry_infoset]
    return np.where(whose, np.divide(memorize, totals, out=1.0 / counts, where=totals > 0.0), 0.0)


def at_most_one(tree: AnyForest, memorize: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide `memorize` by its sum at each information state where that is above 1."""
    return memorize / np.maximum(_totals(tree, memorize), 1.0)[tree.entry_infoset]


def _totals(tree: AnyForest, memorize: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return float64[m]: sums over the entries of each information state."""
    if not tree.has_menus:
        return memorize
    return np.asarray(np.add.reduceat(memorize, tree.first_entry[:-1]))


def check_strategy(value: Any, tree: HistoryTree, player: int, name: str) -> MetaStrategy:
    """Return a strategy of one player on one tree; penalties do not matter.

    Raises:
      ValueError: it is none, or another player's, or on another tree.
    """
    if not isinstance(value, MetaStrategy) or value.player != player:
        raise ArgumentError(f"expected {name} to be a MetaStrategy of player {player}, got {shown(value)}")
    check_played_tree(tree)
    if not value.tree.same_as(tree):
        raise ArgumentError(f"expected strategies on {tree}, got one on another tree, {value.tree}")
    return value


def check_strategies(value: Any, tree: HistoryTree) -> tuple[MetaStrategy, MetaStrategy]:
    """Return the strategies of players 0 and 1, in this order, on one tree.

    Raises:
      ValueError: they are not.
    """
    check_played_tree(tree)
    if not isinstance(value, list | tuple) or [getattr(each, "player", None) for each in value] != [0, 1]:
        raise ArgumentError(f"expected strategies of players 0 and 1, got {shown(value)}")
    first, second = (check_strategy(value[i], tree, i, f"strategies[{i}]") for i in (0, 1))
    return first, second


@kernel
def _multiply_down(previous: np.ndarray, plan: np.ndarray) -> None:
    for k in range(len(plan)):
        if previous[k] >= 0:
            plan[k] *= plan[previous[k]]


@kernel
def _lay_out(
    first_entry: np.ndarray, previous: np.ndarray, plan: np.ndarray, start: np.ndarray, end: np.ndarray
) -> None:
    """Write `MetaStrategy._parts`."""
    for k in range(len(previous)):
        p = previous[k]
        at, most = (start[p], end[p]) if p >= 0 else (0.0, 1.0)
        for e in range(first_entry[k], first_entry[k + 1]):
            start[e] = at
            at = min(at + plan[e], most)  # by rounding, the sum may be above
            end[e] = at


@kernel
def _mix(
    tree: TreeArrays,
    edge_entry: np.ndarray,
    player: int,
    memorize: np.ndarray,
    totals: np.ndarray,
    memorizing: np.ndarray,
    played: np.ndarray,
) -> None:
    """Mix sigma_pre into `played`, which holds sigma, by how likely the player is memorizing still."""
    for h in range(1, len(tree.parent)):
        p = tree.parent[h]
        memorizing[h] = memorizing[p]
        if tree.mover[p] == player:
            by_heart, goes_on = 0.0, 0.0
            if tree.infoset[p] >= 0:
                by_heart = memorizing[p] * memorize[edge_entry[h]] * tree.sigma_pre[h]
                goes_on = memorizing[p] * totals[tree.infoset[p]]
            played[h] = by_heart + (1.0 - goes_on) * played[h]
            memorizing[h] = by_heart / played[h] if played[h] > 0.0 else 0.0
