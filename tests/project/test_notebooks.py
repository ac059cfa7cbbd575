"""Notebooks of the site: their cells run without an error or a warning, and stored outputs are the results."""

import ast
import json
import re
import warnings
from pathlib import Path

import pytest
from matplotlib import pyplot, rc_context
from support.minilm import minilm
from support.needs import need_module

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
STORED = DOCS / "trained_transformer.ipynb"


def cells_of(path):
    """Return the code cells of a notebook."""
    notebook = json.loads(path.read_text("utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_a_page(path):
    assert re.search(rf"^{path.stem}$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != STORED], ids=lambda path: path.stem)
def test_notebook_without_outputs_runs_without_a_warning(path, tmp_path, monkeypatch, capsys):
    """The site's build executes these notebooks for their outputs."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with rc_context(), warnings.catch_warnings():  # a notebook sets the fonts of all later figures
        warnings.simplefilter("error")
        for cell in cells_of(path):
            assert not cell["outputs"]
            executed("".join(cell["source"]), names)
    pyplot.close("all")
    assert capsys.readouterr().err == ""


def executed(code, names):
    """Return the value of the last expression of a cell, or None without one."""
    *body, last = ast.parse(code).body
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module(body if shown else [*body, last], []), str(STORED), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(STORED), "eval"), names) if shown else None


def text_of(cell):
    """Return the stored texts that the page shows of a cell: the printed lines, or the last expression; no figure."""
    outputs = [output for output in cell["outputs"] if "image/png" not in output.get("data", {})]
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return "".join(line for text in texts for line in text)


def split(text):
    """Return the words of a text, and its numbers."""
    number = r"-?\d+(?:\.\d+)?"
    return re.sub(number, "", text).split(), [float(found) for found in re.findall(number, text)]


def test_stored_outputs_are_the_results(tmp_path, monkeypatch, capsys):
    need_module("torch")
    minilm()
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in cells_of(STORED):
        value = executed("".join(cell["source"]), names)
        text = capsys.readouterr().out
        stored = text_of(cell)
        if not text and stored:
            text = repr(value)
        words, numbers = split(stored)
        assert split(text)[0] == words
        assert split(text)[1] == pytest.approx(numbers, abs=0.011)  # one unit of the last printed digit
    pyplot.close("all")
