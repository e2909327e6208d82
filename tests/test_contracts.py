"""Every policy and every leaf value of the library does what whoever asks one relies on."""

import functools
import importlib
import itertools
import pickle
import pkgutil
from types import SimpleNamespace

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

import precomp_games
from precomp_games import (
    ClockGame,
    HistoryTree,
    MetaPrecomputationGame,
    RolloutValues,
    SearchClock,
    make_policy,
)
from precomp_games.algorithms import MetaGamePolicy, MetaStrategy, best_precomputation, lookahead, solve
from precomp_games.algorithms.lookahead import evaluation_functions
from precomp_games.chess import EngineEvaluation, EnginePolicy, SearchLimit, action_of
from precomp_games.chess.data.move_counts import CountsPolicy
from precomp_games.chess.model.engine_policies import LinearUtility
from precomp_games.chess.model.human import HumanPolicy
from precomp_games.policies.leaf_values import EvaluatedValues, ExactValues, LeafContext, LeafValues
from precomp_games.policies.rows import as_batch_policy
from precomp_games.policies.specs import parsed_spec, policy_names
from tests.oracles.books import states
from tests.oracles.engines import HashEngine
from tests.oracles.games import random_evaluation, random_policy, random_tree
from tests.oracles.network import random_network

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
NOT_PICKLED = [f"{_BOARD} {spec}" for spec in ("minimax", "alpha_beta", "pvs", "softmax")]  # know their game


_TABLE = {0: 0.25, 1: 0.75}


def _from_a_table(state):
    """Return a row that is not the caller's to change."""
    return _TABLE


@functools.cache
def _tree():
    game = pyspiel.load_game("kuhn_poker")
    pre = make_policy(game, "random")
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=_from_a_table, penalties=0.01)


@functools.cache
def _clock_game():
    return ClockGame({"game": pyspiel.game_parameters_from_string(_BOARD), "time_0": 3, "time_1": 3})


def _chess_game():
    return pyspiel.load_game("python_chess(max_plies=4)")


def _some_move(state, nodes):
    return SimpleNamespace(action=state.legal_actions()[nodes % 2], nodes=nodes)


def _follower():
    game = pyspiel.load_game("kuhn_poker")
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
    "committed": lambda folder: evaluation_functions.StrategyPolicy(
        pyspiel.load_game("kuhn_poker"), {"0": {0: 1.0}}
    ),
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
        waiting += (found := waiting.pop().__subclasses__())
        kinds |= {
            kind
            for kind in found
            if kind.__module__.startswith("precomp_games") and not kind.__subclasses__()
        }
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
    again = POLICIES[name](tmp_path) if name in NOT_PICKLED else pickle.loads(pickle.dumps(policy))
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
            make_policy(pyspiel.load_game("kuhn_poker"), name)


# -- leaf values ---------------------------------------------------------------------------------------------


class _Evaluations:
    """An evaluation of many states at once."""

    def evaluate_batch(self, states):
        return [random_evaluation(3)(state) for state in states]


LEAF_VALUES: dict[str, LeafValues] = {
    "exact": ExactValues(),
    "rollouts": RolloutValues(games=5, seed=3),
    "function": EvaluatedValues(random_evaluation(3)),
    "batch": EvaluatedValues(_Evaluations()),
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
