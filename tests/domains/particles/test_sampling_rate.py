"""Convergence of tokens drawn from a density at the rate of the law of large numbers, also while both are moved.

In two dimensions the mean of W₁ between a distribution and n tokens drawn from it falls as (log n / n)^{1/2} (Ajtai,
Komlós, Tusnády 1984), that is with a slope of −0.43 to −0.46 of log W₁ against log n for these n. Patches omit the
finest scales, which cause the logarithm, so that the slope is between that and −½.
"""

import numpy as np
import pytest

from meanfield.analysis.measure import CELL_EXTENT, PointMeasure, atoms
from meanfield.analysis.wasserstein import wasserstein
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

BETA, SUPPORTS = 2.0, 300
SLOPE = (-0.58, -0.42)


def relative(x):
    """Return a smooth density relative to the uniform one, at most 2.1, with no symmetry but that of its quadratic
    part."""
    return 1 + 0.6 * x[:, 2] + 0.8 * x[:, 0] * x[:, 1]


def tokens(n, seed):
    """Return n independent tokens with that density, by rejection."""
    rng, found = np.random.default_rng(seed), np.empty((0, 3))
    while len(found) < n:
        x = rng.standard_normal((3 * n, 3))
        x /= np.linalg.norm(x, axis=1)[:, None]
        found = np.concatenate([found, x[rng.uniform(0, 2.1, len(x)) < relative(x)]])
    return found[:n]


def law_of(mesh, density):
    return PointMeasure(
        "S2", mesh.centers, density * mesh.volumes, CELL_EXTENT * np.sqrt(mesh.volumes), mesh.ring_cells
    )


def drawn(mesh):
    density = relative(mesh.centers)
    return density / (density @ mesh.volumes)


def moved(x, until, steps):
    """Return tokens moved by softmax attention to ``until``: the classical Runge–Kutta method, projected to the
    sphere."""
    law, dt = ParticleVelocity(BETA), until / steps

    def rate(y):
        y = y / np.linalg.norm(y, axis=1)[:, None]
        return law.rates(0.0, y, np.ones(len(y)))[0]

    for _ in range(steps):
        k1 = rate(x)
        k2 = rate(x + dt / 2 * k1)
        k3 = rate(x + dt / 2 * k2)
        k4 = rate(x + dt * k3)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x /= np.linalg.norm(x, axis=1)[:, None]
    return x


def slope(counts, distances):
    return np.polyfit(np.log(counts), np.log(distances), 1)[0]


def test_tokens_drawn_from_a_density():
    """10³ to 10⁵ tokens, eight seeds each: single distances scatter by a fifth, their means by less than a tenth."""
    mesh = sphere(64)
    density, counts = law_of(mesh, drawn(mesh)), (1000, 10_000, 100_000)
    means = [
        np.mean([wasserstein(atoms("S2", tokens(n, seed)), density, 1, SUPPORTS).value for seed in range(8)])
        for n in counts
    ]
    assert SLOPE[0] < slope(counts, means) < SLOPE[1], f"slope {slope(counts, means):.3f}, W₁ {means}"
    constants = means / np.sqrt(np.log(counts) / counts)
    assert 0.9 < constants.min() < constants.max() < 1.4, constants


def test_tokens_and_density_moved_by_attention():
    """The density at t = 1 is up to 2.4 times the uniform one, and the mesh error is less than a tenth of W₁."""
    moved_densities = {}
    for rings in (32, 64):
        mesh = sphere(rings)
        equation = mean_field_equation(mesh, Velocity(Attention(mesh, BETA)))
        state = evolve(State(0.0, drawn(mesh)), equation, STEPPERS["ssprk3"], 1.0, rtol=None)
        moved_densities[rings] = law_of(mesh, state.values)
    counts, seeds = (1000, 3000, 9000), (8, 8, 6)
    means = [
        np.mean(
            [
                wasserstein(atoms("S2", moved(tokens(n, k), 1.0, 4)), moved_densities[64], 1, SUPPORTS).value
                for k in range(m)
            ]
        )
        for n, m in zip(counts, seeds, strict=True)
    ]
    assert SLOPE[0] < slope(counts, means) < SLOPE[1], f"slope {slope(counts, means):.3f}, W₁ {means}"
    assert wasserstein(moved_densities[32], moved_densities[64], 1, SUPPORTS).value < 0.1 * means[-1]


def test_steps_of_the_tokens_are_small_enough():
    x = tokens(200, 0)
    assert np.abs(moved(x, 1.0, 4) - moved(x, 1.0, 8)).max() == pytest.approx(0, abs=1e-4)  # a hundredth of W₁
