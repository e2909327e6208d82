"""The oracle of the meta-game with menus: both players' sets with choices, played out on OpenSpiel's states.

A *choice* has the menu's entry that a player memorizes, at each information state of a set. The value of each
pair comes from `tests.oracles.books`, which knows nothing of the library's tree.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pyspiel
from hypothesis import strategies as st
from scipy.optimize import linprog

from precomp_games import HistoryTree
from precomp_games.algorithms import MetaStrategy
from precomp_games.meta_game.rules import STOP
from tests.oracles import games
from tests.oracles.books import Choices, all_choices, information_state, key_of, states, utilities_of_choices
from tests.oracles.games import SUPPORTS, Level, expand, random_policy
from tests.oracles.preparation import named

_MOST_PAIRS = 2000


def matrix_value(matrix: np.ndarray) -> float:
    """Return the value of a matrix game for the player of rows."""
    rows, columns = matrix.shape
    # max v over x, v: v <= x'A_j for each column j
    result = linprog(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.column_stack([-matrix.T, np.ones(columns)]),
        b_ub=np.zeros(columns),
        A_eq=[np.append(np.ones(rows), 0.0)],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return float(-result.fun)


PENALTIES = ((0.01, 0.03), (0.05, 0.05), (0.1, 0.02))
# Player 0 sees neither chance's secret nor how many moves player 1 makes before its second turn.
_UNSEEN = (True, True)
_UNEVEN = Level(-1, 3, _UNSEEN), Level(0), Level(1, 2, _UNSEEN, late=True), Level(0), Level(1, late=True)


def menu_tree(
    kind: str, seed: int, truncate: str = "reach", penalties: Any = None, policies: bool = False
) -> HistoryTree:
    """Return the tree of a random game; one player in four has a policy for its menu, or both do."""
    support, by = SUPPORTS[seed % 3], "history" if kind == "tree" else "infoset"
    if kind == "tree":
        game = games.random_tree(seed, depth=3 + seed % 2, actions=2 + (seed // 2) % 2)
    elif kind == "efg":
        game = games.random_efg(seed, depth=3, actions=2 + seed % 2)
    else:
        game = games.level_game(seed, _UNEVEN)
    given, sigma = games.policy_pairs(seed, support, by)
    menus = [games.random_menu(4 * seed + i, 1 + (seed + i) % 3, by) for i in (0, 1)]
    pre = tuple(given[i] if policies or (seed + 3 * i) % 4 == 0 else menus[i] for i in (0, 1))
    return expand(game, pre, sigma, penalties or PENALTIES[seed % 3], truncate=truncate)


def kuhn_tree() -> HistoryTree:
    """Return the whole tree of Kuhn poker."""
    pre, sigma = (random_policy(seed, by="infoset") for seed in (1, 2))
    return expand(pyspiel.load_game("kuhn_poker"), pre, sigma, 0.07, truncate="none")


# -- meta-games that are known --------------------------------------------------------------------


def weight_of(game: pyspiel.Game, seed: int) -> Any:
    """Return a function from states to memory costs in penalties; some information states cost none."""

    def weight(state: Any) -> float:
        player = state.current_player()
        name = f"{player} {information_state(game, state, player)}"
        return float(np.random.default_rng([seed, 12, *name.encode()]).choice([0.0, 0.4, 1.0, 2.5]))

    return weight


@dataclasses.dataclass(frozen=True, eq=False)
class MetaCase:
    """A meta-game that is known by enumeration.

    choices: each player's; to memorize nothing is the only one where the penalty is infinite.
    sizes[i]: how many penalties each of player i's choices costs. utilities: player 0's for each pair.
    """

    game: pyspiel.Game
    pre: Any
    sigma: Any
    penalties: tuple[float, float]
    weight: Any
    choices: list[list[Choices]]
    sizes: list[np.ndarray]
    utilities: np.ndarray

    @functools.cached_property
    def payoffs(self) -> np.ndarray:
        """Player 0's utility in the meta-game for each pair of choices."""
        costs = [
            np.where(size > 0.0, size * penalty, 0.0)
            for size, penalty in zip(self.sizes, np.nan_to_num(self.penalties), strict=True)
        ]
        return self.utilities - costs[0][:, None] + costs[1][None, :]

    @functools.cached_property
    def value(self) -> float:
        return matrix_value(self.payoffs)

    def expand(self, **options: Any) -> HistoryTree:
        given = {"penalties": self.penalties, "weight": self.weight} | options
        return HistoryTree.from_game(self.game, sigma_pre=self.pre, sigma=self.sigma, **given)

    @functools.cached_property
    def tree(self) -> HistoryTree:
        return self.expand()

    @functools.cached_property
    def whole(self) -> HistoryTree:
        """The tree that leaves nothing out."""
        return self.expand(truncate="none")

    def mixture(self, strategy: MetaStrategy) -> np.ndarray:
        """Return the probability with which a strategy makes each choice."""
        tree, player = strategy.tree, strategy.player
        mixed = np.zeros(len(self.choices[player]))
        for probability, members in strategy.mixture():
            mixed[self._numbers[player][named(tree, player, members)]] += probability
        return mixed

    @functools.cached_property
    def _numbers(self) -> list[dict[frozenset[tuple[str, frozenset[int]]], int]]:
        return [{key_of(choice): k for k, choice in enumerate(choices)} for choices in self.choices]


def enumerated(
    game: Any, pre: Any, sigma: Any, penalties: Any, weight: Any = None, most: float = math.inf
) -> MetaCase | None:
    """Return a meta-game with all pairs of choices, None where there are more than `most`.

    weight: as `HistoryTree.from_game` takes it.
    """
    choices = [all_choices(game, i, pre[i], most) for i in (0, 1)]
    if not all(choices) or math.prod(map(len, choices)) > most:
        return None
    choices = [[{}] if math.isinf(p) else c for p, c in zip(penalties, choices, strict=True)]
    sizes = [np.array([*map(len, chosen)], float) for chosen in choices]
    if weight is not None:
        costs = {
            (i, information_state(game, state, i)): weight(state)
            for state in states(game)
            if (i := state.current_player()) >= 0
        }
        sizes = [np.array([sum(costs[i, name] for name in c) for c in choices[i]]) for i in (0, 1)]
    matrix = utilities_of_choices(game, choices, sigma)
    return MetaCase(game, pre, sigma, penalties, weight, choices, sizes, matrix)


def known_cases() -> st.SearchStrategy[MetaCase]:
    """Random meta-games that are small enough, with policies, menus, weights and infinite penalties."""

    def known(case: Any, costs: tuple[float, float], weighed: bool) -> MetaCase | None:
        weight = weight_of(case[0], 12) if weighed else None
        return enumerated(*case, costs, weight, most=_MOST_PAIRS)

    drawn = games.settings(games.games(actions=2) | games.games(depth=3), menus=True)
    return st.builds(known, case=drawn, costs=games.penalties(), weighed=st.booleans()).filter(bool)


def random_strategies(tree: HistoryTree, seed: int) -> tuple[MetaStrategy, MetaStrategy]:
    """Return both players' strategies, with zeros and whole menus; 0 at entries that none leads to."""
    rng = np.random.default_rng(seed)
    drawn = []
    for i, penalty in enumerate(tree.penalties):
        weights = np.clip(rng.uniform(-0.3, 1.0, tree.num_entries), 0.0, 1.0)
        stop = np.clip(rng.uniform(-0.3, 1.0, tree.num_infosets), 0.0, 1.0)
        total = np.bincount(tree.entry_infoset, weights, tree.num_infosets) + stop
        memorize = weights / np.where(total > 0.0, total, 1.0)[tree.entry_infoset]
        reached = tree.own_reaches[i][tree.infoset_history][tree.entry_infoset] > 0.0
        own = (tree.entry_player == i) & reached & math.isfinite(penalty)
        drawn.append(MetaStrategy(tree, i, np.where(own, memorize, 0.0)))
    return drawn[0], drawn[1]


# -- the meta-game as OpenSpiel has it ------------------------------------------------------------


def names_in(tree: HistoryTree, player: int) -> list[str]:
    """Return a player's information states of a tree, in its order, as the oracle calls them."""
    histories = tree.infoset_history[tree.infoset_player == player].tolist()
    return [information_state(tree.game, tree.state(h), player) for h in histories]


def members_of(tree: HistoryTree, player: int, choice: Choices) -> list[int]:
    """Return a choice as a memorization set of a tree that has its information states."""
    own = np.flatnonzero(tree.infoset_player == player).tolist()
    infosets = dict(zip(names_in(tree, player), own, strict=True))
    return [entry_of(tree, infosets[name], row) for name, row in choice.items()]


def entry_of(tree: HistoryTree, infoset: int, row: dict[int, float]) -> int:
    """Return the entry of an information state that plays what a row does."""
    children = tree.children(int(tree.infoset_history[infoset]))
    return next(int(tree.edge_entry[c]) for c in children if row.get(int(tree.action[c]), 0.0) > 0.0)


def within(case: MetaCase, tree: HistoryTree) -> list[list[int]]:
    """Each player's choices, by number, that a tree has the information states of."""
    names = [set(names_in(tree, i)) for i in (0, 1)]
    return [[k for k, c in enumerate(case.choices[i]) if names[i].issuperset(c)] for i in (0, 1)]


def game_payoffs(game: Any, choices: list[list[Choices]]) -> np.ndarray:
    """Return a `MetaPrecomputationGame`'s payoffs for each pair of choices, distinguished by its strings."""
    tree = game.tree
    infosets = {
        game.rules.infoset_view(k): (k, name)
        for i in (0, 1)
        if math.isfinite(tree.penalties[i])
        for k, name in zip(np.flatnonzero(tree.infoset_player == i).tolist(), names_in(tree, i), strict=True)
    }
    found = np.zeros(tuple(map(len, choices)))

    def walk(state: Any, weight: float, plays: list[np.ndarray]) -> None:
        if state.is_terminal():
            found[...] += weight * state.returns()[0] * np.outer(*plays)
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), weight * p, plays)
        else:
            i = state.current_player()
            k, name = infosets[state.information_state_string()]
            before = int(tree.first_entry[k]) - 1
            made = np.array([entry_of(tree, k, c[name]) - before if name in c else STOP for c in choices[i]])
            for action in state.legal_actions():
                part = list(plays)
                part[i] = part[i] * (made == action)
                if part[i].any():
                    walk(state.child(action), weight, part)

    walk(game.new_initial_state(), 1.0, [np.ones(len(c)) for c in choices])
    return found + float(game.value_shift)
