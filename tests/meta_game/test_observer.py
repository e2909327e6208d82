"""Tensors of the meta-game; that they distinguish what strings do is in tests/test_game_contract.py."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation

from precomp_games import MetaPrecomputationGame
from precomp_games.meta_game.rules import FORMS
from tests.oracles.books import states
from tests.oracles.meta_games import kuhn_tree, menu_tree


@pytest.fixture(scope="module")
def kuhn():
    return kuhn_tree()


def test_moves_are_seen_where_information_is_perfect():
    game = MetaPrecomputationGame(menu_tree("tree", 3, "none", policies=True))
    tree, observer = game.tree, game.make_py_observer(INFO_STATE_OBS_TYPE)
    for state in states(game):
        observer.set_from(state, 1)
        ranks, history = [], 0
        for action in tree.actions(state.position.history):
            children = tree.children(history)
            ranks.append([int(tree.action[child]) for child in children].index(action))
            history = children[ranks[-1]]
        assert np.argwhere(observer.dict["moves"]).tolist() == [list(step) for step in enumerate(ranks)]


def test_observations_that_openspiel_makes_of_the_observer(kuhn):
    """Its C++ side packs and unpacks them as well."""
    for tree in (kuhn, menu_tree("tree", 0, "none", policies=True)):
        game = MetaPrecomputationGame(tree)
        seen = pyspiel._Observation(game, game.make_observer(INFO_STATE_OBS_TYPE, {}))
        size = game.make_py_observer().tensor.shape
        assert tuple(game.information_state_tensor_shape()) == tuple(game.observation_tensor_shape()) == size
        assert sum(int(np.prod(part.shape)) for part in seen.tensors_info()) == size[0]
        for state in states(game):
            for player in (0, 1):
                seen.set_from(state, player)
                tensor = np.frombuffer(seen, np.float32).copy()
                assert tensor.tolist() == state.information_state_tensor(player)
                packed = seen.compress()
                seen.set_from(game.new_initial_state(), 1 - player)
                seen.decompress(packed)
                np.testing.assert_array_equal(np.frombuffer(seen, np.float32), tensor)
        by_python = make_observation(game, INFO_STATE_OBS_TYPE)
        by_python.set_from(state, 0)
        assert by_python.tensor.tolist() == state.information_state_tensor(0)


def test_nothing_private_has_no_tensor(kuhn):
    kind = pyspiel.IIGObservationType(perfect_recall=True, private_info=pyspiel.PrivateInfoType.NONE)
    assert MetaPrecomputationGame(kuhn).make_py_observer(kind).tensor is None


@pytest.mark.parametrize("form", FORMS)
def test_learners_environment(form, kuhn):
    """OpenSpiel's environment gives tensors, and an audit or a play from beginning to end."""
    sampler = rl_environment.ChanceEventSampler(seed=1)
    environment = rl_environment.Environment(MetaPrecomputationGame(kuhn, form), chance_event_sampler=sampler)
    rng, returns = np.random.default_rng(1), []
    for _ in range(50):
        step = environment.reset()
        while not step.last():
            player = step.observations["current_player"]
            assert len(step.observations["info_state"][player]) == 20
            step = environment.step([int(rng.choice(step.observations["legal_actions"][player]))])
        returns.append(step.rewards)
    assert np.abs(np.sum(returns, axis=1)).max() <= 1e-12
    assert len({r[0] for r in returns}) > 3
