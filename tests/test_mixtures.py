"""Mixtures of opponents against brute force: a chance move that nobody sees draws the opponent."""

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from precomp_games import HistoryTree, MixturePolicy, RolloutValues, make_policy
from precomp_games.algorithms import (
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    value_against_components,
)
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    SUPPORTS,
    first,
    games,
    kuhn_poker,
    named_by,
    random_evaluation,
    random_menu,
    random_policy,
    sides,
    uniform,
)
from tests.properties import examples

_MOST_CHOICES = 300


@dataclasses.dataclass
class Case:
    """A game whose `player` memorizes rows of `pre` or a menu, and plays `own` against one of `opponents`."""

    game: Any
    player: int
    pre: Any
    own: Any
    opponents: list[Any]
    weights: Any

    @property
    def mixture(self):
        return MixturePolicy(self.opponents, self.weights)

    def seated(self, other):
        return sides(self.player, self.own, other)

    def best(self, penalty, opponent=None, **options):
        tree = HistoryTree.from_game(
            self.game,
            sigma_pre=sides(self.player, self.pre, None),
            sigma=self.seated(opponent or self.mixture),
            penalties=sides(self.player, penalty, math.inf),
            **options,
        )
        return best_precomputation(tree, self.player)

    def choices(self):
        """Return all choices of what is memorized, unless there are too many of them."""
        found = books.all_choices(self.game, self.player, self.pre, _MOST_CHOICES)
        assume(found)
        return found

    def chosen(self, found):
        """Return what a solver chose, as brute force has it."""
        tree = found.tree
        names = [
            books.information_state(self.game, tree.state(s.history), self.player) for s in found.states()
        ]
        return dict(zip(names, [tree.memorized_row(s.entry) for s in found.states()], strict=True))

    def utilities(self, choices, values=None):
        """Return the player's utilities, [opponents, choices], by playing them out against each opponent.

        values: what stopping on the spot is worth against each, an evaluation function for each of them.
        """
        pairs = [self.seated(other) for other in self.opponents]
        if values is None:
            played = [books.own_utilities_of_choices(self.game, self.player, choices, pair) for pair in pairs]
            return np.array(played)
        found = [
            [self._evaluated(c, pair, value) for c in choices]
            for pair, value in zip(pairs, values, strict=True)
        ]
        return np.array(found) if self.player == 0 else self.game.utility_sum() - np.array(found)

    def _evaluated(self, chosen, pair, value):
        """Return the value to player 0 of a choice with evaluated stops, from the definition."""

        def worth(state):
            mover = state.current_player()
            if state.is_terminal():
                return state.returns()[0]
            if mover == self.player:
                name = books.information_state(self.game, state, mover)
                if name not in chosen:
                    return value(state)
                row = chosen[name]
            else:
                row = pair[mover](state) if mover >= 0 else dict(state.chance_outcomes())
            return sum(p * worth(state.child(action)) for action, p in row.items() if p > 0.0)

        return worth(self.game.new_initial_state())


def _case(game, seed, player, supports, menu):
    by, rng = named_by(game), np.random.default_rng(seed)
    opponents = [random_policy(seed + k, support, by) for k, support in enumerate(supports)]
    pre = random_menu(seed, by=by) if menu else random_policy(seed + 10, by=by)
    return Case(
        game, player, pre, random_policy(seed + 11, by=by), opponents, rng.dirichlet(np.ones(len(supports)))
    )


def cases(kind="any", menus=True, **size):
    """Cases; a failure shrinks to player 0, two opponents who play everything, and no menu."""
    supports = st.lists(st.sampled_from(SUPPORTS), min_size=2, max_size=4)
    menu = st.booleans() if menus else st.just(False)
    return st.builds(_case, games(kind, **size), SEEDS, st.sampled_from((0, 1)), supports, menu)


def _turns(game):
    return [state for state in books.states(game) if state.current_player() >= 0]


# -- the policy ---------------------------------------------------------------------------------------


@examples(40)
@given(cases(menus=False))
def test_posteriors_are_bayes_rule(case):
    mixture, by_move = case.mixture, MixturePolicy(case.opponents, case.weights, "move")
    nested = MixturePolicy(
        [MixturePolicy(case.opponents[:-1], [1] * (len(case.opponents) - 1)), case.opponents[-1]]
    )
    flat = MixturePolicy(case.opponents, nested.weights)
    assert len(nested.policies) == len(case.opponents) and nested.weights[-1] == 0.5
    for state in _turns(case.game):
        mover, row = state.current_player(), mixture.action_probabilities(state)
        for player in (0, 1):
            joint, at = np.array(case.weights), case.game.new_initial_state()
            for action in state.history():
                if at.current_player() == player:
                    joint = joint * [policy(at).get(action, 0.0) for policy in case.opponents]
                at.apply_action(action)
            if joint.sum() > 0.0:
                posterior = joint / joint.sum()
                assert mixture.posterior(state, player) == pytest.approx(posterior, abs=1e-12)
                if player == mover:
                    played = [[policy(state).get(action, 0.0) for action in row] for policy in case.opponents]
                    assert [*row.values()] == pytest.approx(posterior @ played, abs=1e-12)
        averages = {
            action: case.weights @ [policy(state)[action] for policy in case.opponents] for action in row
        }
        assert by_move.action_probabilities(state) == pytest.approx(averages)
        assert by_move.posterior(state, 0) == pytest.approx(case.weights)
        assert nested.action_probabilities(state) == pytest.approx(flat.action_probabilities(state))


def test_what_nobody_plays_starts_anew():
    game = pyspiel.load_game("tic_tac_toe")
    mixture = MixturePolicy([first, lambda state: {state.legal_actions()[1]: 1.0}])
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


def test_specs():
    game = kuhn_poker()
    spec = "mixture(a=random(seed=1),b=uniform,weights=of(a=0.75,b=0.25))"
    expected = MixturePolicy([make_policy(game, "random(seed=1)"), make_policy(game, "uniform")], [3, 1])
    for state in _turns(game):
        row = expected.action_probabilities(state)
        assert make_policy(game, spec).action_probabilities(state) == pytest.approx(row)


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
        make_policy(kuhn_poker(), spec)


# -- trees --------------------------------------------------------------------------------------------


@examples(100)
@given(cases(depth=3), st.sampled_from((0.1, 0.02, 0.001)))
def test_every_choice_is_worth_what_it_is_where_chance_draws_the_opponent(case, penalty):
    """Played out with the mixture as a policy; and the best one of them is what the tree finds."""
    choices = case.choices()
    explicit = case.weights @ case.utilities(choices)
    pair = case.seated(case.mixture.action_probabilities)
    behavioral = books.own_utilities_of_choices(case.game, case.player, choices, pair)
    assert behavioral == pytest.approx(explicit, abs=1e-12)
    found = case.best(penalty)
    assert found.value == pytest.approx(max(explicit - penalty * np.array(list(map(len, choices)))), abs=1e-9)
    each = value_against_components(found)
    assert each == pytest.approx(case.utilities([case.chosen(found)])[:, 0], abs=1e-9)
    assert case.weights @ each == pytest.approx(found.utility, abs=1e-9)


@examples(60)
@given(cases("perfect", depth=3), st.sampled_from(("none", "reach", "values")))
def test_a_leaf_value_for_each_component(case, truncate):
    """Stopping is evaluated on the spot, and worth what it is against whom chance has drawn."""
    choices, values = case.choices(), [random_evaluation(k) for k in range(len(case.opponents))]
    sizes = np.array(list(map(len, choices)))
    found = case.best(0.02, leaf_value=values, stop_value="evaluate", truncate=truncate)
    explicit = case.weights @ case.utilities(choices, values)
    assert found.value == pytest.approx(max(explicit - 0.02 * sizes), abs=1e-9)
    each = case.utilities([case.chosen(found)], values)[:, 0]
    assert value_against_components(found) == pytest.approx(each, abs=1e-9)


@examples(40)
@given(cases("perfect", menus=False), SEEDS)
def test_certified_searches_agree_with_the_tree(case, seed):
    given, value = (case.game, case.pre, case.seated(case.mixture)), random_evaluation(seed)
    found = best_first_precomputation(*given, 0.01, case.player, value, gap=0.0)
    evaluated = case.best(0.01, leaf_value=value, stop_value="evaluate")
    assert found.lower == pytest.approx(evaluated.value, abs=1e-9)
    sampled = certified_precomputation(*given, 0.05, case.player, epsilon=0.3, seed=seed)
    assert sampled.lower - 1e-9 <= case.best(0.05).value <= sampled.upper + 1e-9


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


def _on_board(player=0):
    """Return a case in which histories transpose."""
    game = pyspiel.load_game("connect_four(rows=3,columns=3,x_in_row=3)")
    opponents = [Transposing(10 + k) for k in range(3)]
    return Case(game, player, Transposing(1), Transposing(2), opponents, np.array([1, 2, 3]) / 6)


def _evaluated(leaf_value, **more):
    return {"leaf_value": leaf_value, "stop_value": "evaluate"} | more


VALUED = {
    "exact": lambda: {},
    "one evaluation": lambda: _evaluated(Transposing(50)),
    "an evaluation for each": lambda: _evaluated([Transposing(50 + k) for k in range(3)]),
    "cut by values": lambda: _evaluated([Transposing(50 + k) for k in range(3)], truncate="values"),
    "evaluated leaves": lambda: {"leaf_value": [Transposing(50 + k) for k in range(3)]},
    "two kinds": lambda: {"leaf_value": ["exact", Transposing(51), "exact"]},
}


@pytest.mark.parametrize("how", VALUED)
def test_histories_that_transpose_are_mixed_by_their_own_posteriors(how):
    case, options = _on_board(list(VALUED).index(how) % 2), VALUED[how]()
    one = case.best(0.003, position_key=str, **options)
    if how not in ("exact", "two kinds"):  # whose leaves are played on from, level by level
        values = options["leaf_value"]
        for asked in [*case.opponents, *(values if isinstance(values, list) else [values])]:
            assert len(asked.asked) - len(set(asked.asked)) <= 40  # spot checks of the key ask again
    other = case.best(0.003, **VALUED[how]())
    shared, apart = one.tree, other.tree
    assert shared.num_positions < (1.0 if how == "cut by values" else 0.8) * shared.num_histories
    for name in ("parent", "action", "infoset", "sigma", "sigma_pre", "value"):
        assert getattr(shared, name) == pytest.approx(getattr(apart, name), abs=1e-12, nan_ok=True)
    positions = {}
    for h in np.flatnonzero(shared.player == 1 - case.player):
        row = tuple(np.round(shared.sigma[shared.children(h)], 9))
        positions.setdefault(shared.position[h], set()).add(row)
    # Equal positions, played differently.
    assert how == "cut by values" or any(len(rows) > 1 for rows in positions.values())
    assert one.value == pytest.approx(other.value, abs=1e-12)
    each = value_against_components(one)
    assert each == pytest.approx(value_against_components(other), abs=1e-12)
    assert case.weights @ each == pytest.approx(one.utility, abs=1e-12)


def test_certified_searches_do_not_share_what_a_mixture_plays():
    case = _on_board()
    mixture = MixturePolicy(case.opponents, case.weights, position_key=str)
    arguments = (case.game, case.pre, (None, mixture), 0.003, 0, Transposing(50))
    exact = case.best(0.003, mixture, **_evaluated(Transposing(50))).value
    for more in ({}, {"position_key": str}):
        found = best_first_precomputation(*arguments, gap=0.0, **more)
        assert found.lower == pytest.approx(exact, abs=1e-12)


def _of_kuhn():
    parts = [make_policy(kuhn_poker(), spec) for spec in ("random", "uniform")]
    own = make_policy(kuhn_poker(), "random(seed=7)")
    return Case(kuhn_poker(), 0, uniform, own, parts, np.array([0.25, 0.75]))


def test_rollouts_of_each_component():
    case = _of_kuhn()
    found = case.best(1.0, leaf_value=RolloutValues(games=20_000))
    assert found.utility == pytest.approx(case.best(1.0).utility, abs=0.05)
    assert case.weights @ value_against_components(found) == pytest.approx(found.utility, abs=1e-12)


def test_mixtures_travel():
    best = _of_kuhn().best(0.01)
    assert value_against_components(pickle.loads(pickle.dumps(best))) == pytest.approx(
        value_against_components(best)
    )


def test_trees_without_components():
    case = _of_kuhn()
    with pytest.raises(ValueError, match="expected one leaf_value, or one for each of"):
        case.best(0.1, leaf_value=["exact"])
    plain = case.best(0.1, case.opponents[0])
    assert plain.tree.mixture is None
    with pytest.raises(ValueError, match="expected a tree whose opponent is a MixturePolicy"):
        value_against_components(plain)


_MIXED = make_policy(kuhn_poker(), "mixture(a=uniform,b=cfr(iterations=3))")


@pytest.mark.parametrize(
    ("pre", "sigma", "penalties", "words"),
    [
        (uniform, _MIXED, 0.1, r"from_game\(\): expected sigma\[0\] to be no mixture .* memorizes"),
        (uniform, (_MIXED, uniform), (0.1, math.inf), r"expected sigma\[0\] to be no mixture"),
        (uniform, _MIXED, (0.1, math.inf), r"expected sigma\[0\] to be no mixture"),
        (_MIXED, uniform, 0.1, r"expected sigma_pre\[0\] to be no mixture"),
        (uniform, _MIXED, math.inf, "at most one player"),
    ],
)
def test_who_memorizes_is_no_mixture(pre, sigma, penalties, words):
    with pytest.raises(ValueError, match=words):
        HistoryTree.from_game(kuhn_poker(), sigma_pre=pre, sigma=sigma, penalties=penalties)


def test_who_memorizes_may_be_drawn_at_each_move():
    mixed = make_policy(kuhn_poker(), "mixture(a=uniform,b=cfr(iterations=3),per=move)")
    HistoryTree.from_game(kuhn_poker(), sigma_pre=mixed, sigma=mixed, penalties=0.1)


@pytest.mark.parametrize("mixed", ["pre", "sigma"])
def test_who_memorizes_in_a_search_is_no_mixture(mixed):
    board = pyspiel.load_game("tic_tac_toe")
    given = {"pre": uniform, "sigma": uniform} | {mixed: make_policy(board, "mixture(a=uniform,b=random)")}
    with pytest.raises(ValueError, match=r"best_first_precomputation\(\): expected sigma.*no mixture"):
        best_first_precomputation(board, given["pre"], (given["sigma"], uniform), 0.1, 0, lambda state: 0.0)
