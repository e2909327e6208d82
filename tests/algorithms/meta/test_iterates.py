"""The flat-tree solver beside OpenSpiel's and a plain recursion on the meta-game, iteration by iteration."""

import collections

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, MetaPrecomputationGame, to_efg
from precomp_games.algorithms import meta_equilibrium, meta_sequence_form_lp
from precomp_games.algorithms.meta.regret_minimization import RegretMinimization
from tests.menus import menu_tree
from tests.random_games import random_efg, random_policy, random_tree


def _tree(kind, seed, support="full"):
    game = random_tree(seed, depth=4, actions=2) if kind == "tree" else random_efg(seed, depth=4)
    by = "history" if kind == "tree" else "infoset"
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, support, by) for i in (0, 1))
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.02, 0.03))


@pytest.mark.parametrize("form", ["reweighted", "audit"])
@pytest.mark.parametrize(("variant", "solver"), [("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)])
@pytest.mark.parametrize(("kind", "seed"), [("tree", 0), ("tree", 3), ("efg", 1), ("efg", 2)])
def test_the_same_nash_conv_after_every_iteration(form, variant, solver, kind, seed):
    tree = _tree(kind, seed)
    exported = pyspiel.load_efg_game(to_efg(tree, form=form))
    theirs = solver(exported)
    ours = dict(meta_equilibrium(tree, variant=variant, iterations=50, check_every=1).trace)
    for iteration in range(1, 51):
        theirs.evaluate_and_update_policy()
        expected = pyspiel.nash_conv(exported, theirs.average_policy())
        assert ours[iteration] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("support", ["partial", "pure"])
def test_cfr_plus_on_the_audit_form_where_supports_differ(support):
    for seed in range(6):
        tree = _tree("tree", seed, support)
        exact = meta_sequence_form_lp(tree).value
        game = pyspiel.load_efg_game(to_efg(tree, form="audit"))
        solver = pyspiel.CFRPlusSolver(game)
        for _ in range(300):
            solver.evaluate_and_update_policy()
        average = solver.average_policy()
        found = pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0]
        value = found + tree.utility_sum / 2.0
        assert abs(value - exact) <= pyspiel.nash_conv(game, average) + 1e-9


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
    ("kind", "seed"), [("tree", 0), ("tree", 3), ("efg", 1), ("efg", 2), ("menu", 7), ("menu", 19)]
)
def test_predictive_discounted_cfr_plus_is_the_papers(kind, seed):
    tree = menu_tree("tree", seed, penalties=(0.02, 0.03)) if kind == "menu" else _tree(kind, seed)
    theirs, ours = (
        _PlainPredictiveDiscounted(MetaPrecomputationGame(tree)),
        RegretMinimization(tree, "pdcfr+", check_every=1),
    )
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
