"""A preparing player's decisions, opened one at a time, and the bounds that certified searches work with.

`HistoryTree` is expanded down to lambda before anything is decided. Here a node is a history at which the
player is to move while everything before it is memorized; opening it asks sigma_pre there, and the opponent
behind it, and finds the nodes that follow. What stopping is worth lies between bounds; with reach pi,

    upper(h) = max( pi u_max(h),  known(e) + sum of upper below e - lambda )        opened,
    upper(h) = max( pi u_max(h),  pi u_max - lambda )                               not opened yet,
    lower(h) = max( pi u_min(h),  known(e) + sum of lower below e - lambda )        opened,
    lower(h) = pi u_min(h)                                                          not opened,

over the entries e of h's menu, known(e) being what lines that end behind e are worth. So the best preparation
is worth between lower and upper of the root, and the set that `lower` memorizes is worth at least lower of
the root. Without menus, sigma_pre is the only entry.

Source: `precomputation`, Algorithm 1 and Theorem 3; the bounds are those of `expansion.pruning`.

Cost: a node keeps its base-game state; a policy is asked once for each distinct position of a batch.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import public, utility_sum
from precomp_games._support.game_facts import TERMINAL, GameFacts
from precomp_games._support.results import Axes, Result, axes_of
from precomp_games.policies import rows
from precomp_games.policies.mixtures import drawn_once, refuse_mixture
from precomp_games.policies.rows import Menu, PolicyLike
from precomp_games.tree.base_game import given_game
from precomp_games.tree.meta_strategy import Alternative, PrecomputationPolicy

PerfectGame = Annotated[Any, checks.Check(lambda game, name: given_game(game, perfect=True))]
"""A game inside of the model, of perfect information."""


@dataclasses.dataclass(frozen=True, eq=False)
class CertifiedPrecomputation(Result):
    """A memorization set, and an interval around what it and the best one are worth.

    All from the viewpoint of `player`, in the base game's utility, penalties included.

    Attributes:
      player: 0 or 1.
      penalty: lambda; 0 where there was a budget. Each position costs it once where positions have a price.
      lower, upper: The interval: lower <= value of this set <= value of the best set <= upper.
      confidence: The probability with which the interval holds, at all times at once; 1.0 where values are
        exact.
      size: |S|.
      histories: The memorized ones, as actions from the start, an earlier one before a later one.
      reach: float64[size], probability of coming there by the book.
      share: float64[size], how much of a price each pays: 1, or a part where several are of one position that
        has a price, in proportion to their reach.
      gain: float64[size], what knowing each adds to knowing those before it. Where games were sampled this is
        an estimate; where values are exact it is a lower bound.
      rows: {action: probability} at each, of sigma_pre or the entry of its menu that was chosen.
      alternatives: The other entries of the menu at each; empty without menus.
      menu: The entries that were opened, and nothing elsewhere. `HistoryTree.from_game` makes a tree of them,
        for frontiers and budgets: as `sigma_pre`, with truncate="none" and without a `position_key`, since
        what was opened depends on the history.
      stops: (actions, reach, value of stopping) where lines leave the set, where evaluations give it.
      reached: Whether the interval is as narrow as was asked for.
      work: The numbers of "rollouts" or "evaluations", of "opened" nodes, and of "nodes" in all.
      game: The base game.
      sigma: Each player's policy during play; None where it was not given.
      trace: (rollouts or evaluations, lower, upper) after each batch.
    """

    player: int
    penalty: float
    lower: float
    upper: float
    confidence: float
    size: int
    histories: tuple[tuple[int, ...], ...] = dataclasses.field(repr=False)
    reach: np.ndarray = dataclasses.field(repr=False)
    share: np.ndarray = dataclasses.field(repr=False)
    gain: np.ndarray = dataclasses.field(repr=False)
    rows: tuple[dict[int, float], ...] = dataclasses.field(repr=False)
    alternatives: tuple[tuple[Alternative, ...], ...] = dataclasses.field(repr=False)
    menu: Menu = dataclasses.field(repr=False)
    reached: bool
    work: dict[str, int]
    game: pyspiel.Game = dataclasses.field(repr=False)
    sigma: tuple[PolicyLike | None, PolicyLike | None] = dataclasses.field(repr=False)
    trace: tuple[tuple[int, float, float], ...] = dataclasses.field(default=(), repr=False)
    stops: tuple[tuple[tuple[int, ...], float, float], ...] = dataclasses.field(default=(), repr=False)

    @property
    def gap(self) -> float:
        """Difference between `upper` and `lower`."""
        return self.upper - self.lower

    @property
    def paid(self) -> int:
        """Number of prices that are paid: of histories, or of positions."""
        return round(float(self.share.sum()))

    @property
    def net_gain(self) -> np.ndarray:
        """float64[size]: the value lost by forgetting each and all that follow it, penalties included."""
        net = dict(zip(self.histories, (self.gain - self.penalty * self.share).tolist(), strict=True))
        for history in sorted(net, key=len, reverse=True):
            before = (history[:k] for k in range(len(history) - 1, -1, -1))
            previous = next((earlier for earlier in before if earlier in net), None)
            if previous is not None:
                net[previous] += net[history]
        return np.array(list(net.values()))

    def columns(self) -> dict[str, Any]:
        """Return a row for each memorized history: its actions, what is played, reach, gain and net gain."""
        histories = [" ".join(map(str, actions)) for actions in self.histories]
        names = {"history": histories, "play": [list(row) for row in self.rows]}
        return names | {"reach": self.reach, "gain": self.gain, "net_gain": self.net_gain}

    @public
    def plot(self, axes: Axes = None) -> Any:
        """Draw the interval as it narrowed with the work, and return matplotlib's axes."""
        axes = axes_of(axes)
        work, lower, upper = zip(*(self.trace or [(1, self.lower, self.upper)]), strict=True)
        axes.step(work, upper, "C3--", where="post", label="any book is worth at most this")
        axes.step(work, lower, "C0-", where="post", label="the book found is worth at least this")
        axes.fill_between(work, lower, upper, step="post", color="0.9")
        unit = "games played on" if "rollouts" in self.work else "evaluations"
        axes.set(xscale="log", xlabel=unit, ylabel="utility, price of learning taken off")
        axes.legend()
        return axes

    def policy(self) -> PrecomputationPolicy:
        """Return a policy of the base game: the book where it reaches, sigma off it and for the opponent."""
        lookup = functools.partial(_row, dict(zip(self.histories, self.rows, strict=True)))
        return PrecomputationPolicy(self.game, self.player, lookup, self.sigma)


def _opened(menus: dict[tuple[int, ...], list[dict[int, float]]], state: Any) -> list[dict[int, float]]:
    """Return the entries that were opened at a base-game state."""
    return menus.get(tuple(state.history()), [])


def _row(book: dict[tuple[int, ...], dict[int, float]], state: Any) -> dict[int, float] | None:
    """Return {action: probability} at a base-game state, where it is memorized."""
    return book.get(tuple(state.history()))


@dataclasses.dataclass(frozen=True)
class PreparationProblem:
    """A preparation problem whose parts have been checked.

    Attributes:
      game: Of perfect information.
      player: The player who prepares.
      sigma_pre: Its candidate moves to memorize: a policy, or a menu.
      sigma: Both players' policies during play; the player's own may be None where it is never asked.
      penalty: lambda.
      low, high: Bounds of the player's utility.
      position_key: See `HistoryTree.from_game`.
      min_probability: See there.
    """

    game: pyspiel.Game
    player: int
    sigma_pre: PolicyLike
    sigma: tuple[PolicyLike | None, PolicyLike | None]
    penalty: float
    low: float
    high: float
    total: float
    position_key: Callable[[Any], Hashable] | None
    min_probability: float

    @classmethod
    def checked(
        cls, game: pyspiel.Game, sigma_pre: Any, sigma: Any, penalty: float, player: int, *more: Any
    ) -> PreparationProblem:
        """Return the problem, if the policies are some; `more` is position_key and min_probability.

        Raises:
          ValueError: what was expected, and what came.
        """
        total = utility_sum(game)
        low, high = game.min_utility(), game.max_utility()
        if player == 1:
            low, high = total - high, total - low
        pre = checks.check_pair(sigma_pre, "sigma_pre")[player]
        play = rows.check_policies(sigma, "sigma")
        rows.as_batch_menu(pre, "sigma_pre")
        refuse_mixture(pre, f"sigma_pre[{player}]")
        refuse_mixture(play[player], f"sigma[{player}]")
        rows.as_batch_policy(play[1 - player], f"sigma[{1 - player}]")
        position_key, *rest = more
        key = rows.shared_key(position_key, play)
        return cls(game, player, pre, play, penalty, low, high, total, key, *rest)

    @property
    def range(self) -> float:
        """R = u_max - u_min."""
        return self.high - self.low

    def position(self, state: Any) -> Hashable:
        """Return a key that is equal for states of one level that the caller promises to be the same."""
        if self.position_key is None:
            return tuple(state.history())
        return (state.move_number(), state.current_player(), self.position_key(state))

    def played_position(self, state: Any) -> Hashable:
        """Return a key of states that are also played on alike: a mixture remembers how they came about."""
        if drawn_once(self.sigma[1 - self.player]):
            return tuple(state.history())
        return self.position(state)

    @functools.cached_property
    def facts(self) -> GameFacts:
        """Return the declarations of the game."""
        return GameFacts(self.game)

    def own_utility(self, state: Any) -> float:
        """Return the player's utility at a terminal state."""
        return self.facts.utilities(state)[self.player]


@dataclasses.dataclass(eq=False)
class Node:
    """A turn of the player's with everything before it memorized; the root stands before its first one.

    Attributes:
      reach: Pi(h).
      before: The entry that leads here; None at the root.
      state: The base game's.
      can_memorize: reach times R is at least lambda.
      opened: Whether its menu is known, and what follows.
      entries: Its menu, once opened; the root has one entry, which costs nothing.
      stop: The value of stopping by an evaluation, reach included; NaN before there is one.
      values: Its bounds, of searches by evaluations.
      place: The number of its position, of searches by evaluations.
    """

    reach: float
    before: Branch | None
    state: Any
    can_memorize: bool
    index: int
    opened: bool = False
    entries: list[Branch] = dataclasses.field(default_factory=list)
    stop: float = math.nan
    values: list[float] = dataclasses.field(default_factory=list)
    place: int = -1

    def actions(self) -> tuple[int, ...]:
        """Return the base game's actions from the start."""
        return tuple(self.state.history())


@dataclasses.dataclass(eq=False)
class Branch:
    """An entry of a node's menu, and what follows it.

    Attributes:
      node: The node whose entry it is.
      place: Which of its entries.
      row: {action: probability}.
      known: The value of lines that end behind it, reach included.
      children: The nodes that follow.
      rest: (state, reach) of those that cannot be memorized, where lumped.
      sums: The values of the nodes that follow, added up.
    """

    node: Node
    place: int
    row: dict[int, float]
    known: float = 0.0
    children: list[Node] = dataclasses.field(default_factory=list)
    rest: list[tuple[Any, float]] = dataclasses.field(default_factory=list)
    sums: list[float] = dataclasses.field(default_factory=lambda: [0.0] * 3)


class PartialTree:
    """The nodes known so far; parents come before their children in `nodes`."""

    def __init__(self, problem: PreparationProblem, lump: bool) -> None:
        """Open the root.

        Args:
          problem: see there.
          lump: keep turns that cannot be memorized any more as their parent's `rest`, not as nodes.
        """
        self.problem = problem
        self._lump = lump
        self._pre = rows.as_batch_menu(problem.sigma_pre, "sigma_pre")
        rival = problem.sigma[1 - problem.player]
        self._rival = rows.as_batch_policy(rival, f"sigma[{1 - problem.player}]")
        self.root = Node(1.0, None, problem.game.new_initial_state(), False, 0)
        self.nodes = [self.root]
        self.opened = 0
        self.price = problem.penalty  # of an entry but the root's
        self.menus: dict[int, list[dict[int, float]]] = {}  # of positions, in place of sigma_pre's rows
        self.trace: list[tuple[int, float, float]] = []
        self.root.opened = True
        self.root.entries.append(Branch(self.root, 0, {}))
        self._follow([(self.root.entries[0], self.root.state, 1.0)])

    def open(self, nodes: Sequence[Node]) -> None:
        """Open nodes that can be memorized and are not open yet, and find what follows, in one batch."""
        asked = [node for node in nodes if node.place not in self.menus]
        menus = iter(self.ask_menus(self._pre, asked))
        added = []
        for node in nodes:
            node.opened = True
            self.opened += 1
            menu = self.menus[node.place] if node.place in self.menus else next(menus)
            node.entries += [Branch(node, place, row) for place, row in enumerate(menu)]
            added += node.entries
        self.follow(added)

    def ask_menus(self, menu: Any, nodes: Sequence[Node]) -> list[list[dict[int, float]]]:
        """Return the entries of a menu, of `as_batch_menu`, at each node."""
        return self._ask(menu, [node.state for node in nodes], "sigma_pre")

    def follow(self, added: Sequence[Branch]) -> None:
        """Find what follows entries that are new."""
        self._follow(
            [
                (branch, branch.node.state.child(action), branch.node.reach * p)
                for branch in added
                for action, p in branch.row.items()
            ]
        )

    def price_of(self, branch: Branch) -> float:
        """Return the price of memorizing an entry."""
        return 0.0 if branch.node is self.root else self.price

    def _follow(self, arrivals: list[tuple[Branch, Any, float]]) -> None:
        """Play the opponent and chance on from states behind entries until the player is to move again."""
        problem = self.problem
        while arrivals:
            ahead: list[tuple[Branch, Any, float]] = []
            for branch, state, reach in arrivals:
                mover = problem.facts.mover(state)
                if mover == TERMINAL:
                    branch.known += reach * problem.own_utility(state)
                elif mover != problem.player:
                    ahead.append((branch, state, reach))
                else:
                    can = reach * problem.range >= problem.penalty * (1.0 - 1e-9)
                    if can or not self._lump:
                        self.nodes.append(Node(reach, branch, state, can, len(self.nodes)))
                        branch.children.append(self.nodes[-1])
                    else:
                        branch.rest.append((state, reach))
            ahead.sort(key=lambda arrival: not arrival[1].is_chance_node())  # nodes are numbered chance first
            menus = self._ask(self._rival, [state for _, state, _ in ahead], "sigma")
            arrivals = [
                (branch, state.child(action), reach * p)
                for (branch, state, reach), (row,) in zip(ahead, menus, strict=True)
                for action, p in row.items()
            ]

    def _ask(self, policy: Any, states: list[Any], name: str) -> list[list[dict[int, float]]]:
        """Return the entries at each state where chance moves, or a player with this policy or menu."""
        problem = self.problem
        key = problem.played_position if policy is self._rival else problem.position
        distinct = rows.DistinctStates(key)  # what is the same is asked once
        which = distinct.add(states)
        answers = rows.movers_rows(
            distinct.states, (policy, policy), name=name, min_probability=problem.min_probability
        )
        menus = rows.entry_rows(answers)
        return [menus[k] for k in which]

    def walk(self, chosen: Callable[[Node], Branch | None]) -> Iterator[tuple[Node, Branch | None]]:
        """Yield the nodes that are reached, with the entry memorized there; at the root, what follows it."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            branch = node.entries[0] if node.before is None else chosen(node)
            yield node, branch
            if branch is not None:
                stack += branch.children

    def result(
        self,
        chosen: Sequence[tuple[Branch, float]],
        interval: tuple[float, float],
        confidence: float,
        reached: bool,
        work: dict[str, int],
        penalty: float,
        worth: Callable[[Branch], float],
        by_position: bool = False,
    ) -> CertifiedPrecomputation:
        """Return the result.

        Args:
          chosen: the set, of entries with their gains.
          interval: lower and upper.
          confidence: in the interval.
          reached: whether it is as narrow as was asked for.
          work: what was done.
          penalty: the price of each entry.
          worth: the value of memorizing an entry, by which alternatives are compared.
          by_position: whether a penalty is paid for each position, by `Node.place`.
        """
        members = sorted(chosen, key=lambda entry: entry[0].node.index)
        reach, share = np.array([branch.node.reach for branch, _ in members]), np.ones(len(members))
        if by_position and members:
            place = np.array([branch.node.place for branch, _ in members])
            share = reach / np.bincount(place, reach)[place]
        opened = {
            node.actions(): [branch.row for branch in node.entries] for node in self.nodes[1:] if node.entries
        }
        return CertifiedPrecomputation(
            player=self.problem.player,
            penalty=penalty,
            lower=interval[0],
            upper=interval[1],
            confidence=confidence,
            size=len(members),
            histories=tuple(branch.node.actions() for branch, _ in members),
            reach=reach,
            share=share,
            gain=np.array([gain for _, gain in members]),
            rows=tuple(branch.row for branch, _ in members),
            alternatives=tuple(
                tuple(
                    Alternative(other.row, worth(branch) - worth(other))
                    for other in branch.node.entries
                    if other is not branch
                )
                for branch, _ in members
            ),
            menu=Menu(functools.partial(_opened, opened)),
            reached=reached,
            work=work | {"opened": self.opened, "nodes": len(self.nodes) - 1},
            game=self.problem.game,
            sigma=self.problem.sigma,
            trace=tuple(self.trace),
        )
