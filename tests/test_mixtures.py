"""Mixtures of opponents against brute force: a chance move that nobody sees draws the opponent."""

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, MixturePolicy, RolloutValues, make_policy
from precomp_games.algorithms import (
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    value_against_components,
)
from tests.oracles import books
from tests.oracles.games import (
    SUPPORTS,
    first,
    random_case,
    random_evaluation,
    random_menu,
    random_policy,
    sides,
)

BOARD = "connect_four(rows=3,columns=3,x_in_row=3)"  # histories transpose
MOST_SETS = 150


@dataclasses.dataclass
class Case:
    """A game whose `player` memorizes rows of `pre` or menus, and plays `own` against one of `opponents`."""

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

    def tree(self, penalty, mixture=None, **options):
        return HistoryTree.from_game(
            self.game,
            sigma_pre=sides(self.player, self.pre, None),
            sigma=self.seated(mixture or self.mixture),
            penalties=sides(self.player, penalty, math.inf),
            **options,
        )

    def best(self, penalty, **options):
        return best_precomputation(self.tree(penalty, **options), self.player)

    def utilities(self, sets, values=None):
        """Return the player's utilities, [opponents, sets]; sets may be choices of entries.

        values: what stopping on the spot is worth against each, an evaluation function for each of them.
        """
        if values is not None:
            return np.array([self._evaluated(sets, k, values[k]) for k in range(len(values))])
        pairs = [self.seated(other) for other in self.opponents]
        if isinstance(sets[0], dict):
            return np.array(
                [books.own_utilities_of_choices(self.game, self.player, sets, pair) for pair in pairs]
            )
        pre = (self.pre, self.pre)
        return np.array([books.own_utilities(self.game, self.player, sets, pre, pair) for pair in pairs])

    def _evaluated(self, sets, k, value):
        """Return the value of sets against component k with evaluated stops, from the definition."""

        def worth(state, chosen):
            if state.is_terminal():
                return state.returns()[0]
            mover = state.current_player()
            if mover == self.player:
                if str(state.history()) not in chosen:
                    return value(state)
                row = self.pre(state)
            else:
                row = self.opponents[k](state) if mover >= 0 else dict(state.chance_outcomes())
            return sum(p * worth(state.child(a), chosen) for a, p in row.items() if p > 0.0)

        found = np.array([worth(self.game.new_initial_state(), chosen) for chosen in sets])
        return found if self.player == 0 else self.game.utility_sum() - found


def case(seed):
    """Perfect information for even seeds, imperfect for odd ones; some opponents never play some moves."""
    rng = np.random.default_rng([seed, 5])
    count = int(rng.integers(2, 5))
    kind, by = ("efg", "infoset") if seed % 2 else ("tree", "history")
    for depth in (4, 3, 2):
        game, *_ = random_case(kind, seed, depth=depth + seed % 2)
        if all(books.all_sets(game, i, MOST_SETS) for i in (0, 1)):
            break
    opponents = [random_policy(1000 * seed + k, SUPPORTS[k % 3], by) for k in range(count)]
    pre, own = random_policy(seed + 1, by=by), random_policy(seed + 2, by=by)
    return Case(game, seed // 2 % 2, pre, own, opponents, rng.dirichlet(np.ones(count)))


def decision_states(game):
    return [state for state in books.states(game) if state.current_player() >= 0]


# -- the policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_posteriors_are_bayes_rule(seed):
    drawn = case(seed)
    for player in (0, 1):

        def reaches(state, player=player):
            """r_k, from the definition."""
            found, at = np.ones(len(drawn.opponents)), drawn.game.new_initial_state()
            for action in state.history():
                if at.current_player() == player:
                    found *= [policy(at).get(action, 0.0) for policy in drawn.opponents]
                at.apply_action(action)
            return found

        for state in decision_states(drawn.game):
            joint = drawn.weights * reaches(state)
            if joint.sum() > 0.0:
                posterior = drawn.mixture.posterior(state, player)
                assert posterior == pytest.approx(joint / joint.sum(), abs=1e-12)


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


def test_states_may_come_in_any_order_and_in_batches():
    drawn = case(2)
    states, one, forgetful = decision_states(drawn.game), drawn.mixture, drawn.mixture
    expected = [one.action_probabilities(state) for state in states]
    assert drawn.mixture.action_probabilities_batch(states) == expected
    assert drawn.mixture.action_probabilities_batch(states[::-1])[::-1] == expected
    for state, row in zip(states, expected, strict=True):
        forgetful._forget()
        assert forgetful.action_probabilities(state) == row


def test_mixtures_of_mixtures():
    drawn = case(2)
    opponents = [*drawn.opponents[:2], random_policy(77)]
    inner = MixturePolicy(opponents[:2], [1, 3])
    outer = MixturePolicy([inner, opponents[2]], [4, 6])
    assert outer.weights == pytest.approx([0.1, 0.3, 0.6])
    flat = MixturePolicy(opponents, [1, 3, 6])
    for state in decision_states(drawn.game):
        assert outer.action_probabilities(state) == pytest.approx(flat.action_probabilities(state))


def test_a_draw_at_each_move_is_the_average():
    drawn = case(4)
    mixture = MixturePolicy(drawn.opponents, drawn.weights, "move")
    for state in decision_states(drawn.game):
        rows = [policy(state) for policy in drawn.opponents]
        for action, p in mixture.action_probabilities(state).items():
            assert p == pytest.approx(drawn.weights @ [row[action] for row in rows])
        assert mixture.posterior(state, 0) == pytest.approx(drawn.weights)


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
        ("mixture(a=mixture,per=move)", "expected components .* to depend on no history"),
    ):
        with pytest.raises(ValueError, match=words):
            make_policy(game, wrong)


# -- trees --------------------------------------------------------------------------------------------


def test_every_set_is_worth_what_it_is_where_chance_draws_the_opponent(cases):
    """Played out with the mixture as a policy; and the best one of them is what the tree finds."""
    for seed in range(cases(100)):
        drawn = case(seed)
        game, player = drawn.game, drawn.player
        sets = books.all_sets(game, player)
        explicit = drawn.weights @ drawn.utilities(sets)
        pair = drawn.seated(drawn.mixture.action_probabilities)
        behavioral = books.own_utilities(game, player, sets, (drawn.pre, drawn.pre), pair)
        assert behavioral == pytest.approx(explicit, abs=1e-12), seed
        penalty = float(10.0 ** -(1 + seed % 3))
        best = (explicit - penalty * np.array(list(map(len, sets)))).max()
        found = drawn.best(penalty)
        assert found.value == pytest.approx(best, abs=1e-9), seed
        chosen = frozenset(
            books.information_state(game, found.tree.state(state.history), player) for state in found.states()
        )
        each = value_against_components(found)
        assert each == pytest.approx(drawn.utilities([chosen])[:, 0], abs=1e-9), seed
        assert drawn.weights @ each == pytest.approx(found.utility, abs=1e-9), seed


@pytest.mark.parametrize("seed", range(6))
def test_menus(seed):
    drawn = case(2 * seed)
    drawn.pre = random_menu(seed)
    choices = books.all_choices(drawn.game, drawn.player, drawn.pre, 3000)
    assert choices
    sizes = np.array(list(map(len, choices)))
    found = drawn.best(0.02)
    best = (drawn.weights @ drawn.utilities(choices) - 0.02 * sizes).max()
    assert found.value == pytest.approx(best, abs=1e-9)
    rows = {str(found.tree.actions(s.history)): found.tree.memorized_row(s.entry) for s in found.states()}
    assert value_against_components(found) == pytest.approx(drawn.utilities([rows])[:, 0], abs=1e-9)


class Transposing:
    """Policies and values of a board game by the board alone, and how often each board is asked about."""

    def __init__(self, seed):
        self.seed, self.asked = seed, []

    def row(self, state):
        rng = np.random.default_rng([self.seed, *str(state).encode()])
        legal = state.legal_actions()
        odds = rng.dirichlet(np.full(len(legal), 0.4))
        if len(legal) > 1 and rng.random() < 0.3:  # some moves are never played
            odds[rng.integers(len(legal))] = 0.0
        return dict(zip(legal, (odds / odds.sum()).tolist(), strict=True))

    def action_probabilities_batch(self, states):
        self.asked += [str(state) for state in states]
        return [self.row(state) for state in states]

    def evaluate_batch(self, states):
        self.asked += [str(state) for state in states]
        return [float(np.random.default_rng([self.seed, *str(s).encode()]).uniform(-1, 1)) for s in states]


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


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("how", VALUED)
def test_histories_that_transpose_are_mixed_by_their_own_posteriors(player, how):
    weights = np.array([1, 2, 3]) / 6
    opponents, given = [Transposing(10 + k) for k in range(3)], VALUED[how]()
    board = Case(pyspiel.load_game(BOARD), player, Transposing(1), Transposing(2), opponents, weights)
    one = board.best(0.003, position_key=str, **given)
    if how not in ("exact", "two kinds"):  # whose leaves are played on from, level by level
        values = given["leaf_value"]
        for asked in [*opponents, *(values if isinstance(values, list) else [values])]:
            assert len(asked.asked) - len(set(asked.asked)) <= 40  # spot checks of the key ask again
    other = board.best(0.003, **VALUED[how]())
    shared, apart = one.tree, other.tree
    assert shared.num_positions < (1.0 if how == "cut by values" else 0.8) * shared.num_histories
    for name in ("parent", "action", "infoset", "sigma", "sigma_pre", "value"):
        assert getattr(shared, name) == pytest.approx(getattr(apart, name), abs=1e-12, nan_ok=True)
    positions = {}
    for h in np.flatnonzero(shared.player == 1 - player):
        row = tuple(np.round(shared.sigma[shared.children(h)], 9))
        positions.setdefault(shared.position[h], set()).add(row)
    # Equal positions, played differently.
    assert how == "cut by values" or any(len(rows) > 1 for rows in positions.values())
    assert one.value == pytest.approx(other.value, abs=1e-12)
    each = value_against_components(one)
    assert each == pytest.approx(value_against_components(other), abs=1e-12)
    assert weights @ each == pytest.approx(one.utility, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_leaf_value_for_each_component(seed):
    """Stopping is evaluated on the spot, and worth what it is against whom chance has drawn."""
    drawn = case(2 * seed)
    values = [random_evaluation(k) for k in range(len(drawn.opponents))]
    sets = books.all_sets(drawn.game, drawn.player)
    brute = max(drawn.weights @ drawn.utilities(sets, values) - 0.02 * np.array(list(map(len, sets))))
    for truncate in ("none", "reach", "values"):
        found = drawn.best(0.02, **_evaluated(values, truncate=truncate))
        assert found.value == pytest.approx(brute, abs=1e-9), truncate
        chosen = frozenset(str(list(state.actions)) for state in found.states())
        each = drawn.utilities([chosen], values)[:, 0]
        assert value_against_components(found) == pytest.approx(each, abs=1e-9), truncate


@pytest.mark.parametrize("seed", range(4))
def test_certified_searches_agree_with_the_tree(seed):
    drawn, value = case(2 * seed), random_evaluation(seed)
    given = drawn.game, drawn.pre, drawn.seated(drawn.mixture)
    found = best_first_precomputation(*given, 0.01, drawn.player, value, gap=0.0)
    assert found.lower == pytest.approx(drawn.best(0.01, **_evaluated(value)).value, abs=1e-9)
    sampled = certified_precomputation(*given, 0.05, drawn.player, epsilon=0.3, seed=seed)
    assert sampled.lower - 1e-9 <= drawn.best(0.05).value <= sampled.upper + 1e-9


def test_certified_searches_do_not_share_what_a_mixture_plays():
    game = pyspiel.load_game(BOARD)
    mixture = MixturePolicy([Transposing(10 + k) for k in range(3)], [1, 2, 3], position_key=str)
    arguments = (game, Transposing(1), (None, mixture), 0.003, 0, Transposing(50))
    shared = best_first_precomputation(*arguments, gap=0.0, position_key=str)
    apart = best_first_precomputation(*arguments, gap=0.0)
    board = Case(game, 0, Transposing(1), None, [], None)
    exact = board.best(0.003, mixture=mixture, **_evaluated(Transposing(50)))
    assert shared.lower == pytest.approx(apart.lower, abs=1e-12)
    assert shared.lower == pytest.approx(exact.value, abs=1e-12)


def test_rollouts_of_each_component():
    drawn = case(2)
    found = drawn.best(0.01, leaf_value=RolloutValues(games=20_000))
    assert found.utility == pytest.approx(drawn.best(0.01).utility, abs=0.05)
    assert drawn.weights @ value_against_components(found) == pytest.approx(found.utility, abs=1e-12)


def test_who_memorizes_is_no_mixture():
    game = pyspiel.load_game("kuhn_poker")
    mixture, plain = make_policy(game, "mixture(a=uniform,b=cfr(iterations=3))"), make_policy(game, "uniform")
    refused = r"from_game\(\): expected sigma\[0\] to be no mixture .* memorizes: what it has by heart"
    for sigma, penalties in ((mixture, 0.1), ((mixture, plain), (0.1, math.inf)), (mixture, (0.1, math.inf))):
        with pytest.raises(ValueError, match=refused):
            HistoryTree.from_game(game, sigma_pre=plain, sigma=sigma, penalties=penalties)
    with pytest.raises(ValueError, match=r"expected sigma_pre\[0\] to be no mixture"):
        HistoryTree.from_game(game, sigma_pre=mixture, sigma=plain, penalties=0.1)
    with pytest.raises(ValueError, match="at most one player"):
        HistoryTree.from_game(game, sigma_pre=plain, sigma=mixture, penalties=math.inf)
    by_move = make_policy(game, "mixture(a=uniform,b=cfr(iterations=3),per=move)")
    HistoryTree.from_game(game, sigma_pre=by_move, sigma=by_move, penalties=0.1)
    board = pyspiel.load_game("tic_tac_toe")
    mixture = make_policy(board, "mixture(a=uniform,b=random)")
    for pre, sigma in ((plain, (mixture, plain)), (mixture, (plain, plain))):
        with pytest.raises(ValueError, match=r"best_first_precomputation\(\): expected sigma.*no mixture"):
            best_first_precomputation(board, pre, sigma, 0.1, 0, lambda state: 0.0)


def test_trees_without_components():
    drawn = case(2)
    with pytest.raises(ValueError, match="expected one leaf_value, or one for each of"):
        drawn.tree(0.1, leaf_value=["exact"])
    plain = drawn.best(0.1, mixture=drawn.opponents[0])
    assert plain.tree.mixture is None
    with pytest.raises(ValueError, match="expected a tree whose opponent is a MixturePolicy"):
        value_against_components(plain)


def test_mixtures_travel():
    game = pyspiel.load_game("kuhn_poker")
    mixture = make_policy(game, "mixture(a=uniform,b=random)")
    state = game.new_initial_state().child(0).child(1)
    row = mixture.action_probabilities(state)
    assert pickle.loads(pickle.dumps(mixture)).action_probabilities(state) == row
    best = Case(game, 0, *mixture.policies, [], None).best(0.01, mixture=mixture)
    found = pickle.loads(pickle.dumps(best))
    assert value_against_components(found) == pytest.approx(value_against_components(best))
