"""Checks of predictions of people: replies, classes, and moves that a player chose."""

import math

import numpy as np
import pytest

from precomp_games.chess.model.off_policy import Choices, move_slope, position_slope
from precomp_games.chess.model.people_checks import (
    check_replies,
    mean_of_games,
    reply_classes,
    value_classes,
)
from tests.chess.test_people_values import BLITZ, people, simulated


def test_replies_cost_bits_and_errors_are_by_game():
    rows = [{1: 0.5, 2: 0.25, 3: 0.25}, {4: 0.5, 5: 0.5}, {6: 1.0}, {7: 0.75, 8: 0.25}]
    check = check_replies(rows, [1, 5, 9, 8], np.array([0, 0, 1, 2]))
    assert (check.moves, check.games) == (4, 3)
    assert check.bits == pytest.approx((1 + 1 + 40 + 2) / 4)  # what is ruled out costs 40
    assert check.first == 0.25  # of equally likely moves the first one is the guess
    # The mean's error is that of three sums: (1 + 1, 40, 2) less as often the mean.
    off = np.array([2 - 22, 40 - 11, 2 - 11])
    assert check.bits_error == pytest.approx(math.sqrt((off**2).sum()) / 4)


def test_ten_classes_hold_all_legal_moves():
    rng = np.random.default_rng(0)
    rows, played = [], []
    for _ in range(4000):
        odds = rng.dirichlet([0.5] * 6)
        rows.append(dict(enumerate(odds.tolist())))
        played.append(int(rng.choice(6, p=odds)))
    classes = reply_classes(rows, played, np.arange(4000))
    assert len(classes) == 10 and sum(each.pairs for each in classes) == 24_000
    assert sum(each.moves for each in classes) == 4000
    for k, each in enumerate(classes):
        assert k / 10 <= each.expected <= (k + 1) / 10
        assert abs(each.played - each.expected) < 4.0 * each.error
        assert each.played == pytest.approx(each.moves / each.pairs)
    sure = reply_classes([{1: 1.0}], [1], np.array([0]))
    assert [(each.pairs, each.expected, each.played) for each in sure] == [(1, 1.0, 1.0)]


def test_classes_of_values_are_what_was_scored():
    positions, lines = simulated(BLITZ, "blitz", 1500, seed=5)
    classes = value_classes(people(), positions, lines)
    assert [each.positions for each in classes] == [300] * 10
    expected = [each.expected for each in classes]
    assert expected == sorted(expected) and expected[0] < 0.35 and expected[-1] > 0.65
    assert all(abs(each.scored - each.expected) < 4.0 * each.error for each in classes)


def chosen(slope, *, positions=60, games=150, seed=0):
    """Games through positions, three moves at each, whose real gains are `slope` times what is predicted.

    A position has a gain of its own, which comparisons of its moves must not see.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for position in range(positions):
        base, gains = rng.normal(0.0, 0.1), rng.normal(0.0, 0.1, 3)
        for game in rng.choice(2000, games, replace=False).tolist():
            move = int(rng.integers(3))
            real = base + slope * gains[move] + rng.normal(0.0, 0.4)
            rows.append((position, 3 * position + move, game, real, gains[move], 2.0 * base))
    columns = np.array(rows).T
    return Choices(*columns[:3].astype(np.int64), *columns[3:])


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_moves_that_were_chosen_say_what_gains_were(slope):
    choices = chosen(slope)
    found = move_slope(choices, 20)
    assert len(found.points) == 60 and found.games == 9000 and found.intercept == 0.0
    assert abs(found.slope - slope) < 3.5 * found.error
    assert found == move_slope(choices, 20)
    # The same by hand: the best of each position against its others, weighted by inverse variances.
    top, bottom, variance = 0.0, 0.0, 0.0
    for move in range(180):
        off = choices.real[choices.move == move]
        predicted = choices.predicted[choices.position == move // 3]
        best = choices.move == move
        if choices.predicted[best][0] == predicted.max():
            others = (choices.position == move // 3) & ~best
            gain = predicted.max() - choices.predicted[others].mean()
            weight = 1.0 / (1.0 / best.sum() + 1.0 / others.sum())
            top += weight * gain * (off.mean() - choices.real[others].mean())
            bottom += weight * gain**2
            variance += weight * gain**2
    assert found.slope == pytest.approx(top / bottom)
    assert found.error == pytest.approx(0.4 / math.sqrt(variance), rel=0.25)


def test_positions_are_compared_by_what_the_evaluation_says_before_the_move():
    found = position_slope(chosen(0.0, positions=200))
    assert len(found.points) == 200 and abs(found.slope - 0.5) < 3.5 * found.error
    assert found.intercept == pytest.approx(0.0, abs=0.02)


def test_moves_of_few_games_do_not_count():
    choices = chosen(1.0, positions=4, games=60)
    assert move_slope(choices, 5).games == 240
    with pytest.raises(ValueError, match="expected choices of two positions or more"):
        move_slope(choices, 50)


def test_errors_of_means_know_that_games_repeat():
    values, games = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    assert mean_of_games(values, games) == pytest.approx((0.5, math.sqrt(2.0) / 4))
    assert mean_of_games(values, np.arange(4)) == pytest.approx((0.5, 0.25))
