"""The notebook docs/tour.ipynb: each cell runs, and its last expression can be shown."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tour.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def executed(code, names):
    """Return the value of the last expression of a cell, which a notebook shows, or None without one."""
    *body, last = ast.parse(code).body
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module(body if shown else [*body, last], []), str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if shown else None


def test_every_cell_runs_and_shows_what_it_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    shown = [executed("".join(cell["source"]), names) for cell in CELLS if cell["cell_type"] == "code"]
    assert capfd.readouterr().err == ""
    result = shown[0]
    assert "data:image/png;base64," in result._repr_html_()
    assert names["clusters"].masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert (names["diagnostics"].clusters.values == result.diagnostics["clusters"]).all()
    assert names["longer"].time[-1] == 12.0
    assert (names["found"].status == "done").all()
    assert names["left"].diagnostics["mass"][-1] < 0.9
    assert 0 < names["compared"].columns["w1"][0] < 0.3  # 400 random tokens: a small multiple of 1/√400
    assert shown[-1]._repr_png_().startswith(b"\x89PNG")


def test_the_notebook_is_kept_without_outputs():
    assert all(not cell["outputs"] for cell in CELLS if cell["cell_type"] == "code")
