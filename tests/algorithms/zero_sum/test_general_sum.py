"""Games of general sum: best responses and NashConv beside OpenSpiel's, Algorithm 1 beside brute force."""

import dataclasses
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import best_response as openspiel_best_response
from open_spiel.python.algorithms import exploitability

from precomp_games import HistoryTree, MetaPrecomputationGame, RolloutValues
from precomp_games.algorithms import (
    best_precomputation,
    best_response,
    meta_equilibrium,
    meta_exploitability,
    nash_conv,
    solve,
)
from precomp_games.meta_game.gambit import to_efg
from tests.oracles import books
from tests.oracles.games import expand, policy_pairs, random_efg, random_policy, sides, uniform
from tests.oracles.preparation import names_of

_CASES = 200


def _game(seed):
    return random_efg(seed, depth=3 + seed % 3, actions=2 + seed % 2, lottery=seed % 5 == 4, general=True)


def test_responses_and_gambits_format(cases, tmp_path):
    for seed in range(cases(_CASES)):
        game = _game(seed)
        ask = random_policy(seed, ("full", "partial", "pure")[seed % 3], "infoset")
        policy, start = books.AsPolicy(game, ask), game.new_initial_state()
        tree = HistoryTree.of_game(game)
        assert nash_conv(tree, ask) == pytest.approx(exploitability.nash_conv(game, policy), abs=1e-12)
        for player in (0, 1):
            found = best_response(tree, ask, player)
            theirs = openspiel_best_response.BestResponsePolicy(game, player, policy).value(start)
            assert found.value == pytest.approx(theirs, abs=1e-12)
            answer = found.policy()
            played = books.play_value(start, [answer.action_probabilities] * 2, player)
            assert played == pytest.approx(found.value, abs=1e-12)
        again = HistoryTree.of_game(pyspiel.load_efg_game(to_efg(tree)))
        for name in ("parent", "player", "infoset", "value", "value_1"):
            np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))
        np.testing.assert_allclose(again.sigma, tree.sigma, rtol=1e-15)  # what is written sums to 1 exactly
        tree.save(tmp_path / "tree.npz")
        loaded = HistoryTree.load(tmp_path / "tree.npz")
        assert loaded.fingerprint == tree.fingerprint
        assert nash_conv(loaded.with_game(game), ask) == nash_conv(tree, ask)


def test_gambit_reads_them(cases, tmp_path):
    gambit = pytest.importorskip("pygambit")
    for seed in range(cases(_CASES)):
        (tmp_path / "game.efg").write_text(to_efg(_game(seed)))
        game = gambit.read_efg(str(tmp_path / "game.efg"))
        assert game.is_perfect_recall and not game.is_const_sum


@pytest.mark.parametrize("stop_value", ["backup", "evaluate"])
def test_preparing_is_for_the_own_utility(stop_value, cases):
    compared = memorized = 0
    for seed in range(cases(60)):
        game, player, penalty = _game(seed % 30), seed % 2, (0.003, 0.05, 0.2)[seed % 3]
        pre, sigma = policy_pairs(seed, "partial", "infoset")
        sets = books.all_sets(game, player, 60)
        if not sets:
            continue
        how = {"stop_value": stop_value, "truncate": "reach" if seed % 4 else "none"}
        tree = expand(game, pre, sigma, sides(player, penalty, math.inf), **how)
        tree.check()

        def play(chosen, game=game, pre=pre, sigma=sigma, player=player):
            def own(state):
                known = books.information_state(game, state, player) in chosen
                return (pre if known else sigma)[player](state)

            policies = sides(player, own, sigma[1 - player])
            return books.play_value(game.new_initial_state(), policies, player)

        values = {chosen: play(chosen) - penalty * len(chosen) for chosen in sets}
        best, found = max(values, key=values.__getitem__), best_precomputation(tree, player)
        assert names_of(tree, player, found.memorization_set) == best
        assert found.value == pytest.approx(values[best], abs=1e-9)
        assert found.unprepared == pytest.approx(values[frozenset()], abs=1e-9)
        with pytest.raises(ValueError, match=f"expected the tree's precomputing player, {player}, "):
            best_precomputation(tree, 1 - player)
        compared += 1
        memorized += len(best) > 0
    assert compared >= cases(60) / 2 and memorized >= compared / 4


@pytest.mark.parametrize("player", [0, 1])
def test_other_leaf_values_are_the_own_utility_as_well(player):
    game, (pre, sigma) = _game(6), policy_pairs(6, "partial", "infoset")
    start, most = game.new_initial_state(), game.max_utility()
    penalties = sides(player, 100.0, math.inf)
    expected = books.play_value(start, sigma, player)
    for leaf_value, slack in (("exact", 1e-12), (RolloutValues(games=20_000), 0.1), (lambda s: most, 0.0)):
        tree = expand(game, pre, sigma, penalties, leaf_value=leaf_value)
        wanted = expected if slack else most
        assert best_precomputation(tree, player).value == pytest.approx(wanted, abs=slack)


def test_what_needs_a_constant_sum_says_what_does_not():
    words = "a zero-sum or constant-sum game, got .*; those of any sum are for best_response"
    game, (pre, sigma) = _game(2), policy_pairs(2, "full", "infoset")
    alone = HistoryTree.of_game(game)
    prepared = expand(game, pre, sigma, (0.1, math.inf))
    for call in (
        lambda: solve(game),
        lambda: solve(alone),
        lambda: meta_equilibrium(alone),
        lambda: meta_equilibrium(prepared),
        lambda: meta_exploitability(prepared, ()),
        lambda: MetaPrecomputationGame(prepared),
        lambda: to_efg(prepared),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_damaged_files_and_other_games():
    tree = HistoryTree.of_game(_game(1))
    for name, value in (("value_1", np.full_like(tree.value, np.nan)), ("value_of", 1), ("value_of", 2)):
        with pytest.raises(ValueError, match=name):
            dataclasses.replace(tree, **{name: value}).check()
    with pytest.raises(ValueError, match="is not the same there"):
        tree.with_game(random_efg(1, depth=4, actions=3))
    assert tree.with_game(_game(1)).same_as(tree)


def test_openspiels_own_games():
    for name, most in (("matrix_pd", 10.0), ("tiny_hanabi", 10.0), ("matrix_bos", 3.0)):
        game = pyspiel.load_game(name)
        if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            game = pyspiel.convert_to_turn_based(game)
        policy = books.AsPolicy(game, uniform)
        assert nash_conv(name, uniform) == pytest.approx(exploitability.nash_conv(game, policy), abs=1e-12)
        assert 0.0 < best_response(name, uniform, 1).value <= most
