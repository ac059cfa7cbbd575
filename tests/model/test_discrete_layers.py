"""Depth in layers: exact maps without a residual, first order in the step with one, and the time loop of a run."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import exact

from meanfield.domains.sphere.initial import initial_moebius, initial_points, initial_uniform, initial_von_mises_fisher
from meanfield.model.discrete_layers import LayerIntegrator, LayerMap
from meanfield.model.layer_norm import LayerNorm
from solvers.mesh.interval import line
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.integrate import fixed, integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import NonFinite, State

POST, NONE = LayerNorm("post"), LayerNorm("none")
AXES = {2: (0.6, 0.8), 3: (0.3, -0.5, 0.8)}


def run_layers(state, layer, until, observers=(), after_step=lambda state: False):
    return integrate(state, fixed(LayerIntegrator(layer)), until, observers, after_step)


def attention(mesh, beta, value=None):
    """Return (time, density, points) → ∫ V y e^{β⟨x,y⟩} ρ(y) dy / Z(x) at points, summed over cells by log-sum-exp."""
    matrix = np.eye(mesh.centers.shape[1]) if value is None else value

    def output_at(time, density, points):
        mass = density * mesh.volumes
        held = mass > 0
        logarithms = beta * points @ mesh.centers[held].T + np.log(mass[held])
        weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        return weights @ mesh.centers[held] / weights.sum(axis=1, keepdims=True) @ matrix.T

    return output_at


def at_centers(mesh, output_at):
    return lambda time, density: output_at(time, density, mesh.centers)


def mean_field(mesh):
    """Return the output at β = 0: the mean of all tokens."""
    return lambda time, density: np.broadcast_to(density * mesh.volumes @ mesh.centers, mesh.centers.shape)


@pytest.mark.parametrize("start", [0.9, 1.1])
@pytest.mark.parametrize("exact_at_edges", [True, False])
def test_without_a_residual_the_logarithm_triples(start, exact_at_edges):
    """The variance s of a Gaussian on the line maps to β² s³, so that log(βs) ← 3 log(βs) (ORACLES)."""
    mesh, beta = line(1000, 60.0, 0.3), 2.0
    x = mesh.centers[:, 0]
    density = np.exp(-x * x * beta / (2 * start))
    output_at = attention(mesh, beta)
    state = State(0.0, density / (density @ mesh.volumes))
    layer = LayerMap(
        mesh, at_centers(mesh, output_at), NONE, 1.0, residual=False, output_at=output_at if exact_at_edges else None
    )
    logarithms = []
    for depth in range(4):
        run_layers(state, layer, depth)
        mass = state.values * mesh.volumes
        assert mass.sum() == pytest.approx(1.0, abs=1e-12)
        logarithms.append(np.log(beta * (mass @ (x * x + mesh.volumes**2 / 12) - (mass @ x) ** 2)))
    ratios = np.divide(logarithms[1:], logarithms[:-1])
    assert ratios == pytest.approx([3, 3, 3], rel=0.02), f"ratios {ratios}"


@pytest.mark.parametrize("mesh", [circle(512), sphere(64)], ids=["circle", "sphere"])
def test_with_a_residual_it_is_of_first_order(mesh):
    """The reference is the exact flow at β = 0."""
    dimension, errors, steps = mesh.centers.shape[1], [], (0.2, 0.1, 0.05)
    expected = initial_moebius(mesh, AXES[dimension], exact.moebius_parameter(dimension, 0.4, 1.0))
    for step in steps:
        state = State(0.0, initial_moebius(mesh, AXES[dimension], 0.4))
        run_layers(state, LayerMap(mesh, mean_field(mesh), POST, step), 1.0)
        assert state.steps == round(1 / step)
        errors.append(np.abs(state.values - expected) @ mesh.volumes)
    orders = exact.orders(errors, 1 / np.array(steps))
    assert orders == pytest.approx([1, 1], abs=0.15), f"orders {orders} of errors {errors}"  # first order from below


@pytest.mark.parametrize(("mesh", "beta"), [(circle(128), 8.0), (sphere(32), 4.0)], ids=["circle", "sphere"])
def test_without_a_residual_a_peak_collapses_and_turns_with_its_value(mesh, beta):
    """V is a rotation: the whole density collapses to a point in two layers, and V rotates its center in each."""
    dimension = mesh.centers.shape[1]
    angle = np.array([0.0, 0.0, 0.4]) if dimension == 2 else np.array([0.2, 0.3, -0.1])
    value = Rotation.from_rotvec(angle).as_matrix()[:dimension, :dimension]
    center = np.array(AXES[dimension]) / np.linalg.norm(AXES[dimension])
    state = State(0.0, initial_von_mises_fisher(mesh, [center], [10.0], [1.0]))
    layer = LayerMap(mesh, at_centers(mesh, attention(mesh, beta, value)), POST, residual=False)
    for depth in range(1, 7):
        run_layers(state, layer, depth)
        center = value @ center
        moment = state.values * mesh.volumes @ mesh.centers
        length = np.linalg.norm(moment)
        if depth >= 3:
            assert np.sqrt(2 * (1 - length)) < mesh.width
        # the peak's own center is resolved to h²/24 of its curvature; no layer adds pinning
        assert np.linalg.norm(moment / length - center) < 0.02 * mesh.width


def test_a_point_mass_turns_with_a_skew_value():
    """V skew: x ← N(x + Δt V x) turns a point mass by arctan(ωΔt) per layer."""
    mesh, step = circle(64), 0.3
    value = np.array([[0.0, -1.0], [1.0, 0.0]])
    state = State(0.0, initial_points(mesh, [[1.0, 0.0]]))
    run_layers(state, LayerMap(mesh, at_centers(mesh, attention(mesh, 4.0, value)), POST, step), 15.0)
    angle = 50 * np.arctan(step)
    moment = state.values * mesh.volumes @ mesh.centers
    # A is V times a center of mass up to h²/8 below the circle, and the deposit's weights differ by as much
    turned = np.arctan2(moment[1], moment[0]) - angle
    assert abs(np.remainder(turned + np.pi, 2 * np.pi) - np.pi) < mesh.width**2 / 8 * angle


@pytest.mark.parametrize("mesh", [circle(64), sphere(32)], ids=["circle", "sphere"])
def test_tokens_that_are_told_nothing_stay(mesh):
    """x ← N(0) has no direction: A = 0 without a residual, to rounding, leaves tokens at rest."""
    density = initial_moebius(mesh, AXES[mesh.centers.shape[1]], 0.5)
    noise = 1e-16 * np.random.default_rng(0).standard_normal(mesh.centers.shape)
    after = LayerMap(mesh, lambda time, density: noise, POST, residual=False)(0.0, density)
    assert np.abs(after - density).max() < 1e-12


def test_the_uniform_density_stays_without_a_residual():
    """A is parallel to x for any β, so that x ← N(A) = x; a sum over the cells of 32 rings turns x by 0.1 % of a
    cell."""
    mesh = sphere(32)
    uniform = initial_uniform(mesh)
    after = LayerMap(mesh, at_centers(mesh, attention(mesh, 4.0)), POST, residual=False)(0.0, uniform)
    assert np.abs(after / uniform - 1).max() < 2e-3


@pytest.mark.parametrize(("name", "pace"), [("cod", 2.0), ("ngpt", 5.0)])
def test_layer_norms_slow_a_layer_down(name, pace):
    """s of CoD at t = 3 is 2, and s of nGPT is |A|/α."""
    layer = LayerMap(circle(16), lambda time, density: density, LayerNorm(name, alpha=0.4), 0.1)
    moved = layer.move(3.0, np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]]))
    assert moved[0, 1] / moved[0, 0] == pytest.approx(0.1 * 2.0 / pace)


def test_the_gate_draws_to_the_origin_on_the_line():
    layer = LayerMap(line(16, 3.0, 1.0), lambda time, density: density, NONE, 0.1, gate=2.0)
    assert layer.move(0.0, np.array([[1.5]]), np.array([[1.0]])) == pytest.approx(np.array([[1.5 + 0.1 * (1 - 3.0)]]))


def test_time_counts_layers_and_observers_look():
    mesh, seen, many = circle(16), [], []
    state = State(0.0, initial_uniform(mesh))
    observers = [
        Observer(lambda s: seen.append(s.time), Every(0.3, 1)),
        Observer(lambda s: many.append(s.time), Every(0.02)),
    ]
    layer = LayerMap(mesh, mean_field(mesh), POST, 0.1)
    run_layers(state, layer, 1.0, observers)
    assert (state.time, state.steps, state.dt) == (1.0, 10, 0.1)
    assert seen == [0.0, 0.3, 0.6, pytest.approx(0.9, abs=1e-15)]
    assert len(many) == 11  # once per layer, though five are due
    assert all(observer.due() > state.time for observer in observers)
    run_layers(state, layer, 2.0, observers, after_step=lambda s: s.time > 1.15)
    assert state.time == pytest.approx(1.2)


def test_many_samples_in_one_layer_are_looked_at_once_and_at_once():
    """10¹⁵ times are due within a layer: counting one by one would take years."""
    mesh, looked = circle(16), []
    layer = LayerMap(mesh, mean_field(mesh), POST, 1.0)
    observer = Observer(lambda state: looked.append(state.time), Every(3.0, 3 * 10**15))
    run_layers(State(0.0, initial_uniform(mesh)), layer, 3.0, [observer])
    assert looked == [0.0, 1.0, 2.0, 3.0]
    assert 0 <= observer.count - (3 * 10**15 + 1) <= 2  # 10⁻¹⁵ apart: up to two lie within rounding of the end


def test_a_layer_that_is_not_finite_leaves_the_state():
    mesh = circle(16)
    state = State(0.0, initial_uniform(mesh))
    layer = LayerMap(mesh, lambda time, density: np.full((16, 2), np.nan if time > 0.15 else 0.0), POST, 0.1)
    with pytest.raises(NonFinite, match=r"at time 0\.2, layer 2: the map is not finite"):
        run_layers(state, layer, 1.0)
    assert state.values == pytest.approx(initial_uniform(mesh))
    assert state.time == 0.2


def test_an_infinite_time_is_refused():
    with pytest.raises(ValueError, match="until = inf"):
        run_layers(State(0.0, np.ones(16)), LayerMap(circle(16), mean_field(circle(16)), POST), np.inf)
