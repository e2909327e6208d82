"""The truncation keeps Lemma 3's W, and every best response lies in it."""

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.algorithms import best_precomputation
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    expand,
    first,
    games,
    kuhn_poker,
    last,
    penalties,
    policy_pairs,
    random_tree,
    settings,
    sides,
)
from tests.oracles.meta_games import names_in
from tests.oracles.trees import efg
from tests.properties import examples


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
