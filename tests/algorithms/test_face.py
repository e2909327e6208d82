"""Types that solvers of this package return are on its face, or described beside it in the API."""

import dataclasses
import importlib
import inspect
import pathlib
import re
import typing
from collections.abc import Iterator

import precomp_games.algorithms as face
from precomp_games.tree.meta_strategy import MetaStrategy

_PACKAGE = face.__name__
_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "api" / "algorithms.md"


def _ours(thing) -> bool:
    """Return whether a thing is defined in this package; `search` and the like have faces of their own.

    What a solver finds is the model's `MetaStrategy`, and is imported where the solver is.
    """
    module = str(getattr(thing, "__module__", ""))
    package, _, rest = module.partition(f"{_PACKAGE}.")
    return module == MetaStrategy.__module__ or (
        not package and rest.split(".")[0] not in ("", "efce", "lookahead", "search")
    )


def _types(hint) -> Iterator[type]:
    """Yield the classes of the package in a type hint."""
    if inspect.isclass(hint) and _ours(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _types(part)


def _received(thing) -> Iterator[type]:
    """Classes that a public function returns, or that a public class has as fields or returns."""
    names = vars(importlib.import_module(thing.__module__))
    if not inspect.isclass(thing):
        yield from _types(typing.get_type_hints(thing, names)["return"])
        return
    if dataclasses.is_dataclass(thing):
        for hint in typing.get_type_hints(thing, names).values():
            yield from _types(hint)
    for name, method in vars(thing).items():
        function = getattr(method, "fget", None) or getattr(method, "__func__", method)
        if not name.startswith("_") and inspect.isfunction(function):
            yield from _types(typing.get_type_hints(function, names).get("return"))


def test_all_that_users_receive_is_on_the_face_or_described_beside_it():
    public = [thing for thing in map(vars(face).get, face.__all__) if _ours(thing)]
    described = re.findall(r"^\.\. autoclass:: (\S+)\.(\w+)$", _PAGE.read_text(encoding="utf-8"), re.M)
    beside = [getattr(importlib.import_module(module), name) for module, name in described]
    received = {kind for thing in [*public, *beside] for kind in _received(thing)}
    names = {kind.__name__ for kind in received}
    assert {"AdvantageLines", "AdvantageSet", "FrontierPoint", "MemorizedState", "MetaStrategy"} <= names
    assert received <= {*public, *beside}, received - {*public, *beside}
    assert set(beside) <= received and not set(beside) & set(public)  # nothing is described for nothing
