"""Gas near a vacuum and water on dry ground by default: densities, pressures and depths stay positive."""

import numpy as np
import pytest
from support.riemann import TORO, exact_riemann, exact_star

from solvers import ConservationLaw, Equation, Euler, Exploding, Outflow, ShallowWater, box, interval, solve
from solvers.terms.limiters import PositivityLimiter

GAS = Euler(1.4)
TUBES = {**TORO, "vacuum": ((1.0, -10.0, 0.4), (1.0, 10.0, 0.4), 0.03)}
STARS = {1: (0.30313, 0.92745), 2: (0.00189, 0.0), 3: (460.894, 19.5975), 4: (46.0950, -6.19633), 5: (1691.64, 8.68975)}


@pytest.mark.parametrize("number", TORO)
def test_pressure_and_velocity_between_the_waves_are_those_of_toros_table(number):
    """Table 4.2 of Toro (2009), which has six digits; test 1 there has the pressures 1 and 0.1."""
    found, velocity, _ = exact_star(*TORO[number][:2])
    assert (found, velocity) == pytest.approx(STARS[number], rel=1e-5, abs=1e-5)


def law_of(mesh, **options):
    return ConservationLaw(mesh, GAS.flux, GAS.speed, riemann=GAS.hllc, mirror=GAS.mirror, **options)


def solved_tube(name, cells, **options):
    """Return density, velocity and pressure (3, cells) at the end of a tube with open ends, and the exact ones."""
    left, right, end = TUBES[name]
    mesh = interval(-0.5, 0.5, cells)
    x = mesh.centers[:, 0]
    density, velocity, pressure = (np.where(x < 0, *pair) for pair in zip(left, right, strict=True))
    law = law_of(mesh, boundaries={"left": Outflow(), "right": Outflow()}, **options)
    u = solve(Equation(mesh, [law]), GAS.conserved(density, velocity[None], pressure), (0.0, end), times=[end]).u[0]
    return np.vstack(GAS.primitive(u)), exact_riemann(left, right, x / end)


@pytest.mark.parametrize("name", TUBES)
def test_toros_tubes_and_a_vacuum_run_by_default(name):
    """Toro (2009), section 4.3.3 and 4.6; the first-order reconstruction errs by more than 1.2 times as much."""
    found, exact = solved_tube(name, 60)
    of_first_order, _ = solved_tube(name, 60, reconstruction="constant")
    assert found[[0, 2]].min() > 0
    errors = [np.abs(one[0] - exact[0]).mean() for one in (found, of_first_order)]
    assert errors[0] < errors[1] / 1.2, errors
    if name in (2, "vacuum"):  # symmetric problems; rounding grows by the number of steps
        assert np.abs(found[0] - found[0, ::-1]).max() < 1e-11


def test_a_step_that_leaves_the_positive_states_is_repeated():
    """Five times the stable fraction of the cfl: the steps into the vacuum are repeated with a shorter length."""
    (density, velocity, pressure), _, _ = TUBES["vacuum"]
    mesh = interval(-0.5, 0.5, 60)
    one = np.ones(60)
    u0 = GAS.conserved(density * one, -velocity * np.sign(mesh.centers.T), pressure * one)
    law = law_of(mesh, boundaries={"left": Outflow(), "right": Outflow()})
    found = solve(Equation(mesh, [law]), u0, (0.0, 0.03), times=[0.03], cfl=2.5, rtol=None)
    assert found.rejected > 0
    assert GAS.positive(found.u[0]).min() > 0


def test_weno_runs_in_a_strong_tube_too():
    found, exact = solved_tube(3, 60, reconstruction="weno5")
    assert found[[0, 2]].min() > 0
    assert np.abs(found[0] - exact[0]).mean() < 0.25  # the layer behind the shock is four cells thick


def test_woodward_and_colellas_blasts_run_by_default():
    """Walls keep mass and energy to rounding; the density peak is at 0.78 (Woodward and Colella 1984)."""
    mesh = interval(0.0, 1.0, 100)
    x = mesh.centers[:, 0]
    u0 = GAS.conserved(np.ones(100), np.zeros((1, 100)), np.select([x < 0.1, x < 0.9], [1000.0, 0.01], 100.0))
    u = solve(Equation(mesh, [law_of(mesh)]), u0, (0.0, 0.038), times=[0.038]).u[0]
    assert GAS.positive(u).min() > 0
    np.testing.assert_allclose(u[[0, 2]].sum(axis=1), u0[[0, 2]].sum(axis=1), rtol=1e-12)
    assert abs(x[u[0].argmax()] - 0.78) < 0.03


@pytest.mark.parametrize("solver", ["hll", "hllc"])
def test_a_dam_break_on_dry_ground_runs_by_default(solver):
    """Ritter's solution h = (2 − x/t)²/9 for g = 1 and depth 1, with a front at 2t: first order, by its corner."""
    water, errors = ShallowWater(gravity=1.0), []
    for cells in (50, 100):
        mesh = interval(-1.0, 1.0, cells)
        x = mesh.centers[:, 0]
        law = ConservationLaw(mesh, water.flux, water.speed, riemann=getattr(water, solver), mirror=water.mirror)
        u0 = np.stack([np.where(x < 0, 1.0, 0.0), 0 * x])
        h = solve(Equation(mesh, [law]), u0, (0.0, 0.3), times=[0.3]).u[0, 0]
        errors.append(np.abs(h - np.where(x < -0.3, 1.0, np.maximum(2 - x / 0.3, 0.0) ** 2 / 9)).mean())
        assert h.min() >= 0
        assert h[x > 0.8].max() < 1e-6  # the front is at 0.6
    assert np.log2(errors[0] / errors[1]) > 0.75, errors
    assert errors[1] < 5e-3


def test_sedovs_blast_in_a_quarter_of_the_plane_is_symmetric_and_has_its_radius():
    """The shock is at (E t²/(α ρ))^¼ with α = 0.984 for γ = 1.4 (Kamm 2000); the pressure outside is 1e-9."""
    mesh = box((20, 20), (1.0, 1.0))
    pressure = np.full(400, 1e-9)
    pressure[0] = (GAS.gamma - 1) / 4 / mesh.volumes[0]  # E/4 in the cell at the corner, E = 1
    assert np.hypot(*mesh.centers[0]) == np.hypot(*mesh.centers.T).min()
    u0 = GAS.conserved(np.ones(400), np.zeros((2, 400)), pressure)
    u = solve(Equation(mesh, [law_of(mesh)]), u0, (0.0, 0.4), times=[0.4]).u[0]
    assert GAS.positive(u).min() > 0
    density = u[0].reshape(20, 20)
    assert np.abs(density - density.T).max() < 1e-11
    radii = np.hypot(*mesh.centers.T)[u[0] > 0.9 * u[0].max()]
    assert abs(radii.mean() - (0.4**2 / 0.984) ** 0.25) < 0.05  # a cell


def test_the_limiter_keeps_means_and_half_of_each_positive_quantity():
    """Two sides of each cell: the mean of both is that of the cell, also where values are moved."""
    mesh = interval(0.0, 1.0, 4, periodic=True)
    limiter = PositivityLimiter(mesh, GAS.positive)
    means = GAS.conserved(np.array([1.0, 1.0, 1.0, 1.0]), np.zeros((1, 4)), np.array([1.0, 1.0, 1.0, -1.0]))
    slopes = np.array([[0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.1, 0.0, 0.0]])
    signs = np.where(np.isin(np.arange(8), mesh.cell_sides.reshape(4, 2)[:, 0]), -1.0, 1.0)
    at_side = (means[:, mesh.side_cells] + signs * slopes[:, mesh.side_cells]).copy()
    before = at_side.copy()
    limiter.limit(means, at_side)
    sides = mesh.cell_sides.reshape(4, 2)
    np.testing.assert_array_equal(at_side[:, sides[1]], before[:, sides[1]])
    assert np.isnan(at_side[:, sides[3]]).all()
    for cell, quantity in ((0, 0), (2, 1)):  # density and pressure
        np.testing.assert_allclose(at_side[:, sides[cell]].mean(axis=1), means[:, cell], atol=1e-14)
        least = GAS.positive(at_side[:, sides[cell]])[quantity].min()
        assert 0.5 - 1e-12 < least < 0.9


def test_a_state_that_is_not_positive_is_refused():
    mesh = interval(0.0, 1.0, 4)
    u0 = GAS.conserved(np.ones(4), np.zeros((1, 4)), np.array([1.0, 1.0, -0.25, 1.0]))
    with pytest.raises(ValueError, match=r"^u0: positive quantity 1 of least value -0\.25: expected >= 0$"):
        solve(Equation(mesh, [law_of(mesh)]), u0, (0.0, 0.1))
    with pytest.raises(TypeError, match=r"^positive = int: expected a function of \(u\)"):
        law_of(mesh, positive=3)


def test_a_law_without_positive_quantities_names_the_argument():
    """A flux that is no method of a law has no positive quantities; the blow-up names the argument."""
    mesh = interval(-0.5, 0.5, 60)
    x = mesh.centers[:, 0]
    u0 = GAS.conserved(np.ones(60), np.where(x < 0, -2.0, 2.0)[None], np.full(60, 0.1))
    ends = {"left": Outflow(), "right": Outflow()}
    laws = [
        ConservationLaw(mesh, lambda u, x: GAS.flux(u, x), GAS.speed, riemann=GAS.hllc, boundaries=ends, **options)
        for options in ({}, {"positive": GAS.positive})
    ]
    with pytest.raises(Exploding, match="; the argument positive of ConservationLaw keeps densities"):
        solve(Equation(mesh, laws[:1]), u0, (0.0, 0.15))
    assert GAS.positive(solve(Equation(mesh, laws[1:]), u0, (0.0, 0.15), times=[0.15]).u[0]).min() > 0
