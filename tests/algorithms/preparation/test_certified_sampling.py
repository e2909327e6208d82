"""Certificates by roll-outs against known values, with policies and with menus to memorize."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import scipy.stats
from hypothesis import given

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.preparation.certified_sampling import _Certifier, certified_precomputation
from precomp_games.algorithms.preparation.partial_tree import PartialTree, PreparationProblem
from precomp_games.policies.rows import as_batch_policy
from precomp_games.tree.facts import TERMINAL
from tests.oracles.games import SUPPORTS, random_policy, random_tree
from tests.oracles.preparation import entries_of, one_sided, preparations, prepared, worth
from tests.properties import examples


@functools.cache
def _setting(kind, seed):
    if kind == "policy":
        return prepared(random_tree(seed, depth=5), seed, seed % 2, support=SUPPORTS[seed % 3])
    return prepared(random_tree(seed, depth=7), seed, seed % 2, menu=3, support="partial")


@functools.cache
def _truth(setting):
    """Return (the whole tree with exact values, the value of the best set)."""
    whole = setting.tree(0.05, truncate="none")
    return whole, best_precomputation(whole, setting.player).value


def _certified(setting, **options):
    pre = setting.pre[setting.player]
    return certified_precomputation(setting.game, pre, setting.sigma, 0.05, setting.player, **options)


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
    for seed in range(10):
        whole, value = _truth(_setting(kind, seed))
        for repetition in range(40):
            found = _certified(_setting(kind, seed), epsilon=epsilon, delta=delta, seed=repetition)
            seen = [interval for _, *interval in found.trace]
            assert found.reached and found.gap <= epsilon
            assert seen == sorted(seen, key=lambda interval: interval[1] - interval[0], reverse=True)
            wrong = not found.lower - 1e-9 <= worth(whole, found) <= value + 1e-9
            wrong |= any(not lower - 1e-9 <= value <= upper + 1e-9 for lower, upper in seen)
            misses += wrong
            gaps.append(found.gap)
    assert scipy.stats.binomtest(misses, len(gaps), delta, alternative="greater").pvalue > 1e-3
    assert np.mean(gaps) < epsilon


def test_one_round_of_one_place_is_as_tight_as_it_can_be():
    """With one stop and nothing to memorize, the width is the one of Hoeffding's bound within a factor."""
    setting, options = _setting("policy", 4), {"epsilon": 0.3, "delta": 0.05, "seed": 1}
    found = certified_precomputation(setting.game, setting.pre[0], setting.sigma, 1e3, 0, **options)
    best_case = 2.0 * 9.0 * math.log(2.0 * 2 * 2 / 0.05) / 0.3**2
    assert found.size == 0 and found.reached
    assert found.work["rollouts"] < 4.0 * best_case


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_fewer_roll_outs_than_theorem_3(seed):
    """At most a twentieth; the benchmark has the table for epsilon = 0.05."""
    setting = prepared(random_tree(seed, depth=7), seed, seed % 2, support=SUPPORTS[seed % 3])
    tree = setting.tree(0.05, stop_value="evaluate")
    whole, value = _truth(setting)
    epsilon = 0.3
    count = int((((tree.infoset >= 0) | (tree.num_children == 0)) & (tree.player != TERMINAL)).sum())
    theorem_3 = count * math.ceil(16.0 * (3.0 / epsilon) ** 2 * math.log(count / 0.05))
    found = _certified(setting, epsilon=epsilon, delta=0.05, seed=seed)
    assert found.reached and found.work["rollouts"] <= theorem_3 / 20
    assert found.lower <= value <= found.upper
    assert found.lower <= worth(whole, found) <= value + 1e-9


def test_shared_positions_and_the_policy_of_what_was_found():
    game = random_tree(0, depth=6, width=3)
    pre, sigma = random_policy(1, by="position"), random_policy(2, by="position")
    tree = one_sided(game, 0, pre, sigma, 0.02, position_key=str)
    value = best_precomputation(tree, 0).value
    options = {"epsilon": 0.2, "delta": 0.05, "position_key": str, "seed": 2}
    found, again = (certified_precomputation(game, pre, sigma, 0.02, 0, **options) for _ in range(2))
    assert found.reached and found.lower <= value <= found.upper
    assert found.size > 0 and len(entries_of(tree, found)) == found.size
    assert (again.lower, again.upper, again.histories) == (found.lower, found.upper, found.histories)
    policy = found.policy()
    state = tree.state(tree.find(found.histories[0]))
    assert {a: p for a, p in policy.action_probabilities(state).items() if p} == pytest.approx(found.rows[0])


def test_anytime():
    """A smaller limit gives a wider interval, and a valid one."""
    setting = _setting("policy", 2)
    whole, value = _truth(setting)
    gaps = []
    for limit in (0, 200, 1000, 5000, 25_000):
        options = {"epsilon": 0.05, "delta": 0.05, "max_rollouts": limit, "seed": np.int64(3)}
        found = _certified(setting, **options)
        assert not found.reached
        assert found.lower <= value <= found.upper
        assert found.lower <= worth(whole, found) + 1e-9
        assert found.work["rollouts"] <= max(limit, 50)
        gaps.append(found.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == 3.0 and gaps[-1] < 0.4


def test_it_ends_when_that_is_enough():
    rounds = iter([False, True])
    setting = _setting("menu", 1)
    found = _certified(setting, epsilon=0.01, enough=lambda: next(rounds))
    assert next(rounds, None) is None and found.work["rounds"] == 2 and not found.reached
    assert found.lower <= _truth(setting)[1] <= found.upper


@pytest.mark.parametrize("seed", [0, 2, 12, 38])
def test_a_set_whose_lines_all_end_in_the_game(seed):
    """The best set has nothing to sample; what it is compared with still has."""
    game = random_tree(seed, depth=3)
    pre, sigma = random_policy(seed, SUPPORTS[seed % 3]), random_policy(seed + 1000)
    value = best_precomputation(one_sided(game, 0, pre, sigma, 0.02), 0).value
    found = certified_precomputation(game, pre, sigma, 0.02, 0, epsilon=0.15, max_rollouts=200_000, seed=seed)
    assert found.reached and found.lower - 1e-9 <= value <= found.upper + 1e-9
