"""Public names of solvers: all in dir() and help(), each with a docstring."""

import inspect
import os
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import solvers


def test_every_public_name_is_in_dir_and_help():
    text = pydoc.render_doc(solvers, renderer=pydoc.plaintext)
    assert sorted(solvers.__all__) == dir(solvers)
    assert [name for name in solvers.__all__ if name not in text] == []


@pytest.mark.parametrize("name", solvers.__all__)
def test_every_public_name_is_documented(name):
    value = getattr(solvers, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert len(inspect.getdoc(value) or "") > 30


def test_the_class_of_what_read_returns_is_public(tmp_path):
    with solvers.RunFile.create(tmp_path / "run.h5", solvers.circle(8)):
        pass
    assert type(solvers.read(tmp_path / "run.h5")) is solvers.Run
    assert "Run" in solvers.__all__


def test_importing_solvers_costs_nothing():
    """NumPy, which alone would take more, is not loaded either."""
    loaded = "import sys, solvers; print('numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


CONSTRUCTING = """
import os, sys
from tests.support.public_objects import EQUATIONS, MESHES, Wind
from solvers import Advection, sphere

STARTED = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system"}
STARTED |= {"_thread.start_new_thread", "_thread.start_joinable_thread"}
WRITING, cache, found, watching = os.O_WRONLY | os.O_RDWR | os.O_CREAT, os.environ["NUMBA_CACHE_DIR"], set(), True

def noted(event, arguments):
    if watching and event in STARTED:
        found.add(event)
    elif watching and event == "open" and arguments[2] & WRITING and not str(arguments[0]).startswith(cache):
        found.add(str(arguments[0]))

sys.addaudithook(noted)
for make in (*MESHES.values(), *EQUATIONS.values()):
    make()
mesh = sphere(100)  # of so many cells that kernels would share them among threads
Advection(mesh, Wind(mesh), nonnegative=True)
watching = False
print(sorted(found))
"""


def test_constructing_meshes_and_terms_starts_no_process_no_thread_and_no_file(tmp_path):
    """Compiled kernels, which some constructors launch, are kept in Numba's folder."""
    folder, environment = Path(__file__).parents[2], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CONSTRUCTING]
    shown = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "module"),
    [("evolve", "evolution"), ("integrate", "integrate"), ("Stepper", "steppers"), ("STEPPERS", "steppers")],
)
def test_names_that_were_public_warn(name: str, module: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"solvers.{name} is internal: use solvers.solve"):
        assert getattr(solvers, name) is getattr(import_module(f"solvers.timestepping.{module}"), name)
    assert name not in solvers.__all__


@pytest.mark.parametrize("name", ["Term", "StiffTerm"])
def test_the_protocols_of_terms_are_public(name: str) -> None:
    assert name in solvers.__all__
    assert getattr(solvers, name) is getattr(import_module("solvers.terms.term"), name)
