"""Fresh memory: no result depends on what an array holds before it is written."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from solvers.backends import cpu
from solvers.mesh.interval import from_edges
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

ROOT = Path(__file__).parents[2]  # without tests/, whose folder solvers would be imported instead of the package
BUILDS = [
    lambda mesh: Diffusion(mesh, 1.0, nonnegative=True),
    lambda mesh: IntervalDriftDiffusion(mesh, 1.0, np.zeros(mesh.cells), nonnegative=True),
]


def test_tests_of_solvers_run_with_nan_in_new_memory():
    """The fixture of this folder selects the test mode; outer sides of walls, owned by no cell, were once read."""
    assert np.isnan([cpu.empty(2), cpu.empty(2, np.float32)]).all()
    assert (cpu.empty(2, np.int32) == -1).all()


def test_a_variable_selects_the_test_mode():
    look = "from solvers.backends import cpu; print(*cpu.empty(2), cpu.empty(1, 'i4')[0])"
    fresh = {**os.environ, "SOLVERS_NAN_MEMORY": "1"}
    shown = subprocess.run([sys.executable, "-c", look], env=fresh, cwd=ROOT, capture_output=True, text=True)
    assert shown.stdout.split() == ["nan", "nan", "-1"], shown.stderr


@pytest.mark.parametrize("build", BUILDS)
def test_ornstein_uhlenbeck_between_walls(build, monkeypatch):
    """∂ₜp = ∂ₓ(xp) + ∂ₓₓp from a narrow start: mass to rounding, variance 1 − e^{−2t}, whatever fresh memory holds."""
    monkeypatch.setattr("solvers.backends.cpu.empty", lambda shape, dtype=float: np.full(shape, 1e6, dtype))
    mesh = from_edges(np.linspace(-6.0, 6.0, 91), "interval")
    x = mesh.centers[:, 0]
    start = np.where(np.abs(x) < mesh.width, 1.0, 0.0)
    state = State(0.0, start / (start @ mesh.volumes))
    equation = Equation(None, [Advection(mesh, lambda time, p: -mesh.centers, nonnegative=True), build(mesh)])
    evolve(state, equation, STEPPERS["ssprk3"], 1.0, cfl=0.1)
    assert state.values @ mesh.volumes == pytest.approx(1.0, rel=1e-12)
    assert state.values.min() >= 0
    variance = (state.values * mesh.volumes) @ x**2
    expected = 1 - np.exp(-2.0)
    assert variance == pytest.approx(expected, rel=0.01), f"variance {variance:.4f}"  # h²: 0.13²/2
