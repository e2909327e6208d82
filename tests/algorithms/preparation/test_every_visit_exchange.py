"""Exchanging positions of a book that answers every visit: by play, and by all books of small games."""

from __future__ import annotations

import itertools
import math

import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation, every_visit_exchange, every_visit_utility
from tests.algorithms.preparation.test_position_prices import _pair, _played, _policies
from tests.random_games import random_tree


def book_of(seed, player, depth=7, penalty=0.02):
    """A game, its policies, and a book of it that a budget cuts short."""
    game, (pre, sigma) = random_tree(seed, depth=depth, actions=2, width=3), _policies(seed)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=_pair(player, penalty),
        price="positions",
        position_key=str,
    )
    whole = best_precomputation(tree, player, price="positions")
    size = max(1, len(whole.memorization_set) // 3)
    return game, pre, sigma, best_precomputation(tree, player, price="positions", budget=size)


def answering(rows, sigma, player):
    """Both players' policies, the book's answering by position."""
    play = list(sigma)
    play[player] = lambda state: rows.get(str(state)) or sigma[player](state)
    return play


def test_values_are_those_of_play_and_never_less():
    better = 0
    for seed in range(40):
        player = seed % 2
        game, _, sigma, book = book_of(seed, player)
        found = every_visit_exchange(book, str)
        assert found.before == pytest.approx(every_visit_utility(book, str), abs=1e-12)
        assert found.utility == pytest.approx(
            _played(game, player, answering(found.rows, sigma, player)), abs=1e-12
        )
        assert found.utility >= found.before and (found.exchanges > 0) == (found.utility > found.before)
        known = {str(book.tree.state(book.tree.infoset_history[k])) for k in book.memorization_set.tolist()}
        assert len(found.rows) <= len(known)
        better += found.exchanges > 0
    assert better >= 5  # there is something to exchange in some of them


def test_no_book_of_the_size_is_better_in_most_small_games():
    """Exchange is local: it is never above the best of all books, and mostly there."""
    best_found = cases = 0
    for seed in range(120):
        player = seed % 2
        game, _, sigma, book = book_of(seed, player, depth=5, penalty=0.05)
        tree = book.tree
        own = [k for k in range(tree.num_infosets) if tree.infoset_player[k] == player]
        where = {str(tree.state(tree.infoset_history[k])): tree.memorized_row(k) for k in own}
        known = {str(tree.state(tree.infoset_history[k])) for k in book.memorization_set.tolist()}
        size = len(known)
        if not 0 < len(where) <= 12 or size == 0:
            continue
        cases += 1
        found = every_visit_exchange(book, str)
        best = max(
            _played(game, player, answering({w: where[w] for w in kept}, sigma, player))
            for n in range(size + 1)
            for kept in itertools.combinations(where, n)
        )
        assert found.utility <= best + 1e-12
        best_found += found.utility >= best - 1e-9
    assert cases >= 20 and best_found >= 0.9 * cases


def test_limits():
    _, _, _, book = book_of(0, 0)
    assert every_visit_exchange(book, str, max_exchanges=0).exchanges == 0
    with pytest.raises(ValueError, match="at most max_positions=3 positions"):
        every_visit_exchange(book, str, max_positions=3)
    assert math.isfinite(every_visit_exchange(book, str).utility)
