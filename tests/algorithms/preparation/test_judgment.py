"""A book that is there already, against brute force over all sets with all choices of entries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.algorithms import judge_book
from tests.oracles.preparation import NEAR, named, preparations
from tests.properties import examples

_PENALTY = 0.02


def _entries(setting, tree):
    """Return {set of entries: utility}; sets with what is never reached are not in the tree."""
    entry_of = {}
    for entry in range(tree.num_entries):
        (pair,) = named(tree, setting.player, [entry])
        entry_of[pair] = entry
    known = {chosen: u for chosen, u in setting.by_name.items() if chosen <= entry_of.keys()}
    return {frozenset(entry_of[pair] for pair in chosen): u for chosen, u in known.items()}


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
    found, rng = _entries(setting, tree), np.random.default_rng(setting.seed)
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
