"""Which tests run where: some need a UCI engine or a browser, and some are slow, as marked or as measured."""

import os

# Tests run on every core at once, where a second thread for a small matrix costs more than it gives; numpy
# reads this when it is imported, and what tests start inherits it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import collections
import gc
import math
import pathlib
import shutil
import signal
from collections.abc import Iterator

import pytest
from selenium import webdriver

from precomp_games.chess import EngineError, find_engine

_MEASURED = pathlib.Path(__file__).with_name("slow_tests.txt")
_SLOW_SECONDS = 0.15


# A shell's background jobs ignore SIGINT, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--measure-slow",
        action="store_true",
        help=f"Write which tests take more than {_SLOW_SECONDS} s, to {_MEASURED.name}; they count as slow.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--measure-slow") and not hasattr(config, "workerinput"):  # of pytest-xdist
        config.pluginmanager.register(_Stopwatch())


class _Stopwatch:
    """Measures the tests that run; of others what was measured before stays."""

    def __init__(self) -> None:
        self._seconds: collections.Counter[str] = collections.Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration  # type: ignore[assignment,unused-ignore]

    def pytest_sessionfinish(self) -> None:
        # One that was slow before must be much quicker to be none: times differ from run to run.
        found = {test for test in _measured_slow() if self._seconds.get(test, math.inf) > _SLOW_SECONDS / 2.0}
        found |= {test for test, seconds in self._seconds.items() if seconds > _SLOW_SECONDS}
        _MEASURED.write_text("".join(f"{test}\n" for test in sorted(found)), encoding="utf-8")


def _measured_slow() -> list[str]:
    return _MEASURED.read_text(encoding="utf-8").splitlines() if _MEASURED.exists() else []


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m says
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases: collections.Counter[str] = collections.Counter()
    measured = frozenset(() if config.getoption("--measure-slow") else _measured_slow())
    for item in items:
        if item.nodeid in measured:
            item.add_marker("slow")
        if quick := item.get_closest_marker("slow_after"):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > quick.args[0]:
                item.add_marker("slow")
    if os.environ.get("CI"):
        return  # let them fail
    for marker, reason in (("engine", _no_engine()), ("browser", _no_browser())):
        for item in items:
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """What imports and the collection have made stays to the end: Python need not look through it again."""
    gc.freeze()


def _no_engine() -> str:
    """Why there is none; "" if there is."""
    try:
        find_engine()
    except EngineError as error:
        return str(error)
    return ""


def _no_browser() -> str:
    """Why there is none; "" if there is."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    install = "apt-get install chromium chromium-driver"
    return f"no {' and no '.join(missing)} found ({install})" if missing else ""


@pytest.fixture(scope="session")
def searches(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A store for tests of the real engine that do not ask what is searched: all search once.

    It has the shipped searches from the start, which are what many examples ask the same engine by default.
    """
    path = tmp_path_factory.mktemp("searches") / "searches.sqlite"
    shutil.copy(pathlib.Path(__file__).parents[1] / "examples" / "data" / "evaluations.sqlite", path)
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    """Chromium without a window, which keeps what is written to its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in (
        "--headless=new",
        "--no-sandbox",  # which root cannot have
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-prefers-reduced-motion",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver") or "chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()
