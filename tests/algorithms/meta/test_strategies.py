"""What a strategy of the meta-game may be made of, and which trees it may be used on."""

import math

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import (
    EntropyBounds,
    MetaGamePolicy,
    MetaStrategy,
    best_precomputation,
    entropy_lower_bound,
    memorized_states,
    memory_frontier,
    meta_exploitability,
    meta_game_policy,
    theorem_2_bound,
)
from tests.random_games import random_policy, random_tree


def _tree(penalties=(0.001, 0.002), sigma=2, **options):
    return HistoryTree.from_game(
        random_tree(3, depth=5),
        sigma_pre=random_policy(1),
        sigma=random_policy(sigma),
        penalties=penalties,
        truncate="none",
        **options,
    )


@pytest.fixture(scope="module")
def tree():
    return _tree()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: np.zeros(1),  # read beyond its end: an expected size of 6.9e-310
        lambda m: np.zeros(m + 1),
        lambda m: np.zeros((1, m)),
        lambda m: np.full(m, math.nan),
        lambda m: np.full(m, 2.0),
        lambda m: np.full(m, -1.0),
        lambda m: 0.5,
        lambda m: ["a"] * m,
        lambda m: None,
    ],
)
def test_bad_probabilities(tree, wrong):
    message = rf"MetaStrategy\(\): expected memorize to be {tree.num_infosets} probabilities, got"
    with pytest.raises(ValueError, match=message):
        MetaStrategy(tree, 0, wrong(tree.num_infosets))


@pytest.mark.parametrize("player", [5, -1, 0.0, True, "0", None])
def test_bad_player(tree, player):
    zeros = np.zeros(tree.num_infosets)
    with pytest.raises(ValueError, match=r"MetaStrategy\(\): expected player 0 or 1, got"):
        MetaStrategy(tree, player, zeros)
    with pytest.raises(ValueError, match=r"MetaStrategy.of_set\(\): expected player 0 or 1, got"):
        MetaStrategy.of_set(tree, player, [])


def test_bad_tree(tree):
    evaluated = _tree(penalties=(0.001, math.inf), stop_value="evaluate")
    for wrong in (None, tree.game):
        with pytest.raises(ValueError, match=r"MetaStrategy\(\): expected tree to be a HistoryTree"):
            MetaStrategy(wrong, 0, np.zeros(evaluated.num_infosets))
        with pytest.raises(ValueError, match=r"MetaStrategy.of_set\(\): expected tree to be a HistoryTree"):
            MetaStrategy.of_set(wrong, 0, [])
    one_sided = (MetaStrategy.of_set(evaluated, 0, []), MetaStrategy.of_set(evaluated, 1, []))
    for name, call in (
        ("meta_exploitability", lambda: meta_exploitability(evaluated, one_sided)),
        ("best_precomputation", lambda: best_precomputation(evaluated, 0, opponent=one_sided[1])),
    ):
        with pytest.raises(ValueError, match=rf'{name}\(\): expected a HistoryTree with stop_value="backup"'):
            call()


@pytest.mark.parametrize(
    "members", [[0.9, 1.9], [0.5], [-1], [10**6], [True], "0", [[0]], [None], 0, None, [10**30]]
)
def test_bad_sets(tree, members):
    """[0.9, 1.9] was taken for [0, 1]."""
    message = (
        rf"of_set\(\): expected memorization_set to be integers of at least 0 and below {tree.num_infosets}"
    )
    with pytest.raises(ValueError, match=message):
        MetaStrategy.of_set(tree, 0, members)


def test_sets_of_any_kind(tree):
    best = best_precomputation(tree, 0).memorization_set
    assert len(best) > 1
    for members in (best, best.tolist(), set(best.tolist()), iter(best.tolist()), best[::-1], [*best, *best]):
        strategy = MetaStrategy.of_set(tree, 0, members)
        assert np.flatnonzero(strategy.memorize).tolist() == best.tolist()
        assert strategy.expected_size == len(best)
    for nothing in ([], (), set(), np.zeros(0)):
        assert MetaStrategy.of_set(tree, 0, nothing).expected_size == 0.0
    with pytest.raises(
        ValueError, match=r"of_set\(\): expected information states of player 0, each with all"
    ):
        MetaStrategy.of_set(tree, 0, best[1:])


def test_the_array_is_the_strategys_own(tree):
    given = np.full(tree.num_infosets, 0.5)
    given[tree.infoset_player == 1] = math.nan  # not player 0's
    strategy = MetaStrategy(tree, 0, given)
    size = strategy.expected_size
    given[:] = 7.0
    assert strategy.expected_size == size > 0.0
    assert not strategy.memorize[tree.infoset_player == 1].any()
    with pytest.raises(ValueError, match="read-only"):
        strategy.memorize[0] = 1.0


def _nothing(tree, player):
    return MetaStrategy.of_set(tree, player, [])


def test_strategies_of_another_tree_are_refused_everywhere(tree):
    other = _tree(sigma=3)
    assert other.num_infosets == tree.num_infosets and other.num_histories == tree.num_histories
    own, rival = _nothing(tree, 0), _nothing(other, 1)
    game = MetaPrecomputationGame(tree)
    for name, call in {
        "meta_exploitability": lambda: meta_exploitability(tree, (own, rival)),
        "meta_game_policy": lambda: meta_game_policy(game, (own, rival)),
        "MetaGamePolicy": lambda: MetaGamePolicy(game, (own, rival)),
        "best_precomputation": lambda: best_precomputation(tree, 0, opponent=rival),
        "memory_frontier": lambda: memory_frontier(tree, 0, opponent=rival),
        "EntropyBounds": lambda: EntropyBounds(tree, 0, opponent=rival),
        "memorized_states": lambda: memorized_states(own, rival),
    }.items():
        with pytest.raises(
            ValueError, match=rf"{name}\(\): expected strategies on .*, got one on another tree"
        ):
            call()


def test_strategies_of_equal_trees_are_taken(tree, tmp_path):
    tree.save(tmp_path / "tree.npz")
    own = _nothing(tree, 0)
    for same in (_tree(), HistoryTree.load(tmp_path / "tree.npz"), tree.with_penalties((0.5, math.inf))):
        rival = _nothing(same, 1)
        assert best_precomputation(tree, 0, opponent=rival).value == best_precomputation(tree, 0).value
        assert meta_exploitability(tree, (own, rival)).sizes == (0.0, 0.0)
        assert memorized_states(own, rival) == []


def test_states_without_an_opponent_are_those_against_sigma(tree):
    best = best_precomputation(tree, 0)
    strategy = MetaStrategy.of_set(tree, 0, best.memorization_set)
    assert best.size > 1
    assert memorized_states(strategy) == memorized_states(strategy, _nothing(tree, 1))


def test_a_tree_from_a_file_knows_what_is_played_where_one_stops(tree, tmp_path):
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz").with_game(tree.game)
    here, there = _nothing(tree, 0).policy(), _nothing(loaded, 0).policy()
    decisions = [int(tree.infoset_history[k]) for k in np.flatnonzero(tree.infoset_player == 0)]
    assert len(decisions) > 1
    for history in decisions:
        state = tree.state(history)
        assert there.action_probabilities(state) == pytest.approx(here.action_probabilities(state))


def test_bad_policies_and_generators(tree):
    strategy = _nothing(tree, 0)
    for sigma in (3, (None, "uniform"), [None] * 3):
        with pytest.raises(ValueError, match=r"MetaStrategy.policy\(\): expected sigma"):
            strategy.policy(sigma)
        with pytest.raises(ValueError, match=r"BestPrecomputation.policy\(\): expected sigma"):
            best_precomputation(tree, 0).policy(sigma)
    for rng in (0, None, np.random):
        with pytest.raises(ValueError, match=r"MetaStrategy.draw\(\): expected rng to be a Generator"):
            strategy.draw(rng)


def test_entropy_bounds_take_sets_and_histories_of_the_tree_only():
    bounds = EntropyBounds(_tree(penalties=(0.001, math.inf)), 0)
    best = best_precomputation(bounds.tree, 0)
    assert bounds.utility(best.memorization_set) == pytest.approx(best.utility)
    assert bounds.utility([*best.memorization_set, *best.memorization_set]) == pytest.approx(best.utility)
    with pytest.raises(
        ValueError, match=r"EntropyBounds.utility\(\): expected information states of player 0"
    ):
        bounds.utility(best.memorization_set[1:])
    with pytest.raises(
        ValueError, match=r"EntropyBounds.utility\(\): expected memorization_set to be integers"
    ):
        bounds.utility([0.5])
    with pytest.raises(ValueError, match=r"EntropyBounds.leading_to\(\): expected histories to be integers"):
        bounds.leading_to([bounds.tree.num_histories])
    with pytest.raises(ValueError, match=r"EntropyBounds\(\): expected utilities .* which is from -"):
        EntropyBounds(bounds.tree, 0, utilities=(0.0, 0.5))


@pytest.mark.parametrize("moves", [1.5, 0, -1, True, "3", math.nan, None])
def test_moves_are_counted(moves):
    with pytest.raises(
        ValueError, match=r"entropy_lower_bound\(\): expected moves to be an integer of at least"
    ):
        entropy_lower_bound(0.5, 0.9, 1.0, 0.001, moves)
    with pytest.raises(
        ValueError, match=r"theorem_2_bound\(\): expected moves to be an integer of at least 1"
    ):
        theorem_2_bound(0.5, 0.9, 0.001, moves)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.inf, math.nan, "0.5"])
def test_values_are_those_of_utilities_from_0_to_1(value):
    for name, call in (
        ("entropy_lower_bound", lambda: entropy_lower_bound(value, 0.9, 1.0, 0.001, 5)),
        ("theorem_2_bound", lambda: theorem_2_bound(value, 0.9, 0.001, 5)),
    ):
        with pytest.raises(ValueError, match=rf"{name}\(\): expected value"):
            call()


def test_a_tree_that_was_cut_elsewhere_is_another_one():
    """The fingerprint does not count penalties, but what they cut."""
    kuhn = pyspiel.load_game("kuhn_poker")
    pre, sigma = random_policy(1, by="infoset"), random_policy(2, by="infoset")
    small, large = (
        HistoryTree.from_game(kuhn, sigma_pre=pre, sigma=sigma, penalties=penalty) for penalty in (0.001, 3.0)
    )
    assert large.num_infosets < small.num_infosets
    with pytest.raises(ValueError, match="another tree"):
        best_precomputation(small, 0, opponent=_nothing(large, 1))
