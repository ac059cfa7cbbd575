"""Whole runs: the exact flow at β = 0, rotated problems, identities, long times, number of clusters."""

import numpy as np
import pytest
from support import exact

from meanfield.clusters.on_cells import find_clusters
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.domains.sphere.initial import initial_harmonic, initial_moebius, initial_perturbed, initial_points
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.linear_stability import growth_rates
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS


def run(mesh, density, beta, until, normalization="softmax", noise=0.0, **more):
    state = State(0.0, density)
    law = Velocity(Attention(mesh, beta, normalization))
    return evolve(state, mean_field_equation(mesh, law, noise), STEPPERS["ssprk3"], until, rtol=None, **more)


# --- exact flow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "sizes", "axis", "start", "until", "reach"),
    [
        (circle, (64, 128, 256), [0.35, -0.94], 2 * np.arctanh(0.3), 1.0, 1.9),
        (circle, (128, 256, 512), [0.35, -0.94], 2 * np.arctanh(0.3), 3.0, 1.9),
        (sphere, (32, 64, 128), [0.36, 0.48, 0.8], 0.2, 1.0, 1.9),
        (sphere, (32, 64, 128), [0.36, 0.48, 0.8], 0.2, 2.0, 1.9),
    ],
    ids=["circle", "circle-late", "sphere", "sphere-late"],
)
def test_order_on_the_exact_flow(build, sizes, axis, start, until, reach):
    """β = 0: the density stays the uniform one pushed along its axis. L¹ error."""
    errors = []
    for size in sizes:
        mesh = build(size)
        state = run(mesh, initial_moebius(mesh, axis, start), 0.0, until)
        end = exact.moebius_parameter(mesh.dimension + 1, start, until)
        errors.append(np.abs(state.values - initial_moebius(mesh, axis, end)) @ mesh.volumes)
    observed = exact.orders(errors, sizes)
    assert observed.min() >= reach, f"orders {observed}, errors {errors}"


def test_the_exact_flow_agrees_with_its_printed_values():
    """ORACLES: r(2) from r₀ = 0.3 on S¹, ⟨z⟩ at t = 2 from s₀ = 0.2 on S²."""
    assert np.tanh(exact.moebius_parameter(2, 2 * np.arctanh(0.3), 2.0) / 2) == pytest.approx(0.6497905376, abs=1e-9)
    assert exact.mean_cosine(exact.moebius_parameter(3, 0.2, 2.0)) == pytest.approx(0.4567011910, abs=1e-8)


# --- rotation -------------------------------------------------------------------------------------------

TURN = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]  # orthogonal, unrelated to the rings


def lumpy(mesh, turn):
    """Return a smooth density with harmonics of degree 1 to 3, rotated."""
    x, y, z = turn.T @ mesh.centers.T
    return (1 + 0.3 * x + 0.2 * y * z + 0.2 * x * y * z - 0.2 * (z * z - 1 / 3)) / (4 * np.pi)


def moments(mesh, density, turn):
    """Return ⟨x⟩, ⟨xxᵀ⟩ and ⟨xxx⟩ in the rotated frame, as one vector."""
    x, masses = mesh.centers @ turn, density * mesh.volumes
    second, third = np.einsum("i,ia,ib->ab", masses, x, x), np.einsum("i,ia,ib,ic->abc", masses, x, x, x)
    return np.concatenate([masses @ x, second.ravel(), third.ravel()])


def test_a_rotated_problem_has_the_rotated_answer():
    """The moments agree to second order at β = 4, long enough for the perturbation to grow threefold."""
    sizes, differences = (24, 48, 96), []
    for rings in sizes:
        mesh = sphere(rings)
        found = [moments(mesh, run(mesh, lumpy(mesh, turn), 4.0, 2.0).values, turn) for turn in (np.eye(3), TURN)]
        differences.append(np.abs(found[0] - found[1]).max())
    observed = exact.orders(differences[::2], sizes[::2])
    assert observed[0] > 1.7, f"order {observed[0]:.2f}, differences {differences}"
    assert differences[-1] < 2e-3, f"{differences[-1]:.1e} at 96 rings"


# --- identities -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "sizes"), [(circle, (64, 128, 256)), (sphere, (24, 48, 96))])
def test_energy_grows_by_the_square_of_the_velocity(build, sizes):
    """dE/dt = ∫|X|²dμ for unnormalized attention, E = (1/2β)∬e^{β⟨x,y⟩}ρρ, to second order for a resolved density."""
    errors = []
    for size in sizes:
        mesh = build(size)
        axis = [0.6, -0.8] if mesh.dimension == 1 else [0.36, -0.48, 0.8]
        density = initial_moebius(mesh, axis, 0.5)
        attention = Attention(mesh, 2.0, "unnormalized")
        equation = mean_field_equation(mesh, Velocity(attention))
        equation.prepare(0.0, density)
        rate = np.zeros(mesh.cells)
        equation.terms[0].rate(0.0, rate)
        normalizer, velocity = attention.normalizer_and_output(density)
        gained = np.exp(2.0) * (normalizer * mesh.volumes) @ rate / 2.0  # dE = (1/β) ∫ Z dρ
        speed = (velocity**2).sum(axis=1) @ (density * mesh.volumes)
        errors.append(abs(gained / speed - 1))
    observed = exact.orders(errors[::2], sizes[::2])
    assert observed[0] > 1.7, f"order {observed[0]:.2f}, errors {errors}"
    assert errors[-1] < 1e-3, f"relative error {errors[-1]:.1e}"


@pytest.mark.parametrize(("build", "sizes"), [(circle, (64, 128, 256)), (sphere, (24, 48, 96))])
def test_entropy_grows_as_the_identity_says(build, sizes):
    """dH/dt = Σ_l λ_l p_l > 0 for unnormalized attention, λ_l the linear growth rates, p_l the power of degree l."""
    errors = []
    for size in sizes:
        mesh = build(size)
        density = initial_perturbed(mesh, 0.6, 3, seed=4)
        law = Velocity(Attention(mesh, 2.0, "unnormalized"))
        equation = mean_field_equation(mesh, law)
        equation.prepare(0.0, density)
        rate = np.zeros(mesh.cells)
        equation.terms[0].rate(0.0, rate)
        gained = (np.log(density) * mesh.volumes) @ rate  # dH = ∫ (log ρ + 1) dρ
        degrees = np.arange(13)  # higher degrees contribute less than 1e-9 of the sum of λ_l p_l
        power = diagnostics_round(("power",), mesh, law, degrees=12)(0.0, density)["power"]
        identity = growth_rates(mesh.centers.shape[1], 2.0, degrees, "unnormalized") @ power
        assert gained > 0
        errors.append(abs(gained / identity - 1))
    observed = exact.orders(errors[::2], sizes[::2])
    assert observed[0] > 1.7, f"order {observed[0]:.2f}, errors {errors}"
    assert errors[-1] < 2e-3, f"relative error {errors[-1]:.1e}"


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("mesh", [circle(128), sphere(32)], ids=lambda mesh: mesh.manifold)
def test_tokens_stay_in_their_cone(mesh, normalization):
    """Tokens in an open hemisphere around w never leave their cap, up to a cell's width."""
    random = np.random.default_rng(4)
    pole = np.array([0.6, -0.8] if mesh.dimension == 1 else [0.36, -0.48, 0.8])
    points = random.standard_normal((200, len(pole)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points = points[points @ pole > 0.2]
    density = initial_points(mesh, points)
    height = mesh.centers @ pole
    lowest = []

    def sample_of(state):
        lowest.append(height[state.values * mesh.volumes > 1e-12].min())

    run(mesh, density, 1.0, 3.0, normalization, observers=[Observer(sample_of, Every(3.0, 20))])
    assert min(lowest) > lowest[0] - mesh.width, f"from {lowest[0]:.3f} down to {min(lowest):.3f}"
    assert lowest[-1] > lowest[0] + 0.1


# --- invariants over long times -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mesh", "beta", "steps"),
    [(circle(32), 9.0, 4000), (sphere(8), 4.0, 2000)],
    ids=["circle", "sphere"],
)
def test_mass_and_positivity_over_many_steps(mesh, beta, steps):
    """A run from a random density through collapse and mergers, at small steps, keeps mass and sign."""
    drift, lowest = [], []

    def sample_of(state):
        drift.append(abs(state.values @ mesh.volumes - 1))
        lowest.append(state.values.min())

    state = run(
        mesh,
        initial_perturbed(mesh, 0.5, 6, 1),
        beta,
        1e9,
        cfl=0.05,
        observers=[Observer(sample_of, Every(1.0))],
        after_step=lambda s: s.steps == steps,
    )
    sample_of(state)
    assert state.steps == steps
    assert state.values.max() * mesh.volume > 3, "nothing happened"
    assert max(drift) <= 1e-12, f"mass drift {max(drift):.1e} over {steps} steps to t = {state.time:.0f}"
    assert min(lowest) >= 0


# --- clusters -------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("beta", [5.0, 7.0, 9.0])
def test_number_of_clusters_that_form_is_the_fastest_degree(beta):
    """The median over 20 seeds of the largest cluster count until t = 25, from small random perturbations on the
    circle.

    The largest count is taken since three of four clusters at β = 7 have begun to merge before the last has formed.
    """
    mesh, most = circle(256), []
    for seed in range(20):
        counts = []
        observer = Observer(lambda s, counts=counts: counts.append(find_clusters(mesh, s.values).count), Every(1.0))
        run(mesh, initial_perturbed(mesh, 1e-3, 12, seed), beta, 25.0, observers=[observer])
        most.append(max(counts))
    fastest = 1 + np.argmax([exact.growth_rate(2, beta, degree) for degree in range(1, 20)])
    assert np.median(most) == fastest, f"clusters {sorted(most)}"


def test_a_harmonic_keeps_its_symmetry():
    """The mode grows with its own period only, to l clusters of equal mass."""
    mesh = circle(240)
    clusters = find_clusters(mesh, run(mesh, initial_harmonic(mesh, 4, 0, 1e-2), 9.0, 15.0).values)
    assert clusters.count == 4
    assert clusters.masses == pytest.approx([0.25] * 4, abs=1e-9)


def test_pattern_of_the_mesh_is_not_seen_in_clusters():
    """The position of the first cluster of many random densities on the sphere prefers neither axis nor rings."""
    mesh, height = sphere(24), []
    for seed in range(24):
        state = run(mesh, initial_perturbed(mesh, 1e-2, 3, seed), 2.0, 12.0)
        height.append(abs(find_clusters(mesh, state.values).centers[0, 2]))
    mean = np.mean(height)  # |z| of a uniform direction is uniform on [0, 1]: ½ ± 0.289/√24
    assert abs(mean - 0.5) < 3 * 0.289 / np.sqrt(24), f"mean |z| {mean:.3f}"
