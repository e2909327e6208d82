"""Preparation with games: promises against exact values, and what games teach against the formula."""

import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from scipy import stats

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import best_precomputation, confirmed_precomputation
from precomp_games.algorithms.preparation.confirmed import _Confirmed
from precomp_games.algorithms.preparation.played_values import PlayedValues
from precomp_games.playouts import play_on
from precomp_games.policies import as_batch_policies
from tests.random_games import random_menu, random_policy, random_tree


def _game(seed):
    """(game, a menu, sigma of both, player) with chance nodes."""
    return (
        random_tree(seed, depth=7, actions=3),
        random_menu(seed),
        (random_policy(seed + 1000, "full"), random_policy(seed + 2000, "full")),
        seed % 2,
    )


def _wrong(state):
    """An evaluation that has nothing to do with what play is worth."""
    return -1.0 + 3.0 * (hash(tuple(state.history())) % 1000) / 1000.0


def _exact(game, sigma):
    """u^sigma by recursion."""

    def value(state):
        if state.is_terminal():
            return state.returns()[0]
        row = (
            dict(state.chance_outcomes()) if state.is_chance_node() else sigma[state.current_player()](state)
        )
        return sum(p * value(state.child(action)) for action, p in row.items() if p)

    return value


def _truth(game, preparation):
    """What play with a preparation is worth to its player, by OpenSpiel."""
    values = expected_game_score.policy_value(game.new_initial_state(), [preparation.policy()] * 2)
    return float(values[preparation.player])


def _confirmed(number, evaluator=_wrong, **options):
    game, menu, sigma, player = _game(number)
    options = {"games": 40, "promise_games": 300, "seed": number} | options
    return game, confirmed_precomputation(game, menu, sigma, 0.002, player, evaluator, **options)


def test_promises_are_unbiased_whatever_the_evaluation_says():
    deviations = []
    for seed in range(24):
        game, found = _confirmed(seed, precision=0.0)
        error = found.promise - _truth(game, found.preparation)
        if found.standard_error == 0.0:
            assert error == pytest.approx(0.0, abs=1e-9)  # every line ends inside the set
        else:
            deviations.append(error / found.standard_error)
            assert found.games == 300
    assert len(deviations) > 10
    assert max(map(abs, deviations)) < 4.5
    assert abs(sum(deviations)) / math.sqrt(len(deviations)) < 4.0
    assert 0.3 < np.std(deviations) < 1.7


@pytest.mark.parametrize(
    ("truth", "believed", "games"),
    [(0.985, 0.985, 148), (0.97, 0.971, 282), (0.985, 0.995, 100), (0.97, 0.9, 900), (0.9, 0.5, 1000)],
)
def test_near_the_best_utility_promises_are_unbiased_and_intervals_hold(monkeypatch, truth, believed, games):
    """Where ending early would favor luck, and all may be won: every number of wins, by its probability."""

    def draw(work, stops, weights, count, *, learn):
        assert len(stops) == 1 and not learn
        return np.zeros(count, int), np.array([next(scores) for _ in range(count)])

    monkeypatch.setattr(_Confirmed, "_play", draw)
    game, sigma = pyspiel.load_game("tic_tac_toe"), lambda state: {state.legal_actions()[0]: 1.0}
    odds = stats.binom.pmf(np.arange(games + 1), games, truth)
    exact, expected, held = 2.0 * truth - 1.0, 0.0, 0.0
    for wins in np.flatnonzero(odds > 1e-7).tolist():
        scores = iter([1.0] * wins + [-1.0] * (games - wins))
        found = confirmed_precomputation(
            game, sigma, sigma, 1.0, 0, lambda state: 2.0 * believed - 1.0, budget=0, games=0, precision=0.02
        )
        assert next(scores, None) is None and found.games == games
        assert found.interval[0] <= found.promise <= found.interval[1]
        expected += odds[wins] * found.promise
        held += odds[wins] * (found.interval[0] <= exact <= found.interval[1])
    assert expected == pytest.approx(exact, abs=1e-5)
    assert held >= 0.94


def test_games_correct_an_evaluation_that_is_wrong():
    taught, not_taught = [], []
    for seed in range(12):
        for games, truths in ((0, not_taught), (400, taught)):
            game, found = _confirmed(seed, games=games, promise_games=2, inherited=0.0)
            truths.append(_truth(game, found.preparation))
            assert sum(each.games for each in found.rounds) <= games
    assert np.mean(taught) > np.mean(not_taught) + 0.02


@pytest.mark.parametrize("seed", range(6))
def test_with_true_values_it_is_the_best_set_of_what_was_opened(seed):
    game, menu, sigma, player = _game(seed)
    value = _exact(game, sigma)
    for budget in (None, 3):
        found = confirmed_precomputation(
            game, menu, sigma, 0.002, player, value, budget=budget, games=0, promise_games=2, prior_games=1e9
        )
        preparation = found.preparation
        penalties = (0.002, math.inf) if player == 0 else (math.inf, 0.002)
        tree = HistoryTree.from_game(
            game, sigma_pre=preparation.menu, sigma=sigma, penalties=penalties, truncate="none"
        )
        best = best_precomputation(tree, player, budget=budget)
        truth = _truth(game, preparation)
        assert truth == pytest.approx(best.utility, abs=0.01)  # prior means keep off the ends
        assert preparation.size <= (budget or preparation.size)
        assert len(found.rounds) == 0


def test_the_same_seed_gives_the_same_result_and_another_one_does_not():
    once, again, other = (_confirmed(3, seed=seed)[1] for seed in (5, 5, 6))
    assert once.stops == again.stops and once.rounds == again.rounds
    assert once.promise == again.promise and once.preparation.histories == again.preparation.histories
    assert once.promise != other.promise


def test_what_is_told_adds_up():
    _, found = _confirmed(4)
    assert all(stop.reach > 0.0 for stop in found.stops)
    reaches = [stop.reach for stop in found.stops]
    assert reaches == sorted(reaches, reverse=True) and sum(reaches) <= 1.0 + 1e-9
    assert found.preparation.work["games"] == found.games + sum(each.games for each in found.rounds)
    sizes = [each.penalty for each in found.rounds]
    assert sizes == sorted(sizes, reverse=True)
    histories = set(found.preparation.histories)
    assert not any(stop.history in histories for stop in found.stops)
    told = []
    _confirmed(4, progress=lambda *said: told.append(said))
    assert told[-1][1] == found.preparation.work["games"]


def test_nobody_to_prepare():
    """Where the player never moves, or may learn nothing, the promise is that of sigma."""
    game, menu, sigma, player = _game(1)
    found = confirmed_precomputation(game, menu, sigma, 0.01, player, _wrong, budget=0, promise_games=400)
    assert found.preparation.size == 0
    assert found.promise == pytest.approx(
        _truth(game, found.preparation), abs=5.0 * found.standard_error + 1e-9
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"games": -1}, {"promise_games": 1}, {"rounds": 0}, {"prior_games": 0.0}, {"inherited": 2.0},
        {"precision": -0.1}, {"batch": 0}, {"budget": -1}, {"seed": "x"}, {"evaluator": 3}, {"progress": 3},
        {"max_evaluations": 0}, {"evaluator": lambda state: math.nan},
    ],
)  # fmt: skip
def test_wrong_arguments(wrong):
    game, menu, sigma, player = _game(0)
    evaluator = wrong.pop("evaluator", _wrong)
    with pytest.raises(ValueError, match=r"^confirmed_precomputation\(\): expected "):
        confirmed_precomputation(game, menu, sigma, 0.01, player, evaluator, **wrong)


# -- what games teach ----------------------------------------------------------------------------------


def _values(player, **options):
    known = {"evaluator": lambda state: 0.25, "prior_games": 4.0, "inherited": 0.5} | options
    return PlayedValues(
        known.pop("evaluator"),
        player,
        (0.0, 1.0),
        1.0,
        lambda state: tuple(state.history()),
        **known,
    )


@pytest.mark.parametrize("player", [0, 1])
def test_posterior_means_by_hand(player):
    game = pyspiel.load_game("tic_tac_toe")
    start = game.new_initial_state()
    later = start.child(0).child(1)
    values = _values(player)
    prior = 0.25 if player == 0 else 0.75

    def own(states):
        answer = values.evaluate_batch(states)
        return answer if player == 0 else 1.0 - answer

    assert own([start, later]) == pytest.approx([prior, prior])
    values.credit([start, start], 1.0)  # a position counts once a game
    values.credit([start], 0.5)
    at_start = (4.0 * prior + 1.5) / 6.0
    inherited = prior + 0.5 * (at_start - prior)
    assert own([start, later]) == pytest.approx([at_start, inherited])
    assert values.games(start) == 2 and values.games(later) == 0
    values.credit([start, later], 0.0)
    at_start = (4.0 * prior + 1.5) / 7.0
    inherited = (4.0 * (prior + 0.5 * (at_start - prior))) / 5.0
    assert own([start, later]) == pytest.approx([at_start, inherited])
    assert values.deviation(0.5, 3) == pytest.approx(math.sqrt(0.25 / 8.0))


def test_values_are_the_best_linear_estimates_and_no_more():
    """Positions worth 0.6 or 1, equally likely, so n0 is 3: least squares by hand, and Bayes beside it."""
    start = pyspiel.load_game("tic_tac_toe").new_initial_state()
    games, wins = 5, np.arange(6)
    joint = 0.5 * np.array([stats.binom.pmf(wins, games, worth) for worth in (0.6, 1.0)])
    found = []
    for won in wins.tolist():
        values = _values(0, evaluator=lambda state: 0.8, prior_games=3.0)
        for k in range(games):
            values.credit([start], float(k < won))
        found.append(float(values.evaluate_batch([start])[0]))
    seen, truth = joint.sum(axis=0), np.array([0.6, 1.0]) @ joint
    weights = np.sqrt(seen)
    slope, constant = np.polyfit(wins, truth / seen, 1, w=weights)
    assert found == pytest.approx(slope * wins + constant)
    assert found[4] == pytest.approx(0.8) and truth[4] / seen[4] == pytest.approx(0.6)


# -- games --------------------------------------------------------------------------------------------


def test_games_have_the_law_of_their_policies():
    game = pyspiel.load_game("tic_tac_toe")
    sigma = openspiel_policy.UniformRandomPolicy(game)
    start = game.new_initial_state()
    middle = start.child(4).child(1)
    seen = []
    ends = play_on(
        [start] * 600 + [middle] * 600,
        as_batch_policies(sigma, "sigma", "test"),
        [np.random.default_rng([k]) for k in range(1200)],
        min_probability=0.0,
        batch=64,
        visit=lambda number, state: seen.append((number, state.move_number())),
    )
    for first, state in ((0, start), (600, middle)):
        scores = np.array([end.returns()[0] for end in ends[first : first + 600]])
        truth = expected_game_score.policy_value(state, [sigma, sigma])[0]
        assert abs(scores.mean() - truth) < 4.5 * scores.std() / math.sqrt(600)
    assert start.move_number() == 0 and middle.move_number() == 2
    assert sorted(ply for number, ply in seen if number == 7) == list(range(ends[7].move_number()))
    other = play_on(
        [middle],
        as_batch_policies(sigma, "sigma", "test"),
        [np.random.default_rng([700])],
        min_probability=0.0,
    )
    assert other[0].history() == ends[700].history()  # no game depends on the others


def test_menus_that_are_empty_end_a_book():
    game, _, sigma, player = _game(2)
    found = confirmed_precomputation(
        game, Menu(lambda state: []), sigma, 0.01, player, _wrong, promise_games=2
    )
    assert found.preparation.size == 0
