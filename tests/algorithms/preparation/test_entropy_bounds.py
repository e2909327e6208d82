"""Entropy bounds: Definition 3 against recursion over states, the theorems on every game tried."""

import functools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precomp_games import HistoryTree
from precomp_games.algorithms import MetaStrategy, best_precomputation, meta_equilibrium
from precomp_games.algorithms.preparation.entropy_bounds import (
    EntropyBounds,
    _loss,
    entropy_lower_bound,
    lines_needed,
    theorem_2_bound,
)
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

# -- Lemma 2 ---------------------------------------------------------------------------------------------


def _entropy(p) -> float:
    p = p[p > 0.0]
    return max(0.0, float(-(p * np.log(p)).sum()))


@given(
    st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=60),
    st.floats(0.3, 12.0),
    st.floats(0.001, 0.999),
)
@settings(max_examples=500, deadline=None)
def test_lemma_2(weights, power, mass):
    p = np.sort(np.array(weights) ** power)[::-1]
    p /= p.sum()
    z = lines_needed(_entropy(p), mass)
    assert p[: int(min(z, len(p)))].sum() >= mass - 1e-12


def test_lemma_2_needs_the_ceiling():
    # Of a fair coin, a share of 0.01 takes 0.01 * 2^(1 / 0.99) = 0.02 lines: none, without the ceiling.
    assert lines_needed(math.log(2.0), 0.01) == 1.0
    assert lines_needed(0.0, 0.5) == 1.0
    assert lines_needed(1000.0, 0.9) == math.inf


# -- Definition 3 ----------------------------------------------------------------------------------------


def _lines(game, player, v, pre, sigma):
    """{history: reach} of the advantage lines, by recursion over the base game's states."""
    total = game.utility_sum() or 0.0

    def outcomes(state, policies):
        if state.is_chance_node():
            return state.chance_outcomes()
        return policies[state.current_player()](state).items()

    def worth(state) -> float:
        if state.is_terminal():
            return state.returns()[0] if player == 0 else total - state.returns()[0]
        return sum(p * worth(state.child(a)) for a, p in outcomes(state, sigma) if p > 0.0)

    mixed = [sigma[0], sigma[1]]
    mixed[player] = pre[player]
    found = {}

    def walk(state, reach):
        own = state.is_terminal() or state.current_player() == player
        if own and worth(state) >= v:
            found[tuple(state.history())] = reach
            return
        if not state.is_terminal():
            for action, p in outcomes(state, mixed):
                if p > 0.0:
                    walk(state.child(action), reach * p)

    walk(game.new_initial_state(), 1.0)
    return found


def _games(count, depth=4):
    for seed in range(count):
        game = random_tree(seed, depth=depth, actions=2 + seed % 2)
        support = ("full", "partial", "pure")[seed % 3]
        pre = tuple(random_policy(4 * seed + i, support) for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, ("full", "partial")[seed % 2]) for i in (0, 1))
        yield seed, game, pre, sigma


def _penalties(player, penalty):
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


def _tree(game, pre, sigma, player, penalty=1e-9, **options):
    return HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, penalty), **options
    )


@pytest.mark.parametrize("stop_value", ["backup", "evaluate"])
def test_the_distribution_against_recursion(stop_value):
    compared = 0
    for _, game, pre, sigma in _games(20):
        for player in (0, 1):
            tree = _tree(game, pre, sigma, player, truncate="none", stop_value=stop_value)
            bounds = EntropyBounds(tree, player)
            for v in bounds.thresholds(6):
                v = float(v) - 1e-9  # sums in another order are off by rounding
                expected = _lines(game, player, v, pre, sigma)
                lines = bounds.lines(v)
                got = {tuple(tree.actions(h)): p for h, p in zip(lines.histories, lines.reach, strict=True)}
                assert got == pytest.approx(expected, abs=1e-12)
                assert lines.p_norm == pytest.approx(sum(expected.values()))
                p = np.array(list(expected.values())) / sum(expected.values())
                assert lines.entropy == pytest.approx(_entropy(p), abs=1e-9)
                assert (lines.worth >= v).all()
                compared += len(expected) > 1
    assert compared > 60


def test_the_distribution_against_a_strategy_of_the_opponent():
    compared = 0
    for seed, game, pre, sigma in _games(20):
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01, truncate="none")
        rng = np.random.default_rng(seed)
        for player in (0, 1):
            rival = MetaStrategy(tree, 1 - player, rng.choice([0.0, 0.3, 1.0], tree.num_infosets))
            played = list(sigma)
            played[1 - player] = rival.policy().action_probabilities
            bounds = EntropyBounds(tree, player, opponent=rival)
            for v in bounds.thresholds(6):
                v = float(v) - 1e-9
                lines = bounds.lines(v)
                got = {tuple(tree.actions(h)): p for h, p in zip(lines.histories, lines.reach, strict=True)}
                expected = _lines(game, player, v, pre, played)
                assert got == pytest.approx({h: p for h, p in expected.items() if p > 0.0}, abs=1e-12)
                compared += len(got) > 1
    assert compared > 60


def test_an_advantage_nobody_has():
    game = random_tree(1)
    tree = HistoryTree.from_game(
        game, sigma_pre=random_policy(1), sigma=random_policy(2), penalties=(0.01, math.inf)
    )
    lines = EntropyBounds(tree, 0).lines(5.0)
    assert len(lines.histories) == 0 and lines.p_norm == 0.0 and lines.entropy == 0.0
    made = EntropyBounds(tree, 0).construct(5.0, 0.5)
    assert made.size == 0 and made.utility == pytest.approx(best_precomputation(tree, 0).unprepared)


# -- Theorem 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truncated", [False, True])
def test_theorem_1(truncated):
    """The construction is as small and as good as promised, and no better than the optimum."""
    checked = ceilings = 0
    for seed, game, pre, sigma in _games(40, depth=5):
        for player in (0, 1):
            options = {} if truncated else {"truncate": "none"}
            stop_value = ("backup", "evaluate")[seed % 2]
            penalty = 0.05 if truncated else 1e-9
            tree = _tree(game, pre, sigma, player, penalty, stop_value=stop_value, **options)
            bounds = EntropyBounds(tree, player)
            assert bounds.moves <= game.max_game_length() + 5  # chance moves count
            for v in bounds.thresholds(8):
                for epsilon in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
                    made = bounds.construct(float(v), epsilon)
                    assert made.size <= made.size_bound
                    assert made.utility >= made.utility_bound - 1e-9
                    best = best_precomputation(tree, player, budget=made.size)
                    assert made.utility <= best.utility + 1e-9
                    product = (1.0 - epsilon) * math.exp(bounds.lines(float(v)).entropy / epsilon)
                    ceilings += product < 1.0
                    checked += made.size > 0
    assert checked > 300 and ceilings > 100


def test_the_utility_of_the_construction_by_playing_it_out():
    for _seed, game, pre, sigma in _games(12):
        tree = _tree(game, pre, sigma, 0, truncate="none")
        bounds = EntropyBounds(tree, 0)
        made = bounds.construct(float(bounds.thresholds(5)[-1]), 0.4)
        chosen = frozenset(str(tree.actions(int(tree.infoset_history[k]))) for k in made.memorization_set)
        played = reference.expected_utility(game, (chosen, frozenset()), pre, sigma)
        assert made.utility == pytest.approx(played, abs=1e-9)


def test_bound_construction_and_optimum_are_in_order(cases):
    for seed, game, pre, sigma in _games(cases(30), depth=5):
        for penalty in (0.001, 0.02, 0.2):
            tree = _tree(game, pre, sigma, seed % 2, penalty)
            bounds, best = EntropyBounds(tree, seed % 2), best_precomputation(tree, seed % 2)
            bound, made = bounds.best_bound(penalty), bounds.best_construction(penalty)
            value = made.utility - penalty * made.size
            assert bound.utility_bound - penalty * bound.size_bound <= (
                bound.utility - penalty * bound.size + 1e-9
            )
            assert value <= best.value + 1e-9


def test_the_best_bound_is_not_worse_than_memorizing_nothing_is_promised():
    """The promise at v = u^sigma counts, whichever other v are tried."""
    for seed, game, pre, sigma in _games(20, depth=5):
        tree = _tree(game, pre, sigma, seed % 2, 0.01)
        bounds = EntropyBounds(tree, seed % 2)
        best = bounds.best_bound(0.01, count=2)
        for epsilon in (0.05, 0.5, 0.95):
            made = bounds.construct(bounds.unprepared, epsilon)
            promised = made.utility_bound - 0.01 * made.size_bound
            assert best.utility_bound - 0.01 * best.size_bound >= promised - 1e-9
        assert len(bounds.thresholds(2)) <= 3
        worths = {float(bounds.lines(v).worth.min()) for v in bounds.thresholds(10**6)}
        assert len(worths) > 2  # all there are


@given(st.floats(0.0, 20.0), st.integers(1, 10**6))
@settings(max_examples=200, deadline=None)
def test_the_loss_that_so_many_lines_are_made_for(entropy, z):
    epsilon = _loss(entropy, z)
    assert 0.0 < epsilon < 1.0 and lines_needed(entropy, 1.0 - epsilon) <= z
    if entropy > 1e-6:
        assert lines_needed(entropy, 1.0 - epsilon * (1.0 - 1e-9)) >= z


# -- Theorem 2 -------------------------------------------------------------------------------------------

_TYPE = pyspiel.GameType(
    short_name="python_test_sure_win",
    long_name="A sure win for who knows the way (test)",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.CONSTANT_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=False,
    provides_information_state_tensor=False,
    provides_observation_string=False,
    provides_observation_tensor=False,
    parameter_specification={"replies": 4, "rounds": 2},
)


class SureWinGame(pyspiel.Game):
    """Player 0 answers each of player 1's moves rightly or wrongly, and wins iff never wrongly."""

    def __init__(self, params=None):
        params = params or {}
        self.replies, self.rounds = int(params.get("replies", 4)), int(params.get("rounds", 2))
        info = pyspiel.GameInfo(
            num_distinct_actions=max(2, self.replies),
            max_chance_outcomes=0,
            num_players=2,
            min_utility=0.0,
            max_utility=1.0,
            utility_sum=1.0,
            max_game_length=2 * self.rounds,
        )
        super().__init__(_TYPE, info, params)

    def new_initial_state(self, state=None):
        return SureWinState(self)


class SureWinState(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.replies, self.length = game.replies, 2 * game.rounds
        self.path: tuple[int, ...] = ()

    def current_player(self):
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        return 1 - len(self.path) % 2

    def _legal_actions(self, player):
        return list(range(self.replies if player == 1 else 2))

    def _apply_action(self, action):
        self.path = (*self.path, action)

    def is_terminal(self):
        return len(self.path) == self.length or 1 in self.path[1::2]

    def returns(self):
        won = 1.0 if 1 not in self.path[1::2] else 0.0
        return [won, 1.0 - won]

    def __str__(self):
        return str(self.path)


pyspiel.register_game(_TYPE, SureWinGame)


def _right(state):
    return {0: 1.0}


@pytest.mark.parametrize(
    ("replies", "rounds", "penalty", "own_penalty"),
    [
        (4, 2, 5e-4, 0.02),
        (12, 2, 1e-3, 1.0),
        (12, 2, 2e-5, 0.3),
        (8, 3, 1e-4, 0.05),
        (8, 4, 2e-4, 1.0),
        (6, 4, 1e-5, 0.5),
        (25, 3, 5e-5, 0.5),
    ],
)
def test_theorem_2(replies, rounds, penalty, own_penalty):
    """sigma_pre always wins; sigma of player 0 is right half the time, player 1's is nearly uniform."""
    game = pyspiel.load_game("python_test_sure_win", {"replies": replies, "rounds": rounds})

    def sigma(state):
        if state.current_player() == 0:
            return {0: 0.5, 1: 0.5}
        weights = [1.0 / (1.0 + 0.2 * k) for k in range(replies)]
        return {k: weight / sum(weights) for k, weight in enumerate(weights)}

    tree = HistoryTree.from_game(
        game, sigma_pre=_right, sigma=sigma, penalties=(penalty, own_penalty), truncate="none"
    )
    found = meta_equilibrium(tree, iterations=300, target_nash_conv=1e-4)
    rival = found.strategies[1]
    bounds = EntropyBounds(tree, 0, opponent=rival)
    value = min(1.0, found.value + found.nash_conv)  # the equilibrium's is at most that
    own = best_precomputation(tree, 0, opponent=rival).value
    assert own <= value + 1e-9
    stated = proven = 0
    for v in np.linspace(0.0, 0.999, 40):
        lines = bounds.lines(float(v))
        assert lines.p_norm == pytest.approx(1.0)  # it always wins in the end
        if v > value + 0.01:
            bound = theorem_2_bound(value, float(v), penalty, bounds.moves)
            assert lines.entropy >= bound
            stated += bound > 0.0
        bound = entropy_lower_bound(own, float(v), lines.p_norm, penalty, bounds.moves)
        assert lines.entropy >= bound
        proven += bound > 0.0
    if rounds == 4 or replies == 25:
        assert stated > 0 and proven > 0  # the cases that the test is about


def test_theorem_2_says_nothing_where_it_does_not_speak():
    # Two negative factors: nothing is lacking, and lambda L is beyond e^-5. Their product was 5.35.
    assert theorem_2_bound(0.9, 0.1, 0.5, 10) == 0.0
    assert theorem_2_bound(0.9, 0.1, 1e-6, 10) == 0.0
    assert theorem_2_bound(0.1, 0.9, 0.5, 10) == 0.0
    assert theorem_2_bound(0.1, 0.9, 1e-6, 10) == pytest.approx(0.79 * (5.0 * math.log(10.0) - 5.0))


def test_theorem_2_never_exceeds_the_true_entropy(cases):
    """On random games that sigma_pre always wins, at all v and penalties."""
    rng = np.random.default_rng(0)
    compared = spoke = 0
    for k in range(cases(60)):
        large = k % 3 == 0  # it takes many lines and cheap memory to make the theorem speak
        replies, rounds = (int(rng.integers(10, 22)), 3) if large else (int(rng.integers(2, 9)), k % 4 + 1)
        game = pyspiel.load_game("python_test_sure_win", {"replies": replies, "rounds": rounds})
        right, power = float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.0, 0.5 if large else 3.0))
        weights = np.arange(1.0, replies + 1.0) ** -power
        answer = dict(enumerate((weights / weights.sum()).tolist()))

        def sigma(state, right=right, answer=answer):
            return {0: right, 1: 1.0 - right} if state.current_player() == 0 else answer

        penalty = float(10.0 ** (rng.uniform(-4.5, -3.0) if large else rng.uniform(-6.0, 0.0)))
        tree = HistoryTree.from_game(
            game, sigma_pre=_right, sigma=sigma, penalties=(penalty, math.inf), truncate="none"
        )
        bounds, value = EntropyBounds(tree, 0), best_precomputation(tree, 0).value
        for v in (*bounds.thresholds(8), *rng.random(12)):
            v = min(float(v), 1.0)
            lines = bounds.lines(v)
            assert lines.p_norm == pytest.approx(1.0)
            bound = theorem_2_bound(value, v, penalty, bounds.moves)
            assert 0.0 <= bound <= lines.entropy
            compared += 1
            spoke += bound > 0.0
    assert compared > cases(900) and spoke > cases(20)


def test_the_general_bound_on_any_game():
    for seed, game, pre, sigma in _games(60, depth=6):
        penalty = (1e-4, 1e-3, 1e-2)[seed % 3]
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(penalty, 0.02))
        rivals = [None, meta_equilibrium(tree, iterations=100).strategies[1]]
        for rival in rivals:
            bounds = EntropyBounds(tree, 0, opponent=rival)
            value = best_precomputation(tree, 0, opponent=rival).value
            scaled = (value - bounds.low) / bounds.range
            for v in bounds.thresholds(10):
                lines = bounds.lines(float(v))
                bound = entropy_lower_bound(
                    scaled,
                    (v - bounds.low) / bounds.range,
                    lines.p_norm,
                    penalty / bounds.range,
                    bounds.moves,
                )
                assert lines.entropy >= bound


def test_the_general_bound_says_something_on_large_random_trees():
    """A uniform opponent on many replies, sigma_pre much better than sigma but not sure to win."""
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(8):
        replies, rounds = int(rng.integers(10, 20)), 3
        game = pyspiel.load_game("python_test_sure_win", {"replies": replies, "rounds": rounds})
        right = float(rng.uniform(0.9, 0.999))
        penalty = float(10 ** rng.uniform(-4.5, -3.0))

        def pre(state, right=right):
            return {0: right, 1: 1.0 - right} if state.current_player() == 0 else {0: 1.0}

        def sigma(state, replies=replies):
            own = state.current_player() == 0
            return {0: 0.5, 1: 0.5} if own else dict.fromkeys(range(replies), 1.0 / replies)

        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(penalty, math.inf))
        bounds, value = EntropyBounds(tree, 0), best_precomputation(tree, 0).value
        for v in (0.4, 0.9, 1.0):
            lines = bounds.lines(v)
            bound = entropy_lower_bound(value, v, lines.p_norm, penalty, bounds.moves)
            assert lines.entropy >= bound
            said += bound > 0.0
    assert said > 5


# -- bad input -------------------------------------------------------------------------------------------


@functools.cache
def _small_tree():
    return HistoryTree.from_game(
        random_tree(1), sigma_pre=random_policy(1), sigma=random_policy(2), penalties=(0.1, math.inf)
    )


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.5, math.nan, "0.5"])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match=r"EntropyBounds.construct\(\): expected"):
        EntropyBounds(_small_tree(), 0).construct(0.5, epsilon)


@pytest.mark.parametrize("v", [-2.0, math.nan, None, True, math.inf])
def test_bad_advantages(v):
    with pytest.raises(
        ValueError,
        match=r"EntropyBounds.construct\(\): expected v to be a finite number of at least -1, got",
    ):
        EntropyBounds(_small_tree(), 0).construct(v, 0.5)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_bad_counts(count):
    with pytest.raises(ValueError, match=r"EntropyBounds.best_construction\(\): expected count"):
        EntropyBounds(_small_tree(), 0).best_construction(0.1, count)


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.inf, None])
def test_bad_penalties(penalty):
    with pytest.raises(ValueError, match=r"EntropyBounds.best_bound\(\): expected"):
        EntropyBounds(_small_tree(), 0).best_bound(penalty)


@pytest.mark.parametrize("utilities", [(1.0, 0.0), (0.0, math.nan), (0.0,), 5])
def test_bad_utilities(utilities):
    with pytest.raises(ValueError, match=r"EntropyBounds\(\): expected utilities to be"):
        EntropyBounds(_small_tree(), 0, utilities=utilities)


def test_bad_arguments_of_the_formulas():
    with pytest.raises(
        ValueError, match=r"lines_needed\(\): expected entropy to be a finite number of at least 0"
    ):
        lines_needed(-1.0, 0.5)
    with pytest.raises(ValueError, match=r"entropy_lower_bound\(\): expected penalty to be a positive"):
        entropy_lower_bound(0.5, 0.9, 1.0, 0.0, 10)
    with pytest.raises(ValueError, match=r"entropy_lower_bound\(\): expected p_norm in"):
        entropy_lower_bound(0.5, 0.9, 1.5, 0.1, 10)
    with pytest.raises(ValueError, match=r"theorem_2_bound\(\): expected v in"):
        theorem_2_bound(0.5, 1.5, 0.1, 10)


def test_imperfect_information_is_refused():
    imperfect = HistoryTree.from_game(
        random_efg(1),
        sigma_pre=random_policy(1, by="infoset"),
        sigma=random_policy(2, by="infoset"),
        penalties=0.1,
    )
    with pytest.raises(ValueError, match="expected a game of perfect information"):
        EntropyBounds(imperfect, 0)
