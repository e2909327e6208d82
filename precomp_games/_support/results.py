"""Base classes of results: a line that describes them, a table, JSON, and axes to draw on.

A result is a dataclass that inherits `Result`, and needs nothing else. Other objects inherit `Shown`, and
show what they were made of.
"""

from __future__ import annotations

import dataclasses
import html
import importlib
import inspect
import math
from collections.abc import Iterable, Mapping, Sized
from typing import Annotated, Any

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, shown

_LONGEST = 240  # characters of a line
_PART = 60  # of a value in it
_FEW = 4  # values that are shown one by one
_ROUNDING = 1e-12  # of the largest number in a line: what is less is 0 there


class Shown:
    """Base of objects whose repr shows on one line what they are and how large, without default values."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # dataclasses keep what stands in a class

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={text}" for name, text in self._lines())
        if len(parts) > _LONGEST:
            parts = f"{parts[:_LONGEST].rpartition(', ')[0]}, ..."
        return f"{type(self).__name__}({parts})"

    def _repr_html_(self) -> str:
        return html_table([type(self).__name__, ""], self._lines())

    def _facts(self) -> dict[str, Any]:
        """Return the {field: value} pairs shown in the repr; without fields, the constructor's arguments."""
        given: Any = inspect.signature(type(self).__init__).parameters.values()
        if dataclasses.is_dataclass(self):
            given = [field for field in dataclasses.fields(self) if field.repr]
        kept = vars(self)
        found = [(each, kept.get(each.name, kept.get(f"_{each.name}"))) for each in given]
        return {each.name: value for each, value in found if not _is_left_out(value, each.default)}

    def _lines(self) -> list[tuple[str, str]]:
        facts = self._facts()
        least = _ROUNDING * max(map(_size, facts.values()), default=0.0)
        return [(name, _brief(value, least)) for name, value in facts.items()]


class Result(Shown):
    """A result: it also gives its numbers as a table, as a frame and as JSON."""

    def columns(self) -> dict[str, Any]:
        """Return the table of `to_frame()`, without pandas: {name: column}."""
        found = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}  # type: ignore[arg-type]
        arrays = {k: each for k, each in found.items() if isinstance(each, np.ndarray) and each.ndim == 1}
        if lengths := [len(each) for each in arrays.values()]:
            rows = max(lengths, key=lengths.count)
            return {k: each for k, each in arrays.items() if len(each) == rows}
        return {k: [each] for k, each in found.items() if isinstance(each, bool | int | float | str)}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of the result's table.

        Raises:
          ImportError: pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install 'precomp-games[frames]'") from None
        return pandas.DataFrame(self.columns())

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON has it: arrays are lists, and what is infinite or no number is None."""
        names = [each.name for each in dataclasses.fields(self)]  # type: ignore[arg-type]
        return {name: as_json(getattr(self, name)) for name in names if not name.startswith("_")}


def _is_left_out(value: Any, default: Any) -> bool:
    """Return whether a value is left out: None, NaN, or a plain value equal to its default."""
    plain = isinstance(value, bool | int | float | str)
    return value is None or value is default or (plain and (value == default or value != value))


def _size(value: Any) -> float:
    """Return the largest finite magnitude in a value; 0 for long tuples, which are not shown."""
    if isinstance(value, tuple):
        return max(map(_size, value), default=0.0) if len(value) <= _FEW else 0.0
    array = np.asarray(value) if isinstance(value, float | np.ndarray) else np.empty(0)
    if array.dtype.kind != "f":
        return 0.0
    return float(np.abs(array).max(where=np.isfinite(array), initial=0.0))


def _brief(value: Any, least: float) -> str:
    """Return a value in a line; floats of at most `least` are 0."""
    if isinstance(value, float | np.floating):
        number = float(value)
        return "0" if abs(number) <= least else f"{number:.6g}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Shown):
        return f"{type(value).__name__}{f'[{len(value)}]' if isinstance(value, Sized) else ''}"
    if isinstance(value, str):
        text = repr(value)
    elif isinstance(value, Mapping | tuple | list):
        named, few = isinstance(value, Mapping), value if len(value) <= _FEW else ()
        text = ", ".join(f"{k!r}: {_brief(value[k], least)}" if named else _brief(k, least) for k in few)
        if len(value) > _FEW or len(text) > _PART:
            return f"{type(value).__name__}[{len(value)}]"
        return f"{{{text}}}" if named else f"({text})"
    else:
        text = _text(value)
    return text if len(text) <= _PART else f"{text[: _PART - 3]}..."


def _text(value: Any) -> str:
    """Return another object's one-line repr, or its name where the repr is only an address."""
    text = value.fen() if hasattr(value, "fen") else "" if callable(value) else " ".join(str(value).split())
    return getattr(value, "__name__", type(value).__name__) if text[:1] in ("", "<") else text


def as_json(value: Any) -> Any:
    """Return a value as JSON has it; other objects become their one-line repr."""
    if isinstance(value, Result):
        return value.to_json()
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else _text(key): as_json(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, tuple | list):
        return [as_json(each) for each in value]
    is_line = isinstance(value, Shown | type) or hasattr(value, "uci")  # moves are texts
    if dataclasses.is_dataclass(value) and not is_line:
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return repr(value) if isinstance(value, Shown) else _text(value)


def rows_of(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return a result's `columns()` by rows, in Python's numbers."""
    lists = [np.asarray(column).tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def html_table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a small table for a notebook."""

    def text(cell: Any) -> str:
        return html.escape(cell if isinstance(cell, str) else "" if cell is None else _brief(cell, 0.0))

    def line(cells: Iterable[Any], kind: str) -> str:
        return f"<tr>{''.join(f'<{kind}>{text(cell)}</{kind}>' for cell in cells)}</tr>"

    return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _check_axes(value: Any, name: str) -> Any:
    if value is None or callable(getattr(value, "fill_between", None)):
        return value
    raise ArgumentError(f"expected {name} to be matplotlib's axes, got {shown(value)}")


Axes = Annotated[Any, checks.Check(_check_axes)]
"""Matplotlib's axes to draw on; None: a figure of its own."""


def axes_of(axes: Any) -> Any:
    """Return the axes, or those of a new figure; matplotlib is slow to load, and so is loaded on use."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
