"""The meta-game as an OpenSpiel game, against payoffs over all pairs of sets with choices."""

import collections
import copy
import dataclasses
import gc
import json
import math
import pickle

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation

from precomp_games import Menu, MetaPrecomputationGame, to_efg
from precomp_games.meta_game.rules import MEMORIZE
from precomp_games.tree.base_game import named_game
from tests.oracles.books import states
from tests.oracles.games import SEEDS, expand, first, games, last, policy_pairs, random_tree, setting, uniform
from tests.oracles.meta_games import (
    enumerated,
    game_payoffs,
    known_cases,
    kuhn_tree,
    matrix_value,
    menu_tree,
    within,
)
from tests.oracles.trees import efg
from tests.properties import examples

_NAME = "python_meta_precomputation"


@pytest.fixture(scope="module")
def kuhn():
    return kuhn_tree()


# -- payoffs ---------------------------------------------------------------------------------------


def _payoffs(case, game):
    """Return (the game's payoffs, the true ones) for all pairs of choices that its tree has."""
    inside = within(case, game.tree)
    choices = [[case.choices[i][k] for k in inside[i]] for i in (0, 1)]
    return game_payoffs(game, choices), case.payoffs[np.ix_(*inside)]


def test_payoffs_of_both_forms():
    """Audit always; reweighted if, and only if, it is not refused, which Lemma 4 does not say."""
    seen = collections.Counter()

    @examples(480)
    @given(known_cases())
    @example(enumerated(*setting(random_tree(1, depth=3, actions=2), 1, ("menu", "menu")), (0.05, 0.05)))
    def holds(case):
        tree, never = case.whole, np.isinf(case.penalties)
        game = MetaPrecomputationGame(tree)
        found, truth = _payoffs(case, game)
        np.testing.assert_allclose(found, truth, atol=1e-9, rtol=0)
        sizes = np.diff(tree.first_entry)[~never[tree.infoset_player]]
        assert game.num_distinct_actions() == 1 + max(sizes, default=1)
        try:
            reweighted = MetaPrecomputationGame(tree, "reweighted")
        except ValueError:
            assert not never.any()
            reweighted = MetaPrecomputationGame(tree, "reweighted", False)
            if case.weight is None:  # what is free may be uncharged
                assert np.abs(_payoffs(case, reweighted)[0] - truth).max() > 1e-6
                seen.update(refused=1)
        else:
            if not never.any():  # else G' does not ask about what never comes about
                np.testing.assert_allclose(_payoffs(case, reweighted)[0], truth, atol=1e-9, rtol=0)
                seen.update(compared=bool(tree.num_infosets))

        smaller = case.tree
        found, _ = _payoffs(case, MetaPrecomputationGame(smaller))
        assert matrix_value(found) == pytest.approx(case.value, abs=1e-8)
        seen.update(truncated=smaller.num_infosets < tree.num_infosets)

    holds()
    assert min(seen[what] for what in ("refused", "compared", "truncated")) > 0


@pytest.mark.parametrize(  # docs/model.md has these
    ("seed", "truth", "lemma"),
    [(2, 0.437153, 0.514910), (4, 0.070166, 0.095116), (7, 1.256819, 1.229684), (9, 0.385206, 0.346412)],
)
def test_where_lemma_4_fails_audits_do_not(seed, truth, lemma):
    """Deterministic policies: what a player memorizes for a history that does not come about is uncharged."""
    game = random_tree(seed, depth=4, actions=2, chance=0.0)
    case = enumerated(game, *policy_pairs(seed, "pure"), (0.07, 0.05))
    assert case.value == pytest.approx(truth, abs=1e-6)
    for form, value in (("audit", truth), ("reweighted", lemma)):
        found, _ = _payoffs(case, MetaPrecomputationGame(case.whole, form, check_supports=False))
        assert matrix_value(found) == pytest.approx(value, abs=1e-6)


_ASIDE = efg(
    'c "" 1 "" { "l" 0.25 "r" 0.75 } 0',
    'p "" 2 1 "" { "a" "b" } 0',  # left of chance player 2 has a move, right of it none
    'p "" 1 1 "" { "x" "y" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { 0 0 }',
    'p "" 1 1 "" { "x" "y" } 0',
    't "" 3 "" { -1 1 }',
    't "" 4 "" { 2 -2 }',
    'p "" 1 1 "" { "x" "y" } 0',
    't "" 5 "" { 1 -1 }',
    't "" 6 "" { 0.5 -0.5 }',
)


@pytest.mark.parametrize(
    ("rival", "rivals_sigma"), [(first, last), (Menu.of_actions(), uniform)], ids=["policies", "menu"]
)
def test_histories_that_come_about_for_all_choices_carry_the_charge(rival, rivals_sigma):
    """An information state is refused only if it has none."""
    case = enumerated(_ASIDE, (last, rival), (first, rivals_sigma), (0.01, 0.01))
    game = MetaPrecomputationGame(case.whole, "reweighted")
    found, truth = _payoffs(case, game)
    np.testing.assert_allclose(found, truth, atol=1e-12)
    decisions = {state.position.history for state in states(game) if state.current_player() == 0}
    assert sum(game.rules._weight[history] > 0.0 for history in decisions) == 1


@examples(160)
@given(st.builds(setting, games("imperfect"), SEEDS))
def test_the_largest_charges_for_an_information_state_are_as_small_as_they_can_be(case):
    """Over its histories they are equal; any other distribution would raise one of them."""
    tree = expand(*case, 0.05, truncate="none")
    game = MetaPrecomputationGame(tree, "reweighted")
    largest = {}
    for state in states(game):
        if state.current_player() >= 0:
            key = (state.infoset, state.position.history)
            after = game.rules.step(state.position, MEMORIZE)
            largest[key] = max(largest.get(key, 0.0), abs(after.cost - state.position.cost))
    assert len(largest) == int((tree.infoset >= 0).sum())
    for infoset in range(tree.num_infosets):
        charges = [charge for (k, _), charge in largest.items() if k == infoset]
        assert max(charges) == pytest.approx(min(charges), rel=1e-9)


def test_refusal_names_the_first_history_and_the_remedies():
    tree = expand(pyspiel.load_game("tic_tac_toe"), first, last, 0.1)
    # x(0,0) and x(2,2) are player 0's first moves; player 1 does not know which was memorized.
    words = r"player 1 at history 'x\(0,0\)'.*form=\"audit\", or check_supports=False"
    with pytest.raises(ValueError, match=words):
        MetaPrecomputationGame(tree, "reweighted")
    MetaPrecomputationGame(tree, "reweighted", check_supports=False)
    MetaPrecomputationGame(tree.with_penalties((math.inf, 0.1)), "reweighted")


# -- as an OpenSpiel game --------------------------------------------------------------------------


def test_actions_of_games_that_are_not_there(kuhn):
    audit = MetaPrecomputationGame(kuhn).new_initial_state().child(1)
    assert audit.action_to_string(0) == "information state 0"
    unloadable = dataclasses.replace(kuhn, base_game=None, game_string="nobody_knows_this_game")
    state = MetaPrecomputationGame(unloadable).new_initial_state().child(0)
    assert state.action_to_string(2) == "2"


def test_games_from_specs():
    assert pyspiel.load_game(_NAME).tree.penalties == (0.05, 0.05)
    game = pyspiel.load_game(
        f"{_NAME}(game=kuhn_poker(),sigma=noisy(policy=uniform(),epsilon=0.5),sigma_pre=cfr(iterations=20),"
        "penalty_0=0.1,penalty_1=-1.0,form=reweighted)"
    )
    assert (game.tree.penalties, game.form) == ((0.1, math.inf), "reweighted")
    noisy, cfr = {"name": "uniform"}, {"name": "cfr", "iterations": 20}
    policies = {"sigma": {"name": "noisy", "policy": noisy, "epsilon": 0.5}, "sigma_pre": cfr}
    same = pyspiel.load_game(_NAME, policies | {"penalty_0": 0.1, "penalty_1": math.inf})
    assert same.tree.same_as(game.tree) and same.tree.penalties == game.tree.penalties


def test_a_pickle_carries_a_tree_in_memory_and_a_string_does_not():
    tree = menu_tree("tree", 3, penalties=(0.061, 0.052), policies=True)
    game = MetaPrecomputationGame(tree)
    assert game.tree is pyspiel.load_game(str(game)).tree is tree
    name, pickled, largest = str(game), pickle.dumps(game), game.max_utility()
    del game
    gc.collect()
    with pytest.raises(ValueError, match="in the memory of a process or a game that is gone; save the tree"):
        pyspiel.load_game(name)
    again = pickle.loads(pickled)  # with the tree, without its policies, which are functions here
    assert again.max_utility() == largest
    assert again.tree is not tree and again.tree.same_as(tree)
    assert again.tree.policies == (None, None)


def test_a_game_loads_from_its_string_when_a_second_one_is_gone():
    tree = kuhn_tree()
    game = MetaPrecomputationGame(tree)
    for passing in (to_efg, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(MetaPrecomputationGame(t)))):
        passing(tree)
        copy.deepcopy(game)
        MetaPrecomputationGame(copy.deepcopy(tree))
        gc.collect()
        assert pyspiel.load_game(str(game)).tree is tree
    # The second one goes on to load when the first is gone.
    second = MetaPrecomputationGame(copy.deepcopy(tree))
    del game
    gc.collect()
    assert pyspiel.load_game(str(second)).tree.same_as(tree)


def test_a_file_that_changed_is_read_again(tmp_path):
    path = str(tmp_path / "tree.npz")
    menu_tree("tree", 1).save(path)
    before = pyspiel.load_game(_NAME, {"tree_file": path})
    menu_tree("tree", 2).save(path)
    after = pyspiel.load_game(_NAME, {"tree_file": path})
    assert before.tree.fingerprint != after.tree.fingerprint


_FILES = ["my trees (1).npz", "a,b=c.npz", ")(", 'a "b".npz', '"a".npz', '"', "1.5", "true", "-x", "a\nb"]


@pytest.mark.parametrize("name", [*_FILES, "ü; [x] %28 ~"])
def test_a_file_may_have_any_name(name, tmp_path, monkeypatch):
    """By itself and in a folder, in OpenSpiel's strings and serializations and in pickles."""
    tree = menu_tree("tree", 1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"of {name}").mkdir()
    for path in (name, str(tmp_path / f"of {name}" / name)):
        tree.save(path)
        meta = pyspiel.load_game(_NAME, {"tree_file": path})
        assert meta.tree.same_as(tree)
        state = meta.new_initial_state()
        read, _ = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(meta, state))
        for again in (pyspiel.load_game(str(meta)), read, pickle.loads(pickle.dumps(meta))):
            assert str(again) == str(meta) and again.rules is meta.rules
        typed = named_game(f"{_NAME}(tree_file={json.dumps(path)})")  # as a user has it in a flag
        assert str(typed) == str(meta)


# -- tensors; that they distinguish what strings do is in tests/test_game_contract.py ---------------


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


# -- errors ----------------------------------------------------------------------------------------


def test_bad_arguments(tmp_path):
    tree = menu_tree("tree", 1)
    with pytest.raises(ValueError, match="among the parameters, got 'reweighted'"):
        MetaPrecomputationGame({"penalty_0": 0.1}, "reweighted")
    with pytest.raises(ValueError, match="expected a legal action, got 7 at start"):
        MetaPrecomputationGame(tree).new_initial_state().apply_action(7)
    with pytest.raises(ValueError, match="save the tree"):
        pyspiel.load_game(_NAME, {"tree_file": "memory:0123"})
    with pytest.raises(FileNotFoundError):
        pyspiel.load_game(_NAME, {"tree_file": str(tmp_path / "missing.npz")})


@pytest.mark.parametrize("penalty", [1, 1.0, "1", "1.0", "1e0"])
def test_penalties_as_openspiels_parser_reads_them(penalty):
    game = MetaPrecomputationGame(
        {"sigma_pre": {"name": "uniform"}, "penalty_0": penalty, "penalty_1": "1e-3"}
    )
    assert game.tree.penalties == (1.0, 0.001)
    assert pyspiel.load_game(str(game)).tree.penalties == (1.0, 0.001)
    # OpenSpiel looks at the types of strings' parameters before the game is asked.
    with pytest.raises(pyspiel.SpielError, match="Wrong type for parameter penalty_0"):
        pyspiel.load_game(f"{_NAME}(sigma_pre=uniform(),penalty_0=1)")
