"""Checks of arguments by signatures: `precomp_games._support.checks`."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import precomp_games
from precomp_games._support import checks
from precomp_games._support.checks import (
    INFINITE,
    ArgumentError,
    Check,
    Ge,
    Gt,
    Le,
    Lt,
    Player,
    Seed,
    each_of,
    one_of,
    public,
)

COLORS = ("red", "blue")


def even(value, name):
    if value % 2:
        raise ArgumentError(f"expected {name} to be even, got {value}")
    return value


@public
def called(
    number: int = 1,
    bounded: Annotated[int, Ge(0), Le(9)] = 0,
    share: Annotated[float, Gt(0.0), Lt(1.0)] = 0.5,
    price: Annotated[float, Ge(0.0), INFINITE] | None = None,
    word: Literal["yes", "no"] = "yes",
    flag: bool = False,
    text: str | None = None,
    color: Annotated[str, one_of(COLORS)] = "red",
    kinds: dict | list | None = None,
    table: Mapping[str, int] | None = None,
    rows: dict[int, int] | None = None,
    arrays: Annotated[Iterable[np.ndarray], each_of(np.ndarray)] = (),
    function: Callable[[int], int] | None = None,
    array: Sequence[int] | np.ndarray | None = None,
    player: Player = 0,
    seed: Seed = 0,
    pair: Annotated[Any, Check(even)] = 0,
    anything: Any = None,
):
    return locals()


@pytest.mark.parametrize(
    ("argument", "value", "kept"),
    [
        ("number", np.int8(3), 3),
        ("bounded", 9, 9),
        ("share", np.float32(0.5), 0.5),
        ("price", float("inf"), float("inf")),
        ("price", None, None),
        ("word", "no", "no"),
        ("flag", np.True_, True),
        ("text", "a", "a"),
        ("color", "blue", "blue"),
        ("kinds", [1], [1]),
        ("table", {"what is in it": "is left to the function"}, {"what is in it": "is left to the function"}),
        ("rows", None, None),
        ("arrays", [], ()),
        ("function", abs, abs),
        ("array", "left to the function", "left to the function"),
        ("player", np.int64(1), 1),
        ("seed", [1, np.int64(2)], [1, 2]),
        ("pair", 4, 4),
        ("anything", called, called),
    ],
)
def test_what_is_taken(argument, value, kept):
    got = called(**{argument: value})[argument]
    assert got == kept and type(got) is type(kept)


@pytest.mark.parametrize(
    ("argument", "value", "told"),
    [
        ("number", True, "to be an integer, got True"),
        ("bounded", 10, "to be an integer from 0 to 9, got 10"),
        ("share", 1, "to be a positive number below 1, got 1"),
        ("share", None, "to be a positive number below 1, got None"),
        ("price", float("nan"), "to be a number of at least 0, got nan"),
        ("word", "maybe", 'to be one of "yes", "no", got \'maybe\''),
        ("flag", 1, "to be True or False, got 1"),
        ("text", 3, "to be a str, got 3"),
        ("color", "green", 'to be one of "red", "blue", got \'green\''),
        ("color", 1, 'to be one of "red", "blue", got 1'),
        ("kinds", 3, "to be a dict or a list, got 3"),
        ("table", [1], "to be a Mapping, got [1]"),
        ("rows", 1, "to be a dict, got 1"),
        ("arrays", "abc", "to be ndarrays, got 'abc'"),
        ("arrays", 1, "to be ndarrays, got 1"),
        ("arrays", [1], "to be a ndarray, got 1"),
        ("function", 3, "to be a function, got 3"),
        ("player", 2, "0 or 1, got 2"),
        ("seed", -1, "to be an integer of at least 0, or a sequence of them, got -1"),
        ("pair", 3, "to be even, got 3"),
    ],
)
def test_what_is_refused(argument, value, told):
    with pytest.raises(
        ValueError, match=rf"^called\(\): expected {argument} .*{re.escape(told.split(' ', 1)[1])}"
    ):
        called(**{argument: value})


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


def test_a_dataclass_is_checked_by_its_fields():
    pair = Pair(np.int8(1), np.int8(9))
    assert type(pair.first) is float and type(pair.second) is int
    for call in (lambda: Pair(1.0, 10), lambda: dataclasses.replace(pair, second=10)):
        with pytest.raises(
            ValueError, match=r"^Pair\(\): expected second to be an integer of at most 9, got 10$"
        ):
            call()


def test_the_outer_function_is_named():
    for call, name in (
        (lambda: Thing(0), "Thing"),
        (lambda: Part(0), "Part"),
        (lambda: Thing.of(0), "Thing.of"),
    ):
        with pytest.raises(
            ValueError, match=rf"^{name}\(\): expected size to be an integer of at least 1, got 0$"
        ):
            call()
    with pytest.raises(ValueError, match=r"^Thing\.grow\(\): expected by "):
        Thing(1).grow("x")
    assert Thing(1).grow(np.int8(2), 3, by_name=4) == 10
    with pytest.raises(TypeError, match="positional argument"):
        Thing.of(1, 2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Thing.of(sise=2)


def public_functions():
    """Return all public functions of the library."""
    found = {}
    for module in pkgutil.walk_packages(precomp_games.__path__, "precomp_games."):
        for thing in vars(importlib.import_module(module.name)).values():
            members = [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]
            for member in members:
                function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                if hasattr(function, "_reads_annotations"):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


def test_all_annotations_can_be_read():
    functions = public_functions()
    assert len(functions) > 200
    for name, function in functions.items():
        try:
            checks.checks_of(function)
        except NameError as error:
            pytest.fail(f"{name}: {error}; what a public function takes is imported where it runs")
