"""Distributions of the polar angle θ on S^{d−1}: axisymmetric densities p(θ) per radian with Σ p_i Δθ_i = 1.

The uniform density has p̄ ∝ sin^{d−2} θ, for d = 4096 as small as 10^{−9000} next to the poles. Logarithms of the cell
masses avoid underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss

from ..mesh.mesh import Floats, Mesh

_NODES = 32  # of the Gauss–Legendre rule in each cell


def log_masses(
    mesh: Mesh, dimension: int, log_relative: Callable[[Floats], Floats | float] = lambda theta: 0.0
) -> Floats:
    """Return the logarithms (cells,) of the cell masses of p(θ) ∝ p̄(θ) e^{log_relative(θ)}, normalized to sum 1.

    p̄ ∝ sin^{d−2} θ is the distribution of the polar angle under the uniform density on S^{d−1}, d = ``dimension``. The
    logarithm is −∞ for cells without mass.

    mesh           polar angles, from 0 to π
    log_relative   a function of θ of any shape, log of the density with respect to the uniform one
    """
    node, weight = leggauss(_NODES)
    theta = mesh.centers + 0.5 * mesh.volumes[:, None] * node
    logs = (dimension - 2) * np.log(np.sin(theta)) + log_relative(theta) + np.log(weight * 0.5 * mesh.volumes[:, None])
    masses = _log_sum(logs)
    return masses - _log_sum(masses[None])


def log_area(dimension: int) -> float:
    """Return the logarithm of the area |S^{d−1}| = 2π^{d/2}/Γ(d/2), d = ``dimension``.

    For large d the area itself would underflow.
    """
    return math.log(2.0) + dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2)


def uniform_distribution(mesh: Mesh, dimension: int) -> Floats:
    """Return the cell averages (cells,) of the distribution p̄ ∝ sin^{d−2} θ of the polar angle θ, per radian.

    p̄ belongs to the uniform density on S^{d−1}, d = ``dimension``. Averages that underflow are 0.
    """
    return np.asarray(np.exp(log_masses(mesh, dimension) - np.log(mesh.volumes)))


def _log_sum(logs: Floats) -> Floats:
    """Return log Σ e^{logs} over the last axis, without overflow; −∞ if all ``logs`` are −∞."""
    top = np.maximum(logs.max(axis=-1), np.finfo(float).min)  # not −∞, where every term vanishes
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))
