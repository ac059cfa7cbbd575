"""Modes of kernel densities: constructed sets, and random tokens on the circle."""

import numpy as np
import pytest

from meanfield.case.load import load
from meanfield.clusters.modes import count_modes
from meanfield.domains.particles.initial import tokens_equiangular, tokens_uniform
from meanfield.model.linear_stability import expected_clusters_from_tokens
from meanfield.simulation import set_up


@pytest.mark.parametrize("beta", [10.0, 60.0])
def test_random_tokens_on_the_circle_have_the_expected_modes(beta):
    """The mean of 80 draws is within 4 standard errors of √(Σk⁴I_k²/Σk²I_k²) ≈ √(3β/2), the value for many tokens."""
    counts = np.array([count_modes(tokens_uniform(2000, 2, seed), np.full(2000, 1 / 2000), beta) for seed in range(80)])
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    assert error < 0.15
    assert abs(counts.mean() - expected_clusters_from_tokens(beta)) < 4 * error


@pytest.mark.parametrize("dimension", [2, 3, 64, 384])
@pytest.mark.parametrize(("beta", "expected"), [(4.0, 1), (20.0, 2), (100.0, 2)])
def test_two_tokens_have_two_modes_where_they_are_over_two_bandwidths_apart(dimension, beta, expected):
    """Two points 0.6 rad apart are 1.2, 2.7 and 6 bandwidths apart; they have two modes from 2.4 bandwidths on."""
    points = np.zeros((8, dimension))
    points[:, 0], points[:, 1] = np.cos(0.3), np.where(np.arange(8) % 2, 1, -1) * np.sin(0.3)
    assert count_modes(points, np.full(8, 1 / 8), beta) == expected


@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_a_light_token_has_a_mode(dimension):
    """The height is 1e-5 of the highest, far above the rounding of a transform, which LOST excludes."""
    points = np.stack([np.eye(dimension)[0], -np.eye(dimension)[0]])
    assert count_modes(points, np.array([1 - 1e-5, 1e-5]), 10.0) == 2


@pytest.mark.parametrize("dimension", [64, 384])
def test_orthogonal_tokens_have_a_mode_each(dimension):
    assert count_modes(tokens_equiangular(16, dimension), np.full(16, 1 / 16), 9.0) == 16


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_a_ring_without_modes(beta):
    angles = 2 * np.pi * np.arange(512) / 512
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert count_modes(ring, np.full(512, 1 / 512), beta) == 0
    assert count_modes(ring[:100], np.full(100, 0.01), beta) == 1


def test_tokens_without_a_mean_have_no_mode_at_beta_0():
    """f is constant; with a mean the limit β → 0 has one mode, in the direction of the mean."""
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    assert count_modes(axes, np.full(6, 1 / 6), 0.0) == 0
    assert count_modes(axes[:3], np.full(3, 1 / 3), 0.0) == 1


def test_the_file_names_the_bandwidth():
    case = load("tokens_causal", ["attention.beta=4", 'output.diagnostics=["modes", "clusters"]'])
    columns = set_up(case).diagnostics(case.output.diagnostics, None).columns
    assert dict(columns[0].attributes) == {"bandwidth": 0.5}
    assert dict(columns[1].attributes) == {"scale": 0.25}
