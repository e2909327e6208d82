"""Checks of arguments by signatures, and values that pass for numbers: `precomp_games._support.checks`."""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import precomp_games
from precomp_games._support import checks
from precomp_games._support.checks import INFINITE, Ge, Gt, Le, Lt, Player, Seed, public
from tests.oracles.trees import from_game


def even(value, name):
    if value % 2:
        raise checks.ArgumentError(f"expected {name} to be even, got {value}")
    return value


_BOUNDED, _SHARE = Annotated[int, Ge(0), Le(9)], Annotated[float, Gt(0.0), Lt(1.0)]
_PRICE = Annotated[float, Ge(0.0), INFINITE] | None
_COLOR, _COLORS = Annotated[str, checks.one_of(("red", "blue"))], 'to be one of "red", "blue", got '
_ARRAYS = Annotated[Iterable[np.ndarray], checks.each_of(np.ndarray)]
_EVEN, _FUNCTION = Annotated[Any, checks.Check(even)], Callable[[int], int] | None
_OPEN = {"what is in it": "is left to the function"}


def called(annotation, value):
    def function(given):
        return given

    function.__annotations__["given"] = annotation
    return public(function)(value)


@pytest.mark.parametrize(
    ("annotation", "given", "kept", "refused", "words"),
    [
        (int, np.int8(3), 3, True, "to be an integer, got True"),
        (_BOUNDED, 9, 9, 10, "to be an integer from 0 to 9, got 10"),
        (_SHARE, np.float32(0.5), 0.5, 1, "to be a positive number below 1, got 1"),
        (_SHARE, 0.5, 0.5, None, "to be a positive number below 1, got None"),
        (_PRICE, math.inf, math.inf, math.nan, "to be a number of at least 0, got nan"),
        (_PRICE, None, None, -1, "to be a number of at least 0, got -1"),
        (Literal["yes", "no"], "no", "no", "maybe", 'to be one of "yes", "no", got \'maybe\''),
        (bool, np.True_, True, 1, "to be True or False, got 1"),
        (str | None, "a", "a", 3, "to be a str, got 3"),
        (_COLOR, "blue", "blue", "green", _COLORS + "'green'"),
        (_COLOR, "red", "red", 1, _COLORS + "1"),
        (dict | list | None, [1], [1], 3, "to be a dict or a list, got 3"),
        (Mapping[str, int], _OPEN, _OPEN, [1], "to be a Mapping, got [1]"),
        (dict[int, int] | None, None, None, 1, "to be a dict, got 1"),
        (_ARRAYS, [], (), "abc", "to be ndarrays, got 'abc'"),
        (_ARRAYS, [], (), 1, "to be ndarrays, got 1"),
        (_ARRAYS, [], (), [1], "to be a ndarray, got 1"),
        (_FUNCTION, abs, abs, 3, "to be a function, got 3"),
        (Player, np.int64(1), 1, 2, "0 or 1, got 2"),
        (Seed, [1, np.int64(2)], [1, 2], -1, "to be an integer of at least 0, or a sequence of them, got -1"),
        (_EVEN, 4, 4, 3, "to be even, got 3"),
        (Sequence[int] | np.ndarray, "left to the function", "left to the function", None, ""),
        (Any, called, called, None, ""),
    ],
)
def test_what_is_taken_is_kept_in_its_plain_type_and_the_rest_refused(
    annotation, given, kept, refused, words
):
    got = called(annotation, given)
    assert got == kept and type(got) is type(kept)
    if words:
        with pytest.raises(ValueError, match=rf"function\(\): expected given {re.escape(words)}$"):
            called(annotation, refused)


class Thing:
    @public
    def __init__(self, size: Annotated[int, Ge(1)]) -> None:
        self.size = size

    @classmethod
    @public
    def of(cls, size: int) -> "Thing":
        return cls(size)

    @public
    def grow(self, by: int, *more: int, **named: int) -> int:
        return self.size + by + sum(more) + sum(named.values())


class Part(Thing):
    pass


@public
@dataclasses.dataclass(frozen=True)
class Pair:
    first: Annotated[float, Ge(0.0)]
    second: "Annotated[int, Le(9)] | None" = None

    def __post_init__(self):
        assert type(self.first) is float


def test_the_outer_function_is_named_and_calls_are_pythons():
    pair, size, second = Pair(np.int8(1), np.int8(9)), "size to be an integer of at least 1", "of at most 9"
    for call, words in (
        (lambda: Thing(0), rf"Thing\(\): expected {size}, got 0"),
        (lambda: Part(0), rf"Part\(\): expected {size}, got 0"),
        (lambda: Thing.of(0), rf"Thing.of\(\): expected {size}, got 0"),
        (lambda: Thing(1).grow("x"), r"Thing\.grow\(\): expected by to be an integer, got 'x'"),
        (lambda: Pair(1.0, 10), rf"Pair\(\): expected second to be .* {second}, got 10"),
        (lambda: dataclasses.replace(pair, second=10), rf"Pair\(\): expected second .* {second}, got 10"),
    ):
        with pytest.raises(ValueError, match=f"^{words}$"):
            call()
    assert type(pair.first) is float and type(pair.second) is int
    assert Thing(1).grow(np.int8(2), 3, by_name=4) == 10
    with pytest.raises(TypeError, match="positional argument"):
        Thing.of(1, 2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Thing.of(sise=2)


def test_all_annotations_can_be_read():
    found = {}
    for module in pkgutil.walk_packages(precomp_games.__path__, "precomp_games."):
        for thing in vars(importlib.import_module(module.name)).values():
            for member in [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]:
                function = getattr(member, "__func__", member)
                if hasattr(function, "_reads_annotations"):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    assert len(found) > 200
    for name, function in found.items():
        try:
            checks.checks_of(function)
        except NameError as error:
            pytest.fail(f"{name}: {error}; what a public function takes is imported where it runs")


def test_real_arrays():
    numbers: list[Any] = [[0, 1], (0.5, 1), np.array([1, 2], np.int8), [Fraction(1, 2), 1]]
    for value in (*numbers, np.ma.masked_array([0.5, 1.0], [False, False])):
        found = checks.real_array(value)
        assert found.dtype == np.float64 and found.tolist() == [float(each) for each in value]
    others: list[Any] = [
        np.ma.masked_array([0.5, 1.0], [False, True]),
        *([0.5, 1j], np.array([0.5, 1.0 + 0j]), ["0.5", "1"], np.array(["0.5", "1"], object)),
        *(np.array([b"0.5"]), np.array(["2026-01-01"], "M8[D]"), b"\0\1", bytearray(b"\0\1")),
        *(memoryview(b"\0\1"), [10**400], [object(), 1.0], [[1.0], [1.0, 2.0]]),
    ]
    assert [value for value in others if checks.real_array(value) is not None] == []


def test_penalties_beyond_floats_are_as_good_as_infinite():
    assert from_game(penalties=(0.1, 10**400)).penalties == (0.1, math.inf)
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected penalties to be positive"):
        from_game(penalties=-(10**400))
