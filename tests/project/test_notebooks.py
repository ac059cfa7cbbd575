"""Notebooks of the site. The site's build executes their cells, and fails on an error or a warning."""

import ast
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
RUNS = {"simulate", "run", "resume", "sweep", "read"}  # functions that draw a bar in a notebook


def cells_of(path):
    """Return the code cells of a notebook."""
    notebook = json.loads(path.read_text("utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def called(code):
    """Return the names of the functions of meanfield that a cell calls."""
    calls = [node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return {call.attr for call in calls if isinstance(call, ast.Attribute) and ast.unparse(call).startswith("mf.")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_a_page_without_bars(path):
    assert re.search(rf"^{path.stem}$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE)
    for cell in cells_of(path):
        if called("".join(cell["source"])) & RUNS:
            assert cell["metadata"].get("tags") == ["remove-stdout"], "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(path):
    assert all(not cell["outputs"] for cell in cells_of(path))
