"""`HistoryTree.check` refuses arrays that describe no tree."""

import dataclasses
import math

import numpy as np
import pytest

from precomp_games.tree.facts import ARRAYS, CHANCE, TERMINAL
from tests.oracles.trees import tree_of


def _damaged(tree, name, where, value):
    """Bypasses the constructor's types: what a hand-made file may hold."""
    array = getattr(tree, name).copy()
    array[where] = value
    return dataclasses.replace(tree, **{name: array})


def _inner(tree):
    return int(np.flatnonzero(tree.num_children > 1)[-1])


def _leaf(tree):
    return int(np.flatnonzero(tree.num_children == 0)[0])


_DAMAGE = [  # (array, where, what does not belong there)
    ("player", lambda t: 0, [2, -3, 127, TERMINAL]),
    ("infoset", _inner, [10**6, -2, 2**31 - 1]),
    ("infoset", _leaf, [0]),
    ("infoset", lambda t: t.infoset == t.num_infosets - 1, [-1]),  # an information state without histories
    ("infoset_player", lambda t: -1, [CHANCE]),
    ("infoset_player", lambda t: t.infoset_player == t.infoset_player[0], [0, 1]),
    ("sigma", lambda t: 1, [-0.1, 1.1, math.nan]),
    ("sigma_pre", lambda t: 1, [-1e-9, math.inf, math.nan]),
    ("value", _leaf, [math.nan, math.inf]),
    ("action", lambda t: t.first_child[_inner(t)], [-1, 10**6]),
]


@pytest.mark.parametrize("kind", ["random", "kuhn", "positions"])
@pytest.mark.parametrize(("name", "where", "values"), _DAMAGE)
def test_check_rejects_damage(kind, name, where, values):
    tree = tree_of(kind)
    for value in values:
        damaged = _damaged(tree, name, where(tree), value)
        if not np.array_equal(getattr(tree, name), getattr(damaged, name)):
            with pytest.raises(ValueError, match="does not describe a tree"):
                damaged.check()


@pytest.mark.parametrize("kind", ["random", "kuhn", "positions"])
@pytest.mark.parametrize("name", ["parent", "num_children", "first_child"])
def test_check_rejects_any_other_shape(kind, name):
    tree = tree_of(kind)
    for where in (0, 1, _inner(tree), _leaf(tree), tree.num_histories - 1):
        for value in (-(2**31), -2, -1, 0, 1, 2, tree.num_histories, 2**31 - 1):
            if value != getattr(tree, name)[where]:
                with pytest.raises(ValueError, match=r"does not describe a tree"):
                    _damaged(tree, name, where, value).check()


_WRONG_ARRAYS = {
    "an entry too few": lambda array, name: array[:-1],
    "an entry too many": lambda array, name: np.append(array, array[-1]),
    "a dimension too many": lambda array, name: array[None],
    "floats": lambda array, name: array.astype(np.float32),
    "small numbers": lambda array, name: array.astype(np.uint8 if name != "value" else np.float16),
    "objects": lambda array, name: array.astype(object),
    "hardly any": lambda array, name: array[:0] if name != "position" else array[:1],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("wrong", _WRONG_ARRAYS)
def test_check_rejects_wrong_types_and_lengths(name, wrong):
    tree = tree_of("positions")
    array = _WRONG_ARRAYS[wrong](getattr(tree, name), name)
    # Lengths are held to those of parent and infoset_player, so that these two blame others.
    blamed = {"parent": ".", "infoset_player": "infoset"}.get(name, name)
    with pytest.raises(ValueError, match=blamed):
        dataclasses.replace(tree, **{name: array}).check()


def _out_of_order(tree):
    one, two = np.flatnonzero(tree.infoset_player == 0)[:2]
    swapped = tree.infoset.copy()
    swapped[tree.infoset == one], swapped[tree.infoset == two] = two, one
    return {"infoset": swapped}


@pytest.mark.parametrize(
    ("kind", "damage", "blamed"),
    [
        ("random", _out_of_order, "infoset"),
        ("kuhn", lambda t: {name: getattr(t, name)[:0] for name in ARRAYS} | {"infoset_keys": ()}, "parent"),
        ("evaluated", lambda t: {"value": np.where(t.infoset >= 0, math.nan, t.value)}, "value"),
        ("kuhn", lambda t: {"stop_value": "both"}, "stop_value"),
        ("kuhn", lambda t: {"infoset_keys": ("x",)}, "infoset_keys"),
    ],
)
def test_check_rejects_other_damage(kind, damage, blamed):
    tree = tree_of(kind)
    with pytest.raises(ValueError, match=f"{blamed} does not describe a tree"):
        dataclasses.replace(tree, **damage(tree)).check()
