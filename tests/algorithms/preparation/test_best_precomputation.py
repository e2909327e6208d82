"""Algorithm 1 against brute force over prefix-closed sets and OpenSpiel's own scoring."""

import math

import pytest

from precomp_games import HistoryTree, RolloutValues
from precomp_games.algorithms import MetaStrategy, best_precomputation, memory_frontier
from tests.oracles import books
from tests.oracles.games import SUPPORTS, expand, policy_pairs, random_case, random_tree, sides
from tests.oracles.preparation import all_sets, names_of, one_sided


@pytest.mark.parametrize("kind", ["tree", "efg", "kuhn_poker"])
def test_against_brute_force(kind, cases):
    """On cut and on whole trees, by both meanings of stopping, whatever the opponent pays."""
    seeds = cases(40 if kind == "kuhn_poker" else 160)
    compared = memorized = 0
    for seed in range(seeds):
        size = {} if kind == "kuhn_poker" else {"depth": 3 + seed % 2, "actions": 2 + seed % 2}
        game, pre, sigma = random_case(kind, seed, SUPPORTS[seed % 3], **size)
        for player in (0, 1):
            sets = all_sets(game, player, pre, sigma, 800)
            if not sets:
                continue
            penalty, evaluated = (0.003, 0.03, 0.15)[seed // 3 % 3], seed % 4 == 1
            tree = expand(
                game,
                pre,
                sigma,
                sides(player, penalty, 0.01 if seed % 4 == 3 else math.inf),
                truncate="reach" if seed % 4 else "none",
                stop_value="evaluate" if evaluated else "backup",
            )
            tree.check()
            best = best_precomputation(tree, player)
            chosen = max(sets, key=lambda names, sets=sets, cost=penalty: sets[names] - cost * len(names))
            assert names_of(tree, player, best.memorization_set) == chosen and best.size == len(chosen)
            assert best.utility == pytest.approx(sets[chosen], abs=1e-9)
            assert best.unprepared == pytest.approx(sets[frozenset()], abs=1e-9)
            assert best.value == pytest.approx(best.utility - penalty * best.size, abs=1e-12)
            assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
            compared += 1
            memorized += best.size > 0
    assert compared >= seeds
    assert memorized >= seeds / 4


def test_sampled_leaves_lose_at_most_epsilon():
    game, (pre, sigma) = random_tree(11, depth=5), policy_pairs(11)
    exact = best_precomputation(one_sided(game, 0, pre, sigma, 0.05), 0)
    lost = []
    for seed in range(20):
        values = RolloutValues(epsilon=0.5, delta=0.1, seed=seed)
        tree = one_sided(game, 0, pre, sigma, 0.05, leaf_value=values)
        chosen = names_of(tree, 0, best_precomputation(tree, 0).memorization_set)
        utility = books.expected_utility(game, (chosen, frozenset()), pre, sigma)
        lost.append(exact.value - (utility - 0.05 * len(chosen)))
    assert min(lost) > -1e-9  # nothing beats the optimum
    assert sum(loss > 0.5 for loss in lost) <= 2  # delta = 0.1 of 20


@pytest.mark.parametrize("call", [best_precomputation, memory_frontier])
def test_evaluated_trees_know_one_player_and_no_strategies(call):
    game, policies, options = random_tree(1), policy_pairs(1), {"stop_value": "evaluate"}
    evaluated = one_sided(game, 0, *policies, 0.1, truncate="values", **options)
    with pytest.raises(ValueError, match="expected the tree's precomputing player, 0"):
        call(evaluated, 1)
    rival = MetaStrategy.of_set(one_sided(game, 0, *policies, 0.1), 1, [])
    with pytest.raises(ValueError, match=rf'{call.__name__}\(\): .* with stop_value="backup"'):
        call(evaluated, 0, opponent=rival)


def test_a_loaded_tree_needs_sigma_only_off_the_book(tmp_path):
    game = random_tree(3, depth=6)
    pre, sigma = policy_pairs(3, "partial")
    one_sided(game, 0, pre, sigma, 0.001).save(tmp_path / "tree.npz")
    tree = HistoryTree.load(tmp_path / "tree.npz")
    best = best_precomputation(tree, 0)
    on_book = next(best.states())
    state = tree.state(on_book.history)
    row = dict.fromkeys(state.legal_actions(), 0.0) | pre[0](state)
    assert best.policy().action_probabilities(state) == pytest.approx(row)
    off_book = set(range(tree.num_histories)) - {state.history for state in best.states()}
    state = tree.state(next(h for h in off_book if tree.player[h] == 0))
    with pytest.raises(ValueError, match=r"give policy\(sigma=...\)"):
        best.policy().action_probabilities(state)
    assert best.policy(sigma).action_probabilities(state) == sigma[0](state)
