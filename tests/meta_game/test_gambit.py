"""Meta-games as .efg text: OpenSpiel reads back the same game."""

import dataclasses
import itertools
import re
from fractions import Fraction

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.meta_game.gambit import _odds, to_efg, write_efg
from precomp_games.meta_game.game import MetaPrecomputationGame
from tests.meta_game.test_game import all_sets, case, matrix_value, true_matrix
from tests.random_games import random_efg, random_policy, random_tree

_NODE = re.compile(r'^([cpt]) "" (?:(\d+) (\d+) "([^"]*)"|(\d+) "") \{ (.*) \}( 0)?$')


def _cases():
    for kind, seed, support in itertools.product(("tree", "efg"), range(3), ("full", "pure")):
        yield case(kind, seed, support)[0]
    yield case("kuhn", 0, "partial")[0]


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
        pairs = [(action, labels[state.action_to_string(action)]) for action in state.legal_actions()]
    assert len(pairs) == len(labels)
    return 1 + sum(_same(state.child(a), other.child(b), names) for a, b in pairs)


@pytest.mark.parametrize("form", ["audit", "reweighted"])
def test_openspiel_reads_back_the_same_game(form):
    for tree in _cases():
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        names = {}
        text = to_efg(game)
        nodes = _same(game.new_initial_state(), pyspiel.load_efg_game(text).new_initial_state(), names)
        assert nodes == len(text.splitlines()) - 3
        assert len(names) == len(set(names.values())) == tree.num_infosets
        assert to_efg(tree, form, check_supports=False) == text


def test_numbers_have_no_gaps_and_odds_sum_to_one():
    for tree in _cases():
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
        for i in (0, 1):
            count = int((tree.infoset_player == i).sum())
            assert first_met[str(i + 1)] == list(range(1, count + 1))
        assert chance == list(range(1, len(chance) + 1))
        assert ends == list(range(1, len(ends) + 1))


def test_odds_of_any_size():
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 40):
        weights = rng.dirichlet(np.full(count, 0.05))
        weights = np.maximum(weights, 1e-300)
        weights /= weights.sum()
        odds = _odds(weights.tolist())
        assert sum(map(Fraction, odds)) == 1
        assert not any("e" in p.lower() for p in odds)
        np.testing.assert_allclose([float(p) for p in odds], weights, rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "seed", "support"),
    [
        ("tree", 0, "pure"),
        ("tree", 5, "partial"),
        ("tree", 8, "full"),
        ("efg", 1, "partial"),
        ("efg", 10, "full"),
    ],
)
def test_cfr_plus_comes_to_the_value(kind, seed, support):
    tree, pre, sigma = case(kind, seed, support)
    assert all_sets(tree) is not None
    truth = matrix_value(true_matrix(tree, pre, sigma))
    game = pyspiel.load_efg_game(to_efg(tree))
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(500):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    nash_conv = pyspiel.nash_conv(game, average)
    value = pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0] + tree.utility_sum / 2
    assert nash_conv < 1e-3
    assert abs(value - truth) <= nash_conv + 1e-9


def test_gambit_finds_the_value(tmp_path):
    gambit = pytest.importorskip("pygambit")
    for kind, seed, support in (("tree", 0, "pure"), ("tree", 8, "full"), ("efg", 2, "full")):
        tree, pre, sigma = case(kind, seed, support)
        write_efg(tree, tmp_path / "meta.efg")
        game = gambit.read_efg(str(tmp_path / "meta.efg"))
        assert game.is_perfect_recall and game.is_const_sum
        equilibrium = gambit.nash.lp_solve(game, rational=False).equilibria[0]
        value = float(equilibrium.payoff(next(iter(game.players)))) + tree.utility_sum / 2
        assert value == pytest.approx(matrix_value(true_matrix(tree, pre, sigma)), abs=1e-9)


@pytest.mark.parametrize("solver_name", ["CFRSolver", "CFRPlusSolver"])
def test_both_forms_take_the_same_steps(solver_name):
    """Counterfactual values agree, so CFR does, iteration for iteration."""
    for make in (
        lambda: (random_tree(3, depth=5, actions=2), "history"),
        lambda: (random_efg(2, depth=5), "infoset"),
        lambda: (pyspiel.load_game("kuhn_poker"), "infoset"),
    ):
        base, by = make()
        policies = [random_policy(seed, "full", by) for seed in range(4)]
        tree = HistoryTree.from_game(base, sigma_pre=policies[:2], sigma=policies[2:], penalties=(0.03, 0.02))
        games = [pyspiel.load_efg_game(to_efg(tree, form)) for form in ("audit", "reweighted")]
        solvers = [getattr(pyspiel, solver_name)(game) for game in games]
        for _ in range(25):
            found = []
            for game, solver in zip(games, solvers, strict=True):
                solver.evaluate_and_update_policy()
                found.append(pyspiel.nash_conv(game, solver.average_policy()))
            assert found[0] == pytest.approx(found[1], abs=1e-10)


def _quoting_game():
    """Information states whose names hold what .efg files cannot."""
    game = pyspiel.load_game("kuhn_poker")
    policies = [random_policy(seed, "full", "infoset") for seed in range(2)]
    tree = HistoryTree.from_game(
        game, sigma_pre=policies[0], sigma=policies[1], penalties=0.1, truncate="none"
    )
    keys = tuple(f'say "{key}"\\\n{key}' for key in tree.infoset_keys)
    return dataclasses.replace(tree, infoset_keys=keys)


def test_names_are_quoted():
    tree = _quoting_game()
    game = MetaPrecomputationGame(tree)
    names = {}
    _same(game.new_initial_state(), pyspiel.load_efg_game(to_efg(game)).new_initial_state(), names)
    assert len(names) == len(set(names.values())) == 12


def test_files(tmp_path):
    tree, _, _ = case("tree", 1, "full")
    path = tmp_path / "meta.efg"
    write_efg(tree, path)
    assert path.read_text() == to_efg(tree)
    assert f"add {tree.utility_sum / 2} to payoffs" in path.read_text().splitlines()[0]
    write_efg(MetaPrecomputationGame(tree, "reweighted"), path)
    reweighted = path.read_text()
    assert reweighted == to_efg(tree, "reweighted")
    with pytest.raises(ValueError, match="write_efg"):
        write_efg("tree.npz", path)
    assert path.read_text() == reweighted
    assert [p.name for p in tmp_path.iterdir()] == ["meta.efg"]


def test_bad_arguments():
    with pytest.raises(
        ValueError, match=r"to_efg\(\): expected source to be a MetaPrecomputationGame or a HistoryTree"
    ):
        to_efg(pyspiel.load_game("kuhn_poker"))
    with pytest.raises(ValueError, match="expected form"):
        to_efg(case("tree", 1, "full")[0], "none")
    refused = 0
    for seed in range(10):
        try:
            to_efg(case("tree", seed, "pure")[0], "reweighted")
        except ValueError as error:
            assert "check_supports=False" in str(error)
            refused += 1
    assert refused
