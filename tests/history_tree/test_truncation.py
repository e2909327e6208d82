"""The truncation keeps Lemma 3's W, and every best response lies in it."""

import collections
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    expand,
    games,
    kuhn_poker,
    penalties,
    policy_pairs,
    random_tree,
    settings,
)
from tests.oracles.meta_games import names_in
from tests.properties import examples


def _lemma_3(game, pre, sigma, penalties):
    """Return (histories, W) of a perfect-information game, each history by itself, from states.

    A history is in W_i if all of i's own turns before it are, and some opponent, who memorizes the first t
    of its own turns on the way (each in its own W), makes chance * i's sigma_pre * the opponent's play,
    times R, at least lambda_i.
    """
    utility_range = game.max_utility() - game.min_utility()
    histories, kept = set(), set()

    def reaches(path, i):
        """[probability of the path if i memorizes its first t turns] for every t that W allows."""
        found = []
        for stop in range(len(path) + 1):
            product, turn = 1.0, 0
            for state, action in path:
                if state.current_player() != i:
                    continue
                memorizes = turn < stop
                if memorizes and tuple(state.history()) not in kept:
                    return found
                product *= (pre if memorizes else sigma)[i](state).get(action, 0.0)
                turn += 1
            if stop > turn:
                break
            found.append(product)
        return found

    def going_on(path, i):
        """Return the reach of a path by i while it memorizes everything, 0 where W does not let it."""
        if math.isinf(penalties[i]):
            return 0.0
        product = 1.0
        for state, action in path:
            if state.current_player() == i:
                if tuple(state.history()) not in kept:
                    return 0.0
                product *= pre[i](state).get(action, 0.0)
        return product

    def stops_only(path, i):
        found = reaches(path, i)
        return found[:1] if math.isinf(penalties[i]) else found

    def walk(state, path):
        name, mover = tuple(state.history()), state.current_player()
        histories.add(name)
        chance = math.prod(dict(s.chance_outcomes())[a] for s, a in path if s.is_chance_node())
        memorizing = [going_on(path, i) for i in (0, 1)]
        for i in (0, 1):
            if memorizing[i] == 0.0:
                continue
            # The bound falls along a path: where it fails between i's turns, it fails at those that follow.
            best = max(stops_only(path, 1 - i))
            if chance * memorizing[i] * best * utility_range < penalties[i]:
                memorizing[i] = 0.0
            elif mover == i:
                kept.add(name)
        if state.is_terminal() or max(memorizing) == 0.0:
            return
        for action in state.legal_actions():
            if state.is_chance_node():
                played = True
            else:
                played = sigma[mover](state).get(action, 0.0) > 0.0
                played |= name in kept and pre[mover](state).get(action, 0.0) > 0.0
            if played:
                walk(state.child(action), [*path, (state, action)])

    walk(game.new_initial_state(), [])
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
    assert min(seen["kept"], seen["cut"]) >= 10


def _against(game, opponent, chosen, pre, sigma):
    """Return the policy of an opponent with the memorization set `chosen`."""

    def play(state):
        known = books.information_state(game, state, opponent) in chosen
        return (pre if known else sigma)[opponent](state)

    return play


def test_every_best_response_lies_in_w():
    seen = collections.Counter()

    @examples(240)
    @given(settings(games(actions=2) | st.builds(kuhn_poker)), penalties(infinite=False), SEEDS)
    def holds(case, penalties, seed):
        game, pre, sigma = case
        tree = expand(game, pre, sigma, penalties)
        for player in (0, 1):
            opponent = 1 - player
            own, theirs = (books.predecessors(game, i) for i in (player, opponent))
            if books.count_prefix_closed_sets(own) > 300:
                continue
            inside = {name: parent for name, parent in theirs.items() if name in names_in(tree, opponent)}
            sets = list(itertools.islice(books.prefix_closed_sets(inside), 3000))
            for k in np.random.default_rng(seed).permutation(len(sets))[:6]:
                fixed = list(sigma)
                fixed[opponent] = _against(game, opponent, sets[k], pre, sigma)
                _, _, chosen = books.best_set(game, player, penalties[player], pre, fixed)
                assert chosen.issubset(names_in(tree, player))
                seen.update(used=bool(chosen))

    holds()
    assert seen["used"] >= 10


def test_infinite_penalties():
    game = random_tree(3, depth=6)
    pre, sigma = policy_pairs(3)
    for i in (0, 1):
        penalties = [math.inf, math.inf]
        penalties[i] = 0.01
        # Nobody asks the other what it could memorize.
        policies = [None, None]
        policies[i] = pre[i]
        tree = HistoryTree.from_game(game, sigma_pre=policies, sigma=sigma, penalties=penalties)
        assert set(tree.infoset_player.tolist()) == {i}
    never = HistoryTree.from_game(game, sigma_pre=None, sigma=sigma, penalties=math.inf)
    assert never.num_histories == 1
    expected = books.expected_utility(game, (frozenset(),) * 2, pre, sigma)
    assert never.value[0] == pytest.approx(expected, abs=1e-12)


def test_utility_range_scales_the_truncation():
    game = random_tree(3, depth=6)
    pre, sigma = policy_pairs(3)
    default = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.03)
    assert default.utility_range == 3.0
    one = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.03, utility_range=1.0)
    thrice = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.09)
    assert one.utility_range == 1.0
    assert one.num_infosets < default.num_infosets
    assert one.parent.tolist() == thrice.parent.tolist()  # only R / lambda matters
