"""Games as .efg text: OpenSpiel reads back the same game, and Gambit finds its value."""

import dataclasses
import re
from fractions import Fraction

import numpy as np
import pyspiel
import pytest

from precomp_games.algorithms import solve
from precomp_games.meta_game.gambit import _exact_probabilities, to_efg
from precomp_games.meta_game.game import MetaPrecomputationGame
from tests.oracles.meta_games import menu_tree, meta_cases
from tests.oracles.zero_sum import SMALL, game_of

_CASES = 80
_NODE = re.compile(r'^([cpt]) "" (?:(\d+) (\d+) "([^"]*)"|(\d+) "") \{ (.*) \}( 0)?$')


def _same(state, other, names):
    """Two states with the same rest of the game; `names` pairs their information states."""
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


@pytest.mark.parametrize("form", ["audit", "reweighted"])
def test_openspiel_reads_back_the_same_game(form, cases):
    for tree in (case.whole for case in meta_cases(cases(_CASES))):
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        names = {}
        text = to_efg(game)
        nodes = _same(game.new_initial_state(), pyspiel.load_efg_game(text).new_initial_state(), names)
        assert nodes == len(text.splitlines()) - 3
        assert len(names) == len(set(names.values()))


def test_numbers_have_no_gaps_and_odds_sum_to_one(cases):
    for tree in (case.whole for case in meta_cases(cases(_CASES))):
        lines = [_NODE.match(line) for line in to_efg(tree).splitlines()[3:]]
        assert all(lines)
        first_met = {"1": [], "2": []}
        chance, ends = [], []
        for node in lines:
            kind, player, infoset, _, number, rest, _ = node.groups()
            if kind == "p" and int(infoset) not in first_met[player]:
                first_met[player].append(int(infoset))
            elif kind == "c":
                chance.append(int(number))
                assert sum(map(Fraction, re.findall(r'" (\S+)', rest))) == 1
            elif kind == "t":
                ends.append(int(number))
                assert sum(map(Fraction, rest.split())) == 0
        for numbers in first_met.values():
            assert numbers == list(range(1, len(numbers) + 1))
        assert chance == list(range(1, len(chance) + 1))
        assert ends == list(range(1, len(ends) + 1))


def test_odds_of_any_size():
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 40):
        weights = rng.dirichlet(np.full(count, 0.05))
        weights = np.maximum(weights, 1e-300)
        weights /= weights.sum()
        odds = _exact_probabilities(weights.tolist())
        assert sum(map(Fraction, odds)) == 1
        assert not any("e" in p.lower() for p in odds)
        np.testing.assert_allclose([float(p) for p in odds], weights, rtol=1e-14)


def test_gambit_finds_the_value(tmp_path):
    gambit = pytest.importorskip("pygambit")
    for case in meta_cases(6):
        tree = case.whole
        (tmp_path / "meta.efg").write_text(to_efg(tree))
        game = gambit.read_efg(str(tmp_path / "meta.efg"))
        assert game.is_perfect_recall and game.is_const_sum
        equilibrium = gambit.nash.lp_solve(game, rational=False).equilibria[0]
        value = float(equilibrium.payoff(next(iter(game.players)))) + tree.utility_sum / 2
        assert value == pytest.approx(case.value, abs=1e-8)


@pytest.mark.parametrize("name", SMALL)
def test_games_alone(name):
    game = game_of(name)
    found, text = solve(game), to_efg(game)
    assert text == to_efg(found.tree)
    again = solve(pyspiel.load_efg_game(text))
    assert again.tree.num_histories == found.tree.num_histories == len(text.splitlines()) - 3
    assert again.value == pytest.approx(found.value, abs=1e-9)
    # Sets of one player have numbers without gaps, and one list of actions, whose names differ.
    sets: dict[tuple[str, str], set[str]] = {}
    for player, number, actions in re.findall(r'^p "" (\d) (\d+) ".*?" \{ (.*) \} 0$', text, re.MULTILINE):
        sets.setdefault((player, number), set()).add(actions)
        labels = re.findall(r'"(.*?)"', actions)
        assert len(labels) == len(set(labels)) and all(labels)
    assert all(len(actions) == 1 for actions in sets.values())
    for player in "12":
        numbers = sorted(int(number) for owner, number in sets if owner == player)
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", SMALL)
def test_gambit_finds_the_value_of_games_alone(name, tmp_path):
    gambit = pytest.importorskip("pygambit")
    (tmp_path / "alone.efg").write_text(to_efg(game_of(name)))
    game = gambit.read_efg(str(tmp_path / "alone.efg"))
    assert game.is_perfect_recall and game.is_const_sum
    equilibrium = gambit.nash.lp_solve(game, rational=False).equilibria[0]
    value = float(equilibrium.payoff(next(iter(game.players))))
    assert value == pytest.approx(solve(game_of(name)).value, abs=1e-7)


def test_names_are_quoted():
    """Information states may be called what .efg files cannot hold."""
    tree = menu_tree("efg", 9, policies=True)
    keys = tuple(f'say "{key}"\\\n{key}' for key in tree.infoset_keys)
    game = MetaPrecomputationGame(dataclasses.replace(tree, infoset_keys=keys))
    names = {}
    _same(game.new_initial_state(), pyspiel.load_efg_game(to_efg(game)).new_initial_state(), names)
    assert len(names) == len(set(names.values())) == tree.num_infosets > 0


def test_titles_and_wrong_sources():
    tree = menu_tree("tree", 3, policies=True)
    assert f"add {tree.utility_sum / 2} to payoffs" in to_efg(tree).splitlines()[0]
    with pytest.raises(ValueError, match="to_efg"):
        to_efg("tree.npz")
