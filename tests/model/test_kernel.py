"""Kernels outside the table: densities and tokens attend as dense sums over all pairs."""

import numpy as np
import pytest

from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.model.attention import Attention
from meanfield.model.errors import ArgumentError
from meanfield.model.kernel import KERNELS, Kernel, kernel_of
from meanfield.model.zonal_multipliers import check_zonal
from solvers.mesh.mesh import circle, sphere

HALF = Kernel("half", zonal=lambda z, beta, window: np.exp(beta * z - abs(beta)) * (1 + z) / 2)
FACTOR = Kernel("factor", log_factor=lambda beta, squares: -abs(beta) * squares)


def dense(beta, points, masses):
    cosines = points @ points.T
    kernel = np.exp(beta * cosines) * (1 + cosines) / 2 * masses
    return kernel @ points / kernel.sum(axis=1)[:, None]


@pytest.mark.parametrize("mesh", [circle(64), sphere(48)], ids=["circle", "sphere"])
def test_a_kernel_of_the_cosine_that_no_table_knows(mesh):
    density = initial_perturbed(mesh, 0.5, 2)
    found = Attention(mesh, 2.0, kernel=HALF, include_radial=True).output(density)
    exact = dense(2.0, mesh.centers, density * mesh.volumes)
    assert np.abs(found - exact).max() < (1e-13 if mesh.dimension == 1 else 2e-4)  # cells of a sphere: O(h²)
    tokens = mesh.centers[::7]
    output = ParticleVelocity(2.0, kernel=HALF).output_at(tokens)
    assert np.abs(output - dense(2.0, tokens, np.full(len(tokens), 1.0))).max() < 1e-13


def test_a_factor_that_no_table_knows():
    """f(x) = e^{−β} for all unit vectors x, which softmax cancels."""
    tokens = sphere(12).centers
    exponential = ParticleVelocity(3.0).output_at(tokens)
    assert np.abs(ParticleVelocity(3.0, kernel=FACTOR).output_at(tokens) - exponential).max() < 1e-13


def test_windows_whose_edge_no_thousand_degrees_carry_are_refused():
    """The truncated part of the kernel is 4e-6 at 0.05 and 2e-7 at 0.06, of the largest multiplier."""
    check_zonal(3, kernel_of("windowed", 0.06), 1.0)
    check_zonal(2, kernel_of("windowed", 0.02), 1.0)  # exact values at the cells
    with pytest.raises(ArgumentError, match=r"window = 0\.05: expected at least 0\.06 on the sphere"):
        check_zonal(3, kernel_of("windowed", 0.05), 1.0)


def test_kernels_are_chosen_by_name_and_window():
    assert kernel_of("windowed", 0.5).window == 0.5
    assert kernel_of("gaussian") is KERNELS["gaussian"]
    with pytest.raises(ArgumentError, match="kernel = 'gausian': expected one of exponential, gaussian, windowed"):
        kernel_of("gausian")
    with pytest.raises(ArgumentError, match="window = None: expected an angle"):
        kernel_of("windowed")
