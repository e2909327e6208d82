"""Bounds on the size of sets worth memorizing: Lemmas 1 and 3, generalized, and what repairs them.

Here L is the length of the longest history (moves of chance counted), R the range of utilities, W_i what
player i may memorize (`HistoryTree`), and turns_j(d) the most turns of j among the first d moves of a play.

Lemma 1. Histories of one length exclude each other, so their reaches under one profile sum to at most 1: at
most 1/p of a length, and (L + 1)/p in all, have reach p. Against a fixed opponent the reach of W_i is one
profile's, so |W_i| <= (R / lambda_i) x (lengths at which i can be to move).

Lemma 3. An opponent who prepares has, on the way to a history of length d, memorized none, one, ..., or all
of at most turns_j(d) turns: 1 + turns_j(d) profiles, each with Lemma 1's bound. So

    |W_i| <= (R / lambda_i) sum of 1 + turns_j(d) over the lengths d at which i can be to move,

which is at most (R / lambda_i) (L + 1)(L + 2) / 2. The paper has (L + 2)^2 / lambda_i, for R = 1, and sets p
to the wrong player's penalty on the way.

Menus. With K_i entries at most, a number from 1 to K_i for each of i's turns on the way picks a profile, and
each history is come to under one of these. So Lemma 1's bound is multiplied by K_i^turns_i(d), length by
length. A rival who has memorized s turns has done so in one of K_j^s ways:

    |W_i| <= (R / lambda_i) sum over d of K_i^turns_i(d) (1 + K_j + K_j^2 + ... + K_j^turns_j(d)),

of which Lemma 3's is the case of one entry each.

Imperfect information. The bound of an information state is a sum over its histories, and the largest of some
non-negative numbers is at most their sum, so the bounds are the same ones, for information states. Their
histories are not bounded by any of this: one information state may hold any number.

Sizes of optima. The paper bounds an optimal set by Lemma 1, |S| <= (L + 1) / lambda. More is true, since a
best response is worth at least what stopping at once is: lambda_i |S_i| <= R. In a profile (x, y),

    lambda_0 E|S_0| + lambda_1 E|S_1| <= u(x, nobody) - u(nobody, y) + NashConv <= R + NashConv,

by adding what each loses against stopping at once; u(x, y) cancels.
"""

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import Menu
from precomp_games.algorithms import MetaStrategy, best_precomputation, meta_equilibrium, meta_exploitability
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.books import states
from tests.oracles.games import (
    SEEDS,
    EfgText,
    expand,
    games,
    kuhn_poker,
    named_by,
    random_menu,
    settings,
    sides,
)
from tests.properties import examples

_ROUNDING = 1.0 + 1e-8


class _Shape:
    """The quantities of a game in the bounds, by a walk of its states.

    longest: L. lengths[i]: the lengths at which i can be to move. turns[i][d]: see above.
    gap[i]: the most histories below the start or a turn of i's, up to i's next turns and these included.
    """

    def __init__(self, game):
        self.longest, self.lengths = 0, (set(), set())
        self.turns = (collections.defaultdict(int), collections.defaultdict(int))
        self.gap = [self._below(game.new_initial_state(), i) for i in (0, 1)]
        for state in states(game):
            movers, player = [step.player for step in state.full_history()], state.current_player()
            self.longest = max(self.longest, len(movers))
            for i in (0, 1):
                self.turns[i][len(movers)] = max(self.turns[i][len(movers)], movers.count(i))
            if player >= 0:
                self.lengths[player].add(len(movers))
                self.gap[player] = max(self.gap[player], self._below(state, player))

    def _below(self, state, player):
        if state.is_terminal():
            return 0
        children = [state.child(action) for action in state.legal_actions()]
        return len(children) + sum(
            self._below(child, player) for child in children if child.current_player() != player
        )

    def lemma_1(self, player, entries=1):
        """Lemma 1's bound on |W_i| for R = lambda_i, with at most so many entries on i's menus."""
        return sum(entries ** self.turns[player][length] for length in self.lengths[player])

    def lemma_3(self, player, entries=(1, 1)):
        """Lemma 3's bound on |W_i| for R = lambda_i, with at most so many entries on the players' menus."""
        own, rival = entries[player], entries[1 - player]
        return sum(
            own ** self.turns[player][length]
            * sum(rival**turns for turns in range(1 + self.turns[1 - player][length]))
            for length in self.lengths[player]
        )


def _sizes(tree):
    return [int((tree.infoset_player == i).sum()) for i in (0, 1)]


def _range(game):
    return game.max_utility() - game.min_utility()


_CASES = settings(games(depth=6, actions=2) | games() | st.builds(kuhn_poker))
_PENALTIES = st.tuples(*[st.floats(0.003, 3.0) | st.just(math.inf)] * 2)


# -- Lemmas 1 and 3 --------------------------------------------------------------------------------------


@examples(480)
@given(_CASES, _PENALTIES, st.tuples(st.integers(1, 3), st.integers(1, 3)), SEEDS)
def test_what_may_be_memorized(case, penalties, entries, seed):
    game, pre, sigma = case
    shape = _Shape(game)
    longest = shape.longest
    for i in (0, 1):
        assert shape.lemma_1(i) <= shape.lemma_3(i) <= (longest + 1) * (longest + 2) / 2
    if max(entries) > 1:
        pre = tuple(random_menu(seed + i, entries[i], named_by(game)) for i in (0, 1))
    both = expand(game, pre, sigma, penalties)
    for i in (0, 1):
        ratio = _range(game) / penalties[i] * _ROUNDING
        alone = expand(game, pre, sigma, sides(i, penalties[i], math.inf))
        assert _sizes(alone)[i] <= ratio * shape.lemma_1(i, entries[i])
        assert _sizes(both)[i] <= ratio * shape.lemma_3(i, entries)
    # A history belongs to the tree if everything that one of the players had to memorize on the way could be:
    # it lies below the start or an element of W_i, with no turn of i's between.
    turns = [int(((both.infoset >= 0) & (both.player == i)).sum()) for i in (0, 1)]
    assert both.infoset_keys is not None or turns == _sizes(both)
    assert both.num_histories <= 1 + sum(shape.gap[i] * (1 + turns[i]) for i in (0, 1))
    assert both.work["leaf_evaluations"] <= both.num_histories


def _alternating(rounds):
    """Players 1 and 0 take turns with two actions each, seeing everything; utilities in [-1/2, 1/2]."""
    text, numbers = EfgText(), [0, 0]

    def walk(length, bits):
        if length == 2 * rounds:
            text.leaf((bits.bit_count() % 2) - 0.5)
            return
        player = 1 - length % 2
        numbers[player] += 1
        text.move(player + 1, numbers[player], "01")
        walk(length + 1, 2 * bits)
        walk(length + 1, 2 * bits + 1)

    walk(0, 0)
    return text.game()


@pytest.mark.parametrize("rounds", [1, 2, 4, 5])
def test_lemma_3_is_attained_and_lemma_1_is_not_enough(rounds):
    # Memorized play is 1 and computed play is 0, so each time to stop leads the opponent elsewhere, and for
    # certain. What is reachable for some time to stop grows with the square of the length.
    game = _alternating(rounds)
    shape = _Shape(game)
    tree = expand(game, lambda state: {1: 1.0}, lambda state: {0: 1.0}, 1.0)
    assert tree.utility_range == 1.0
    assert _sizes(tree) == [shape.lemma_3(0), shape.lemma_3(1)]
    assert _sizes(tree) == [rounds * (rounds + 3) // 2, rounds * (rounds + 1) // 2]
    assert _sizes(tree)[0] <= (shape.longest + 2) ** 2  # as the paper has it
    if rounds >= 4:
        assert _sizes(tree)[0] > shape.longest + 1


# -- menus -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_lemma_1_with_menus_is_attained(rounds):
    # With both actions on the menu, a player comes for certain to whatever it has chosen.
    game = _alternating(rounds)
    shape = _Shape(game)
    menu, sigma = Menu(lambda state: [0, 1]), lambda state: {0: 1.0}
    alone, both = (expand(game, menu, sigma, (1.0, other)) for other in (math.inf, 1.0))
    assert _sizes(alone) == [shape.lemma_1(0, 2), 0] == [2**rounds - 1, 0]
    assert _sizes(both)[0] == sum(2**turn * 2 ** (turn + 1) for turn in range(rounds))  # all there are
    assert all(size <= shape.lemma_3(i, (2, 2)) for i, size in enumerate(_sizes(both)))


# -- sizes of optima -------------------------------------------------------------------------------------


@examples(240)
@given(_CASES, _PENALTIES)
def test_optimal_sets_cost_at_most_the_range(case, penalties):
    game, tree = case[0], expand(*case, penalties)
    for i in (0, 1):
        best = best_precomputation(tree, i)
        assert best.size == 0 or best.size * penalties[i] <= best.utility - best.unprepared + 1e-9
        assert best.size <= _range(game) / penalties[i] * _ROUNDING
        # Every state of an optimal set is reached often enough (section 4, observation 1, with R).
        for state in best.states():
            assert state.reach * _range(game) >= penalties[i] * (1.0 - 1e-8)


def _spent(tree, found, i):
    return found.sizes[i] * tree.penalties[i] if found.sizes[i] else 0.0


@examples(240)
@given(_CASES, _PENALTIES, SEEDS)
def test_equilibria_spend_at_most_the_range(case, penalties, seed):
    game, tree = case[0], expand(*case, penalties)
    nobody = tuple(MetaStrategy(tree, i, np.zeros(tree.num_infosets)) for i in (0, 1))
    rng = np.random.default_rng(seed)
    at_random = np.where(np.isfinite(penalties)[tree.infoset_player], rng.random(tree.num_infosets), 0.0)
    profiles = {
        "lp": meta_sequence_form_lp(tree).strategies,
        "cfr+": meta_equilibrium(tree, iterations=20, check_every=20).strategies,
        "random": tuple(MetaStrategy(tree, i, at_random) for i in (0, 1)),
    }
    for name, (x, y) in profiles.items():
        found = meta_exploitability(tree, (x, y))
        alone = meta_exploitability(tree, (x, nobody[1])).utility
        answered = meta_exploitability(tree, (nobody[0], y)).utility
        spent = [_spent(tree, found, i) for i in (0, 1)]
        assert spent[0] <= found.utility - answered + found.incentives[0] + 1e-9
        assert spent[1] <= alone - found.utility + found.incentives[1] + 1e-9
        assert sum(spent) <= alone - answered + found.nash_conv + 1e-9
        assert sum(spent) <= _range(game) + found.nash_conv + 1e-9
        if name == "lp":
            # Each set that an equilibrium mixes is a best response, so none is larger.
            for i, strategy in enumerate((x, y)):
                for probability, members in strategy.mixture():
                    assert probability < 1e-6 or len(members) <= _range(game) / penalties[i] * _ROUNDING


@examples(120)
@given(_CASES, _PENALTIES)
def test_iterations_of_plain_cfr(case, penalties):
    # Regret matching's bound, summed over information states: D(I) / sqrt(T) each. Memorizing and stopping at
    # I differ by at most D(I): R, and lambda for I and each that follows it. The paper has |W| / sqrt(T) a
    # player, for R = 1 and without the penalties, which are utilities, too. Updating in turn adds one term
    # over T.
    #
    # A bound need not depend on the penalties: R times the reach of I will do for R. Reaches sum to at most
    # Lemma 3's sum s_i, lambda |W_i| is at most R s_i, and none of W_i follows more than T_i, the turns of i.
    # So D sums to R s_i (1 + T_i) at most, and plain CFR needs O(R^2 L^6 / epsilon^2) iterations, whatever
    # |W|, of which Theorem 4 has the square.
    game, tree = case[0], expand(*case, penalties)
    shape, full = _Shape(game), _range(game)
    sums = [shape.lemma_3(i) for i in (0, 1)]
    turns = [max(shape.turns[i].values()) for i in (0, 1)]
    largest = [full * sum(s * (1 + t) for s, t in zip(sums, turns, strict=True)), 0.0]
    spread = [full * (1 + sum(sums)), full]
    for i in (0, 1):
        following = collections.Counter()
        for infoset in np.flatnonzero(tree.infoset_player == i)[::-1].tolist():
            following[infoset] += 1
            following[int(tree.previous[infoset])] += following[infoset]
        del following[-1]
        largest[1] += sum(full + penalties[i] * count for count in following.values())
        spread[1] += penalties[i] * len(following) if following else 0.0
    for iterations in (1, 10, 100, 1000):
        found = meta_equilibrium(tree, variant="cfr", iterations=iterations, check_every=iterations)
        for most, once in zip(largest, spread, strict=True):
            assert found.nash_conv <= most / math.sqrt(iterations) + once / iterations
