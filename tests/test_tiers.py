"""Measured costs belong to existing tests, and tests that cost much give a reason."""

from tests import tiers


def test_what_costs_make_test_more_than_two_seconds_says_why(request):
    items = request.session.items
    few = tiers.few(items)
    seconds = tiers.seconds_of(items)
    silent = [
        f"{item.nodeid}: {seconds[item.nodeid]} s"
        for item in items
        if item.nodeid in few
        and seconds[item.nodeid] > tiers.DEAR
        and item.get_closest_marker("seconds") is None
        and ("cases" not in item.fixturenames or request.config.getoption("--tier") in ("few", "quick"))
    ]
    assert not silent


def test_what_is_measured_is_there():
    """Of tests that are gone, the seconds go."""
    assert [test for test in tiers.kept() if not tiers.is_there(test)] == []


class _Item:
    """A stand-in for a test, with as much as `few` needs."""

    def __init__(self, name: str, *markers: str) -> None:
        self.nodeid, self._markers = name, markers

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._markers else None


def test_few_has_the_cheapest_cases_of_each_function(monkeypatch):
    kept = {f"a.py::one[{k}]": k / 10.0 for k in (4, 2, 3)} | {"a.py::two": 9.0, "a.py::three": 0.1}
    monkeypatch.setattr(tiers, "kept", lambda: kept)
    items = [_Item(name, *(["test_all"] if "three" in name else [])) for name in kept]
    assert tiers.few(items) == {"a.py::one[2]", "a.py::one[3]", "a.py::two"}
