"""Mixtures of opponents against brute force: a chance move that nobody sees draws the opponent."""

import math

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, MixturePolicy, make_policy
from precomp_games.algorithms import best_precomputation
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

GAMES = 100
MOST_SETS = 150


def components(seed, count, by):
    """Random players, some of which never play some moves, so that posteriors become certain."""
    return [random_policy(1000 * seed + k, ("full", "partial", "pure")[k % 3], by) for k in range(count)]


def case(seed):
    """(game, by, components, weights): perfect information for even seeds, imperfect for odd ones."""
    rng = np.random.default_rng([seed, 5])
    count = int(rng.integers(2, 5))
    perfect = seed % 2 == 0
    for depth in (4, 3, 2):
        game = random_tree(seed, depth=depth) if perfect else random_efg(seed, depth=depth + 1)
        sets = [reference.count_prefix_closed_sets(reference.predecessors(game, i)) for i in (0, 1)]
        if max(sets) <= MOST_SETS:
            break
    by = "history" if perfect else "infoset"
    return game, by, components(seed, count, by), rng.dirichlet(np.ones(count))


def drawn(game, player, pre, own, opponents, weights):
    """set -> player 0's utility where a chance move that nobody sees draws the opponent of `player`."""
    seats = [(own, other) if player == 0 else (other, own) for other in opponents]
    against = [reference.utilities(game, (pre, pre), pair) for pair in seats]

    def utility(chosen):
        sets = (chosen, frozenset()) if player == 0 else (frozenset(), chosen)
        return math.fsum(w * value(sets) for w, value in zip(weights, against, strict=True))

    return utility


def sets_of(game, player):
    found = list(reference.prefix_closed_sets(reference.predecessors(game, player)))
    assert len(found) <= MOST_SETS
    return found


def decision_states(game):
    found, todo = [], [game.new_initial_state()]
    while todo:
        state = todo.pop()
        if not state.is_terminal():
            todo += [state.child(action) for action in state.legal_actions()]
            if not state.is_chance_node():
                found.append(state)
    return found


# -- the policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_every_set_is_worth_what_it_is_where_chance_draws_the_opponent(seed):
    game, by, opponents, weights = case(seed)
    player = seed // 2 % 2
    pre, own = random_policy(seed + 1, by=by), random_policy(seed + 2, by=by)
    mixture = MixturePolicy(opponents, weights)
    pair = (own, mixture.action_probabilities) if player == 0 else (mixture.action_probabilities, own)
    behavioral = reference.utilities(game, (pre, pre), pair)
    explicit = drawn(game, player, pre, own, opponents, weights)
    for chosen in sets_of(game, player):
        sets = (chosen, frozenset()) if player == 0 else (frozenset(), chosen)
        assert behavioral(sets) == pytest.approx(explicit(chosen), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_posteriors_are_bayes_rule(seed):
    game, _, opponents, weights = case(seed)
    mixture = MixturePolicy(opponents, weights)
    for player in (0, 1):

        def reaches(state, player=player):
            """r_k, from the definition."""
            found, at = np.ones(len(opponents)), game.new_initial_state()
            for action in state.history():
                if at.current_player() == player:
                    found *= [policy(at).get(action, 0.0) for policy in opponents]
                at.apply_action(action)
            return found

        for state in decision_states(game):
            joint = weights * reaches(state)
            if joint.sum() > 0.0:
                assert mixture.posterior(state, player) == pytest.approx(joint / joint.sum(), abs=1e-12)


def test_what_nobody_plays_starts_anew():
    game = pyspiel.load_game("tic_tac_toe")
    mixture = MixturePolicy([lambda s: {s.legal_actions()[0]: 1.0}, lambda s: {s.legal_actions()[1]: 1.0}])
    state = game.new_initial_state()
    for action in (1, 0):  # the second one's move
        state.apply_action(action)
    assert mixture.posterior(state, 0).tolist() == [0.0, 1.0]
    state.apply_action(8)  # neither's
    assert mixture.posterior(state, 0).tolist() == [0.5, 0.5]
    state.apply_action(2)
    assert mixture.action_probabilities(state) == {3: 0.5, 4: 0.5}
    state.apply_action(3)  # the first one's
    assert mixture.posterior(state, 0).tolist() == [1.0, 0.0]
    assert mixture.posterior(state, 1).tolist() == [1.0, 0.0]  # 0 was the first move left, and then 2


def test_states_may_come_in_any_order_and_in_batches():
    game, _, opponents, weights = case(2)
    states = decision_states(game)
    one = MixturePolicy(opponents, weights)
    expected = [one.action_probabilities(state) for state in states]
    assert MixturePolicy(opponents, weights).action_probabilities_batch(states) == expected
    backwards = MixturePolicy(opponents, weights).action_probabilities_batch(states[::-1])
    assert backwards[::-1] == expected
    forgetful = MixturePolicy(opponents, weights)
    for state, row in zip(states, expected, strict=True):
        forgetful._forget()
        assert forgetful.action_probabilities(state) == row


def test_components_are_asked_once_about_a_position():
    game = pyspiel.load_game("tic_tac_toe")
    asked = []

    class Counted:
        def action_probabilities_batch(self, states):
            asked.extend(str(state) for state in states)
            return [dict.fromkeys(state.legal_actions(), 1 / len(state.legal_actions())) for state in states]

    states = [s for s in decision_states(game) if len(s.history()) <= 4]
    MixturePolicy([Counted()], position_key=str).action_probabilities_batch(states)
    assert len(asked) == len(set(asked)) == len({str(state) for state in states})


def test_mixtures_of_mixtures():
    game, _, opponents, _ = case(2)
    opponents = [*opponents[:2], random_policy(77)]
    inner = MixturePolicy(opponents[:2], [1, 3])
    outer = MixturePolicy([inner, opponents[2]], [4, 6])
    assert outer.weights == pytest.approx([0.1, 0.3, 0.6])
    flat = MixturePolicy(opponents, [1, 3, 6])
    for state in decision_states(game):
        assert outer.action_probabilities(state) == pytest.approx(flat.action_probabilities(state))


def test_a_draw_at_each_move_is_the_average():
    game, _, opponents, weights = case(4)
    mixture = MixturePolicy(opponents, weights, "move")
    for state in decision_states(game):
        rows = [policy(state) for policy in opponents]
        for action, p in mixture.action_probabilities(state).items():
            assert p == pytest.approx(sum(w * row[action] for w, row in zip(weights, rows, strict=True)))
        assert mixture.posterior(state, 0) == pytest.approx(weights)


def test_specs():
    game = pyspiel.load_game("leduc_poker")
    spec = "mixture(a=random(seed=1),b=noisy(policy=uniform,epsilon=0.5),weights=of(a=0.75,b=0.25))"
    state = game.new_initial_state()
    for action in (0, 1, 1, 1, 2):
        state.apply_action(action)
    parts = [make_policy(game, name) for name in ("random(seed=1)", "uniform")]
    expected = MixturePolicy(parts, [3, 1]).action_probabilities(state)
    assert make_policy(game, spec).action_probabilities(state) == pytest.approx(expected)
    by_move = make_policy(game, "mixture(a=random(seed=1),b=uniform,per=move)")
    row = parts[0].action_probabilities(state)
    assert by_move.action_probabilities(state) == pytest.approx({a: row[a] / 2 + 0.25 for a in row})
    for wrong, words in (
        ("mixture(a=uniform,weights=of(b=1))", r"equal or of\(a=1\), with a number for each"),
        ("mixture(a=uniform,b=uniform,weights=by(a=1,b=1))", r"equal or of\(a=1,b=1\)"),
        ("mixture(a=none)", "expected policies to be a sequence"),
        ("mixture(per=day)", 'expected per to be one of "game", "move"'),
        ("mixture(a=mixture,per=move)", "expected components that depend on no history"),
    ):
        with pytest.raises(ValueError, match=words):
            make_policy(game, wrong)


# -- trees --------------------------------------------------------------------------------------------


def expanded(game, player, pre, own, mixture, penalty, **options):
    pair = (own, mixture) if player == 0 else (mixture, own)
    penalties = (penalty, math.inf) if player == 0 else (math.inf, penalty)
    sigma_pre = (pre, None) if player == 0 else (None, pre)
    return HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=pair, penalties=penalties, **options)


@pytest.mark.parametrize("seed", range(GAMES))
def test_the_best_set_is_the_best_where_chance_draws_the_opponent(seed):
    game, by, opponents, weights = case(seed)
    player = seed // 2 % 2
    pre, own = random_policy(seed + 1, by=by), random_policy(seed + 2, by=by)
    penalty = float(10.0 ** -(1 + seed % 3))
    tree = expanded(game, player, pre, own, MixturePolicy(opponents, weights), penalty)
    explicit = drawn(game, player, pre, own, opponents, weights)
    total = game.utility_sum() or 0.0
    best = max(
        (u if player == 0 else total - u) - penalty * len(chosen)
        for chosen in sets_of(game, player)
        for u in [explicit(chosen)]
    )
    found = best_precomputation(tree, player)
    assert found.value == pytest.approx(best, abs=1e-9)
