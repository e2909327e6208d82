"""Entropy bounds: Definition 3 against recursion over states, the theorems on every game tried."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games.algorithms import MetaStrategy, best_precomputation, meta_equilibrium
from precomp_games.algorithms.preparation.entropy_bounds import EntropyBounds, _loss, lines_needed
from tests.oracles import books
from tests.oracles.games import EfgText, expand, first, random_menu, random_policy, random_tree, sides
from tests.oracles.preparation import TINY, one_sided, preparations
from tests.properties import examples

# -- Lemma 2 ---------------------------------------------------------------------------------------------


def _entropy(p) -> float:
    p = p[p > 0.0]
    return max(0.0, float(-(p * np.log(p)).sum()))


@examples(800)
@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=60), st.floats(0.3, 12.0), st.floats(0.001, 0.999))
@example([1.0, 1.0], 1.0, 0.01)  # that takes 0.01 * 2^(1 / 0.99) = 0.02 lines: none, without the ceiling
def test_lemma_2(weights, power, mass):
    p = np.sort(np.array(weights) ** power)[::-1]
    p /= p.sum()
    z = lines_needed(_entropy(p), mass)
    assert p[: int(min(z, len(p)))].sum() >= mass - 1e-12


@examples(800)
@given(st.floats(0.0, 20.0), st.integers(1, 10**6))
def test_the_loss_that_so_many_lines_are_made_for(entropy, z):
    epsilon = _loss(entropy, z)
    assert lines_needed(1000.0, 0.9) == math.inf and lines_needed(0.0, 0.5) == 1.0
    assert 0.0 < epsilon < 1.0 and lines_needed(entropy, 1.0 - epsilon) <= z
    if entropy > 1e-6:
        assert lines_needed(entropy, 1.0 - epsilon * (1.0 - 1e-9)) >= z


# -- Definition 3 ----------------------------------------------------------------------------------------


def _lines(setting, v, played):
    """{history: reach} of the advantage lines, by recursion over the base game's states."""
    player, found = setting.player, {}
    mixed = sides(player, setting.pre[player], played[1 - player])

    def walk(state, reach):
        own = state.is_terminal() or state.current_player() == player
        if own and books.play_value(state, played, player) >= v:
            found[tuple(state.history())] = reach
        elif not state.is_terminal():
            mover = state.current_player()
            row = dict(state.chance_outcomes()) if mover < 0 else mixed[mover](state)
            for action, p in row.items():
                if p > 0.0:
                    walk(state.child(action), reach * p)

    walk(setting.game.new_initial_state(), 1.0)
    return found


def _settings(depth):
    return preparations("perfect", menu=False, depth=depth, least=depth - 1, fewest=0)


@examples(240)
@given(_settings(4), st.sampled_from(("backup", "evaluate", "strategy")))
def test_the_distribution_against_recursion(setting, against):
    """Both meanings of stopping, and a strategy of the opponent's in place of its sigma."""
    player, rival, played = setting.player, None, setting.sigma
    if against == "strategy":
        tree = setting.tree(0.01, rival=0.01, truncate="none")
        drawn = np.random.default_rng(setting.seed).choice([0.0, 0.3], tree.num_entries)
        rival = MetaStrategy(tree, 1 - player, drawn)
        played = setting.against(rival.policy().action_probabilities).sigma
    else:
        tree = setting.tree(truncate="none", stop_value=against)
    bounds = EntropyBounds(tree, player, opponent=rival)
    for v in bounds.thresholds(6):
        v = float(v) - 1e-9  # sums in another order are off by rounding
        expected = {h: p for h, p in _lines(setting, v, played).items() if p > 0.0}
        lines = bounds.lines(v)
        got = {tuple(tree.actions(h)): p for h, p in zip(lines.histories, lines.reach, strict=True)}
        assert got == pytest.approx(expected, abs=1e-12)
        assert lines.p_norm == pytest.approx(sum(expected.values()))
        p = np.array(list(expected.values())) / sum(expected.values())
        assert lines.entropy == pytest.approx(_entropy(p), abs=1e-9)
        assert (lines.worth >= v).all()


def test_an_advantage_nobody_has_and_menus_that_are_refused():
    tree = one_sided(random_tree(1), 0, random_policy(1), random_policy(2), 0.01)
    lines = EntropyBounds(tree, 0).lines(5.0)
    assert len(lines.histories) == 0 and lines.p_norm == 0.0 and lines.entropy == 0.0
    made = EntropyBounds(tree, 0).construct(5.0, 0.5)
    assert made.size == 0 and made.utility == pytest.approx(best_precomputation(tree, 0).unprepared)
    tree = one_sided(random_tree(1), 0, random_menu(1), random_policy(2), 0.01)
    with pytest.raises(ValueError, match=r"EntropyBounds\(\): expected sigma_pre of player 0 to be a policy"):
        EntropyBounds(tree, 0)


# -- Theorem 1 -------------------------------------------------------------------------------------------


def _names(tree, player, made, lines):
    """Return the player's information states on the first lines of a construction."""
    found = set()
    for line in lines.histories[: made.lines].tolist():
        while line:
            line = int(tree.parent[line])
            if tree.player[line] == player and tree.infoset[line] >= 0:
                found.add(int(tree.infoset[line]))
    return sorted(found)


@examples(160)
@given(_settings(5), st.sampled_from((TINY, 0.001, 0.05, 0.2)), st.sampled_from(("backup", "evaluate")))
def test_theorem_1(setting, penalty, stop_value):
    """A construction is as small and as good as promised, and no better than the optimum.

    The best bound is at least what is promised at v = u^sigma, whichever other v are tried.
    """
    player, near = setting.player, 1e-9
    tree = setting.tree(penalty, truncate="none" if penalty == TINY else "reach", stop_value=stop_value)
    bounds, best = EntropyBounds(tree, player), best_precomputation(tree, player)
    assert bounds.moves <= setting.game.max_game_length() + 5  # chance moves count

    def promised(made):
        return made.utility_bound - penalty * made.size_bound

    for v in bounds.thresholds(8):
        for epsilon in (0.01, 0.1, 0.5, 0.9, 0.99):
            made = bounds.construct(float(v), epsilon)
            assert made.size <= made.size_bound
            assert made.utility >= made.utility_bound - near
            assert made.utility <= best_precomputation(tree, player, budget=made.size).utility + near
    assert made.memorization_set.tolist() == _names(tree, player, made, bounds.lines(float(v)))
    assert made.utility == pytest.approx(setting.worth(tree, made.memorization_set), abs=near)
    bound, made = bounds.best_bound(penalty), bounds.best_construction(penalty)
    assert promised(bound) <= bound.utility - penalty * bound.size + near
    assert made.utility - penalty * made.size <= best.value + near
    least = promised(bounds.best_bound(penalty, count=2))
    for epsilon in (0.05, 0.5, 0.95):
        assert least >= promised(bounds.construct(bounds.unprepared, epsilon)) - near
    assert len(bounds.thresholds(2)) <= 3


# -- Theorem 2 -------------------------------------------------------------------------------------------


def _sure_win(replies, rounds):
    """Player 0 answers each of player 1's moves rightly or wrongly, and wins 1 iff never wrongly."""
    text, one, two = EfgText(), itertools.count(1), itertools.count(1)

    def walk(left):
        if not left:
            text.leaf(1, 0)
            return
        text.move(2, next(two), range(replies))
        for _ in range(replies):
            text.move(1, next(one), ["right", "wrong"])
            walk(left - 1)
            text.leaf(0, 1)

    walk(rounds)
    return text.game()


def _policy(right, weights):
    """Player 0 is right with some probability, player 1 replies by weights."""
    rows = [right, 1.0 - right], (weights / weights.sum()).tolist()
    return lambda state: dict(zip(state.legal_actions(), rows[state.current_player()], strict=True))


@pytest.mark.parametrize(
    ("replies", "rounds", "penalty", "own_penalty"),
    [(12, 2, 1e-3, 1.0), (6, 4, 1e-5, 0.5), (8, 4, 2e-4, 1.0)],
)
def test_theorem_2_in_equilibrium(replies, rounds, penalty, own_penalty):
    """sigma_pre always wins; sigma of player 0 is right half the time, player 1's is nearly uniform."""
    tree = expand(
        _sure_win(replies, rounds),
        first,
        _policy(0.5, 1.0 / (1.0 + 0.2 * np.arange(replies))),
        (penalty, own_penalty),
        truncate="none",
    )
    found = meta_equilibrium(tree, iterations=300, target_nash_conv=1e-4)
    rival = found.strategies[1]
    bounds = EntropyBounds(tree, 0, opponent=rival)
    value = min(1.0, found.value + found.nash_conv)  # the equilibrium's is at most that
    own = best_precomputation(tree, 0, opponent=rival).value
    assert own <= value + 1e-9
    stated = proven = 0
    for v in np.linspace(0.0, 0.999, 40):
        lines = bounds.lines(float(v))
        assert lines.p_norm == pytest.approx(1.0)  # it always wins in the end
        if v > value + 0.01:
            bound = bounds.theorem_2_bound(value, float(v), penalty)
            assert lines.entropy >= bound
            stated += bound > 0.0
        bound = bounds.entropy_lower_bound(own, float(v), penalty)
        assert lines.entropy >= bound
        proven += bound > 0.0
    if rounds == 4:
        assert stated > 0 and proven > 0  # the cases that the test is about


def test_theorem_2_says_nothing_where_it_does_not_speak():
    # Two negative factors: nothing is lacking, and lambda L is beyond e^-5. Their product was 5.35.
    bounds = EntropyBounds(one_sided(_sure_win(2, 5), 0, first, _policy(0.5, np.ones(2))), 0)
    assert bounds.moves == 10
    for value, v, penalty in ((0.9, 0.1, 0.5), (0.9, 0.1, 1e-6), (0.1, 0.9, 0.5)):
        assert bounds.theorem_2_bound(value, v, penalty) == 0.0
    assert bounds.theorem_2_bound(0.1, 0.9, 1e-6) == pytest.approx(0.79 * (5.0 * math.log(10.0) - 5.0))


_EASY = {"replies": (2, 9), "rounds": (1, 4), "power": 3.0, "penalty": (-6.0, 0.0)}
_LARGE = {"replies": (10, 15), "rounds": (3, 3), "power": 0.5, "penalty": (-4.5, -3.0)}


@examples(80)
@given(st.data(), st.sampled_from((1.0, 0.999, 0.99, 0.9)), st.sampled_from((_EASY, _LARGE)))
def test_the_bounds_never_exceed_the_true_entropy(data, right, kind):
    """Games that sigma_pre wins surely, or nearly so: all v and penalties. Theorem 2 is on the former.

    It takes many lines and cheap memory to make the theorem speak.
    """
    replies, rounds = (data.draw(st.integers(*kind[name])) for name in ("replies", "rounds"))
    power, half = data.draw(st.floats(0.0, kind["power"])), data.draw(st.floats(0.05, 0.95))
    tree = one_sided(
        _sure_win(replies, rounds),
        0,
        _policy(right, np.ones(replies)),
        _policy(half, np.arange(1.0, replies + 1.0) ** -power),
        10.0 ** data.draw(st.floats(*kind["penalty"])),
        truncate="none",
    )
    bounds, best = EntropyBounds(tree, 0), best_precomputation(tree, 0)
    for v in (*bounds.thresholds(8), *np.linspace(0.03, 0.99, 6)):
        v = min(float(v), 1.0)
        lines = bounds.lines(v)
        assert 0.0 <= bounds.entropy_lower_bound(best.value, v, best.penalty) <= lines.entropy
        if right == 1.0:
            assert lines.p_norm == pytest.approx(1.0)
            assert 0.0 <= bounds.theorem_2_bound(best.value, v, best.penalty) <= lines.entropy


@examples(240)
@given(_settings(6), st.sampled_from((1e-4, 1e-3, 1e-2)), st.booleans())
def test_the_general_bound_on_any_game(setting, penalty, equilibrium):
    player, tree = setting.player, setting.tree(penalty, rival=0.02)
    rival = meta_equilibrium(tree, iterations=100).strategies[1 - player] if equilibrium else None
    bounds = EntropyBounds(tree, player, opponent=rival)
    value = best_precomputation(tree, player, opponent=rival).value
    for v in bounds.thresholds(10):
        lines = bounds.lines(float(v))
        assert lines.entropy >= bounds.entropy_lower_bound(value, float(v), penalty)
