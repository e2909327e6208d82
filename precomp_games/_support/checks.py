"""Checks of public functions' arguments by their signatures, with errors of one line.

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

What a signature cannot express is asked in the body, by the functions `check_...`: each takes a value and the
name of the argument, and returns the value in its plain type (int, float, or an array of float64). Callers
keep what a check returns, so that no number of another type gets any further. A bool is not accepted as a
number, since True in place of 1 is a mistake.

An error that is raised inside a public function (`ArgumentError` and its like) states what was expected, and
the public function puts its own name in front. Where one public function calls another, the outer one names
itself, since that is the one that the user called.

Why not pydantic's `validate_call`, typeguard or beartype: their errors take several lines or name types
only, and they do not refuse True as a number.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import operator
import os
import shlex
import types
import typing
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyspiel
from annotated_types import Ge as Ge
from annotated_types import Gt as Gt
from annotated_types import Le as Le
from annotated_types import Lt as Lt

_LONGEST = 300  # characters
_LINE_ENDS = "\n\r\t\u2028\u2029"


def one_line(error: object) -> str:
    """Return an error's message on one line, or its repr if it has none."""
    text = " ".join(str(error).split()) or repr(error)
    plain = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST])
    return plain[:_LONGEST]


def pasteable(text: str) -> str:
    """Return a text as a word of a shell's command line, as Python writes it if it has control characters."""
    return shlex.quote(text) if text.isprintable() else repr(text)


def counted(number: int, what: str, form: str = "") -> str:
    """Return a number with its noun, such as "1 game" or "12 games"; `form` formats the number."""
    return f"{number:{form}} {what}{'s' * (number != 1)}"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a hint for errors about an unknown name, or "" if no known one is close to it."""
    near = difflib.get_close_matches(str(word)[:100], list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def plain_text(text: str, longest: int = 2000) -> str:
    """Return a text from outside without control characters that change the layout, cut to a length."""
    kept = "".join(
        " " if character in _LINE_ENDS else character
        for character in text[: 2 * longest]
        if character in _LINE_ENDS or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


# -- checks -----------------------------------------------------------------------------------------------

_T = TypeVar("_T")
_BYTES = (bytes, bytearray, memoryview)


class Unnamed(Exception):
    """An error without its function's name, which the public function that was called adds."""

    function = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.function}: {text}" if self.function else text


class ArgumentError(Unnamed, ValueError):
    """An argument is not what it should be."""


def shown(value: Any) -> str:
    """Return `repr(value)` for an error message: on one line, at most some 200 characters, never an error."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:120]} ... {text[-60:]}"


def at_history(state: Any) -> str:
    """Return the words that locate an error at a state's history."""
    return f"at history {state.history_str()!r}"


# The ends that a range may have: the mark of annotated-types for each, what holds of numbers in it, in words.
_ENDS: dict[str, tuple[Any, Callable[[Any, Any], Any], str]] = {
    "least": (Ge, operator.ge, "of at least"),
    "above": (Gt, operator.gt, "above"),
    "most": (Le, operator.le, "of at most"),
    "below": (Lt, operator.lt, "below"),
}


def _within(ends: Mapping[str, float | None]) -> str:
    """Return the words for a range, such as " from 0 to 1"; nothing where it has no ends."""
    given = {end: at for end in _ENDS if (at := ends.get(end)) is not None}
    bounds = {end: f"{at:g}" if isinstance(at, float) else f"{at}" for end, at in given.items()}
    if "least" in bounds and "most" in bounds:
        return f" from {bounds['least']} to {bounds['most']}"
    return " and".join(f" {_ENDS[end][2]} {at}" for end, at in bounds.items())


def check_integer(value: Any, name: str, **ends: int | None) -> int:
    """Return an integer, numpy's included, in a range; see `check_number`.

    Raises:
      ValueError: the value is no integer, or out of range.
    """
    holds = type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))
    for end, at in ends.items():
        holds = holds and (at is None or _ENDS[end][1](value, at))
    if holds:
        return int(value)
    raise ArgumentError(f"expected {name} to be an integer{_within(ends)}, got {shown(value)}")


def check_number(value: Any, name: str, *, finite: bool = True, **ends: float | None) -> float:
    """Return a real number, numpy's included, never NaN.

    Args:
      value: what was given.
      name: the argument.
      finite: refuse infinities.
      **ends: `least`, the smallest that is accepted, or `above`, what it must be larger than; `most`, the
        largest, or `below`, what it must be smaller than.

    Raises:
      ValueError: the value is no such number, or out of range.
    """
    number = value if type(value) is float else _float(value)
    holds = math.isfinite(number) or (not finite and not math.isnan(number))
    for end, at in ends.items():
        holds = holds and (at is None or _ENDS[end][1](number, at))
    if holds:
        return number
    positive = ends.get("above") == 0.0
    kinds = ["positive"] * positive
    kinds += ["finite"] * (finite and ends.get("most") is None and ends.get("below") is None)
    words, within = ", ".join(kinds), _within(ends | {"above": None} if positive else ends)
    words = f"{words} number".strip()
    raise ArgumentError(f"expected {name} to be a {words}{within}, got {shown(value)}")


def _float(value: Any) -> float:
    """Return a real number as a float, infinite where it is beyond floats; NaN for what is none."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def check_boolean(value: Any, name: str) -> bool:
    """Return the value if it is True or False, numpy's included.

    Raises:
      ValueError: it is neither.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArgumentError(f"expected {name} to be True or False, got {shown(value)}")


def check_player(value: Any, name: str = "player") -> int:
    """Return the value if it is player 0 or 1.

    Raises:
      ValueError: it is neither of the integers.
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and value in (0, 1):
        return int(value)
    raise ArgumentError(f"expected {name} 0 or 1, got {shown(value)}")


def check_choice(value: Any, choices: Collection[str], name: str) -> str:
    """Return the value if it is one of the choices.

    Raises:
      ValueError: the value is none of them; the error lists them.
    """
    if isinstance(value, str) and value in choices:
        return value
    words, hint = ", ".join(f'"{choice}"' for choice in choices), did_you_mean(value, choices)
    raise ArgumentError(f"expected {name} to be one of {words}, got {shown(value)}{hint}")


def check_function(value: Any, name: str) -> Any:
    """Return the value if it can be called.

    Raises:
      ValueError: it cannot be called.
    """
    if callable(value):
        return value
    raise ArgumentError(f"expected {name} to be a function, got {shown(value)}")


def check_instance(value: Any, kind: type[_T] | tuple[type[_T], ...], name: str) -> _T:
    """Return the value if it is an instance of a class, or of one of several.

    Raises:
      ValueError: the value is no such instance; the error names its maker where `_made_by` gives one. A class
        in place of its instance is the commonest case.
    """
    if isinstance(value, kind):
        return value
    kinds: tuple[Any, ...] = kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(map(_a, kinds))
    hint = "".join(f"; {made} makes one" for k in kinds if (made := getattr(k, "_made_by", "")))
    raise ArgumentError(f"expected {name} to be {names}, got {shown(value)}{hint}")


def _a(kind: type) -> str:
    """Return the words for one of a class. OpenSpiel's are common ones: its module is named too."""
    name = f"pyspiel.{kind.__name__}" if kind.__module__.startswith("pyspiel") else kind.__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def check_pair(value: Any, name: str) -> tuple[Any, Any]:
    """Return `(value, value)`, or the two elements of a list, tuple or array: for both players, or one each.

    Raises:
      ValueError: a list, tuple or array that does not have two elements.
    """
    if isinstance(value, list | tuple | np.ndarray):
        count = 1 if isinstance(value, np.ndarray) and not value.ndim else len(value)
        if count != 2:
            raise ArgumentError(f"expected {name} to be one value or a pair, got {count} of them")
        return value[0], value[1]
    return value, value


def check_parameters(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a game's parameters as OpenSpiel gives them, with the defaults of those that were not given.

    Raises:
      ValueError: they name a parameter that the game does not have.
    """
    unknown = sorted(str(name) for name in value if name not in {"name", *defaults})
    if unknown:
        raise ArgumentError(f"expected parameters {sorted(defaults)}, got {shown(unknown)}")
    return {name: value.get(name, default) for name, default in defaults.items()}


def check_path(value: Any, name: str) -> str:
    """Return a file's path, as text, without checking that it can be read or written.

    Raises:
      ValueError: it is no text nor a path of text, or empty, or has a NUL, which no path can.
    """
    path = value.__fspath__() if isinstance(value, os.PathLike) else value
    if isinstance(path, str) and path and "\0" not in path:
        return path
    raise ArgumentError(f"expected {name} to be a path, got {shown(value)}")


def check_penalties(penalties: float | Sequence[float]) -> tuple[float, float]:
    """Return penalties (lambda_0, lambda_1) per memorized state, in utility; one number stands for both.

    Raises:
      ValueError: a penalty is not positive or NaN. Infinity is allowed: a player who never memorizes.
    """
    first, second = map(_float, check_pair(penalties, "penalties"))
    if first > 0.0 and second > 0.0:
        return first, second
    kind = "positive numbers (math.inf for a player who never memorizes)"
    raise ArgumentError(f"expected penalties to be {kind}, got {shown(penalties)}")


def real_array(value: Any) -> npt.NDArray[np.float64] | None:
    """Return numbers as an array, itself if it is one; None for text, bytes, complex or masked numbers."""
    try:
        array = np.asarray(value)
        real = array.dtype.kind in "biuf" and not np.ma.is_masked(value)
        real |= array.dtype.kind == "O" and all(isinstance(each, numbers.Real | None) for each in array.flat)
        return array.astype(np.float64, copy=False) if real and not isinstance(value, _BYTES) else None
    except (TypeError, ValueError, OverflowError):
        return None


def check_numbers(
    value: Any, length: int, name: str, *, finite: bool = True, which: Any = None, **ends: float | None
) -> npt.NDArray[np.float64]:
    """Return float64[length], as an array of one's own that cannot be written to; never NaN.

    Args:
      value: an array, or what numpy makes one of.
      length: the number that there must be.
      name: the argument.
      finite: refuse infinities.
      which: bool[length], those that count; the others become 0. None: all.
      **ends: see `check_number`.

    Raises:
      ValueError: another shape, or an entry that is no such number.
    """
    array = real_array(value)
    if array is not None and array.shape == (length,):
        array = array.copy() if which is None else np.where(which, array, 0.0)
        holds = np.isfinite(array) if finite else ~np.isnan(array)
        for end, at in ends.items():
            holds &= True if at is None else _ENDS[end][1](array, at)
        if holds.all():
            array.flags.writeable = False
            return array
    kind = "finite numbers" if finite and ends.get("most") is None else "numbers"
    raise ArgumentError(f"expected {name} to be {length} {kind}{_within(ends)}, got {shown(value)}")


def check_indices(value: Any, count: int, name: str) -> npt.NDArray[np.int64]:
    """Return integers from 0 to count - 1, of an array or any other iterable.

    Raises:
      ValueError: the value has no entries, or one of them is no such integer: a boolean, a fraction.
    """
    plain = not isinstance(value, (str, *_BYTES)) and not np.ma.is_masked(value)
    try:
        array = np.asarray(value if isinstance(value, np.ndarray) else list(value))
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    whole = array.dtype.kind in "iu" and ((array >= 0) & (array < count)).all()
    if plain and array.ndim == 1 and (whole or not len(array)):
        return array.astype(np.int64)
    raise ArgumentError(f"expected {name} to be integers of at least 0 and below {count}, got {shown(value)}")


def check_game(
    game: Any, *, constant_sum: bool = True, perfect: bool = False, strings: bool = False
) -> pyspiel.Game:
    """Return a game inside the model: two players, sequential, chance (if any) explicit.

    Perfect recall cannot be read off a game; it is checked where the game is walked.

    Args:
      game: what was given.
      constant_sum: utilities must add up to a constant.
      perfect: information must be perfect. Otherwise it may be, and players must have information state
        strings where it is not.
      strings: they must have such strings in any case.

    Raises:
      ValueError: it is no such game; the error states what is wrong with it.
    """
    if not isinstance(game, pyspiel.Game):
        raise ArgumentError(f"expected a pyspiel.Game, got {shown(game)}")
    kind = game.get_type()
    got, turns = f"got {kind.short_name}", "pyspiel.convert_to_turn_based() makes it one"
    knows_all = kind.information == kind.Information.PERFECT_INFORMATION
    needs_strings, sampled = strings or not knows_all, kind.ChanceMode.SAMPLED_STOCHASTIC
    for wrong, expected in (
        (game.num_players() != 2, f"a two-player game, {got} with {game.num_players()} players"),
        (kind.dynamics != kind.Dynamics.SEQUENTIAL, f"a sequential game, {got}, a simultaneous one; {turns}"),
        (
            constant_sum and not of_constant_sum(game),
            f"a zero-sum or constant-sum game, {got}; {TAKES_ANY_SUM}",
        ),
        (kind.chance_mode == sampled, f"explicit chance nodes, {got} with sampled ones"),
        (perfect and not knows_all, f"a game of perfect information, {got}"),
        (needs_strings and not kind.provides_information_state_string, f"information state strings, {got}"),
    ):
        if wrong:
            raise ArgumentError(f"expected {expected}")
    return game


def check_state(state: Any, game: pyspiel.Game | str | None = None) -> Any:
    """Return a state of a game, of `game` where it is given, as itself or as its string.

    Raises:
      ValueError: the value is no state, or one of another game.
    """
    if not isinstance(state, pyspiel.State):
        raise ArgumentError(f"expected a pyspiel.State, got {shown(state)}")
    if game is not None:
        own = state.get_game()
        if own is not game and str(own) != str(game):
            raise ArgumentError(f"expected a state of {shown(str(game))}, got one of {shown(str(own))}")
    return state


def check_turn(state: Any, player_id: Any, game: pyspiel.Game | str | None = None) -> int:
    """Return the player who moves at a state of a game: the one that a policy is asked for, named or not.

    Raises:
      ValueError: it is no such state, nobody moves there, or `player_id` is neither None nor the mover.
    """
    player = int(check_state(state, game).current_player())
    if player not in (0, 1):
        raise ArgumentError(f"expected a state where a player moves, got {state.history_str()!r}")
    if player_id is not None and check_player(player_id, "player_id") != player:
        raise ArgumentError(f"expected player_id {player}, who moves, got {player_id}")
    return player


TAKES_ANY_SUM = (
    "those of any sum are for best_response, nash_conv, to_efg, "
    "best_precomputation against a fixed opponent, "
    "algorithms.efce and algorithms.lookahead"
)
"""Advice for a game that is refused for its sum."""


def of_constant_sum(game: pyspiel.Game) -> bool:
    """Return whether a game declares that its players' utilities add up to a constant."""
    sums = pyspiel.GameType.Utility
    return game.get_type().utility in (sums.ZERO_SUM, sums.CONSTANT_SUM)


def utility_sum(game: pyspiel.Game) -> float:
    """Return the constant that both players' utilities add up to (0 also where there is none)."""
    total = game.utility_sum()
    return 0.0 if total is None else float(total)


def check_evaluation(value: Any, state: Any, name: str) -> float:
    """Return the value that a function gave to a state, if it is a finite number.

    Args:
      value: the function's answer.
      state: the state that it was called with.
      name: the name of the argument, the function.

    Raises:
      ValueError: the answer is no such number.
    """
    if isinstance(value, float) and -math.inf < value < math.inf:  # at once: searches ask very often
        return float(value)
    try:
        return check_number(value, name)
    except ValueError:
        got = f"{shown(value)} {at_history(state)}"
        raise ArgumentError(f"expected {name} to give a finite number, got {got}") from None


def check_ranking(value: Any, actions: Sequence[int], name: str, where: str | None = None) -> list[int]:
    """Return the order of actions that a given function answers: each of them once.

    Args:
      value: its answer.
      actions: what it was asked to rank.
      name: the argument, the function.
      where: the information state that it was asked about.

    Raises:
      ValueError: it is no order of them.
    """
    try:
        ranked = list(value)
        if sorted(ranked) == sorted(actions):
            return list(map(operator.index, ranked))
    except TypeError:
        pass
    at = "" if where is None else f" at {where!r}"
    raise ArgumentError(f"expected {name} to rank {list(actions)}{at}, got {shown(value)}")


def check_seed(value: Any, name: str = "seed") -> int | list[int]:
    """Return a seed of numpy's generators: an integer of at least 0, or a list or tuple of them.

    Raises:
      ValueError: the value is no seed.
    """
    words = value if isinstance(value, list | tuple) and value else [value]
    if all(isinstance(w, numbers.Integral) and not isinstance(w, bool) and int(w) >= 0 for w in words):
        return [int(w) for w in words] if words is value else int(value)
    kind = "an integer of at least 0, or a sequence of them"
    raise ArgumentError(f"expected {name} to be {kind}, got {shown(value)}")


# -- signatures -------------------------------------------------------------------------------------------

_F = TypeVar("_F", bound=Callable[..., Any])
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_Test = Callable[[Any, str], Any]  # takes a value and the argument's name; gives what is kept

_MARK = "_reads_annotations"  # what is public has, under this name, what reads its annotations

INFINITE = object()
"""`Annotated[float, Ge(0.0), INFINITE]`: infinities too, as far as bounds let them."""


@dataclasses.dataclass(frozen=True)
class Check:
    """A check of a value: `Annotated[Any, Check(function)]`, a function of the value and the argument's name.

    Attributes:
      function: the check, which returns the value to keep.
      words: the choices, where the value is one of several words.
    """

    function: _Test
    words: Collection[str] = ()


def one_of(words: Collection[str]) -> Check:
    """Return an annotation's check beside str: one of these words, like `Literal` of words kept elsewhere."""
    return Check(lambda value, name: check_choice(value, words, name), words)


def each_of(kind: type) -> Check:
    """Return an annotation's check beside an iterable: instances of a class, passed on as a tuple."""

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
"""A waiting time: some days at most, since event loops refuse much more."""
Player = Annotated[int, Check(check_player)]
"""0 or 1."""
Seed = Annotated[int | Sequence[int], Check(check_seed)]
"""A seed of numpy's generators."""
FilePath = Annotated[str | os.PathLike[str], Check(check_path)]
"""A path, which the function gets as text."""


def public(function: _F) -> _F:
    """Return a function, method or class (that is, its constructor) that checks its arguments; see above."""
    if inspect.isclass(function):
        function.__init__ = public(function.__init__)  # type: ignore[method-assign]
        return function

    @functools.cache
    def read() -> tuple[dict[str, _Test], list[tuple[str, _Test | None]]]:
        """Read the annotations at the first call, since they may name what is defined later."""
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
    """Return the words for it in an error: "Book()", "HistoryTree.find()"."""
    if function.__name__ == "__init__":
        return f"{type(args[0]).__name__}()"
    return f"{function.__qualname__}()"


def _tests(function: Callable[..., Any]) -> dict[str, _Test]:
    """Return the check of each argument that has one."""
    plain = [p for p in inspect.signature(function).parameters.values() if p.kind not in _VARIADIC]
    given = {p.name: p.annotation for p in plain if p.annotation is not p.empty}
    written = types.SimpleNamespace(__annotations__=given)  # what it returns may name what is not there
    hints = typing.get_type_hints(written, function.__globals__, include_extras=True)
    return {name: test for name, hint in hints.items() if (test := check_of(hint)) is not None}


def checks_of(function: Callable[..., Any]) -> dict[str, _Test]:
    """Return the checks of a function's arguments, or of a class's constructor; {} if it is not public."""
    made: Any = function.__init__ if inspect.isclass(function) else function
    return getattr(made, _MARK)()[0] if hasattr(made, _MARK) else {}


_NUMBERS: dict[Any, _Test] = {bool: check_boolean, int: check_integer, float: check_number}


def check_of(annotation: Any) -> _Test | None:
    """Return the check that an annotation asks for, or None."""
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
    """Return whether an annotation is a class to check by isinstance; arrays may be made of anything."""
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
        for end, (kind, holds, _) in _ENDS.items():
            if isinstance(mark, kind):
                bounds[end] = getattr(mark, holds.__name__)
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
