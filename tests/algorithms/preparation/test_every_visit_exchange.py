"""Exchanging positions of a book that answers every visit: by play, and by all books of small games."""

from __future__ import annotations

import itertools
import math

import pytest

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    every_visit_exchange,
    every_visit_policy,
    every_visit_utility,
)
from tests.algorithms.preparation.test_position_prices import _pair, _played, _policies
from tests.expansion.test_alike import coin
from tests.history_tree.cases import efg, first
from tests.random_games import random_efg, random_policy, random_tree


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


def answering(rows, sigma, player, key=str):
    """Both players' policies, the book's answering by position."""
    play = list(sigma)
    play[player] = lambda state: rows.get(key(state)) or sigma[player](state)
    return play


def known(state):
    """What the player who moves can tell of a state."""
    return state.information_state_string()


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


def test_hidden_things_are_not_looked_at():
    tree = HistoryTree.from_game(
        coin(), sigma_pre=(Menu.of_actions(), None), sigma=first, penalties=(0.01, math.inf)
    )
    book = best_precomputation(tree, 0)
    for value in (every_visit_policy, every_visit_utility, every_visit_exchange):
        with pytest.raises(
            ValueError, match=rf"^{value.__name__}\(\): expected position_key .* after 'heads' and"
        ):
            value(book, str)
    assert every_visit_utility(book, known) == every_visit_exchange(book, known).utility == pytest.approx(0.4)
    with pytest.raises(
        ValueError, match=r"every_visit_exchange\(\): expected sigma\[0\] to be the same at all"
    ):
        every_visit_exchange(book, known, sigma=(lambda s: {s.history()[0]: 1.0}, first))


@pytest.mark.parametrize(
    "group", [known, lambda state: sum(known(state).encode()) % 2 + 10 * state.move_number()]
)
def test_books_by_information_states(group):
    """Against all books, by play on states; the second key joins information states."""
    cases = better = best_found = 0
    for seed in range(24):
        player, game = seed % 2, random_efg(seed, depth=5)
        pre, sigma = ([random_policy(4 * seed + k, by="infoset") for k in ks] for ks in ((0, 1), (2, 3)))
        tree = HistoryTree.from_game(
            game, sigma_pre=pre, sigma=sigma, penalties=_pair(player, 1e-9), truncate="none"
        )
        book = best_precomputation(tree, player, budget=2)
        own = [k for k in range(tree.num_infosets) if tree.infoset_player[k] == player]
        where = {}
        for k in own:
            where.setdefault(group(tree.state(tree.infoset_history[k])), []).append(tree.memorized_row(k))
        size = len({group(tree.state(tree.infoset_history[k])) for k in book.memorization_set.tolist()})
        if not size or len(where) > 12 or max(map(len, where.values())) > 2:
            continue
        cases += 1
        found = every_visit_exchange(book, group)
        assert found.before == pytest.approx(every_visit_utility(book, group), abs=1e-12)
        assert found.utility == pytest.approx(
            _played(game, player, answering(found.rows, sigma, player, group)), abs=1e-12
        )
        best = max(
            _played(game, player, answering(dict(zip(kept, rows, strict=True)), sigma, player, group))
            for n in range(size + 1)
            for kept in itertools.combinations(where, n)
            for rows in itertools.product(*(where[w] for w in kept))
        )
        assert found.utility <= best + 1e-12
        better += found.exchanges > 0
        best_found += found.utility >= best - 1e-9
    assert cases >= 6 and better and best_found >= 0.8 * cases


def test_keys_of_several_kinds():
    """Where changes bring the same, the text of keys decides, and then nothing does: keys have no order."""
    game = efg(
        'c "" 1 "" { "a" 0.5 "b" 0.5 } 0',
        *(line for k in (1, 2) for line in (
            f'p "" 1 {k} "" {{ "l" "r" }} 0', f't "" {2 * k} "" {{ 0 0 }}', f't "" {2 * k + 1} "" {{ 1 -1 }}'
        )),
    )  # fmt: skip
    tree = HistoryTree.from_game(
        game, sigma_pre=lambda s: {1: 1.0}, sigma=first, penalties=(0.01, math.inf), truncate="none"
    )
    key = lambda state: (1, "1")[state.history()[0]]  # noqa: E731
    for budget in (1, 2):
        book = best_precomputation(tree, 0, budget=budget)
        assert every_visit_exchange(book, key).utility == pytest.approx(0.5 * budget)


def test_positions_that_never_come_up():
    """Those of a book against an opponent who prepares, where it does not."""
    game = random_tree(24, depth=5)
    pre, sigma = ([random_policy(k, "pure") for k in ks] for ks in ((0, 1), (2, 3)))
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=1e-6, truncate="none")
    rival = MetaStrategy.of_set(tree, 1, [k for k in range(tree.num_infosets) if tree.infoset_player[k] == 1])
    book = best_precomputation(tree, 0, opponent=rival)
    assert book.size
    found = every_visit_exchange(book, str)
    assert found.before == pytest.approx(every_visit_utility(book, str))
    assert found.utility >= found.before
