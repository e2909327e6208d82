"""Run the notebooks of docs/notebooks, without Jupyter, and write the outputs of their cells.

  python -m tools.notebooks [name ...]

Cells of a notebook share one namespace, in order. A cell shows what it prints, and the value of its last
expression: as text, as HTML where it has some, and as a picture where it is matplotlib's axes. The tests run
them again, and compare texts.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib

from precomp_games._support.files import atomic_write

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def outputs_of(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each cell of code, and its outputs as nbformat has them."""
    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        cell["execution_count"] = number + 1
        yield cell, _outputs("".join(cell["source"]), namespace, number + 1)


def _outputs(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree, printed = ast.parse(source), io.StringIO()
    before, last, value = tree.body[:-1], tree.body[-1], None
    with contextlib.redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            before.append(last)
        exec(compile(ast.Module(before, []), "cell", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        shown = {"execution_count": number, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"data": _shown(value), **shown})
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """Return a value by kinds of media."""
    figure = getattr(value, "figure", None)
    if figure is not None and hasattr(figure, "savefig"):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=70, metadata={"Software": None})
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["<Axes>"]}
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_") and (page := value._repr_html_()):
        data["text/html"] = page.splitlines(keepends=True)
    return data


def texts_of(outputs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the text of outputs; pictures differ from version to version."""
    return ["".join(each["text"] if "text" in each else each["data"]["text/plain"]) for each in outputs]


def main(names: Sequence[str]) -> int:
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell, outputs in outputs_of(notebook):
            cell["outputs"] = outputs
        with atomic_write(path) as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False, sort_keys=True)
            file.write("\n")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
