"""Input of terms: wrong input is refused in one line, before a kernel reads past an array's end."""

from dataclasses import replace

import numpy as np
import pytest

from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.stack import stack
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.terms.product import ProductAdvection
from solvers.timestepping.checks import check_nonnegative
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

MESH, UNIFORM = circle(64), np.full(64, 0.5)
TURN = np.stack([-MESH.centers[:, 1], MESH.centers[:, 0]], axis=1)
LINE = from_edges(np.linspace(0.0, 1.0, 65), "interval")


def advance(velocity, values):
    evolve(State(0.0, values), Equation(None, [Advection(MESH, lambda t, u: velocity)]), STEPPERS["ssprk3"], 0.1)


@pytest.mark.parametrize(
    ("velocity", "values", "kind", "message"),
    [
        (TURN[:, :1], UNIFORM, ValueError, r"velocity of shape \(64, 1\): expected \(64, 2\)"),
        (TURN[:60], UNIFORM, ValueError, r"velocity of shape \(60, 2\): expected \(64, 2\)"),
        (1.0, UNIFORM, TypeError, r"velocity = float: expected an array \(64, 2\)"),
        (TURN.astype(int), UNIFORM, TypeError, "velocity of dtype int64: expected floating-point numbers"),
        (TURN, np.arange(64), ValueError, "state.values of int64: expected an array of float32 or float64"),
        (TURN, UNIFORM[:60], ValueError, r"state.values of shape \(60,\): expected 64 cells, as the mesh of Advection"),
        (TURN, np.where(np.arange(64) == 7, np.nan, 0.5), ValueError, "state.values: 1 of 64 not finite"),
    ],
)
def test_input_of_advection_that_does_not_fit_is_refused(velocity, values, kind, message):
    with pytest.raises(kind, match=message):
        advance(velocity, values)


@pytest.mark.parametrize("term", [Diffusion(MESH, 1.0), IntervalDriftDiffusion(LINE, 1.0, np.zeros(64))])
@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (np.arange(64), TypeError, "values of dtype int64: expected floating-point numbers"),
        (np.ones(65), ValueError, r"values of shape \(65,\): expected \(64,\), as the mesh has 64 cells"),
        (np.where(np.arange(64) == 7, np.inf, 0.5), ValueError, r"values\[7\] = inf: expected finite numbers"),
    ],
)
def test_input_of_diffusion_that_does_not_fit_is_refused(term, values, kind, message):
    with pytest.raises(kind, match=message):
        term.step(0.1, values)


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Advection(64, lambda t, u: TURN), TypeError, "mesh = int: expected a Mesh"),
        (lambda: Advection(MESH, TURN), TypeError, "velocity = ndarray: expected a function"),
        (lambda: Diffusion(MESH, np.ones(63)), ValueError, r"coefficient of shape \(63,\): expected a number, \(64,\)"),
        (lambda: Diffusion(MESH, np.inf), ValueError, "diffusion coefficient = inf: expected a number >= 0, finite"),
        (lambda: IntervalDriftDiffusion(MESH, 1.0, np.zeros(64)), ValueError, "mesh of a circle: expected an interval"),
        (lambda: IntervalDriftDiffusion(LINE, 1.0, np.zeros(63)), ValueError, r"log_steady of shape \(63,\): expected"),
        (lambda: Diffusion(replace(MESH, volumes=np.zeros(64)), 1.0), ValueError, "mesh.volumes: expected numbers > 0"),
        (
            lambda: Diffusion(replace(MESH, face_normals=np.ones((64, 3))), 1.0),
            ValueError, r"mesh.face_normals of shape \(64, 3\): expected \(64, 2\), for 64 cells and 64 faces",
        ),
        (
            lambda: Diffusion(replace(MESH, cell_sides=np.roll(MESH.cell_sides, 2)), 1.0),
            ValueError, r"mesh.cell_sides\[0\] = 125: expected a side of its own cell",
        ),
    ],
)  # fmt: skip
def test_what_a_term_cannot_be_built_from_is_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()


def test_velocities_on_a_product_that_do_not_fit_are_refused():
    rows, columns = from_edges(np.linspace(0.0, 1.0, 6), "radial"), circle(8)
    around, outward = stack(columns, 5), stack(rows, 8)
    term = ProductAdvection(around, outward, (5, 8), lambda t, u: (np.ones((5, 8, 2)), np.ones((5, 7, 1))))
    with pytest.raises(ValueError, match=r"velocity in columns of shape \(5, 7, 1\): expected \(5, 8, 1\)"):
        term.prepare(0.0, np.ones((5, 8)))


@pytest.mark.parametrize("mesh", [circle(3), sphere(5), stack(sphere(4), 3), LINE], ids=lambda mesh: mesh.manifold)
def test_meshes_of_the_package_pass(mesh):
    Diffusion(mesh, 1.0)


@pytest.mark.parametrize(("least", "is_refused"), [(-1e-7, False), (-1e-5, True), (-0.5, True)])
def test_a_density_is_negative_by_rounding_of_float32_alone(least, is_refused):
    values = UNIFORM.copy()
    values[3] = 0.5 * least
    term = Diffusion(MESH, 1.0, nonnegative=True)
    if is_refused:
        with pytest.raises(ValueError, match=r"of least value -.*: expected a density >= 0"):
            check_nonnegative("u0", values, (term,))
    else:
        check_nonnegative("u0", values, (term,))
    check_nonnegative("u0", values, (Diffusion(MESH, 1.0),))
