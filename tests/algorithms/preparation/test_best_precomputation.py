"""Algorithm 1 against brute force over prefix-closed sets and OpenSpiel's own scoring."""

import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

from precomp_games import HistoryTree, RolloutValues
from precomp_games.algorithms import best_precomputation
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

_MOST_SETS = 800


def _penalties(player: int, penalty: float) -> tuple[float, float]:
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


def _policies(seed: int, support: str, by: str):
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, support, by) for i in (0, 1))
    return pre, sigma


def _small_enough(game, player: int) -> bool:
    return reference.count_prefix_closed_sets(reference.predecessors(game, player)) <= _MOST_SETS


def _check(game, player, penalty, pre, sigma, tree) -> bool:
    """Compares with brute force; returns whether anything was memorized."""
    value, utility, chosen = reference.best_set(game, player, penalty, pre, sigma)
    best = best_precomputation(tree, player)
    assert best.value == pytest.approx(value, abs=1e-9)
    assert best.utility == pytest.approx(utility, abs=1e-9)
    assert best.size == len(chosen)
    names = {reference.information_state(game, tree.state(state.history), player) for state in best.states()}
    assert names == chosen
    assert best.value == pytest.approx(best.utility - penalty * best.size, abs=1e-12)
    assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
    return bool(chosen)


@pytest.mark.parametrize("support", ["full", "partial", "pure"])
def test_perfect_information_against_brute_force(support):
    compared = memorized = 0
    for seed in range(80):
        game = random_tree(seed, depth=3 + seed % 2, actions=2 + seed % 2)
        pre, sigma = _policies(seed, support, "history")
        for player in (0, 1):
            if not _small_enough(game, player):
                continue
            penalty = (0.003, 0.03, 0.15)[seed % 3]
            tree = HistoryTree.from_game(
                game,
                sigma_pre=pre,
                sigma=sigma,
                penalties=_penalties(player, penalty),
                truncate="reach" if seed % 4 else "none",
            )
            tree.check()
            memorized += _check(game, player, penalty, pre, sigma, tree)
            compared += 1
    assert compared >= 100
    assert memorized >= 30


@pytest.mark.parametrize("support", ["full", "partial"])
def test_imperfect_information_against_brute_force(support):
    compared = memorized = 0
    for seed in range(70):
        game = random_efg(seed, depth=3 + seed % 2, actions=2 + seed % 2)
        pre, sigma = _policies(seed, support, "infoset")
        for player in (0, 1):
            if not _small_enough(game, player):
                continue
            penalty = (0.003, 0.03, 0.3)[seed % 3]
            tree = HistoryTree.from_game(
                game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, penalty)
            )
            memorized += _check(game, player, penalty, pre, sigma, tree)
            compared += 1
    assert compared >= 60
    assert memorized >= 20


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("seed", range(10))
def test_kuhn_poker_against_brute_force(player, seed):
    game = pyspiel.load_game("kuhn_poker")
    pre, sigma = _policies(seed, ("full", "partial", "pure")[seed % 3], "infoset")
    for penalty in (0.001, 0.05, 0.3):
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, penalty))
        _check(game, player, penalty, pre, sigma, tree)


def test_truncation_reckons_with_the_range_of_utilities():
    # Every reach is at most 1/3 < lambda, and yet memorizing is worth 0.6: R = 4, not 1.
    def bet(state):
        return {1: 1.0}

    def passes(state):
        return {0: 1.0}

    game = pyspiel.load_game("kuhn_poker")
    tree = HistoryTree.from_game(game, sigma_pre=bet, sigma=(passes, bet), penalties=(0.4, math.inf))
    best = best_precomputation(tree, 0)
    assert best.unprepared == pytest.approx(-1.0)
    assert best.value == pytest.approx(-0.4)
    assert best.size > 0


@pytest.mark.parametrize("player", [0, 1])
def test_both_meanings_of_stopping_agree_where_values_are_exact(player):
    for seed in range(20):
        game = random_tree(seed, depth=4, actions=2)
        pre, sigma = _policies(seed, "partial", "history")
        trees = [
            HistoryTree.from_game(
                game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, 0.02), stop_value=stop_value
            )
            for stop_value in ("backup", "evaluate")
        ]
        first, second = (best_precomputation(tree, player) for tree in trees)
        assert first.value == pytest.approx(second.value, abs=1e-12)
        assert first.size == second.size


def test_a_large_penalty_leaves_the_empty_set():
    for seed in range(20):
        game = random_tree(seed)
        pre, sigma = _policies(seed, "full", "history")
        expected = reference.expected_utility(game, (frozenset(), frozenset()), pre, sigma)
        for player in (0, 1):
            for penalty in (1e6, math.inf):
                penalties = _penalties(player, penalty)
                best = best_precomputation(
                    HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties), player
                )
                assert best.size == 0
                own = expected if player == 0 else 1.0 - expected
                assert best.value == pytest.approx(own, abs=1e-12)
                assert best.utility == best.unprepared == best.value


def test_a_small_penalty_is_worth_at_least_both_policies():
    for seed in range(20):
        game = random_tree(seed)
        pre, sigma = _policies(seed, "full", "history")
        best = best_precomputation(
            HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(1e-9, math.inf)), 0
        )
        nothing = frozenset()
        everything = frozenset(reference.predecessors(game, 0))
        for chosen in (nothing, everything):
            assert best.utility >= (reference.expected_utility(game, (chosen, nothing), pre, sigma) - 1e-9)


def test_value_falls_and_the_set_shrinks_as_the_penalty_grows():
    game = random_tree(3, depth=6)
    pre, sigma = _policies(3, "full", "history")
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(1e-4, math.inf))
    previous = None
    for penalty in np.geomspace(1e-4, 1.0, 30):
        best = best_precomputation(tree.with_penalties((float(penalty), math.inf)), 0)
        own = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(float(penalty), math.inf))
        assert best_precomputation(own, 0).value == pytest.approx(best.value, abs=1e-12)
        if previous is not None:
            assert best.value <= previous.value + 1e-12
            assert set(best.memorization_set) <= set(previous.memorization_set)
        previous = best


_LARGE = ["tic_tac_toe", "pig(winscore=4,horizon=9)"]


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", *_LARGE])
@pytest.mark.parametrize("player", [0, 1])
def test_the_policy_earns_the_utility(name, player):
    game = pyspiel.load_game(name)
    uniform = openspiel_policy.UniformRandomPolicy(game)
    by = "infoset" if "poker" in name else "history"
    pre, sigma = random_policy(1, "partial", by), random_policy(2, "full", by)
    if name == "tic_tac_toe":  # the full game, small enough to score exactly
        pre, sigma = random_policy(1, "pure", by), uniform
    penalty = 0.002
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, penalty))
    best = best_precomputation(tree, player)
    assert best.size > 0
    policies = [_AsPolicy(game, sigma)] * 2
    policies[player] = best.policy()
    scores = expected_game_score.policy_value(game.new_initial_state(), policies)
    assert scores[player] == pytest.approx(best.utility, abs=1e-9)


class _AsPolicy(openspiel_policy.Policy):
    """A function of the state as an OpenSpiel policy."""

    def __init__(self, game, function):
        super().__init__(game, [0, 1])
        self.function = function

    def action_probabilities(self, state, player_id=None):
        if isinstance(self.function, openspiel_policy.Policy):
            return self.function.action_probabilities(state, player_id)
        return self.function(state)


def test_positions_shared_give_the_same_answer():
    game = pyspiel.load_game("tic_tac_toe")
    cache = {}

    def by_board(seed):
        inner = random_policy(seed, "partial")

        def policy(state):
            board = (seed, state.observation_string(0))
            if board not in cache:
                cache[board] = inner(state)
            return cache[board]

        return policy

    pre, sigma = by_board(1), by_board(2)
    shared = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=(0.001, math.inf),
        position_key=lambda s: s.observation_string(0),
    )
    apart = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.001, math.inf))
    assert shared.num_histories == apart.num_histories
    assert shared.num_positions < apart.num_positions
    assert shared.work["policy_queries"] < apart.work["policy_queries"]
    one, two = best_precomputation(shared, 0), best_precomputation(apart, 0)
    assert one.value == pytest.approx(two.value, abs=1e-12)
    assert one.memorization_set.tolist() == two.memorization_set.tolist()
    assert 0 < one.num_positions <= one.size == two.num_positions


def test_a_finite_penalty_of_the_opponent_changes_nothing():
    game = random_tree(5)
    pre, sigma = _policies(5, "full", "history")
    alone = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.02, math.inf))
    both = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.02, 0.01))
    one, two = best_precomputation(alone, 0), best_precomputation(both, 0)
    assert one.value == pytest.approx(two.value, abs=1e-12)
    assert one.size == two.size


def test_sampled_leaves_lose_at_most_epsilon():
    game = random_tree(11, depth=5)
    pre, sigma = _policies(11, "full", "history")
    exact = best_precomputation(
        HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.05, math.inf)), 0
    )
    lost = []
    for seed in range(40):
        values = RolloutValues(epsilon=0.5, delta=0.1, seed=seed)
        tree = HistoryTree.from_game(
            game, sigma_pre=pre, sigma=sigma, penalties=(0.05, math.inf), leaf_value=values
        )
        sets = frozenset(str(list(state.actions)) for state in best_precomputation(tree, 0).states())
        utility = reference.expected_utility(game, (sets, frozenset()), pre, sigma)
        lost.append(exact.value - (utility - 0.05 * len(sets)))
    assert min(lost) > -1e-9  # nothing beats the optimum
    assert sum(loss > 0.5 for loss in lost) <= 4  # delta = 0.1 of 40


@pytest.mark.parametrize("bad", [2, -1, "0", None, True])
def test_bad_player(bad):
    tree = HistoryTree.from_game(
        random_tree(1), sigma_pre=random_policy(1), sigma=random_policy(2), penalties=0.1
    )
    with pytest.raises(ValueError, match=r"best_precomputation\(\): expected player 0 or 1, got"):
        best_precomputation(tree, bad)


def test_bad_tree():
    with pytest.raises(ValueError, match=r"best_precomputation\(\): expected tree to be a HistoryTree"):
        best_precomputation("tree", 0)
    tree = HistoryTree.from_game(
        random_tree(1),
        sigma_pre=random_policy(1),
        sigma=random_policy(2),
        penalties=(0.1, math.inf),
        stop_value="evaluate",
        truncate="values",
    )
    with pytest.raises(ValueError, match="expected the tree's precomputing player, 0"):
        best_precomputation(tree, 1)


def test_a_loaded_tree_needs_sigma_only_off_the_book(tmp_path):
    game = random_tree(3, depth=6)
    pre, sigma = _policies(3, "partial", "history")
    HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.001, math.inf)).save(
        tmp_path / "tree.npz"
    )
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
