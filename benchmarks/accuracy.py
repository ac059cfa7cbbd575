"""Errors against exact solutions, on the circle with 256 cells and on the sphere with 128 rings.

The tests assert these and more; this benchmark measures them for the page.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figure
from meanfield.domains.sphere.initial import (
    initial_harmonic,
    initial_moebius,
    initial_perturbed,
    initial_points,
    initial_uniform,
)
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import Floats, Mesh, circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms.harmonics import harmonic_transform
from tests.support import exact

CELLS, RINGS = 256, 128
AXIS = (0.48, 0.6, 0.64)  # unit vector along no symmetry axis of the rings
START = 0.2  # the Möbius parameter at time 0
HALF = np.sqrt(0.75)  # length of the mean of two equal tokens with cosine ½


def accuracy(cells: int = CELLS, rings: int = RINGS) -> list[Figure]:
    """Measure errors of velocity, uniform state, growth rates and pair merging, and the order on smooth data."""
    figures = []
    for build, size, format_of_name, limits in (
        (circle, cells, "circle, {} cells", (1e-3, 1.9)),
        (sphere, rings, "sphere, {} rings", (5e-3, 1.8)),
    ):
        mesh, coarse = build(size), build(size // 2)
        name, name_of_coarse = format_of_name.format(size), format_of_name.format(size // 2)
        for beta, most in ((9.0, 1e-12), (1000.0, 1e-10)):
            error = _velocity_error(coarse, beta)
            figures.append(
                Figure(
                    f"velocity on the {name_of_coarse}, β = {beta:g}: relative error against the direct sum",
                    error,
                    "1",
                    most,
                )
            )
        error = np.abs(_evolve(mesh, 9.0, initial_uniform(mesh), 10.0) * mesh.volume - 1.0).max()
        figures.append(
            Figure(f"uniform density, {name}, β = 9, t = 10: relative change", float(error), "1", most=1e-12)
        )
        error = max(_growth_error(mesh, 5.0, degree) for degree in (1, 2, 3, 4))
        figures.append(Figure(f"growth rates of modes 1 to 4, {name}, β = 5: largest error", error, "1", limits[0]))
        error = _pair_error(mesh, 4.0)
        figures.append(Figure(f"time of two point masses to cosine ½, {name}, β = 4: error", error, "1", most=1e-2))
        errors = _moebius_error(coarse), _moebius_error(mesh)
        figures.append(Figure(f"smooth flow at β = 0, {name}, t = 1: L¹ error", errors[1], "1"))
        order = float(np.log2(errors[0] / errors[1]))
        figures.append(
            Figure(f"smooth flow at β = 0, {name}: order from half to full resolution", order, "1", least=limits[1])
        )
    return figures


def _evolve(mesh: Mesh, beta: float, density: Floats, until: float) -> Floats:
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, beta)))
    return evolve(State(0.0, density), equation, STEPPERS["ssprk3"], until, rtol=None).values


def _velocity_error(mesh: Mesh, beta: float) -> float:
    density = initial_perturbed(mesh, amplitude=0.5)
    expected, _ = exact.velocity(mesh, beta, density)
    return float(np.abs(Attention(mesh, beta).output(density) - expected).max() / np.abs(expected).max())


def _growth_error(mesh: Mesh, beta: float, degree: int) -> float:
    """Return the relative error of the growth rate of a small mode from t = 0 to 1."""
    transform = harmonic_transform(mesh, degree)
    start = initial_harmonic(mesh, degree, 0, 1e-5)
    end = _evolve(mesh, beta, start.copy(), 1.0)
    departures = ((density - 1.0 / mesh.volume) * mesh.volumes for density in (start, end))
    before, after = (transform.power(masses)[degree] for masses in departures)
    expected = exact.growth_rate(mesh.centers.shape[1], beta, degree)
    return float(abs(0.5 * np.log(after / before) / expected - 1.0))


def _pair_error(mesh: Mesh, beta: float) -> float:
    """Return the relative error of the time in which two equal point masses, 2 rad apart, reach the cosine ½."""
    if mesh.manifold == "circle":
        ends = [[np.cos(angle), np.sin(angle)] for angle in (0.3, 2.3)]
    else:
        first, other = np.array(AXIS), np.cross(AXIS, (0.0, 0.0, 1.0))
        ends = [list(first), list(np.cos(2.0) * first + np.sin(2.0) * other / np.linalg.norm(other))]
    density = initial_points(mesh, ends)
    lengths: list[tuple[float, float]] = []

    def past_half(state: State) -> bool:
        mean = (state.values * mesh.volumes) @ mesh.centers
        lengths.append((float(np.linalg.norm(mean)), state.time))
        return lengths[-1][0] > HALF

    equation = mean_field_equation(mesh, Velocity(Attention(mesh, beta)))
    evolve(State(0.0, density), equation, STEPPERS["ssprk3"], 100.0, after_step=past_half, rtol=None)
    reached = float(np.interp(HALF, *np.array(lengths[-2:]).T))
    return abs(reached / exact.pair_time_equal(beta) - 1.0)


def _moebius_error(mesh: Mesh) -> float:
    """Return the L¹ distance at t = 1 from the exact flow at β = 0, along an axis without symmetry."""
    dimension = mesh.centers.shape[1]
    axis = AXIS[:dimension]
    end = _evolve(mesh, 0.0, initial_moebius(mesh, axis, START), 1.0)
    expected = initial_moebius(mesh, axis, exact.moebius_parameter(dimension, START, 1.0))
    return float(np.abs(end - expected) @ mesh.volumes)
