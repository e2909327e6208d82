"""The meta-game as an OpenSpiel game, against payoff matrices over all pairs of prefix-closed sets."""

import copy
import dataclasses
import functools
import gc
import math
import pickle
import subprocess
import sys

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, get_all_states
from scipy.optimize import linprog

import precomp_games.chess  # noqa: F401  (registers python_chess)
from precomp_games import HistoryTree, to_efg
from precomp_games.meta_game.game import MEMORIZE, STOP, MetaPrecomputationGame
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

_NAME = "python_meta_precomputation"
_MOST_SETS = 60


def _policies(seed, support, by="history"):
    return [[random_policy(4 * seed + 2 * k + i, support, by) for i in (0, 1)] for k in (0, 1)]


@functools.cache
def case(kind, seed, support, penalties=(0.07, 0.05), truncate="none"):
    """(tree, pre, sigma) of a small random game."""
    rng = np.random.default_rng(seed)
    if kind == "tree":
        game, by = random_tree(seed, depth=int(rng.integers(3, 5)), actions=2, chance=0.2), "history"
    elif kind == "deterministic":
        game, by = random_tree(seed, depth=4, actions=2, chance=0.0), "history"
    elif kind == "efg":
        game, by = random_efg(seed, depth=4), "infoset"
    else:
        game, by = pyspiel.load_game("kuhn_poker"), "infoset"
    pre, sigma = _policies(seed, support, by)
    return (
        HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties, truncate=truncate),
        pre,
        sigma,
    )


def infoset_names(tree, player):
    """{what `reference` calls it: the tree's information state}."""
    own = np.flatnonzero(tree.infoset_player == player).tolist()
    if tree.infoset_keys is not None:
        return {tree.infoset_keys[k]: k for k in own}
    return {str(tree.actions(int(tree.infoset_history[k]))): k for k in own}


@functools.lru_cache(maxsize=4)
def all_sets(tree):
    """Each player's prefix-closed sets of information states of the tree, as `reference` calls them."""
    sets = []
    for i in (0, 1):
        names = infoset_names(tree, i) if math.isfinite(tree.penalties[i]) else {}
        parents = reference.predecessors(tree.game, i) if names else {}
        kept = {name: parent for name, parent in parents.items() if name in names}
        if reference.count_prefix_closed_sets(kept) > _MOST_SETS:
            return None
        sets.append(list(reference.prefix_closed_sets(kept)))
    return sets


def true_matrix(tree, pre, sigma):
    """u~(S_0, S_1) of Definition 2, by playing the base game out for each pair of sets."""
    sets = all_sets(tree)
    # lambda |S| is 0 for the empty set, whatever lambda is.
    cost = [[len(chosen) * tree.penalties[i] if chosen else 0.0 for chosen in sets[i]] for i in (0, 1)]
    return reference.utilities(tree.game, sets, pre, sigma) - np.array(cost[0])[:, None] + np.array(cost[1])


def game_matrix(game, tree=None):
    """The same from the OpenSpiel game: each terminal state's part in each pair of pure strategies.

    Information states are told apart by their strings alone.
    """
    tree = tree or game.tree
    memorized = []
    for i, sets in enumerate(all_sets(tree)):
        names = infoset_names(tree, i)
        memorized.append([{game.infoset_string(names[name]) for name in chosen} for chosen in sets])
    payoff = np.zeros(tuple(map(len, memorized)))

    def walk(state, weight, plays):
        if state.is_terminal():
            payoff[...] += weight * state.returns()[0] * np.outer(*plays)
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), weight * p, plays)
        else:
            i = state.current_player()
            name = state.information_state_string()
            goes_on = np.array([name in chosen for chosen in memorized[i]], float)
            for action, chosen in ((STOP, 1.0 - goes_on), (MEMORIZE, goes_on)):
                part = list(plays)
                part[i] = part[i] * chosen
                walk(state.child(action), weight, part)

    walk(game.new_initial_state(), 1.0, [np.ones(len(sets)) for sets in memorized])
    return payoff + tree.utility_sum / 2.0


def matrix_value(payoff):
    """The value of a matrix game, and the row player's mixture."""
    rows, columns = payoff.shape
    result = linprog(
        np.r_[np.zeros(rows), -1.0],
        A_ub=np.c_[-payoff.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=np.r_[np.ones(rows), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    assert result.status == 0
    return float(-result.fun)


def walk(game):
    """All states of a game, parents first."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        yield state
        if not state.is_terminal():
            stack += [state.child(action) for action in state.legal_actions()]


_CASES = [
    *(("tree", seed, support) for seed in range(25) for support in ("full", "partial", "pure")),
    *(("efg", seed, support) for seed in range(25) for support in ("full", "partial", "pure")),
]


def _small(cases):
    return [c for c in cases if all_sets(case(*c)[0]) is not None]


# -- payoffs ---------------------------------------------------------------------------------------


def test_there_are_enough_cases():
    small = _small(_CASES)
    assert len(small) >= 100
    for kind in ("tree", "efg"):
        for support in ("full", "partial", "pure"):
            assert sum(c[0] == kind and c[2] == support for c in small) >= 10
    assert any((case(*c)[0].player == -1).any() for c in small)


@pytest.mark.parametrize("kind", ["tree", "efg"])
@pytest.mark.parametrize("support", ["full", "partial", "pure"])
def test_payoffs_are_those_of_definition_2(kind, support):
    """Audit always; reweighted if, and only if, it is not refused."""
    refused = 0
    cases = _small(c for c in _CASES if c[0] == kind and c[2] == support)
    for c in cases:
        tree, pre, sigma = case(*c)
        truth = true_matrix(tree, pre, sigma)
        np.testing.assert_allclose(game_matrix(MetaPrecomputationGame(tree)), truth, atol=1e-9, rtol=0)
        try:
            game = MetaPrecomputationGame(tree, "reweighted")
        except ValueError:
            refused += 1
            game = MetaPrecomputationGame(tree, "reweighted", check_supports=False)
            wrong = np.abs(game_matrix(game) - truth).max()
            # Singletons go uncharged altogether; others in part.
            assert wrong > (0.049 if kind == "tree" else 1e-4)
        else:
            np.testing.assert_allclose(game_matrix(game), truth, atol=1e-9, rtol=0)
    if support == "full":
        assert refused == 0
    elif support == "pure":
        assert refused > 0


def test_kuhn_payoffs():
    tree, pre, sigma = case("kuhn", 3, "full")
    names = [infoset_names(tree, i) for i in (0, 1)]
    assert [len(n) for n in names] == [6, 6]
    rng = np.random.default_rng(0)
    everything = [list(reference.prefix_closed_sets(reference.predecessors(tree.game, i))) for i in (0, 1)]
    assert [len(s) for s in everything] == [27, 64]
    for form in ("audit", "reweighted"):
        game = MetaPrecomputationGame(tree, form)
        for _ in range(8):
            chosen = [s[rng.integers(len(s))] for s in everything]
            utility = reference.expected_utility(tree.game, chosen, pre, sigma)
            expected = utility - tree.penalties[0] * len(chosen[0]) + tree.penalties[1] * len(chosen[1])
            policies = [_pure(game, i, {names[i][name] for name in chosen[i]}) for i in (0, 1)]
            value = expected_game_score.policy_value(game.new_initial_state(), policies)
            assert value[0] + game.value_shift == pytest.approx(expected, abs=1e-9)
            assert value[0] + value[1] == pytest.approx(0.0, abs=1e-12)


def _pure(game, player, infosets):
    """The pure strategy of G' that memorizes a set, as an OpenSpiel policy."""
    table = {game.infoset_string(k): float(k in infosets) for k in infoset_names(game.tree, player).values()}

    class Pure(openspiel_policy.Policy):
        def action_probabilities(self, state, player_id=None):
            goes_on = table[state.information_state_string(player)]
            return {STOP: 1.0 - goes_on, MEMORIZE: goes_on}

    return Pure(game, [player])


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_truncated_trees_have_the_value_of_whole_ones(kind):
    compared = 0
    for seed in range(12):
        whole, pre, sigma = case(kind, seed, "partial", (0.4, 0.3))
        if all_sets(whole) is None:
            continue
        cut, _, _ = case(kind, seed, "partial", (0.4, 0.3), "reach")
        value = matrix_value(true_matrix(whole, pre, sigma))
        assert matrix_value(game_matrix(MetaPrecomputationGame(cut))) == pytest.approx(value, abs=1e-8)
        compared += cut.num_infosets < whole.num_infosets
    assert compared >= 2


def test_where_lemma_4_fails_audits_do_not():
    """Deterministic policies: what a player memorizes for a history that does not come about is uncharged."""
    differences = []
    for seed in range(12):
        tree, pre, sigma = case("deterministic", seed, "pure")
        if all_sets(tree) is None:
            continue
        truth = matrix_value(true_matrix(tree, pre, sigma))
        audit = matrix_value(game_matrix(MetaPrecomputationGame(tree)))
        assert audit == pytest.approx(truth, abs=1e-9)
        lemma = MetaPrecomputationGame(tree, "reweighted", check_supports=False)
        differences.append(abs(matrix_value(game_matrix(lemma)) - truth))
    assert len(differences) >= 6
    assert max(differences) > 5e-3


def test_an_infinite_penalty_leaves_no_decisions():
    for kind, seed, support in _small(_CASES)[::4]:
        tree, pre, sigma = case(kind, seed, support)
        fixed = tree.with_penalties((tree.penalties[0], math.inf))
        truth = true_matrix(fixed, pre, sigma)
        game = MetaPrecomputationGame(fixed)
        assert {s.current_player() for s in walk(game) if s.current_player() >= 0} <= {0}
        np.testing.assert_allclose(game_matrix(game), truth, atol=1e-9, rtol=0)
        game = MetaPrecomputationGame(fixed, "reweighted")  # whoever never memorizes is always fine
        # Of what an opponent without choices never lets happen, G' does not ask whether to memorize it.
        best = game_matrix(game)[:, 0].max()
        assert best == pytest.approx(truth[:, 0].max(), abs=1e-9)
    nobody = tree.with_penalties(math.inf)
    for form in ("audit", "reweighted"):
        game = MetaPrecomputationGame(nobody, form)
        expected = reference.expected_utility(nobody.game, (frozenset(), frozenset()), pre, sigma)
        assert game_matrix(game) == pytest.approx(expected, abs=1e-9)


def test_reweighted_charges_where_every_stop_time_is_possible():
    """An information state is refused only if none of its histories is safe."""
    lines = [
        'EFG 2 R "" { "one" "two" }',
        'c "" 1 "" { "l" 0.25 "r" 0.75 } 0',
        'p "" 2 1 "" { "a" "b" } 0',  # left: sigma_pre and sigma of player 2 differ, one history each
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 1 "" { 1 -1 }',
        't "" 2 "" { 0 0 }',
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 3 "" { -1 1 }',
        't "" 4 "" { 2 -2 }',
        'p "" 1 1 "" { "x" "y" } 0',  # right: always the same
        't "" 5 "" { 1 -1 }',
        't "" 6 "" { 0.5 -0.5 }',
    ]
    game = pyspiel.load_efg_game("\n".join(lines) + "\n")
    pre = sigma = lambda state: {state.legal_actions()[0]: 1.0}

    def last(state):
        return {state.legal_actions()[-1]: 1.0}

    tree = HistoryTree.from_game(
        game, sigma_pre=(last, pre), sigma=(sigma, last), penalties=0.01, truncate="none"
    )
    truth = true_matrix(tree, (last, pre), (sigma, last))
    meta = MetaPrecomputationGame(tree, "reweighted")
    np.testing.assert_allclose(game_matrix(meta), truth, atol=1e-12)
    charged = {
        s.tree_history for s in walk(meta) if s.current_player() == 0 and meta.rules._weight[s.tree_history]
    }
    assert len(charged) == 1


# -- as an OpenSpiel game --------------------------------------------------------------------------


class _Visit:
    """Goes through a whole game; checks each state, and that players remember what they knew and did."""

    def __init__(self, game):
        self.game = game
        self.own_pasts, self.infosets = {}, {}
        self.largest, self.decisions, self.chances = 0.0, 0, 0
        self.visit(game.new_initial_state(), ((), ()), 0, 0)

    def visit(self, state, pasts, made, drawn):
        for i in (0, 1):
            assert state.information_state_string(i).startswith(f"{i}|")
        if state.is_terminal():
            assert sum(state.returns()) == pytest.approx(0.0, abs=1e-12)
            self.largest = max(self.largest, abs(state.returns()[0]))
            self.decisions, self.chances = max(self.decisions, made), max(self.chances, drawn)
        elif state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert sum(p for _, p in outcomes) == pytest.approx(1.0, abs=1e-12)
            assert all(p > 0.0 and 0 <= a < self.game.max_chance_outcomes() for a, p in outcomes)
            for action, _ in outcomes:
                self.visit(state.child(action), pasts, made, drawn + 1)
        else:
            i = state.current_player()
            name = state.information_state_string()
            assert self.own_pasts.setdefault(name, pasts[i]) == pasts[i]
            assert self.infosets.setdefault(name, state.infoset) == state.infoset
            assert name == self.game.infoset_string(state.infoset)
            assert state.legal_actions() == [STOP, MEMORIZE]
            for action in (STOP, MEMORIZE):
                own = (*pasts[i], (name, action))
                after = (own, pasts[1]) if i == 0 else (pasts[0], own)
                self.visit(state.child(action), after, made + 1, drawn)


@pytest.mark.parametrize("form", ["audit", "reweighted"])
@pytest.mark.parametrize("kind", ["tree", "efg", "kuhn"])
def test_perfect_recall_and_bounds(kind, form):
    for seed in range(3):
        tree, _, _ = case(kind, seed, "partial")
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        seen = _Visit(game)
        assert len(set(seen.infosets.values())) == len(seen.infosets) == tree.num_infosets
        assert seen.largest <= game.max_utility() == -game.min_utility()
        # Audits reach the bound; reweighted charges for the worst stop time at each step, which may differ.
        assert seen.largest >= game.max_utility() * (1.0 - 1e-8 if form == "audit" else 0.5)
        assert seen.decisions <= game.max_game_length()
        assert seen.chances <= game.max_chance_nodes_in_history()
        if form == "reweighted":
            assert seen.chances == game.max_chance_nodes_in_history()


def test_audits_with_more_ways_on_than_actions():
    policies = [random_policy(seed) for seed in range(4)]
    tree = HistoryTree.from_game(
        random_tree(1, depth=5, actions=3, chance=0.0),
        sigma_pre=policies[:2],
        sigma=policies[2:],
        penalties=0.02,
        truncate="none",
    )
    game = MetaPrecomputationGame(tree)
    ways = [len(s.chance_outcomes()) for s in walk(game) if s.is_chance_node()]
    assert max(ways) > 3
    assert game.max_chance_outcomes() >= max(ways)


def test_the_largest_charges_for_an_information_state_are_as_small_as_they_can_be():
    """Over its histories they are equal; any other distribution would raise one of them."""
    for seed in range(4):
        tree, _, _ = case("efg", seed, "full")
        game = MetaPrecomputationGame(tree, "reweighted")
        largest = {}
        for state in walk(game):
            if state.current_player() >= 0:
                key = (state.infoset, state.tree_history)
                after = game.rules.step(state._at, MEMORIZE)
                largest[key] = max(largest.get(key, 0.0), abs(after.cost - state._at.cost))
        assert len(largest) == int((tree.infoset >= 0).sum())
        for infoset in range(tree.num_infosets):
            charges = [charge for (k, _), charge in largest.items() if k == infoset]
            assert max(charges) == pytest.approx(min(charges), rel=1e-9)


@pytest.mark.parametrize("kind", ["tree", "kuhn"])
def test_choices_are_seen_by_whoever_makes_them(kind):
    game = MetaPrecomputationGame(case(kind, 1, "full")[0])
    decisions = [s for s in walk(game) if s.current_player() >= 0]
    assert decisions
    for state in decisions:
        i = state.current_player()
        stopped, memorized = state.child(STOP), state.child(MEMORIZE)
        assert stopped.information_state_string(i) != memorized.information_state_string(i)
        assert len({s.information_state_string(1 - i) for s in (state, stopped, memorized)}) == 1


def test_what_a_player_does_not_see():
    """Of Kuhn poker: the opponent's card, its choices, and whether this is an audit."""
    game = MetaPrecomputationGame(case("kuhn", 1, "full")[0])
    states = {}
    for state in walk(game):
        if state.current_player() >= 0:
            states.setdefault(state.information_state_string(), []).append(state)
    assert len(states) == 12
    for name, members in states.items():
        player, choices, key = name.split("|")
        # Two cards of the opponent's, and its one decision before a first or second move; one audit.
        assert len(members) == (3 if key in "012" else 5)
        # A player's second turn comes after its first one was memorized.
        assert choices == ("1" if player == "0" and len(key) == 3 else "")
        audits = [s for s in members if "audit" in str(s)]
        assert len(audits) == 1


def test_action_names():
    game = MetaPrecomputationGame(case("kuhn", 1, "full")[0])
    state = game.new_initial_state()
    seen = []
    for action in (0, 2, 1, 1, 0, 0):
        seen.append(state.action_to_string(state.current_player(), action))
        state.apply_action(action)
    assert seen == ["play", "Deal:2", "Deal:1", "memorize", "Pass", "stop"]
    state = game.new_initial_state().child(1)
    assert state.action_to_string(0) == "information state 0"
    unloadable = dataclasses.replace(game.tree, base_game=None, game_string="nobody_knows_this_game")
    state = MetaPrecomputationGame(unloadable).new_initial_state().child(0)
    assert state.action_to_string(2) == "2"


def _board_policy(seed):
    @functools.cache
    def row(board, actions):
        rng = np.random.default_rng([seed, *board.encode()])
        chosen = rng.permutation(len(actions))[:2]
        return {actions[k]: 1.0 / len(chosen) for k in chosen}

    return lambda state: row(str(state), tuple(state.legal_actions()))


@pytest.mark.parametrize("form", ["audit", "reweighted"])
@pytest.mark.parametrize("base", ["kuhn_poker", "tic_tac_toe", "python_chess(max_plies=3)"])
def test_random_simulations_from_a_file(tmp_path, base, form):
    game = pyspiel.load_game(base)
    policies = [_board_policy(seed) for seed in range(4)]
    if base == "kuhn_poker":
        policies = [random_policy(seed, "full", "infoset") for seed in range(4)]
    tree = HistoryTree.from_game(game, sigma_pre=policies[:2], sigma=policies[2:], penalties=0.03)
    assert tree.num_infosets >= 5
    path = str(tmp_path / "tree.npz")
    tree.save(path)
    parameters = {"tree_file": path, "form": form, "check_supports": False}
    meta = pyspiel.load_game(_NAME, parameters)
    assert meta.tree.fingerprint == tree.fingerprint
    pyspiel.random_sim_test(meta, 3, True, False)
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
    tree, _, _ = case("tree", 3, "partial", (0.061, 0.052))
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
    kuhn = MetaPrecomputationGame(case("kuhn", 0, "full")[0])
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
    assert "save the tree with HistoryTree.save()" in message
    assert float(utility) == kuhn.max_utility()

    name = str(game)
    del game, state, back, back_game, copy
    gc.collect()
    with pytest.raises(ValueError, match=r"in the memory of a process or a game that is gone"):
        pyspiel.load_game(name)


def test_a_game_loads_from_its_string_when_a_second_one_is_gone():
    tree = case("kuhn", 0, "full")[0]
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


def test_openspiel_walks_it():
    game = MetaPrecomputationGame(case("tree", 2, "full")[0])
    states = get_all_states.get_all_states(game, include_terminals=True, to_string=lambda s: s.history_str())
    direct = [s for s in walk(game) if not s.is_chance_node()]
    assert len(states) == len(direct)
    uniform = openspiel_policy.UniformRandomPolicy(game)
    value = expected_game_score.policy_value(game.new_initial_state(), [uniform, uniform])
    cached = pyspiel.convert_to_cached_tree(game)
    other = expected_game_score.policy_value(
        cached.new_initial_state(), [openspiel_policy.UniformRandomPolicy(cached)] * 2
    )
    np.testing.assert_allclose(value, other, atol=1e-12)


@pytest.mark.parametrize(("kind", "seed", "support"), [("tree", 1, "partial"), ("efg", 4, "pure")])
def test_cfr_plus_comes_to_the_value_of_the_matrix(kind, seed, support):
    tree, pre, sigma = case(kind, seed, support)
    truth = matrix_value(true_matrix(tree, pre, sigma))
    game = MetaPrecomputationGame(tree)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(60):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    nash_conv = pyspiel.nash_conv(game, average)
    value = pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0] + game.value_shift
    assert nash_conv < 0.05
    assert abs(value - truth) <= nash_conv + 1e-9


# -- errors ----------------------------------------------------------------------------------------


def test_refusal_names_the_first_history_and_the_remedies():
    game = pyspiel.load_game("tic_tac_toe")

    def first(state):
        return {state.legal_actions()[0]: 1.0}

    def last(state):
        return {state.legal_actions()[-1]: 1.0}

    tree = HistoryTree.from_game(game, sigma_pre=first, sigma=last, penalties=0.1)
    with pytest.raises(ValueError) as refused:
        MetaPrecomputationGame(tree, "reweighted")
    message = str(refused.value)
    # x(0,0) and x(2,2) are player 0's first moves; player 1 does not know which was memorized.
    assert "player 1 at history 'x(0,0)'" in message
    assert 'form="audit"' in message and "check_supports=False" in message
    MetaPrecomputationGame(tree, "reweighted", check_supports=False)
    MetaPrecomputationGame(tree.with_penalties((math.inf, 0.1)), "reweighted")


def test_bad_arguments():
    tree, _, _ = case("tree", 1, "full")
    with pytest.raises(ValueError, match='expected form to be one of "audit", "reweighted", got \'none\''):
        MetaPrecomputationGame(tree, "none")
    with pytest.raises(ValueError, match="expected tree to be a HistoryTree, got 'kuhn_poker'"):
        MetaPrecomputationGame("kuhn_poker")
    with pytest.raises(ValueError, match="expected check_supports to be True or False, got 1"):
        MetaPrecomputationGame(tree, "audit", 1)
    with pytest.raises(ValueError, match="among the parameters, got 'reweighted'"):
        MetaPrecomputationGame({"penalty_0": 0.1}, "reweighted")
    with pytest.raises(ValueError, match=r"expected parameters \[.*got \['sigmas'\]"):
        MetaPrecomputationGame({"sigmas": {"name": "uniform"}})
    game = MetaPrecomputationGame(tree)
    with pytest.raises(ValueError, match="infoset_string"):
        game.infoset_string(tree.num_infosets)
    with pytest.raises(ValueError, match="infoset_string"):
        MetaPrecomputationGame(tree.with_penalties(math.inf)).infoset_string(0)
    with pytest.raises(ValueError, match="no observation parameters"):
        game.make_py_observer(None, {"x": 1})
    with pytest.raises(ValueError, match="expected a legal action, got 7 at start"):
        game.new_initial_state().apply_action(7)
    evaluated = HistoryTree.from_game(
        pyspiel.load_game("tic_tac_toe"),
        sigma_pre=(_board_policy(0), None),
        sigma=(None, _board_policy(1)),
        penalties=(0.3, math.inf),
        leaf_value=lambda state: 0.0,
        stop_value="evaluate",
        truncate="values",
    )
    with pytest.raises(ValueError, match='expected a tree with stop_value="backup"'):
        MetaPrecomputationGame(evaluated)


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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"form": "none"}, "expected form"),
        ({"penalty_0": 0.0}, "expected penalties to be positive"),
        ({"game": {"name": "nobody_knows"}}, "expected game to be a base game"),
        ({"sigma": {"name": "nobody_knows"}}, r"make_policy\(\)"),
        ({"tree_file": "FILE", "penalty_0": 0.3}, "expected tree_file alone"),
        ({"tree_file": "memory:0123"}, "save the tree"),
    ],
)
def test_bad_parameters(tmp_path, parameters, message):
    path = str(tmp_path / "tree.npz")
    case("tree", 1, "full")[0].save(path)
    given = {k: path if v == "FILE" else v for k, v in parameters.items()}
    with pytest.raises(ValueError, match=message):
        pyspiel.load_game(_NAME, given)
    with pytest.raises(FileNotFoundError):
        pyspiel.load_game(_NAME, {"tree_file": str(tmp_path / "missing.npz")})


def test_a_file_that_changed_is_read_again(tmp_path):
    path = str(tmp_path / "tree.npz")
    case("tree", 1, "full")[0].save(path)
    before = pyspiel.load_game(_NAME, {"tree_file": path})
    case("tree", 2, "full")[0].save(path)
    after = pyspiel.load_game(_NAME, {"tree_file": path})
    assert before.tree.fingerprint != after.tree.fingerprint
