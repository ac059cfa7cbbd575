"""Tokens from the section [initial] of a case: positions (n, d) and masses (n,)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.domains.particles import initial as particles
from meanfield.domains.particles.sampling import sample_tokens
from meanfield.domains.sphere.embeddings import embeddings_of
from meanfield.sections import initial as sections
from meanfield.sections.section import tag_of
from solvers.mesh.mesh import Floats


def draw_tokens(
    initial: sections.InitialKind, count: int, dimension: int, seed: int = 0, *, normalized: bool = True
) -> tuple[Floats, Floats]:
    """Return positions (n, d) and masses (n,) of tokens, ``count`` of them drawn from an initial density by ``seed``.

    ``initial.sampling`` selects random tokens or tokens of low discrepancy. The masses have the sum 1. Positions are
    directions times ``initial.radius`` (1 by default), except for a Gaussian and waves, which define positions. If
    ``normalized`` is false and no radius is given, points and tokens of a file keep their lengths. All tokens of a file
    are returned, regardless of ``count``. Raises ValueError for an invalid kind, count or file, OSError for a missing
    file.
    """
    kind = tag_of(type(initial))
    if type(initial) in USER_TOKENS:
        drawn, given = USER_TOKENS[type(initial)](initial, count, dimension, seed), initial.radius is not None
        positions, masses = particles.tokens_points(drawn, None, count, normalized=normalized or given)
        return (initial.radius or 1.0) * positions, masses
    if kind not in _TOKENS:
        raise ValueError(f"initial.kind = {kind}: expected one of {', '.join(_TOKENS)} for particles")
    if not normalized and initial.radius is None and isinstance(initial, sections.Points | sections.Tokens):
        points, weights = _points_of(initial, dimension)
        return particles.tokens_points(points, weights, max(count, len(points)), normalized=False)
    if isinstance(initial, sections.SampledDensity) and initial.sampling != "random":
        drawn, masses_drawn = sample_tokens(initial, count, dimension, seed), None
    else:
        drawn, masses_drawn = _TOKENS[kind](initial, count, dimension, seed)
    radius = 1.0 if initial.radius is None else initial.radius
    return radius * drawn, np.full(len(drawn), 1 / len(drawn)) if masses_drawn is None else masses_drawn


def _points_of(kind: sections.Points | sections.Tokens, dimension: int) -> tuple[Floats, tuple[float, ...] | None]:
    """Return the points (k, d) that a section [initial] or its file gives, and their masses; masses None are equal."""
    if isinstance(kind, sections.Points):
        return np.array(kind.points, dtype=float), kind.masses
    return embeddings_of(kind, dimension), None


def _von_mises_fisher(kind: sections.VonMisesFisher, count: int, dimension: int, seed: int) -> tuple[Floats, None]:
    """Return tokens (count, d) drawn from von Mises–Fisher densities, and None for their masses."""
    return particles.tokens_von_mises_fisher(
        count,
        [component.center for component in kind.components],
        [component.concentration for component in kind.components],
        [component.mass for component in kind.components],
        seed,
    ), None


def _tokens_of_file(kind: sections.Tokens, count: int, dimension: int, seed: int) -> tuple[Floats, None]:
    """Return the tokens (count, d) of a file of embeddings, and None for their masses."""
    embeddings = embeddings_of(kind, dimension)
    return particles.tokens_points(embeddings, None, len(embeddings))[0], None


USER_TOKENS: dict[type, Callable[[Any, int, int, int], Floats]] = {}  # of components: section, n, d, seed → positions
_TOKENS: dict[str, Callable[[Any, int, int, int], tuple[Floats, Floats | None]]] = {
    "uniform": lambda kind, n, d, seed: (particles.tokens_uniform(n, d, seed), None),
    "perturbed": lambda kind, n, d, seed: (
        particles.tokens_perturbed(n, d, kind.amplitude, kind.degrees, kind.seed, seed),
        None,
    ),
    "harmonic": lambda kind, n, d, seed: (
        particles.tokens_harmonic(n, d, kind.degree, kind.order, kind.amplitude, seed),
        None,
    ),
    "von_mises_fisher": _von_mises_fisher,
    "moebius": lambda kind, n, d, seed: (particles.tokens_moebius(n, kind.axis, kind.parameter, seed), None),
    "points": lambda kind, n, d, seed: particles.tokens_points(kind.points, kind.masses, n),
    "tokens": _tokens_of_file,
    "gaussian": lambda kind, n, d, seed: (particles.tokens_gaussian(n, d, kind.mean, kind.variance, seed), None),
    "equiangular": lambda kind, n, d, seed: (particles.tokens_equiangular(n, d, kind.cosine), None),
    "waves": lambda kind, n, d, seed: (
        particles.tokens_waves(n, kind.mean, kind.amplitude, kind.modes, kind.seed),
        None,
    ),
}
