"""Which tests run where: those marked `engine` need a UCI engine, and `slow_after` is resolved."""

import collections
import os

import pytest

from precomp_games.chess import EngineError, find_engine


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m says
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases: collections.Counter[str] = collections.Counter()
    for item in items:
        if quick := item.get_closest_marker("slow_after"):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > quick.args[0]:
                item.add_marker("slow")
    try:
        find_engine()
        return
    except EngineError as error:
        reason = str(error)
    if os.environ.get("CI"):
        return  # let them fail
    for item in items:
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.skip(reason=reason))
