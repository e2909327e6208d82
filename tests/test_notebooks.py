"""The notebooks' cells run, in order, and print and show the stored texts."""

import json

import pytest

from tools.notebooks import FOLDER, outputs_of, texts_of


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks(path):
    pytest.importorskip("pandas")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and path.stat().st_size < 200_000
    for number, (cell, outputs) in enumerate(outputs_of(notebook), start=1):
        assert texts_of(outputs) == texts_of(cell["outputs"]), f"cell {number}: python -m tools.notebooks"
