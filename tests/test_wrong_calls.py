"""Every public function refuses what it cannot use: a ValueError or TypeError that names it, at once."""

import contextlib
import functools
import importlib
import inspect
import signal
from collections.abc import Iterator

import pytest

from precomp_games.arguments import checks_of
from tests.wrong_calls import GOOD_CALLS, wrong_values
from tests.wrong_calls.exempt import EXEMPT

_AREAS = ("core", "preparation", "meta", "search", "lookahead", "efce", "chess")
for _area in _AREAS:
    importlib.import_module(f"tests.wrong_calls.{_area}")

_FACES = (
    "precomp_games",
    "precomp_games.algorithms",
    "precomp_games.algorithms.efce",
    "precomp_games.algorithms.lookahead",
    "precomp_games.algorithms.search",
    "precomp_games.chess",
)
_SECONDS = 20


def _public() -> Iterator[str]:
    """Names of all public functions, and of constructors and methods with arguments of all public classes."""
    seen = set()
    for face in reversed(_FACES):
        module = importlib.import_module(face)
        for name in module.__all__:
            thing = getattr(module, name)
            if id(thing) in seen or not callable(thing):
                continue
            seen.add(id(thing))
            yield f"{face}:{name}"
            if not inspect.isclass(thing):
                continue
            for method, what in vars(thing).items():
                function = what.__func__ if isinstance(what, classmethod | staticmethod) else what
                if method.startswith("_") or not inspect.isfunction(function):
                    continue
                arguments = len(inspect.signature(function).parameters) - (not isinstance(what, staticmethod))
                if arguments:
                    yield f"{face}:{name}.{method}"


def _leaves_open(name):
    """Whether a function takes anything of which its signature asks nothing."""
    face, _, path = name.partition(":")
    function = functools.reduce(getattr, path.split("."), importlib.import_module(face))
    return inspect.signature(function).parameters.keys() - {"self"} - checks_of(function).keys()


def test_what_signatures_leave_open_has_a_good_call():
    public = set(_public())
    missing = sorted(filter(_leaves_open, public - set(GOOD_CALLS) - set(EXEMPT)))
    assert not missing, f"{len(missing)} without: {missing}"
    assert not set(EXEMPT) - public, sorted(set(EXEMPT) - public)
    assert not set(GOOD_CALLS) & set(EXEMPT)


@contextlib.contextmanager
def _at_most(seconds):
    def late(*_):
        raise TimeoutError(f"not refused after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _accepted(call):
    """What a function takes, or refuses in other words than it should, of what it cannot take."""
    function, good = call.make()
    for argument, wrong in wrong_values(call, function, good):
        what = f"{call.name}: {argument}={str(wrong)[:60]!r} ({type(wrong).__name__})"
        try:
            with _at_most(_SECONDS):
                function(**{**good, argument: wrong})
        except (ValueError, TypeError) as error:
            if call.errors_name not in str(error):
                yield f"{what}: not named: {type(error).__name__}: {str(error)[:120]}"
        except Exception as error:
            yield f"{what}: {type(error).__name__}: {str(error)[:120]}"
        else:
            yield f"{what}: accepted"


@pytest.mark.parametrize("face", _FACES)
def test_wrong_calls_are_refused(face):
    failures = [
        each
        for name in sorted(GOOD_CALLS)
        if name.partition(":")[0] == face
        for each in _accepted(GOOD_CALLS[name])
    ]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures)


@pytest.mark.parametrize("face", _FACES)
def test_good_calls_are_good(face):
    for name in sorted(GOOD_CALLS):
        if name.partition(":")[0] == face:
            function, good = GOOD_CALLS[name].make()
            function(**good)
