"""Densities with a radius: comparison with tokens with a radius and exact solutions in R^d."""

import numpy as np
import pytest
from scipy import special
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from support.status import DONE, run

from meanfield.case.load import parse
from meanfield.domains.free_radius.attention import ShellAttention, output_at_directions, output_at_positions
from meanfield.domains.free_radius.equation import FreeRadius, free_radius_equation, radial_mesh
from meanfield.domains.free_radius.initial import (
    initial_at_points,
    initial_at_radius,
    initial_gaussian,
    initial_product,
)
from meanfield.domains.sphere.initial import initial_points, initial_uniform
from meanfield.model.layer_norm import LayerNorm
from meanfield.runtime.cost import estimate
from solvers.io.run_file import read
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

SSPRK3 = STEPPERS["ssprk3"]


def mean_and_covariance(space, density, time=0.0):
    masses, x = (density.reshape(space.shape) * space.volumes).ravel(), space.centers(time)
    x = x.reshape(masses.size, -1)
    mean = masses @ x
    return mean, (x * masses[:, None]).T @ x - np.outer(mean, mean)


def mean_radius(space, density):
    """Return e^⟨log r⟩, since concentrated masses move exactly in log r."""
    return np.exp(space.on_radii(density) * space.radial.volumes @ space.radial.centers[:, 0])


def free_equation(space, beta=1.0, gate=0.0, **attention):
    output = output_at_positions(space, ShellAttention(space.directions, beta, **attention))
    return free_radius_equation(space, LayerNorm("none"), output, gate)


def layer_norm_equation(space, norm, beta):
    return free_radius_equation(space, norm, output_at_directions(space, ShellAttention(space.directions, beta)))


def tokens(rates, start, end):
    solution = solve_ivp(rates, (0.0, end), start, method="DOP853", rtol=1e-10, atol=1e-12, max_step=0.02)
    return solution.y[:, -1]


def output_scales(norm, time, radius, along, length):
    """Return s and g of the table of 2510.22026, written out independently."""
    if norm == "peri":
        return radius * length, along / length
    if norm == "mix" and time < 1.0:
        return 1.0, 0.0
    return radius, along


@pytest.mark.parametrize("norm", ["pre", "peri", "mix"])
def test_a_pair_with_a_radius(norm):
    """Two tokens are 2 rad apart, β = 2, r₀ = 1, and mix has its switch at t = 1."""
    beta, end = 2.0, 3.0

    def rates(time, state):
        angle, radius = state
        other = np.exp(beta * (np.cos(angle) - 1))
        along, across = (1 + other * np.cos(angle)) / (1 + other), other * np.sin(angle) / (1 + other)
        pace, growth = output_scales(norm, time, radius, along, np.hypot(along, across))
        return [-2 * across / pace, growth]

    space = FreeRadius(circle(128), radial_mesh(0.7, 8.0, 64, 0.7))
    ends = [[np.cos(1), np.sin(1)], [np.cos(1), -np.sin(1)]]
    state = State(0.0, initial_at_radius(space, initial_points(space.directions, ends), 1.0))
    for time in (1.0, end):  # a step across the switch would be of first order
        evolve(state, layer_norm_equation(space, LayerNorm(norm, switch=1.0), beta), SSPRK3, time, rtol=None)
    angle, radius = tokens(rates, [2.0, 1.0], end)
    upper = space.directions.centers[:, 1] > 0
    mean = (space.on_directions(state.values) * space.directions.volumes * upper) @ space.directions.centers
    found = 2 * np.arctan2(mean[1], mean[0])
    assert 2 - found == pytest.approx(2 - angle, rel=0.01)  # the pair's own half per cent; see the merging times
    assert mean_radius(space, state.values) == pytest.approx(radius, rel=0.01)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("norm", ["peri", "pre"])
def test_a_ring_of_latitude_with_a_radius(norm):
    """Tokens all along a ring, β = 3: A = (sin θ I₁(b)/I₀(b), cos θ) in its plane, b = β sin²θ."""
    beta, start, end = 3.0, 0.8, 1.0

    def rates(time, state):
        theta, radius = state
        sine, cosine = np.sin(theta), np.cos(theta)
        outward = sine * special.ive(1, beta * sine**2) / special.ive(0, beta * sine**2)
        along, south = sine * outward + cosine**2, cosine * outward - sine * cosine
        pace, growth = output_scales(norm, time, radius, along, np.hypot(along, south))
        return [south / pace, growth]

    space = FreeRadius(sphere(64), radial_mesh(0.6, 4.0, 24, 0.6))
    phi = (np.arange(512) + 0.5) * 2 * np.pi / 512
    ring = np.stack([np.sin(start) * np.cos(phi), np.sin(start) * np.sin(phi), np.full(512, np.cos(start))], axis=1)
    directions, latitude = initial_points(space.directions, ring), np.arccos(space.directions.centers[:, 2])
    begun = directions * space.directions.volumes @ latitude
    state = State(0.0, initial_at_radius(space, directions, 1.0))
    evolve(state, layer_norm_equation(space, LayerNorm(norm), beta), SSPRK3, end, rtol=None)
    theta, radius = tokens(rates, [start, 1.0], end)
    masses = space.on_directions(state.values) * space.directions.volumes
    found = masses @ latitude
    # 0.8 %: on 64 rings the tokens' ring is two cells wide.
    assert found - begun == pytest.approx(theta - start, rel=0.01)
    assert mean_radius(space, state.values) == pytest.approx(radius, rel=0.01)


@pytest.mark.parametrize("covariance", [[[0.2, 0.0], [0.0, 0.2]], [[0.2, 0.05], [0.05, 0.1]]])
@pytest.mark.parametrize(("value", "end"), [(1.0, None), (-1.0, 3.0)])
def test_gaussians_stay_gaussian(covariance, value, end):
    """Σ(t) = (Σ₀⁻¹ − 2vβt)⁻¹ without layer norm: V = I until βλ = 0.6, and contraction with V = −I."""
    precision = np.linalg.inv(covariance)
    if end is None:
        end = (np.linalg.eigvalsh(precision).min() - 1 / 0.6) / 2
    space = FreeRadius(circle(64), radial_mesh(0.005, 8.0, 96, 1.0))
    state = State(0.0, initial_gaussian(space, [0.0, 0.0], covariance))
    evolve(state, free_equation(space, value=value * np.eye(2)), SSPRK3, end, rtol=None)
    expected = np.linalg.inv(precision - 2 * value * end * np.eye(2))
    mean, found = mean_and_covariance(space, state.values)
    assert np.abs(found - expected).max() < 0.01 * expected.max(), f"{found} for {expected}"  # h² of 96 radii
    assert np.abs(mean).max() < 1e-12  # the mesh is symmetric
    assert np.vdot(state.values, space.volumes) == pytest.approx(1.0, abs=1e-13)


def test_growth_of_a_compact_support_tends_to_the_norm_of_the_value():
    """Attention favors the farthest tokens only once βr² is large: R grows at ‖V‖ = 1, over five decades."""
    space = FreeRadius(circle(32), radial_mesh(0.02, 4.0, 48, 1.0), expansion=1.0)
    law = np.where((space.radii() > 0.5) & (space.radii() < 1.0), 1.0, 0.0)
    state = State(0.0, initial_product(space, 1 + 0.5 * space.directions.centers @ [0.8, 0.6], law))
    equation, logs = free_equation(space, value=np.diag([1.0, 0.5])), []
    for time in (8.0, 10.0, 12.0):
        evolve(state, equation, SSPRK3, time, rtol=None)
        logs.append(space.on_radii(state.values) * space.radial.volumes @ np.log(space.radii(time)))
    rates = np.diff(logs) / 2
    assert rates == pytest.approx(1.0, rel=0.02), rates
    assert abs(rates[1] - 1) < 0.5 * abs(rates[0] - 1)  # the rate converges
    assert np.exp(logs[-1]) > 1e4


def test_one_dirac_follows_the_value():
    """x(t) = e^{t(V − γ)} x₀: radius and direction, V a growing rotation with shear, γ a gate. 1 % of the path."""
    value, gate, end = np.array([[0.6, -1.0], [0.7, 0.2]]), 0.15, 2.0
    space = FreeRadius(circle(128), radial_mesh(0.5, 8.0, 64, 0.5))
    start = np.array([0.6, 0.8])
    state = State(0.0, initial_at_radius(space, initial_points(space.directions, [start.tolist()]), 1.0))
    evolve(state, free_equation(space, value=value, gate=gate), SSPRK3, end, rtol=None)
    steps = np.array([expm(t * (value - gate * np.eye(2))) @ start for t in np.linspace(0, end, 401)])
    path = np.linalg.norm(np.diff(steps, axis=0), axis=1).sum()
    mean = mean_and_covariance(space, state.values)[0]
    assert np.linalg.norm(mean - steps[-1]) < 0.01 * path, f"{mean} for {steps[-1]}"


def test_mix_keeps_the_radius_from_its_gate_until_its_switch():
    """The layer norm is post until the switch, which removes the part along x."""
    space = FreeRadius(circle(32), radial_mesh(0.1, 10.0, 40, 1.0))
    start = initial_at_radius(space, initial_points(space.directions, [[0.6, 0.8]]), 1.0)
    output = output_at_directions(space, ShellAttention(space.directions, 1.0))
    state = State(0.0, start.reshape(-1))
    evolve(
        state, free_radius_equation(space, LayerNorm("mix", switch=np.inf), output, gate=1.0), SSPRK3, 0.5, rtol=None
    )
    assert mean_radius(space, state.values) == pytest.approx(1.0, abs=1e-12)


def test_a_gate_balances_growth():
    """A = x for all tokens at one point, so that γ = 1 keeps the radius and γ = 1.5 shrinks it as e^{−t/2}."""
    space = FreeRadius(circle(32), radial_mesh(0.1, 4.0, 64, 0.1))
    for gate in (1.0, 1.5):
        state = State(0.0, initial_at_radius(space, initial_points(space.directions, [[1.0, 0.0]]), 1.0))
        evolve(state, free_equation(space, beta=0.5, gate=gate), SSPRK3, 1.0, rtol=None)
        assert mean_radius(space, state.values) == pytest.approx(np.exp(1 - gate), rel=0.01)


def test_what_reaches_an_end_stays_and_is_counted():
    space = FreeRadius(circle(16), radial_mesh(0.1, 2.0, 24, 0.1))
    equation = free_equation(space, beta=20.0)
    state = State(0.0, initial_at_radius(space, initial_points(space.directions, [[1.0, 0.0]]), 1.0))
    assert space.escaped(state.values) == (0.0, 0.0)
    evolve(state, equation, SSPRK3, 3.0, rtol=None)  # e³ is far outside
    inner, outer = space.escaped(state.values)
    assert inner == 0.0
    assert outer == pytest.approx(1.0, abs=1e-3)
    evolve(state, free_equation(space, beta=20.0, value=-np.eye(2)), SSPRK3, 6.0, rtol=None)
    assert space.escaped(state.values)[1] == pytest.approx(outer, abs=1e-3)


def test_initial_laws():
    space = FreeRadius(circle(96), radial_mesh(0.005, 8.0, 96, 1.0))
    mean, covariance = mean_and_covariance(space, initial_gaussian(space, [0.5, -0.2], [[0.3, 0.1], [0.1, 0.2]]))
    np.testing.assert_allclose(mean, [0.5, -0.2], atol=1e-3)  # radius and angle of the cell centers: h²
    np.testing.assert_allclose(covariance, [[0.3, 0.1], [0.1, 0.2]], atol=2e-3)
    directions = initial_uniform(space.directions)
    point = initial_at_radius(space, directions, 1.7)
    assert mean_radius(space, point) == pytest.approx(1.7, rel=1e-13)
    assert np.count_nonzero(space.on_radii(point)) == 2
    np.testing.assert_allclose(space.on_directions(point), directions, rtol=1e-13)
    with pytest.raises(ValueError, match=r"radius = 9.*0\.0\d+ to 7\.\d+"):
        initial_at_radius(space, directions, 9.0)


def test_points_begin_at_their_own_radii():
    """Every point keeps its mass, ⟨log r⟩ exactly and its direction on average: chords over a cell are h²/8 short."""
    points, masses = np.array([[0.5, 0.0], [0.0, 2.0], [-3.0, 3.0]]), np.array([0.5, 0.2, 0.3])
    space = FreeRadius(circle(64), radial_mesh(0.1, 10.0, 40, 1.0))
    density = initial_at_points(space, points, masses)
    radii = np.linalg.norm(points, axis=1)
    along = space.on_radii(density) * space.radial.volumes
    assert along @ space.radial.centers[:, 0] == pytest.approx(masses @ np.log(radii), abs=1e-14)
    mean = (space.on_directions(density) * space.directions.volumes) @ space.directions.centers
    np.testing.assert_allclose(mean, masses @ (points / radii[:, None]), rtol=(2 * np.pi / 64) ** 2 / 8)
    assert density.min() >= 0
    with pytest.raises(ValueError, match=r"radius = 20.0: expected 0\.1"):
        initial_at_points(space, [[20.0, 0.0]])


PERI = """
[domain]
manifold = "free_radius_circle"
resolution = 64
[attention]
beta = 1.0
[stabilizers]
layer_norm = "peri"
[initial]
kind = "gaussian"
mean = [1.5, 0.5]
variance = 0.1
[time]
end = 0.25
[output]
snapshots = 1
samples = 1
diagnostics = ["variance"]
"""


def test_check_estimates_how_much_the_mesh_widens_a_gaussian(tmp_path):
    """The variance of 2 × 4000 tokens grows by 0.50 % to t = 0.25, the cells' by more, as estimated to a third."""
    case = parse(PERI)
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    first, last = read(tmp_path / "run.h5").diagnostics["variance"]
    (line,) = case.domain.estimates(case)
    percent = float(line.split("about ")[1].split(" %")[0])
    assert 0.25 * percent == pytest.approx(100 * (last / first - 1.0050), rel=1 / 3)
    assert f"# {line}" in estimate(case).splitlines()


@pytest.mark.parametrize("beta", [0.5, 4.0, 40.0])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("directions", [circle(48), sphere(9)], ids=["circle", "sphere"])
def test_attention_far_from_all_mass(directions, normalization, beta):
    """Sums over all pairs, with the largest exponent subtracted, are the reference in every cell; runs skip empty
    cells."""
    radii, d = np.array([0.1, 0.5, 1.0, 2.0, 3.0]), directions.ambient_dimension
    masses = np.zeros((5, directions.cells))
    masses[2, :3], masses[3, 1] = [0.2, 0.3, 0.1], 0.4
    attention = ShellAttention(directions, beta, normalization=normalization)
    found = attention.output(radii, masses).reshape(-1, d)
    x = (radii[:, None, None] * directions.centers).reshape(-1, d)
    held = masses.ravel() > 0
    exponents = beta * x @ x[held].T
    largest = exponents.max(axis=1)
    weights = np.exp(exponents - largest[:, None]) * masses.ravel()[held]
    mean = weights @ x[held] / weights.sum(axis=1)[:, None]
    size = 1.0 if normalization == "softmax" else weights.sum(axis=1) * np.exp(largest)
    off = np.linalg.norm(found - mean * np.reshape(size, (-1, 1)), axis=1) / size
    assert off.max() <= 1e-9
    cheap = attention.output(radii, masses, "nan").reshape(-1, d)
    known = ~np.isnan(cheap).any(axis=1)
    assert known[held].all()
    assert (np.linalg.norm(cheap - found, axis=1) / size)[known].max() <= 1e-9
    assert not known.all() or beta < 1
