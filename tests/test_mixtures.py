"""Mixtures of opponents against brute force: a chance move that nobody sees draws the opponent."""

import math
import pickle

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import MixturePolicy, RolloutValues, make_policy
from precomp_games.algorithms import best_first_precomputation, best_precomputation, certified_precomputation
from precomp_games.algorithms import value_against_components as values_of
from tests.oracles import books
from tests.oracles.games import SUPPORTS, expand, first, kuhn_poker, named_by, random_policy, sides, uniform
from tests.oracles.preparation import Preparation, Sets, evaluation, named, preparations
from tests.properties import examples

_WEIGHTS = [1, 3, 6, 2]
_ANY, _ON_BOARDS = (preparations(kind, depth=3, most=300, repeated=True) for kind in ("any", "perfect"))
_DRAWN = st.lists(st.sampled_from(SUPPORTS), min_size=2, max_size=4)  # the opponents' supports


def opponents_of(prepared, supports):
    """Return opponents of a player who prepares, and their mixture."""
    by = named_by(prepared.game)
    opponents = [random_policy(prepared.seed + k, support, by) for k, support in enumerate(supports)]
    return opponents, MixturePolicy(opponents, _WEIGHTS[: len(opponents)])


def best_of(prepared, penalty, **options):
    return best_precomputation(prepared.tree(penalty, **options), prepared.player)


def turns(game):
    return [state for state in books.states(game) if state.current_player() >= 0]


def _of_kuhn(spec):
    return make_policy(kuhn_poker(), spec)


def _stops(leaf_value, **more):
    return {"leaf_value": leaf_value, "stop_value": "evaluate"} | more


# -- the policy ---------------------------------------------------------------------------------------


@examples(40)
@given(preparations(fewest=0), _DRAWN)
def test_posteriors_are_bayes_rule(prepared, supports):
    opponents, mixture = opponents_of(prepared, supports)
    weights = mixture.weights
    by_move = MixturePolicy(opponents, weights, "move")
    inner = MixturePolicy(opponents[:-1], weights[:-1])
    nested = MixturePolicy([inner, opponents[-1]], [sum(weights[:-1]), weights[-1]])
    assert nested.weights == pytest.approx(weights)
    for state in turns(prepared.game):
        row = mixture.action_probabilities(state)
        assert nested.action_probabilities(state) == pytest.approx(row)
        played = np.array([[policy(state).get(action, 0.0) for action in row] for policy in opponents])
        assert [*by_move.action_probabilities(state).values()] == pytest.approx(weights @ played)
        assert by_move.posterior(state, 0) == pytest.approx(weights)
        for player in (0, 1):
            joint, at = weights.copy(), prepared.game.new_initial_state()
            for action in state.history():
                if at.current_player() == player:
                    joint *= [policy(at).get(action, 0.0) for policy in opponents]
                at.apply_action(action)
            if joint.sum() > 0.0:
                posterior = joint / joint.sum()
                assert mixture.posterior(state, player) == pytest.approx(posterior, abs=1e-12)
                if player == state.current_player():
                    assert [*row.values()] == pytest.approx(posterior @ played, abs=1e-12)


def test_what_nobody_plays_starts_anew():
    game = pyspiel.load_game("tic_tac_toe")
    mixture = MixturePolicy([first, lambda state: {state.legal_actions()[1]: 1.0}])
    state = game.new_initial_state()
    for action in (1, 0):  # the second one's move
        state.apply_action(action)
    assert mixture.posterior(state, 0).tolist() == [0.0, 1.0]
    assert mixture.posterior(state.child(2), 0).tolist() == [0.5, 0.5]  # the first one's, who it is not
    state.apply_action(8)  # neither's
    assert mixture.posterior(state, 0).tolist() == [0.5, 0.5]
    state.apply_action(2)
    assert mixture.action_probabilities(state) == {3: 0.5, 4: 0.5}
    state.apply_action(3)  # the first one's
    assert mixture.posterior(state, 0).tolist() == [1.0, 0.0]
    assert mixture.posterior(state, 1).tolist() == [1.0, 0.0]  # 0 was the first move left, and then 2


def test_a_spec_names_a_mixture():
    game, found = kuhn_poker(), _of_kuhn("mixture(a=random(seed=1),b=uniform,weights=of(a=0.75,b=0.25))")
    expected = MixturePolicy([_of_kuhn("random(seed=1)"), _of_kuhn("uniform")], [3, 1])
    for state in turns(game):
        assert found.action_probabilities(state) == pytest.approx(expected.action_probabilities(state))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("mixture(a=uniform,weights=of(b=1))", r"equal or of\(a=1\), with a number for each"),
        ("mixture(a=uniform,b=uniform,weights=by(a=1,b=1))", r"equal or of\(a=1,b=1\)"),
        ("mixture(a=none)", "expected policies to be a sequence"),
        ("mixture(per=day)", 'expected per to be one of "game", "move"'),
        ("mixture(a=mixture,per=move)", "expected components .* to depend on no history"),
    ],
)
def test_wrong_specs(spec, words):
    with pytest.raises(ValueError, match=words):
        _of_kuhn(spec)


# -- trees --------------------------------------------------------------------------------------------


@examples(100)
@given(_ANY, _DRAWN, st.sampled_from((0.1, 0.02, 0.001)))
def test_every_set_is_worth_what_it_is_where_chance_draws_the_opponent(prepared, supports, penalty):
    """Played out with the mixture as a policy; and the best one of them is what the tree finds."""
    opponents, mixture = opponents_of(prepared, supports)
    apart = [prepared.against(policy) for policy in opponents]
    explicit = mixture.weights @ [each.utilities for each in apart]
    assert prepared.against(mixture.action_probabilities).utilities == pytest.approx(explicit, abs=1e-12)
    mixed, sizes = prepared.against(mixture), list(map(len, prepared.choices))
    found = best_of(mixed, penalty, position_key=str if named_by(prepared.game) == "position" else None)
    assert found.value == pytest.approx(Sets(sizes, explicit).value(penalty), abs=1e-9)
    each = values_of(found)
    worth = [one.worth(found.tree, found.memorization_set) for one in apart]
    assert each == pytest.approx(worth, abs=1e-9)
    assert mixture.weights @ each == pytest.approx(found.utility, abs=1e-9)


def _evaluated(prepared, policy, value):
    """Return the player's utilities of its sets by the definition, if stops are evaluated."""

    def worth(state, chosen):
        mover = state.current_player()
        if state.is_terminal():
            return state.returns()[0]
        name = books.information_state(prepared.game, state, mover) if mover == prepared.player else ""
        if mover == prepared.player and name not in chosen:
            return value(state)
        row = chosen.get(name) or (policy(state) if mover >= 0 else dict(state.chance_outcomes()))
        return sum(p * worth(state.child(action), chosen) for action, p in row.items() if p > 0.0)

    found = np.array([worth(prepared.game.new_initial_state(), chosen) for chosen in prepared.choices])
    return found if prepared.player == 0 else prepared.game.utility_sum() - found


@examples(60)
@given(_ON_BOARDS, _DRAWN, st.sampled_from(("none", "reach", "values")))
def test_a_leaf_value_for_each_component(prepared, supports, truncate):
    """Stopping is evaluated on the spot, and worth what it is against whom chance has drawn."""
    opponents, mixture = opponents_of(prepared, supports)
    values = [evaluation(k) for k in range(len(opponents))]
    apart = np.array([_evaluated(prepared, *each) for each in zip(opponents, values, strict=True)])
    found = best_of(prepared.against(mixture), 0.02, **_stops(values, truncate=truncate, position_key=str))
    sets = Sets(list(map(len, prepared.choices)), mixture.weights @ apart)
    assert found.value == pytest.approx(sets.value(0.02), abs=1e-9)
    names = list(prepared.by_name)
    chosen = names.index(named(found.tree, prepared.player, found.memorization_set))
    assert values_of(found) == pytest.approx(apart[:, chosen], abs=1e-9)


@examples(40)
@given(preparations("perfect", menu=False), _DRAWN)
def test_certified_searches_agree_with_the_tree(prepared, supports):
    mixed = prepared.against(opponents_of(prepared, supports)[1])
    given, value = (mixed.game, mixed.pre, mixed.sigma), evaluation(prepared.seed)
    found = best_first_precomputation(*given, 0.01, mixed.player, value, gap=0.0)
    evaluated = best_of(mixed, 0.01, leaf_value=value, stop_value="evaluate")
    assert found.lower == pytest.approx(evaluated.value, abs=1e-9)
    sampled = certified_precomputation(*given, 0.05, mixed.player, epsilon=0.3, seed=mixed.seed)
    assert sampled.lower - 1e-9 <= best_of(mixed, 0.05).value <= sampled.upper + 1e-9


class Transposing:
    """Policies and values of a board game by the board alone, and about which boards they were asked."""

    def __init__(self, seed):
        self.row, self.seed, self.asked = random_policy(seed, "partial", "position"), seed, []

    def action_probabilities_batch(self, states):
        self.asked += [str(state) for state in states]
        return [self.row(state) for state in states]

    def evaluate_batch(self, states):
        self.asked += [str(state) for state in states]
        return [float(np.random.default_rng([self.seed, *str(s).encode()]).uniform(-1, 1)) for s in states]


def on_board(opponent, player=0):
    """Return what a player prepares in a game in which histories transpose."""
    game = pyspiel.load_game("connect_four(rows=3,columns=3,x_in_row=3)")
    return Preparation(game, player, (Transposing(1),) * 2, sides(player, Transposing(2), opponent), 0, 0)


def _three(first):
    return [Transposing(first + k) for k in range(3)]


VALUED = {
    "exact": lambda: {},
    "an evaluation for each": lambda: _stops(_three(50)),
    "evaluated leaves": lambda: {"leaf_value": _three(50)},
    "two kinds": lambda: {"leaf_value": ["exact", Transposing(51), "exact"]},
}


@pytest.mark.parametrize("how", VALUED)
def test_histories_that_transpose_are_mixed_by_their_own_posteriors(how):
    options, opponents = VALUED[how](), _three(10)
    mixed = on_board(MixturePolicy(opponents, [1, 2, 3]), list(VALUED).index(how) % 2)
    one = best_of(mixed, 0.003, position_key=str, **options)
    if how not in ("exact", "two kinds"):  # whose leaves are played on from, level by level
        for asked in [*opponents, *options["leaf_value"]]:
            assert len(asked.asked) - len(set(asked.asked)) <= 40  # spot checks of the key ask again
    other = best_of(mixed, 0.003, **VALUED[how]())
    shared, apart = one.tree, other.tree
    assert shared.num_positions < 0.8 * shared.num_histories
    for name in ("parent", "action", "infoset", "sigma", "sigma_pre", "value"):
        assert getattr(shared, name) == pytest.approx(getattr(apart, name), abs=1e-12, nan_ok=True)
    turns = np.flatnonzero(shared.player == 1 - mixed.player)
    rows = {(shared.position[h], tuple(np.round(shared.sigma[shared.children(h)], 9))) for h in turns}
    assert len(rows) > len({position for position, _ in rows})  # equal positions are played differently
    each = values_of(one)
    assert [one.value, *each] == pytest.approx([other.value, *values_of(other)], abs=1e-12)
    assert np.array([1, 2, 3]) / 6 @ each == pytest.approx(one.utility, abs=1e-12)


def test_certified_searches_do_not_share_what_a_mixture_plays():
    mixture = MixturePolicy(_three(10), [1, 2, 3], position_key=str)
    mixed = on_board(mixture)
    arguments = (mixed.game, mixed.pre, mixed.sigma, 0.003, 0, Transposing(50))
    exact = best_of(mixed, 0.003, **_stops(Transposing(50))).value
    for more in ({}, {"position_key": str}):
        found = best_first_precomputation(*arguments, gap=0.0, **more)
        assert found.lower == pytest.approx(exact, abs=1e-12)


def on_kuhn(spec):
    return Preparation(kuhn_poker(), 0, (uniform, None), (_of_kuhn("random(seed=7)"), _of_kuhn(spec)), 0, 0)


def test_components_are_sampled_travel_and_are_missed():
    mixed = on_kuhn("mixture(a=random,b=uniform,weights=of(a=1,b=3))")
    exact, found = best_of(mixed, 1.0), best_of(mixed, 1.0, leaf_value=RolloutValues(games=20_000))
    assert found.utility == pytest.approx(exact.utility, abs=0.05)
    assert [0.25, 0.75] @ values_of(found) == pytest.approx(found.utility, abs=1e-12)
    best = best_of(mixed, 0.01)
    each = values_of(pickle.loads(pickle.dumps(best)))
    assert each == pytest.approx(values_of(best))
    with pytest.raises(ValueError, match="expected one leaf_value, or one for each of"):
        best_of(mixed, 0.1, leaf_value=["exact"])
    plain = best_of(on_kuhn("uniform"), 0.1)
    assert plain.tree.mixture is None
    with pytest.raises(ValueError, match="expected a tree whose opponent is a MixturePolicy"):
        values_of(plain)


def test_who_memorizes_is_drawn_at_each_move_or_no_mixture():
    drawn = _of_kuhn("mixture(a=uniform,b=cfr(iterations=3),per=move)")
    expand(kuhn_poker(), drawn, drawn, 0.1)
    mixed, of_sigma = (
        _of_kuhn("mixture(a=uniform,b=cfr(iterations=3))"),
        r"expected sigma\[0\] to be no mixture",
    )
    for pre, sigma, penalties, words in (
        (uniform, mixed, 0.1, rf"from_game\(\): {of_sigma} .* memorizes"),
        (uniform, (mixed, uniform), (0.1, math.inf), of_sigma),
        (uniform, mixed, (0.1, math.inf), of_sigma),
        (mixed, uniform, 0.1, r"expected sigma_pre\[0\] to be no mixture"),
        (uniform, mixed, math.inf, "at most one player"),
    ):
        with pytest.raises(ValueError, match=words):
            expand(kuhn_poker(), pre, sigma, penalties)
    board = pyspiel.load_game("tic_tac_toe")
    mixed = make_policy(board, "mixture(a=uniform,b=random)")
    for pre, sigma in ((mixed, uniform), (uniform, (mixed, uniform))):
        with pytest.raises(ValueError, match=r"best_first_precomputation\(\): expected sigma.*no mixture"):
            best_first_precomputation(board, pre, sigma, 0.1, 0, lambda state: 0.0)
