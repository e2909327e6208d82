"""What leaves are worth: exactly, from roll-outs, and by a user's function."""

import functools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from scipy import stats

from precomp_games import EvaluatedValues, ExactValues, HistoryTree, RolloutValues, sample_size
from precomp_games.leaf_values import LeafContext
from precomp_games.policies import as_batch_policy
from tests.random_games import random_policy, random_tree


class _AsPolicy(openspiel_policy.Policy):
    def __init__(self, game, function):
        super().__init__(game, [0, 1])
        self.function = function

    def action_probabilities(self, state, player_id=None):
        return self.function(state)


def _board(state):
    return state.observation_string(0)


def _by_board(seed, support="full"):
    """A random policy of tic-tac-toe that depends on the board alone."""

    @functools.cache
    def row(board, actions):
        rng = np.random.default_rng([seed, *board.encode()])
        weights = rng.dirichlet(np.ones(len(actions)))
        if support != "full":
            weights[rng.permutation(len(actions))[1 if support == "pure" else 2 :]] = 0.0
            weights /= weights.sum()
        return dict(zip(actions, weights.tolist(), strict=True))

    return lambda state: row(_board(state), tuple(state.legal_actions()))


def _cut(tree):
    """The leaves where the game goes on."""
    return [h for h in np.flatnonzero(tree.num_children == 0) if tree.player[h] != pyspiel.PlayerId.TERMINAL]


def _context(game, sigma, key=None):
    return LeafContext(
        sigma=tuple(as_batch_policy(policy) for policy in sigma),
        position_key=key,
        min_probability=0.0,
        utility_range=game.max_utility() - game.min_utility(),
    )


def _levels(states):
    """States by the number of actions so far, as evaluators take them."""
    deepest = max(len(state.history()) for state in states)
    return [[s for s in states if len(s.history()) == depth] for depth in range(deepest + 1)]


# -- exact values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "random", "tic_tac_toe", "pig"])
@pytest.mark.parametrize("support", ["full", "partial"])
def test_exact_values_are_those_of_openspiel(name, support):
    by, penalty, key = "history", 0.1, None
    if name == "random":
        game = random_tree(5, depth=6)
    elif name == "pig":
        game, penalty = pyspiel.load_game("pig(winscore=3,horizon=7)"), 0.05
    elif name == "tic_tac_toe":
        game, key = pyspiel.load_game(name), _board
    else:
        game, by = pyspiel.load_game(name), "infoset"
        penalty = 0.5
    if key is None:
        pre, sigma = random_policy(1, support, by), random_policy(2, support, by)
    else:
        pre, sigma, penalty = _by_board(1, "pure"), _by_board(2, support), 0.05
    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=(penalty, math.inf), position_key=key
    )
    leaves = _cut(tree)
    assert leaves
    players = [_AsPolicy(game, sigma)] * 2
    for h in leaves[:: max(1, len(leaves) // 12)]:
        score = expected_game_score.policy_value(tree.state(h), players)[0]
        assert tree.value[h] == pytest.approx(score, abs=1e-12)
    for h in np.flatnonzero(tree.player == pyspiel.PlayerId.TERMINAL)[:50]:
        assert tree.value[h] == tree.state(h).returns()[0]
    assert tree.work["games_sampled"] == 0


def test_exact_values_with_and_without_positions_shared():
    game = pyspiel.load_game("tic_tac_toe")
    trees = [
        HistoryTree.from_game(
            game,
            sigma_pre=_by_board(1),
            sigma=_by_board(2, "partial"),
            penalties=(0.1, math.inf),
            position_key=key,
        )
        for key in (None, _board)
    ]
    assert trees[0].num_histories == trees[1].num_histories
    assert trees[0].value == pytest.approx(trees[1].value, abs=1e-12, nan_ok=True)
    assert trees[1].work["leaf_evaluations"] < trees[0].work["leaf_evaluations"]


def test_values_are_player_0s_in_a_constant_sum_game():
    game = random_tree(3, depth=3)  # the players' utilities add up to 1
    sigma = random_policy(2)
    for penalties in ((0.3, math.inf), (math.inf, 0.3), math.inf):
        tree = HistoryTree.from_game(game, sigma_pre=random_policy(1), sigma=sigma, penalties=penalties)
        for h in _cut(tree):
            scores = expected_game_score.policy_value(tree.state(h), [_AsPolicy(game, sigma)] * 2)
            assert scores[0] + scores[1] == pytest.approx(1.0)
            assert tree.value[h] == pytest.approx(scores[0], abs=1e-12)


def test_exact_is_the_default_and_has_a_name():
    game = random_tree(3)
    trees = [
        HistoryTree.from_game(
            game, sigma_pre=random_policy(1), sigma=random_policy(2), penalties=0.1, **arguments
        )
        for arguments in ({}, {"leaf_value": "exact"}, {"leaf_value": ExactValues()})
    ]
    assert len({tree.fingerprint for tree in trees}) == 1


def test_levels_may_be_empty():
    game = random_tree(3)
    context = _context(game, [random_policy(2)] * 2)
    for evaluator in (ExactValues(), RolloutValues(games=3), EvaluatedValues(lambda state: 0.5)):
        values, _ = evaluator([[], [], []], context)
        assert [len(level) for level in values] == [0, 0, 0]


def test_roll_outs_say_before_they_begin_how_many_there_are():
    told = []
    evaluator = RolloutValues(games=3, announce=lambda leaves, games: told.append((leaves, games)))
    game = random_tree(3)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=random_policy(1),
        sigma=random_policy(2),
        penalties=0.1,
        truncate="values",
        leaf_value=evaluator,
    )
    assert told == [(tree.work["leaf_evaluations"], 3)]


# -- how many games ---------------------------------------------------------------------------------


@pytest.mark.parametrize("utility_range", [1.0, 2.0, 13.0])
@pytest.mark.parametrize("estimates", [1, 2, 1000, 10**7])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.003])
def test_sample_sizes(epsilon, delta, estimates, utility_range):
    k = sample_size(epsilon, delta, estimates, utility_range)
    assert k == math.ceil(2 * utility_range**2 / epsilon**2 * math.log(2 * estimates / delta))

    def failure(games):
        """Hoeffding: the chance that any of the estimates is off by epsilon / 2."""
        return 2 * estimates * math.exp(-2 * games * (epsilon / 2 / utility_range) ** 2)

    assert failure(k) <= delta * (1 + 1e-9)
    assert failure(k - 1) > delta * (1 - 1e-9)
    paper = sample_size(epsilon, delta, estimates, utility_range, "theorem3")
    assert paper == max(1, math.ceil(16 * (utility_range / epsilon) ** 2 * math.log(estimates / delta)))
    assert k <= paper


@given(
    epsilon=st.floats(1e-3, 10.0),
    delta=st.floats(1e-9, 1 - 1e-9),
    estimates=st.integers(1, 10**9),
    utility_range=st.floats(0.0, 100.0),
)
def test_hoeffding_needs_no_more_than_theorem_3(epsilon, delta, estimates, utility_range):
    # 2 ln(2 W / delta) <= 16 ln(W / delta) iff W / delta >= 2^(1/7): always for W >= 2, and for W = 1
    # where delta <= 2^(-1/7) = 0.9057.
    ours, paper = (
        sample_size(epsilon, delta, estimates, utility_range, bound) for bound in ("hoeffding", "theorem3")
    )
    if estimates / delta >= 2 ** (1 / 7) * (1 + 1e-12):
        assert 1 <= ours <= paper
    elif estimates / delta < 2 ** (1 / 7) * (1 - 1e-12):
        assert ours >= paper >= 1


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 0.1, 5),
        (-1.0, 0.1, 5),
        (math.nan, 0.1, 5),
        (0.1, 0.0, 5),
        (0.1, 1.0, 5),
        (0.1, math.nan, 5),
        (0.1, 0.1, -1),
        (0.1, 0.1, 0),
        (0.1, 0.1, 10**400),
        (1e-200, 0.1, 5),
        (1e-10, 0.1, 5),
        (0.1, 0.1, 5, -1.0),
        (0.1, 0.1, 5, math.nan),
        (0.1, 0.1, 5, 1.0, "chernoff"),
        (0.1, 0.1, 5, 1.0, None),
    ],
)
def test_bad_sample_sizes(arguments):
    with pytest.raises(ValueError, match=r"^sample_size\(\): expected .* got "):
        sample_size(*arguments)


@pytest.mark.parametrize(
    "arguments", [{"epsilon": 0.0}, {"delta": 2.0}, {"bound": "x"}, {"epsilon": math.nan}]
)
def test_bad_rollouts(arguments):
    with pytest.raises(ValueError, match=r"^RolloutValues\(\): expected .* got "):
        RolloutValues(**arguments)


def test_rollouts_too_many_to_count():
    with pytest.raises(
        ValueError, match=r"^RolloutValues\(\): expected .* for which games can be counted, got 1e-200"
    ):
        RolloutValues(epsilon=1e-200)


@pytest.mark.parametrize("games", [0, -3, 2.5, True, "3"])
def test_bad_numbers_of_games(games):
    with pytest.raises(ValueError, match=r"^RolloutValues\(\): expected games to be an integer from 1"):
        RolloutValues(games=games)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match=r"^RolloutValues\(\): expected seed to be an integer of at least 0"):
        RolloutValues(seed=seed)


@pytest.mark.parametrize("arguments", [{"epsilon": "a"}, {"delta": None}, {"epsilon": True}])
def test_rollouts_of_what_is_no_number(arguments):
    with pytest.raises(ValueError, match=r"^RolloutValues\(\): expected (epsilon|delta) to be .* number"):
        RolloutValues(**arguments)


def test_the_tree_samples_as_many_games_as_the_bound_says():
    game = random_tree(6, depth=5)
    pre, sigma = random_policy(1), random_policy(2)
    for bound in ("hoeffding", "theorem3"):
        values = RolloutValues(epsilon=1.0, delta=0.2, bound=bound)
        tree = HistoryTree.from_game(
            game, sigma_pre=pre, sigma=sigma, penalties=(0.2, math.inf), leaf_value=values
        )
        leaves = len(_cut(tree))
        assert leaves > 1
        assert tree.work["leaf_evaluations"] == leaves
        # R = 3 comes from the game's bounds.
        assert tree.work["games_sampled"] == leaves * sample_size(1.0, 0.2, leaves, 3.0, bound)
    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=(0.2, math.inf), leaf_value=RolloutValues(games=7)
    )
    assert tree.work["games_sampled"] == 7 * leaves


# -- roll-outs --------------------------------------------------------------------------------------


def _moments(state, sigma):
    """Exact mean and variance of one game's utility from a state on."""

    def walk(state):
        if state.is_terminal():
            u = state.returns()[0]
            return u, u * u
        edges = state.chance_outcomes() if state.is_chance_node() else sigma(state).items()
        below = [(p, walk(state.child(a))) for a, p in edges]
        return sum(p * m for p, (m, _) in below), sum(p * s for p, (_, s) in below)

    mean, square = walk(state)
    return mean, square - mean * mean


def _leaves(seed=6, depth=5, penalty=0.15, by="history", game=None, support="full"):
    """A game, its sigma, and the states at the cut leaves of a tree."""
    game = game or random_tree(seed, depth=depth)
    sigma = random_policy(2, support, by)
    tree = HistoryTree.from_game(
        game, sigma_pre=random_policy(1, "full", by), sigma=sigma, penalties=(penalty, math.inf)
    )
    states = [tree.state(h) for h in _cut(tree)]
    assert len(states) >= 2
    return game, sigma, states


def _values(evaluator, game, sigma, states, key=None):
    """{history: value}, asking the evaluator once."""
    levels = _levels(states)
    values, _ = evaluator(levels, _context(game, [sigma] * 2, key))
    return {
        tuple(state.history()): float(value)
        for level, answers in zip(levels, values, strict=True)
        for state, value in zip(level, answers, strict=True)
    }


@pytest.mark.parametrize("name", ["random", "kuhn_poker"])
def test_rollouts_are_unbiased_and_vary_as_independent_games_do(name):
    if name == "random":
        game, sigma, states = _leaves()
    else:
        game, sigma, states = _leaves(game=pyspiel.load_game(name), by="infoset", penalty=0.6)
    runs, games = 1500, 4
    samples = [_values(RolloutValues(games=games, seed=s), game, sigma, states) for s in range(runs)]
    for state in states:
        history = tuple(state.history())
        drawn = np.array([sample[history] for sample in samples])
        mean, variance = _moments(state, sigma)
        assert abs(drawn.mean() - mean) <= 4 * math.sqrt(variance / games / runs) + 1e-12
        if variance < 1e-12:
            assert drawn.std() < 1e-12
            continue
        # The standard error of a variance from its own fourth moment.
        error = math.sqrt(max(np.mean((drawn - drawn.mean()) ** 4) - drawn.var() ** 2, 1e-12) / runs)
        assert abs(drawn.var() - variance / games) <= 4 * error


def test_splitting_games_has_the_law_of_playing_them_one_by_one():
    game, sigma, states = _leaves()
    state = max(states, key=lambda s: _moments(s, sigma)[1])
    runs, games = 1500, 2
    rng = np.random.default_rng(0)

    def play(state):
        while not state.is_terminal():
            edges = state.chance_outcomes() if state.is_chance_node() else list(sigma(state).items())
            state = state.child(int(rng.choice([a for a, _ in edges], p=[p for _, p in edges])))
        return state.returns()[0]

    split = [
        _values(RolloutValues(games=games, seed=s), game, sigma, [state])[tuple(state.history())]
        for s in range(runs)
    ]
    single = [np.mean([play(state) for _ in range(games)]) for _ in range(runs)]
    # The means take finitely many values: rounding makes ties of equal ones for the comparison.
    assert stats.ks_2samp(np.round(split, 9), np.round(single, 9)).pvalue > 1e-3


@pytest.mark.parametrize("bound", ["hoeffding", "theorem3"])
def test_all_estimates_are_within_half_of_epsilon_as_often_as_promised(bound):
    game, sigma, states = _leaves()
    exact = {tuple(s.history()): _moments(s, sigma)[0] for s in states}
    epsilon, delta, held = 0.6, 0.1, 0
    for seed in range(200):
        values = _values(
            RolloutValues(epsilon=epsilon, delta=delta, bound=bound, seed=seed), game, sigma, states
        )
        held += max(abs(values[h] - exact[h]) for h in exact) <= epsilon / 2
    assert held >= (1 - delta) * 200


def test_rollouts_are_reproducible_and_do_not_depend_on_what_else_is_evaluated():
    game, sigma, states = _leaves()
    evaluator = RolloutValues(games=11, seed=5)
    together = _values(evaluator, game, sigma, states)
    assert _values(evaluator, game, sigma, states) == together
    assert _values(evaluator, game, sigma, states[::-1]) == together
    for state in states:
        assert (
            _values(evaluator, game, sigma, [state])[tuple(state.history())]
            == together[tuple(state.history())]
        )
    other = _values(RolloutValues(games=11, seed=6), game, sigma, states)
    assert other != together
    # Different leaves have different streams: their errors are not copies of each other.
    assert len(set(together.values())) > len(states) // 2


def test_rollouts_do_not_depend_on_how_states_are_shared_below():
    game = pyspiel.load_game("tic_tac_toe")
    sigma = _by_board(2)
    tree = HistoryTree.from_game(
        game, sigma_pre=_by_board(1), sigma=sigma, penalties=(0.1, math.inf), position_key=_board
    )
    states = [tree.state(h) for h in _cut(tree)]
    one_each = list({(len(s.history()), _board(s)): s for s in states}.values())[:40]
    evaluator = RolloutValues(games=20, seed=1)
    together = _values(evaluator, game, sigma, one_each, _board)
    for state in one_each[::7]:
        alone = _values(evaluator, game, sigma, [state], _board)
        assert alone[tuple(state.history())] == together[tuple(state.history())]
    # Leaves of one position have one value, in the tree too.
    rolled = HistoryTree.from_game(
        game,
        sigma_pre=_by_board(1),
        sigma=sigma,
        penalties=(0.1, math.inf),
        position_key=_board,
        leaf_value=evaluator,
    )
    value_of = {}
    for h in _cut(rolled):
        assert value_of.setdefault(int(rolled.position[h]), rolled.value[h]) == rolled.value[h]
    assert len(value_of) < len(_cut(rolled))


def test_rollouts_of_many_games_meet_the_exact_value():
    game, sigma, states = _leaves()
    values = _values(RolloutValues(games=10**6), game, sigma, states)
    for state in states:
        assert values[tuple(state.history())] == pytest.approx(_moments(state, sigma)[0], abs=0.02)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), games=st.integers(1, 30))
def test_rollouts_stay_in_the_range_of_utilities(seed, games):
    game = random_tree(seed % 50, depth=3)
    values = _values(
        RolloutValues(games=games, seed=seed), game, random_policy(seed), [game.new_initial_state()]
    )
    assert all(-1.0 <= value <= 2.0 for value in values.values())


# -- a user's evaluation ------------------------------------------------------------------------------


class _Batch:
    """An evaluation of many states, which keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    def evaluate_batch(self, states):
        self.calls.append([tuple(state.history()) for state in states])
        return self.answer(states)


def _expand(leaf_value, penalty=0.3, **arguments):
    game = random_tree(6, depth=5)
    return HistoryTree.from_game(
        game,
        sigma_pre=random_policy(1),
        sigma=random_policy(2),
        penalties=(penalty, math.inf),
        leaf_value=leaf_value,
        **arguments,
    )


def _score(state):
    return len(state.history()) / 10


def test_evaluations_single_and_in_batches():
    batch = _Batch(lambda states: [_score(state) for state in states])
    array = _Batch(lambda states: np.array([_score(state) for state in states], np.float32))
    trees = [_expand(value) for value in (_score, EvaluatedValues(_score), batch, EvaluatedValues(batch))]
    assert len({tree.fingerprint for tree in trees}) == 1
    tree = trees[0]
    leaves = _cut(tree)
    assert leaves
    for h in leaves:
        assert tree.value[h] == _score(tree.state(h))
    assert tree.work["leaf_evaluations"] == len(leaves)
    once = batch.calls[: len(batch.calls) // 2]  # two trees were expanded with it
    assert [h for call in once for h in call] == [tuple(tree.actions(h)) for h in leaves]
    assert len(once) == len({len(call[0]) for call in once})
    assert _expand(array).value == pytest.approx(tree.value, abs=1e-6, nan_ok=True)


def test_an_evaluator_may_have_both_forms():
    class Both:
        def __call__(self, state):
            raise AssertionError("the batch is preferred")

        def evaluate_batch(self, states):
            return [0.5] * len(states)

    tree = _expand(Both())
    assert (tree.value[_cut(tree)] == 0.5).all()


@pytest.mark.parametrize("stop_value", ["backup", "evaluate"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (math.nan, "expected leaf_value to give finite utilities, got nan at history"),
        (math.inf, "expected leaf_value to give finite utilities, got inf at history"),
        (None, "expected leaf_value to give finite utilities, got nan at history"),
        (2.1, r"expected leaf_value to give utilities in \[-1.0, 2.0\], got 2.1 at history"),
        (-1.1, r"expected leaf_value to give utilities in \[-1.0, 2.0\], got -1.1 at history"),
        ("much", "expected leaf_value to give numbers, got"),
        ([0.0, 1.0], r"expected leaf_value to give a value for each of \d+ states, got an array of shape"),
    ],
)
def test_bad_evaluations(answer, words, stop_value):
    with pytest.raises(ValueError, match=words) as caught:
        _expand(lambda state: answer, stop_value=stop_value)
    assert str(caught.value).startswith("HistoryTree.from_game(): ")


@pytest.mark.parametrize(
    "answer",
    [
        lambda states: [],
        lambda states: [0.0] * (len(states) + 1),
        lambda states: 0.0,
        lambda states: [[0.0]] * len(states),
    ],
)
def test_batches_of_the_wrong_shape(answer):
    with pytest.raises(
        ValueError,
        match=r"^HistoryTree.from_game\(\): expected leaf_value to give a value for each of \d+ states, got",
    ):
        _expand(_Batch(answer))


@pytest.mark.parametrize("leaf_value", ["exakt", None, 3, 0.5, ["exact"], RolloutValues, ExactValues])
def test_no_evaluation(leaf_value):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected leaf_value to be .* got "):
        _expand(leaf_value)


def test_an_error_of_the_users_own_is_not_hidden():
    def fails(state):
        raise RuntimeError("engine gone")

    with pytest.raises(RuntimeError, match="engine gone"):
        _expand(fails)


@pytest.mark.parametrize("leaf_value", ["exact", RolloutValues(games=3)])
def test_playing_on_needs_sigma(leaf_value):
    game = random_tree(6, depth=5)
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected a policy as sigma\[0\]"):
        HistoryTree.from_game(
            game,
            sigma_pre=random_policy(1),
            sigma=(None, random_policy(2)),
            penalties=(0.3, math.inf),
            leaf_value=leaf_value,
        )
