"""Intervals: geometry, and transport between walls: mass, first moments, second order, no flux through the ends."""

import numpy as np
import pytest
from scipy import special
from support import exact

from solvers.mesh.interval import edges_of, from_edges, line, polar
from solvers.terms.advection import Advection
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

EVEN = from_edges(np.linspace(-1.0, 3.0, 65), "line")
STRETCHED = line(64, 100.0, 1.0)
by_mesh = pytest.mark.parametrize("mesh", [EVEN, STRETCHED, polar(64, 512)], ids=["even", "stretched", "polar"])


def rate_of(mesh, velocity, density, resolved=Advection.resolved):
    term, rate = Advection(mesh, lambda t, u: velocity, resolved, nonnegative=True), np.zeros(mesh.cells)
    term.prepare(0.0, density)
    term.rate(0.0, rate)
    return rate


@by_mesh
def test_cells_fill_the_interval(mesh):
    edges = edges_of(mesh)
    assert np.array_equal(mesh.volumes, np.diff(edges))
    assert mesh.volume == pytest.approx(edges[-1] - edges[0], rel=1e-14)
    assert mesh.centers.shape == (mesh.cells, 1)
    assert np.array_equal(mesh.neighbors(5), [4, 6])
    assert np.array_equal(mesh.neighbors(0), [0, 1])  # a wall: the cell is its own neighbor
    assert np.array_equal(mesh.neighbors(mesh.cells - 1), [mesh.cells - 2, mesh.cells - 1])


def test_a_line_is_even_inside_and_logarithmic_outside():
    mesh = line(400, 1e6, 1.0)
    edges = edges_of(mesh)
    assert edges[0] == -1e6
    assert edges[-1] == 1e6
    assert np.array_equal(edges, -edges[::-1])
    outer = edges[edges > 30]
    assert outer[1:] / outer[:-1] == pytest.approx(outer[-1] / outer[-2], rel=1e-3)  # 1/30² from sinh's other half
    middle = mesh.volumes[np.abs(mesh.centers[:, 0]) < 0.2]
    assert middle == pytest.approx(middle.min(), rel=0.03)  # cosh ξ − 1 = 0.02 at x = 0.2


@pytest.mark.parametrize("dimension", [2, 3, 4, 64, 4096])
def test_a_polar_mesh_goes_from_pole_to_pole(dimension):
    mesh = polar(512, dimension)
    edges = edges_of(mesh)
    assert edges[0] == 0.0
    assert edges[-1] == np.pi
    ratio = mesh.volumes[1:] / mesh.volumes[:-1]
    assert np.abs(np.log(ratio)).max() < 0.025  # ξ's step: 2 asinh(π/4·√(d − 2))/512
    if dimension > 2:
        middle = mesh.volumes[mesh.cells // 2]
        assert middle * np.sqrt(dimension - 2) < 0.05, "the uniform distribution's width has fewer than 20 cells"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: from_edges([0.0, 1.0, 2.0], "line"), "cells = 2: expected a whole number >= 3"),
        (lambda: from_edges([0.0, 1.0, 1.0, 2.0], "line"), "expected finite, increasing numbers"),
        (lambda: from_edges([0.0, 1.0, 2.0, np.inf], "line"), "expected finite, increasing numbers"),
        (lambda: line(64, 10.0, 0.0), "core = 0.0: expected a finite number > 0"),
        (lambda: line(64, np.inf, 1.0), "extent = inf: expected a finite number > 0"),
        (lambda: polar(64, 1), "dimension = 1: expected a whole number >= 2"),
    ],
)
def test_bad_intervals_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@by_mesh
@pytest.mark.parametrize(
    "scheme", [{}, {"resolved": (0.0, 0.0)}, {"limiter": "none"}, {"limiter": "mc"}, {"limiter": "koren"}], ids=str
)
def test_nothing_passes_the_walls(mesh, scheme):
    """Mass is kept to rounding and ρ ≥ 0 over many steps of a rough velocity that also points into the walls."""
    random = np.random.default_rng(0)
    velocity = random.standard_normal((mesh.cells, 1)) * mesh.volumes[:, None]
    velocity[0], velocity[-1] = -mesh.volumes[0], mesh.volumes[-1]
    state = State(0.0, random.random(mesh.cells) ** 4 / mesh.volumes)
    before = state.values @ mesh.volumes
    equation = Equation(None, [Advection(mesh, lambda t, u: velocity, nonnegative=True, **scheme)])
    evolve(state, equation, STEPPERS["ssprk3"], 10.0, after_step=lambda s: s.steps == 100, rtol=None)
    assert state.values @ mesh.volumes == pytest.approx(before, rel=1e-13)
    assert state.values.min() >= -1e-13 * state.values.max()  # rounding of cells that lose all of their mass


@by_mesh
def test_a_lump_moves_at_its_own_velocity(mesh):
    """The center of mass of a full cell, or of two adjacent cells, moves exactly with their mean velocity."""
    velocity, worst = np.random.default_rng(1).standard_normal((mesh.cells, 1)), 0.0
    velocity[0], velocity[-1] = 1.0, -1.0  # away from the walls: nothing moves into them
    for cell in range(mesh.cells - 1):
        for shares in ([1.0, 0.0], [0.3, 0.7], [0.0, 1.0]):
            masses = np.zeros(mesh.cells)
            masses[cell : cell + 2] = shares
            rate = rate_of(mesh, velocity, masses / mesh.volumes)
            pull = (rate * mesh.volumes) @ mesh.centers[:, 0]
            worst = max(worst, abs(pull - masses @ velocity[:, 0]) / np.abs(mesh.centers).max())
    assert worst < 1e-13, f"first moment off by {worst:.1e}"


def test_a_lump_at_a_wall_stays():
    masses = np.zeros(EVEN.cells)
    masses[[0, -1]] = 0.5
    velocity = np.sign(EVEN.centers - 1.0)
    assert not rate_of(EVEN, velocity, masses / EVEN.volumes).any()


@pytest.mark.parametrize("side", [0, -1])
def test_a_linear_wind_thins_an_even_density_evenly(side):
    """ρ = 1, u = x − wall: ∂ₜρ = −1 in all cells from the wall on, except the last one, which fills."""
    mesh = from_edges(np.linspace(-1.0, 3.0, 65), "line")
    wind = mesh.centers - edges_of(mesh)[side]
    rate = rate_of(mesh, wind, np.ones(mesh.cells))
    assert rate[1 if side else 0 : -1 if side == 0 else None] == pytest.approx(-1.0, rel=1e-12)


def law_of_the_equator(theta):
    return (theta - np.sin(2 * theta) / 2) / np.pi


def law_of_gauss(x):
    return special.erf(x / np.sqrt(2)) / 2


@pytest.mark.parametrize(
    ("build", "wind", "origin", "law"),
    [
        (
            lambda n: from_edges(np.linspace(0, np.pi, n + 1), "axisymmetric"),
            lambda x: -np.sin(x),
            lambda x: 2 * np.arctan(np.e * np.tan(x / 2)),
            law_of_the_equator,
        ),
        (
            lambda n: polar(n, 64),
            lambda x: -np.sin(x),
            lambda x: 2 * np.arctan(np.e * np.tan(x / 2)),
            law_of_the_equator,
        ),
        (lambda n: line(n, 40.0, 1.0), lambda x: 0.5 * x, lambda x: np.exp(-0.5) * x, law_of_gauss),
        (lambda n: line(n, 40.0, 1.0), lambda x: 1 + 0 * x, lambda x: x - 1, law_of_gauss),
    ],
    ids=["even", "polar", "stretched", "shift"],
)
def test_transport_is_second_order(build, wind, origin, law):
    """Cell averages at t = 1 are those of the distribution moved by the wind: θ̇ = −sin θ, ẋ = x/2, ẋ = 1, in L¹."""
    sizes, errors = (64, 128, 256, 512), []
    for size in sizes:
        mesh = build(size)
        blow = wind(mesh.centers)
        state = State(0.0, np.diff(law(edges_of(mesh))) / mesh.volumes)
        evolve(
            state,
            Equation(None, [Advection(mesh, lambda t, u, x=blow: x, nonnegative=True)]),
            STEPPERS["ssprk3"],
            1.0,
            rtol=None,
        )
        errors.append(np.abs(state.values * mesh.volumes - np.diff(law(origin(edges_of(mesh))))).sum())
    observed = exact.orders(errors, sizes)
    assert observed.min() > 1.9, f"orders {observed}, errors {errors}"
