"""Velocities without divergence, by differences of a stream function: constants stay, tracers keep their bounds."""

import numpy as np
import pytest

from solvers import (
    Advection,
    Equation,
    FaceFluxes,
    State,
    StreamFunction,
    box,
    circle,
    icosphere,
    interval,
    product,
    sphere,
    torus,
    triangles,
)
from solvers.timestepping.evolution import evolve

PERIOD = 5.0


def psi_of_case(case):
    """Return stream functions of the reversing flows 1, 2 and 4 of Nair and Lauritzen (2010), at points (n, 3)."""

    def psi(t, x):
        back, moved = np.cos(np.pi * t / PERIOD), 2 * np.pi * t / PERIOD
        if case == 1:  # 2.4 sin²(λ/2) cos²θ
            across = np.hypot(x[:, 0], x[:, 1])
            return 1.2 * (across**2 - across * x[:, 0]) * back
        if case == 2:  # 2 sin²λ cos²θ
            return 2 * x[:, 1] ** 2 * back
        return 2 * (x[:, 1] * np.cos(moved) - x[:, 0] * np.sin(moved)) ** 2 * back - 2 * np.pi / PERIOD * x[:, 2]

    return psi


def cylinders(mesh):
    """Return 1 in two slotted cylinders of radius ½, and 0.1 around."""
    x, found = mesh.centers, np.full(mesh.cells, 0.1)
    longitude = np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi)
    for center, sign in ((5 * np.pi / 6, -1), (7 * np.pi / 6, 1)):
        within = x @ np.array([np.cos(center), np.sin(center), 0.0]) >= np.cos(0.5)
        slot = (np.abs(longitude - center) < 1 / 12) & (sign * np.arcsin(x[:, 2]) <= 5 / 24)
        found[within & ~slot] = 1.0
    return found


@pytest.mark.parametrize("case", [1, 2, 4])
def test_slotted_cylinders_return_within_their_bounds(case):
    """The bounds hold to rounding, at a cfl below 1/(1 + 1.13), 1.13 the longest distance to a face. With velocities
    at cells the least value is below 0.1 by 1.1e-2, 5e-4, 4e-5."""
    mesh = sphere(48)
    start = cylinders(mesh)
    term = Advection(mesh, StreamFunction(psi_of_case(case)))
    end = evolve(State(0.0, start.copy()), Equation(None, [term]), "ssprk3", PERIOD, cfl=0.4, rtol=None).values
    assert end.min() > 0.1 - 1e-13, f"{0.1 - end.min():.1e}"
    assert end.max() < 1.0 + 1e-13
    assert end @ mesh.volumes == pytest.approx(start @ mesh.volumes, rel=1e-13)
    assert np.sqrt((end - start) ** 2 @ mesh.volumes / (start**2 @ mesh.volumes)) < 0.6


def waves(t, x):
    """Return a stream function of any space, of size 1."""
    return sum(np.sin(2 * np.pi * (k + 1) * x[:, k] + t) * np.cos(2 * np.pi * x[:, k - 1]) for k in range(x.shape[1]))


MESHES = [
    lambda: sphere(17), lambda: icosphere(3), lambda: torus((12, 9)), lambda: box((12, 9), (1.0, 2.0), periodic=True),
    lambda: product(circle(12), interval(0.0, 1.0, 5, periodic=True)),
]  # fmt: skip


@pytest.mark.parametrize("build", MESHES)
def test_constants_stay_constant_to_rounding(build):
    mesh = build()
    term = Advection(mesh, StreamFunction(waves))
    term.prepare(0.3, np.ones(mesh.cells))
    rate = np.zeros(mesh.cells)
    term.rate(1e-3, rate)
    rounding = 64 * np.finfo(float).eps / mesh.volumes.min()
    assert np.abs(rate).max() < rounding, f"{np.abs(rate).max():.1e} over {rounding:.1e}"


@pytest.mark.parametrize("build", [sphere, lambda rings: icosphere({16: 3, 32: 4, 64: 5}[rings])])
def test_the_flow_is_that_of_the_velocity(build):
    """ψ = −z turns the unit sphere eastward about its axis, by one radian per unit of time, to second order."""
    errors = []
    for rings in (16, 32, 64):
        mesh = build(rings)
        x = mesh.centers
        state = State(0.0, np.exp(x[:, 0]))
        term = Advection(mesh, StreamFunction(lambda t, points: -points[:, 2]), limiter="none")
        evolve(state, Equation(None, [term]), "ssprk3", 0.5, rtol=None)
        exact = np.exp(np.cos(0.5) * x[:, 0] + np.sin(0.5) * x[:, 1])
        errors.append(np.abs(state.values - exact) @ mesh.volumes / mesh.volume)
    order = np.log2(errors[1] / errors[2])
    assert order > 1.8, f"errors {errors}, order {order:.2f}"


def test_in_a_box_as_a_velocity_at_cell_centers():
    """ψ = vx − uy, and fluxes by hand, move a field as the velocity (u, v) does, to rounding."""
    mesh, (u, v) = box((16, 12), (1.0, 1.0), periodic=True), (0.6, -0.3)
    field = np.exp(np.sin(2 * np.pi * mesh.centers[:, 0]) + np.cos(2 * np.pi * mesh.centers[:, 1]))
    rates = []
    velocity = np.tile([u, v], (mesh.cells, 1))
    through = mesh.face_areas * (mesh.face_normals @ [u, v])
    for given in (
        lambda t, f: velocity,
        StreamFunction(lambda t, x: v * x[:, 0] - u * x[:, 1]),
        FaceFluxes(lambda t, f: through),
    ):
        term, rate = Advection(mesh, given), np.zeros(mesh.cells)
        term.prepare(0.0, field)
        term.rate(0.0, rate)
        rates.append(rate)
    assert np.abs(rates[1] - rates[0]).max() < 1e-12
    assert np.abs(rates[2] - rates[0]).max() < 1e-12


def test_two_fields_move_with_the_same_fluxes():
    mesh = sphere(8)
    term = Advection(mesh, StreamFunction(lambda t, x: -x[:, 2]))
    one = np.exp(mesh.centers[:, 0])
    term.prepare(0.0, np.stack([one, 2 * one]))
    rate = np.zeros((2, mesh.cells))
    term.rate(0.0, rate)
    assert np.abs(rate[1] - 2 * rate[0]).max() < 1e-13
    assert np.abs(rate[0]).max() > 0.1


def test_densities_stay_nonnegative():
    mesh = sphere(24)
    start = np.where(mesh.centers[:, 0] > 0.8, 1.0, 0.0)
    term = Advection(mesh, StreamFunction(psi_of_case(1)), nonnegative=True)
    end = evolve(State(0.0, start.copy()), Equation(None, [term]), "ssprk3", 1.0, rtol=None).values
    assert end.min() >= -1e-16
    assert end.max() <= 1 + 1e-13


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Advection(interval(0, 1, 8), StreamFunction(waves)).prepare(0.0, np.ones(8)),
            "on a interval: expected a sphere, icosphere, box, torus or product of two curves",
        ),
        (
            lambda: Advection(triangles([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]]), StreamFunction(waves)).prepare(
                0.0, np.ones(3)
            ),
            "on a triangles: expected",
        ),
        (
            lambda: Advection(sphere(8), StreamFunction(lambda t, x: x)).prepare(0.0, np.ones(sphere(8).cells)),
            r"psi of shape .*: expected",
        ),
        (
            lambda: Advection(sphere(8), FaceFluxes(lambda t, u: u)).prepare(0.0, np.ones(sphere(8).cells)),
            r"face fluxes of shape .*: expected",
        ),
        (
            lambda: Advection(sphere(8), StreamFunction(waves), limiter="donor_cell_blend", nonnegative=True),
            "with fluxes through",
        ),
    ],
)
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
