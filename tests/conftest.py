"""Fixtures of all tests, such as a UCI engine and a browser."""

import os

# Tests run on every core at once, where a second thread for a small matrix costs more than it gives; numpy
# reads this when it is imported, and what tests start inherits it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import pathlib
import shutil
import signal
from collections.abc import Iterator

import pytest
from selenium import webdriver

from precomp_games.chess import EngineError, find_engine
from tests import properties

properties.register_profiles()

# A shell's background jobs ignore SIGINT, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs an engine or a browser where there is none."""
    if os.environ.get("CI"):
        return  # let them fail
    for marker, reason in (("engine", _no_engine()), ("browser", _no_browser())):
        for item in items:
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Keep objects of imports and the collection out of garbage collection, since they stay to the end."""
    gc.freeze()


def _no_engine() -> str:
    """Return why there is none; "" if there is one."""
    try:
        find_engine()
    except EngineError as error:
        return str(error)
    return ""


def _no_browser() -> str:
    """Return why there is none; "" if there is one."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    install = "apt-get install chromium chromium-driver"
    return f"no {' and no '.join(missing)} found ({install})" if missing else ""


@pytest.fixture(scope="session")
def searches(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a store for tests of the real engine that do not ask what is searched: all search once.

    It has the shipped searches from the start, which are what many examples ask the same engine by default.
    """
    path = tmp_path_factory.mktemp("searches") / "searches.sqlite"
    shutil.copy(
        pathlib.Path(__file__).parents[1] / "precomp_games" / "commands" / "data" / "evaluations.sqlite", path
    )
    return path


@pytest.fixture
def ends_in_time() -> Iterator[None]:
    """Raise an error in a test that takes a minute: for what would wait for ever if it failed."""

    def late(*_: object) -> None:
        raise TimeoutError("not ended in time")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


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
