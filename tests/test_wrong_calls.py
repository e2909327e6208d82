"""Every public function refuses what it cannot use: a ValueError or TypeError that names it, at once."""

import contextlib
import inspect
import signal

import numpy as np
import pytest

from precomp_games.policies import specs as policy_specs
from tests.wrong_calls import EXEMPT, FACES, calls, public_paths, table, wrong_values

_SECONDS = 20


@pytest.fixture(autouse=True)
def no_policies_are_left(monkeypatch):
    policy_specs.policy_names()  # those of the library stay: they are registered once
    monkeypatch.setattr(policy_specs, "_FACTORIES", dict(policy_specs._FACTORIES))


def test_exempt_names_are_public():
    assert not EXEMPT.keys() - {f"{face}:{path}" for face in FACES for path in public_paths(face)}


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
    """Yield wrong arguments that a function accepts, or refuses in other words than it should."""
    for argument, wrong in wrong_values(call):
        what = f"{call.name}: {argument}={str(wrong)[:60]!r} ({type(wrong).__name__})"
        try:
            with _at_most(_SECONDS):
                call.function(**{**call.good, argument: wrong})
        except (ValueError, TypeError) as error:
            if call.errors_name not in str(error):
                yield f"{what}: not named: {type(error).__name__}: {str(error)[:120]}"
        except Exception as error:
            yield f"{what}: {type(error).__name__}: {str(error)[:120]}"
        else:
            yield f"{what}: accepted"


# Costs seconds: tries every public function.
@pytest.mark.parametrize("face", FACES)
def test_wrong_calls_are_refused(face):
    failures = [each for call in calls(face) for each in _accepted(call)]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures)


@contextlib.contextmanager
def _made(call, given):
    made = call.function(**given)
    try:
        yield made
    finally:
        if hasattr(made, "close"):
            made.close()


@pytest.mark.parametrize("face", FACES)
def test_good_calls_are_good(face):
    unused = set(table(face))
    for call in calls(face):
        with _made(call, call.good):
            unused -= call.keys
    assert not unused, "what no function takes has gone, or has another name"


def _of_numpy(value):
    """Return the same number as numpy has it, of the smallest kind that holds it."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return np.array(value, np.min_scalar_type(value))[()]
    return np.float32(value) if isinstance(value, float) else value


@pytest.mark.parametrize("face", FACES)
def test_objects_keep_plain_numbers(face):
    """Numbers of numpy's that are passed in are Python's in the objects made of them."""
    for call in calls(face):
        parameters = inspect.signature(call.function).parameters.values()
        given = {each.name: each.default for each in parameters if each.default is not each.empty} | call.good
        given = {key: _of_numpy(value) for key, value in given.items()}
        if inspect.isclass(call.function) and any(isinstance(each, np.generic) for each in given.values()):
            with _made(call, given) as made:
                kept = getattr(made, "__dict__", {})
            assert not {key for key, each in kept.items() if isinstance(each, np.generic)}, call.name
