"""The meta-game as an OpenSpiel game, against payoffs over all pairs of sets with choices."""

import copy
import dataclasses
import gc
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pyspiel
import pytest

import precomp_games.chess  # noqa: F401  (registers python_chess)
from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, to_efg
from precomp_games.meta_game.rules import MEMORIZE
from precomp_games.tree.base_game import named_game
from tests.oracles.books import states
from tests.oracles.games import expand, first, last, random_menu, random_policy, random_tree, uniform
from tests.oracles.meta_games import (
    enumerated,
    game_payoffs,
    kuhn_tree,
    matrix_value,
    menu_tree,
    meta_cases,
    within,
)
from tests.oracles.trees import efg

_NAME = "python_meta_precomputation"
_CASES = 240


# -- payoffs ---------------------------------------------------------------------------------------


def _payoffs(case, game):
    """Return (the game's payoffs, the true ones) for all pairs of choices that its tree has."""
    inside = within(case, game.tree)
    choices = [[case.choices[i][k] for k in inside[i]] for i in (0, 1)]
    return game_payoffs(game, choices), case.payoffs[np.ix_(*inside)]


def test_payoffs_of_both_forms(cases):
    """Audit always; reweighted if, and only if, it is not refused."""
    compared = refused = 0
    for case in meta_cases(cases(_CASES)):
        found, truth = _payoffs(case, MetaPrecomputationGame(case.whole))
        np.testing.assert_allclose(found, truth, atol=1e-9, rtol=0)
        try:
            game = MetaPrecomputationGame(case.whole, "reweighted")
        except ValueError:
            if case.weight is None:  # what is free may be uncharged
                found, _ = _payoffs(case, MetaPrecomputationGame(case.whole, "reweighted", False))
                assert np.abs(found - truth).max() > 1e-4
                refused += 1
            continue
        if math.inf not in case.penalties:  # else G' does not ask about what never comes about
            np.testing.assert_allclose(_payoffs(case, game)[0], truth, atol=1e-9, rtol=0)
            compared += 1
    assert compared >= cases(20)
    assert refused >= cases(40)


def test_truncated_trees_have_the_value_of_whole_ones(cases):
    smaller = 0
    for case in meta_cases(cases(_CASES))[::2]:
        dear = dataclasses.replace(case, penalties=tuple(5.0 * penalty for penalty in case.penalties))
        found, _ = _payoffs(dear, MetaPrecomputationGame(dear.tree))
        assert matrix_value(found) == pytest.approx(dear.value, abs=1e-8)
        smaller += dear.tree.num_infosets < case.whole.num_infosets
    assert smaller >= cases(8)


@pytest.mark.parametrize(
    ("seed", "truth", "lemma"),
    [(2, 0.437153, 0.514910), (4, 0.070166, 0.095116), (7, 1.256819, 1.229684), (9, 0.385206, 0.346412)],
)
def test_where_lemma_4_fails_audits_do_not(seed, truth, lemma):
    """Deterministic policies: what a player memorizes for a history that does not come about is uncharged."""
    pre, sigma = ([random_policy(4 * seed + k + i, "pure") for i in (0, 1)] for k in (0, 2))
    game = random_tree(seed, depth=4, actions=2, chance=0.0)
    case = enumerated(game, pre, sigma, (0.07, 0.05))
    assert case.value == pytest.approx(truth, abs=1e-6)
    for form, value in (("audit", truth), ("reweighted", lemma)):
        found, _ = _payoffs(case, MetaPrecomputationGame(case.whole, form, check_supports=False))
        assert matrix_value(found) == pytest.approx(value, abs=1e-6)


def test_an_infinite_penalty_leaves_no_decisions(cases):
    for case in meta_cases(cases(_CASES))[::3]:
        for who in ((0,), (1,), (0, 1)):
            penalties = [math.inf if i in who else penalty for i, penalty in enumerate(case.penalties)]
            tree = case.whole.with_penalties(penalties)
            inside = within(case, tree)
            for i in who:
                inside[i] = [case.choices[i].index({})]
            choices = [[case.choices[i][k] for k in inside[i]] for i in (0, 1)]
            game, truth = MetaPrecomputationGame(tree), case.payoffs[np.ix_(*inside)]
            np.testing.assert_allclose(game_payoffs(game, choices), truth, atol=1e-9, rtol=0)
            MetaPrecomputationGame(tree, "reweighted", check_supports=who != (0, 1))
            finite = [i for i in (0, 1) if math.isfinite(penalties[i])]
            sizes = np.diff(tree.first_entry)[np.isin(tree.infoset_player, finite)]
            assert game.num_distinct_actions() == 1 + max(sizes, default=1)


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


def test_the_largest_charges_for_an_information_state_are_as_small_as_they_can_be():
    """Over its histories they are equal; any other distribution would raise one of them."""
    for seed in range(4):
        tree = menu_tree("efg", 3 * seed, "none", policies=True)
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
    game = pyspiel.load_game("tic_tac_toe")

    tree = HistoryTree.from_game(game, sigma_pre=first, sigma=last, penalties=0.1)
    with pytest.raises(ValueError) as refused:
        MetaPrecomputationGame(tree, "reweighted")
    message = str(refused.value)
    # x(0,0) and x(2,2) are player 0's first moves; player 1 does not know which was memorized.
    assert "player 1 at history 'x(0,0)'" in message
    assert 'form="audit"' in message and "check_supports=False" in message
    MetaPrecomputationGame(tree, "reweighted", check_supports=False)
    MetaPrecomputationGame(tree.with_penalties((math.inf, 0.1)), "reweighted")


# -- as an OpenSpiel game --------------------------------------------------------------------------


class _Visit:
    """Goes through a whole game; checks each state, and that players remember what they knew and did."""

    def __init__(self, game):
        self.game = game
        self.own_pasts, self.infosets, self.seen = {}, {}, ({}, {})
        self.largest, self.decisions, self.chances = 0.0, 0, 0
        self.visit(game.new_initial_state(), ((), ()), 0, 0)

    def visit(self, state, pasts, made, drawn):
        if state.is_terminal():
            assert sum(state.returns()) == pytest.approx(0.0, abs=1e-12)
            self.largest = max(self.largest, abs(state.returns()[0]))
            self.decisions, self.chances = max(self.decisions, made), max(self.chances, drawn)
            return
        for i in (0, 1):  # wherever a player is asked what it knows, it knows what it chose
            own = tuple(action for _, action in pasts[i])
            assert self.seen[i].setdefault(state.information_state_string(i), own) == own or own == ()
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert sum(p for _, p in outcomes) == pytest.approx(1.0, abs=1e-12)
            assert all(p > 0.0 and 0 <= a < self.game.max_chance_outcomes() for a, p in outcomes)
            for action, _ in outcomes:
                self.visit(state.child(action), pasts, made, drawn + 1)
            return
        i, tree = state.current_player(), self.game.tree
        name, k = state.information_state_string(), state.infoset
        assert self.own_pasts.setdefault(name, pasts[i]) == pasts[i]
        assert self.infosets.setdefault(name, k) == k
        assert name == self.game.rules.infoset_view(k)
        assert state.legal_actions() == list(range(1 + tree.first_entry[k + 1] - tree.first_entry[k]))
        assert max(state.legal_actions()) < self.game.num_distinct_actions()
        names = [state.action_to_string(i, action) for action in state.legal_actions()]
        assert len(set(names)) == len(names) and names[0] == "stop"
        for action in state.legal_actions():
            own = (*pasts[i], (name, action))
            after = (own, pasts[1]) if i == 0 else (pasts[0], own)
            self.visit(state.child(action), after, made + 1, drawn)


@pytest.mark.parametrize("form", ["audit", "reweighted"])
def test_perfect_recall_and_bounds(form, cases):
    for case in meta_cases(cases(_CASES))[::2]:
        tree = case.whole
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        seen = _Visit(game)
        if form == "audit":  # which visits whatever some entry leads to
            own_reach = np.array(tree.own_reaches)[tree.infoset_player, tree.infoset_history]
            assert set(np.flatnonzero(own_reach > 0.0)) <= set(seen.infosets.values())
        assert len(set(seen.infosets.values())) == len(seen.infosets)
        assert seen.largest <= game.max_utility() == -game.min_utility()
        # Audits reach the bound; reweighted charges for the worst stop time at each step, which may differ.
        assert seen.largest >= game.max_utility() * (1.0 - 1e-8 if form == "audit" else 0.5)
        assert seen.decisions <= game.max_game_length()
        assert seen.chances <= game.max_chance_nodes_in_history()


def test_audits_with_more_ways_on_than_actions():
    policies = [random_policy(seed) for seed in range(4)]
    tree = expand(
        random_tree(1, depth=5, actions=3, chance=0.0), policies[:2], policies[2:], 0.02, truncate="none"
    )
    game = MetaPrecomputationGame(tree)
    ways = [len(s.chance_outcomes()) for s in states(game) if s.is_chance_node()]
    assert max(ways) > 3
    assert game.max_chance_outcomes() >= max(ways)


def test_actions_of_games_that_are_not_there():
    game = MetaPrecomputationGame(kuhn_tree())
    audit = game.new_initial_state().child(1)
    assert audit.action_to_string(0) == "information state 0"
    unloadable = dataclasses.replace(game.tree, base_game=None, game_string="nobody_knows_this_game")
    state = MetaPrecomputationGame(unloadable).new_initial_state().child(0)
    assert state.action_to_string(2) == "2"


@pytest.mark.parametrize("form", ["audit", "reweighted"])
@pytest.mark.parametrize("base", ["kuhn_poker", "tic_tac_toe", "python_chess(max_plies=3)"])
@pytest.mark.parametrize("menus", [False, True])
def test_random_simulations_from_a_file(tmp_path, base, form, menus):
    game = pyspiel.load_game(base)
    by = "infoset" if base == "kuhn_poker" else "position"
    support = "full" if base == "kuhn_poker" else "pure"
    pre = [random_menu(seed, 2, by) if menus else random_policy(seed, support, by) for seed in (1, 2)]
    sigma = random_policy(3, support, by)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.3)
    assert tree.num_infosets >= 2 and tree.has_menus == menus
    path = str(tmp_path / "tree.npz")
    tree.save(path)
    meta = pyspiel.load_game(_NAME, {"tree_file": path, "form": form, "check_supports": False})
    assert meta.tree.fingerprint == tree.fingerprint
    pyspiel.random_sim_test(meta, 2, True, False)
    again = pyspiel.load_game(str(meta))
    assert str(again) == str(meta)
    assert again.rules is meta.rules  # while a game lives, others share its tables
    assert pickle.loads(pickle.dumps(meta)).tree is meta.tree


def test_games_from_specs():
    default = pyspiel.load_game(_NAME)
    assert default.tree.penalties == (0.05, 0.05)
    text = (
        f"{_NAME}(game=kuhn_poker(),sigma=noisy(policy=uniform(),epsilon=0.5),sigma_pre=cfr(iterations=20),"
        "penalty_0=0.1,penalty_1=-1.0,form=reweighted)"
    )
    game = pyspiel.load_game(text)
    assert game.tree.penalties == (0.1, math.inf)
    assert game.form == "reweighted"
    pyspiel.random_sim_test(game, 3, True, False)
    same = pyspiel.load_game(
        _NAME,
        {
            "sigma": {"name": "noisy", "policy": {"name": "uniform"}, "epsilon": 0.5},
            "sigma_pre": {"name": "cfr", "iterations": 20},
            "penalty_0": 0.1,
            "penalty_1": math.inf,
            "form": "reweighted",
        },
    )
    assert same.tree.fingerprint == game.tree.fingerprint
    assert pyspiel.load_game(str(same)).tree.fingerprint == game.tree.fingerprint
    assert pickle.loads(pickle.dumps(same)).max_utility() == game.max_utility()


def test_games_in_memory(tmp_path):
    tree = menu_tree("tree", 3, penalties=(0.061, 0.052), policies=True)
    game = MetaPrecomputationGame(tree)
    assert game.tree is tree
    pyspiel.random_sim_test(game, 3, True, False)
    state = game.new_initial_state().child(0)
    text = pyspiel.serialize_game_and_state(game, state)
    back_game, back = pyspiel.deserialize_game_and_state(text)
    assert str(back) == str(state)
    assert back_game.tree is tree
    copy = pickle.loads(pickle.dumps(game))  # with the tree, without its policies, which are functions here
    assert copy.tree is not tree
    assert copy.tree.fingerprint == tree.fingerprint
    assert copy.tree.policies == (None, None)

    # Another process: pickles carry the tree, strings do not.
    kuhn = MetaPrecomputationGame(kuhn_tree())
    (tmp_path / "pickle").write_bytes(pickle.dumps(kuhn))
    (tmp_path / "string").write_text(str(kuhn))
    program = (
        "import pickle, pathlib, sys, pyspiel; import precomp_games.meta_game\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "try:\n    pyspiel.load_game((folder / 'string').read_text())\n"
        "except ValueError as error:\n    print(error)\n"
        "print(pickle.loads((folder / 'pickle').read_bytes()).max_utility())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    message, utility = run.stdout.strip().splitlines()
    assert "save the tree with save()" in message
    assert float(utility) == kuhn.max_utility()

    name = str(game)
    del game, state, back, back_game, copy
    gc.collect()
    with pytest.raises(ValueError, match=r"in the memory of a process or a game that is gone"):
        pyspiel.load_game(name)


def test_a_game_loads_from_its_string_when_a_second_one_is_gone():
    tree = kuhn_tree()
    game = MetaPrecomputationGame(tree)
    for passing in (to_efg, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(MetaPrecomputationGame(t)))):
        passing(tree)
        copy.deepcopy(game)
        MetaPrecomputationGame(copy.deepcopy(tree))
        gc.collect()
        assert pyspiel.load_game(str(game)).tree is tree
    state = game.new_initial_state().child(0)
    text = pyspiel.serialize_game_and_state(game, state)
    assert str(pyspiel.deserialize_game_and_state(text)[1]) == str(state)
    pyspiel.random_sim_test(game, 2, True, False)
    # The second one goes on to load when the first is gone.
    second = MetaPrecomputationGame(copy.deepcopy(tree))
    del game, state
    gc.collect()
    assert pyspiel.load_game(str(second)).tree.same_as(tree)


def test_a_file_that_changed_is_read_again(tmp_path):
    path = str(tmp_path / "tree.npz")
    menu_tree("tree", 1).save(path)
    before = pyspiel.load_game(_NAME, {"tree_file": path})
    menu_tree("tree", 2).save(path)
    after = pyspiel.load_game(_NAME, {"tree_file": path})
    assert before.tree.fingerprint != after.tree.fingerprint


@pytest.mark.parametrize(
    "name",
    [
        "my trees (1).npz",
        "a,b=c.npz",
        ")(",
        'a "b".npz',
        '"a".npz',
        '"',
        "1.5",
        "true",
        "ü; [x] %28 ~",
        "-x",
        "a\nb",
    ],
)
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
