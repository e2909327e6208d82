"""The meta-game with menus as an OpenSpiel game, against payoffs over all pairs of sets with choices."""

import functools
import math
import pickle

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, to_efg
from precomp_games.meta_game.game import STOP
from tests.history_tree.cases import efg, first, last, uniform
from tests.menus import PENALTIES, Side, matrix_value, menu_case, menu_tree, names_in, payoffs
from tests.random_games import random_menu, random_policy

_KINDS = {"tree": 40, "efg": 30, "uneven": 40}
_MOST_PAIRS = 3000


@functools.cache
def _case(kind, seed):
    """(tree, sides, choices, matrix), None where there are too many pairs or no menus."""
    game, pre, sigma = menu_case(kind, seed)
    tree = menu_tree(kind, seed, truncate="none")
    sides = [Side(game, i, pre[i], set(names_in(tree, i))) for i in (0, 1)]
    if math.prod(side.count() for side in sides) > _MOST_PAIRS:
        return None
    choices = [side.choices() for side in sides]
    return (
        (tree, sides, choices, payoffs(game, sides, choices, sigma, PENALTIES[seed % 3]))
        if tree.has_menus
        else None
    )


def _cases(kind):
    return [case for seed in range(_KINDS[kind]) if (case := _case(kind, seed))]


def _game_matrix(game, sides, choices):
    """The payoffs as the game has them, for each pair of choices; it is told apart by its strings alone."""
    tree = game.tree
    names = {
        game.infoset_string(int(k)): name
        for i in (0, 1)
        if math.isfinite(tree.penalties[i])
        for k, name in zip(np.flatnonzero(tree.infoset_player == i), names_in(tree, i), strict=True)
    }
    payoff = np.zeros(tuple(map(len, choices)))

    def walk(state, weight, plays):
        if state.is_terminal():
            payoff[...] += weight * state.returns()[0] * np.outer(*plays)
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), weight * p, plays)
        else:
            i = state.current_player()
            name = names[state.information_state_string()]
            made = np.array([1 + c[name] if name in c else STOP for c in choices[i]])
            for action in state.legal_actions():
                part = list(plays)
                part[i] = part[i] * (made == action)
                if part[i].any():
                    walk(state.child(action), weight, part)

    walk(game.new_initial_state(), 1.0, [np.ones(len(c)) for c in choices])
    return payoff + game.value_shift


@pytest.mark.parametrize("kind", _KINDS)
def test_payoffs_of_both_forms(kind):
    """Audit always; reweighted if, and only if, it is not refused."""
    refused = 0
    cases = _cases(kind)
    assert len(cases) >= 10
    for tree, sides, choices, truth in cases:
        audit = _game_matrix(MetaPrecomputationGame(tree), sides, choices)
        np.testing.assert_allclose(audit, truth, atol=1e-9, rtol=0)
        try:
            game = MetaPrecomputationGame(tree, "reweighted")
        except ValueError:
            refused += 1
            game = MetaPrecomputationGame(tree, "reweighted", check_supports=False)
            assert np.abs(_game_matrix(game, sides, choices) - truth).max() > 1e-4
        else:
            np.testing.assert_allclose(_game_matrix(game, sides, choices), truth, atol=1e-9, rtol=0)
    assert 3 <= refused < len(cases)


def test_what_the_rivals_choice_of_entries_leaves_unreached_cannot_be_reweighted():
    """Full supports everywhere: without the menu the form is exact, with it one line goes uncharged."""
    lines = [
        'p "" 2 1 "" { "a" "b" } 0',
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 1 "" { 1 -1 }',
        't "" 2 "" { 0 0 }',
        'p "" 1 2 "" { "x" "y" } 0',
        't "" 3 "" { -1 1 }',
        't "" 4 "" { 2 -2 }',
    ]
    game = efg(*lines)

    def tree(rival):
        return HistoryTree.from_game(
            game, sigma_pre=(uniform, rival), sigma=uniform, penalties=0.01, truncate="none"
        )

    MetaPrecomputationGame(tree(uniform), "reweighted")
    with_menu = tree(Menu.of_actions())
    with pytest.raises(
        ValueError, match=r'some times of stopping and some entries and not for others.*audit"'
    ):
        MetaPrecomputationGame(with_menu, "reweighted")
    # Whoever never memorizes is always fine, whatever its menu.
    MetaPrecomputationGame(with_menu.with_penalties((0.01, math.inf)), "reweighted")
    # A player's own choice of entries is fine, too.
    own = HistoryTree.from_game(
        game, sigma_pre=(Menu.of_actions(), uniform), sigma=uniform, penalties=0.01, truncate="none"
    )
    assert own.has_menus
    sides = [Side(game, 0, Menu.of_actions()), Side(game, 1, uniform)]
    choices = [side.choices() for side in sides]
    truth = payoffs(game, sides, choices, (uniform, uniform), (0.01, 0.01))
    found = _game_matrix(MetaPrecomputationGame(own, "reweighted"), sides, choices)
    np.testing.assert_allclose(found, truth, atol=1e-12)


def test_where_both_entries_lead_to_an_information_state_safe_histories_carry_the_charge():
    """Left of chance the rival chooses among entries, right of it nothing: the right history is charged."""
    lines = [
        'c "" 1 "" { "l" 0.25 "r" 0.75 } 0',
        'p "" 2 1 "" { "a" "b" } 0',
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 1 "" { 1 -1 }',
        't "" 2 "" { 0 0 }',
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 3 "" { -1 1 }',
        't "" 4 "" { 2 -2 }',
        'p "" 1 1 "" { "x" "y" } 0',
        't "" 5 "" { 1 -1 }',
        't "" 6 "" { 0.5 -0.5 }',
    ]
    game, pre, sigma = efg(*lines), (last, Menu.of_actions()), (first, uniform)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01, truncate="none")
    sides = [Side(game, i, pre[i]) for i in (0, 1)]
    choices = [side.choices() for side in sides]
    truth = payoffs(game, sides, choices, sigma, (0.01, 0.01))
    found = _game_matrix(MetaPrecomputationGame(tree, "reweighted"), sides, choices)
    np.testing.assert_allclose(found, truth, atol=1e-12)


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
        assert name == self.game.infoset_string(k)
        assert state.legal_actions() == list(range(1 + tree.first_entry[k + 1] - tree.first_entry[k]))
        assert max(state.legal_actions()) < self.game.num_distinct_actions()
        names = [state.action_to_string(i, action) for action in state.legal_actions()]
        assert len(set(names)) == len(names) and names[0] == "stop"
        for action in state.legal_actions():
            own = (*pasts[i], (name, action))
            after = (own, pasts[1]) if i == 0 else (pasts[0], own)
            self.visit(state.child(action), after, made + 1, drawn)


@pytest.mark.parametrize("form", ["audit", "reweighted"])
@pytest.mark.parametrize("kind", _KINDS)
def test_perfect_recall_and_bounds(kind, form):
    for tree, *_ in _cases(kind)[:6]:
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        seen = _Visit(game)
        if form == "audit":  # which visits whatever some entry leads to
            reached = [
                k
                for k, i in enumerate(tree.infoset_player)
                if tree.own_reaches[i][tree.infoset_history[k]] > 0
            ]
            assert set(reached) <= set(seen.infosets.values())
            assert game.num_distinct_actions() == 1 + max(np.diff(tree.first_entry))
        assert len(set(seen.infosets.values())) == len(seen.infosets)
        assert seen.largest <= game.max_utility() == -game.min_utility()
        # Audits reach the bound; reweighted charges for the worst stop time at each step, which may differ.
        assert seen.largest >= game.max_utility() * (1.0 - 1e-8 if form == "audit" else 0.5)
        assert seen.decisions <= game.max_game_length()
        assert seen.chances <= game.max_chance_nodes_in_history()


def test_entries_are_called_by_what_they_play():
    game = pyspiel.load_game("kuhn_poker")
    tree = HistoryTree.from_game(
        game, sigma_pre=(Menu.of_actions(), uniform), sigma=uniform, penalties=0.01, truncate="none"
    )
    state = MetaPrecomputationGame(tree).new_initial_state()
    for action in (0, 2, 1):
        state.apply_action(action)
    assert [state.action_to_string(0, a) for a in (0, 1, 2)] == ["stop", "memorize Pass", "memorize Bet"]
    bet = state.child(2)
    assert bet.chance_outcomes() == [(1, 1.0)]
    assert bet.information_state_string(0) != state.child(1).information_state_string(0)
    other = bet.child(1)
    assert [other.action_to_string(1, a) for a in other.legal_actions()] == ["stop", "memorize"]
    loaded = pyspiel.load_efg_game(to_efg(tree))
    assert loaded.num_distinct_actions() == 3


@pytest.mark.parametrize("form", ["audit", "reweighted"])
@pytest.mark.parametrize("base", ["kuhn_poker", "tic_tac_toe"])
def test_random_simulations(tmp_path, base, form):
    game = pyspiel.load_game(base)
    by = "infoset" if base == "kuhn_poker" else "history"
    tree = HistoryTree.from_game(
        game,
        sigma_pre=(random_menu(1, 3, by), random_menu(2, 2, by)),
        sigma=random_policy(3, "partial", by),
        penalties=0.03,
    )
    assert tree.has_menus and tree.num_infosets >= 5
    path = str(tmp_path / "tree.npz")
    tree.save(path)
    meta = pyspiel.load_game(
        "python_meta_precomputation", {"tree_file": path, "form": form, "check_supports": False}
    )
    assert meta.tree.fingerprint == tree.fingerprint
    pyspiel.random_sim_test(meta, 5, True, False)
    assert pickle.loads(pickle.dumps(meta)).tree is meta.tree
    memory = MetaPrecomputationGame(tree, form, check_supports=False)
    pyspiel.random_sim_test(memory, 5, True, False)


def test_the_forms_have_the_same_value_where_both_are_exact():
    compared = 0
    for kind in _KINDS:
        for tree, sides, choices, truth in _cases(kind):
            try:
                game = MetaPrecomputationGame(tree, "reweighted")
            except ValueError:
                continue
            found = matrix_value(_game_matrix(game, sides, choices))
            assert found == pytest.approx(matrix_value(truth), abs=1e-9)
            compared += 1
    assert compared >= 8


def test_an_infinite_penalty_leaves_no_decisions():
    for tree, sides, choices, truth in _cases("tree")[::3]:
        for i in (0, 1):
            penalties, alone = list(tree.penalties), list(choices)
            penalties[i], alone[i] = math.inf, [{}]
            expected = truth.take([choices[i].index({})], axis=i)
            game = MetaPrecomputationGame(tree.with_penalties(tuple(penalties)))
            np.testing.assert_allclose(_game_matrix(game, sides, alone), expected, atol=1e-9, rtol=0)
            sizes = np.diff(tree.first_entry)[tree.infoset_player == 1 - i]
            assert game.num_distinct_actions() == 1 + max(sizes, default=1)
