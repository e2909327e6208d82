"""Games as .efg text: OpenSpiel reads back the same game, and Gambit finds its value."""

import dataclasses
import re
from fractions import Fraction

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import MetaPrecomputationGame, to_efg
from precomp_games.algorithms import solve
from precomp_games.meta_game.gambit import _exact_probabilities
from precomp_games.meta_game.rules import FORMS
from tests.oracles.games import expand, penalties, settings
from tests.oracles.meta_games import known_cases, menu_tree
from tests.oracles.zero_sum import SMALL, game_of
from tests.properties import examples

_NODE = re.compile(r'^([cpt]) "" (?:(\d+) (\d+) "([^"]*)"|(\d+) "") \{ (.*) \}( 0)?$')


def _same(state, other, names):
    """Count the nodes of two states with the same rest of the game; `names` pairs information states."""
    assert state.current_player() == other.current_player()
    if state.is_terminal():
        assert state.returns() == other.returns()  # to the last digit
        return 1
    labels = {other.action_to_string(action): action for action in other.legal_actions()}
    if state.is_chance_node():
        odds = dict(other.chance_outcomes())
        pairs = [(action, labels[str(action)]) for action in state.legal_actions()]
        for action, there in pairs:
            assert odds[there] == pytest.approx(dict(state.chance_outcomes())[action], rel=1e-14)
    else:
        here, there = state.information_state_string(), other.information_state_string()
        assert names.setdefault((state.current_player(), here), there) == there
        called = ["stop", "memorize", *(f"memorize {k}" for k in range(2, len(labels)))]
        pairs = [(action, labels[called[action]]) for action in state.legal_actions()]
    assert len(pairs) == len(labels)
    return 1 + sum(_same(state.child(a), other.child(b), names) for a, b in pairs)


def _check_text(text):
    """Numbers have no gaps, sums are exact, and the actions of an information set are the same each time."""
    met, chances, ends, actions = {"1": [], "2": []}, [], [], {}
    for line in text.splitlines()[3:]:
        kind, player, infoset, _, number, rest, _ = _NODE.match(line).groups()
        if kind == "p":
            if int(infoset) not in met[player]:
                met[player].append(int(infoset))
            labels = re.findall(r'"(.*?)"', rest)
            assert len(labels) == len(set(labels)) and all(labels)
            assert actions.setdefault((player, infoset), labels) == labels
        elif kind == "c":
            chances.append(int(number))
            assert sum(map(Fraction, re.findall(r'" (\S+)', rest))) == 1
        else:
            ends.append(int(number))
            assert sum(map(Fraction, rest.split())) == 0
    for numbers in (*map(sorted, met.values()), chances, ends):
        assert numbers == list(range(1, len(numbers) + 1))
    return met


@examples(160)
@given(settings(menus=True, depth=3), penalties(), st.sampled_from(FORMS))
def test_openspiel_reads_back_the_same_meta_game(case, costs, form):
    tree = expand(*case, costs, truncate="none")
    game = MetaPrecomputationGame(tree, form, check_supports=False)
    names, text = {}, to_efg(game)
    assert form != "audit" or text == to_efg(tree)
    nodes = _same(game.new_initial_state(), pyspiel.load_efg_game(text).new_initial_state(), names)
    assert nodes == len(text.splitlines()) - 3
    assert len(names) == len(set(names.values()))
    assert all(numbers == sorted(numbers) for numbers in _check_text(text).values())  # as they appear


@pytest.mark.parametrize("name", SMALL)
def test_games_alone(name):
    game = game_of(name)
    found, text = solve(game), to_efg(game)
    assert text == to_efg(found.tree)
    _check_text(text)
    again = solve(pyspiel.load_efg_game(text))
    assert again.tree.num_histories == found.tree.num_histories == len(text.splitlines()) - 3
    assert again.value == pytest.approx(found.value, abs=1e-9)


def test_odds_of_any_size():
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 40):
        weights = np.maximum(rng.dirichlet(np.full(count, 0.05)), 1e-300)
        weights /= weights.sum()
        odds = _exact_probabilities(weights.tolist())
        assert sum(map(Fraction, odds)) == 1
        assert not any("e" in p.lower() for p in odds)
        np.testing.assert_allclose([float(p) for p in odds], weights, rtol=1e-14)


def _value_by_gambit(text, path):
    gambit = pytest.importorskip("pygambit")
    path.write_text(text)
    game = gambit.read_efg(str(path))
    assert game.is_perfect_recall and game.is_const_sum
    equilibrium = gambit.nash.lp_solve(game, rational=False).equilibria[0]
    return float(equilibrium.payoff(next(iter(game.players))))


# Gambit's linear program takes minutes for Leduc poker, and pygambit 16.7 has 0 for nim, which is lost.
@pytest.mark.parametrize("name", [name for name in SMALL if not name.startswith(("leduc", "nim"))])
def test_gambit_finds_the_value_of_games(name, tmp_path):
    found = _value_by_gambit(to_efg(game_of(name)), tmp_path / "game.efg")
    assert found == pytest.approx(solve(game_of(name)).value, abs=1e-7)


@examples(48)
@given(known_cases().filter(lambda case: case.whole.num_histories < 300))
def test_gambit_finds_the_value_of_meta_games(tmp_path_factory, case):
    found = _value_by_gambit(to_efg(case.whole), tmp_path_factory.getbasetemp() / "meta.efg")
    assert found + case.whole.utility_sum / 2 == pytest.approx(case.value, abs=1e-7)


def test_names_are_quoted():
    """Information states may be called what .efg files cannot hold."""
    tree = menu_tree("efg", 9, policies=True)
    keys = tuple(f'say "{key}"\\\n{key}' for key in tree.infoset_keys)
    game, names = MetaPrecomputationGame(dataclasses.replace(tree, infoset_keys=keys)), {}
    _same(game.new_initial_state(), pyspiel.load_efg_game(to_efg(game)).new_initial_state(), names)
    assert len(names) == len(set(names.values())) == tree.num_infosets > 0


def test_the_title_says_what_payoffs_lack():
    tree = menu_tree("tree", 3, policies=True)
    assert f"add {tree.utility_sum / 2} to payoffs" in to_efg(tree).splitlines()[0]
