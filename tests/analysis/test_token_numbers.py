"""Parts of the study of tokens at several n: prediction, distances, statistics over seeds, and cases."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.analysis.measure import atoms, measure_of
from meanfield.analysis.token_numbers.cases import density_case, of_seed, token_case
from meanfield.analysis.token_numbers.density import DensityRun
from meanfield.analysis.token_numbers.distances import Distances
from meanfield.analysis.token_numbers.predicted import observable_values, predicted_variance, refusal_of_prediction
from meanfield.analysis.token_numbers.statistics import (
    exponent_of_deviations,
    exponent_of_means,
    first_above,
    mean_half_width,
    mean_ratio,
    variance_interval,
)
from meanfield.analysis.wasserstein import wasserstein
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.domains.sphere.initial_density import angles
from meanfield.running import run_in_memory
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.gauss_grid import GaussGrid


def round_case(manifold="circle", end=0.5, **changes):
    d = {"circle": 2, "sphere": 3}[manifold]
    center = [1.0, *(0.0,) * (d - 1)]
    sections = {
        "domain": {"manifold": manifold, "resolution": 128 if d == 2 else 48},
        "attention": {"beta": 4.0},
        "initial": {"kind": "von_mises_fisher", "components": [{"center": center, "concentration": 0.7}]},
        "time": {"end": end},
    }
    return mf.load_case(sections, {key.replace("__", "."): value for key, value in changes.items()})


def influence_of_masses(points, beta, normalization, end, observables):
    """Return the derivatives (m, n) of Σ_i m_i φ(x_i(t)) by the mass m_j of each token that begins at ``points``.

    The tokens have the masses of the von Mises–Fisher density with concentration 0.7, normalized by quadrature.
    """
    start, n = points.centers, points.cells
    masses = np.exp(0.7 * start[:, 0]) * points.volumes
    masses /= masses.sum()

    def mean(weights):
        def rate(_, flat):
            x = flat.reshape(start.shape)
            kernel = np.exp(beta * (x @ x.T)) * weights
            output = kernel @ x / (kernel.sum(axis=1, keepdims=True) if normalization == "softmax" else 1)
            return (output - (output * x).sum(axis=1, keepdims=True) * x).ravel()

        found = solve_ivp(rate, (0, end), start.ravel(), "DOP853", [end], rtol=1e-9, atol=1e-11)
        return weights @ observables(found.y[:, 0].reshape(start.shape))

    step = 1e-4
    changes = step * np.eye(n)
    return masses, np.array([(mean(masses + one) - mean(masses - one)) / (2 * step) for one in changes]).T


@pytest.mark.parametrize(
    ("manifold", "points", "beta", "normalization"),
    [
        ("circle", circle(32), 0.0, "softmax"),
        ("circle", circle(48), 4.0, "softmax"),
        ("circle", circle(48), 4.0, "unnormalized"),
        ("sphere", GaussGrid(7), 2.0, "softmax"),
    ],
)
def test_prediction_agrees_with_derivatives_of_runs_of_weighted_tokens(manifold, points, beta, normalization):
    """∫ψ²ρ₀ − (∫ψρ₀)² with the derivative ψ of an observable by the mass of a token, by finite differences."""
    end = 0.5 if normalization == "softmax" else 0.02
    masses, influence = influence_of_masses(points, beta, normalization, end, lambda x: x[:, :2])
    expected = influence**2 @ masses - (influence @ masses) ** 2
    case = round_case(manifold, end, attention__beta=beta, attention__normalization=normalization)
    found = predicted_variance(density_case(case, 1), 1, ("x", "y"))[-1]
    assert found == pytest.approx(expected, rel=3e-3)  # the finite volumes are of second order in the cell width


def test_prediction_holds_for_tokens_on_a_larger_sphere_and_scaled_value():
    """Tokens on a sphere of radius g with β/g² and noise κg², and time over v, have the same fluctuations."""
    plain = density_case(round_case(end=0.4, stabilizers__noise=0.05), 1)
    scaled = plain.replace(
        {"stabilizers.scale": 2.0, "attention.beta": 1.0, "attention.value": [[2.0, 0.0], [0.0, 2.0]], "time.end": 0.2}
        | {"stabilizers.noise": 0.4}
    )
    observables = ("x", "cos(2*phi)")
    assert predicted_variance(scaled, 1, observables) == pytest.approx(
        predicted_variance(plain, 1, observables), rel=1e-4
    )


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(("manifold", "axis"), [("circle", "y"), ("sphere", "z")])
def test_predictions_about_an_axis_are_those_on_the_circle_and_the_sphere(manifold, axis, normalization):
    """Both sides are computed independently: by polar angles, and by harmonics."""
    d = {"circle": 2, "sphere": 3}[manifold]

    def prediction(domain, sign, observable):
        parts = [{"center": sign(1.0), "concentration": 1.5}, {"center": sign(-1.0), "concentration": 3.0, "mass": 0.4}]
        changes = {
            "domain": domain,
            "initial": {"kind": "von_mises_fisher", "components": parts},
            "attention.normalization": normalization,
            "stabilizers.noise": 0.1,
        }
        end = 0.4 if normalization == "softmax" else 0.04
        case = round_case(manifold, end).replace(changes)
        return predicted_variance(density_case(case, 2), 2, (observable, f"{observable}**2"))

    axial = {"manifold": "axisymmetric", "dimension": d, "resolution": 128}
    found = prediction(axial, lambda cosine: [cosine], "z")
    expected = prediction(round_case(manifold).domain, lambda cosine: [*(0.0,) * (d - 1), cosine], axis)
    assert found == pytest.approx(expected, rel=3e-3)  # both are of second order in the cell width


@pytest.mark.parametrize("mesh", [circle(16), sphere(8)], ids=lambda mesh: mesh.manifold)
def test_coordinates_of_observables_are_those_of_initial_densities(mesh):
    expected = angles(mesh)
    found = observable_values(list(expected), mesh.centers, list(expected))
    np.testing.assert_allclose(found, list(expected.values()), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention.normalization": "sinkhorn"}, "sinkhorn"),
        ({"attention.query": [[1.0, 0.0], [0.0, 2.0]]}, "multiples of the identity"),
        ({"stabilizers.layer_norm": "ngpt"}, "layer_norm"),
        ({"attention.mask": "causal", "domain.labels": 4}, "causal"),
    ],
)
def test_prediction_is_refused_where_it_does_not_hold(changes, words):
    assert words in refusal_of_prediction(round_case().replace(changes))
    assert not refusal_of_prediction(round_case())


def test_cases_of_tokens_have_the_physics_of_the_density():
    case = round_case(stabilizers__noise=0.1)
    density = density_case(case, 4)
    tokens = token_case(density, 32, 4)
    assert (tokens.domain.count, tokens.domain.d, tokens.initial.sampling) == (32, 2, "random")
    assert (tokens.attention, tokens.stabilizers, tokens.time.end) == (case.attention, case.stabilizers, case.time.end)
    assert of_seed(tokens, 7).domain.seed == 7
    assert run_in_memory(tokens).diagnostics["position"].shape == (5, 32, 2)


def test_a_case_of_particles_has_the_density_of_its_tokens():
    particles = token_case(density_case(round_case("sphere"), 2), 16, 2)
    density = density_case(particles, 3)
    assert density.domain.space == "S2"
    assert (density.attention, density.initial) == (particles.attention, particles.initial)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("line", "domain.manifold"),
        ("points", "initial.kind"),
        ("many", "domain.dimension"),
        ("off", "centers at the poles"),
    ],
)
def test_cases_without_density_or_tokens_are_refused(name, words):
    cases = {
        "line": lambda: mf.load_case("gate_line"),
        "points": lambda: round_case().replace({"initial": {"kind": "points", "points": [[1.0, 0.0]]}}),
        "many": lambda: mf.load_case("tokens_pair").replace(
            {"domain": {"manifold": "particles", "dimension": 5, "count": 8}, "initial": {"kind": "uniform"}}
        ),
        "off": lambda: mf.load_case(
            {
                "domain": {"manifold": "axisymmetric", "resolution": 64, "dimension": 5},
                "attention": {"beta": 1.0},
                "initial": {"kind": "von_mises_fisher", "components": [{"center": [0.5], "concentration": 2.0}]},
                "time": {"end": 1.0},
            }
        ),
    }
    with pytest.raises(mf.CaseError, match=words):
        token_case(density_case(cases[name](), 2), 8, 2)


def test_distance_on_the_circle_is_that_of_compare():
    run = run_in_memory(density_case(round_case(), 2))
    tokens = np.stack([tokens_uniform(50, 2, seed) for seed in range(3)])
    for order in (1, 2):
        found = Distances(run, order)(tokens)
        expected = [wasserstein(measure_of(run, k), atoms("S1", tokens[k]), order).value for k in range(3)]
        assert found == pytest.approx(expected, rel=1e-12)


def test_distance_on_the_sphere_is_below_that_of_compare_and_vanishes_for_the_density_itself():
    run = run_in_memory(density_case(round_case("sphere", domain__resolution=24), 1))
    tokens = np.stack([tokens_uniform(100, 3, seed) for seed in range(2)])
    for k, found in enumerate(Distances(run, 1)(tokens)):
        full = wasserstein(measure_of(run, k), atoms("S2", tokens[k]))
        assert 0.2 * full.value < found < full.value + full.error
    many = np.repeat(run.cell_centers, np.round(run.density(0) * run.cell_areas * 1e5).astype(int), axis=0)
    assert Distances(run, 1)(many[None].repeat(2, axis=0))[0] < 1e-3


def test_polar_angles_of_tokens_are_compared_about_the_axis():
    case = mf.load_case(
        {
            "domain": {"manifold": "axisymmetric", "resolution": 128, "dimension": 5},
            "attention": {"beta": 1.0},
            "initial": {"kind": "von_mises_fisher", "components": [{"center": [-1.0], "concentration": 8.0}]},
            "time": {"end": 0.5},
        }
    )
    density = density_case(case, 2)
    run = DensityRun(density, 1)
    tokens = run_in_memory(token_case(density, 4000, 2)).diagnostics["position"]
    assert run.distances(tokens).max() < 0.02
    assert tokens[..., -1].mean(axis=1) == pytest.approx(run.moments(("z",))[:, 0], abs=0.02)


def test_a_density_far_from_uniform_has_no_rate_where_uniform_masses_underflow():
    case = mf.load_case("collapse_high_dimension", {"domain.resolution": 64, "time.end": 0.01})
    assert np.isnan(DensityRun(density_case(case, 1), 1).rate)
    uniform = case.replace({"initial": {"kind": "uniform"}})
    assert DensityRun(density_case(uniform, 1), 1).rate == pytest.approx(mf.stability(uniform).rates.max())


def test_exponents_of_synthetic_seeds_are_recovered_within_their_intervals():
    n, random = np.array([100, 400, 1600]), np.random.default_rng(0)
    values = random.gamma(9.0, size=(3, 400)) * n[:, None] ** -0.5
    means = exponent_of_means(n, values)
    normal = random.standard_normal((3, 400, 1)) * n[:, None, None] ** -0.5
    deviations = exponent_of_deviations(n, normal)
    for found in (means, deviations):
        assert abs(found.value + 0.5) < 2 * found.half_width < 0.1
    assert deviations.half_width == pytest.approx(1.96 / math.sqrt(800) / math.log(4) / math.sqrt(2), rel=0.2)
    ratio = mean_ratio(normal * np.sqrt(n)[:, None, None])
    assert abs(ratio.value - 1) < 2 * ratio.half_width < 0.3


def test_intervals_cover_the_truth_in_95_percent_of_draws():
    random = np.random.default_rng(1)
    draws = random.standard_normal((4000, 6))
    low, high = variance_interval(draws.var(axis=1, ddof=1), 6)
    assert np.mean((low < 1) & (high > 1)) == pytest.approx(0.95, abs=0.01)
    assert np.mean(np.abs(draws.mean(axis=1)) < mean_half_width(draws, axis=1)) == pytest.approx(0.95, abs=0.01)


def test_first_time_above_a_level_is_interpolated():
    times = np.array([0.0, 1.0, 2.0])
    assert first_above(times, np.array([0.0, 1.0, 3.0]), 2.0) == 1.5
    assert first_above(times, np.array([3.0, 1.0, 0.0]), 2.0) == 0.0
    assert first_above(times, np.array([0.0, 1.0, 2.0]), 2.0) == np.inf
