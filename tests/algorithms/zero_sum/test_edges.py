"""Odd games, games with false declarations, and crafted files of trees and policies."""

import dataclasses
import json
import math

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, to_efg
from precomp_games._support.files import read_archive, write_archive
from precomp_games.algorithms import (
    best_response,
    load_policy,
    memory_frontier,
    meta_equilibrium,
    nash_conv,
    restricted_nash,
    save_policy,
    solve,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.algorithms.zero_sum.solve import METHODS
from tests.oracles.games import EfgText, uniform
from tests.oracles.zero_sum import MatrixGame


def _nothing_to_decide():
    """Games that are over at once, or by chance."""
    over, by_chance = EfgText(), EfgText()
    over.leaf(1)
    by_chance.chance({"a": "0.25", "b": "0.75"})
    for utility in (4, -4):
        by_chance.leaf(utility)
    return ((over.game(), 1.0), (by_chance.game(), -2.0))


@pytest.mark.parametrize("method", METHODS)
def test_where_nobody_moves(method):
    for game, value in _nothing_to_decide():
        found = solve(game, method=method)
        assert found.value == value and found.nash_conv == 0.0 and not found.policy().state_lookup
        assert nash_conv(game, uniform) == 0.0 and best_response(game, uniform, 1).value == -value
        assert solve(pyspiel.load_efg_game(to_efg(game))).value == value


def test_where_one_player_never_moves():
    text = EfgText()
    text.move(2, 1, ["x", "y", "z"])
    for utility in (3, -1, 2):
        text.leaf(utility)
    for method in METHODS:
        assert solve(text.game(), method=method, target_nash_conv=None).value == pytest.approx(-1.0, abs=0.02)


def test_games_that_are_not_what_they_say():
    with pytest.raises(ValueError, match=r"add up to 0.* got 3\.0 and -9\.0 at history '0, 0'"):
        solve(MatrixGame([[(3, -9), (0, 5)], [(1, 0), (2, 1)]]))
    for odd, words in ((math.nan, "from -1 to 1, .* got nan and nan"), (math.inf, "a finite range of")):
        with pytest.raises(ValueError, match=words):
            solve(MatrixGame([[(odd, -odd), (0, 0)]]))


def test_a_menu_is_no_longer_than_its_numbers():
    """Entries are int16; more of them once were taken for others."""
    with pytest.raises(ValueError, match="expected at most 32768 entries on a menu, got 33000"):
        solve(MatrixGame(np.stack([np.arange(33000.0), -np.arange(33000.0)], axis=-1)[:, np.newaxis]))


def test_what_takes_meta_games_alone():
    tree = HistoryTree.of_game(pyspiel.load_game("kuhn_poker"))
    strategies = solve(tree).strategies
    for refused in (
        lambda: tree.with_penalties(0.5),
        lambda: restricted_nash(tree, 0, model_probability=0.5),
        lambda: meta_sequence_form_lp(tree),
        lambda: memory_frontier(tree, 0, opponent=strategies[1]),
    ):
        with pytest.raises(ValueError, match="game alone"):
            refused()
    assert meta_equilibrium(tree).value == solve(tree).value
    for more in ({"iterations": 5}, {"seconds": 1.0}):
        with pytest.raises(ValueError, match='with method="exact"'):
            solve(tree, **more)


def test_crafted_trees(tmp_path):
    tree = HistoryTree.of_game(pyspiel.load_game("kuhn_poker"))
    turns = np.flatnonzero(tree.infoset >= 0)
    changed = {
        "sigma_pre": tree.sigma_pre * 0.5,
        "sigma": np.where(tree.player[tree.parent] >= 0, 0.5, tree.sigma),
        "infoset": np.where(np.arange(tree.num_histories) == turns[0], -1, tree.infoset).astype(np.int32),
        "action": np.where(tree.parent == turns[-1], tree.action + 1, tree.action).astype(np.int32),
        "infoset_keys": None,
        "utility_sum": math.nan,
        "utility_range": math.inf,
    }
    for name, value in changed.items():
        path = tmp_path / f"{name}.npz"
        dataclasses.replace(tree, **{name: value}).save(path)
        with pytest.raises(ValueError, match=r"expected a file written by HistoryTree\.save"):
            HistoryTree.load(path)


def test_crafted_policies(tmp_path):
    path = tmp_path / "policy.npz"
    save_policy(solve("kuhn_poker").policy(), path)
    head, arrays = read_archive(path, ("start", "action", "probability"))
    head = json.loads(json.dumps(head))
    wraps = np.array([0, 2**63 - 1, -2, *range(5, 24, 2), 24])[: len(arrays["start"])]
    for name, value in (
        ("start", wraps),
        ("start", arrays["start"][::-1].copy()),
        ("action", arrays["action"] + 10**6),
        ("probability", arrays["probability"] * np.nan),
    ):
        write_archive(path, head, arrays | {name: value.astype(arrays[name].dtype)})
        with pytest.raises(ValueError, match=r"a file written by save_policy|expected actions below"):
            load_policy(path)
    write_archive(path, head | {"game": "leduc_poker(players=3)"}, arrays)
    with pytest.raises(ValueError, match="expected game, since that of the file does not serve"):
        load_policy(path)
