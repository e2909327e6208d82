"""Public functions say in their signatures which arguments they take, and refuse all others in one line.

    @public
    def best_of_frontier(frontier: MemoryFrontier, budget: Annotated[int, Ge(0)]) -> BestPrecomputation: ...

    best_of_frontier(): expected budget to be an integer of at least 0, got -1

The decorator `public` checks each argument against its annotation, and hands the function the value in its
plain type (int or float), so that the function uses what was checked. It understands these annotations:

  * bool, int, float and str; numbers are finite unless `INFINITE` is in the annotation;
  * bounds of numbers, such as `Annotated[int, Ge(0)]`, of the package annotated-types;
  * words (`Literal`), and words that are kept elsewhere (`one_of`);
  * classes, of which the value must be an instance, and unions of classes; of `Mapping[...]` and `dict[...]`
    only the class itself is checked;
  * instances in an iterable (`each_of`), functions (`Callable`), and None beside any of these;
  * any other check (`Check`).

Arguments with other annotations are not checked, and neither are defaults. The annotations of a dataclass
are those of its fields, so that `__post_init__` finds them checked.

An error that is raised inside a public function (`ArgumentError` and its like) says what was expected, and
the public function puts its own name in front. Where one public function calls another, the outer one names
itself, since that is the one that the user called.

Why not pydantic's `validate_call`, typeguard or beartype: their errors take several lines or name types
only, and they do not refuse True as a number.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pyspiel
from annotated_types import Ge as Ge
from annotated_types import Gt as Gt
from annotated_types import Le as Le
from annotated_types import Lt as Lt

from precomp_games._support.checks import (
    ArgumentError,
    Unnamed,
    check_boolean,
    check_choice,
    check_function,
    check_game,
    check_instance,
    check_integer,
    check_number,
    check_path,
    check_player,
    check_seed,
    shown,
)

_F = TypeVar("_F", bound=Callable[..., Any])
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_Test = Callable[[Any, str], Any]  # takes a value and the argument's name; gives what is kept

_MARK = "_reads_annotations"  # what is public has, under this name, what reads its annotations

INFINITE = object()
"""`Annotated[float, Ge(0.0), INFINITE]`: infinities too, as far as bounds let them."""


@dataclasses.dataclass(frozen=True)
class Check:
    """`Annotated[Any, Check(function)]`: it takes a value and the argument's name, and gives what is kept.

    Attributes:
      function: the check.
      words: those that there are, where the value is one of several words.
    """

    function: _Test
    words: Collection[str] = ()


def one_of(words: Collection[str]) -> Check:
    """In an annotation, beside str: one of these words, as `Literal` of words that are kept elsewhere."""
    return Check(lambda value, name: check_choice(value, words, name), words)


def each_of(kind: type) -> Check:
    """In an annotation, beside an iterable: instances of a class, which the function gets as a tuple."""

    def check(value: Any, name: str) -> tuple[Any, ...]:
        if isinstance(value, str | bytes) or not isinstance(value, collections.abc.Iterable):
            raise ArgumentError(f"expected {name} to be {kind.__name__}s, got {shown(value)}")
        return tuple(check_instance(each, kind, name) for each in value)

    return Check(check)


NonNegativeInt = Annotated[int, Ge(0)]
"""0, 1, 2 and so on."""
PositiveInt = Annotated[int, Ge(1)]
"""1, 2, 3 and so on."""
NonNegativeFloat = Annotated[float, Ge(0.0)]
"""A finite number of at least 0."""
PositiveFloat = Annotated[float, Gt(0.0)]
"""A finite number above 0."""
Seconds = Annotated[float, Gt(0.0), Le(1e6)]
"""For which something is waited: some days at most, since event loops refuse what is much more."""
Player = Annotated[int, Check(check_player)]
"""0 or 1."""
Seed = Annotated[int | Sequence[int], Check(check_seed)]
"""What numpy's generators start from."""
FilePath = Annotated[str | os.PathLike[str], Check(check_path)]
"""A path, which the function gets as text."""
Game = Annotated[pyspiel.Game, Check(lambda value, name: check_game(value))]
"""A game inside of the model: for two players, sequential, of constant sum, with explicit chance."""
GeneralSumGame = Annotated[pyspiel.Game, Check(lambda value, name: check_game(value, constant_sum=False))]
"""The same, of any sum."""


def public(function: _F) -> _F:
    """A function, method or class (that is, its constructor) that checks its arguments; see above."""
    if inspect.isclass(function):
        function.__init__ = public(function.__init__)  # type: ignore[method-assign]
        return function

    @functools.cache
    def read() -> tuple[dict[str, _Test], list[tuple[str, _Test | None]]]:
        """At the first call, since annotations may name what is defined later."""
        tests = _tests(function)
        return tests, [(name, tests.get(name)) for name in inspect.signature(function).parameters]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            tests, positional = read()
            given = [
                value if test is None else test(value, name)
                for value, (name, test) in zip(args, positional, strict=False)
            ]
            for name in kwargs:
                if (test := tests.get(name)) is not None:
                    kwargs[name] = test(kwargs[name], name)
            return function(*given, *args[len(given) :], **kwargs)
        except Unnamed as error:
            error.function = _called(function, args)
            raise

    setattr(checked, _MARK, read)
    return checked  # type: ignore[return-value]


def _called(function: Any, args: Any) -> str:
    """The words for it in an error: "Book()", "HistoryTree.find()"."""
    if function.__name__ == "__init__":
        return f"{type(args[0]).__name__}()"
    return f"{function.__qualname__}()"


def _tests(function: Callable[..., Any]) -> dict[str, _Test]:
    """What is asked of each argument of which something is."""
    names = {**vars(typing), **function.__globals__}
    tests = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if annotation is parameter.empty or parameter.kind in _VARIADIC:
            continue
        if isinstance(annotation, str):
            annotation = eval(annotation, names)
        if (test := check_of(annotation)) is not None:
            tests[name] = test
    return tests


def checks_of(function: Callable[..., Any]) -> dict[str, _Test]:
    """What is asked of each argument of a function, or of a class (its constructor); not public: nothing."""
    made: Any = function.__init__ if inspect.isclass(function) else function
    return getattr(made, _MARK)()[0] if hasattr(made, _MARK) else {}


_NUMBERS: dict[Any, _Test] = {bool: check_boolean, int: check_integer, float: check_number}


def check_of(annotation: Any) -> _Test | None:
    """What an annotation asks of a value; None if nothing that can be asked."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        base, *marks = typing.get_args(annotation)
        return _marked(base, marks)
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(annotation))
    if origin is Literal:
        return one_of(typing.get_args(annotation)).function
    if origin is collections.abc.Callable:
        return check_function
    if origin in (dict, collections.abc.Mapping):
        return _instance_of(origin)
    if annotation in _NUMBERS:
        return _NUMBERS[annotation]
    return _instance_of(annotation) if _is_kind(annotation) else None


def _instance_of(kind: Any) -> _Test:
    return lambda value, name: check_instance(value, kind, name)


def _is_kind(annotation: Any) -> bool:
    """Whether values are to be instances of it; arrays are made of anything that numpy takes."""
    plain = inspect.isclass(annotation) and typing.get_origin(annotation) is None
    return plain and annotation not in (Any, np.ndarray) and not getattr(annotation, "_is_protocol", False)


def _marked(base: Any, marks: list[Any]) -> _Test | None:
    for mark in marks:
        if isinstance(mark, Check):
            return mark.function
    if base not in (int, float):
        return check_of(base)
    bounds: dict[str, Any] = {} if base is int else {"finite": INFINITE not in marks}
    for mark in marks:
        for kind, field, bound in (
            (Ge, "ge", "least"),
            (Le, "le", "most"),
            (Gt, "gt", "above"),
            (Lt, "lt", "below"),
        ):
            if isinstance(mark, kind):
                bounds[bound] = getattr(mark, field)
    return functools.partial(_NUMBERS[base], **bounds)


def _union(parts: tuple[Any, ...]) -> _Test | None:
    kinds = tuple(part for part in parts if part is not types.NoneType)
    optional = len(kinds) < len(parts)
    if len(kinds) == 1:
        test = check_of(kinds[0])
    elif all(_is_kind(kind) and kind not in _NUMBERS for kind in kinds):
        test = _instance_of(kinds)
    else:
        return None
    if test is None or not optional:
        return test
    return lambda value, name: None if value is None else test(value, name)
