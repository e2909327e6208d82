"""Commitment against several types of the follower: brute force, identities, what mistakes cost."""

import itertools

import numpy as np
import pyspiel
import pytest

from precomp_games.algorithms import solve
from precomp_games.algorithms.lookahead import (
    FollowerType,
    commit_against_lookahead,
    commit_against_types,
    cumulative_noise,
    equilibrium_values,
    evaluate_against_lookahead,
    independent_noise,
)
from precomp_games.algorithms.lookahead.sequence_form import SequenceForm
from precomp_games.games import kj_poker  # noqa: F401  (registers the game)
from tests.algorithms.lookahead.test_commitment import KJ, KUHN, LEDUC, TIES, by_search, tiny
from tests.oracles.lookahead import Oracle, best_of_types
from tests.oracles.lookahead_games import held_at_a_tie, random_evaluation, utility_of

OBJECTIVES = ("mean", "worst")


def commitments(game, player, types, weights, **settings):
    """Yield the best commitment on average, and the best against the worst type."""
    yield commit_against_types(game, player, types, weights, **settings)
    yield commit_against_types(game, player, types, objective="worst", **settings)


def check(best, delta=1e-4):
    """Proven, and worth what is claimed when played."""
    assert best.optimal and best.gap <= 1e-6
    utilities = [outcome.utility for outcome in best.outcomes]
    combined = min(utilities) if best.weights is None else best.weights @ utilities
    assert best.value == pytest.approx(combined, abs=1e-12)
    assert best.supremum - delta - 1e-9 <= best.value <= best.supremum + 1e-9
    if all(kind.tie_breaking == "favorable" for kind in best.types):
        assert best.value == pytest.approx(best.supremum, abs=1e-7)


# -- brute force -----------------------------------------------------------------------------------


def small(seed, most):
    """A random game in which the follower has few information sets, since its types have each their own."""
    for number in itertools.count(seed, 100):
        game, player = tiny(number), int(np.random.default_rng(number).integers(2))
        if SequenceForm.of(game).players[1 - player].num_infosets - 1 <= most:
            return game, player
    raise AssertionError


# Costs seconds: enumerates what is optimal to each type at once.
def test_brute_force_on_random_games(cases):
    for seed in range(cases(100)):
        rng = np.random.default_rng(seed)
        count = 2 + seed % 2
        game, player = small(seed, 5 - count)
        hs = [random_evaluation(10 * seed + k, bool(rng.random() < 0.7)) for k in range(count)]
        if seed % 10 == 9:
            hs[0] = utility_of(1 - player)
        moves = rng.integers(1, 4, count).tolist()
        oracles = [Oracle(game, player, k, h) for k, h in zip(moves, hs, strict=True)]
        weights = rng.dirichlet(np.ones(count))
        for rules in (*([rule] * count for rule in TIES), rng.choice(TIES, count).tolist()):
            types = [FollowerType(*each) for each in zip(moves, hs, rules, strict=True)]
            expected = best_of_types(list(zip(oracles, rules, strict=True)), weights)
            for best, value in zip(commitments(game, player, types, weights), expected, strict=True):
                check(best)
                assert best.supremum == pytest.approx(value, abs=1e-6), (seed, rules)
                assert best.bound == pytest.approx(value, abs=1e-6), (seed, rules)


def test_a_type_that_is_held_at_a_tie():
    # The favorable type does what is worth 10 only where the leader mixes evenly, and there the adversarial
    # one, who sees the same, has a tie of actions that leave 2 and 0. No change of x breaks that one alone.
    game, favorable, adversarial = held_at_a_tie()
    types = [FollowerType(1, favorable, "favorable"), FollowerType(1, adversarial)]
    mean, worst = commitments(game, 0, types, None)
    for best, value in ((mean, 5.0), (worst, 2.0)):
        check(best)
        assert best.supremum == pytest.approx(value, abs=1e-6)
    oracles = [Oracle(game, 0, 1, h) for h in (favorable, adversarial)]
    rules = ("favorable", "adversarial")
    expected = best_of_types(list(zip(oracles, rules, strict=True)), [0.5, 0.5])
    assert expected == pytest.approx((5.0, 2.0), abs=1e-9)


# -- identities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_type_is_the_follower(objective):
    for player, moves, ties in itertools.product((0, 1), (1, 2), TIES):
        h = independent_noise(equilibrium_values(KUHN, 1 - player), 0.5, moves)
        known = commit_against_lookahead(KUHN, player, moves, h, ties)
        best = commit_against_types(KUHN, player, [FollowerType(moves, h, ties)], objective=objective)
        assert best.supremum == known.supremum and best.bound == known.bound
        assert best.value == known.value and best.strategy == known.strategy


@pytest.mark.slow("figures of a page")
@pytest.mark.parametrize("player", [0, 1])
def test_kj_where_a_mistake_costs(player):
    # The figures of docs/limited_lookahead.md. Of what is best for one type, what is found first is met.
    h = equilibrium_values(KJ, 1 - player)
    types = [FollowerType(1, h), FollowerType(2, h)]
    _, utility = earned(KJ, player, types, commitments(KJ, player, types, None))
    expected = [
        [[1.3333, 0.0], [0.6800, 0.6800], [1.2066, 0.5600], [0.6800, 0.6800]],
        [[0.1666, -0.4639], [-4.3333, 1.0833], [-0.1111, 0.9286], [0.1666, 0.1666]],
    ]
    assert utility == pytest.approx(np.array(expected[player]), abs=2e-4)


def test_one_type_twice_is_the_type():
    h = independent_noise(equilibrium_values(KJ, 1), 0.5, 0)
    known = commit_against_lookahead(KJ, 0, 1, h)
    for best in commitments(KJ, 0, [FollowerType(1, h)] * 2, [1.0, 2.0]):
        check(best)
        assert best.supremum == pytest.approx(known.supremum, abs=1e-6)


def test_between_the_types():
    # Nobody earns more than with each type known, and nobody less than what is worst in any case.
    exact = equilibrium_values(KUHN, 1)
    types = [FollowerType(k, independent_noise(exact, 0.5, k)) for k in (1, 2)]
    types.append(FollowerType(1, exact, "static", lambda key, actions: actions[::-1]))
    weights = np.array([0.5, 0.3, 0.2])
    known = [commit_against_types(KUHN, 0, [kind]) for kind in types]
    mean, worst = commitments(KUHN, 0, types, weights)
    check(mean)
    check(worst)
    assert mean.bound <= weights @ [best.bound for best in known] + 1e-6
    assert worst.bound <= min(best.bound for best in known) + 1e-6
    assert worst.supremum <= mean.supremum + 1e-6
    for best in (mean, worst):
        utilities = [
            evaluate_against_lookahead(
                KUHN, best.policy(), 0, kind.lookahead, kind.evaluation, kind.tie_breaking, kind.order
            ).utility
            for kind in types
        ]
        assert [outcome.utility for outcome in best.outcomes] == utilities
        combined = min(utilities) if best is worst else weights @ utilities
        assert best.value == pytest.approx(combined, abs=1e-12)
    assert mean.weights.tolist() == pytest.approx(weights.tolist()) and worst.weights is None
    assert mean.policy(1).rows != mean.policy(0).rows
    with pytest.raises(ValueError, match="expected which to be less than 3, got 3"):
        mean.policy(3)


def test_weights_are_shares():
    h = equilibrium_values(KUHN, 1)
    types = [FollowerType(1, h), FollowerType(2, h)]
    one, other = (commit_against_types(KUHN, 0, types, weights) for weights in ([1, 3], [0.25, 0.75]))
    assert one.supremum == other.supremum and one.strategy == other.strategy


def test_time_limit_gives_an_interval_for_types():
    policy = independent_noise(equilibrium_values(LEDUC, 1, _uniform), 0.5, 0)
    types = [FollowerType(1, policy), FollowerType(2, policy)]
    best = commit_against_types(LEDUC, 0, types, objective="worst", time_limit=0.5)
    assert not best.optimal
    assert best.supremum <= best.bound
    assert best.value == min(outcome.utility for outcome in best.outcomes)


def _uniform(state):
    return dict.fromkeys(state.legal_actions(), 1.0 / len(state.legal_actions()))


def earned(game, player, types, others):
    """Return a commitment to each type, and float64[commitments, types]: what they and the others earn."""
    made = [commit_against_types(game, player, [kind]) for kind in types]
    rows = [
        [
            evaluate_against_lookahead(game, best.policy(), player, kind.lookahead, kind.evaluation).utility
            for kind in types
        ]
        for best in (*made, *others)
    ]
    return made, np.array(rows)


# -- what mistakes cost ----------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
def test_losses(player):
    h = equilibrium_values(KUHN, 1 - player)
    types = [FollowerType(1, h), FollowerType(2, h), FollowerType(1, independent_noise(h, 0.5, 0))]
    made, utility = earned(KUHN, player, types, commitments(KUHN, player, types, None))
    assert np.diagonal(utility).tolist() == [best.value for best in made]
    assert (np.diagonal(utility) - utility >= -1e-4).all()
    # What is made for all types is no worse than what is made for one, in what it was made for.
    assert utility[3].mean() >= utility.mean(axis=1).max() - 1e-4
    assert utility[4].min() >= utility.min(axis=1).max() - 1e-4


# -- all leaves in sight ---------------------------------------------------------------------------


@pytest.mark.parametrize("game", [KUHN, KJ, LEDUC], ids=["kuhn", "kj", "leduc"])
@pytest.mark.parametrize("player", [0, 1])
def test_who_sees_all_is_a_best_response(game, player):
    value = (1 if player == 0 else -1) * solve(game).value
    for ties in TIES:
        best = commit_against_lookahead(game, player, 40, utility_of(1 - player), ties)
        check(best)
        assert best.method == "polynomial" and best.work["seconds"] < 30.0
        assert best.bound == pytest.approx(value, abs=1e-8)
        assert best.value == pytest.approx(value, abs=1e-8)


def test_where_all_is_seen_nothing_else_is_lost(cases):
    for seed in range(cases(24)):
        game, player = tiny(seed), seed // 4 % 2
        for h, ties in itertools.product(
            (utility_of(1 - player), equilibrium_values(game, 1 - player)), TIES
        ):
            easy = commit_against_lookahead(game, player, 4, h, ties)
            hard = by_search(game, player, 4, h, ties)
            assert easy.method == "polynomial" and hard.method == "correlation"
            check(easy)
            check(hard)
            assert easy.supremum == pytest.approx(hard.supremum, abs=1e-6)


def test_what_is_not_all():
    """A move less, a leaf that is worth something else, another sum: then the search is needed."""
    game = pyspiel.load_game("kuhn_poker")
    h = utility_of(0)
    # Player 0 sees the end of "pass, bet, call" only with three moves.
    assert commit_against_lookahead(game, 1, 3, h).method == "polynomial"
    assert commit_against_lookahead(game, 1, 2, h).method == "correlation"
    noisy = cumulative_noise(equilibrium_values(game, 0), 0.5, 0)  # leaves have none
    assert commit_against_lookahead(game, 1, 3, noisy).method == "polynomial"
    off = independent_noise(equilibrium_values(game, 0), 1e-6, 0)
    assert commit_against_lookahead(game, 1, 3, off).method == "correlation"
    general, _, _ = held_at_a_tie()
    assert commit_against_lookahead(general, 0, 9, utility_of(1)).method == "correlation"
