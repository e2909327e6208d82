"""Leaf values: exact, from roll-outs, and by a user's function."""

import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import expected_game_score

from precomp_games import HistoryTree, RolloutValues
from precomp_games.policies.leaf_values import EvaluatedValues, ExactValues, sample_size
from tests.oracles.books import AsPolicy, play_value
from tests.oracles.games import named_by, random_policy, random_tree
from tests.oracles.preparation import preparations
from tests.properties import examples
from tests.test_contracts import asked


def _cut(tree):
    """Return the leaves where the game goes on."""
    return [h for h in np.flatnonzero(tree.num_children == 0) if tree.player[h] != pyspiel.PlayerId.TERMINAL]


def _expand(game=None, penalties=(0.3, math.inf), **arguments):
    game = game or random_tree(6, depth=5)
    by = named_by(game)
    given = {"sigma_pre": random_policy(1, by=by), "sigma": random_policy(2, by=by)} | arguments
    return HistoryTree.from_game(game, penalties=penalties, **given)


# -- exact values ----------------------------------------------------------------------------------


def _check_exact(tree, sigma):
    """Leaves are worth what OpenSpiel's sum over all games gives for player 0, whoever memorizes."""
    players = [AsPolicy(tree.game, policy) for policy in sigma]
    for h in _cut(tree)[::3]:
        score = expected_game_score.policy_value(tree.state(h), players)[0]
        assert tree.value[h] == pytest.approx(score, abs=1e-12)
    for h in np.flatnonzero(tree.player == pyspiel.PlayerId.TERMINAL):
        assert tree.value[h] == tree.state(h).returns()[0]
    assert tree.work["games_sampled"] == 0


@examples(80)
@given(preparations(fewest=0, depth=5), st.sampled_from((0.1, 0.5, math.inf)))
def test_exact_values_are_those_of_openspiel(prepared, penalty):
    _check_exact(prepared.tree(penalty), prepared.sigma)


@pytest.mark.parametrize(
    ("name", "by", "penalty"),
    [
        ("kuhn_poker", "infoset", 0.5),
        ("connect_four(rows=3,columns=3,x_in_row=3)", "position", 0.1),
        ("pig(winscore=3,horizon=7)", "history", 0.05),
    ],
)
def test_exact_values_in_games_of_openspiel(name, by, penalty):
    sigma = random_policy(2, "partial", by)
    given = {"sigma_pre": random_policy(1, by=by), "position_key": str if by == "position" else None}
    tree = _expand(pyspiel.load_game(name), (penalty, math.inf), sigma=sigma, **given)
    assert _cut(tree)
    _check_exact(tree, (sigma, sigma))


def test_exact_is_the_default_and_has_a_name():
    trees = [_expand(), _expand(leaf_value="exact"), _expand(leaf_value=ExactValues())]
    assert len({tree.fingerprint for tree in trees}) == 1


@pytest.mark.parametrize("leaf_value", ["exact", RolloutValues(games=3)])
def test_playing_on_needs_sigma(leaf_value):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected a policy as sigma\[0\]"):
        _expand(sigma=(None, random_policy(2)), leaf_value=leaf_value)


# -- how many games ---------------------------------------------------------------------------------


@examples(300)
@given(
    epsilon=st.floats(0.003, 1.0),
    delta=st.floats(1e-6, 0.95),
    estimates=st.integers(1, 10**7),
    utility_range=st.floats(0.5, 13.0),
)
def test_sample_sizes(epsilon, delta, estimates, utility_range):
    k = sample_size(epsilon, delta, estimates, utility_range)
    assert k == math.ceil(2 * utility_range**2 / epsilon**2 * math.log(2 * estimates / delta))
    # Hoeffding: the chance that any of the estimates is off by epsilon / 2.
    failures = [
        2 * estimates * math.exp(-2 * games * (epsilon / 2 / utility_range) ** 2) for games in (k, k - 1)
    ]
    assert failures[0] <= delta * (1 + 1e-9) and failures[1] > delta * (1 - 1e-9)
    paper = max(1, math.ceil(16 * (utility_range / epsilon) ** 2 * math.log(estimates / delta)))
    if abs(math.log(estimates / delta) - math.log(2) / 7) > 0.01:  # or rounding up decides
        # 2 ln(2 W / delta) <= 16 ln(W / delta) iff W / delta >= 2^(1/7) = 1.104.
        assert (k <= paper) == (estimates / delta >= 2 ** (1 / 7))
    assert sample_size(epsilon, delta, estimates, 0.0) == 1


@pytest.mark.parametrize("arguments", [(0.1, 0.1, 10**400), (1e-10, 0.1, 5), (1e-200, 0.1, 5)])
def test_more_games_than_can_be_counted(arguments):
    with pytest.raises(ValueError, match=r"^sample_size\(\): expected .* for which games can be counted"):
        sample_size(*arguments)


@pytest.mark.parametrize("given", [{"epsilon": 1.0, "delta": 0.2}, {"games": 7}])
def test_the_tree_samples_as_many_games_as_the_bound_says(given):
    tree = _expand(penalties=(0.2, math.inf), leaf_value=RolloutValues(**given))
    leaves = len(_cut(tree))
    assert leaves > 1
    games = given.get("games") or sample_size(1.0, 0.2, leaves, 3.0)  # R = 3 comes from the game's bounds
    assert tree.work["leaf_evaluations"] == leaves
    assert tree.work["games_sampled"] == leaves * games


# -- roll-outs --------------------------------------------------------------------------------------


def _moments(state, sigma):
    """Exact mean and variance of one game's utility from a state on."""
    mean = play_value(state, [sigma] * 2)
    return mean, play_value(state, [sigma] * 2, power=2) - mean**2


def _leaves(game=None, penalty=0.15):
    """Return a game, its sigma, and the states at the cut leaves of a tree."""
    tree = _expand(game, (penalty, math.inf))
    states = [tree.state(h) for h in _cut(tree)]
    assert len(states) >= 2
    return tree.game, random_policy(2, by=named_by(tree.game)), states


@pytest.mark.parametrize(("name", "penalty"), [("", 0.15), ("kuhn_poker", 0.6)])
def test_rollouts_are_unbiased_and_vary_as_independent_games_do(name, penalty):
    game, sigma, states = _leaves(name and pyspiel.load_game(name), penalty)
    runs, games = examples(1500).max_examples, 4
    samples = [asked(RolloutValues(games=games, seed=s), game, sigma, states) for s in range(runs)]
    for state in states:
        drawn = np.array([sample[tuple(state.history())] for sample in samples])
        mean, variance = _moments(state, sigma)
        assert abs(drawn.mean() - mean) <= 4 * math.sqrt(variance / games / runs) + 1e-12
        if variance < 1e-12:
            assert drawn.std() < 1e-12
            continue
        # The standard error of a variance from its own fourth moment.
        error = math.sqrt(max(np.mean((drawn - drawn.mean()) ** 4) - drawn.var() ** 2, 1e-12) / runs)
        assert abs(drawn.var() - variance / games) <= 4 * error


def test_all_estimates_are_within_half_of_epsilon_as_often_as_promised():
    game, sigma, states = _leaves()
    exact = {tuple(s.history()): _moments(s, sigma)[0] for s in states}
    epsilon, delta, runs = 0.6, 0.1, examples(200).max_examples
    held = 0
    for seed in range(runs):
        values = asked(RolloutValues(epsilon=epsilon, delta=delta, seed=seed), game, sigma, states)
        held += max(abs(values[h] - exact[h]) for h in exact) <= epsilon / 2
    assert held >= (1 - delta) * runs


def test_leaves_of_one_position_have_one_value_and_other_seeds_others():
    game = pyspiel.load_game("connect_four(rows=3,columns=3,x_in_row=3)")
    sigma, evaluator = random_policy(2, by="position"), RolloutValues(games=20, seed=1)
    given = {"sigma": sigma, "sigma_pre": sigma, "position_key": str}
    tree = _expand(game, (0.1, math.inf), leaf_value=evaluator, **given)
    value_of = {}
    for h in _cut(tree):
        assert value_of.setdefault(int(tree.position[h]), tree.value[h]) == tree.value[h]
    assert len(value_of) < len(_cut(tree))
    ways = [tree.state(h) for h in _cut(tree)]  # of which several lead to one position
    last = {str(state): state for state in ways}
    together = asked(evaluator, game, sigma, list(last.values()), str)
    others = [state for state in ways if last[str(state)] is not state]
    for state in [*others[:5], *ways[::9]]:  # whatever else shares the states below
        (value,) = asked(evaluator, game, sigma, [state], str).values()
        assert together[tuple(last[str(state)].history())] == value
    assert asked(RolloutValues(games=20, seed=2), game, sigma, list(last.values()), str) != together


# -- a user's evaluation ------------------------------------------------------------------------------


class _Batch:
    """An evaluation of many states, which keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    def __call__(self, state):
        raise AssertionError("the batch is preferred")

    def evaluate_batch(self, states):
        self.calls.append([tuple(state.history()) for state in states])
        return self.answer(states)


def _score(state):
    return len(state.history()) / 10


def test_evaluations_single_and_in_batches():
    batch = _Batch(lambda states: [_score(state) for state in states])
    trees = [
        _expand(leaf_value=value)
        for value in (_score, EvaluatedValues(_score), batch, EvaluatedValues(batch))
    ]
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
    array = _Batch(lambda states: np.array([_score(state) for state in states], np.float32))
    assert _expand(leaf_value=array).value == pytest.approx(tree.value, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("stop_value", ["backup", "evaluate"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (math.nan, "to give finite utilities, got nan at history"),
        (math.inf, "to give finite utilities, got inf at history"),
        (2.1, r"to give utilities in \[-1.0, 2.0\], got 2.1 at history"),
        (-1.1, r"to give utilities in \[-1.0, 2.0\], got -1.1 at history"),
        ("0.5", "to give numbers, got"),
        (np.complex128(0.5), "to give numbers, got"),
        (b"0", "to give numbers, got"),
        ([0.0, 1.0], r"to give a value for each of \d+ states, got an array of shape"),
        (_Batch(lambda states: []), r"to give a value for each of \d+ states"),
        (_Batch(lambda states: [0.0] * (len(states) + 1)), r"to give a value for each of \d+ states"),
        (_Batch(lambda states: 0.0), r"to give a value for each of \d+ states"),
        (_Batch(lambda states: [[0.0]] * len(states)), r"to give a value for each of \d+ states"),
    ],
)
def test_bad_evaluations(answer, words, stop_value):
    leaf_value = answer if isinstance(answer, _Batch) else lambda state: answer
    with pytest.raises(ValueError, match=rf"^HistoryTree.from_game\(\): expected leaf_value {words}"):
        _expand(leaf_value=leaf_value, stop_value=stop_value)
