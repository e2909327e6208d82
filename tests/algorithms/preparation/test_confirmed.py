"""Preparation with games: promises against exact values, and what games teach against the formula."""

import itertools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from scipy import stats

from precomp_games import Menu
from precomp_games.algorithms import best_precomputation, confirmed_precomputation
from precomp_games.algorithms.preparation.confirmed import PlayedValues, _Confirmed
from precomp_games.algorithms.preparation.partial_tree import PreparationProblem
from precomp_games.policies.playouts import play_on
from tests.oracles.games import first, random_policy, random_tree
from tests.oracles.graphs import follow
from tests.oracles.preparation import evaluation, prepared, scored
from tests.properties import examples
from tests.shown import shown

_GAME = pyspiel.load_game("tic_tac_toe")


def _setting(number):
    return prepared(random_tree(number, depth=6), number, number % 2, menu=3)


def _truth(game, preparation):
    return scored(game, preparation.player, preparation.policy())


def _confirmed(number, **options):
    """Return a preparation by an evaluation that has nothing to do with the value of play."""
    setting = _setting(number)
    options = {"games": 40, "promise_games": 300, "seed": number} | options
    pre, evaluator = options.pop("pre", setting.pre[setting.player]), options.pop("evaluator", evaluation(0))
    return setting.game, confirmed_precomputation(
        setting.game, pre, setting.sigma, 0.002, setting.player, evaluator, **options
    )


def test_promises_are_unbiased_whatever_the_evaluation_says():
    deviations = []
    for seed in range(16):
        game, found = _confirmed(seed, precision=0.0)
        error = found.promise - _truth(game, found.preparation)
        if found.standard_error == 0.0:
            assert error == pytest.approx(0.0, abs=1e-9)  # every line ends inside the set
        else:
            deviations.append(error / found.standard_error)
            assert found.games == 300
    assert len(deviations) > 8
    assert max(map(abs, deviations)) < 4.5
    assert abs(sum(deviations)) / math.sqrt(len(deviations)) < 4.0
    assert 0.3 < np.std(deviations) < 1.7


@pytest.mark.parametrize(
    ("truth", "believed", "games"),
    [(0.985, 0.985, 148), (0.97, 0.971, 282), (0.985, 0.995, 100), (0.97, 0.9, 900), (0.9, 0.5, 1000)],
)
def test_near_the_best_utility_promises_are_unbiased_and_intervals_hold(monkeypatch, truth, believed, games):
    """Near a score of 1, where ending early would favor luck: every number of wins, by its probability."""

    def draw(work, stops, weights, count, *, learn):
        assert len(stops) == 1 and not learn
        return np.zeros(count, int), np.array([next(scores) for _ in range(count)])

    monkeypatch.setattr(_Confirmed, "_play", draw)
    options = {"budget": 0, "games": 0, "precision": 0.02}
    odds = stats.binom.pmf(np.arange(games + 1), games, truth)
    exact, expected, held = 2.0 * truth - 1.0, 0.0, 0.0
    for wins in np.flatnonzero(odds > 1e-7).tolist():
        scores = iter([1.0] * wins + [-1.0] * (games - wins))
        found = confirmed_precomputation(
            _GAME, first, first, 1.0, 0, lambda state: 2.0 * believed - 1.0, **options
        )
        assert next(scores, None) is None and found.games == games
        assert found.interval[0] <= found.promise <= found.interval[1]
        expected += odds[wins] * found.promise
        held += odds[wins] * (found.interval[0] <= exact <= found.interval[1])
    assert expected == pytest.approx(exact, abs=1e-5)
    assert held >= 0.94


def test_games_correct_an_evaluation_that_is_wrong():
    truths = {0: [], 400: []}
    for seed, games in itertools.product(range(8), truths):
        game, found = _confirmed(seed, games=games, promise_games=2, inherited=0.0)
        truths[games].append(_truth(game, found.preparation))
        assert sum(each.games for each in found.rounds) <= games
    assert np.mean(truths[400]) > np.mean(truths[0]) + 0.02


@examples(64)
@given(st.integers(0, 99), st.sampled_from((None, 3)))
def test_a_run_is_the_same_with_the_same_seed_and_its_numbers_add_up(number, budget):
    """Sets that are reported on the way change nothing either."""
    reported = []
    options = {"budget": budget, "promise_games": 50}
    _, found = _confirmed(number, **options, improved=reported.append)
    _, again = _confirmed(number, **options)
    made = found.preparation
    assert found.stops == again.stops and found.rounds == again.rounds and found.promise == again.promise
    assert made.histories == again.preparation.histories == reported[-1].histories
    assert all(each.size <= (budget or each.size) for each in reported)
    played = sum(each.games for each in found.rounds)
    assert made.work["games"] == found.games + played
    assert reported[-1].work["games"] == played  # none for the promise yet
    reaches = [stop.reach for stop in found.stops]
    assert reaches == sorted(reaches, reverse=True) and sum(reaches) <= 1.0 + 1e-9
    assert all(reach > 0.0 for reach in reaches)
    penalties = [each.penalty for each in found.rounds]
    assert penalties == sorted(penalties, reverse=True)
    assert not {stop.history for stop in found.stops}.intersection(made.histories)


def test_another_seed_gives_another_promise():
    assert _confirmed(3, seed=5)[1].promise != _confirmed(3, seed=6)[1].promise


@examples(64)
@given(st.integers(0, 99), st.sampled_from((None, 3)))
def test_with_true_values_it_is_the_best_set_of_what_was_opened(number, budget):
    setting = _setting(number)
    options = {"budget": budget, "games": 0, "promise_games": 2, "prior_games": 1e9}
    game, found = _confirmed(number, evaluator=setting.play, **options)
    tree = setting.having(found.preparation.menu).tree(0.002, truncate="none")
    best = best_precomputation(tree, setting.player, budget=budget)
    truth = _truth(game, found.preparation)
    assert truth == pytest.approx(best.utility, abs=0.01)  # prior means keep off the ends
    assert found.preparation.size <= (budget or found.preparation.size)
    assert len(found.rounds) == 0


def test_less_optimism_compares_fewer_entries():
    """With all of it every menu is opened, and with none nothing is, but what games have seen."""
    options = {"games": 0, "promise_games": 0, "evaluator": evaluation(1)}
    opened = []
    for seed in range(6):
        found = [_confirmed(seed, optimism=g, **options)[1] for g in (0.0, 0.05, 0.28)]
        opened.append([each.preparation.work["opened"] for each in found])
        assert _confirmed(seed, **options)[1].promise == found[2].promise  # the default
    numbers = np.array(opened)
    assert (numbers[:, 0] == 0).all() and (np.diff(numbers) >= 0).all()
    assert np.diff(numbers.sum(axis=0)).min() > 0


@pytest.mark.parametrize(("support", "games", "early"), [("pure", 2, True), ("partial", 10, False)])
def test_where_the_opponent_has_one_reply_games_come_early(support, games, early):
    """A set is one line then, about which a game informs more than further evaluations."""

    def three(state):
        drawn = np.random.default_rng(state.history()).permutation(state.legal_actions())
        return [{int(action): 1.0} for action in drawn[:3]]

    with shown() as bars:
        found = confirmed_precomputation(
            pyspiel.load_game("hex(board_size=6)"),
            Menu(three),
            (random_policy(1, "pure"), random_policy(2, support)),
            1e-4,
            0,
            lambda state: -0.02 * state.move_number(),
            budget=100,
            games=50,
            promise_games=2,
            max_evaluations=200,
        )
    assert found.rounds[0].games == games
    before = next(evaluations for evaluations, note in bars[0].notes if note != "0 games")
    assert before <= 60 if early else before >= 200


@pytest.mark.parametrize("seed", range(6))
def test_lines_that_games_have_seen_are_compared_where_nothing_else_is_looked_at(seed):
    """A set is found that is worth, by its games, what the best set of all is where its lines can be left."""
    options = {"games": 0, "promise_games": 0, "inherited": 0.0}
    game, whole = _confirmed(seed, **options)
    player = whole.preparation.player
    best = game.max_utility() if player == 0 else game.utility_sum() - game.min_utility()
    played = []
    for stop in whole.stops:
        played += [([follow(game.new_initial_state(), stop.history)], best)] * 5
    made, penalty = whole.preparation, whole.preparation.penalty
    left = [any(stop.history[: len(h)] == h for stop in whole.stops) for h in made.histories]
    worth = whole.promise - made.gain[~np.array(left, bool)].sum() - penalty * sum(left)
    worth += sum(stop.reach * 0.5 * (best - stop.value) for stop in whole.stops)  # n0 = n = 5
    _, found = _confirmed(seed, **options, played=played, max_evaluations=1)
    assert found.promise - penalty * found.preparation.size >= worth - 1e-9


def _taught(played, **options):
    """Return a preparation of tic-tac-toe by these games alone, since an evaluation sees nothing in it."""
    options = {"games": 0, "promise_games": 0, "played": played} | options
    return confirmed_precomputation(_GAME, Menu.of_actions(), first, 1e-3, 0, lambda state: 0.0, **options)


@pytest.mark.parametrize(("games", "found"), [(2, 0), (3, 2)])
def test_what_several_games_won_with_is_memorized(games, found):
    """Nothing was memorized; a move won all of its games, and another one lost as many."""
    played = []
    for action, score in ((8, 1.0), (7, -1.0)):
        passed = [follow(_GAME.new_initial_state(), [action, 0, 6, 1][:k]) for k in (0, 2, 4)]
        played += [(passed, score)] * games
    made = _taught(played, max_evaluations=1)
    assert made.preparation.histories == ((), (8, 0))[:found]
    assert (made.promise > 0.1) == (found > 0)


def test_hope_goes_where_few_games_have_been_and_no_reported_value_has_any():
    start = _GAME.new_initial_state()
    played = [([start], 1.0)] * 3 + [([start], -1.0)] * 2
    sure, hopeful = (_taught(played, max_evaluations=50, inherited=0.0, doubt=d) for d in (0.0, -1.0))
    assert sure.preparation.size == 0 and sure.promise == pytest.approx(0.1)  # n0 = n = 5
    assert hopeful.preparation.size > 0 and hopeful.promise == pytest.approx(0.0)
    assert hopeful.unprepared == pytest.approx(0.1)
    assert hopeful.preparation.lower == pytest.approx(-1e-3 * hopeful.preparation.size)


@pytest.mark.parametrize("options", [{"budget": 0}, {"pre": Menu(lambda state: [])}])
def test_nothing_to_prepare(options):
    """The promise is that of sigma if the player may learn nothing, or has nothing to learn."""
    game, found = _confirmed(1, promise_games=400, **options)
    assert found.preparation.size == 0
    truth = _truth(game, found.preparation)
    assert found.promise == pytest.approx(truth, abs=5.0 * found.standard_error + 1e-9)


# -- what games teach ----------------------------------------------------------------------------------


def _values(player, worth, prior_games, **options):
    options = {"prior_games": prior_games, "inherited": 0.5} | options
    nobody = (None, None)
    problem = PreparationProblem(_GAME, player, None, nobody, 0.1, 0.0, 1.0, 1.0, None, 0.0)
    return PlayedValues(lambda state: worth, problem, **options)


@pytest.mark.parametrize("player", [0, 1])
def test_posterior_means_by_hand(player):
    """Doubt takes off, and hope adds, what few games say."""
    start = _GAME.new_initial_state()
    later, other = start.child(0).child(1), start.child(0).child(2)
    values = _values(player, 0.25, 4.0)
    prior = 0.25 if player == 0 else 0.75

    def own(states, values=values):
        answer = values.evaluate_batch(states)
        return answer if player == 0 else 1.0 - answer

    assert own([start, later]) == pytest.approx([prior, prior])
    values.credit([start, start], [1.0, 1.0])  # a position counts once a game
    values.credit([start], [0.5])
    at_start = (4.0 * prior + 1.5) / 6.0
    inherited = prior + 0.5 * (at_start - prior)
    assert own([start, later]) == pytest.approx([at_start, inherited])
    assert values.games(start) == 2 and values.games(later) == 0
    values.credit([start, later], [0.0, 0.0])
    at_start = (4.0 * prior + 1.5) / 7.0
    inherited = (4.0 * (prior + 0.5 * (at_start - prior))) / 5.0
    assert own([start, later]) == pytest.approx([at_start, inherited])
    assert values.deviation(0.5, 3) == pytest.approx(math.sqrt(0.25 / 8.0))
    found = []
    for doubt in (0.0, 1.5, -1.5):
        values = _values(player, 0.5, 4.0, doubt=doubt, inherited=0.0)
        for _ in range(20):
            values.credit([later], [0.5])
        values.credit([other], [0.0])
        found.append(own([start, later, other], values))
    means, lower, upper = found
    assert means == pytest.approx([0.5, 0.5, 0.4])
    assert upper - means == pytest.approx(means - lower)
    assert means - lower == pytest.approx(1.5 * np.sqrt([0.25 / 5.0, 0.25 / 25.0, 0.24 / 6.0]))


def test_values_are_the_best_linear_estimates_and_no_more():
    """Positions worth 0.6 or 1, equally likely, so n0 is 3: least squares by hand, and Bayes beside it."""
    start = _GAME.new_initial_state()
    games, wins = 5, np.arange(6)
    joint = 0.5 * np.array([stats.binom.pmf(wins, games, worth) for worth in (0.6, 1.0)])
    found = []
    for won in wins.tolist():
        values = _values(0, 0.8, 3.0)
        for k in range(games):
            values.credit([start], [float(k < won)])
        found.append(float(values.evaluate_batch([start])[0]))
    seen, truth = joint.sum(axis=0), np.array([0.6, 1.0]) @ joint
    slope, constant = np.polyfit(wins, truth / seen, 1, w=np.sqrt(seen))
    assert found == pytest.approx(slope * wins + constant)
    assert found[4] == pytest.approx(0.8) and truth[4] / seen[4] == pytest.approx(0.6)


# -- games --------------------------------------------------------------------------------------------


def test_games_have_the_law_of_their_policies():
    sigma = openspiel_policy.UniformRandomPolicy(_GAME)
    start, count = _GAME.new_initial_state().child(8), 400
    middle = start.child(4).child(1).child(0)
    seen = []

    def ends_of(states, first, **options):
        streams = [np.random.default_rng([first + k]) for k in range(len(states))]
        return play_on(states, (sigma, sigma), streams, min_probability=0.0, **options)

    def visit(number, state):
        seen.append((number, state.move_number()))

    ends = ends_of([start] * count + [middle] * count, 0, batch=64, visit=visit)
    for begin, state in ((0, start), (count, middle)):
        scores = np.array([end.returns()[0] for end in ends[begin : begin + count]])
        truth = expected_game_score.policy_value(state, [sigma, sigma])[0]
        assert abs(scores.mean() - truth) < 4.5 * scores.std() / math.sqrt(count)
    assert start.move_number() == 1 and middle.move_number() == 4
    assert sorted(ply for number, ply in seen if number == 7) == list(range(1, ends[7].move_number()))
    alone = ends_of([middle], count + 100)
    assert alone[0].history() == ends[count + 100].history()  # no game depends on the others
