"""A book that is there already, and books against the worst opponent, beside all sets with all choices."""

import dataclasses
import itertools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from precomp_games.algorithms import MetaStrategy, judge_book, robust_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.robust import _convolve, _distribute, _Turn, _worth
from tests.oracles import books
from tests.oracles.games import SEEDS, expand, policy_pairs, random_tree, sides
from tests.oracles.preparation import NEAR, TINY, named, one_sided, preparations, prepared, scored
from tests.properties import examples

_PENALTY = 0.02


def _sets(setting, tree):
    """Return {set of entries: its key}; sets with what is never reached are not in the tree."""
    entry_of = {}
    for entry in np.flatnonzero(tree.entry_player == setting.player).tolist():
        (pair,) = named(tree, setting.player, [entry])
        entry_of[pair] = entry
    keys = [key for key in map(books.key_of, setting.choices) if key <= entry_of.keys()]
    return {frozenset(entry_of[pair] for pair in key): key for key in keys}


def _chain(tree, entry):
    """Return the entries before an entry."""
    found = set()
    while (entry := int(tree.previous[tree.entry_infoset[entry]])) >= 0:
        found.add(entry)
    return found


def _behind(tree, entry):
    """Return an entry and all that follow it."""
    return {other for other in range(tree.num_entries) if entry in {other, *_chain(tree, other)}}


def _entries_at(tree, infoset):
    return range(int(tree.first_entry[infoset]), int(tree.first_entry[infoset + 1]))


def _best(found, penalty, fits):
    return max(utility - penalty * len(chosen) for chosen, utility in found.items() if fits(chosen))


def _with(tree, before, entry):
    """Return a test whether a set is an entry, all entries before it, and any of those after it."""
    return lambda chosen: entry in chosen and before <= chosen <= before | _behind(tree, entry)


@examples(240)
@given(preparations(menu=True, fewest=10, most=1000), st.integers(0, 3))
def test_a_judgment_against_all_sets(setting, learn):
    player, tree = setting.player, setting.tree(_PENALTY, truncate="none")
    found = {members: setting.by_name[key] for members, key in _sets(setting, tree).items()}
    rng = np.random.default_rng(setting.seed)
    book = sorted(found, key=sorted)[int(rng.integers(len(found)))]
    known = np.flatnonzero((rng.random(tree.num_entries) < 0.5) & (tree.entry_player == player)).tolist()
    judged = judge_book(tree, player, book, own_entries=set(known), learn=learn)
    assert judged.size == len(book) and set(judged.memorization_set.tolist()) == book
    assert judged.utility == pytest.approx(found[book], abs=NEAR)
    assert judged.value == pytest.approx(found[book] - _PENALTY * len(book), abs=NEAR)
    assert judged.unprepared == pytest.approx(found[frozenset()], abs=NEAR)
    most = _best(found, 0.0, lambda chosen: len(chosen) <= len(book))
    assert judged.regret == pytest.approx(most - found[book], abs=NEAR)
    own = _best(found, 0.0, lambda chosen: len(chosen) <= len(book) and chosen <= book.union(known))
    assert judged.own_regret == pytest.approx(own - found[book], abs=NEAR)
    assert found[frozenset(judged.own_set.tolist())] == pytest.approx(own, abs=NEAR)
    _check_entries(judged, found, book)
    _check_dropping(judged, found, book)
    _check_learning(judged, found, book, learn)
    _check_holes(judged, found, book)


def _check_entries(judged, found, book):
    """Forgetting an entry, and each entry of its menu with what is best after it."""
    tree = judged.tree
    for k, entry in enumerate(judged.memorization_set.tolist()):
        without = book - _behind(tree, entry)
        assert judged.forgetting[k] == pytest.approx(found[book] - found[without], abs=NEAR)
        before, menu = _chain(tree, entry), _entries_at(tree, int(tree.entry_infoset[entry]))
        worth = {e: _best(found, _PENALTY, _with(tree, before, e)) for e in menu}
        assert judged.loss[k] == pytest.approx(max(worth.values()) - worth[entry], abs=NEAR)
        better = int(judged.better[k])
        assert better < 0 or worth[better] == pytest.approx(max(worth.values()), abs=NEAR)


def _check_dropping(judged, found, book):
    """Check that the entries left at each price are the best part of the book, and that the order agrees."""
    prices = np.unique(judged.threshold)
    for price in [-1.0, *((prices[1:] + prices[:-1]) / 2.0)]:
        left = frozenset(judged.memorization_set[judged.threshold > price].tolist())
        best = _best(found, price, lambda chosen: chosen <= book)
        assert found[left] - price * len(left) == pytest.approx(best, abs=NEAR)
    still = set(book)
    for entry in judged.drop_order.tolist():
        still.remove(entry)
        assert frozenset(still) in found  # closed all the way
    assert not still


def _check_learning(judged, found, book, learn):
    lessons, left = judged.lessons, set(book)
    most = _best(found, 0.0, lambda chosen: book <= chosen and len(chosen) <= len(book) + learn)
    assert judged.utility + lessons.gain.sum() == pytest.approx(most, abs=NEAR)
    for entry, gain in zip(lessons.entry.tolist(), lessons.gain.tolist(), strict=True):
        before = found[frozenset(left)]
        left.add(entry)
        assert found[frozenset(left)] - before == pytest.approx(gain, abs=NEAR)
    for entry, net_gain in zip(lessons.entry.tolist(), lessons.net_gain.tolist(), strict=True):
        without = frozenset(left - _behind(judged.tree, entry))
        assert found[frozenset(left)] - found[without] == pytest.approx(net_gain, abs=NEAR)


def _check_holes(judged, found, book):
    tree, holes = judged.tree, judged.holes
    answered = {int(tree.entry_infoset[entry]) for entry in book}
    expected = {
        k
        for k in range(tree.num_infosets)
        if tree.infoset_player[k] == judged.player
        and k not in answered
        and (tree.previous[k] < 0 or int(tree.previous[k]) in book)
    }
    assert set(holes.infoset.tolist()) == expected and (np.diff(holes.cost) <= 0.0).all()
    for infoset, cost in zip(holes.infoset.tolist(), holes.cost.tolist(), strict=True):
        more = set().union(*(_behind(tree, entry) for entry in _entries_at(tree, infoset)))
        best = _best(found, _PENALTY, lambda chosen, more=more: book <= chosen <= book | more)
        worth = found[book] - _PENALTY * len(book)
        assert cost == pytest.approx(best - worth, abs=NEAR)


# -- against the worst opponent --------------------------------------------------------------------------


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
    assert _least(share, p, v) == pytest.approx(program.fun, abs=NEAR)


def _worst(tree, player, share, members):
    """Return a set's utility against the worst opponent, by recursion over histories."""
    memorized = {int(tree.entry_infoset[entry]): entry for entry in members}
    own = tree.value if player == 0 else tree.utility_sum - tree.value

    def value(h, booked):
        children, infoset, odds = list(tree.children(h)), int(tree.infoset[h]), tree.sigma
        decides, nature = tree.player[h] == player and infoset >= 0, tree.player[h] == 1 - player
        entry = memorized.get(infoset) if decides and booked else None
        if not children or (decides and entry is None and tree.stop_value == "evaluate"):
            return float(own[h])
        if entry is not None:
            children, odds = [c for c in children if tree.edge_entry[c] == entry], tree.sigma_pre
        children = [c for c in children if nature or odds[c] > 0.0]  # nature may play what the model does not
        booked = booked and (tree.player[h] != player or entry is not None)
        p, v = odds[children], [value(c, booked) for c in children]
        return _least(share[h], p, v) if nature else float(np.dot(p, v))

    return value(0, True)


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
    assert found.nominal == model >= found.utility - NEAR


@examples(320)
@given(
    preparations("perfect", depth=5, fewest=1, most=100),
    _SHARES,
    st.sampled_from((TINY, 0.02, 0.1)),
    st.sampled_from(("backup", "evaluate", "rival")),
    st.booleans(),
)
def test_robust_sets_against_all_sets(setting, given, penalty, how, weighted):
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
    sets = _sets(setting, tree)
    worth = {members: _worst(tree, player, share, members) for members in sets}
    paid = {members: tree.infoset_weight[tree.entry_infoset[list(members)]].sum() for members in sets}
    largest = int(max(paid.values()))
    at_most = np.array([max(worth[s] for s in sets if paid[s] <= n) for n in range(largest + 1)])
    for budget in (*range(min(largest + 1, 6)), largest, None):
        found = robust_precomputation(tree, player, contamination, budget=budget)
        price, most = (penalty, largest) if budget is None else (0.0, budget)
        best = max(worth[s] - price * paid[s] for s in sets if paid[s] <= most)
        assert found.value == pytest.approx(best, abs=NEAR)
        assert found.value == pytest.approx(found.utility - price * found.paid, abs=1e-12)
        members = frozenset(found.memorization_set.tolist())
        assert worth[members] == pytest.approx(found.utility, abs=NEAR)
        assert found.paid == paid[members]
        assert found.unprepared == pytest.approx(worth[frozenset()], abs=NEAR)
        _check_certificate(found)
        assert found.utilities == pytest.approx(at_most[found.sizes], abs=NEAR)
        assert found.utilities[-1] == pytest.approx(found.utility, abs=1e-12)
        if budget is None:  # all that are worth more than what is smaller
            worths = at_most - price * np.arange(largest + 1)
            before = np.append(-np.inf, np.maximum.accumulate(worths)[:-1])
            assert np.isin(np.flatnonzero(worths > before + NEAR), found.sizes).all()


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
