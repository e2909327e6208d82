"""Every policy and every leaf value does what whoever asks one relies on; leaf values by kind."""

import functools
import importlib
import itertools
import math
import pickle
import pkgutil
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

import precomp_games
from precomp_games import ClockGame, MetaPrecomputationGame, RolloutValues, SearchClock, make_policy
from precomp_games.algorithms import MetaGamePolicy, MetaStrategy, best_precomputation, lookahead, solve
from precomp_games.algorithms.lookahead import evaluation_functions
from precomp_games.chess import EngineEvaluation, EnginePolicy, SearchLimit, action_of
from precomp_games.chess.data.move_counts import CountsPolicy
from precomp_games.chess.model.engine_policies import LinearUtility
from precomp_games.chess.model.human import HumanPolicy
from precomp_games.policies.leaf_values import EvaluatedValues, ExactValues, LeafContext, sample_size
from precomp_games.policies.rows import as_batch_policy
from precomp_games.policies.specs import parsed_spec, policy_names
from tests.oracles.books import AsPolicy, play_value, states
from tests.oracles.engines import HashEngine
from tests.oracles.games import expand, kuhn_poker, named_by, random_evaluation, random_policy, random_tree
from tests.oracles.network import random_network
from tests.oracles.preparation import preparations
from tests.properties import examples

_BOARD = "connect_four(rows=2,columns=3,x_in_row=2)"
_SPECS = {
    "kuhn_poker": [
        "uniform",
        "random(seed=4,concentration=0.5)",
        "cfr(iterations=5)",
        "best_response(to=random)",
        "noisy(policy=best_response(to=uniform),epsilon=0.2)",
        "mixture(a=random,b=uniform,weights=of(a=3,b=1))",
        "mixture(a=random,b=uniform,per=move)",
    ],
    _BOARD: ["minimax", "alpha_beta", "pvs", "mcts", "softmax", "noisy(policy=mixture(a=mcts,per=move))"],
}
_LIMIT = SearchLimit(nodes=5)
NO_CONTRACT = {
    "EnginePeople": "runs an engine that tells what people play: tests/chess/test_human.py",
    "GamesPolicy": "counts of files: a CountsPolicy",
}


_TABLE = {0: 0.25, 1: 0.75}


def _from_a_table(state):
    """Return a row that is not the caller's to change."""
    return _TABLE


@functools.cache
def _tree():
    return expand(kuhn_poker(), make_policy(kuhn_poker(), "random"), _from_a_table, 0.01)


@functools.cache
def _clock_game():
    return ClockGame({"game": pyspiel.game_parameters_from_string(_BOARD), "time_0": 3, "time_1": 3})


def _chess_game():
    return pyspiel.load_game("python_chess(max_plies=4)")


def _some_move(state, nodes):
    return SimpleNamespace(action=state.legal_actions()[nodes % 2], nodes=nodes)


def _follower():
    game = kuhn_poker()
    values = lookahead.equilibrium_values(game, 1)
    return lookahead.LookaheadPolicy(game, 0, make_policy(game, "random"), 2, values)


class _Counts:
    """As often as its square has a number, a move of every second one was played."""

    def at(self, board):
        moves = list(board.legal_moves)[::2]
        return {action_of(move): float(move.from_square) for move in moves if len(moves) > 5}


def _meta_policy():
    strategies = tuple(MetaStrategy.of_set(_tree(), player, []) for player in (0, 1))
    return MetaGamePolicy(MetaPrecomputationGame(_tree()), strategies)


def _human(folder):
    (folder / "random-1200.pb.gz").write_bytes(random_network(1))
    return HumanPolicy(_chess_game(), 1200.0, networks=str(folder))


POLICIES = {
    f"{name} {spec}": lambda folder, name=name, spec=spec: make_policy(pyspiel.load_game(name), spec)
    for name, specs in _SPECS.items()
    for spec in specs
} | {
    "a book": lambda folder: best_precomputation(_tree(), 0).policy(),
    "a strategy": lambda folder: MetaStrategy.of_set(_tree(), 1, []).policy(),
    "solved": lambda folder: solve("kuhn_poker").policy(),
    "of the meta-game": lambda folder: _meta_policy(),
    "lookahead": lambda folder: _follower(),
    "committed": lambda folder: evaluation_functions.StrategyPolicy(kuhn_poker(), {"0": {0: 1.0}}),
    "clock": lambda folder: _clock_game().policy(make_policy(pyspiel.load_game(_BOARD), "random"), 1),
    "timed": lambda folder: SearchClock(10).policy(_clock_game(), _some_move),
    "engine": lambda folder: EnginePolicy(_chess_game(), HashEngine(), _LIMIT, 80.0, 3),
    "counted": lambda folder: CountsPolicy(_chess_game(), _Counts(), 1.0),
    "human": _human,
}


def test_no_policy_is_missing(tmp_path):
    """Kinds of policy are what a module of the library derives from OpenSpiel's."""
    for module in pkgutil.walk_packages(precomp_games.__path__, "precomp_games."):
        importlib.import_module(module.name)
    waiting, kinds = [openspiel_policy.Policy], set()
    while waiting:
        waiting += (found := (kind := waiting.pop()).__subclasses__())
        if not found and kind.__module__.startswith("precomp_games"):
            kinds.add(kind)
    tried = {type(make(tmp_path)) for make in POLICIES.values()}
    assert {kind.__name__ for kind in kinds - tried} == set(NO_CONTRACT)


def _turns(game, most=60):
    return [state for state in itertools.islice(states(game), most) if state.current_player() >= 0]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_asked_in_any_way(name, tmp_path):
    policy = POLICIES[name](tmp_path)
    assert isinstance(policy, openspiel_policy.Policy)
    turns = _turns(policy.game)
    rows = [policy.action_probabilities(state) for state in turns]
    for state, row in zip(turns, rows, strict=True):
        past, mover = state.history(), state.current_player()
        assert set(row) <= set(state.legal_actions())
        assert min(row.values()) >= 0.0 and sum(row.values()) == pytest.approx(1.0, abs=1e-9)
        policy.action_probabilities(state)[next(iter(row))] = 7.0  # the answer is the caller's own
        assert policy.action_probabilities(state, mover) == row
        assert state.history() == past
    again = pickle.loads(pickle.dumps(policy))
    backwards = as_batch_policy(again)(turns[::-1])[::-1]
    assert [dict(row) for row in backwards] == [pytest.approx(row, abs=1e-6) for row in rows]


@pytest.mark.parametrize(("name", "spec"), [(name, spec) for name, specs in _SPECS.items() for spec in specs])
def test_a_spec_names_one_policy_as_a_text_or_a_dictionary_and_with_its_defaults(name, spec):
    game, parsed = pyspiel.load_game(name), parsed_spec(spec)
    by_default = parsed["name"]
    for one, other in ((spec, parsed), (by_default, f"{by_default}({policy_names()[by_default]})")):
        policy, same = make_policy(game, one), make_policy(pyspiel.load_game(name), other)
        assert make_policy(game, policy) is policy
        for state in _turns(game):
            assert same.action_probabilities(state) == policy.action_probabilities(state)


def test_no_name_is_missing():
    named = {parsed_spec(spec)["name"] for specs in _SPECS.values() for spec in specs}
    names = policy_names()
    assert list(names) == sorted(names)
    needs = {"games": "file", "polyglot": "file", "uci": "engine", "human": None}
    assert named | needs.keys() == names.keys()
    del needs["human"]  # whose networks are elsewhere
    for name, argument in needs.items():
        with pytest.raises(ValueError, match=rf"expected {name}\({argument}=\.\.\.\)"):
            make_policy(kuhn_poker(), name)


# -- leaf values ---------------------------------------------------------------------------------------------


def batch_of(answer):
    """Return an evaluation of many states; its calls are those of a mock."""
    made = mock.Mock(side_effect=AssertionError("the batch is preferred"))
    made.evaluate_batch.side_effect = answer
    return made


LEAF_VALUES: dict[str, Any] = {
    "exact": ExactValues(),
    "rollouts": RolloutValues(games=5, seed=3),
    "function": EvaluatedValues(random_evaluation(3)),
    "batch": EvaluatedValues(batch_of(lambda states: list(map(random_evaluation(3), states)))),
    "engine": EvaluatedValues(EngineEvaluation(HashEngine(), _LIMIT, 2, LinearUtility())),
}


def asked(values, game, sigma, some, key=None, player=0):
    """Return {history: value} of states, which are asked about at once, level by level."""
    low, high = game.min_utility(), game.max_utility()
    context = LeafContext((as_batch_policy(sigma),) * 2, key, 0.0, high - low, (low, high), player)
    levels = [[] for _ in range(1 + max((len(state.history()) for state in some), default=1))]
    for state in some:
        levels[len(state.history())].append(state)
    found, _ = values(levels, context)
    assert list(map(len, found)) == list(map(len, levels))
    together = itertools.chain.from_iterable(levels), itertools.chain.from_iterable(found)
    return {tuple(state.history()): float(value) for state, value in zip(*together, strict=True)}


@pytest.mark.parametrize("name", LEAF_VALUES)
def test_leaf_values_are_those_of_a_state_whatever_else_is_asked(name):
    values = LEAF_VALUES[name]
    game = _chess_game() if name == "engine" else random_tree(5, depth=6)
    some, sigma = _turns(game, 40), random_policy(2)
    together = asked(values, game, sigma, some)
    assert all(game.min_utility() <= value <= game.max_utility() for value in together.values())
    assert len(set(together.values())) > len(some) // 2
    assert asked(values, game, sigma, some[::-1]) == together == asked(values, game, sigma, some)
    for state in some[::5]:
        assert asked(values, game, sigma, [state]).items() <= together.items()
    assert asked(values, game, sigma, []) == {}
    if values.deferred:
        for history, value in asked(values, game, sigma, some, player=1).items():
            assert together[history] + value == pytest.approx(game.utility_sum(), abs=1e-12)


# -- leaf values by kind -------------------------------------------------------------------------------------


def _cut(tree):
    """Return the leaves where the game goes on."""
    return [h for h in np.flatnonzero(tree.num_children == 0) if tree.player[h] != pyspiel.PlayerId.TERMINAL]


def _expand(game=None, penalties=(0.3, math.inf), **arguments):
    game = game or random_tree(6, depth=5)
    by = named_by(game)
    given = {"sigma_pre": random_policy(1, by=by), "sigma": random_policy(2, by=by)} | arguments
    return expand(game, penalties=penalties, **given)


# -- exact values ----------------------------------------------------------------------------------


@examples(160)
@given(preparations(fewest=0, depth=5, repeated=True), st.sampled_from((0.1, 0.5, math.inf)))
def test_exact_values_are_those_of_openspiel(prepared, penalty):
    """Leaves are worth what OpenSpiel's sum over all games gives for player 0, whoever memorizes."""
    tree = prepared.tree(penalty, position_key=str if named_by(prepared.game) == "position" else None)
    players = [AsPolicy(tree.game, policy) for policy in prepared.sigma]
    for h in _cut(tree)[::3]:
        score = expected_game_score.policy_value(tree.state(h), players)[0]
        assert tree.value[h] == pytest.approx(score, abs=1e-12)
    for h in np.flatnonzero(tree.player == pyspiel.PlayerId.TERMINAL):
        assert tree.value[h] == tree.state(h).returns()[0]
    assert tree.work["games_sampled"] == 0


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
    enough, fewer = (2 * estimates * math.exp(-n * (epsilon / utility_range) ** 2 / 2) for n in (k, k - 1))
    assert enough <= delta * (1 + 1e-9) and fewer > delta * (1 - 1e-9)
    paper = max(1, math.ceil(16 * (utility_range / epsilon) ** 2 * math.log(estimates / delta)))
    if abs(math.log(estimates / delta) - math.log(2) / 7) > 0.01:  # or rounding up decides
        # 2 ln(2 W / delta) <= 16 ln(W / delta) iff W / delta >= 2^(1/7) = 1.104.
        assert (k <= paper) == (estimates / delta >= 2 ** (1 / 7))
    assert sample_size(epsilon, delta, estimates, 0.0) == 1


def test_more_games_than_can_be_counted():
    for arguments in ((0.1, 0.1, 10**400), (1e-10, 0.1, 5), (1e-200, 0.1, 5)):
        with pytest.raises(ValueError, match=r"^sample_size\(\): expected .* for which games can be counted"):
            sample_size(*arguments)


@pytest.mark.parametrize("given", [{"epsilon": 1.0, "delta": 0.2}, {"games": np.uint8(200)}])
def test_the_tree_samples_as_many_games_as_the_bound_says(given):
    tree = _expand(penalties=(0.2, math.inf), leaf_value=RolloutValues(**given))
    leaves = len(_cut(tree))
    games = 200 if "games" in given else sample_size(1.0, 0.2, leaves, 3.0)  # R = 3 is of the game's bounds
    assert tree.work["leaf_evaluations"] == leaves > 1
    assert tree.work["games_sampled"] == leaves * games


# -- roll-outs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "penalty"), [("", 0.15), ("kuhn_poker", 0.6)])
def test_rollouts_are_unbiased_and_vary_as_independent_games_do(name, penalty):
    tree = _expand(name and pyspiel.load_game(name), (penalty, math.inf))
    sigma, states = random_policy(2, by=named_by(tree.game)), [tree.state(h) for h in _cut(tree)]
    assert len(states) >= 2
    runs, games = examples(1500).max_examples, 4
    samples = [asked(RolloutValues(games=games, seed=s), tree.game, sigma, states) for s in range(runs)]
    for state in states:
        drawn = np.array([sample[tuple(state.history())] for sample in samples])
        mean, square = (play_value(state, [sigma] * 2, power=power) for power in (1, 2))
        variance = square - mean**2
        assert abs(drawn.mean() - mean) <= 4 * math.sqrt(variance / games / runs) + 1e-12
        if variance < 1e-12:
            assert drawn.std() < 1e-12
            continue
        # The standard error of a variance from its own fourth moment.
        error = math.sqrt(max(np.mean((drawn - drawn.mean()) ** 4) - drawn.var() ** 2, 1e-12) / runs)
        assert abs(drawn.var() - variance / games) <= 4 * error


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


def _score(state):
    return len(state.history()) / 10


def _scores(states):
    return [_score(state) for state in states]


def test_evaluations_single_and_in_batches():
    batch = batch_of(_scores)
    ways = (_score, EvaluatedValues(_score), batch, EvaluatedValues(batch))
    tree, *others = (_expand(leaf_value=value) for value in ways)
    assert {other.fingerprint for other in others} == {tree.fingerprint}
    leaves = _cut(tree)
    assert [tree.value[h] for h in leaves] == _scores(tree.state(h) for h in leaves) != []
    assert tree.work["leaf_evaluations"] == len(leaves)
    calls = [[tuple(state.history()) for state in call.args[0]] for call in batch.evaluate_batch.mock_calls]
    once = calls[: len(calls) // 2]  # two trees were expanded with it
    assert [h for call in once for h in call] == [tuple(tree.actions(h)) for h in leaves]
    assert len(once) == len({len(call[0]) for call in once})
    array = batch_of(lambda states: np.array(_scores(states), np.float32))
    assert _expand(leaf_value=array).value == pytest.approx(tree.value, abs=1e-6, nan_ok=True)


_EACH = r"to give a value for each of \d+ states"


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
        ([0.0, 1.0], _EACH + ", got an array of shape"),
        (batch_of(lambda states: []), _EACH),
        (batch_of(lambda states: [0.0] * (len(states) + 1)), _EACH),
        (batch_of(lambda states: 0.0), _EACH),
        (batch_of(lambda states: [[0.0]] * len(states)), _EACH),
    ],
)
def test_bad_evaluations(answer, words, stop_value):
    leaf_value = answer if hasattr(answer, "evaluate_batch") else lambda state: answer
    with pytest.raises(ValueError, match=rf"^HistoryTree.from_game\(\): expected leaf_value {words}"):
        _expand(leaf_value=leaf_value, stop_value=stop_value)
