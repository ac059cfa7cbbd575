"""Advection through boundaries and of several fields, on every mesh: exact solutions and orders."""

import numpy as np
import pytest
from support import exact
from support.meshes import AXIS, MESHES, square

from solvers.mesh.boundaries import Flux, Outflow, Value
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box, torus
from solvers.mesh.simplices.triangles import triangles
from solvers.terms.advection import Advection


def advanced(term, values, end, cfl=0.5):
    """Advance by SSPRK3 at a fixed cfl, written out."""
    u, t = values.copy(), 0.0

    def euler(time, state, dt):
        rate = np.zeros_like(state)
        term.prepare(time, state)
        term.rate(dt, rate)
        return state + dt * rate

    while t < end - 1e-12:
        dt = min(cfl * float(term.prepare(t, u)), end - t)
        one = euler(t, u, dt)
        two = 0.75 * u + 0.25 * euler(t + dt, one, dt)
        u, t = u / 3 + 2 / 3 * euler(t + dt / 2, two, dt), t + dt
    return u


def bump(x):
    return np.exp(-20 * (x - 0.3) ** 2)


@pytest.mark.parametrize("limiter", ["none", "koren", "mc", "vanleer"])
def test_a_wave_comes_in_and_goes_out(limiter):
    """u(x − t) passes both ends of [0, 1], given at the left, free at the right, at second order in L¹."""
    sizes, errors = (40, 80, 160), []
    for size in sizes:
        mesh = interval(0.0, 1.0, size)
        ends = {"left": Value(lambda t, x: bump(x[:, 0] - t)), "right": Outflow()}
        term = Advection(mesh, lambda t, u: np.ones((size, 1)), limiter=limiter, boundaries=ends)  # noqa: B023
        x = mesh.centers[:, 0]
        errors.append(np.abs(advanced(term, bump(x), 0.5) - bump(x - 0.5)) @ mesh.volumes)
    assert exact.orders(errors, sizes)[-1] > 1.75, errors  # 2 except for the limiter at the extremum


FLOWS = {
    "box": lambda n: box((n, n), (1.0, 1.0)),
    "triangles": lambda n: triangles(square(n)[0] / np.pi, square(n)[1]),
}


@pytest.mark.parametrize("name", FLOWS)
def test_an_oblique_wave_crosses_a_region(name):
    """A wave enters at the left and the bottom and leaves through the other sides, at second order in L¹."""
    sizes, errors = (12, 24, 48)[: 3 if name == "box" else 2], []
    wave = lambda x, t: np.sin(3 * (x[:, 0] - t) + 2 * (x[:, 1] - 0.5 * t))  # noqa: E731
    for size in sizes:
        mesh = FLOWS[name](size)
        data = Value(lambda t, x: wave(x, t))
        flow = np.tile([1.0, 0.5], (mesh.cells, 1))
        term = Advection(mesh, lambda t, u: flow, limiter="none", boundaries=dict.fromkeys(mesh.boundary_faces, data))  # noqa: B023
        found = advanced(term, wave(mesh.centers, 0.0), 0.5)
        errors.append(np.abs(found - wave(mesh.centers, 0.5)) @ mesh.volumes)
    expected = 1.75 if name == "box" else 1.4  # irregular triangles: points are not the centroids of their cells
    assert exact.orders(errors, sizes)[-1] > expected, errors


TURNS = {
    "periodic": lambda m: (np.ones((m.cells, 1)), lambda t: np.exp(np.sin(m.centers[:, 0] - t))),
    "torus": lambda m: (
        np.column_stack([-m.centers[:, 1], m.centers[:, 0], 0 * m.centers[:, :2]]),
        lambda t: np.exp(m.centers[:, 0] * np.cos(t) + m.centers[:, 1] * np.sin(t)) + m.centers[:, 2],
    ),
    "icosphere": lambda m: (
        np.cross([0, 0, 1.0], m.centers),
        lambda t: np.exp(m.centers[:, 0] * np.cos(t) + m.centers[:, 1] * np.sin(t)),
    ),
    "shell": lambda m: (
        np.column_stack([np.cross([0, 0, 1.0], m.centers[:, :3]), np.zeros(m.cells)]),
        lambda t: np.exp(m.centers[:, 0] * np.cos(t) + m.centers[:, 1] * np.sin(t)) * np.cos(m.centers[:, 3]),
    ),
}
TURNS["surface"] = TURNS["icosphere"]


@pytest.mark.parametrize("name", TURNS)
def test_advection_is_second_order_on_every_mesh(name):
    sizes, errors = (16, 32) if name == "shell" else (32, 64), []
    for size in sizes:
        mesh = MESHES[name](size)[0]
        flow, wave = TURNS[name](mesh)
        found = advanced(Advection(mesh, lambda t, u: flow, limiter="none"), wave(0.0), 1.0)  # noqa: B023
        errors.append(np.abs(found - wave(1.0)) @ mesh.volumes / mesh.volume)
    assert exact.orders(errors, sizes)[-1] > 1.7, errors


def test_zones_of_a_sphere_move_as_on_it():
    """θ̇ = −sin θ moves ρ = 1 to ((1 − tanh² t)/(1 − z tanh t)²)^{(d−1)/2} with z = cos θ."""
    sizes, errors = (64, 128), []
    for size in sizes:
        mesh = MESHES["axisymmetric"](size)[0]  # of S⁴
        theta, end = mesh.centers, 0.5
        term = Advection(mesh, lambda t, u: -np.sin(theta), nonnegative=True)  # noqa: B023
        s = np.tanh(end)
        expected = ((1 - s**2) / (1 - np.cos(theta[:, 0]) * s) ** 2) ** 2
        errors.append(np.abs(advanced(term, np.ones(size), end) - expected) @ mesh.volumes / mesh.volume)
    assert exact.orders(errors, sizes)[-1] > 1.7, errors
    assert errors[-1] < 1e-3


def test_fields_move_each_with_its_velocity():
    mesh = circle(32)
    quarter = np.column_stack([-mesh.centers[:, 1], mesh.centers[:, 0]])
    u = np.stack([np.exp(mesh.centers[:, 0]), mesh.centers[:, 1]])
    both = Advection(mesh, lambda t, u: np.stack([quarter, -2 * quarter]))
    moved = advanced(both, u, 0.3)
    alone = advanced(both, np.stack([u[0], u[0]]), 0.3)
    assert np.array_equal(moved[0], alone[0])
    same = np.zeros_like(u)
    term = Advection(mesh, lambda t, u: quarter)
    term.prepare(0.0, u)
    term.rate(0.0, same)
    for row, rate in zip(u, same, strict=True):
        one = Advection(mesh, lambda t, u: quarter)
        one.prepare(0.0, row.copy())
        expected = np.zeros(32)
        one.rate(0.0, expected)
        assert np.array_equal(rate, expected)


def test_a_density_leaves_through_an_open_end_and_stays_nonnegative():
    mesh = interval(0.0, 1.0, 32)
    ends = {"right": Outflow()}
    term = Advection(mesh, lambda t, u: np.ones((32, 1)), nonnegative=True, boundaries=ends)
    moved = advanced(term, np.where(np.arange(32) == 20, 32.0, 0.0), 1.5)
    assert moved.min() >= -1e-15
    assert moved @ mesh.volumes < 1e-6
    walled = Advection(mesh, lambda t, u: np.ones((32, 1)), nonnegative=True, limiter="mc")
    assert advanced(walled, np.ones(32), 1.5) @ mesh.volumes == pytest.approx(1.0, rel=1e-13)


def test_wrong_boundaries_are_refused():
    mesh = interval(0.0, 1.0, 8)
    with pytest.raises(TypeError, match="expected one of Wall, Periodic, Outflow, Value"):
        Advection(mesh, print, boundaries={"left": Flux(1.0)})
    with pytest.raises(ValueError, match='"donor_cell_blend" with boundaries other than walls'):
        Advection(mesh, print, limiter="donor_cell_blend", nonnegative=True, boundaries={"left": Outflow()})
    assert pytest.approx(1.0) == AXIS @ AXIS


@pytest.mark.parametrize(
    "mesh", [sphere(16), icosphere(2), circle(24), torus((12, 12))], ids=lambda mesh: mesh.manifold
)
def test_a_velocity_out_of_the_surface_is_refused(mesh):
    """A rotation in the first two coordinates is tangent; with an added part along x it is not."""
    x = mesh.centers
    turn = np.zeros_like(x)
    turn[:, 0], turn[:, 1] = -x[:, 1], x[:, 0]
    Advection(mesh, lambda t, u: turn).prepare(0.0, np.ones(mesh.cells))
    with pytest.raises(ValueError, match=r"points out of the .*: expected a tangent vector"):
        Advection(mesh, lambda t, u: turn + x).prepare(0.0, np.ones(mesh.cells))


def globe(count, rows):
    """Return triangles on the unit sphere between meridians, ``count`` of which meet at each pole, and rows of
    latitudes."""
    theta, phi = np.pi / rows * np.arange(1, rows), 2 * np.pi / count * np.arange(count)
    sine, cosine = np.sin(theta)[:, None], np.broadcast_to(np.cos(theta)[:, None], (rows - 1, count))
    rings = np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine], axis=-1).reshape(-1, 3)
    points = np.concatenate([[[0.0, 0.0, 1.0]], rings, [[0.0, 0.0, -1.0]]])
    j, east = np.arange(count), (np.arange(count) + 1) % count
    corners = [np.stack([0 * j, 1 + j, 1 + east], axis=1)]
    for start in 1 + count * np.arange(rows - 2):
        a, b = start + j, start + east
        corners += [np.stack([a, a + count, b], axis=1), np.stack([b, a + count, b + count], axis=1)]
    last = len(points) - 1
    corners.append(np.stack([0 * j + last, last - count + east, last - count + j], axis=1))
    return points, np.concatenate(corners)


@pytest.mark.parametrize("northern", [False, True])
def test_cells_of_many_sides_and_hemispheres_are_not_for_kernels_of_unresolved_cells(northern):
    """40 triangles meet at a pole, more than those kernels have room for; at a boundary a side has no neighbor."""
    points, corners = globe(12 if northern else 40, 8)
    if northern:
        corners = corners[(points[corners][:, :, 2] > -1e-9).all(axis=1)]
        points = points[: corners.max() + 1]
    mesh = triangles(points, corners)
    turn = np.cross([0.0, 0.0, 1.0], mesh.centers)
    term = Advection(mesh, lambda t, u: turn, nonnegative=True)
    values = advanced(term, 1.0 + mesh.centers[:, 0], 0.2)
    assert values.min() >= 0.0
    assert values @ mesh.volumes == pytest.approx((1.0 + mesh.centers[:, 0]) @ mesh.volumes, rel=1e-13)
    with pytest.raises(ValueError, match=r'"donor_cell_blend" on a triangles: expected .* the closed unit sphere'):
        Advection(mesh, lambda t, u: turn, limiter="donor_cell_blend", nonnegative=True)


def test_the_old_name_of_the_donor_cell_blend_is_deprecated():
    mesh = circle(24)
    along = np.stack([-mesh.centers[:, 1], mesh.centers[:, 0]], axis=1)
    with pytest.warns(DeprecationWarning, match='limiter = "lump" is called "donor_cell_blend" now'):
        old = Advection(mesh, lambda t, u: along, limiter="lump", nonnegative=True)
    new = Advection(mesh, lambda t, u: along, limiter="donor_cell_blend", nonnegative=True)
    density = 1.0 + mesh.centers[:, 0]
    assert np.array_equal(advanced(old, density, 0.2), advanced(new, density, 0.2))
