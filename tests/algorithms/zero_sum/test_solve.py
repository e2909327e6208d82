"""Equilibria of games alone: OpenSpiel's values, its NashConv, and its iterates."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import cfr, discounted_cfr

from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import best_precomputation, meta_equilibrium, nash_conv, solve
from precomp_games.algorithms.programs import LinearProgramError
from precomp_games.algorithms.zero_sum import double_oracle
from precomp_games.algorithms.zero_sum.regret_minimization import CFR_VARIANTS, RegretMinimization
from precomp_games.algorithms.zero_sum.solve import METHODS
from tests.oracles.regret import PlainPredictive
from tests.oracles.zero_sum import (
    SMALL,
    constant_sum,
    game_of,
    nash_conv_of,
    random_game,
    value_of,
)

_CASES = 200
_SOLVERS = {"cfr": cfr.CFRSolver, "cfr+": cfr.CFRPlusSolver, "dcfr": discounted_cfr.DCFRSolver}


def _check_exact(game: pyspiel.Game, value: float) -> None:
    found = solve(game)
    spread = game.max_utility() - game.min_utility()
    assert found.value == pytest.approx(value, abs=1e-9 * spread)
    assert found.converged and found.nash_conv <= 1e-12 * spread
    theirs = nash_conv_of(game, found.policy())
    assert theirs == pytest.approx(found.nash_conv, abs=1e-12 * spread)


def test_exact_on_random_games(cases):
    for seed in range(cases(_CASES)):
        game = random_game(seed)
        _check_exact(game, value_of(game))


@pytest.mark.parametrize("name", SMALL)
def test_exact_on_games_of_openspiel(name):
    _check_exact(game_of(name), value_of(game_of(name)))


def test_constant_sums_single_actions_and_what_never_comes():
    game = constant_sum()
    for method in METHODS:
        found = solve(game, method=method, target_nash_conv=None if method == "exact" else 1e-4)
        assert found.value + solve(game).best_responses[1] == pytest.approx(10.0, abs=1e-3)
        assert found.converged and nash_conv(game, found.policy()) == pytest.approx(found.nash_conv)
    assert solve(game).value == pytest.approx(value_of(constant_sum(0.0)) + 5.0, abs=1e-9)


@pytest.mark.parametrize("variant", list(_SOLVERS))
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "dark_hex(board_size=2)", "random"])
def test_iterates_are_openspiels(variant, name):
    game = random_game(2) if name == "random" else game_of(name)
    tree, theirs = HistoryTree.of_game(game), _SOLVERS[variant](game)
    ours = RegretMinimization(tree, variant, check_every=1)
    for _ in range(3 if name == "leduc_poker" else 12):
        theirs.evaluate_and_update_policy()
        ours.advance(1)
        average = theirs.average_policy()
        strategies = ours.strategies()
        for e in range(tree.num_entries):
            row = average.policy_for_key(tree.key(int(tree.entry_infoset[e])))
            (action,) = tree.memorized_row(e)
            assert strategies[tree.entry_player[e]].memorize[e] == pytest.approx(row[action], abs=1e-10)


@pytest.mark.parametrize(("variant", "discounted"), [("pcfr+", False), ("pdcfr+", True)])
@pytest.mark.parametrize("name", ["kuhn_poker", "dark_hex(board_size=2)", "random"])
def test_predictive_iterates_are_the_papers(variant, discounted, name):
    game = random_game(2) if name == "random" else game_of(name)
    tree, theirs = HistoryTree.of_game(game), PlainPredictive(game, discounted=discounted)
    ours = RegretMinimization(tree, variant, check_every=1)
    for _ in range(20):
        theirs.iterate()
        ours.advance(1)
        current = np.empty(tree.num_entries)
        current[ours.decisions.tree_entry] = ours.state.current
        for infoset in range(tree.num_infosets):
            entries = slice(tree.first_entry[infoset], tree.first_entry[infoset + 1])
            name_of = tree.key(infoset)
            np.testing.assert_allclose(current[entries], theirs.strategy[name_of], atol=1e-10)
            plan = ours.strategies()[tree.infoset_player[infoset]].realization_plan()[entries]
            np.testing.assert_allclose(plan, theirs.average(name_of), atol=1e-10)


def test_every_variant_comes_near_and_says_how():
    for method in CFR_VARIANTS:
        found = solve("kuhn_poker", method=method, target_nash_conv=2e-3)
        assert found.converged and found.nash_conv <= 2e-3 and found.method == method
        assert found.iterations == found.trace[-1][0]
        assert found.value == pytest.approx(-1 / 18, abs=2e-3)
    assert (
        solve("leduc_poker", method="cfr", iterations=10**6, seconds=0.05, check_every=5).iterations < 10**6
    )


def test_what_the_result_gives(tmp_path):
    found = solve("kuhn_poker")
    assert repr(found).startswith("Equilibrium(kuhn_poker(), value=-0.05555555556, nash_conv=")
    assert found.exploitability == found.nash_conv / 2.0
    for player in (0, 1):
        plan = found.realization_plan(player)
        assert plan.shape == (1, found.tree.num_entries) and plan.nnz < found.tree.num_entries
        np.testing.assert_array_equal(plan.toarray()[0], found.strategies[player].realization_plan())
    assert found.tree.entry_action.tolist() == [0, 1] * found.tree.num_infosets
    frame = found.to_frame()
    assert list(frame.columns) == ["player", "infoset", "action", "probability", "plan"]
    assert (frame.groupby(["player", "infoset"]).probability.sum().round(12) == 1.0).all()
    found.tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.same_as(found.tree) and loaded.penalties == (0.0, 0.0) and not loaded.may_stop
    assert solve(loaded).value == found.value


@pytest.mark.parametrize("too", ["large", "hard"])
def test_where_there_is_no_program_regret_minimization_takes_over(too, monkeypatch):
    def fails(*_):
        raise LinearProgramError("Unknown")

    if too == "hard":
        monkeypatch.setattr(double_oracle, "equilibrium_plans", fails)
    else:
        monkeypatch.setattr(double_oracle, "MOST_OF_GAME", 20)
    found = solve("kuhn_poker")
    assert found.method == "pdcfr+" and found.iterations == 1000
    assert found.nash_conv < 1e-11 and found.converged == (found.nash_conv <= 1e-12 * 4.0)


def test_battleship_whose_program_is_degenerate():
    """With utilities of millions beside plans of ones, the simplex method did not end."""
    small = "board_width=2,board_height=2,ship_sizes=[1;1],ship_values=[1.0;1.0],num_shots=2"
    found = solve(f"battleship({small},allow_repeated_shots=False,loss_multiplier=1.0)")
    assert found.converged and found.value == pytest.approx(1 / 12) and found.method == "linear program"


def test_what_a_game_alone_is_not():
    tree = HistoryTree.of_game(pyspiel.load_game("kuhn_poker"))
    with pytest.raises(ValueError, match="expected a tree with policies that are computed during play"):
        best_precomputation(tree, 0)
    with pytest.raises(ValueError, match="expected a tree"):
        MetaPrecomputationGame(tree)
    with pytest.raises(ValueError, match=r"did you mean kuhn_poker"):
        solve("kuhn_pokr")
    with pytest.raises(ValueError, match=r"solve\(\): expected a pyspiel.Game, got 5"):
        solve(5)
    with pytest.raises(ValueError, match="expected a two-player game"):
        solve("kuhn_poker(players=3)")
    with pytest.raises(ValueError, match='expected no iterations with method="exact"'):
        solve("kuhn_poker", iterations=5)
    with pytest.raises(ValueError, match="perfect recall"):
        solve("liars_dice_ir(dice_sides=3)")


def test_penalties_are_no_price_of_the_game_alone():
    """The lemma: at next to no price, with a menu of all actions, the meta-game is the game."""
    from precomp_games import Menu
    from tests.oracles.games import uniform

    game = pyspiel.load_game("kuhn_poker")
    prepared = HistoryTree.from_game(game, sigma_pre=Menu.of_actions(), sigma=uniform, penalties=1e-9)
    assert meta_equilibrium(prepared).value == pytest.approx(solve(game).value, abs=1e-7)
