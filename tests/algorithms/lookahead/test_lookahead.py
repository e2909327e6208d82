"""Limited lookahead: parts, and commitments by known values, reductions and brute force."""

import itertools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python.algorithms import expected_game_score, exploitability
from open_spiel.python.policy import UniformRandomPolicy

from precomp_games.algorithms import best_precomputation, solve
from precomp_games.algorithms.lookahead import (
    FollowerType,
    LookaheadPolicy,
    commit_against_lookahead,
    commit_against_types,
    commitment,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    evaluate_against_lookahead,
    independent_noise,
)
from precomp_games.algorithms.lookahead.evaluation_functions import StrategyPolicy
from precomp_games.algorithms.lookahead.sequence_form import SequenceForm
from precomp_games.algorithms.programs import LinearProgramError, Program
from precomp_games.tree.facts import TERMINAL
from tests.oracles.books import AsPolicy
from tests.oracles.games import SEEDS, expand, games, random_policy, random_tree
from tests.oracles.lookahead import (
    Oracle,
    best_of_types,
    clauses_first,
    figure_1,
    held_at_a_tie,
    maxsat,
    narrow,
    random_evaluation,
    utility_of,
    variables_first,
)
from tests.oracles.treeplex import OwnTree
from tests.oracles.zero_sum import best_response_value, recursion
from tests.properties import examples

KUHN = pyspiel.load_game("kuhn_poker")
KJ = pyspiel.load_game("python_kj_poker")
LEDUC = pyspiel.load_game("leduc_poker(suit_isomorphism=true)")
UNIFORM = UniformRandomPolicy(KUHN)
TIES = ("adversarial", "static", "favorable")


@pytest.mark.parametrize(
    ("name", "histories", "sequences", "infosets"),
    [
        # In the paper, with both cards dealt at once, which is a level of histories less: 55 / 13; 199 / 57;
        # "1935" (there are 1936) / 337.
        ("kuhn_poker", 58, 13, 6),
        ("python_kj_poker", 199, 57, 28),
        ("leduc_poker(suit_isomorphism=true)", 1939, 337, 144),
        ("leduc_poker", 9457, 1093, 468),
    ],
)
def test_sizes(name, histories, sequences, infosets):
    form = SequenceForm.of(pyspiel.load_game(name))
    assert form.num_histories == histories
    for player in form.players:
        assert (player.num_sequences, player.num_infosets - 1) == (sequences, infosets)


def test_realization_plans_and_extremes():
    player, rng = SequenceForm.of(KJ).players[1], np.random.default_rng(0)
    drawn = [rng.dirichlet(np.ones(count)) for count in player.num_actions]
    for key, row in player.behavior(player.realized(np.concatenate(drawn))).items():
        k = player.index[key]
        assert row == pytest.approx(dict(zip(player.actions(k), drawn[k], strict=True)))
    player = SequenceForm.of(KUHN).players[1]
    weights = rng.normal(size=(player.num_sequences, 3))
    choices = itertools.product(*(np.eye(count) for count in player.num_actions))
    pure = np.array([player.realized(np.concatenate(chosen)) for chosen in choices])
    np.testing.assert_allclose(player.extremes(weights), (pure @ weights).max(axis=0))


# -- evaluation functions -----------------------------------------------------------------------------------


def test_equilibrium_values_are_expected_values():
    h = equilibrium_values(KUHN, 1, UNIFORM)
    state = KUHN.new_initial_state()
    for action in (2, 0, 1):
        assert h(state) == pytest.approx(expected_game_score.policy_value(state, [UNIFORM, UNIFORM])[1])
        state.apply_action(action)


def test_noise():
    h = equilibrium_values(KUHN, 0)
    form, leaves = h.form, h.form.player == TERMINAL

    def drawn(gamma, seed):
        return independent_noise(h, gamma, seed).values - h.values

    one, two = drawn(0.5, [3, 4]), drawn(1.0, [3, 4])
    np.testing.assert_allclose(2 * one, two)
    assert (one != 0.0).all() and (drawn(1.0, [3, 5]) != two).all()
    draws = np.concatenate([drawn(2.0, seed) for seed in range(50)])
    assert draws.std() == pytest.approx(2.0, rel=0.05) and abs(draws.mean()) < 0.15
    noisy = cumulative_noise(h, 0.7, 1)
    assert (noisy.values[leaves] == h.values[leaves]).all()
    # (17): what a history has beyond the expectation of its successors is its own draw.
    own = []
    for history in np.flatnonzero(~leaves).tolist():
        after = list(form.children[history])
        own.append(noisy.values[history] - noisy.values[after] @ h.odds[after])
    np.testing.assert_allclose(own, 0.7 * np.random.default_rng(1).standard_normal(len(leaves))[~leaves])


# -- outcomes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
@examples(20)
@given(games("imperfect"), SEEDS)
def test_lookahead_to_the_end_is_a_best_response(player, game, seed):
    # With all leaves in sight and utilities as evaluation, the follower is rational.
    policy = AsPolicy(game, random_policy(seed, by="infoset"))
    out = evaluate_against_lookahead(game, policy, player, 10, utility_of(1 - player))
    best = best_response_value(game, policy, 1 - player)
    assert -out.utility == pytest.approx(best, abs=1e-9)


def test_ties_are_broken_by_the_rule():
    h = random_evaluation(0, coarse=True)
    results = {
        rule: evaluate_against_lookahead(KUHN, UNIFORM, 0, 1, lambda state: 0.0, rule) for rule in TIES
    }
    for rule, out in results.items():
        assert all(len(actions) == 2 for actions in out.optimal.values())
        played = StrategyPolicy(KUHN, {key: {action: 1.0} for key, action in out.response.items()})
        values = expected_game_score.policy_value(KUHN.new_initial_state(), [UNIFORM, played])
        assert out.utility == pytest.approx(values[0]), rule
    assert set(results["static"].response.values()) == {0}
    assert results["adversarial"].utility < results["static"].utility < results["favorable"].utility
    assert evaluate_against_lookahead(KUHN, UNIFORM, 0, 1, h).optimal != results["static"].optimal


# -- as a policy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("rule", TIES)
def test_policy_earns_what_the_outcome_says(player, rule):
    h = equilibrium_values(KUHN, 1 - player)
    policy = LookaheadPolicy(KUHN, player, UNIFORM, 2, h, rule)
    values = expected_game_score.policy_value(KUHN.new_initial_state(), [policy, policy])
    assert values[player] == pytest.approx(policy.outcome.utility)


def test_preparing_against_a_player_with_limited_lookahead():
    # The rational player computes uniform play, which the limited one answers, and may learn an equilibrium.
    policy = LookaheadPolicy(KUHN, 0, UNIFORM, 1, equilibrium_values(KUHN, 1))
    tree = expand(KUHN, equilibrium(KUHN), (UNIFORM, policy), (1e-4, math.inf))
    book = best_precomputation(tree, 0)
    assert book.unprepared == pytest.approx(policy.outcome.utility)
    assert book.size > 0 and book.value > book.unprepared
    played = expected_game_score.policy_value(KUHN.new_initial_state(), [book.policy(), policy])
    assert played[0] == pytest.approx(book.utility)


def check(best, delta=1e-4):
    """Proven, and worth what is claimed when played."""
    assert best.optimal and best.gap <= 1e-6
    utilities = [outcome.utility for outcome in best.outcomes]
    combined = min(utilities) if best.weights is None else best.weights @ utilities
    assert best.value == pytest.approx(combined, abs=1e-12)
    assert best.supremum - delta - 1e-9 <= best.value <= best.supremum + 1e-9
    if all(kind.tie_breaking == "favorable" for kind in best.types):
        assert best.value == pytest.approx(best.supremum, abs=1e-7)


def check_value(best, value):
    """It is proven that no strategy is worth more than this, and one is found that is, or nearly."""
    check(best)
    assert best.supremum == pytest.approx(value, abs=1e-6)
    assert best.bound == pytest.approx(value, abs=1e-6)


def commitments(game, player, types, weights, **settings):
    """Return the best commitment on average, and the best against the worst type."""
    return (
        commit_against_types(game, player, types, weights, **settings),
        commit_against_types(game, player, types, objective="worst", **settings),
    )


# -- commitments with analytic values --------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "lookahead", "adversarial", "favorable"),
    [(0, 1, 1 / 6, 1 / 6), (0, 2, -1 / 18, -1 / 18), (1, 1, 1 / 18, 7 / 18), (1, 2, 1 / 18, 1 / 18)],
)
def test_kuhn_without_noise(player, lookahead, adversarial, favorable):
    h = equilibrium_values(KUHN, 1 - player)
    check_value(commit_against_lookahead(KUHN, player, lookahead, h, "adversarial"), adversarial)
    check_value(commit_against_lookahead(KUHN, player, lookahead, h, "favorable"), favorable)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_kuhn_depends_on_the_equilibrium(alpha):
    # Kuhn's equilibria: player 0 bets a jack with probability alpha, a king with 3 alpha, and calls with a
    # queen with alpha + 1/3.
    rows = dict(equilibrium(KUHN).rows)
    rows |= {"0": {0: 1 - alpha, 1: alpha}, "2": {0: 1 - 3 * alpha, 1: 3 * alpha}}
    rows |= {"1pb": {0: 2 / 3 - alpha, 1: alpha + 1 / 3}}
    h = equilibrium_values(KUHN, 1, StrategyPolicy(KUHN, rows))
    assert h(KUHN.new_initial_state()) == pytest.approx(1 / 18, abs=1e-12)
    check_value(commit_against_lookahead(KUHN, 0, 1, h), 1 / 6 - alpha / 3)


@pytest.mark.parametrize(("gamma", "seed"), [(0.1, 0), (1.0, 1)])
def test_kuhn_cumulative_noise_with_two_moves_is_no_noise(gamma, seed):
    # Player 1 sees all leaves after its move, and leaves have no noise.
    noisy = cumulative_noise(equilibrium_values(KUHN, 1), gamma, seed)
    check_value(commit_against_lookahead(KUHN, 0, 2, noisy), -1 / 18)


@pytest.mark.parametrize("game", [KUHN, KJ], ids=["kuhn", "kj"])
def test_equilibrium_is_one(game):
    policy = equilibrium(game)
    assert exploitability.nash_conv(game, policy) == pytest.approx(0.0, abs=1e-12)
    if game is KUHN:
        value = equilibrium_values(game, 0, policy)(game.new_initial_state())
        assert value == pytest.approx(-1 / 18, abs=1e-12)
        assert policy.rows["0"][1] == 0.0  # alpha


def test_an_equilibrium_is_there_where_the_solver_cannot_tell_the_least_one(monkeypatch):
    solve, asked = Program.solve, []

    def fails(program, **options):
        if np.count_nonzero(program.objective) == 1:  # one sequence is to be as seldom as can be
            asked.append(program)
            if len(asked) % 3 == 0:
                raise LinearProgramError("Unknown")
        return solve(program, **options)

    monkeypatch.setattr(Program, "solve", fails)
    policy = equilibrium(KUHN)
    assert len(asked) > 6
    assert exploitability.nash_conv(KUHN, policy) == pytest.approx(0.0, abs=1e-7)


def test_figure_1():
    # With half weights, the follower compares stop: 1/2 (1 + 0) with on: 1/2 (a + b); evaluations of the
    # leader's nodes decide, not what follows.
    game, h = figure_1(0.2, 0.9)
    uniform = StrategyPolicy(game, {})
    out = evaluate_against_lookahead(game, uniform, 0, 1, h)
    ((key, values),) = out.values.items()
    assert values == pytest.approx({2: 0.5, 3: 0.55})
    assert out.optimal[key] == (3,)
    assert out.utility == pytest.approx(3.0)
    game, low = figure_1(0.2, 0.7)
    assert evaluate_against_lookahead(game, uniform, 0, 1, low).optimal[key] == (2,)
    # With two moves it sees the leaves behind them: on is 1/2 (4.5 + 2.5) if the leader mixes evenly.
    out = evaluate_against_lookahead(game, uniform, 0, 2, low)
    assert out.values[key] == pytest.approx({2: 0.5, 3: 3.5})
    # The best commitment makes it go on, with as much "l" as keeps 0.2 x + 0.7 (1 - x) above x.
    x = 0.7 / 1.5
    check_value(commit_against_lookahead(game, 0, 1, low, "favorable"), 5 * x + 4 * (1 - x))


@pytest.mark.parametrize(
    "clauses",
    [
        [(1, 2, 3), (-1, -2, -3), (1, -2, 3), (-1, 2, -3)],
        [(1, 2, 3), (-1, 2, 3), (1, -2, 3), (1, 2, -3), (-1, -2, 3), (-1, 2, -3), (1, -2, -3), (-1, -2, -3)],
        # The program's first plan is one that the follower cannot have, and is mended or ruled out.
        [(-2, 1, 4), (4, -1, -3), (1, 3, 2), (-1, -2, -4), (-2, 4, -1)],
    ],
)
def test_reductions_of_theorems_1_to_3_return_maxsat(clauses):
    most = maxsat(clauses) / len(clauses)
    best = commit_against_lookahead(clauses_first(clauses, False), 0, 1, lambda state: 0.0, "favorable")
    check_value(best, most)
    for game, lookahead in ((clauses_first(clauses, True), 2), (variables_first(clauses), 1)):
        for ties in TIES:
            best = commit_against_lookahead(game, 0, lookahead, utility_of(1), ties)
            check_value(best, most)
            assert best.work["rounds"] >= 1


# -- brute force -----------------------------------------------------------------------------------


@st.composite
def followers(draw):
    """(game, rational player, settings of a few types of the other one), with few information sets."""
    player, coarse = draw(st.integers(0, 1)), st.sampled_from((True, True, False))
    evaluations = st.builds(random_evaluation, SEEDS, coarse) | st.just(utility_of(1 - player))
    settings = st.tuples(st.integers(1, 3), evaluations, st.sampled_from(TIES))
    kinds = draw(st.lists(settings, min_size=1, max_size=3))

    def is_small(game):
        own, others = (len(OwnTree(game, i).actions) for i in (player, 1 - player))
        return 1 <= own <= 4 and 1 <= others <= 5 - len(kinds)

    return draw(games(depth=4, actions=2).filter(is_small)), player, kinds


# Costs seconds: enumerates what is optimal to each type at once.
@examples(160)
@given(followers(), st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3))
def test_brute_force_on_random_games(follower, weights):
    game, player, kinds = follower
    oracles = [Oracle(game, player, lookahead, h) for lookahead, h, _ in kinds]
    shares = np.array(weights[: len(kinds)]) / sum(weights[: len(kinds)])
    everything = [[rule] * len(kinds) for rule in TIES] if len(kinds) == 1 else [[rule for *_, rule in kinds]]
    at_least = equilibrium_values(game, player)(game.new_initial_state())
    for rules in everything:
        types = [FollowerType(*kind[:2], rule) for kind, rule in zip(kinds, rules, strict=True)]
        expected = best_of_types(list(zip(oracles, rules, strict=True)), shares)
        for best, value in zip(commitments(game, player, types, shares), expected, strict=True):
            check_value(best, value)
        # A zero-sum game's equilibrium is worth its value against anybody.
        assert expected[1] >= at_least - 1e-6


def ordered_by_ties(game, player, lookahead, h):
    """Return the best commitments, which are worth more the better ties are broken."""
    found = [commit_against_lookahead(game, player, lookahead, h, ties) for ties in TIES]
    suprema = [best.supremum for best in found]
    assert sorted(suprema) == pytest.approx(suprema, abs=1e-7)
    return found


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "lookahead",
    [1, *(pytest.param(k, marks=pytest.mark.slow("as with one move, on all of a game")) for k in (2, 3))],
)
def test_brute_force_on_kuhn(player, lookahead):
    exact = equilibrium_values(KUHN, 1 - player)
    for h in (exact, independent_noise(exact, 0.5, lookahead)):
        oracle = Oracle(KUHN, player, lookahead, h)
        for ties, best in zip(TIES, ordered_by_ties(KUHN, player, lookahead, h), strict=True):
            check_value(best, best_of_types([(oracle, ties)], [1.0])[0])


@pytest.mark.parametrize(
    ("player", "lookahead", "model"), [(0, 1, cumulative_noise), (1, 2, independent_noise)]
)
def test_kj_is_proven_and_rules_are_in_order(player, lookahead, model):
    h = model(equilibrium_values(KJ, 1 - player), 0.3, lookahead)
    worth = equilibrium_values(KJ, player)(KJ.new_initial_state())
    for best in ordered_by_ties(KJ, player, lookahead, h):
        check(best)
        assert best.bound >= worth - 1e-9


def test_a_type_that_is_held_at_a_tie():
    # The favorable type does what is worth 10 only where the leader mixes evenly, and there the adversarial
    # one, who sees the same, has a tie of actions that leave 2 and 0. No change of x breaks that one alone.
    game, favorable, adversarial = held_at_a_tie()
    types = [FollowerType(1, favorable, "favorable"), FollowerType(1, adversarial)]
    for best, value in zip(commitments(game, 0, types, None), (5.0, 2.0), strict=True):
        check_value(best, value)
    oracles = [(Oracle(game, 0, 1, kind.evaluation), kind.tie_breaking) for kind in types]
    assert best_of_types(oracles, [0.5, 0.5]) == pytest.approx((5.0, 2.0), abs=1e-9)


# -- how near the strategy comes -------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_delta_is_as_asked(delta):
    best = commit_against_lookahead(KUHN, 0, 1, equilibrium_values(KUHN, 1), delta=delta)
    check(best, delta)
    assert best.delta > 0.0


@pytest.mark.parametrize("ties", ["adversarial", "static"])
@pytest.mark.parametrize("height", [0.0, 1e2, 1e3, 5e3])
def test_narrow_leads_are_found(height, ties):
    # Far from zero, evaluations differ by little of their size, and each bit of lead costs more utility.
    game, h = narrow(height)
    check_value(commit_against_lookahead(game, 0, 2, h, ties), 2.0)


def test_a_delta_below_what_ties_allow():
    # A lead of 1e-9 counts as a tie, which costs 4e-3 here: the least possible, as reported.
    game, h = narrow(1e6)
    best = commit_against_lookahead(game, 0, 2, h)
    assert best.optimal and best.supremum == pytest.approx(2.0, abs=1e-6)
    assert 1.9 < best.value < 2.0 - 4e-3
    assert best.delta == best.supremum - best.value


def test_small_leads_are_leads():
    # 2e-8 of the evaluations' size is more than a tie: the best plan must not be taken for impossible.
    game, h = narrow(1e8)
    rows = {0: {2: 0.0, 3: 0.9, 4: 0.1}, 1: {2: 1.0, 3: 0.0, 4: 0.0}}
    out = evaluate_against_lookahead(game, lambda state: rows[state.history()[0]], 0, 2, h)
    assert out.utility == pytest.approx(1.6)
    assert commit_against_lookahead(game, 0, 2, h).bound == pytest.approx(2.0, abs=1e-6)


# -- where it is easy ------------------------------------------------------------------------------


def check_easy(*call):
    """One linear program does, and gives what the search gives; return it."""
    easy = commit_against_lookahead(*call)
    assert easy.method == "polynomial"
    check(easy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commitment, "fixed_options", lambda *_: None)
        hard = commit_against_lookahead(*call)
    assert hard.method == "correlation"
    check_value(hard, easy.supremum)
    return easy


@examples(24)
@given(games("perfect"), st.integers(0, 1), st.builds(random_evaluation, SEEDS, st.booleans()))
@example(random_tree(1), 0, random_evaluation(1, True))  # there an action is never best
def test_lookahead_1_without_information_sets(game, player, h):
    static = check_easy(game, player, 1, h, "static")
    check_easy(game, player, 1, h, "adversarial")
    # What the follower holds for best is the same against any strategy that comes everywhere.
    known = LookaheadPolicy(game, player, UniformRandomPolicy(game), 1, h, "static")
    value = recursion(game.new_initial_state(), known, (player,))
    assert static.value == pytest.approx(value if player == 0 else game.utility_sum() - value, abs=1e-9)


@pytest.mark.parametrize("ties", TIES)
@examples(24)
@given(followers(), st.booleans())
def test_where_all_is_seen_nothing_else_is_lost(ties, follower, exact):
    game, player, _ = follower
    check_easy(
        game, player, 4, equilibrium_values(game, 1 - player) if exact else utility_of(1 - player), ties
    )


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


def test_what_is_not_all():
    """A move less, a leaf that is worth something else, another sum: then the search is needed."""
    values, general = equilibrium_values(KUHN, 0), held_at_a_tie()[0]
    for game, player, lookahead, h, method in (
        # Player 0 sees the end of "pass, bet, call" only with three moves.
        (KUHN, 1, 3, utility_of(0), "polynomial"),
        (KUHN, 1, 2, utility_of(0), "correlation"),
        (KUHN, 1, 3, cumulative_noise(values, 0.5, 0), "polynomial"),  # leaves have none
        (KUHN, 1, 3, independent_noise(values, 1e-6, 0), "correlation"),
        (general, 0, 9, utility_of(1), "correlation"),
    ):
        assert commit_against_lookahead(game, player, lookahead, h).method == method


def test_static_order():
    game = random_tree(3, depth=4)
    for order in (None, lambda key, actions: actions[::-1]):
        best = commit_against_lookahead(game, 0, 1, lambda state: 0.0, "static", order=order)
        for key, action in best.outcome.response.items():
            actions = best.outcome.optimal[key]
            assert action == (actions[0] if order is None else actions[-1])
        again = evaluate_against_lookahead(game, best.policy(), 0, 1, lambda state: 0.0, "static", order)
        played = LookaheadPolicy(game, 0, best.policy(), 1, lambda state: 0.0, "static", order)
        assert again.response == played.outcome.response == best.outcome.response


# -- several types ---------------------------------------------------------------------------------


def earned(game, player, types, others):
    """Return float64[commitments, types], what a commitment to each type and the others earn."""
    made = [commit_against_types(game, player, [kind]) for kind in types]
    return made, np.array(
        [
            [
                evaluate_against_lookahead(game, best.policy(), player, *vars(kind).values()).utility
                for kind in types
            ]
            for best in (*made, *others)
        ]
    )


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


@pytest.mark.parametrize("player", [0, 1])
def test_between_the_types(player):
    """Nobody earns more than with each type known, and nobody less than what is worst in any case."""
    exact = equilibrium_values(KUHN, 1 - player)
    types = [FollowerType(k, independent_noise(exact, 0.5, k)) for k in (1, 2)]
    types.append(FollowerType(1, exact, "static", lambda key, actions: actions[::-1]))
    weights = np.array([0.5, 0.3, 0.2])
    mean, worst = commitments(KUHN, player, types, weights)
    check(mean)
    check(worst)
    known, utility = earned(KUHN, player, types, (mean, worst))
    assert mean.bound <= weights @ [best.bound for best in known] + 1e-6
    assert worst.bound <= min(best.bound for best in known) + 1e-6
    assert worst.supremum <= mean.supremum + 1e-6
    assert [outcome.utility for outcome in mean.outcomes] == utility[3].tolist()
    assert [outcome.utility for outcome in worst.outcomes] == utility[4].tolist()
    assert mean.weights.tolist() == pytest.approx(weights.tolist()) and worst.weights is None
    # What is made for a type is best against it, and what is made for all of them in what it was made for.
    assert np.diagonal(utility).tolist() == [best.value for best in known]
    assert (np.diagonal(utility) - utility >= -1e-4).all()
    assert utility[3] @ weights >= (utility @ weights).max() - 1e-4
    assert utility[4].min() >= utility.min(axis=1).max() - 1e-4
    assert mean.policy(1).rows != mean.policy(0).rows
    with pytest.raises(ValueError, match="expected which to be less than 3, got 3"):
        mean.policy(3)


def test_weights_are_shares_and_one_type_twice_is_the_type():
    h = equilibrium_values(KUHN, 1)
    types = [FollowerType(1, h), FollowerType(2, h)]
    one, other = (commit_against_types(KUHN, 0, types, weights) for weights in ([1, 3], [0.25, 0.75]))
    assert one.supremum == other.supremum and one.strategy == other.strategy
    noisy = independent_noise(h, 0.5, 0)
    known = commit_against_lookahead(KUHN, 0, 1, noisy)
    for best in commitments(KUHN, 0, [FollowerType(1, noisy)] * 2, [1.0, 2.0]):
        check_value(best, known.supremum)


def test_policy_of_both():
    best = commit_against_lookahead(KJ, 1, 2, equilibrium_values(KJ, 0))
    played = expected_game_score.policy_value(KJ.new_initial_state(), [best.policy()] * 2)
    assert played[1] == pytest.approx(best.value, abs=1e-9)


# -- limits ----------------------------------------------------------------------------------------


def test_a_time_limit_gives_an_interval_and_too_many_plans_are_refused():
    """The whole program takes twenty times as long."""
    h = independent_noise(equilibrium_values(LEDUC, 1, UniformRandomPolicy(LEDUC)), 1.0, 0)
    best = commit_against_lookahead(LEDUC, 0, 1, h, time_limit=0.1)
    assert not best.optimal and best.gap > 1e-6
    assert best.supremum <= best.bound <= SequenceForm.of(LEDUC).utility.max()
    assert best.value == pytest.approx(best.supremum, abs=1e-4)
    types = [FollowerType(1, h), FollowerType(2, h)]
    best = commit_against_types(LEDUC, 0, types, objective="worst", time_limit=0.5)
    assert not best.optimal and best.supremum <= best.bound
    assert best.value == min(outcome.utility for outcome in best.outcomes)
    with pytest.raises(ValueError, match="plans inside a lookahead"):
        commit_against_lookahead(LEDUC, 1, 9, lambda state: 0.0)
