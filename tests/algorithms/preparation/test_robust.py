"""Robust preparation against enumeration of all sets, with nature's minimum in closed form."""

import dataclasses
import itertools
import math

import hypothesis
import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from precomp_games.algorithms import MetaStrategy, robust_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.robust import _convolve, _distribute, _Turn, _worth
from tests.oracles.games import SEEDS, expand, policy_pairs, random_tree, sides
from tests.oracles.preparation import TINY, one_sided, preparations, prepared, scored
from tests.properties import examples

_MOST = 150
_EXACT = 1e-9


def _least(share, p, v):
    """Return nature's minimum of q . v, where q has at least 1 - share of each p."""
    return (1.0 - share) * float(np.dot(p, v)) + share * min(v)


@examples(200)
@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(-2.0, 2.0)), min_size=1), st.floats(0.0, 1.0))
def test_natures_minimum_is_that_of_its_linear_program(pairs, share):
    p, v = np.array(pairs).T
    p /= p.sum()
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    bounds = [((1.0 - share) * x, 1.0) for x in p]
    program = linprog(v, A_eq=[np.ones(len(p))], b_eq=[1.0], bounds=bounds, options=exact)
    assert _least(share, p, v) == pytest.approx(program.fun, abs=_EXACT)


class Enumerated:
    """All memorization sets of a tree, as (penalties paid, utility against the worst, entries)."""

    def __init__(self, tree, player, share):
        self.tree, self.player, self.share = tree, player, share
        self.own = (tree.value if player == 0 else tree.utility_sum - tree.value).tolist()
        self.sets = self.below(0)

    def edges(self, h):
        """Return the edges that count; nature may play moves that the model does not."""
        free = self.tree.player[h] == 1 - self.player
        return [c for c in self.tree.children(h) if free or self.tree.sigma[c] > 0.0]

    def stopped(self, h):
        tree = self.tree
        decides = tree.player[h] == self.player and tree.infoset[h] >= 0
        if not tree.num_children[h] or (decides and tree.stop_value == "evaluate"):
            return self.own[h]
        edges = self.edges(h)
        return self.expected(h, [tree.sigma[c] for c in edges], [self.stopped(c) for c in edges])

    def expected(self, h, p, v):
        if self.tree.player[h] != 1 - self.player:
            return sum(x * y for x, y in zip(p, v, strict=True))
        return _least(self.share[h], p, v)

    def below(self, h):
        """Return the possible books at and below a history before which all is memorized."""
        tree, infoset = self.tree, int(self.tree.infoset[h])
        if tree.num_children[h] and tree.player[h] != self.player:
            edges = self.edges(h)
            return self.joined(h, edges, [tree.sigma[c] for c in edges], 0, ())
        found = [(0, self.stopped(h), ())]
        if tree.num_children[h] and infoset >= 0:
            weight = int(tree.infoset_weight[infoset])
            for e in range(*tree.first_entry[infoset : infoset + 2].tolist()):
                edges = [c for c in tree.children(h) if tree.edge_entry[c] == e and tree.sigma_pre[c] > 0.0]
                found += self.joined(h, edges, [tree.sigma_pre[c] for c in edges], weight, (e,))
        return found

    def joined(self, h, edges, p, size, entries):
        each = [self.below(c) for c in edges]
        if math.prod(map(len, each)) > _MOST:
            raise OverflowError
        found = []
        for parts in itertools.product(*each):
            sizes, utilities, more = zip(*parts, strict=True) if parts else ((), (), ())
            members = tuple(sorted(entries + tuple(itertools.chain.from_iterable(more))))
            found.append((size + sum(sizes), self.expected(h, p, utilities), members))
        return found


_SHARES = st.one_of(
    st.sampled_from((0.0, 1.0)), st.floats(1e-12, 1.0), st.sampled_from(("histories", "states"))
)


def _contamination(given, seed, tree):
    """Return one share, one for each history, or one for each state."""
    if given == "histories":
        return np.random.default_rng(seed).random(tree.num_histories) ** 2
    if given == "states":
        return lambda state: 0.3 / len(state.legal_actions()) + 0.01 * len(state.history())
    return given


def _check_certificate(found):
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
    assert found.nominal == model >= found.utility - _EXACT


@examples(320)
@given(
    preparations("perfect", depth=5, fewest=0),
    _SHARES,
    st.sampled_from((TINY, 0.02, 0.1)),
    st.sampled_from(("backup", "evaluate", "rival")),
    st.booleans(),
)
def test_against_all_sets(setting, given, penalty, how, weighted):
    """The model does not play the moves that the opponent could memorize ("rival")."""
    player = setting.player
    tree = setting.tree(penalty, rival=0.1 if how == "rival" else math.inf, truncate="none")
    if how == "evaluate":
        tree = setting.evaluated(penalty)
    tree = tree.with_penalties(sides(player, penalty, math.inf))
    if weighted:
        tree = tree.with_weights(np.random.default_rng(setting.seed).integers(2, size=tree.num_infosets))
    contamination = _contamination(given, setting.seed, tree)
    share = robust_precomputation(tree, player, contamination, budget=0).contamination
    try:
        sets = Enumerated(tree, player, share).sets
    except OverflowError:
        hypothesis.reject()
    worth = {entries: utility for _, utility, entries in sets}
    largest = max(size for size, _, _ in sets)
    at_most = np.array([max(u for s, u, _ in sets if s <= n) for n in range(largest + 1)])
    for budget in (*range(min(largest + 1, 6)), largest, None):
        found = robust_precomputation(tree, player, contamination, budget=budget)
        price, most = (penalty, largest) if budget is None else (0.0, budget)
        best = max(utility - price * size for size, utility, _ in sets if size <= most)
        assert found.value == pytest.approx(best, abs=_EXACT)
        assert found.value == pytest.approx(found.utility - price * found.paid, abs=1e-12)
        members = tuple(found.memorization_set.tolist())
        assert worth[members] == pytest.approx(found.utility, abs=_EXACT)
        assert found.paid == tree.infoset_weight[tree.entry_infoset[list(members)]].sum()
        assert found.unprepared == pytest.approx(worth[()], abs=_EXACT)
        _check_certificate(found)
        assert found.utilities == pytest.approx(at_most[found.sizes], abs=_EXACT)
        assert found.utilities[-1] == pytest.approx(found.utility, abs=1e-12)
        if budget is None:  # all that are worth more than what is smaller
            worths = at_most - price * np.arange(largest + 1)
            before = np.append(-np.inf, np.maximum.accumulate(worths)[:-1])
            assert np.isin(np.flatnonzero(worths > before + _EXACT), found.sizes).all()


@examples(80)
@given(
    SEEDS,
    st.sampled_from(((9, 30), (20, 25), (9, 11, 10))),
    st.sampled_from((0.0, 0.02, 0.2, 0.7, 1.0)),
    st.booleans(),
    st.booleans(),
)
def test_how_entries_are_distributed_at_a_turn(seed, counts, share, ties, never):
    """Tables of many sizes below some replies, against all ways to distribute."""
    rng, k, width, price = np.random.default_rng(seed), len(counts), 60, 0.02
    counts = np.sort(counts)
    sizes = [np.append(0, np.sort(rng.choice(50, c - 1, replace=False)) + 1) for c in counts]
    rises = [rng.exponential(0.05, c) * np.exp(-rng.uniform(0, 0.3) * np.arange(c)) for c in counts]
    utilities = [np.round(rng.uniform(0, 0.3) + np.cumsum(rise), 1 if ties else 16) for rise in rises]
    p = rng.dirichlet(np.ones(k + 1))
    if never:
        p = np.append(0.0, p[1:] / p[1:].sum())
    best = np.full(width, -np.inf)
    for ways in itertools.product(*map(range, counts)):
        total = sum(sizes[j][b] for j, b in enumerate(ways))
        if total < width:
            v = np.append(0.4, [utilities[j][b] for j, b in enumerate(ways)])
            best[total] = max(best[total], _least(share, p, v))
    length = np.append(1, counts)  # the first reply has one size
    turn = _Turn(
        share, p, np.arange(k + 1), 1, np.append(0, np.cumsum(length)[:-1]), length,
        np.concatenate([[0], *sizes]).astype(np.int32), np.concatenate([[0.4], *utilities]),
    )  # fmt: skip
    best = np.maximum.accumulate(best)
    found, thresholds = _distribute(turn, width, 0.0)
    assert found == pytest.approx(best, abs=1e-12)
    pick = np.empty((k + 1, width), int)
    for r in range(width):
        _convolve(turn, thresholds[r], np.arange(width) == r, np.empty((k + 2, width)), pick)
        assert _worth(turn, pick, r) == found[r]
    paying = np.maximum.accumulate(_distribute(turn, width, price)[0] - price * np.arange(width))
    assert paying == pytest.approx(np.maximum.accumulate(best - price * np.arange(width)), abs=1e-12)


def _some_tree():
    """Return a tree with several entries that are worth memorizing, of player 0."""
    return prepared(random_tree(20, depth=5), 20).tree(truncate="none")


def test_shares_and_what_is_refused():
    tree = _some_tree()
    turns = (tree.player == 1) & (tree.num_children > 0)
    assert (robust_precomputation(tree, 0, 0.3).contamination == 0.3 * turns).all() and turns.any()
    for wrong in (-0.1, 1.5, math.nan, "0.1", np.full(3, 0.1), lambda state: -1.0, lambda state: "x"):
        with pytest.raises(ValueError, match=r"^robust_precomputation\(\): expected contamination "):
            robust_precomputation(tree, 0, wrong)
    both = expand(random_tree(1, depth=4), *policy_pairs(1), 0.1)
    imperfect = one_sided(pyspiel.load_game("kuhn_poker"), 0, *policy_pairs(1, by="infoset"))
    for tree in (both, imperfect):
        with pytest.raises(ValueError, match=r"^robust_precomputation\(\): expected a tree of perfect info"):
            robust_precomputation(tree, 0, 0.1)


def test_book_against_the_worst():
    """The gains of a result's states sum to its utility, and its policy scores its nominal value."""
    tree, player = _some_tree(), 0
    found = robust_precomputation(tree, player, 0.3, budget=3)
    states = list(found.states())
    assert [each.entry for each in states] == found.memorization_set.tolist() and states
    nothing = Decisions.against(dataclasses.replace(tree, sigma=found.nature), player).gains()[1]
    assert nothing + sum(each.gain for each in states) == pytest.approx(found.utility, abs=1e-12)
    assert scored(tree.game, player, found.policy()) == pytest.approx(found.nominal, abs=1e-9)
