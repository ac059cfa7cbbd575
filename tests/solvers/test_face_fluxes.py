"""Fields of any sign on any mesh: orders of advection and of heat, no new extrema, refused input."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support import exact

from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import Mesh, circle, sphere
from solvers.mesh.product import box, product
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.terms.limiters import LIMITERS
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

STEP = STEPPERS["ssprk3"]
AXIS = np.array([0.36, 0.48, 0.8])


def donut(n):
    """Return a torus in R³, radii 2 and 1, of n × n cells between equal angles, with areas by Pappus's theorem."""
    edge = 2 * np.pi / n * np.arange(n + 1)
    big, small = np.meshgrid(edge[:-1] + np.pi / n, edge[:-1] + np.pi / n, indexing="ij")
    cell = np.arange(n * n).reshape(n, n)

    def on(b, s):
        radius = 2 + np.cos(s)
        return np.stack([radius * np.cos(b), radius * np.sin(b), np.sin(s)], -1).reshape(-1, 3)

    width = 2 * np.pi / n
    around = on(big + np.pi / n, small), np.stack([-np.sin(edge[1:]), np.cos(edge[1:]), 0 * edge[1:]], 1).repeat(n, 0)
    s = small + np.pi / n
    up = np.stack([-np.sin(s) * np.cos(big), -np.sin(s) * np.sin(big), np.cos(s)], -1).reshape(-1, 3)
    ahead, above = cell.reshape(-1), n * n + cell.reshape(-1)
    back, below = np.roll(cell, 1, 0).reshape(-1), n * n + np.roll(cell, 1, 1).reshape(-1)
    pairs = [(cell, np.roll(cell, -1, 0)), (cell, np.roll(cell, -1, 1))]
    lengths = np.append(np.full(n * n, width), (width * (2 + np.cos(s))).reshape(-1))
    bends = np.append(np.zeros(n * n), (-np.sin(s) / (2 + np.cos(s))).reshape(-1))
    area = width * (2 * width + np.sin(small + width / 2) - np.sin(small - width / 2)).reshape(-1)
    return Mesh(
        manifold="torus",
        dimension=2,
        centers=on(big, small),
        volumes=area,
        face_cells=np.concatenate([np.stack(pair, -1).reshape(-1, 2) for pair in pairs]).astype(np.int32),
        face_centers=np.concatenate([around[0], on(big, s)]),
        face_normals=np.concatenate([around[1], up]),
        face_areas=lengths,
        face_curvatures=bends,
        face_conductances=lambda: lengths,
        cell_start=4 * np.arange(n * n + 1, dtype=np.int32),
        cell_sides=np.stack([2 * ahead, 2 * above, 2 * back + 1, 2 * below + 1], 1).reshape(-1).astype(np.int32),
        ring_cells=np.full(n, n, np.int32),
    )


def turned(points, angle):
    """Return points rotated about AXIS (Rodrigues)."""
    along = (points @ AXIS)[:, None] * AXIS
    return along + np.cos(angle) * (points - along) + np.sin(angle) * np.cross(AXIS, points)


def on_circle(n):
    mesh = circle(n)
    field = lambda t: np.exp(turn(mesh.centers, -t)[:, 0]) - 1.0  # noqa: E731
    return mesh, quarter(mesh.centers), field


def quarter(points):
    return np.stack([-points[:, 1], points[:, 0]], axis=1)


def turn(points, angle):
    return np.cos(angle) * points + np.sin(angle) * quarter(points)


def on_sphere(n):
    mesh = sphere(n)
    field = lambda t: np.exp(2 * turned(mesh.centers, -t)[:, 0]) - mesh.centers[:, 1].mean() - 1.0  # noqa: E731
    return mesh, np.cross(AXIS, mesh.centers), field


def on_flat_torus(n):
    mesh = product(circle(n), circle(n))
    a, b = mesh.centers[:, :2], mesh.centers[:, 2:]
    field = lambda t: np.exp(turn(a, -t)[:, 0] + turn(b, 0.5 * t)[:, 1]) - 1.0  # noqa: E731
    return mesh, np.hstack([quarter(a), -0.5 * quarter(b)]), field


def on_donut(n):
    """Return a flow along both angles, 1 rad around and (2 + cos s) ṡ = 1 about the tube, without divergence."""
    mesh = donut(n)
    x = mesh.centers
    ring = np.hypot(x[:, 0], x[:, 1])
    big, small = np.arctan2(x[:, 1], x[:, 0]), np.arctan2(x[:, 2], ring - 2)
    around = np.stack([-x[:, 1], x[:, 0], np.zeros(len(x))], 1)
    up = np.stack([-np.sin(small) * np.cos(big), -np.sin(small) * np.sin(big), np.cos(small)], 1) / ring[:, None]

    def field(t):
        target, s = 2 * small + np.sin(small) - t, small.copy()  # 2s + sin s grows by t
        for _ in range(60):
            s -= (2 * s + np.sin(s) - target) / (2 + np.cos(s))
        return np.exp(np.cos(big - t) + np.sin(s)) - 1.0

    return mesh, around + up, field


@pytest.mark.sampled
@pytest.mark.parametrize("limiter", LIMITERS)
@pytest.mark.parametrize("build", [on_circle, on_sphere, on_flat_torus, on_donut])
def test_advection_of_a_field_of_any_sign_is_second_order(build, limiter):
    """A torus built by hand is included, since kernels once knew only the circle and the sphere."""
    sizes, errors = (24, 48, 96), []
    for size in sizes:
        mesh, velocity, field = build(size)
        state = State(0.0, field(0.0))
        evolve(state, Equation(None, [Advection(mesh, lambda t, u, x=velocity: x, limiter=limiter)]), STEP, 1.0)
        errors.append(np.abs(state.values - field(1.0)) @ mesh.volumes / mesh.volume)
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 1.75, f"orders {observed}, errors {errors}"  # 2 except for extrema, and where rings change


@pytest.mark.sampled
@pytest.mark.parametrize("limiter", ["koren", "mc", "vanleer"])
@pytest.mark.parametrize("build", [on_circle, on_flat_torus, on_donut])
def test_a_tracer_stays_within_its_bounds(build, limiter):
    """Values 0 and 1 in a flow without divergence stay to rounding, and on the torus to the discrete divergence."""
    mesh, velocity, field = build(64)
    tracer = (field(0.0) > 0).astype(float)
    before = tracer @ mesh.volumes
    term = Advection(mesh, lambda t, u: velocity, limiter=limiter)
    assert term.prepare(0.0, np.ones(mesh.cells)) > 0
    rate = np.zeros(mesh.cells)
    term.rate(0.0, rate)
    grown = 2.0 * np.abs(rate).max() + 1e-12  # growth of a uniform field, e^{−t div X} at t = 2
    state = evolve(State(0.0, tracer), Equation(None, [term]), STEP, 2.0)
    assert state.values.min() > -1e-14, f"{state.values.min():.1e}"
    assert state.values.max() < 1 + grown, f"{state.values.max() - 1:.1e}, divergence {grown:.1e}"
    assert grown < 0.01
    assert state.values @ mesh.volumes == pytest.approx(before, rel=1e-13)


def test_a_density_with_empty_cells_does_not_stall_fluxes_without_a_limiter():
    """The outflow of a nearly empty cell does not limit the steps."""
    mesh = circle(64)
    density = np.where(np.arange(64) == 9, 1.0, 0.0)
    term = Advection(mesh, lambda t, u: quarter(mesh.centers), limiter="none", nonnegative=True)
    state = evolve(State(0.0, density), Equation(None, [term]), STEP, 1.0, rtol=None)
    assert state.steps < 40  # 2·64/2π = 21 at cfl ½
    assert state.values.min() >= -1e-15
    assert state.values @ mesh.volumes == pytest.approx(mesh.volumes[0], rel=1e-13)


def heat(mesh, angle, decay, offset):
    """Return the largest error of cos-like modes at κ t = 1/decay, in units of the mode."""
    start = angle + offset
    state = evolve(State(0.0, start.copy()), Equation(None, [Diffusion(mesh, 1.0)]), STEP, 1 / decay, cfl=0.1)
    return np.abs(state.values - (np.exp(-1.0) * angle + offset)) @ mesh.volumes / mesh.volume


def harmonic(mesh):
    return 35 * mesh.centers[:, 2] ** 4 / 8 - 30 * mesh.centers[:, 2] ** 2 / 8 + 3 / 8


@pytest.mark.sampled
@pytest.mark.parametrize("offset", [0.0, 0.5, -3.0])
@pytest.mark.parametrize("name", ["circle", "interval", "stretched", "sphere"])
def test_heat_of_any_sign_decays_as_its_mode(name, offset):
    """cos 4x on circle and interval and P₄ on the sphere decay as e^{−κλt}, to second order in steps of cfl 0.1 and
    in cells."""
    x = np.linspace(0.0, np.pi, 129)
    meshes = {
        "circle": lambda: circle(128), "sphere": lambda: sphere(64),
        "interval": lambda: from_edges(x), "stretched": lambda: from_edges(x + 0.2 * np.sin(2 * x)),
    }  # fmt: skip
    mesh = meshes[name]()
    if name == "sphere":
        mode, decay = harmonic(mesh), 20.0
    else:
        angle = mesh.centers[:, 0] if name != "circle" else np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
        mode, decay = np.cos(4 * angle), 16.0
    error = heat(mesh, mode, decay, offset)
    assert error < 1.5e-3, f"{error:.1e}"  # (0.05)²/6 of a step that is 0.05 of the decay time, and h² = 6e-4 · 16/12


def test_diffusion_between_uneven_cells_is_second_order():
    sizes, errors = (32, 64, 128), []
    for size in sizes:
        x = np.linspace(0.0, np.pi, size + 1)
        mesh, rate = from_edges(x + 0.2 * np.sin(2 * x), "interval"), np.zeros(size)
        mode = np.cos(2 * mesh.centers[:, 0])
        Diffusion(mesh, 1.0).laplacian(mode, rate)
        errors.append(abs((mode * mesh.volumes) @ rate / ((mode * mesh.volumes) @ mode) / 4 + 1))
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 1.9, f"orders {observed}, errors {errors}"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Advection(donut(8), print, limiter="donor_cell_blend", nonnegative=True),
            'limiter = "donor_cell_blend" on a torus',
        ),
        (lambda: Advection(circle(8), print, limiter="donor_cell_blend"), "expected nonnegative=True"),
        (lambda: Advection(circle(8), print, limiter="weno"), "limiter = 'weno': expected one of 'none', 'mc', 'vanl"),
        (lambda: Advection(circle(8), print, (np.inf, np.inf)), "expected 0 <= low <= high < inf"),
    ],
)
def test_what_a_mesh_cannot_do_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_periodic_mesh_that_is_not_embedded_is_refused():
    """A flat torus with coordinates for centers has neighbors across the period that seem far away."""
    mesh, n = product(circle(8), circle(8)), 8
    place = (np.arange(n) + 0.5) * 2 * np.pi / n
    centers = np.stack(np.meshgrid(place, place, indexing="ij"), -1).reshape(-1, 2)
    ahead = np.concatenate([centers + np.array([np.pi / n, 0]), centers + np.array([0, np.pi / n])])
    normals = np.repeat([[1.0, 0.0], [0.0, 1.0]], n * n, axis=0)
    flat = replace(mesh, centers=centers, face_centers=ahead, face_normals=normals)
    with pytest.raises(ValueError, match="a periodic mesh has to be embedded, as a circle is in the plane"):
        Advection(flat, lambda t, u: np.ones((64, 2)))


def test_a_velocity_that_reads_the_density_at_its_own_place_is_reported():
    mesh, x = circle(64), circle(64).centers
    wave = 0.5 + 0.25 * x[:, 0]
    with pytest.warns(RuntimeWarning, match="use ConservationLaw"):
        Advection(mesh, lambda t, u: (1 - u)[:, None] * quarter(x)).prepare(0.0, wave)
    mean = lambda t, u: ((u * mesh.volumes) @ x)[None, :] - (x @ ((u * mesh.volumes) @ x))[:, None] * x  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Advection(mesh, mean).prepare(0.0, wave)
        Advection(mesh, lambda t, u: quarter(x)).prepare(0.0, wave)


@pytest.mark.parametrize("mesh", [box((8, 5), (1.0, 3.0)), box((4, 5, 3), (1.0, 3.0, 0.2))], ids=["box", "body"])
def test_gradients_by_least_squares_are_those_of_a_linear_function(mesh):
    """Cells are three and more times as wide as high, and walls have one neighbor in each direction."""
    slope = np.array([1.0, -2.0, 0.5])[: mesh.dimension]
    cells, neighbors, weights = mesh.gradient_weights
    values, found = mesh.centers @ slope, np.zeros(mesh.centers.shape)
    np.add.at(found, cells, weights * (values[neighbors] - values[cells])[:, None])
    np.testing.assert_allclose(found, np.tile(slope, (mesh.cells, 1)), rtol=1e-12)
