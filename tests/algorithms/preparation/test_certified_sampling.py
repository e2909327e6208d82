"""Certificates against known values, and best-first preparation against Algorithm 1 on the whole tree."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import scipy.stats

from precomp_games import HistoryTree, make_policy, sample_size
from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.preparation.best_first import best_first_precomputation
from precomp_games.algorithms.preparation.certified_sampling import _Certifier, certified_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.partial_tree import PartialTree, PreparationProblem
from precomp_games.history_tree import TERMINAL
from precomp_games.policies import as_batch_policy
from tests.random_games import random_policy, random_tree


def _penalties(player, penalty):
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


@functools.cache
def _case(seed, penalty=0.05, depth=5):
    """(game, sigma_pre, sigma, player, the whole tree with exact values, value of the best set)."""
    game = random_tree(seed, depth=depth, actions=3)
    player = seed % 2
    pre = random_policy(seed, ("full", "partial", "pure")[seed % 3])
    sigma = random_policy(seed + 1000, ("full", "partial")[seed % 2])
    whole = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, 1e-9), truncate="none"
    )
    best = best_precomputation(whole.with_penalties(_penalties(player, penalty)), player)
    return game, pre, sigma, player, whole, best.value


def _worth(found, whole):
    """What a result's set is really worth, by the tree of all histories."""
    gain, unprepared = Decisions.against(whole, found.player, None, "test").gains()
    members = [int(whole.infoset[whole.find(actions)]) for actions in found.histories]
    assert -1 not in members
    return unprepared + float(gain[members].sum()) - found.penalty * len(members)


def _closed(found) -> bool:
    """Whether a set holds, with a history, all of its player's earlier ones."""
    tree_game = found.game
    chosen = set(found.histories)
    for actions in chosen:
        state = tree_game.new_initial_state()
        for k, action in enumerate(actions):
            if state.current_player() == found.player and actions[:k] not in chosen:
                return False
            state.apply_action(action)
    return True


# -- the inequality --------------------------------------------------------------------------------------


def _sets(certifier, node):
    """(doubt, known, places, whether it is only bounded from above) of every choice from a node on."""
    decision, penalty = certifier._decisions[node.index], certifier.problem.penalty
    found = []
    if decision.stop is not None:
        found.append((decision.stop.doubt, 0.0, [decision.stop.place], False))
    for option, entry in zip(decision.memorize, node.entries or [None], strict=True):
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


def rounds_by_the_formula(problem, seed, count, monkeypatch):
    """How many sets there are in each round, after its bounds were held to the formula of the module."""
    certifier = _Certifier(problem, 0.6, 0.1, seed)
    etas: list[float] = []
    found: list[int] = []
    plan = certifier._plan

    def noted(confidence):
        etas.append(plan(confidence))
        return etas[-1]

    monkeypatch.setattr(certifier, "_plan", noted)
    for number in range(1, count + 1):
        interval = certifier.lower, certifier.upper
        assert certifier.round(math.inf) and certifier.rounds == number
        eta, sets = etas[-1], _sets(certifier, certifier.tree.root)
        assert sum(math.exp(-doubt) for doubt, *_ in sets) <= 1.0 + 1e-9

        def bound(entry, sign, eta=eta):
            doubt, known, places, _ = entry
            error = sum(eta * problem.range**2 * p.reach**2 / (8.0 * p.planned) for p in places)
            return known + sum(p.reach * p.mean for p in places) + sign * (error + doubt / eta)

        slack = math.log(2.0 * number * (number + 1) / 0.1) / eta
        upper = max(bound(entry, 1.0) for entry in sets) + slack
        lower = max(bound(entry, -1.0) for entry in sets if not entry[3]) - slack
        assert certifier.upper == pytest.approx(min(interval[1], upper), abs=1e-9)
        assert certifier.lower == pytest.approx(max(interval[0], lower), abs=1e-9)
        found.append(len(sets))
    return found


def test_every_set_is_bounded_by_hoeffding_and_priors_add_up_to_one(monkeypatch):
    """Each round's two bounds beside the formula of the module, over all sets of the open tree."""
    counts = []
    for seed in range(20):
        game = random_tree(seed, depth=4, actions=2)
        pre = random_policy(seed, ("full", "partial", "pure")[seed % 3])
        problem = PreparationProblem.checked(
            "test", game, pre, random_policy(seed + 1000), 0.05, seed % 2, None, 1e-12
        )
        counts += rounds_by_the_formula(problem, seed, 3, monkeypatch)
    assert len(counts) == 60 and sum(count > 4 for count in counts) > 20


def test_equal_keys_at_different_levels_are_different_positions():
    """As for `HistoryTree`, keys speak of states of one level."""

    def policy(state):
        return {state.legal_actions()[0 if state.move_number() < 2 else -1]: 1.0}

    game = pyspiel.load_game("tic_tac_toe")
    problem = PreparationProblem.checked("test", game, policy, policy, 0.1, 0, lambda state: "same", 0.0)
    tree, state = PartialTree(problem, lump=False), game.new_initial_state()
    later = state.child(4).child(5)
    rows = tree._ask(as_batch_policy(policy, "policy"), [state, later, state.clone()], "policy")
    assert rows == [[{0: 1.0}], [{8: 1.0}], [{0: 1.0}]]


# -- roll-outs -------------------------------------------------------------------------------------------


@pytest.mark.test_all("a frequency of many runs")
def test_500_intervals_at_all_times():
    """At no moment may the interval miss, but for delta of the runs (one-sided binomial test at 1e-3)."""
    delta, misses, runs = 0.2, 0, 0
    narrow = []
    for seed in range(10):
        game, pre, sigma, player, whole, value = _case(seed)
        for repetition in range(50):
            seen = []
            found = certified_precomputation(
                game, pre, sigma, 0.05, player, epsilon=0.6, delta=delta, seed=repetition,
                progress=lambda games, lower, upper, seen=seen: seen.append((lower, upper)),
            )  # fmt: skip
            assert found.reached and found.gap <= 0.6
            assert seen == sorted(seen, key=lambda interval: interval[1] - interval[0], reverse=True)
            worth = _worth(found, whole)
            wrong = not found.lower - 1e-9 <= worth <= value + 1e-9
            for lower, upper in seen:
                wrong |= not lower - 1e-9 <= value <= upper + 1e-9
            misses += wrong
            runs += 1
            narrow.append(found.gap)
    assert runs == 500
    assert scipy.stats.binomtest(misses, runs, delta, alternative="greater").pvalue > 1e-3
    assert np.mean(narrow) < 0.6


def test_one_round_of_one_place_is_as_tight_as_it_can_be():
    """With one stop and nothing to memorize, the width is the one of Hoeffding's bound within a factor."""
    game, pre, sigma, player, _, _ = _case(4)
    found = certified_precomputation(game, pre, sigma, 1e3, player, epsilon=0.3, delta=0.05, seed=1)
    best_case = 2.0 * 9.0 * math.log(2.0 * 2 * 2 / 0.05) / 0.3**2
    assert found.size == 0 and found.reached
    assert found.work["rollouts"] < 4.0 * best_case


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_fewer_roll_outs_than_theorem_3(seed):
    """At most a twentieth; the benchmark has the table for epsilon = 0.05."""
    game, pre, sigma, player, whole, value = _case(seed, depth=7)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=_penalties(player, 0.05),
        stop_value="evaluate",
        truncate="reach",
    )
    estimated = ((tree.infoset >= 0) | (tree.num_children == 0)) & (tree.player != TERMINAL)
    epsilon = 0.3
    theorem_3 = int(estimated.sum()) * sample_size(epsilon, 0.05, int(estimated.sum()), 3.0, "theorem3")
    found = certified_precomputation(game, pre, sigma, 0.05, player, epsilon=epsilon, delta=0.05, seed=seed)
    assert found.reached and found.work["rollouts"] <= theorem_3 / 20
    assert found.lower <= value <= found.upper
    assert found.lower <= _worth(found, whole) <= value + 1e-9
    assert _closed(found)


def test_tic_tac_toe_with_shared_positions():
    game = pyspiel.load_game("tic_tac_toe")

    def key(state):
        return state.observation_string(0)

    pre = make_policy(game, "alpha_beta(depth=4)")
    sigma = make_policy(game, "softmax(policy=alpha_beta(depth=1),temperature=0.5)")
    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=(0.02, math.inf), position_key=key
    )
    value = best_precomputation(tree, 0).value
    found = certified_precomputation(
        game, pre, sigma, 0.02, 0, epsilon=0.2, delta=0.05, position_key=key, seed=2
    )
    assert found.reached and found.lower <= value <= found.upper
    assert found.size > 0 and _closed(found)
    again = certified_precomputation(
        game, pre, sigma, 0.02, 0, epsilon=0.2, delta=0.05, position_key=key, seed=2
    )
    assert (again.lower, again.upper, again.histories) == (found.lower, found.upper, found.histories)
    policy = found.policy()
    state = tree.state(tree.find(found.histories[0]))
    assert {a: p for a, p in policy.action_probabilities(state).items() if p} == pytest.approx(found.rows[0])


def test_anytime():
    """A smaller limit gives a wider interval, and a valid one."""
    game, pre, sigma, player, whole, value = _case(2)
    gaps = []
    for limit in (0, 200, 1000, 5000, 25_000):
        found = certified_precomputation(
            game, pre, sigma, 0.05, player, epsilon=0.05, delta=0.05, max_rollouts=limit, seed=np.int64(3)
        )
        assert not found.reached
        assert found.lower <= value <= found.upper
        assert found.lower <= _worth(found, whole) + 1e-9
        assert found.work["rollouts"] <= max(limit, 50)
        gaps.append(found.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == 3.0 and gaps[-1] < 0.4


def test_it_ends_when_it_is_told_to():
    game, pre, sigma, player, _, value = _case(3, depth=7)
    common = {"game": game, "sigma_pre": pre, "sigma": sigma, "penalty": 0.05, "player": player}
    rounds = []

    def twice(work, lower, upper):
        rounds.append(work)
        return len(rounds) < 2

    found = certified_precomputation(**common, epsilon=0.01, progress=twice)
    assert len(rounds) == found.work["rounds"] == 2 and not found.reached
    assert found.lower <= value <= found.upper
    rounds.clear()
    found = best_first_precomputation(**common, evaluator=_evaluation, gap=0.0, batch=1, progress=twice)
    assert len(rounds) == 2 and not found.reached


@pytest.mark.parametrize("seed", [0, 2, 12, 38])
def test_a_set_whose_lines_all_end_in_the_game(seed):
    """The best set has nothing to sample; what it is compared with still has."""
    game = random_tree(seed, depth=3)
    pre, sigma = random_policy(seed, ("full", "partial", "pure")[seed % 3]), random_policy(seed + 1000)
    value = best_precomputation(
        HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.02, math.inf)), 0
    ).value
    found = certified_precomputation(game, pre, sigma, 0.02, 0, epsilon=0.15, max_rollouts=200_000, seed=seed)
    assert found.reached and found.lower - 1e-9 <= value <= found.upper + 1e-9


# -- evaluations -----------------------------------------------------------------------------------------


def _evaluation(state) -> float:
    """Any utility, a function of the history; for the test no martingale."""
    if state.is_terminal():
        return float(state.returns()[0])
    rng = np.random.default_rng([len(state.history()), *state.history()])
    return float(rng.uniform(-1.0, 2.0))


@pytest.mark.parametrize("batch", [1, 8])
def test_best_first_against_algorithm_1(batch):
    fewer = 0
    for seed in range(25):
        game, pre, sigma, player, _, _ = _case(seed)
        for penalty in (0.01, 0.1):
            penalties = _penalties(player, penalty)
            trees = [
                HistoryTree.from_game(
                    game,
                    sigma_pre=pre,
                    sigma=sigma,
                    penalties=penalties,
                    leaf_value=_evaluation,
                    stop_value="evaluate",
                    truncate=way,
                )
                for way in ("values", "reach")
            ]
            best = best_precomputation(trees[1], player)
            for gap in (0.0, 0.1, 0.5):
                found = best_first_precomputation(
                    game, pre, sigma, penalty, player, _evaluation, gap=gap, batch=batch
                )
                assert found.reached and found.gap <= gap + 1e-9
                assert found.lower - 1e-9 <= best.value <= found.upper + 1e-9
                assert _closed(found)
                # What the set is worth by the same evaluations, on the tree that has everything.
                gain, unprepared = Decisions.against(trees[1], player, None, "test").gains()
                members = [int(trees[1].infoset[trees[1].find(actions)]) for actions in found.histories]
                worth = unprepared + gain[members].sum() - penalty * len(members)
                assert found.lower - 1e-9 <= worth <= best.value + 1e-9
                if gap == 0.0:
                    assert worth == pytest.approx(best.value, abs=1e-9)
                    assert unprepared + found.gain.sum() - penalty * found.size <= worth + 1e-9
                assert found.work["evaluations"] <= trees[1].work["leaf_evaluations"]
                fewer += found.work["evaluations"] < trees[0].work["leaf_evaluations"]
    assert fewer > 50


def test_best_first_stops_where_it_is_told():
    game, pre, sigma, player, _, _ = _case(3, depth=7)
    seen = []
    found = best_first_precomputation(
        game, pre, sigma, 0.01, player, _evaluation, gap=0.0, batch=2, max_evaluations=6,
        progress=lambda evaluations, lower, upper: seen.append((evaluations, lower, upper)),
    )  # fmt: skip
    assert not found.reached and found.work["evaluations"] == 6
    assert found.lower <= found.upper
    assert seen[-1] == (found.work["evaluations"], found.lower, found.upper)
    assert [lower for _, lower, _ in seen] == sorted(lower for _, lower, _ in seen)


# -- bad input -------------------------------------------------------------------------------------------


def _rollouts(**options):
    game, pre, sigma, player, _, _ = _case(0)
    arguments = {"game": game, "sigma_pre": pre, "sigma": sigma, "penalty": 0.05, "player": player}
    return certified_precomputation(**(arguments | options))


@pytest.mark.parametrize("epsilon", [0.0, -0.1, math.inf, math.nan, "0.1", None, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match=r"certified_precomputation\(\): expected .*epsilon"):
        _rollouts(epsilon=epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, math.nan, "0.1", None])
def test_bad_delta(delta):
    with pytest.raises(ValueError, match=r"certified_precomputation\(\): expected delta"):
        _rollouts(delta=delta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": 0.0}, "expected penalty to be a positive, finite number"),
        ({"penalty": math.inf}, "expected penalty to be a positive, finite number"),
        ({"player": 2}, "expected player 0 or 1"),
        ({"seed": -1}, "expected seed to be an integer of at least 0"),
        ({"max_rollouts": -1}, "expected max_rollouts to be an integer of at least 0"),
        ({"position_key": 3}, "expected position_key to be a function"),
        ({"min_probability": 1.0}, "expected min_probability to be a number of at least 0 and below 1"),
        ({"sigma_pre": None}, "expected sigma_pre to be"),
        ({"sigma_pre": lambda state: {}}, r"expected the probabilities of sigma_pre\[\d\] to sum to 1"),
        ({"sigma": None}, r"expected sigma\[1\] to be"),
        ({"game": pyspiel.load_game("kuhn_poker")}, "expected a game of perfect information"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=rf"certified_precomputation\(\): {message}"):
        _rollouts(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": -0.1}, "expected gap to be a finite number of at least 0"),
        ({"gap": math.nan}, "expected gap to be a finite number"),
        ({"batch": 0}, "expected batch to be an integer of at least 1"),
        ({"max_evaluations": -1}, "expected max_evaluations to be an integer of at least 0"),
        ({"evaluator": "exact"}, "expected evaluator to be a function"),
        ({"evaluator": lambda state: "a"}, "expected evaluator to give numbers"),
        ({"evaluator": lambda state: 7.0}, r"expected evaluator to give the player utilities in \["),
    ],
)
def test_bad_best_first(options, message):
    game, pre, sigma, player, _, _ = _case(0)
    arguments = {
        "game": game, "sigma_pre": pre, "sigma": sigma, "penalty": 0.05, "player": player,
        "evaluator": _evaluation,
    }  # fmt: skip
    with pytest.raises(ValueError, match=rf"best_first_precomputation\(\): {message}"):
        best_first_precomputation(**(arguments | options))
