"""Files from which a run of `meta_equilibrium` goes on: NumPy archives of a solver's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from precomp_games._support.checks import ArgumentError, check_integer
from precomp_games._support.files import read_archive, write_archive
from precomp_games._support.messages import one_line
from precomp_games.tree.history_tree import HistoryTree

from .exploitability import Budgets

_FORMAT = "precomp-games meta-equilibrium 2"
_MOST = 10**15  # iterations of a run, far beyond any that ends
_PROBLEMS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def write_checkpoint(
    path: str, tree: HistoryTree, solver: str, iterations: int, state: Any, budgets: Budgets = (None, None)
) -> None:
    """Writes a solver's arrays, a named tuple of them, whole or not at all."""
    write_archive(path, _header(tree, solver, budgets) | {"iterations": iterations}, state._asdict())


def read_checkpoint(
    path: str, tree: HistoryTree, solver: str, state: Any, budgets: Budgets = (None, None)
) -> tuple[int, Any]:
    """(iterations, arrays) of a checkpoint; `state` is of the same kind, with the same shapes.

    Raises:
      ValueError: it is none, or of another tree, other penalties, other budgets or another solver.
    """
    expected = _header(tree, solver, budgets)
    try:
        header, _ = read_archive(path, ())
        iterations = check_integer(header["iterations"], "iterations", least=0, most=_MOST)
        wrong = [key for key in {*expected, "budgets", "weight"} if header.get(key) != expected.get(key)]
        if not wrong:
            _, arrays = read_archive(path, state._fields)
            for name, array in arrays.items():
                own = getattr(state, name)
                if array.shape != own.shape or array.dtype != own.dtype or not np.isfinite(array).all():
                    raise ValueError(f"{name} is not {own.dtype}{own.shape}")
    except _PROBLEMS as error:
        raise ArgumentError(f"expected a checkpoint of this run, got {path!r}: {one_line(error)}") from error
    if wrong:
        raise ArgumentError(
            "expected a checkpoint of the same tree, penalties and variant, got "
            f"{path!r}, which differs in {', '.join(sorted(wrong))}"
        )
    return iterations, type(state)(**arrays)


def checkpoint_solver(path: str) -> str:
    """What wrote a checkpoint; the empty string where it is none."""
    try:
        return str(read_archive(path, ())[0].get("variant"))
    except _PROBLEMS:
        return ""


def _header(tree: HistoryTree, solver: str, budgets: Budgets) -> dict[str, Any]:
    """What a checkpoint is of."""
    header: dict[str, Any] = {
        "format": _FORMAT,
        "variant": solver,
        "tree": tree.fingerprint,
        "penalties": [repr(penalty) for penalty in tree.penalties],
    }
    if any(budget is not None for budget in budgets):
        header["budgets"] = [repr(budget) for budget in budgets]
    if len(tree.weight):
        header["weight"] = tree.weight.tolist()
    return header
