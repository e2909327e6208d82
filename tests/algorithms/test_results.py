"""Types that solvers return: on the face of the package or described beside it, and come back by pickle."""

import dataclasses
import functools
import importlib
import inspect
import pathlib
import pickle
import re
import typing
from collections.abc import Iterator

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

import precomp_games.algorithms as face
from precomp_games import HistoryTree, make_policy
from precomp_games.algorithms import (
    EntropyBounds,
    MetaStrategy,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    memory_frontier,
    meta_equilibrium,
    meta_exploitability,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import random_policy

_PACKAGE = face.__name__
_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "api" / "algorithms.md"


def _ours(thing) -> bool:
    """Return whether a thing is defined in this package; `search` and the like have faces of their own.

    What a solver finds is the model's `MetaStrategy`, and is imported where the solver is.
    """
    module = str(getattr(thing, "__module__", ""))
    package, _, rest = module.partition(f"{_PACKAGE}.")
    return module == MetaStrategy.__module__ or (
        not package and rest.split(".")[0] not in ("", "efce", "lookahead", "search")
    )


def _types(hint) -> Iterator[type]:
    """Yield the classes of the package in a type hint."""
    if inspect.isclass(hint) and _ours(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _types(part)


def _received(thing) -> Iterator[type]:
    """Classes that a public function returns, or that a public class has as fields or returns."""
    names = vars(importlib.import_module(thing.__module__))
    if not inspect.isclass(thing):
        yield from _types(typing.get_type_hints(thing, names)["return"])
        return
    if dataclasses.is_dataclass(thing):
        for hint in typing.get_type_hints(thing, names).values():
            yield from _types(hint)
    for name, method in vars(thing).items():
        function = getattr(method, "fget", None) or getattr(method, "__func__", method)
        if not name.startswith("_") and inspect.isfunction(function):
            yield from _types(typing.get_type_hints(function, names).get("return"))


def test_all_that_users_receive_is_on_the_face_or_described_beside_it():
    public = [thing for thing in map(vars(face).get, face.__all__) if _ours(thing)]
    described = re.findall(r"^\.\. autoclass:: (\S+)\.(\w+)$", _PAGE.read_text(encoding="utf-8"), re.M)
    beside = [getattr(importlib.import_module(module), name) for module, name in described]
    received = {kind for thing in [*public, *beside] for kind in _received(thing)}
    names = {kind.__name__ for kind in received}
    assert {"AdvantageLines", "AdvantageSet", "FrontierPoint", "MemorizedState", "MetaStrategy"} <= names
    assert received <= {*public, *beside}, received - {*public, *beside}
    assert set(beside) <= received and not set(beside) & set(public)  # nothing is described for nothing


def _policies(kind, game):
    """Return (sigma_pre, sigma); only sigma is kept in results."""
    if kind == "named":
        return make_policy(game, "random(seed=2)"), make_policy(game, "random(seed=1)")
    return random_policy(1, by="infoset"), openspiel_policy.UniformRandomPolicy(game)


def _tree(kind, game_string):
    game = pyspiel.load_game(game_string)
    sigma_pre, sigma = _policies(kind, game)
    return HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=sigma, penalties=(1e-5, 2e-5))


def _same(one, two):
    """Return whether two results are equal, arrays and trees included."""
    if isinstance(one, HistoryTree):
        return one.fingerprint == two.fingerprint and one.penalties == two.penalties
    if dataclasses.is_dataclass(one):
        return all(_same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, pyspiel.Game | openspiel_policy.Policy):
        return str(getattr(one, "game", one)) == str(getattr(two, "game", two))
    if isinstance(one, functools.partial):
        return (one.func, one.args, one.keywords) == (two.func, two.args, two.keywords)
    return one == two


def _again(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("kind", ["uniform", "named", "without"])
def test_results_come_back_with_their_policies(kind):
    tree = _tree(kind, "kuhn_poker")
    if kind == "without":
        tree = dataclasses.replace(tree, policies=(None, None))
    found, best = meta_equilibrium(tree, iterations=50), best_precomputation(tree, 0)
    for result in (
        found,
        meta_sequence_form_lp(tree),
        meta_exploitability(tree, found.strategies),
        best,
        best_precomputation(tree, 1, budget=2, opponent=found.strategies[0]),
        memory_frontier(tree, 0),
        memory_frontier(tree, 0).at(0.01),
        MetaStrategy.of_set(tree, 0, []),
        next(best.states()),
    ):
        assert _same(result, _again(result)), result
    strategy, rival = found.strategies[0], MetaStrategy.of_set(tree, 1, [])
    size = len(pickle.dumps(strategy))
    strategy.realization_plan()  # its passes over the tree are not pickled
    assert len(pickle.dumps(strategy)) <= size + 1000
    again = _again(strategy)
    assert (again.realization_plan() == strategy.realization_plan()).all()
    assert not again.memorize.flags.writeable
    assert meta_exploitability(tree, (again, rival)) == meta_exploitability(tree, (strategy, rival))


def test_entropy_bounds_come_back():
    bounds = EntropyBounds(_tree("uniform", "connect_four(rows=3,columns=3,x_in_row=3)"), 0)
    again = _again(bounds)
    assert _same(bounds.best_bound(0.05), again.best_bound(0.05))
    assert _same(bounds.lines(0.5), again.lines(0.5))


@pytest.mark.parametrize("kind", ["uniform", "named"])
@pytest.mark.parametrize("way", ["rollouts", "evaluations"])
def test_certified_results_come_back(kind, way):
    game = pyspiel.load_game("tic_tac_toe")
    arguments = game, *_policies(kind, game), 0.05, 0
    if way == "rollouts":
        found = certified_precomputation(*arguments, epsilon=0.5)
    else:
        found = best_first_precomputation(*arguments, lambda state: 0.0, position_key=str)
    again, start = _again(found), game.new_initial_state()
    assert _same(found, again)
    assert again.policy().action_probabilities(start) == found.policy().action_probabilities(start)
