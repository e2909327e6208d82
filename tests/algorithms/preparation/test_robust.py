"""Robust preparation against enumeration of all sets, with nature's minimum by a program of its own."""

import dataclasses
import itertools
import math

import numpy as np
import pyspiel
import pytest
from scipy.optimize import linprog

from precomp_games.algorithms import MetaStrategy, best_precomputation, robust_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.robust import _convolve, _distribute, _Turn, _worth
from tests.oracles.games import SUPPORTS, expand, policy_pairs, random_menu, random_tree, sides
from tests.oracles.preparation import TINY, evaluation, one_sided, scored

_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_MOST = 150


def least(share, p, v):
    """Nature's minimum of q . v by linear programming."""
    p, v = np.array(p), np.array(v)
    if len(p) == 1 or share == 0.0 or np.ptp(v) == 0.0:
        return float(p @ v)
    bounds = [((1 - share) * x, 1) for x in p]
    return float(linprog(v, A_eq=[[1.0] * len(p)], b_eq=[1.0], bounds=bounds, options=_EXACT).fun)


class Enumerated:
    """All memorization sets of a tree, as (penalties paid, utility against the worst, entries)."""

    def __init__(self, tree, player, share):
        self.tree, self.player, self.share = tree, player, share
        self.own = (tree.value if player == 0 else tree.utility_sum - tree.value).tolist()
        self.sets = self.below(0)

    def stopped(self, h):
        tree = self.tree
        decides = tree.player[h] == self.player and tree.infoset[h] >= 0
        if not tree.num_children[h] or (decides and tree.stop_value == "evaluate"):
            return self.own[h]
        edges = [c for c in tree.children(h) if self.may_play(h, c)]
        return self.expected(h, [tree.sigma[c] for c in edges], [self.stopped(c) for c in edges])

    def may_play(self, h, c):
        """Return whether an edge counts; nature may play moves that the model does not."""
        return self.tree.player[h] == 1 - self.player or self.tree.sigma[c] > 0.0

    def expected(self, h, p, v):
        if self.tree.player[h] != 1 - self.player:
            return sum(x * y for x, y in zip(p, v, strict=True))
        return least(self.share[h], p, v)

    def below(self, h):
        """Return the possible books at and below a history before which all is memorized."""
        tree = self.tree
        if not tree.num_children[h] or (tree.player[h] == self.player and tree.infoset[h] < 0):
            return [(0, self.stopped(h), ())]
        if tree.player[h] == self.player:
            found = [(0, self.stopped(h), ())]
            infoset = int(tree.infoset[h])
            for e in range(*tree.first_entry[infoset : infoset + 2].tolist()):
                edges = [c for c in tree.children(h) if tree.edge_entry[c] == e and tree.sigma_pre[c] > 0.0]
                weight = int(tree.infoset_weight[infoset])
                found += self.joined(h, edges, [tree.sigma_pre[c] for c in edges], weight, (e,))
            return found
        edges = [c for c in tree.children(h) if self.may_play(h, c)]
        return self.joined(h, edges, [tree.sigma[c] for c in edges], 0, ())

    def joined(self, h, edges, p, size, entries):
        each = [self.below(c) for c in edges]
        if math.prod(map(len, each)) > _MOST:
            raise OverflowError
        return [
            (
                size + sum(part[0] for part in parts),
                self.expected(h, p, [part[1] for part in parts]),
                tuple(sorted(entries + tuple(itertools.chain.from_iterable(part[2] for part in parts)))),
            )
            for parts in itertools.product(*each)
        ]


def _tree(seed):
    """Return (tree, player): chance, menus, what is known already, both kinds of values of stopping."""
    player = seed % 2
    game = random_tree(seed, depth=4 + seed % 2, actions=2 + seed // 2 % 2, chance=0.25)
    support = SUPPORTS[seed // 3 % 3]
    pre, sigma = policy_pairs(seed, support)
    if seed % 3 == 0:
        pre = sides(player, random_menu(seed, 2), pre[1 - player])
    penalty = (TINY, 0.02, 0.1)[seed // 5 % 3]
    if seed % 4 == 1:
        more = {"leaf_value": evaluation(seed), "stop_value": "evaluate"}
        tree = one_sided(game, player, pre, sigma, penalty, truncate="none", **more)
    elif seed % 4 == 3:  # what the opponent could memorize, the model does not play
        tree = expand(game, pre, sigma, penalty, truncate="none")
        tree = tree.with_penalties(sides(player, penalty, math.inf))
    else:
        tree = one_sided(game, player, pre, sigma, penalty, truncate="none")
    if seed % 7 == 0:
        tree = tree.with_weights(np.random.default_rng(seed).integers(2, size=tree.num_infosets))
    return tree, player


def _contamination(seed, tree):
    """One share, one for each history, or one for each state."""
    rng = np.random.default_rng([seed, 5])
    if seed % 3 == 0:
        return float(rng.choice([0.0, 10.0 ** -rng.uniform(0, 12), rng.random(), 1.0]))
    if seed % 3 == 1:
        return rng.random(tree.num_histories) ** 2
    return lambda state: 0.3 / len(state.legal_actions()) + 0.01 * len(state.history())


def check_certificate(found, exact):
    """The worst opponent is one that nature may play, and the set has its utility against it."""
    tree, player = found.tree, found.player
    for h in np.flatnonzero((tree.player == 1 - player) & (tree.num_children > 0)):
        part = slice(tree.children(h).start, tree.children(h).stop)
        q, p = found.nature[part], tree.sigma[part]
        assert q.min() >= 0.0 and q.sum() == pytest.approx(1.0, abs=1e-12)
        assert (q >= (1.0 - found.contamination[h]) * p - 1e-12).all()
    against = Decisions.against(dataclasses.replace(tree, sigma=found.nature), player)
    strategy = MetaStrategy.of_set(tree, player, found.memorization_set)
    assert against.value(strategy.memorize, 0.0).value == pytest.approx(found.utility, abs=1e-12)
    model = Decisions.against(tree, player).value(strategy.memorize, 0.0).value
    assert found.nominal == model >= found.utility - exact


# Costs seconds: each minimum of nature's is a linear program.
def test_against_all_sets(cases):
    exact = 1e-9
    tried = larger = 0
    for seed in range(cases(400)):
        tree, player = _tree(seed)
        given = _contamination(seed, tree)
        share = robust_precomputation(tree, player, given, budget=0).contamination
        try:
            sets = Enumerated(tree, player, share).sets
        except OverflowError:
            continue
        tried += 1
        worth = {entries: utility for _, utility, entries in sets}
        largest = max(size for size, _, _ in sets)
        for budget in (*range(min(largest + 1, 6)), largest, None):
            found = robust_precomputation(tree, player, given, budget=budget)
            price = tree.penalties[player] if budget is None else 0.0
            within = [(s, u) for s, u, _ in sets if budget is None or s <= budget]
            best = max(utility - price * size for size, utility in within)
            assert found.value == pytest.approx(best, abs=exact)
            assert found.value == pytest.approx(found.utility - price * found.paid, abs=1e-12)
            members = tuple(found.memorization_set.tolist())
            assert worth[members] == pytest.approx(found.utility, abs=exact)
            assert found.paid == tree.infoset_weight[tree.entry_infoset[list(members)]].sum()
            assert found.unprepared == pytest.approx(worth[()], abs=exact)
            check_certificate(found, exact)
            larger += found.size > 1
            for size, utility in zip(found.sizes, found.utilities, strict=True):
                at_most = max(u for s, u, _ in sets if s <= size)
                assert utility <= at_most + exact
                assert utility >= at_most - exact
            if budget is None:  # all that are worth more than what is smaller
                worths = np.array([max(u for s, u, _ in sets if s <= n) for n in range(largest + 1)])
                worths -= price * np.arange(largest + 1)
                before = np.append(-np.inf, np.maximum.accumulate(worths)[:-1])
                rises = np.flatnonzero(worths > before + exact)
                assert np.isin(rises, found.sizes).all()
            assert found.utilities[-1] == pytest.approx(found.utility, abs=1e-12)
    assert tried > cases(400) / 2 and larger > tried


def test_how_entries_are_distributed_at_a_turn(cases):
    """Tables of many sizes below some replies, against all ways to distribute."""
    rng = np.random.default_rng(2)
    for seed in range(cases(80)):
        k = 2 + seed % 2
        counts = np.sort(rng.integers(9, 30 if k == 2 else 12, k))
        sizes = [np.append(0, np.sort(rng.choice(50, c - 1, replace=False)) + 1) for c in counts]
        rises = [rng.exponential(0.05, c) * np.exp(-rng.uniform(0, 0.3) * np.arange(c)) for c in counts]
        utilities = [rng.uniform(0, 0.3) + np.cumsum(rise) for rise in rises]
        if seed % 5 == 0:  # ties
            utilities = [np.round(each, 1) for each in utilities]
        p = rng.dirichlet(np.ones(k + 1))
        p[0] *= seed % 4 > 0
        p /= p.sum()
        share, width = float(rng.choice([0.0, 0.02, 0.2, 0.7, 1.0])), 60
        best = np.full(width, -np.inf)
        for ways in itertools.product(*map(range, counts)):
            total = sum(sizes[j][b] for j, b in enumerate(ways))
            if total < width:
                v = np.append(0.4, [utilities[j][b] for j, b in enumerate(ways)])
                best[total] = max(best[total], (1.0 - share) * (p @ v) + share * v.min())
        best = np.maximum.accumulate(best)
        length = np.append(1, counts)  # the first reply has one size
        turn = _Turn(
            share, p, np.arange(k + 1), 1, np.append(0, np.cumsum(length)[:-1]), length,
            np.concatenate([[0], *sizes]).astype(np.int32), np.concatenate([[0.4], *utilities]),
        )  # fmt: skip
        found, thresholds = _distribute(turn, width, 0.0)
        assert found == pytest.approx(best, abs=1e-12)
        pick = np.empty((k + 1, width), int)
        for r in range(width):
            _convolve(turn, thresholds[r], np.arange(width) == r, np.empty((k + 2, width)), pick)
            assert _worth(turn, pick, r) == found[r]
        price = 0.02
        paying = _distribute(turn, width, price)[0] - price * np.arange(width)
        assert np.maximum.accumulate(paying) == pytest.approx(
            np.maximum.accumulate(best - price * np.arange(width)), abs=1e-12
        )


def test_identities(cases):
    for seed in range(cases(40)):
        tree, player = _tree(seed)
        for budget in (None, 2):
            model = best_precomputation(tree, player, budget=budget)
            same = robust_precomputation(tree, player, 0.0, budget=budget)
            assert same.value == pytest.approx(model.value, abs=1e-12)
            shares = (0.0, 0.1, 0.5, 1.0)
            found = [robust_precomputation(tree, player, s, budget=budget).value for s in shares]
            assert (np.diff(found) <= 1e-12).all()


def test_shares():
    tree, player = _tree(0)
    turns = (tree.player == 1 - player) & (tree.num_children > 0)
    assert (robust_precomputation(tree, player, 0.3).contamination == 0.3 * turns).all() and turns.any()
    for wrong in (-0.1, 1.5, math.nan, "0.1", np.full(3, 0.1), lambda state: -1.0, lambda state: "x"):
        with pytest.raises(ValueError, match=r"^robust_precomputation\(\): expected contamination "):
            robust_precomputation(tree, player, wrong)


def test_refused_trees():
    both = expand(random_tree(1, depth=4), *policy_pairs(1), 0.1)
    imperfect = one_sided(pyspiel.load_game("kuhn_poker"), 0, *policy_pairs(1, by="infoset"))
    for tree in (both, imperfect):
        with pytest.raises(ValueError, match=r"^robust_precomputation\(\): expected a tree of perfect info"):
            robust_precomputation(tree, 0, 0.1)


def test_book_against_the_worst():
    """The gains of a result's states sum to its utility, and its policy scores its nominal value."""
    tree, player = _tree(20)
    found = robust_precomputation(tree, player, 0.3, budget=3)
    states = list(found.states())
    assert [each.entry for each in states] == found.memorization_set.tolist() and states
    nothing = Decisions.against(dataclasses.replace(tree, sigma=found.nature), player).gains()[1]
    assert nothing + sum(each.gain for each in states) == pytest.approx(found.utility, abs=1e-12)
    assert scored(tree.game, player, found.policy()) == pytest.approx(found.nominal, abs=1e-9)
