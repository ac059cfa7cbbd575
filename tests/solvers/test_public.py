"""Public names of solvers: all in dir() and help(), each with a docstring."""

import inspect
import pydoc
import subprocess
import sys

import pytest

import solvers


def test_every_public_name_is_in_dir_and_help():
    text = pydoc.render_doc(solvers, renderer=pydoc.plaintext)
    assert sorted(solvers.__all__) == dir(solvers)
    assert [name for name in solvers.__all__ if name not in text] == []
    assert solvers.__all__ == sorted(solvers.__all__, key=lambda name: (not name.isupper(), name))


@pytest.mark.parametrize("name", solvers.__all__)
def test_every_public_name_is_documented(name):
    value = getattr(solvers, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert len(inspect.getdoc(value) or "") > 30


def test_importing_solvers_costs_nothing():
    """NumPy is not loaded either, which alone would take more."""
    loaded = "import sys, solvers; print('numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
