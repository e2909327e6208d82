"""Every public function refuses what it cannot use, in one line that names it: a ValueError or TypeError.

Functions are called with good values, which work, and with what each parameter cannot be, one at a time.
That follows from the parameter's annotation, or from a good value where the annotation is not checked. Good
values follow from annotations as well, or are found in `tests/wrong_calls.py`.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import math
import signal
import types
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pyspiel
import pytest

from precomp_games._support import checks
from precomp_games._support.checks import Ge, Gt, Le, Lt
from precomp_games.policies import specs as policy_specs
from tests.wrong_calls import EXEMPT, FACES, Arg, values

_SECONDS = 20  # in which a call is refused


NOTHING = object()  # that nobody expects
_BEYOND: dict[Any, list[Any]] = {
    bool: [2, "yes"],
    int: [True, 0.5, math.nan, "1", [1]],
    float: [True, math.nan, math.inf, "1", [1.0], 1j],
    str: [7, b"text"],
    checks.check_player: [2, -1],
    checks.check_seed: [-1, 0.5, []],
    checks.check_path: ["", "\0", 1],
}


def beyond(hint):
    """Return values that an annotation does not allow."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _beyond_marks(*parts)
    if type(None) in parts and len(parts) == 2:
        return beyond(parts[0])
    without_end = [10**30, -(10**30)] if hint is int else []
    return ["nonsense"] if origin is Literal else _BEYOND.get(hint, [NOTHING]) + without_end


def _beyond_marks(base, *marks):
    for mark in marks:
        if isinstance(mark, checks.Check):
            return ["nonsense"] if mark.words else _BEYOND.get(mark.function, [NOTHING, [NOTHING]])
    wrong = [
        each for each in _BEYOND.get(base, beyond(base)) if each != math.inf or checks.INFINITE not in marks
    ]
    for kind, end, step in ((Ge, "ge", -1), (Gt, "gt", 0), (Le, "le", 1), (Lt, "lt", 0)):
        wrong += [getattr(mark, end) + step for mark in marks if isinstance(mark, kind)]
    return wrong


def unlike(value):
    """Return what is tried in place of a good value whose annotation is not checked."""
    tried = [NOTHING, math.nan, b"\0\1"]
    if isinstance(value, np.ndarray):
        tried += [value[:-1], np.full(value.shape, math.nan), value[None], value + 1j]
        tried += [np.ma.masked_array(value, True), value.astype(str), [*value.tolist(), "x"]]
    elif isinstance(value, list | tuple) and value:
        tried += [[NOTHING] * len(value), [math.nan] * len(value), [*value, NOTHING]]
    elif isinstance(value, int | float):
        tried += [True, str(value), [value], complex(value, 1)]
    return tried


def foreign(value):
    """Return what is no good in place of a value of its kind: its class, or another state."""
    if isinstance(value, pyspiel.State):
        over = value.clone()
        while not over.is_terminal():
            over.apply_action(over.legal_actions()[0])
        dealt = pyspiel.load_game("leduc_poker").new_initial_state().child(0).child(1)
        return [value.get_game(), over, dealt]
    if isinstance(value, list) and value:
        return [[each] for each in foreign(value[0])]
    of_library = type(value).__module__.startswith("precomp_games")
    return [type(value)] * of_library + [{7: 7}] * isinstance(value, dict)


@dataclasses.dataclass(frozen=True)
class Call:
    """A public function, a class, whose constructor is called, or a method, bound to an object."""

    face: str
    path: str  # "function", "Class" or "Class.method"

    @functools.cached_property
    def function(self):
        name, _, method = self.path.partition(".")
        thing = getattr(importlib.import_module(self.face), name)
        if f"{self.path}()" in values() and not (inspect.isclass(thing) and not method):
            return values()[f"{self.path}()"].good
        if not method or isinstance(vars(thing)[method], classmethod | staticmethod):
            return getattr(thing, method) if method else thing
        made = values().get(f"{name}()") or values().get(thing)
        return getattr(made.good if made else thing(**Call(self.face, name).good), method)

    def key(self, parameter, hint):
        """Return the most special key of the table whose value a parameter's annotation takes, or None."""
        name, _, method = self.path.partition(".")
        parts, kind = (self.path, method, name, self.face.rpartition(".")[2]), _class_of(hint)
        for key in (*(f"{part}.{parameter}" for part in parts), parameter, kind):
            if key in values() and (values()[key].good is ... or isinstance(values()[key].good, kind)):
                return key
        return None

    @functools.cached_property
    def arguments(self):
        """Return {parameter: `Arg`} with all that is wrong; `good` is `...` where the default is."""
        tests, hints, found = checks.checks_of(self.function), _hints(self.function), {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            test, hint = tests.get(name), hints.get(name)
            value = values().get(self.key(name, hint))
            if value is None:
                value = Arg(_plain(test, name) if parameter.default is parameter.empty else ...)
                if test is None or value.good is NOTHING:
                    raise LookupError(f"tests/wrong_calls.py lacks a value for {self.path}.{name}")
            wrong = unlike(value.good) if test is None else beyond(hint)
            wrong = [*wrong, *foreign(value.good), *value.wrong]
            wrong = [each for each in wrong if not _among(each, value.fine)]
            found[name] = Arg(value.good, *wrong, fine=value.fine)
        return found

    @property
    def good(self):
        return {name: each.good for name, each in self.arguments.items() if each.good is not ...}


def _class_of(hint):
    """Return the class that an annotation asks for, perhaps beside None; `object` if it is no class."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is Annotated or (len(parts) == 1 and type(None) in get_args(hint)):
        return _class_of(parts[0])
    is_kind = inspect.isclass(hint) and hint is not Any and not getattr(hint, "_is_protocol", False)
    return hint if is_kind else object


def _hints(function):
    """Return the annotations of a function's parameters."""
    raw = inspect.unwrap(function.__init__ if inspect.isclass(function) else function)
    given = {name: hint for name, hint in raw.__annotations__.items() if name != "return"}
    return get_type_hints(types.SimpleNamespace(__annotations__=given), raw.__globals__, include_extras=True)


def _plain(test, name):
    """Return a number or a flag that a parameter takes by its annotation."""
    for value in (0, 1, 0.5, False):
        with contextlib.suppress(ValueError, TypeError):
            if test is not None and type(test(value, name)) is type(value):
                return value
    return NOTHING


def _among(value, fine):
    return fine is ... or any(type(value) is type(each) and repr(value) == repr(each) for each in fine)


def calls(face, exempt=EXEMPT):
    """Return the calls of a face: a function or constructor that others show as well is of the last one.

    Data that check nothing are results and errors, which the library makes; nobody makes protocols.
    """
    module, found = importlib.import_module(face), []
    for name in module.__all__:
        thing = getattr(module, name)
        home = [each for each in FACES if getattr(importlib.import_module(each), name, None) is thing][-1]
        if not callable(thing) or face != home or getattr(thing, "_is_protocol", False):
            continue
        members = vars(thing).items() if inspect.isclass(thing) else ()
        is_data = members and (dataclasses.is_dataclass(thing) or issubclass(thing, tuple | Exception))
        if not is_data or hasattr(thing.__init__, "_reads_annotations"):
            found.append(name)
        found += [f"{name}.{method}" for method, what in members if _takes(method, what)]
    return [Call(face, path) for path in found if path not in exempt]


def _takes(name, what):
    """Return whether it is a public method with parameters."""
    function = getattr(what, "__func__", what)
    if name.startswith("_") or not inspect.isfunction(function):
        return False
    return len(inspect.signature(function).parameters) > (not isinstance(what, staticmethod))


@pytest.fixture(autouse=True)
def no_policies_are_left(monkeypatch):
    policy_specs.policy_names()  # those of the library stay: they are registered once
    monkeypatch.setattr(policy_specs, "_FACTORIES", dict(policy_specs._FACTORIES))


def _accepted(call):
    """Yield wrong arguments that a function accepts, or refuses in other words than it should."""
    for argument, each in call.arguments.items():
        for wrong in each.wrong:
            what = f"{call.path}: {argument}={str(wrong)[:60]!r} ({type(wrong).__name__})"
            signal.alarm(_SECONDS)
            try:
                call.function(**{**call.good, argument: wrong})
            except (ValueError, TypeError) as error:
                if call.path.rpartition(".")[2] not in str(error) or "\n" in str(error):
                    yield f"{what}: not named in a line: {type(error).__name__}: {str(error)[:120]}"
            except Exception as error:
                yield f"{what}: {type(error).__name__}: {str(error)[:120]}"
            else:
                yield f"{what}: accepted"


@pytest.mark.usefixtures("ends_in_time")
@pytest.mark.parametrize("face", FACES)
def test_wrong_calls_are_refused(face):
    failures = [each for call in calls(face) for each in _accepted(call)]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures)
    arguments = {f"{call.path}.{name}": each for call in calls(face) for name, each in call.arguments.items()}
    untried = [name for name, each in arguments.items() if not each.wrong and each.fine is not ...]
    assert not untried


def _of_numpy(value):
    """Return the same number as numpy has it, of the smallest kind that holds it."""
    if type(value) is int and abs(value) < 2**63:
        return np.array(value, np.min_scalar_type(value))[()]
    return np.float32(value) if isinstance(value, float) else value


@pytest.mark.parametrize("face", FACES)
def test_good_calls_are_good_and_objects_keep_plain_numbers(face):
    for call in calls(face):
        given, is_class = call.good, inspect.isclass(call.function)
        if is_class:
            parameters = inspect.signature(call.function).parameters.items()
            defaults = {name: each.default for name, each in parameters if type(each.default) in (int, float)}
            given = {name: _of_numpy(value) for name, value in (defaults | given).items()}
        made = call.function(**given)
        kept = vars(made) if is_class and hasattr(made, "__dict__") else {}
        assert not {key for key, each in kept.items() if isinstance(each, np.generic)}, call.path
        if hasattr(made, "close"):
            made.close()


def test_the_table_has_nothing_that_no_function_takes():
    every = [call for face in FACES for call in calls(face)]
    taken = {call.key(name, _hints(call.function).get(name)) for call in every for name in call.arguments}
    taken |= {f"{call.path}()" for call in every} | {f"{call.path.partition('.')[0]}()" for call in every}
    assert not {key for key in values() if isinstance(key, str)} - taken
    assert EXEMPT.keys() <= {call.path for face in FACES for call in calls(face, exempt=())}
