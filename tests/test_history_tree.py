"""The history tree: its arrays, what the truncation keeps, files, and everything that is refused."""

import dataclasses
import functools
import itertools
import json
import math
import os

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree, make_policy
from precomp_games.algorithms import best_precomputation
from precomp_games.history_tree import CHANCE, TERMINAL
from precomp_games.tree_arrays import ARRAYS
from tests import reference
from tests.random_games import _TYPE, RandomTreeGame, random_efg, random_policy, random_tree


def _uniform(state):
    return {a: 1 / len(state.legal_actions()) for a in state.legal_actions()}


def _first(state):
    return {state.legal_actions()[0]: 1.0}


def _last(state):
    return {state.legal_actions()[-1]: 1.0}


def _policies(seed, support="full", by="history"):
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, support, by) for i in (0, 1))
    return pre, sigma


def _both(*arguments, **named):
    pre, sigma = _policies(*arguments, **named)
    return {"sigma_pre": pre, "sigma": sigma}


def _board(state):
    return state.observation_string(0)


def _by_board(seed, most=9):
    """A random policy of tic-tac-toe that depends on the board, with at most so many actions."""

    @functools.cache
    def row(board, actions):
        rng = np.random.default_rng([seed, *board.encode()])
        weights = rng.dirichlet(np.ones(len(actions)))
        weights[rng.permutation(len(actions))[most:]] = 0.0
        return dict(zip(actions, (weights / weights.sum()).tolist(), strict=True))

    return lambda state: row(_board(state), tuple(state.legal_actions()))


def _efg(*lines):
    return pyspiel.load_efg_game('EFG 2 R "test" { "one" "two" }\n' + "\n".join(lines) + "\n")


def _uneven_efg(seed):
    """Imperfect information with information states at several depths.

    Chance decides in secret how many moves player 2 makes before each of player 1's, who sees some of them.
    """
    rng = np.random.default_rng(seed)
    lines, names, opponents, outcomes = [], {}, itertools.count(1), itertools.count(1)
    odds = [round(float(x), 4) for x in rng.dirichlet([1.0, 1.0, 1.0])[:2]]
    odds.append(round(1.0 - sum(odds), 4))
    extra = rng.integers(0, 3, size=(3, 2))  # [secret, turn]: player 2's moves before player 1's turn
    tells = rng.random(2) < 0.5  # [turn]: player 1 sees whether player 2's last move was an even one

    def walk(secret, turn, left, mine, seen, last):
        if left:
            lines.append(f'p "" 2 {next(opponents)} "" {{ "x" "y" }} 0')
            for move in (0, 1):
                walk(secret, turn, left - 1, mine, seen, move)
        elif turn == 2:
            u = round(float(rng.uniform(-2, 2)), 4)
            lines.append(f't "" {next(outcomes)} "" {{ {u} {-u} }}')
        else:
            seen = (*seen, last if tells[turn] else None)
            number = names.setdefault((mine, seen), len(names) + 1)
            lines.append(f'p "" 1 {number} "" {{ "a" "b" }} 0')
            for move in (0, 1):
                following = int(extra[secret][1]) if turn == 0 else 0
                walk(secret, turn + 1, following, (*mine, move), seen, None)

    labels = " ".join(f'"{k}" {p}' for k, p in enumerate(odds))
    lines.append(f'c "" 1 "" {{ {labels} }} 0')
    for secret in range(3):
        walk(secret, 0, int(extra[secret][0]), (), (), None)
    return _efg(*lines)


def _reopened():
    """Player 1's first turn is met after the chance move (0.1) and, one level further down, else (0.9)."""

    def turn(second, *utilities):
        u, v = utilities
        return [
            'p "" 1 1 "" { "a" "b" } 0',
            't "" 1 "zero" { 0 0 }',
            f'p "" 1 {second} "" {{ "c" "d" }} 0',
            f't "" 2 "lost" {{ {u} {-u} }}',
            f't "" 3 "won" {{ {v} {-v} }}',
        ]

    return _efg(
        'c "" 1 "" { "s" 0.1 "l" 0.9 } 0',
        *turn(2, -1, 1),
        'p "" 2 1 "" { "x" "y" } 0',
        *turn(3, -1, 1),
        't "" 1 "zero" { 0 0 }',
    )


_KINDS = {
    "random": lambda **a: HistoryTree.from_game(
        random_tree(3, depth=6), **_both(3), penalties=(0.01, 0.02), **a
    ),
    "evaluated": lambda **a: HistoryTree.from_game(
        random_tree(4, depth=6),
        **_both(4),
        penalties=(0.01, math.inf),
        leaf_value=lambda s: 0.5,
        stop_value="evaluate",
        **a,
    ),
    "never": lambda **a: HistoryTree.from_game(random_tree(3), **_both(3), penalties=math.inf, **a),
    "everything": lambda **a: HistoryTree.from_game(
        random_tree(3), **_both(3), penalties=0.3, truncate="none", **a
    ),
    "one": lambda **a: HistoryTree.from_game(
        random_tree(3), **_both(3, "partial"), penalties=(math.inf, 0.02), **a
    ),
    "pure": lambda **a: HistoryTree.from_game(
        random_tree(8, depth=6), **_both(8, "pure"), penalties=0.02, **a
    ),
    "kuhn": lambda **a: HistoryTree.from_game(
        pyspiel.load_game("kuhn_poker"), **_both(1, by="infoset"), penalties=(0.05, 0.01), **a
    ),
    "leduc": lambda **a: HistoryTree.from_game(
        pyspiel.load_game("leduc_poker"), **_both(1, "partial", "infoset"), penalties=(0.1, 0.5), **a
    ),
    "efg": lambda **a: HistoryTree.from_game(
        random_efg(5, depth=5), **_both(5, by="infoset"), penalties=(0.05, 0.05), **a
    ),
    "uneven": lambda **a: HistoryTree.from_game(
        _uneven_efg(2), **_both(2, by="infoset"), penalties=(0.01, 0.2), **a
    ),
    "positions": lambda **a: HistoryTree.from_game(
        pyspiel.load_game("tic_tac_toe"),
        sigma_pre=_by_board(1, 2),
        sigma=_by_board(2, 3),
        penalties=(0.01, 0.05),
        position_key=_board,
        **a,
    ),
    "terminal": lambda **a: HistoryTree.from_game(random_tree(1, depth=0), **_both(1), penalties=0.1, **a),
}


@functools.cache
def _tree(kind):
    return _KINDS[kind]()


_PERFECT = ["random", "evaluated", "never", "everything", "one", "pure", "positions", "terminal"]


# -- structure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", _KINDS)
def test_structure(kind):
    tree = _tree(kind)
    tree.check()
    n, m = tree.num_histories, tree.num_infosets
    for name, dtype in ARRAYS.items():
        array = getattr(tree, name)
        assert array.dtype == dtype
        assert array.shape == ((m if name == "infoset_player" else n),) or (
            name == "position" and kind != "positions" and array.shape == (0,)
        )
    assert tree.parent[0] == tree.action[0] == -1
    assert tree.sigma[0] == tree.sigma_pre[0] == 1.0
    assert (tree.parent[1:] < np.arange(1, n)).all()
    seen = [0]
    for h in range(n):
        children = list(tree.children(h))
        seen += children
        assert (tree.parent[children] == h).all()
        assert (np.diff(tree.action[children]) > 0).all()
        assert len(children) == tree.num_children[h]
        if not children:
            assert tree.first_child[h] == -1
            assert np.isfinite(tree.value[h])
            assert tree.infoset[h] == -1
            continue
        mover, memorized = tree.player[h], tree.infoset[h] >= 0
        sums = tree.sigma[children].sum(), tree.sigma_pre[children].sum()
        if mover == CHANCE:
            assert sums == pytest.approx((1.0, 1.0))
            assert (tree.sigma[children] == tree.sigma_pre[children]).all()
        else:
            stops = not (memorized and tree.stop_value == "evaluate")
            assert sums == pytest.approx((float(stops), float(memorized)))
        assert (np.maximum(tree.sigma, tree.sigma_pre)[children] > 0.0).all()
    assert seen == list(range(n))  # children side by side, level after level
    depth = np.array([len(tree.actions(h)) for h in range(n)])
    assert (np.diff(depth) >= 0).all()
    assert tree.work["histories"] == n <= tree.work["expanded"]
    assert f"histories={n}, infosets={m}" in repr(tree)


@pytest.mark.parametrize("kind", _KINDS)
def test_states_and_lookups(kind):
    tree = _tree(kind)
    n = tree.num_histories
    actions = [tree.actions(h) for h in range(n)]
    assert len({tuple(a) for a in actions}) == n
    seen = {}
    for h in range(0, n, max(1, n // 300)):
        assert tree.find(actions[h]) == h
        state = tree.state(h)
        assert state.history() == actions[h]
        assert state.current_player() == tree.player[h]
        if state.is_terminal():
            assert tree.value[h] == state.returns()[0]
            continue
        assert tree.find([*actions[h], 12345]) == tree.find([*actions[h], -7]) == -1
        if tree.num_children[h] == 0:
            assert tree.find([*actions[h], state.legal_actions()[0]]) == -1
        if state.is_chance_node():
            odds = dict(state.chance_outcomes())
            for child in tree.children(h):
                assert tree.sigma[child] == pytest.approx(odds[tree.action[child]])
            assert tree.infoset[h] == -1
            continue
        infoset = int(tree.infoset[h])
        assert tree.infoset_of(state) == infoset
        if infoset >= 0:
            assert tree.infoset_player[infoset] == tree.player[h]
            first = int(tree.infoset_history[infoset])
            assert first <= h
            assert tree.infoset[first] == infoset
            row = tree.memorized_row(infoset)
            assert sum(row.values()) == pytest.approx(1.0)
            assert row == {tree.action[c]: tree.sigma_pre[c] for c in tree.children(h) if tree.sigma_pre[c]}
            seen.setdefault(infoset, []).append(h)
            if tree.infoset_keys is not None:
                assert tree.infoset_keys[infoset] == state.information_state_string()
    assert (tree.infoset_keys is None) == (kind in _PERFECT)
    if tree.infoset_keys is None:
        assert all(len(histories) == 1 for histories in seen.values())
        assert (np.diff(tree.infoset[tree.infoset >= 0]) == 1).all()
    # An information state comes after its player's previous one.
    for player in (0, 1):
        own = np.flatnonzero(tree.infoset_player == player)
        assert (np.diff(tree.infoset_history[own]) > 0).all()


@pytest.mark.parametrize("kind", ["random", "pure", "one", "everything", "positions"])
def test_edges_are_the_policies_rows(kind):
    tree = _tree(kind)
    if kind == "positions":
        pre, sigma = (_by_board(1, 2),) * 2, (_by_board(2, 3),) * 2
    else:
        seed, support = {"pure": (8, "pure"), "one": (3, "partial")}.get(kind, (3, "full"))
        pre, sigma = _policies(seed, support)
    for h in np.flatnonzero((tree.num_children > 0) & (tree.player >= 0))[:200]:
        state, mover = tree.state(h), tree.player[h]
        rows = {"sigma": sigma[mover](state), "sigma_pre": pre[mover](state) if tree.infoset[h] >= 0 else {}}
        for name, row in rows.items():
            found = {int(tree.action[c]): float(getattr(tree, name)[c]) for c in tree.children(h)}
            assert {a: p for a, p in found.items() if p} == pytest.approx({a: p for a, p in row.items() if p})


def test_roots_where_nobody_moves():
    ended = _tree("terminal")
    assert ended.num_histories == 1
    assert ended.player.tolist() == [TERMINAL]
    assert ended.value[0] == ended.state(0).returns()[0]
    for player in (0, 1):
        best = best_precomputation(ended, player)
        own = ended.value[0] if player == 0 else 1.0 - ended.value[0]
        assert (best.value, best.size) == (pytest.approx(own), 0)
    chance = _tree("kuhn")
    assert chance.player[0] == CHANCE
    only = HistoryTree.from_game(random_tree(3, chance=1.0), **_both(3), penalties=1e-9)
    assert only.num_infosets == 0
    expected = reference.expected_utility(random_tree(3, chance=1.0), (frozenset(),) * 2, None, None)
    assert best_precomputation(only, 0).value == pytest.approx(expected)


@pytest.mark.parametrize("kind", _KINDS)
def test_the_same_arguments_give_the_same_tree(kind):
    one, two = _tree(kind), _KINDS[kind]()
    assert one.fingerprint == two.fingerprint
    assert one.work == two.work
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name == "value")


def test_fingerprints_tell_trees_apart():
    assert len({_tree(kind).fingerprint for kind in _KINDS}) == len(_KINDS)
    tree = _tree("random")
    assert tree.with_penalties(1.0).fingerprint == tree.fingerprint  # the histories are the same


def test_progress_is_told_level_by_level():
    calls = []
    tree = _KINDS["random"](progress=lambda *args: calls.append(args), leaf_value=lambda state: 0.0)
    assert [level for level, _ in calls] == list(range(len(calls)))
    sizes = [size for _, size in calls]
    assert sizes == sorted(sizes)
    assert sizes[-1] == tree.num_histories
    exact = []
    _KINDS["random"](progress=lambda *args: exact.append(args))
    assert exact[: len(calls)] == calls
    assert [size for _, size in exact] == sorted(size for _, size in exact)


def test_exact_values_are_bounded_too():
    game = pyspiel.load_game("tic_tac_toe")
    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected at most max_histories=1000 states"
    ):
        HistoryTree.from_game(
            game, sigma_pre=_uniform, sigma=_uniform, penalties=(0.5, math.inf), max_histories=1000
        )


def test_min_probability_cuts_edges():
    game = random_tree(3)
    rows = {2: {0: 0.6, 1: 0.4 - 1e-3, 2: 1e-3}}

    def policy(state):
        return rows.get(0 if len(state.legal_actions()) < 3 else 2) or _uniform(state)

    full = HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01)
    cut = HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01, min_probability=0.01)
    cut.check()
    assert cut.num_histories < full.num_histories
    for h in np.flatnonzero(cut.player >= 0):
        if cut.num_children[h]:
            assert cut.sigma[list(cut.children(h))].sum() == pytest.approx(1.0)
    player = cut.player[cut.parent[1:]]
    assert cut.sigma[1:][player >= 0].min() > 0.3


# -- what the truncation keeps ---------------------------------------------------------------------------


def _lemma_3(game, pre, sigma, penalties):
    """(histories, W) of a perfect-information game, each history by itself, from states.

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
        """The reach of a path by i while it memorizes everything, 0 where W does not let it."""
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


@pytest.mark.parametrize("support", ["full", "partial", "pure"])
def test_w_is_lemma_3s(support):
    kept_some = cut_some = 0
    for seed in range(24):
        game = random_tree(seed, depth=4 + seed % 2, actions=2 + seed % 2)
        pre, sigma = _policies(seed, support)
        for penalties in ((0.05, 0.05), (0.3, 0.02), (0.02, math.inf), (math.inf, 0.1), (math.inf, math.inf)):
            tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
            histories, kept = _lemma_3(game, pre, sigma, penalties)
            assert {tuple(tree.actions(h)) for h in range(tree.num_histories)} == histories
            assert {tuple(tree.actions(h)) for h in np.flatnonzero(tree.infoset >= 0)} == kept
            kept_some += bool(kept)
            cut_some += tree.num_infosets < _everything(game, pre, sigma, penalties).num_infosets
    assert kept_some >= 60
    assert cut_some >= (1 if support == "pure" else 40)  # deterministic play reaches with 0 or 1


def _everything(game, pre, sigma, penalties):
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties, truncate="none")


def _names(game, tree, player):
    mine = tree.infoset_history[tree.infoset_player == player]
    return {reference.information_state(game, tree.state(h), player) for h in mine}


def _against(game, opponent, chosen, pre, sigma):
    """What an opponent with the memorization set `chosen` plays, as a policy."""

    def play(state):
        known = reference.information_state(game, state, opponent) in chosen
        return (pre if known else sigma)[opponent](state)

    return play


@pytest.mark.parametrize("kind", ["perfect", "efg", "kuhn"])
def test_every_best_response_lies_in_w(kind):
    compared = used = 0
    for seed in range(30 if kind != "kuhn" else 6):
        support = ("full", "partial", "pure")[seed % 3]
        by = "history" if kind == "perfect" else "infoset"
        if kind == "perfect":
            game = random_tree(seed, depth=3 + seed % 2, actions=2)
        else:
            game = random_efg(seed, depth=4) if kind == "efg" else pyspiel.load_game("kuhn_poker")
        pre, sigma = _policies(seed, support, by)
        penalty = (0.02, 0.1, 0.3)[seed % 3]
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalty)
        for player in (0, 1):
            opponent = 1 - player
            own, theirs = (reference.predecessors(game, i) for i in (player, opponent))
            if reference.count_prefix_closed_sets(own) > 300:
                continue
            inside = {name: parent for name, parent in theirs.items() if name in _names(game, tree, opponent)}
            sets = list(reference.prefix_closed_sets(inside))
            rng = np.random.default_rng(seed)
            for k in rng.permutation(len(sets))[:6]:
                fixed = list(sigma)
                fixed[opponent] = _against(game, opponent, sets[k], pre, sigma)
                _, _, chosen = reference.best_set(game, player, penalty, pre, fixed)
                assert chosen <= _names(game, tree, player)
                compared += 1
                used += bool(chosen)
    assert compared >= 40
    assert used >= 15


def test_infinite_penalties():
    game = random_tree(3, depth=6)
    pre, sigma = _policies(3)
    both = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01)
    assert set(both.infoset_player.tolist()) == {0, 1}
    for i in (0, 1):
        penalties = [math.inf, math.inf]
        penalties[i] = 0.01
        # Nobody asks the other what it could memorize.
        policies = [None, None]
        policies[i] = pre[i]
        tree = HistoryTree.from_game(game, sigma_pre=policies, sigma=sigma, penalties=penalties)
        assert set(tree.infoset_player.tolist()) == {i}
        assert tree.num_histories < both.num_histories
    never = HistoryTree.from_game(game, sigma_pre=None, sigma=sigma, penalties=math.inf)
    assert never.num_histories == 1
    expected = reference.expected_utility(game, (frozenset(),) * 2, pre, sigma)
    assert never.value[0] == pytest.approx(expected, abs=1e-12)


def test_utility_range_scales_the_truncation():
    game = random_tree(3, depth=6)
    pre, sigma = _policies(3)
    default = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.03)
    assert default.utility_range == 3.0
    one = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.03, utility_range=1.0)
    thrice = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.09)
    assert one.utility_range == 1.0
    assert one.num_infosets < default.num_infosets
    assert one.parent.tolist() == thrice.parent.tolist()  # only R / lambda matters


# -- information states of several depths -----------------------------------------------------------------


def test_information_states_of_several_depths():
    compared = uneven = memorized = 0
    for seed in range(60):
        game = _uneven_efg(seed)
        pre, sigma = _policies(seed, ("full", "partial")[seed % 2], "infoset")
        if reference.count_prefix_closed_sets(reference.predecessors(game, 0)) > 1000:
            continue
        for penalty in (0.02, 0.15, 0.4, 0.8):
            value, utility, chosen = reference.best_set(game, 0, penalty, pre, sigma)
            for opponent in (math.inf, 0.1):
                tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(penalty, opponent))
                tree.check()
                best = best_precomputation(tree, 0)
                assert best.value == pytest.approx(value, abs=1e-9)
                assert best.utility == pytest.approx(utility, abs=1e-9)
                assert best.size == len(chosen)
                compared += 1
                memorized += bool(chosen)
                depths = {}
                for h in np.flatnonzero(tree.infoset >= 0):
                    depths.setdefault(int(tree.infoset[h]), set()).add(len(tree.actions(h)))
                uneven += any(len(d) > 1 for d in depths.values())
    assert compared >= 100
    assert uneven >= 50
    assert memorized >= 40


@pytest.mark.parametrize("penalty", [0.05, 0.15, 0.3, 0.4, 0.6])
def test_an_information_state_is_reopened_for_its_longer_histories(penalty):
    # Its short history is reached with 0.1 < penalty / 2 for the larger penalties. What follows its long one
    # must not be held to that either.
    game = _reopened()

    def sigma(state):
        names = [state.action_to_string(a) for a in state.legal_actions()]
        return {state.legal_actions()[names.index("b") if "b" in names else 0]: 1.0}

    tree = HistoryTree.from_game(game, sigma_pre=_last, sigma=(sigma, _first), penalties=(penalty, math.inf))
    value, utility, chosen = reference.best_set(game, 0, penalty, (_last, _last), (sigma, _first))
    best = best_precomputation(tree, 0)
    assert (best.value, best.utility) == (pytest.approx(value), pytest.approx(utility))
    assert _names(game, tree, 0) >= chosen
    assert best.size == len(chosen) >= 2
    everything = _everything(game, _last, (sigma, _first), (penalty, math.inf))
    assert tree.num_infosets == (3 if penalty <= 0.2 else 2) <= everything.num_infosets == 3


def test_phantom_tic_tac_toe():
    # A player does not see the other's tries, so that one information state has histories of many lengths.
    game = pyspiel.load_game("phantom_ttt")
    pre, sigma = random_policy(1, "pure", "infoset"), random_policy(3, "partial", "infoset")

    def two(state):
        row = sorted(sigma(state).items(), key=lambda e: -e[1])[:2]
        return {a: p / sum(q for _, q in row) for a, p in row}

    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=two, penalties=(0.2, math.inf), leaf_value=lambda s: 0.0
    )
    tree.check()
    depths = {}
    for h in np.flatnonzero(tree.infoset >= 0):
        depths.setdefault(int(tree.infoset[h]), set()).add(len(tree.actions(h)))
        assert tree.infoset_keys[tree.infoset[h]] == tree.state(h).information_state_string(0)
    assert max(map(len, depths.values())) > 1


# -- how policies are asked --------------------------------------------------------------------------------


class _Counting:
    """A batch policy that keeps what it was asked."""

    def __init__(self, row):
        self.row = row
        self.calls = []

    def action_probabilities_batch(self, states):
        self.calls.append([state.clone() for state in states])
        return [self.row(state) for state in states]


@pytest.mark.parametrize("penalties", [(0.01, 0.02), (0.01, math.inf)])
def test_one_batch_a_level_without_a_key(penalties):
    game = random_tree(3, depth=6)
    pre = [_Counting(policy) for policy in _policies(3)[0]]
    sigma = [_Counting(policy) for policy in _policies(3)[1]]
    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=penalties, leaf_value=lambda s: 0.0
    )
    for i, wanted in itertools.product((0, 1), ("pre", "sigma")):
        calls = (pre if wanted == "pre" else sigma)[i].calls
        asked = [tuple(state.history()) for call in calls for state in call]
        decides = tree.infoset >= 0 if wanted == "pre" else tree.num_children > 0
        expected = np.flatnonzero(decides & (tree.player == i))
        assert sorted(asked) == sorted(tuple(tree.actions(h)) for h in expected)  # each once
        assert all(len({len(state.history()) for state in call}) == 1 for call in calls)
        assert len(calls) == len({len(call[0].history()) for call in calls})
    assert tree.work["policy_queries"] == sum(len(c) for p in (*pre, *sigma) for c in p.calls)


def test_each_position_of_a_level_once_with_a_key():
    game = pyspiel.load_game("tic_tac_toe")
    pre, sigma = _Counting(_by_board(1, 3)), _Counting(_by_board(2, 3))
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=(0.01, math.inf),
        position_key=_board,
        leaf_value=lambda s: 0.0,
    )
    assert tree.num_positions < tree.num_histories
    expected = total = extra = 0
    for policy, wanted in ((pre, tree.infoset >= 0), (sigma, tree.num_children > 0)):
        deciding = np.flatnonzero(wanted & (tree.player >= 0))
        expected += len(set(tree.position[deciding].tolist()))  # in this game, a board tells its level
        rows = [state for call in policy.calls for state in call]
        total += len(rows)
        for level, calls in itertools.groupby(policy.calls, key=lambda c: len(c[0].history())):
            first, *spot_checks = calls
            assert len({_board(state) for state in first}) == len(first)
            assert all(len(state.history()) == level for state in first)
            # What the key joined is compared now and then, two states at a time.
            assert all(len(call) == 2 for call in spot_checks)
            extra += 2 * len(spot_checks)
    assert tree.work["policy_queries"] == expected == total - extra
    assert 0 < extra <= 4 * math.log2(tree.num_histories)


def test_equal_positions_have_equal_rows():
    tree = _tree("positions")
    boards = {}
    for h in range(0, tree.num_histories, 5):
        key = boards.setdefault(int(tree.position[h]), _board(tree.state(h)))
        assert key == _board(tree.state(h))
    assert len(set(boards.values())) == len(boards)
    apart = HistoryTree.from_game(
        pyspiel.load_game("tic_tac_toe"),
        sigma_pre=_by_board(1, 2),
        sigma=_by_board(2, 3),
        penalties=(0.01, 0.05),
    )
    for name in set(ARRAYS) - {"position", "value"}:
        assert np.array_equal(getattr(apart, name), getattr(tree, name))
    assert apart.value == pytest.approx(tree.value, abs=1e-12, nan_ok=True)


# -- check() ------------------------------------------------------------------------------------------------


def _damaged(tree, name, where, value):
    """Bypasses the constructor's types: what a hand-made file may hold."""
    array = getattr(tree, name).copy()
    array[where] = value
    return _replaced(tree, **{name: array})


def _replaced(tree, **arrays):
    return dataclasses.replace(tree, **arrays)


def _inner(tree):
    return int(np.flatnonzero(tree.num_children > 1)[-1])


def _leaf(tree):
    return int(np.flatnonzero(tree.num_children == 0)[0])


_DAMAGE = [
    ("parent", lambda t: (0, 0)),
    ("parent", lambda t: (1, -1)),
    ("parent", lambda t: (1, -(2**31))),
    ("parent", lambda t: (1, 1)),
    ("parent", lambda t: (1, t.num_histories)),
    ("parent", lambda t: (1, 2**31 - 1)),  # must not be taken for the size of an array
    ("parent", lambda t: (t.num_histories - 1, 0)),
    ("num_children", lambda t: (0, t.num_children[0] + 1)),
    ("num_children", lambda t: (_leaf(t), 1)),
    ("num_children", lambda t: (_leaf(t), -1)),
    ("num_children", lambda t: (0, 0)),
    ("num_children", lambda t: (0, 2**31 - 1)),
    ("first_child", lambda t: (0, 2)),
    ("first_child", lambda t: (0, -1)),
    ("first_child", lambda t: (_leaf(t), 0)),
    ("first_child", lambda t: (_leaf(t), t.num_histories)),
    ("first_child", lambda t: (_inner(t), t.num_histories)),
    ("first_child", lambda t: (_inner(t), -(2**31))),
    ("player", lambda t: (0, 2)),
    ("player", lambda t: (0, -3)),
    ("player", lambda t: (0, 127)),
    ("player", lambda t: (0, TERMINAL)),
    ("infoset", lambda t: (_inner(t), t.num_infosets)),
    ("infoset", lambda t: (_inner(t), -2)),
    ("infoset", lambda t: (_inner(t), 2**31 - 1)),
    ("infoset", lambda t: (_leaf(t), 0)),
    ("infoset_player", lambda t: (0, 1 - t.infoset_player[0])),
    ("infoset_player", lambda t: (-1, CHANCE)),
    ("sigma", lambda t: (1, -0.1)),
    ("sigma", lambda t: (1, 1.1)),
    ("sigma", lambda t: (1, math.nan)),
    ("sigma_pre", lambda t: (1, -1e-9)),
    ("sigma_pre", lambda t: (1, math.inf)),
    ("sigma_pre", lambda t: (1, math.nan)),
    ("value", lambda t: (_leaf(t), math.nan)),
    ("value", lambda t: (_leaf(t), math.inf)),
    ("action", lambda t: (t.first_child[_inner(t)], t.action[t.first_child[_inner(t)] + 1])),
    ("infoset", lambda t: (t.infoset == t.num_infosets - 1, -1)),  # an information state without histories
]


@pytest.mark.parametrize("kind", ["random", "kuhn", "positions"])
@pytest.mark.parametrize(("name", "damage"), _DAMAGE)
def test_check_rejects_damage(kind, name, damage):
    tree = _tree(kind)
    assert tree.infoset_player[-1] in (0, 1)
    with pytest.raises(ValueError, match=r"does not describe a tree"):
        _damaged(tree, name, *damage(tree)).check()


@pytest.mark.parametrize("name", ARRAYS)
def test_check_rejects_wrong_types_and_lengths(name):
    tree = _tree("positions")
    array = getattr(tree, name)
    for wrong in (
        array[:-1],
        np.append(array, array[-1]),
        array[None],
        array.astype(np.float32),
        array.astype(np.uint8 if name != "value" else np.float16),
        array.astype(object),
        array[:0] if name != "position" else array[:1],
    ):
        # Lengths are held to those of parent and infoset_player, so that these two blame others.
        blamed = {"parent": ".", "infoset_player": "infoset"}.get(name, name)
        with pytest.raises(ValueError, match=blamed):
            _replaced(tree, **{name: wrong}).check()


def test_check_rejects_information_states_out_of_order():
    tree = _tree("random")
    one, two = np.flatnonzero(tree.infoset_player == 0)[:2]
    swapped = tree.infoset.copy()
    swapped[tree.infoset == one], swapped[tree.infoset == two] = two, one
    with pytest.raises(ValueError, match="infoset does not describe a tree"):
        _replaced(tree, infoset=swapped).check()


def test_check_rejects_stops_that_were_not_evaluated():
    tree = _tree("evaluated")
    with pytest.raises(ValueError, match="value does not describe a tree"):
        _damaged(tree, "value", int(tree.infoset_history[0]), math.nan).check()


def test_check_rejects_other_damage():
    tree = _tree("kuhn")
    with pytest.raises(ValueError, match="no root"):
        _replaced(tree, **{name: getattr(tree, name)[:0] for name in ARRAYS}, infoset_keys=()).check()
    with pytest.raises(ValueError, match="stop_value is 'both'"):
        _replaced(tree, stop_value="both").check()
    with pytest.raises(ValueError, match=r"there are 1 infoset_keys, not \d+"):
        _replaced(tree, infoset_keys=("x",)).check()


# -- penalties ----------------------------------------------------------------------------------------------


def test_larger_penalties():
    game = random_tree(3, depth=6)
    pre, sigma = _policies(3)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.01, 0.02))
    for penalties in ((0.01, 0.02), (0.05, 0.02), (0.05, 0.5), (math.inf, 0.02), 1.0, math.inf):
        larger = tree.with_penalties(penalties)
        wanted = penalties if isinstance(penalties, tuple) else (penalties, penalties)
        assert larger.penalties == wanted
        assert larger.parent is tree.parent
        assert larger.policies == tree.policies
        larger.check()
        fresh = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
        for player in (0, 1):
            one, two = best_precomputation(larger, player), best_precomputation(fresh, player)
            assert one.value == pytest.approx(two.value, abs=1e-12)
            assert [s.actions for s in one.states()] == [s.actions for s in two.states()]
    assert tree.penalties == (0.01, 0.02)


@pytest.mark.parametrize("penalties", [0.01, (0.02, 0.019), (0.005, math.inf), 1e-300])
def test_smaller_penalties_are_refused(penalties):
    tree = HistoryTree.from_game(random_tree(3), **_both(3), penalties=0.02)
    words = r"^HistoryTree.with_penalties\(\): expected penalties of at least \(0.02, 0.02\), .*, got \("
    with pytest.raises(ValueError, match=words):
        tree.with_penalties(penalties)


_BAD_PENALTIES = [
    0, 0.0, -0.0, -1, -math.inf, math.nan, "0.1", "", None, True, False, 1j, b"1", {0: 0.1}, (0.1,),
    (0.1, 0.1, 0.1), (), [], (0.1, 0.0), (math.nan, 0.1), (0.1, None), (0.1, True), (0.1, "0.1"),
    ((0.1, 0.1), 0.1), np.array([0.1, -0.1]),
]  # fmt: skip


@pytest.mark.parametrize("penalties", _BAD_PENALTIES, ids=repr)
def test_bad_penalties(penalties):
    words = r"\(\): expected penalties to be (positive numbers|one value or a pair).* got "
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game" + words):
        HistoryTree.from_game(random_tree(3), sigma_pre=_uniform, sigma=_uniform, penalties=penalties)
    with pytest.raises(ValueError, match=r"^HistoryTree.with_penalties" + words):
        _tree("random").with_penalties(penalties)


@pytest.mark.parametrize(
    "penalties", [1, np.float32(0.5), np.int64(2), [0.1, 3], (np.float64(0.1), math.inf)]
)
def test_good_penalties(penalties):
    tree = HistoryTree.from_game(random_tree(3), sigma_pre=_uniform, sigma=_uniform, penalties=penalties)
    assert all(type(value) is float for value in tree.penalties)


# -- games that are refused ---------------------------------------------------------------------------------


class _SampledGame(RandomTreeGame):
    """Chance outcomes that cannot be listed; never expanded."""


def _sampled():
    kind = pyspiel.GameType(
        short_name="python_test_sampled_tree",
        long_name="Sampled tree (test)",
        dynamics=_TYPE.dynamics,
        chance_mode=pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC,
        information=_TYPE.information,
        utility=_TYPE.utility,
        reward_model=_TYPE.reward_model,
        max_num_players=2,
        min_num_players=2,
        provides_information_state_string=False,
        provides_information_state_tensor=False,
        provides_observation_string=False,
        provides_observation_tensor=False,
        parameter_specification={},
    )
    info = pyspiel.GameInfo(2, 2, 2, -1.0, 2.0, 1.0, 3)
    game = _SampledGame.__new__(_SampledGame)
    pyspiel.Game.__init__(game, kind, info, {})
    return game


_GENERAL_SUM = ['p "" 1 1 "" { "a" "b" } 0', 't "" 1 "" { 1 1 }', 't "" 2 "" { 0 1 }']
_FORGETFUL = [
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 2 "" { "c" "d" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    'p "" 1 2 "" { "c" "d" } 0',
    't "" 2 "" { -1 1 }',
    't "" 1 "" { 1 -1 }',
]
_ABSENT_MINDED = [
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 1 "" { "a" "b" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    't "" 3 "" { 0 0 }',
]
# Player 1 learns chance's move, and forgets it.
_FORGETS_WHAT_IT_SAW = [
    'c "" 1 "" { "l" 0.5 "r" 0.5 } 0',
    'p "" 1 1 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    'p "" 1 2 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    't "" 2 "" { -1 1 }',
    't "" 1 "" { 1 -1 }',
]


@pytest.mark.parametrize(
    ("game", "words"),
    [
        (lambda: None, "expected a pyspiel.Game, got None"),
        (lambda: "kuhn_poker", "expected a pyspiel.Game, got 'kuhn_poker'"),
        (lambda: random_tree(1).new_initial_state(), "expected a pyspiel.Game, got"),
        (lambda: pyspiel.load_game("kuhn_poker(players=3)"), "expected a two-player game, .* 3 players"),
        (lambda: pyspiel.load_game("blackjack"), "expected a two-player game, .* 1 players"),
        (lambda: pyspiel.load_game("catch"), "expected a two-player game, .* 1 players"),
        (lambda: pyspiel.load_game("matrix_pd"), "expected a sequential game, got matrix_pd"),
        (lambda: pyspiel.load_game("goofspiel"), "expected a sequential game, got goofspiel"),
        (lambda: pyspiel.load_game("bargaining"), "expected a zero-sum or constant-sum game, got bargaining"),
        (lambda: pyspiel.load_game("tiny_hanabi"), "expected a zero-sum or constant-sum game"),
        (lambda: _efg(*_GENERAL_SUM), "expected a zero-sum or constant-sum game, got efg_game"),
        (_sampled, "expected explicit chance nodes, got python_test_sampled_tree"),
        (lambda: pyspiel.load_game("dark_chess"), "expected information state strings, got dark_chess"),
        (lambda: pyspiel.load_game("phantom_go(board_size=3)"), "expected information state strings"),
        (lambda: _efg(*_FORGETFUL), "expected a game with perfect recall, got efg_game, where player 0 forg"),
        (lambda: _efg(*_ABSENT_MINDED), "expected a game with perfect recall, got efg_game, where player 0"),
        (lambda: _efg(*_FORGETS_WHAT_IT_SAW), "expected a game with perfect recall, got efg_game"),
    ],
)
def test_games_outside_the_model(game, words):
    for penalties in (0.01, (0.01, math.inf)):
        with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): .*" + words):
            HistoryTree.from_game(
                game(), sigma_pre=_uniform, sigma=_uniform, penalties=penalties, leaf_value=lambda s: 0.0
            )


@pytest.mark.parametrize(
    "name", ["phantom_ttt_ir", "liars_dice_ir(dice_sides=3,numdice=1)", "dark_hex_ir(board_size=2)"]
)
def test_openspiels_games_of_imperfect_recall(name):
    game = pyspiel.load_game(name)
    kind = game.get_type().short_name
    with pytest.raises(
        ValueError, match=rf"^HistoryTree.from_game\(\): .* perfect recall, got {kind}, where pl"
    ):
        HistoryTree.from_game(
            game, sigma_pre=_uniform, sigma=_uniform, penalties=0.001, leaf_value=lambda s: 0.0
        )


@pytest.mark.xfail(reason="recall is checked only where the player may still memorize on every way there")
def test_what_is_forgotten_from_beyond_w():
    # The turn after "r" is cut, so the last one is grouped by its history after "l" alone; the book is then
    # played after "r" too, and earns 0.8 instead of the 1.0 that it claims.
    lines = [line.replace('"l" 0.5 "r" 0.5', '"l" 0.9 "r" 0.1') for line in _FORGETS_WHAT_IT_SAW]
    with pytest.raises(ValueError, match="expected a game with perfect recall"):
        HistoryTree.from_game(_efg(*lines), sigma_pre=_first, sigma=_last, penalties=(0.3, math.inf))


def test_a_simultaneous_game_made_sequential_is_accepted():
    game = pyspiel.convert_to_turn_based(pyspiel.load_game("matrix_mp"))
    tree = HistoryTree.from_game(game, sigma_pre=_first, sigma=_uniform, penalties=(0.1, math.inf))
    tree.check()
    assert tree.num_infosets == 1
    assert best_precomputation(tree, 0).unprepared == pytest.approx(0.0)


# -- arguments that are refused -----------------------------------------------------------------------------


def _from_game(**arguments):
    given = {"sigma_pre": _uniform, "sigma": _uniform, "penalties": 0.1} | arguments
    return HistoryTree.from_game(random_tree(3), **given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stop_value": "both"}, 'expected stop_value to be one of "backup", "evaluate", got \'both\''),
        ({"stop_value": None}, "expected stop_value to be .* got None"),
        ({"truncate": "yes"}, 'expected truncate to be one of "none", "reach", "values", got \'yes\''),
        ({"truncate": None}, "expected truncate .* got None"),
        ({"min_probability": -0.1}, "expected min_probability to be a number from 0 to 0.01, got -0.1"),
        ({"min_probability": 1.0}, "expected min_probability to be a number from 0 to 0.01, got 1.0"),
        ({"min_probability": 0.9}, "expected min_probability to be a number from 0 to 0.01, got 0.9"),
        ({"min_probability": math.nan}, "expected min_probability to be a number from 0 to 0.01, got nan"),
        ({"max_histories": 0}, "expected max_histories to be an integer of at least 1, got 0"),
        ({"max_histories": -5}, "expected max_histories to be an integer of at least 1, got -5"),
        ({"max_histories": 10}, r"expected at most max_histories=10 histories, got more at level \d"),
        ({"max_histories": 1}, "expected at most max_histories=1 histories, got more at level 1"),
        ({"utility_range": 0.0}, "expected utility_range to be a positive, finite number, got 0.0"),
        ({"utility_range": -1.0}, "expected utility_range to be a positive, finite number, got -1.0"),
        ({"utility_range": math.inf}, "expected utility_range to be a positive, finite number, got inf"),
        ({"utility_range": math.nan}, "expected utility_range to be a positive, finite number, got nan"),
        (
            {"stop_value": "evaluate"},
            r"expected one player with an infinite penalty for .* got penalties \(0.1, 0.1\)",
        ),
        ({"leaf_value": "approximate"}, "expected leaf_value to be .* got 'approximate'"),
        ({"sigma": (_uniform,) * 3}, "expected sigma to be one value or a pair, got 3 of them"),
        ({"sigma_pre": (_uniform,)}, "expected sigma_pre to be one value or a pair, got 1 of them"),
        ({"sigma_pre": 3}, r"expected sigma_pre\[0\] to be an OpenSpiel Policy, .* got 3"),
        (
            {"sigma": (_uniform, "uniform")},
            r"expected sigma\[1\] to be an OpenSpiel Policy, .* got 'uniform'",
        ),
        ({"sigma_pre": None}, r"expected a policy as sigma_pre\[\d\], which plays at history '.*', got None"),
        ({"sigma": None}, r"expected a policy as sigma\[\d\], which plays .* got None"),
        ({"sigma": (_uniform, None)}, r"expected a policy as sigma\[1\], which plays .* got None"),
        ({"position_key": lambda s: 0}, "expected position_key to join only states that play the same, got"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        _from_game(**arguments)


@pytest.mark.parametrize("name", ["sigma_pre", "sigma"])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({0: 0.5}, "to sum to 1"),
        ({0: 0.7, 1: 0.7}, "to sum to 1"),
        ({}, "to sum to 1"),
        ({0: -0.5, 1: 1.5}, r"probabilities in \[0, 1\]"),
        ({0: math.nan, 1: 1.0}, r"probabilities in \[0, 1\]"),
        ({99: 1.0}, "legal actions"),
        ({-1: 1.0}, "legal actions"),
        (None, r"\{action: probability\}"),
        ([1.0, 0.0], r"\{action: probability\}"),
    ],
)
def test_bad_policies(name, player, row, words):
    policies = [_uniform, _uniform]
    policies[player] = lambda state: row
    expected = (
        rf"^HistoryTree.from_game\(\): expected (the probabilities of )?{name}\[{player}\] .*{words}.* got "
    )
    with pytest.raises(ValueError, match=expected):
        _from_game(**{name: policies})


@pytest.mark.parametrize("count", [-1, 1])
def test_batches_of_the_wrong_length(count):
    class Policy:
        def action_probabilities_batch(self, states):
            return (
                [_uniform(s) for s in states][:count]
                if count < 0
                else [_uniform(s) for s in [*states, *states]]
            )

    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected sigma\[0\] to answer \d+ states"
    ):
        _from_game(sigma=(Policy(), _uniform))


def test_position_keys_that_join_too_much():
    game = pyspiel.load_game("tic_tac_toe")
    words = r"^HistoryTree.from_game\(\): expected position_key to join only states that play the same, got '"

    def expand(policy, key):
        HistoryTree.from_game(
            game,
            sigma_pre=policy,
            sigma=policy,
            penalties=(0.01, math.inf),
            position_key=key,
            leaf_value=lambda s: 0.0,
        )

    with pytest.raises(ValueError, match=words):  # different legal actions
        expand(_uniform, lambda s: len(s.history()))
    # The board is right for the game, not for a policy that looks at the history.
    with pytest.raises(ValueError, match=words):
        expand(random_policy(1), _board)
    expand(_by_board(1), _board)
    # Information states that differ, with the same legal actions and the same policy.
    with pytest.raises(ValueError, match=words):
        HistoryTree.from_game(
            pyspiel.load_game("kuhn_poker"),
            sigma_pre=_uniform,
            sigma=_uniform,
            penalties=0.01,
            position_key=lambda s: (len(s.history()), str(s)[:2]),
        )


def test_policies_are_given_by_name():
    # sigma and sigma_pre swapped by position would be a tree of another question.
    with pytest.raises(TypeError, match=r"HistoryTree.from_game\(\) takes 2 positional arguments"):
        HistoryTree.from_game(random_tree(3), _uniform, _uniform, 0.1)


def test_a_policy_of_another_game():
    leduc = openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker"))
    words = r"expected sigma\[0\] to know the states .* of kuhn_poker\(\), got KeyError: '0'; is it a "
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        HistoryTree.from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=_last, sigma=leduc, penalties=0.1)
    cfr = make_policy(pyspiel.load_game("leduc_poker"), "cfr(iterations=1)")
    with pytest.raises(ValueError, match="state of player 0 that the policy was computed for, got '0'"):
        HistoryTree.from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=_last, sigma=cfr, penalties=0.1)


def test_position_keys_that_cannot_be_looked_up():
    words = r"expected position_key to give something hashable, .* got \[\] at history ''"
    for values in ("exact", lambda state: 0.0):
        with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
            _from_game(position_key=lambda state: state.history(), leaf_value=values)


def test_a_fair_coin_stays_one():
    tree = _from_game(min_probability=0.01)
    assert tree.same_as(_from_game(min_probability=0.0))


def test_an_error_leaves_no_traceback_of_others():
    # One error, not one raised while another was handled.
    with pytest.raises(ValueError) as caught:
        _from_game(penalties="x")
    assert caught.value.__context__ is None


# -- indices and names ----------------------------------------------------------------------------------


def _kuhn_tree(sigma_pre="best_response", sigma="uniform"):
    game = pyspiel.load_game("kuhn_poker")
    named = {"sigma_pre": make_policy(game, sigma_pre), "sigma": make_policy(game, sigma)}
    return HistoryTree.from_game(game, **named, penalties=(0.01, 0.3))


def test_keys_of_information_states():
    tree = _kuhn_tree()
    assert [tree.key(k) for k in range(tree.num_infosets)] == list(tree.infoset_keys)
    game = pyspiel.load_game("tic_tac_toe")
    board = HistoryTree.from_game(game, sigma_pre=_last, sigma=_last, penalties=0.1)
    assert board.infoset_keys is None
    keys = [board.key(k) for k in range(board.num_infosets)]
    assert keys == [board.state(int(h)).history_str() for h in board.infoset_history]
    assert keys[0] == "" and len(set(keys)) == len(keys)


def test_trees_that_are_the_same():
    tree = _kuhn_tree()
    assert tree.same_as(tree) and tree.same_as(_kuhn_tree()) and tree.same_as(tree.with_penalties(0.4))
    assert not tree.same_as(_kuhn_tree(sigma="random"))  # as many histories, other policies
    assert tree.num_histories == _kuhn_tree(sigma="random").num_histories
    assert not tree.same_as(_kuhn_tree(sigma_pre="cfr(iterations=5)"))


def test_indices_that_there_are_none_of():
    tree = _kuhn_tree()
    n, m = tree.num_histories, tree.num_infosets
    missing = tree.find([0, 0])  # nobody is dealt a card twice
    assert missing == -1
    for method in (tree.state, tree.actions, tree.children):
        for wrong in (missing, n, -n):
            with pytest.raises(
                ValueError, match=rf"^HistoryTree.\w+\(\): expected history .* 0 to {n - 1}, got"
            ):
                method(wrong)
        method(np.int32(n - 1))
    for method in (tree.memorized_row, tree.key):
        for wrong in (-1, m):
            with pytest.raises(
                ValueError, match=rf"^HistoryTree.\w+\(\): expected infoset .* 0 to {m - 1}, got"
            ):
                method(wrong)
    assert tree.infoset_of(tree.game.new_initial_state()) == -1  # a chance node


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", _KINDS)
def test_save_and_load(tmp_path, kind):
    tree, path = _tree(kind), tmp_path / "tree.data"  # no ending is added
    tree.save(path)
    assert os.listdir(tmp_path) == ["tree.data"]
    loaded = HistoryTree.load(path)
    assert loaded.fingerprint == tree.fingerprint
    for name in ARRAYS:
        one, two = getattr(tree, name), getattr(loaded, name)
        assert one.dtype == two.dtype
        assert np.array_equal(one, two, equal_nan=name == "value")
    for name in (
        "game_string", "penalties", "utility_range", "utility_sum", "stop_value", "infoset_keys", "work",
    ):  # fmt: skip
        assert getattr(loaded, name) == getattr(tree, name)
    assert loaded.policies == (None, None)
    assert loaded.base_game is None
    for player in (0, 1):
        if kind == "evaluated" and player == 1:
            continue
        one, two = best_precomputation(tree, player), best_precomputation(loaded, player)
        assert (one.value, one.utility, one.size) == (two.value, two.utility, two.size)
        assert one.memorization_set.tolist() == two.memorization_set.tolist()
        assert one.net_gain.tolist() == two.net_gain.tolist()
    if kind not in ("efg", "uneven"):
        deepest = tree.num_histories - 1
        assert str(loaded.state(deepest)) == str(tree.state(deepest))
    loaded.save(str(path))  # a string will do, and the file is replaced
    assert HistoryTree.load(str(path)).fingerprint == tree.fingerprint


def test_a_file_of_new_penalties(tmp_path):
    tree = _tree("random").with_penalties((0.5, math.inf))
    tree.save(tmp_path / "t")
    loaded = HistoryTree.load(tmp_path / "t")
    assert loaded.penalties == (0.5, math.inf)
    assert loaded.fingerprint == tree.fingerprint == _tree("random").fingerprint


def test_saving_where_it_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        _tree("kuhn").save(tmp_path / "missing" / "tree.npz")
    with pytest.raises(ValueError, match="plain file"):
        _tree("kuhn").save(tmp_path)
    assert os.listdir(tmp_path) == []


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        HistoryTree.load(tmp_path / "none.npz")
    with pytest.raises(OSError, match="directory"):
        HistoryTree.load(tmp_path)


_WORDS = r"^HistoryTree.load\(\): expected (a file written by HistoryTree.save|fingerprint).* got "


@pytest.fixture
def saved(tmp_path):
    """(path, its bytes) of a small tree."""
    path = tmp_path / "tree.npz"
    HistoryTree.from_game(random_tree(3, depth=2), **_both(3), penalties=0.3).save(path)
    return path, path.read_bytes()


def test_flipped_bytes(saved):
    path, data = saved
    tree = HistoryTree.load(path)
    refused = 0
    for k, mask in itertools.product(range(0, len(data), 7), (0xFF, 0x01)):
        path.write_bytes(data[:k] + bytes([data[k] ^ mask]) + data[k + 1 :])
        try:
            loaded = HistoryTree.load(path)
        except ValueError as error:
            assert str(error).startswith("HistoryTree.load(): expected ")
            refused += 1
        else:  # a time stamp, say
            assert loaded.fingerprint == tree.fingerprint
            assert (loaded.penalties, loaded.work) == (tree.penalties, tree.work)
    assert refused > len(data) / 7


def test_truncated_files(saved):
    path, data = saved
    for size in [0, 1, 2, 3, 4, *range(5, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=_WORDS):
            HistoryTree.load(path)


def test_files_of_other_kinds(saved, tmp_path):
    _, data = saved
    other = tmp_path / "other"
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.save(tmp_path / "pickle.npy", np.array([{"a": 1}], object), allow_pickle=True)
    contents = [
        b"",
        b"once upon a time\n" * 100,
        b"\x00" * 1000,
        b"PK\x03\x04" + b"\xff" * 500,
        (tmp_path / "other.npz").read_bytes(),
        (tmp_path / "array.npy").read_bytes(),
        (tmp_path / "pickle.npy").read_bytes(),
        b"\x80\x04}\x94.",  # a pickle of {}
        data[1:],
    ]
    for content in contents:
        other.write_bytes(content)
        with pytest.raises(ValueError, match=_WORDS):
            HistoryTree.load(other)


def _rewrite(path, header=None, raw_header=None, drop=(), **arrays):
    """Writes a sound archive whose contents were changed."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    if header is not None:
        parts["header"] = np.frombuffer(
            json.dumps(json.loads(bytes(parts["header"])) | header).encode(), np.uint8
        )
    if raw_header is not None:
        parts["header"] = np.frombuffer(raw_header, np.uint8)
    parts |= arrays
    with open(path, "wb") as file:
        np.savez(file, **{name: part for name, part in parts.items() if name not in drop})


@pytest.mark.parametrize(
    "change",
    [
        {"header": {"fingerprint": "0" * 64}},
        {"header": {"format": "precomp-games history tree 0"}},
        {"header": {"game": "tic_tac_toe"}},
        {"header": {"utility_sum": 0.0}},
        {"header": {"utility_sum": None}},
        {"header": {"utility_range": "wide"}},
        {"header": {"stop_value": "both"}},
        {"header": {"penalties": [0.3]}},
        {"header": {"penalties": [0.3, -1.0]}},
        {"header": {"penalties": [0.3, "inf"]}},
        {"header": {"penalties": None}},
        {"header": {"infoset_keys": ["x"]}},
        {"header": {"work": 3}},
        {"raw_header": b"[]"},
        {"raw_header": b"{}"},
        {"raw_header": b"not json"},
        {"raw_header": b"\xff\xfe"},
        {"raw_header": b"[" * 100_000},
        {"drop": ["header"]},
        *({"drop": [name]} for name in ARRAYS),
        *({name: np.zeros(0, kind)} for name, kind in ARRAYS.items() if name != "position"),
        *({name: np.full(9, 77, kind)} for name, kind in ARRAYS.items()),
        {"sigma": np.array([None] * 9, object)},  # pickled
        {"parent": np.array("x")},
    ],
    ids=lambda change: str(change)[:50],
)
def test_files_that_are_no_tree(saved, change):
    path, _ = saved
    _rewrite(path, **change)
    with pytest.raises(ValueError, match=_WORDS):
        HistoryTree.load(path)


def test_pickles_are_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    path = tmp_path / "bomb.npz"
    bomb = np.empty(1, object)
    bomb[0] = Bomb()
    np.savez(path, header=bomb, **{name: bomb for name in ARRAYS})
    with pytest.raises(ValueError, match=_WORDS):
        HistoryTree.load(path)
    assert not (tmp_path / "ran").exists()
