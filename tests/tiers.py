"""Which tests run when, by what they cost: `--tier=quick` is of `make check`, `few` of `make test`.

`few` has each test function once or a few times: its cheapest cases, up to half a second in all, and at least
one; all, if it has a reason to cost more (`seconds`). It leaves out what is marked `test_all`: what tries
machines rather than behavior, or all of something of which other tests show a part. `quick` is what is quick
of that and needs no engine, no browser and no process for an example. `rest` is what `few` left out, so that
CI runs both and nothing twice. `all` is everything.

A loop inside a test takes its number of cases from the fixture `cases`, which gives an eighth of them to
`few`; such a test is of the rest as well.

What a test costs stands in `seconds.json`: seconds of the processor, of the test and of the processes that it
starts and waits for, which are nearly the same on a busy machine. `--measure-seconds` writes them.
"""

import collections
import contextlib
import json
import math
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]
import pytest

TIERS = ("quick", "few", "rest", "all")
DEAR = 2.0  # seconds; a test of `few` that costs more has a reason, by the marker `seconds`

_FILE = pathlib.Path(__file__).with_name("seconds.json")
_LEAST = 0.05  # seconds; what costs less is not kept
_UNKNOWN = 0.02  # seconds; of what is not kept, and of new tests
_FUNCTION = 0.5  # seconds of a function's cases in `few`
_QUICK = 0.15  # seconds of a test in `quick`
_PART = 8
_PROCESSES = ("tests/examples/", "tests/test_docs.py")


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="all", help="Which tests; see tests/tiers.py.")
    parser.addoption("--measure-seconds", action="store_true", help=f"Write what tests cost to {_FILE.name}.")


def configure(config: pytest.Config) -> None:
    if config.getoption("--measure-seconds"):
        watch = _Stopwatch()
        config.pluginmanager.register(watch)
        if not hasattr(config, "workerinput"):  # of pytest-xdist, whose workers report
            config.add_cleanup(watch.write)


def seconds_of(items: Sequence[pytest.Item]) -> dict[str, float]:
    """Return the cost of tests in seconds, by their names."""
    measured = kept()
    return {item.nodeid: measured.get(item.nodeid, _UNKNOWN) for item in items}


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of the tier, dear files first: xdist hands out files, and the last ones are short."""
    tier, seconds, few_ones = config.getoption("--tier"), seconds_of(items), few(items)
    chosen: dict[str, Callable[[Any], bool]] = {
        "quick": lambda item: item.nodeid in few_ones and _is_quick(item, seconds[item.nodeid]),
        "few": lambda item: item.nodeid in few_ones,
        "rest": lambda item: item.nodeid not in few_ones or "cases" in item.fixturenames,
        "all": lambda item: True,
    }
    left = [item for item in items if not chosen[tier](item)]
    if left:
        config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if chosen[tier](item)]
    files: collections.Counter[str] = collections.Counter()
    for item in items:
        files[_file(item)] += seconds[item.nodeid]  # type: ignore[assignment]
    items.sort(key=lambda item: (-files[_file(item)], _file(item)))  # a stable sort: files keep their order


def few(items: Sequence[pytest.Item]) -> set[str]:
    """Return the tests of `few`: the cheapest cases of each function, by name."""
    seconds, functions, names = seconds_of(items), dict[str, list[str]](), set()
    for item in items:
        if item.get_closest_marker("test_all") is not None:
            continue
        if item.get_closest_marker("seconds") is not None:
            names.add(item.nodeid)
        else:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    for cases in functions.values():
        left = math.inf  # the first one always
        for case in sorted(cases, key=seconds.__getitem__):
            if seconds[case] > left:
                break
            left = min(left, _FUNCTION) - seconds[case]
            names.add(case)
    return names


def _is_quick(item: pytest.Item, seconds: float) -> bool:
    needs = any(item.get_closest_marker(marker) for marker in ("engine", "browser"))
    return seconds <= _QUICK and not needs and not item.nodeid.startswith(_PROCESSES)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.fixture(scope="session")
def cases(pytestconfig: pytest.Config) -> Callable[[int], int]:
    """Return a function from a loop's number of cases to the number that is run."""
    part = _PART if _in_part(pytestconfig) else 1
    return lambda count: math.ceil(count / part)


def _in_part(config: pytest.Config) -> bool:
    return config.getoption("--tier") in ("quick", "few")


# -- what tests cost -------------------------------------------------------------------------------


def kept() -> dict[str, float]:
    """Return the measured costs of tests in seconds; tests that are missing cost little, or are new."""
    files = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {}
    return {f"{file}::{test}": seconds for file, tests in files.items() for test, seconds in tests.items()}


def is_there(test: str) -> bool:
    """Return whether a test's function is in its file; its cases are not looked at."""
    file, _, name = test.partition("::")
    path, function = _FILE.parents[1] / file, name.partition("[")[0]
    return path.exists() and f"def {function}(" in path.read_text(encoding="utf-8")


class _Stopwatch:
    """Measures the tests that run; of others what was measured before stays."""

    def __init__(self) -> None:
        self._began = 0.0
        self._measured: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._began = _processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if call.when == "teardown" and (_in_part(item.config) or "cases" not in item.fixturenames):  # type: ignore[attr-defined]
            report.user_properties.append(("seconds", max(0.0, _processor_seconds() - self._began)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        measured = dict(report.user_properties).get("seconds")
        if report.when == "teardown" and isinstance(measured, float):
            self._measured[report.nodeid] = measured

    def write(self) -> None:
        """Keep what was measured, and of tests that are gone nothing."""
        files: dict[str, dict[str, float]] = {}
        for test, seconds in sorted((kept() | self._measured).items()):
            if seconds >= _LEAST and is_there(test):
                file, _, name = test.partition("::")
                files.setdefault(file, {})[name] = round(seconds, 2)
        _FILE.write_text(json.dumps(files, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def _processor_seconds() -> float:
    """Return seconds of this process and of all finished processes that it or its children started."""
    total, process = 0.0, psutil.Process()
    for each in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
