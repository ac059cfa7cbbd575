"""Central-limit variance of observables against exact solutions."""

import numpy as np
import pytest
from scipy.special import ive

from meanfield.analysis.token_numbers.central_limit import LinearizedFlow, central_limit_variance
from meanfield.analysis.token_numbers.zonal_limit import ZonalFlow
from meanfield.model.linear_stability import growth_rates
from solvers.mesh.interval import polar
from solvers.mesh.mesh import circle
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.gegenbauer import gegenbauer
from solvers.transforms.polar import uniform_distribution

POINTS = {"circle": circle(64), "sphere": GaussGrid(16)}
BOTH = pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])


def first_two_degrees(points):
    """Return the observables ⟨x, e⟩ and ⟨x, e⟩² − ⟨x, e'⟩², of degrees 1 and 2."""
    x, y = points.centers[:, 0], points.centers[:, 1]
    return np.stack([x, x * x - y * y])


def growth_of_variance(d, beta, l, normalization, noise, times):
    """Return V(t)/V(0) (times, degrees) of dV/dt = 2λV + 2κ l(l + d − 2)V(0) about the uniform density."""
    rates, times = growth_rates(d, beta, l, normalization, noise), np.asarray(times)[:, None]
    growth = np.exp(2 * rates * times)
    safe = np.where(rates == 0, 1.0, rates)
    return growth + np.where(rates == 0, times, (growth - 1) / (2 * safe)) * 2 * noise * l * (l + d - 2)


@pytest.mark.parametrize("beta", [0.0, 4.0])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@BOTH
@pytest.mark.parametrize("name", POINTS)
def test_uniform_density_has_growth_of_each_degree_and_noise(name, normalization, noise, beta):
    points, end, steps = POINTS[name], 0.2, 40
    l, d = np.array([1, 2]), points.centers.shape[1]
    flow = LinearizedFlow(points, beta, normalization, noise=noise)
    density = np.full((2 * steps + 1, points.cells), 1 / points.volumes.sum())
    observables = first_two_degrees(points)
    found = central_limit_variance(flow, density, end / steps, observables, [0, steps // 2, steps])
    exact = growth_of_variance(d, beta, l, normalization, noise, [0, end / 2, end])
    start = observables**2 @ points.volumes / points.volumes.sum()
    assert np.abs(found / (start * exact) - 1).max() < 2e-4  # error of a step: (λ dt)⁴


@pytest.mark.parametrize(("d", "beta", "noise"), [(2, 4.0, 0.1), (3, 0.0, 0.0), (8, -2.0, 0.1), (64, 4.0, 0.01)])
@BOTH
def test_uniform_density_about_an_axis_converges_to_that_growth(normalization, noise, beta, d):
    """Cells and steps are refined together: the errors are of second order in both."""
    end, l = 0.2, np.array([1, 2])
    errors = []
    for cells, steps in ((32, 10), (64, 20)):
        mesh = polar(cells, d)
        flow, density = ZonalFlow(mesh, d, beta, normalization, noise=noise), uniform_distribution(mesh, d)
        observables = gegenbauer(d, mesh.centers[:, 0], 2)[1:]
        found = central_limit_variance(flow, np.tile(density, (2 * steps + 1, 1)), end / steps, observables, [0, steps])
        errors.append(np.abs(found / growth_of_variance(d, beta, l, normalization, noise, [0, end]) - 1).max())
    assert errors[1] < 0.02
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)


def test_noise_alone_gives_independent_brownian_tokens():
    """n Var cos φ = ½(1 + c₂e^{−4κt}) − (c₁e^{−κt})² on the circle, with the moments c of the von Mises density."""
    points, noise, end, steps, c = POINTS["circle"], 0.7, 0.5, 800, 2.0
    l, harmonics = np.array([1, 2]), ive([1, 2], c) / ive(0, c)
    times = np.arange(2 * steps + 1) * (end / steps / 2)
    angle = np.arctan2(points.centers[:, 1], points.centers[:, 0])
    decay = np.exp(-noise * times[:, None] * np.arange(40) ** 2) * ive(np.arange(40), c) / ive(0, c)
    density = (decay * np.where(np.arange(40) == 0, 1, 2)) @ np.cos(np.outer(np.arange(40), angle)) / (2 * np.pi)
    flow = LinearizedFlow(points, 3.0, value=0.0, noise=noise)
    found = central_limit_variance(flow, density, end / steps, points.centers[:, :1].T, [steps])
    first, second = harmonics * np.exp(-noise * end * l**2)
    assert found[0, 0] == pytest.approx(0.5 * (1 + second) - first**2, rel=1e-6)
