"""Books that answer every visit, and exchanging their positions: by play, and by all books of small games."""

import itertools

import pytest

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    every_visit_exchange,
    every_visit_policy,
    every_visit_utility,
)
from tests.algorithms.preparation.cases import one_sided
from tests.expansion.test_alike import coin
from tests.history_tree.cases import efg
from tests.random_games import SUPPORTS, first, policy_pairs, random_efg, random_tree
from tests.reference import play_value


def _game(kind, seed):
    """(game, policies, a key of what the player who moves can tell of a state)."""
    if kind == "positions":
        game = random_tree(seed, depth=5, actions=2, width=3)
        return game, policy_pairs(seed, SUPPORTS[seed % 3], "position"), str
    key = _known if kind == "information states" else _known_in_part
    return random_efg(seed, depth=5), policy_pairs(seed, by="infoset"), key


def _known(state):
    return state.information_state_string()


def _known_in_part(state):
    return sum(_known(state).encode()) % 2 + 10 * state.move_number()


def _books(game, player, pre, sigma, penalty):
    """The best one with a price per position, and one that a budget cuts short."""
    tree = one_sided(game, player, pre, sigma, penalty, price="positions", position_key=str)
    whole = best_precomputation(tree, player, price="positions")
    size = max(1, whole.size // 3)
    return whole, best_precomputation(tree, player, price="positions", budget=size)


def _large_books(count):
    """(game, sigma, the player, book) of games in which something is memorized."""
    given = 0
    for seed in itertools.count():
        game, player = random_tree(seed, depth=7, actions=2, width=3), seed % 2
        pre, sigma = policy_pairs(seed, "partial", "position")
        books = _books(game, player, pre, sigma, 0.005)
        if books[0].size >= 4:
            yield from ((game, sigma, player, book) for book in books)
            given += 1
        if given == count:
            return


def _rows_of(book, key, infosets):
    """{key: the rows that are memorized at one of these information states}."""
    found = {}
    for k in infosets:
        where = key(book.tree.state(int(book.tree.infoset_history[k])))
        rows = found.setdefault(where, [])
        row = book.tree.memorized_row(k)
        rows += [row] if row not in rows else []
    return found


def _answered(game, player, rows, sigma, key):
    """What play is worth where a position of the book is answered whenever it comes up."""
    policies = list(sigma)
    policies[player] = lambda state: rows.get(key(state)) or sigma[player](state)
    return play_value(game.new_initial_state(), policies, player)


def test_values_are_those_of_play_and_never_less(cases):
    """The book's, which may differ from those of its lines, and what exchange makes of it."""
    better = differs = 0
    for game, sigma, player, book in _large_books(cases(16)):
        start = game.new_initial_state()
        rows = _rows_of(book, str, book.memorization_set.tolist())
        answers = {where: found[0] for where, found in rows.items()}
        before = every_visit_utility(book, str, sigma=sigma)
        assert before == pytest.approx(_answered(game, player, answers, sigma, str), abs=1e-12)
        policy = every_visit_policy(book, str).action_probabilities
        assert before == pytest.approx(play_value(start, [policy, policy], player), abs=1e-12)
        lines = play_value(start, [book.policy().action_probabilities] * 2, player)
        assert lines == pytest.approx(book.utility, abs=1e-9)
        differs += abs(before - lines) > 1e-9
        found = every_visit_exchange(book, str)
        assert found.before == pytest.approx(before, abs=1e-12)
        utility = _answered(game, player, found.rows, sigma, str)
        assert found.utility == pytest.approx(utility, abs=1e-12)
        assert found.utility >= found.before and (found.exchanges > 0) == (found.utility > found.before)
        assert len(found.rows) <= len(rows)
        better += found.exchanges > 0
    assert differs and better  # there is something to exchange in some of them


@pytest.mark.parametrize("kind", ["positions", "information states", "joined information states"])
def test_no_book_of_the_size_is_better_in_most_small_games(kind, cases):
    """Exchange is local: it is never above the best of all books, by play on states, and mostly there."""
    compared = best_found = 0
    for seed in range(cases(104 if kind == "positions" else 24)):
        (game, (pre, sigma), key), player = _game(kind, seed), seed % 2
        if kind == "positions":
            _, book = _books(game, player, pre, sigma, 0.05)
        else:
            book = best_precomputation(one_sided(game, player, pre, sigma, truncate="none"), player, budget=2)
        tree = book.tree
        where = _rows_of(book, key, [k for k in range(tree.num_infosets) if tree.infoset_player[k] == player])
        size = len(_rows_of(book, key, book.memorization_set.tolist()))
        if not size or len(where) > 12 or max(map(len, where.values())) > 2:
            continue
        compared += 1
        found = every_visit_exchange(book, key)
        assert found.before == pytest.approx(every_visit_utility(book, key), abs=1e-12)
        utility = _answered(game, player, found.rows, sigma, key)
        assert found.utility == pytest.approx(utility, abs=1e-12)
        best = max(
            _answered(game, player, dict(zip(kept, rows, strict=True)), sigma, key)
            for n in range(size + 1)
            for kept in itertools.combinations(where, n)
            for rows in itertools.product(*(where[w] for w in kept))
        )
        assert found.utility <= best + 1e-12
        best_found += found.utility >= best - 1e-9
    assert compared >= cases(6) and best_found >= 0.8 * compared


def test_limits():
    _, _, _, book = next(_large_books(1))
    assert every_visit_exchange(book, str, max_exchanges=0).exchanges == 0
    with pytest.raises(ValueError, match="at most max_positions=3 positions"):
        every_visit_exchange(book, str, max_positions=3)


def test_hidden_things_are_not_looked_at():
    book = best_precomputation(one_sided(coin(), 0, Menu.of_actions(), first, 0.01), 0)
    for value in (every_visit_policy, every_visit_utility, every_visit_exchange):
        with pytest.raises(
            ValueError, match=rf"^{value.__name__}\(\): expected position_key .* after 'heads' and"
        ):
            value(book, str)
    exchanged = every_visit_exchange(book, _known).utility
    assert every_visit_utility(book, _known) == exchanged == pytest.approx(0.4)
    with pytest.raises(
        ValueError, match=r"every_visit_exchange\(\): expected sigma\[0\] to be the same at all"
    ):
        every_visit_exchange(book, _known, sigma=(lambda s: {s.history()[0]: 1.0}, first))


def test_keys_of_several_kinds():
    """Where changes bring the same, the text of keys decides, and then nothing does: keys have no order."""
    game = efg(
        'c "" 1 "" { "a" 0.5 "b" 0.5 } 0',
        *(line for k in (1, 2) for line in (
            f'p "" 1 {k} "" {{ "l" "r" }} 0', f't "" {2 * k} "" {{ 0 0 }}', f't "" {2 * k + 1} "" {{ 1 -1 }}'
        )),
    )  # fmt: skip
    tree = one_sided(game, 0, lambda state: {1: 1.0}, first, 0.01, truncate="none")
    for budget in (1, 2):
        book = best_precomputation(tree, 0, budget=budget)
        found = every_visit_exchange(book, lambda state: (1, "1")[state.history()[0]])
        assert found.utility == pytest.approx(0.5 * budget)


def test_positions_that_never_come_up():
    """Those of a book against an opponent who prepares, where it does not."""
    game, (pre, sigma) = random_tree(24, depth=5), policy_pairs(0, "pure")
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=1e-6, truncate="none")
    rival = MetaStrategy.of_set(tree, 1, [k for k in range(tree.num_infosets) if tree.infoset_player[k] == 1])
    book = best_precomputation(tree, 0, opponent=rival)
    assert book.size
    found = every_visit_exchange(book, str)
    assert found.before == pytest.approx(every_visit_utility(book, str))
    assert found.utility >= found.before
