"""Pruning: the truncation keeps Lemma 3's W, and branch and bound on evaluated stops loses nothing."""

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles import books
from tests.oracles.books import play_value
from tests.oracles.games import (
    SEEDS,
    expand,
    first,
    games,
    kuhn_poker,
    last,
    penalties,
    policy_pairs,
    random_evaluation,
    random_tree,
    settings,
    sides,
)
from tests.oracles.meta_games import names_in
from tests.oracles.trees import efg
from tests.properties import examples

# -- the truncation --------------------------------------------------------------------------------


def _lemma_3(game, pre, sigma, penalties):
    """Return (histories, W) of a perfect-information game, each history by itself, from states.

    A history is in W_i if all of i's own turns before it are, and some opponent, who memorizes the first t
    of its own turns on the way (each in its own W), makes chance * i's sigma_pre * the opponent's play,
    times R, at least lambda_i.
    """
    utility_range = game.max_utility() - game.min_utility()
    histories, kept = set(), set()

    def walk(state, chance, stopped, going):
        """stopped[i]: reaches by i, for each turn at which it may have stopped; going[i]: if it never did."""
        name, mover = tuple(state.history()), state.current_player()
        histories.add(name)
        memorizing = False
        for i in (0, 1):
            reach = chance * going[i] * max([*stopped[1 - i], going[1 - i]])
            if math.isfinite(penalties[i]) and reach * utility_range >= penalties[i]:
                memorizing = True
                if mover == i:
                    kept.add(name)
        if state.is_terminal() or not memorizing:
            return
        if state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), chance * p, stopped, going)
            return
        computed, memorized = sigma[mover](state), pre[mover](state) if name in kept else {}
        for action in state.legal_actions():
            p, q = computed.get(action, 0.0), memorized.get(action, 0.0)
            if p > 0.0 or q > 0.0:
                ways = [reach * p for reach in (*stopped[mover], going[mover])]
                later = sides(mover, ways, stopped[1 - mover])
                walk(state.child(action), chance, later, sides(mover, going[mover] * q, going[1 - mover]))

    walk(game.new_initial_state(), 1.0, ([], []), (1.0, 1.0))
    return histories, kept


def test_w_is_lemma_3s():
    seen = collections.Counter()

    @examples(240)
    @given(settings(kind="perfect", depth=5), penalties())
    def holds(case, penalties):
        game, pre, sigma = case
        tree = expand(game, pre, sigma, penalties)
        histories, kept = _lemma_3(game, pre, sigma, penalties)
        assert {tuple(tree.actions(h)) for h in range(tree.num_histories)} == histories
        assert {tuple(tree.actions(h)) for h in np.flatnonzero(tree.infoset >= 0)} == kept
        whole = expand(game, pre, sigma, penalties, truncate="none")
        seen.update(kept=bool(kept), cut=tree.num_infosets < whole.num_infosets)

    holds()
    assert min(seen["kept"], seen["cut"]) > 0


def test_every_best_response_lies_in_w():
    seen = collections.Counter()

    @examples(240)
    @given(settings(games(actions=2) | st.builds(kuhn_poker)), penalties(infinite=False), SEEDS)
    def holds(case, penalties, seed):
        game, pre, sigma = case
        tree = expand(game, pre, sigma, penalties)
        for player in (0, 1):
            opponent = 1 - player
            if not books.all_choices(game, player, pre[player], 300):
                continue
            known = names_in(tree, opponent)
            theirs = books.all_choices(game, opponent, pre[opponent], 3000)
            choices = [choice for choice in theirs if choice.keys() <= set(known)]
            for k in np.random.default_rng(seed).permutation(len(choices))[:6]:

                def prepared(state, choice=choices[k], opponent=opponent):
                    name = books.information_state(game, state, opponent)
                    return choice.get(name) or sigma[opponent](state)

                fixed = sides(player, sigma[player], prepared)
                _, _, chosen = books.best_choice(game, player, penalties[player], pre[player], fixed)
                assert chosen.keys() <= set(names_in(tree, player))
                seen.update(used=bool(chosen))

    holds()
    assert seen["used"] > 0


def test_who_never_memorizes_is_not_asked():
    game, (pre, sigma) = random_tree(3, depth=6), policy_pairs(3)
    for i in (0, 1):
        tree = expand(game, sides(i, pre[i], None), sigma, sides(i, 0.01, math.inf))
        assert set(tree.infoset_player.tolist()) == {i}
    never = expand(game, None, sigma, math.inf)
    assert never.num_histories == 1
    assert never.value[0] == pytest.approx(books.play_value(game.new_initial_state(), sigma), abs=1e-12)


def test_utility_range_scales_the_truncation():
    case = random_tree(3, depth=6), *policy_pairs(3)
    default, one, thrice = expand(*case, 0.03), expand(*case, 0.03, utility_range=1.0), expand(*case, 0.09)
    assert (default.utility_range, one.utility_range) == (3.0, 1.0)
    assert one.num_infosets < default.num_infosets
    assert one.parent.tolist() == thrice.parent.tolist()  # only R / lambda matters


def _reopened():
    """Player 1's first turn is met after the chance move (0.1) and, one level further down, else (0.9)."""

    def turn(second):
        return [
            'p "" 1 1 "" { "a" "b" } 0',
            't "" 1 "zero" { 0 0 }',
            f'p "" 1 {second} "" {{ "c" "d" }} 0',
            't "" 2 "lost" { -1 1 }',
            't "" 3 "won" { 1 -1 }',
        ]

    other = 'p "" 2 1 "" { "x" "y" } 0'
    return efg('c "" 1 "" { "s" 0.1 "l" 0.9 } 0', *turn(2), other, *turn(3), 't "" 1 "zero" { 0 0 }')


@pytest.mark.parametrize("penalty", [0.05, 0.15, 0.3, 0.4, 0.6])
def test_an_information_state_is_reopened_for_its_longer_histories(penalty):
    # Its short history is reached with 0.1 < penalty / 2 for the larger penalties. What follows its long one
    # must not be held to that either.
    game = _reopened()

    def sigma(state):
        names = [state.action_to_string(a) for a in state.legal_actions()]
        return {state.legal_actions()[names.index("b") if "b" in names else 0]: 1.0}

    tree = expand(game, last, (sigma, first), (penalty, math.inf))
    value, utility, chosen = books.best_choice(game, 0, penalty, last, (sigma, first))
    best = best_precomputation(tree, 0)
    assert (best.value, best.utility) == (pytest.approx(value), pytest.approx(utility))
    assert chosen.keys() <= set(names_in(tree, 0))
    assert best.size == len(chosen) >= 2
    everything = expand(game, last, (sigma, first), (penalty, math.inf), truncate="none")
    assert tree.num_infosets == (3 if penalty <= 0.2 else 2) <= everything.num_infosets == 3


# -- evaluated stops -------------------------------------------------------------------------------


def _algorithm_1(game, player, penalty, pre, sigma, evaluate):
    """(value, utility, histories) by Algorithm 1 as the paper has it, on states, with nothing left out."""

    def own(utility):
        return utility if player == 0 else 1.0 - utility

    def walk(state, reach):
        if state.is_terminal():
            worth = reach * own(state.returns()[0])
            return worth, worth, frozenset()
        mover = state.current_player()
        if state.is_chance_node():
            edges = state.chance_outcomes()
        else:
            edges = (pre if mover == player else sigma)[mover](state).items()
        below = [walk(state.child(a), reach * p) for a, p in edges if p > 0.0]
        value, utility = sum(b[0] for b in below), sum(b[1] for b in below)
        chosen = frozenset().union(*(b[2] for b in below))
        if mover != player:
            return value, utility, chosen
        stop = reach * own(evaluate(state))
        if value - penalty > stop:
            return value - penalty, utility, chosen | {tuple(state.history())}
        return stop, stop, frozenset()

    return walk(game.new_initial_state(), 1.0)


def _expand(case, evaluate, player, penalty, truncate="values", **options):
    """Return a tree whose stops are evaluated; the player's own sigma is never asked."""
    game, pre, sigma = case
    sigma, costs = sides(player, None, sigma[1 - player]), sides(player, penalty, math.inf)
    options = {"leaf_value": evaluate, "stop_value": "evaluate"} | options
    return expand(game, pre, sigma, costs, truncate=truncate, **options)


def _rows(best):
    return {s.actions: (s.reach, s.gain, s.net_gain) for s in best.states()}


def _same(one, two):
    """Equal in everything that a book has."""
    for name in ("value", "utility", "unprepared"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-12)
    first, second = _rows(one), _rows(two)
    assert first.keys() == second.keys()
    for actions, row in first.items():
        assert row == pytest.approx(second[actions], abs=1e-12)


def test_nothing_is_lost():
    """Nor is it on the tree of smaller penalties."""
    seen = collections.Counter()

    @examples(240)
    @given(
        settings(kind="perfect", depth=6, ties=False),
        st.booleans(),
        st.integers(0, 1),
        st.sampled_from((0.05, 0.01, 0.001, 0.2)),
        SEEDS,
    )
    def holds(case, extreme, player, penalty, seed):
        at_random = random_evaluation(seed)

        def evaluate(state):  # as good or as bad as can be, or in between
            value = at_random(state)
            return value if not extreme else -1.0 if value < 0.5 else 2.0

        game, pre, sigma = case
        value, utility, chosen = _algorithm_1(game, player, penalty, pre, sigma, evaluate)
        trees = [_expand(case, evaluate, player, penalty, cut) for cut in ("values", "reach", "none")]
        books = [best_precomputation(tree, player) for tree in trees]
        for tree, best in zip(trees, books, strict=True):
            tree.check()
            assert (best.value, best.utility) == pytest.approx((value, utility), abs=1e-12)
            assert _rows(best).keys() == chosen
            assert tree.work["histories"] == tree.num_histories <= tree.work["expanded"]
            _same(best, books[0])
        asked, sizes = [tree.work["leaf_evaluations"] for tree in trees], [t.num_histories for t in trees]
        assert asked == sorted(asked) and sizes == sorted(sizes)
        seen.update(memorized=bool(chosen), fewer=asked[0] < asked[1])
        for factor in (1.5, 4.0, 20.0):
            fresh = _expand(case, evaluate, player, factor * penalty)
            later = trees[0].with_penalties(fresh.penalties)
            _same(best_precomputation(later, player), best_precomputation(fresh, player))
            seen.update(smaller=fresh.num_histories < sizes[0])

    holds()
    assert min(seen.values()) > 0  # the comparison is not about empty sets, and the bounds do something


def _one_case():
    return random_tree(8, depth=5), *policy_pairs(8)


def test_a_penalty_made_infinite_leaves_the_player_the_same():
    # The opponent's viewpoint was never expanded: its own edges are those of sigma_pre.
    tree = _expand(_one_case(), random_evaluation(4), 0, 0.01)
    assert tree.num_infosets > 0
    never = tree.with_penalties(math.inf)
    best = best_precomputation(never, 0)
    assert best.size == 0
    assert best.value == pytest.approx(best_precomputation(tree, 0).unprepared, abs=1e-12)
    with pytest.raises(ValueError, match=r"best_precomputation\(\): expected the tree's precomputing player"):
        best_precomputation(never, 1)


def test_the_bounds_know_only_values_that_are_there_at_once():
    # Sampled and exact values come after the expansion: the reach alone decides then.
    options = {"penalties": (0.02, math.inf), "stop_value": "evaluate"}
    trees = [expand(*_one_case(), truncate=truncate, **options) for truncate in ("values", "reach")]
    assert trees[0].num_histories == trees[1].num_histories > 1


def test_positions_shared_and_a_batch_evaluation():
    case, evaluate, calls = _one_case(), random_evaluation(4), []

    class Batch:
        def evaluate_batch(self, states):
            calls.append([tuple(state.history()) for state in states])
            return [evaluate(state) for state in states]

    plain, batch = (_expand(case, how, 0, 0.01) for how in (evaluate, Batch()))
    shared = _expand(case, evaluate, 0, 0.01, position_key=lambda state: tuple(state.history()))
    for other in (batch, shared):
        _same(best_precomputation(plain, 0), best_precomputation(other, 0))
    asked = [history for call in calls for history in call]
    assert len(asked) == len(set(asked)) == batch.work["leaf_evaluations"]
    assert all(len({len(history) for history in call}) == 1 for call in calls)  # a level at a time
    assert len(calls) == len({len(call[0]) for call in calls})  # in one batch


def test_nothing_is_lost_where_both_prepare():
    """Exact evaluations: the meta-game has the same value where evaluated stops ended the tree.

    Of the entries of a menu sigma plays some as well, and other moves too.
    """
    seen = collections.Counter()

    @examples(480)
    @given(settings(kind="perfect", depth=5, menus=True), penalties())
    def holds(case, costs):
        trees = []
        for truncate in ("values", "reach"):
            asked = []

            def evaluate(state, asked=asked):
                asked.append(state)
                return play_value(state, case[2])

            trees.append(expand(*case, costs, leaf_value=evaluate, truncate=truncate))
            trees[-1].check()
            assert len(asked) == trees[-1].work["leaf_evaluations"]
        cut, whole = trees
        assert cut.num_histories <= whole.num_histories
        exact = [meta_sequence_form_lp(tree) for tree in trees]
        assert exact[0].value == pytest.approx(exact[1].value, abs=1e-9)
        seen.update(smaller=cut.num_entries < whole.num_entries)
        seen.update(used=sum(strategy.expected_size for strategy in exact[0].strategies) > 0.5)

    holds()
    assert min(seen.values()) > 0
