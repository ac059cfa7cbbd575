"""Tokens from the section [initial] of a case: positions (n, d) and masses (n,)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.domains.particles import initial as particles
from meanfield.domains.particles.sampling import sample_tokens
from meanfield.domains.sphere.embeddings import embeddings_of
from meanfield.sections import initial as sections
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats


def draw_tokens(
    initial: sections.InitialKind, count: int, dimension: int, seed: int = 0, *, normalized: bool = True
) -> tuple[Floats, Floats]:
    """Return positions (n, d) and masses (n,) of tokens, ``count`` of them drawn from an initial density by ``seed``.

    ``initial.sampling`` selects random tokens or tokens of low discrepancy. The masses have the sum 1. Positions are
    directions times ``initial.radius`` (1 by default), except for a Gaussian and waves, which define positions. If
    ``normalized`` is false and no radius is given, points and tokens of a file keep their lengths. All points, and all
    tokens of a file, are returned, regardless of ``count``. Raises ValueError for an invalid file, OSError for a
    missing file.
    """
    kind, masses = type(initial), None
    if isinstance(initial, sections.Points | sections.Tokens):
        positions, masses = _points_of(initial, dimension)
    elif kind in USER_TOKENS:
        positions = USER_TOKENS[kind](initial, count, dimension, seed)
    elif isinstance(initial, sections.SampledDensity) and initial.sampling != "random":
        positions = sample_tokens(initial, count, dimension, seed)
    else:
        positions = _TOKENS[kind](initial, count, dimension, seed)
    if kind not in _TOKENS and (normalized or initial.radius is not None):
        positions = unit_vectors(positions)
    weights = np.ones(len(positions)) if masses is None else np.array(masses)
    return (initial.radius or 1.0) * positions, weights / weights.sum()


def _points_of(kind: sections.Points | sections.Tokens, dimension: int) -> tuple[Floats, tuple[float, ...] | None]:
    """Return the points (k, d) that a section [initial] or its file gives, and their masses; masses None are equal."""
    if isinstance(kind, sections.Points):
        return np.array(kind.points, dtype=float), kind.masses
    return embeddings_of(kind, dimension), None


def _von_mises_fisher(kind: sections.VonMisesFisher, count: int, dimension: int, seed: int) -> Floats:
    """Return tokens (count, d) drawn from von Mises–Fisher densities."""
    return particles.tokens_von_mises_fisher(count, *kind.columns, seed)


USER_TOKENS: dict[type, Callable[[Any, int, int, int], Floats]] = {}  # of components: section, n, d, seed → positions
_TOKENS: dict[type, Callable[[Any, int, int, int], Floats]] = {
    sections.Uniform: lambda kind, n, d, seed: particles.tokens_uniform(n, d, seed),
    sections.Perturbed: lambda kind, n, d, seed: particles.tokens_perturbed(
        n, d, kind.amplitude, kind.degrees, kind.seed, seed
    ),
    sections.Harmonic: lambda kind, n, d, seed: particles.tokens_harmonic(
        n, d, kind.degree, kind.order, kind.amplitude, seed
    ),
    sections.VonMisesFisher: _von_mises_fisher,
    sections.Moebius: lambda kind, n, d, seed: particles.tokens_moebius(n, kind.axis, kind.parameter, seed),
    sections.Gaussian: lambda kind, n, d, seed: particles.tokens_gaussian(n, d, kind.mean, kind.variance, seed),
    sections.Equiangular: lambda kind, n, d, seed: particles.tokens_equiangular(n, d, kind.cosine),
    sections.Waves: lambda kind, n, d, seed: particles.tokens_waves(
        n, kind.mean, kind.amplitude, kind.modes, kind.seed
    ),
}
