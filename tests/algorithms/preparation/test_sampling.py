"""Preparation that plays games: certificates by roll-outs, promises, and what games teach."""

import functools
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
from precomp_games.algorithms.preparation.certified_sampling import _Certifier, certified_precomputation
from precomp_games.algorithms.preparation.confirmed import PlayedValues, _Confirmed
from precomp_games.algorithms.preparation.partial_tree import PartialTree, PreparationProblem
from precomp_games.policies.playouts import play_on
from precomp_games.policies.rows import as_batch_policy
from precomp_games.tree.facts import TERMINAL
from tests.oracles.games import SUPPORTS, first, random_policy, random_tree
from tests.oracles.graphs import follow
from tests.oracles.preparation import entries_of, evaluation, one_sided, preparations, prepared, scored, worth
from tests.properties import examples
from tests.shown import shown


@functools.cache
def _known(kind, seed, depth=5):
    if kind == "policy":
        return prepared(random_tree(seed, depth=depth), seed, seed % 2, support=SUPPORTS[seed % 3])
    return prepared(random_tree(seed, depth=7), seed, seed % 2, menu=3, support="partial")


@functools.cache
def _truth(setting):
    """Return (the whole tree with exact values, the value of the best set)."""
    whole = setting.tree(0.05, truncate="none")
    return whole, best_precomputation(whole, setting.player).value


def _certified(setting, **options):
    pre = setting.pre[setting.player]
    return certified_precomputation(setting.game, pre, setting.sigma, 0.05, setting.player, **options)


def _check(setting, found):
    """An interval holds the best value, and its lower end what its set is worth."""
    whole, value = _truth(setting)
    assert found.lower - 1e-9 <= worth(whole, found) <= value + 1e-9
    assert value <= found.upper + 1e-9


# -- the inequality --------------------------------------------------------------------------------------


def _sets(certifier, node):
    """Return (doubt, known, places, whether it is only bounded from above) of every choice from a node on."""
    decision, penalty = certifier._decisions[node.index], certifier.problem.penalty
    found = []
    if decision.stop is not None:
        found.append((decision.stop.doubt, 0.0, [decision.stop.place], False))
    for option, entry in zip(decision.memorize, node.entries if node.opened else [None], strict=True):
        assert option.branch is entry
        if entry is None:
            most = node.reach * certifier.problem.high - penalty
            found.append((option.doubt, most, [], True))
            continue
        price = penalty if node.before is not None else 0.0
        rest = [option.place] if option.place is not None else []
        combined = [(option.doubt, entry.known - price, rest, False)]
        for child in entry.children:
            combined = [
                (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] or b[3])
                for a in combined
                for b in _sets(certifier, child)
            ]
        found += combined
    return found


@examples(160)
@given(preparations("perfect", depth=4, fewest=0))
def test_every_set_is_bounded_by_hoeffding_and_priors_add_up_to_one(setting):
    """Each round's two bounds beside the formula of the module, over all sets of the open tree."""
    player, etas = setting.player, []
    problem = PreparationProblem.checked(
        setting.game, setting.pre[player], setting.sigma, 0.05, player, None, 1e-12
    )

    class Noted(_Certifier):
        def _plan(self, confidence):
            etas.append(super()._plan(confidence))
            return etas[-1]

    certifier = Noted(problem, 0.6, 0.1, setting.seed)
    for number in (1, 2, 3):
        interval = certifier.lower, certifier.upper
        assert certifier.round(math.inf) and certifier.rounds == number
        eta, sets = etas[-1], _sets(certifier, certifier.tree.root)
        assert sum(math.exp(-doubt) for doubt, *_ in sets) <= 1.0 + 1e-9

        def bound(entry, sign, eta=eta):
            doubt, known, places, _ = entry
            error = sum(eta * problem.range**2 * p.reach**2 / (8.0 * p.planned) for p in places)
            return known + sum(p.reach * p.mean for p in places) + sign * (error + doubt / eta)

        sampled = any(places for _, _, places, _ in sets)  # otherwise all is known exactly
        slack = math.log(2.0 * number * (number + 1) / 0.1) / eta if sampled else 0.0
        upper = max(bound(entry, 1.0) for entry in sets) + slack
        lower = max(bound(entry, -1.0) for entry in sets if not entry[3]) - slack
        assert certifier.upper == pytest.approx(min(interval[1], upper), abs=1e-9)
        assert certifier.lower == pytest.approx(max(interval[0], lower), abs=1e-9)


def test_equal_keys_at_different_levels_are_different_positions():
    """As for `HistoryTree`, keys speak of states of one level."""

    def policy(state):
        return {state.legal_actions()[0 if state.move_number() < 2 else -1]: 1.0}

    game = pyspiel.load_game("tic_tac_toe")
    problem = PreparationProblem.checked(game, policy, policy, 0.1, 0, lambda state: "same", 0.0)
    tree, state = PartialTree(problem, lump=False), game.new_initial_state()
    later = state.child(4).child(5)
    rows = tree._ask(as_batch_policy(policy, "policy"), [state, later, state.clone()], "policy")
    assert rows == [[{0: 1.0}], [{8: 1.0}], [{0: 1.0}]]


# -- roll-outs -------------------------------------------------------------------------------------------


@pytest.mark.slow("a frequency of many runs")
@pytest.mark.parametrize(("kind", "epsilon"), [("policy", 0.6), ("menu", 0.3)])
def test_400_certificates_at_all_times(kind, epsilon):
    """At no moment may the interval miss, but for delta of the runs (one-sided binomial test at 1e-3)."""
    delta, misses, gaps = 0.2, 0, []
    for seed, repetition in itertools.product(range(10), range(40)):
        whole, value = _truth(_known(kind, seed))
        found = _certified(_known(kind, seed), epsilon=epsilon, delta=delta, seed=repetition)
        seen = [interval for _, *interval in found.trace]
        assert found.reached and found.gap <= epsilon
        assert seen == sorted(seen, key=lambda interval: interval[1] - interval[0], reverse=True)
        wrong = not found.lower - 1e-9 <= worth(whole, found) <= value + 1e-9
        misses += wrong or any(not lower - 1e-9 <= value <= upper + 1e-9 for lower, upper in seen)
        gaps.append(found.gap)
    assert stats.binomtest(misses, len(gaps), delta, alternative="greater").pvalue > 1e-3
    assert np.mean(gaps) < epsilon


def test_one_round_of_one_place_is_as_tight_as_it_can_be():
    """With one stop and nothing to memorize, the width is the one of Hoeffding's bound within a factor."""
    setting, options = _known("policy", 4), {"epsilon": 0.3, "delta": 0.05, "seed": 1}
    found = certified_precomputation(setting.game, setting.pre[0], setting.sigma, 1e3, 0, **options)
    best_case = 2.0 * 9.0 * math.log(2.0 * 2 * 2 / 0.05) / 0.3**2
    assert found.size == 0 and found.reached and found.work["rollouts"] < 4.0 * best_case


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_fewer_roll_outs_than_theorem_3(seed):
    """At most a twentieth; the benchmark has the table for epsilon = 0.05."""
    setting, epsilon = _known("policy", seed, 7), 0.3
    tree = setting.tree(0.05, stop_value="evaluate")
    count = int((((tree.infoset >= 0) | (tree.num_children == 0)) & (tree.player != TERMINAL)).sum())
    theorem_3 = count * math.ceil(16.0 * (3.0 / epsilon) ** 2 * math.log(count / 0.05))
    found = _certified(setting, epsilon=epsilon, delta=0.05, seed=seed)
    assert found.reached and found.work["rollouts"] <= theorem_3 / 20
    _check(setting, found)


def test_shared_positions_and_the_policy_of_what_was_found():
    game = random_tree(0, depth=6, width=3)
    pre, sigma = random_policy(1, by="position"), random_policy(2, by="position")
    tree = one_sided(game, 0, pre, sigma, 0.02, position_key=str)
    options = {"epsilon": 0.2, "delta": 0.05, "position_key": str, "seed": 2}
    found, again = (certified_precomputation(game, pre, sigma, 0.02, 0, **options) for _ in range(2))
    assert found.reached and found.lower <= best_precomputation(tree, 0).value <= found.upper
    assert found.size > 0 and len(entries_of(tree, found)) == found.size
    assert (again.lower, again.upper, again.histories) == (found.lower, found.upper, found.histories)
    row = found.policy().action_probabilities(tree.state(tree.find(found.histories[0])))
    assert {a: p for a, p in row.items() if p} == pytest.approx(found.rows[0])


def test_at_any_time_an_interval_is_valid_and_it_ends_when_that_is_enough():
    setting, gaps = _known("policy", 2), []
    for limit in (0, 200, 1000, 5000, 25_000):
        options = {"epsilon": 0.05, "delta": 0.05, "max_rollouts": limit, "seed": np.int64(3)}
        found = _certified(setting, **options)
        assert not found.reached and found.work["rollouts"] <= max(limit, 50)
        _check(setting, found)
        gaps.append(found.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == 3.0 and gaps[-1] < 0.4
    rounds = iter([False, True])
    setting = _known("menu", 1)
    found = _certified(setting, epsilon=0.01, enough=lambda: next(rounds))
    assert next(rounds, None) is None and found.work["rounds"] == 2 and not found.reached
    _check(setting, found)


@pytest.mark.parametrize("seed", [0, 2, 12, 38])
def test_a_set_whose_lines_all_end_in_the_game(seed):
    """The best set has nothing to sample; what it is compared with still has."""
    game = random_tree(seed, depth=3)
    pre, sigma = random_policy(seed, SUPPORTS[seed % 3]), random_policy(seed + 1000)
    value = best_precomputation(one_sided(game, 0, pre, sigma, 0.02), 0).value
    found = certified_precomputation(game, pre, sigma, 0.02, 0, epsilon=0.15, max_rollouts=200_000, seed=seed)
    assert found.reached and found.lower - 1e-9 <= value <= found.upper + 1e-9


_GAME = pyspiel.load_game("tic_tac_toe")


def _drawn(number):
    return prepared(random_tree(number, depth=6), number, number % 2, menu=3)


def _score(game, preparation):
    return scored(game, preparation.player, preparation.policy())


def _confirmed(number, **options):
    """Return a preparation by an evaluation that has nothing to do with the value of play."""
    setting = _drawn(number)
    options = {"games": 40, "promise_games": 300, "seed": number} | options
    pre, evaluator = options.pop("pre", setting.pre[setting.player]), options.pop("evaluator", evaluation(0))
    return setting.game, confirmed_precomputation(
        setting.game, pre, setting.sigma, 0.002, setting.player, evaluator, **options
    )


def test_promises_are_unbiased_whatever_the_evaluation_says():
    deviations = []
    for seed in range(16):
        game, found = _confirmed(seed, precision=0.0)
        error = found.promise - _score(game, found.preparation)
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
        truths[games].append(_score(game, found.preparation))
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
    assert _confirmed(3, seed=5)[1].promise != _confirmed(3, seed=6)[1].promise


@examples(64)
@given(st.integers(0, 99), st.sampled_from((None, 3)))
def test_with_true_values_it_is_the_best_set_of_what_was_opened(number, budget):
    setting = _drawn(number)
    options = {"budget": budget, "games": 0, "promise_games": 2, "prior_games": 1e9}
    game, found = _confirmed(number, evaluator=setting.play, **options)
    tree = setting.having(found.preparation.menu).tree(0.002, truncate="none")
    best = best_precomputation(tree, setting.player, budget=budget)
    truth = _score(game, found.preparation)
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
    truth = _score(game, found.preparation)
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
    prior = 0.25 if player == 0 else 0.75

    def own(values, *states):
        answer = values.evaluate_batch(states)
        return answer if player == 0 else 1.0 - answer

    values = _values(player, 0.25, 4.0)
    assert own(values, start, later) == pytest.approx([prior, prior])
    values.credit([start, start], [1.0, 1.0])  # a position counts once a game
    values.credit([start], [0.5])
    at_start = (4.0 * prior + 1.5) / 6.0
    assert own(values, start, later) == pytest.approx([at_start, prior + 0.5 * (at_start - prior)])
    assert values.games(start) == 2 and values.games(later) == 0
    values.credit([start, later], [0.0, 0.0])
    at_start = (4.0 * prior + 1.5) / 7.0
    inherited = (4.0 * (prior + 0.5 * (at_start - prior))) / 5.0
    assert own(values, start, later) == pytest.approx([at_start, inherited])
    assert values.deviation(0.5, 3) == pytest.approx(math.sqrt(0.25 / 8.0))
    found = []
    for doubt in (0.0, 1.5, -1.5):
        values = _values(player, 0.5, 4.0, doubt=doubt, inherited=0.0)
        for _ in range(20):
            values.credit([later], [0.5])
        values.credit([other], [0.0])
        found.append(own(values, start, later, other))
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


def test_games_have_the_law_of_their_policies():
    sigma = openspiel_policy.UniformRandomPolicy(_GAME)
    start, count = _GAME.new_initial_state().child(8), 400
    middle, seen = start.child(4).child(1).child(0), []

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
