"""Central-limit variance of observables against exact solutions."""

import numpy as np
import pytest
from scipy.special import ive

from meanfield.analysis.token_numbers.central_limit import LinearizedFlow, central_limit_variance
from meanfield.model.linear_stability import growth_rates
from solvers.mesh.mesh import circle
from solvers.transforms.gauss_grid import GaussGrid

POINTS = {"circle": circle(64), "sphere": GaussGrid(16)}
BOTH = pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])


def first_two_degrees(points):
    """Return the observables ⟨x, e⟩ and ⟨x, e⟩² − ⟨x, e'⟩², of degrees 1 and 2."""
    x, y = points.centers[:, 0], points.centers[:, 1]
    return np.stack([x, x * x - y * y])


@pytest.mark.parametrize("beta", [0.0, 4.0])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@BOTH
@pytest.mark.parametrize("name", POINTS)
def test_uniform_density_has_growth_of_each_degree_and_noise(name, normalization, noise, beta):
    """n Var of degree l obeys dV/dt = 2λV + 2κ l(l + d − 2)V₀ with its growth rate λ, noise included."""
    points, end, steps = POINTS[name], 0.2, 40
    l, d = np.array([1, 2]), points.centers.shape[1]
    flow = LinearizedFlow(points, beta, normalization, noise=noise)
    density = np.full((2 * steps + 1, points.cells), 1 / points.volumes.sum())
    observables = first_two_degrees(points)
    found = central_limit_variance(flow, density, end / steps, observables, [0, steps // 2, steps])
    rates, times = growth_rates(d, beta, l, normalization, noise), np.array([0, 0.5, 1])[:, None] * end
    growth = np.exp(2 * rates * times)
    safe = np.where(rates == 0, 1.0, rates)
    spread = np.where(rates == 0, times, (growth - 1) / (2 * safe)) * 2 * noise * l * (l + d - 2)
    start = observables**2 @ points.volumes / points.volumes.sum()
    assert np.abs(found / (start * (growth + spread)) - 1).max() < 2e-4  # error of a step: (λ dt)⁴


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
