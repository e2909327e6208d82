"""Properties by hypothesis: how many examples are tried, and the same ones each time."""

import math

import hypothesis

FEW, ALL = "few", "all"
_PART = 8


def register_profiles() -> None:
    """Register both profiles, and load that of `make test`; `--hypothesis-profile=all` loads the other.

    Examples are derived from the test: a failure that comes once and not again is of no use in CI. Games that
    are too large to enumerate are drawn and left out, some five for one that is taken.
    """
    checks = hypothesis.HealthCheck
    unchecked = [checks.too_slow, checks.data_too_large, checks.filter_too_much]
    for name in (FEW, ALL):
        hypothesis.settings.register_profile(
            name, derandomize=True, deadline=None, suppress_health_check=unchecked
        )
    hypothesis.settings.load_profile(FEW)


def examples(count: int) -> hypothesis.settings:
    """Return settings that try as many examples, or an eighth of them in `make test`."""
    part = 1 if hypothesis.settings.get_current_profile_name() == ALL else _PART
    return hypothesis.settings(max_examples=math.ceil(count / part))
