"""The flat-tree solver beside OpenSpiel's and a plain recursion on the meta-game, iteration by iteration."""

import collections

import numpy as np
import pyspiel
import pytest

from precomp_games import MetaPrecomputationGame, to_efg
from precomp_games.algorithms import meta_equilibrium, strategies_from_policy
from precomp_games.algorithms.meta.regret_minimization import RegretMinimization
from tests.menus import menu_tree

_POLICIES = [("tree", 0, True), ("tree", 3, True), ("efg", 3, True), ("efg", 6, True)]
_MENUS = [
    ("tree", 7, False),
    ("tree", 19, False),
    ("efg", 4, False),
    ("efg", 15, False),
    ("uneven", 2, False),
]


def _tree(kind, seed, policies):
    return menu_tree(kind, seed, penalties=(0.02, 0.03), policies=policies)


@pytest.mark.parametrize(("variant", "solver"), [("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)])
@pytest.mark.parametrize(("kind", "seed", "policies"), [*_POLICIES, *_MENUS])
def test_the_same_strategies_after_every_iteration(variant, solver, kind, seed, policies):
    """In both forms: their counterfactual values agree."""
    tree = _tree(kind, seed, policies)
    trace = dict(meta_equilibrium(tree, variant=variant, iterations=30, check_every=1).trace)
    for form in ("audit", "reweighted") if policies else ("audit",):
        game = MetaPrecomputationGame(tree, form)
        exported = pyspiel.load_efg_game(to_efg(game))
        theirs, ours = solver(exported), RegretMinimization(tree, variant, check_every=1)
        for iteration in range(1, 31):
            theirs.evaluate_and_update_policy()
            ours.advance(1)
            average = theirs.average_policy()
            assert trace[iteration] == pytest.approx(pyspiel.nash_conv(exported, average), abs=1e-10)
            if iteration % 5 == 0:
                back = strategies_from_policy(game, average, played_on=exported)
                for one, other in zip(ours.strategies(), back, strict=True):
                    np.testing.assert_allclose(one.plan(), other.plan(), atol=1e-10)


def test_where_nobody_comes_all_actions_are_alike():
    tree = menu_tree("tree", 7, truncate="none")
    first = meta_equilibrium(tree, iterations=1).strategies
    for k in np.flatnonzero(tree.previous < 0):
        menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
        memorize = first[tree.infoset_player[k]].memorize[menu]
        np.testing.assert_allclose(memorize, 1.0 / (1.0 + menu.stop - menu.start))


class _PlainPredictiveDiscounted:
    """PDCFR+ as its paper writes it, by recursion over the states of a game; plans are sums over own reaches.

    R^t = max(R^(t-1) (t-1)^a / ((t-1)^a + 1) + r^t, 0), the next strategy is proportional to
    max(R^t t^a / (t^a + 1) + r^t, 0), and X^t = X^(t-1) ((t-1) / t)^g + x^t, with a = 2.3 and g = 5.
    """

    def __init__(self, game):
        self.count = {}  # actions of each information state
        self.root = self._node(game.new_initial_state())
        self.strategy = {k: np.full(n, 1.0 / n) for k, n in self.count.items()}
        self.regret = {k: np.zeros(n) for k, n in self.count.items()}
        self.plan = {k: np.zeros(n) for k, n in self.count.items()}
        self.t = 0

    def _node(self, state):
        """(player, information state, chance's odds, children), or a utility."""
        if state.is_terminal():
            return state.returns()[0]
        player, infoset, odds = state.current_player(), None, None
        if state.is_chance_node():
            odds = [p for _, p in state.chance_outcomes()]
        else:
            infoset = state.infoset
            self.count[infoset] = len(state.legal_actions())
        return player, infoset, odds, [self._node(state.child(a)) for a in state.legal_actions()]

    def _values(self, node, player, own, others, gain, reach):
        """The player's value of a node; adds to `gain`, and writes the player's own reach."""
        if isinstance(node, float):
            return node if player == 0 else -node
        mover, infoset, odds, children = node
        if mover != player:
            odds = self.strategy[infoset] if odds is None else odds
            return sum(
                p * self._values(c, player, own, others * p, gain, reach)
                for c, p in zip(children, odds, strict=True)
            )
        mix = self.strategy[infoset]
        below = np.array(
            [
                self._values(c, player, own * p, others, gain, reach)
                for c, p in zip(children, mix, strict=True)
            ]
        )
        gain[infoset] = gain[infoset] + others * (below - mix @ below)
        reach[infoset] = own
        return mix @ below

    def iterate(self):
        self.t += 1
        t, before = self.t, (self.t - 1) ** 2.3
        for player in (0, 1):
            gain, reach = collections.defaultdict(float), {}
            self._values(self.root, player, 1.0, 1.0, gain, reach)
            for k, r in gain.items():
                self.regret[k] = np.maximum(self.regret[k] * before / (before + 1.0) + r, 0.0)
                self.plan[k] = self.plan[k] * ((t - 1) / t) ** 5 + reach[k] * self.strategy[k]
                wish = np.maximum(self.regret[k] * t**2.3 / (t**2.3 + 1.0) + r, 0.0)
                self.strategy[k] = wish / wish.sum() if wish.any() else np.full(len(wish), 1.0 / len(wish))


@pytest.mark.parametrize(
    ("kind", "seed", "policies"),
    [("tree", 0, True), ("tree", 3, True), ("efg", 1, True), ("tree", 7, False), ("tree", 19, False)],
)
def test_predictive_discounted_cfr_plus_is_the_papers(kind, seed, policies):
    tree = _tree(kind, seed, policies)
    theirs = _PlainPredictiveDiscounted(MetaPrecomputationGame(tree))
    ours = RegretMinimization(tree, "pdcfr+", check_every=1)
    for t in range(1, 51):
        theirs.iterate()
        ours.advance(1)
        current = np.empty(tree.num_entries)
        current[ours.decisions.tree_entry] = ours.state.current
        plans = [strategy.plan() for strategy in ours.strategies()]
        weight = sum((k / t) ** 5 for k in range(1, t + 1))
        for k, actions in theirs.plan.items():
            menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
            np.testing.assert_allclose(current[menu], theirs.strategy[k][1:], atol=1e-10)
            np.testing.assert_allclose(plans[tree.infoset_player[k]][menu], actions[1:] / weight, atol=1e-10)
