"""Every public function refuses what it cannot use: a ValueError or TypeError that names it, at once."""

import contextlib
import signal

import pytest

from tests.wrong_calls import EXEMPT, FACES, calls, public_paths, table, wrong_values

_SECONDS = 20


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
    """What a function takes, or refuses in other words than it should, of what it cannot take."""
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


@pytest.mark.parametrize("face", FACES)
def test_wrong_calls_are_refused(face):
    failures = [each for call in calls(face) for each in _accepted(call)]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures)


@pytest.mark.parametrize("face", FACES)
def test_good_calls_are_good(face):
    unused = set(table(face))
    for call in calls(face):
        made = call.function(**call.good)
        if hasattr(made, "close"):
            made.close()
        unused -= call.keys
    assert not unused, "what no function takes has gone, or has another name"
