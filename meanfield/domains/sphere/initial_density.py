"""From the section [initial] of a case to a density on a circle or a sphere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.domains.sphere import initial
from meanfield.sections import initial as sections
from solvers.io.arrays import read_array
from solvers.mesh.mesh import Floats, Mesh


def initial_density(case: Case, mesh: Mesh) -> Floats:
    """The initial density (cells) of a case. Raises CaseError where it would be negative, or its file is no good."""
    try:
        return _INITIAL[type(case.initial)](mesh, case.initial)
    except (ValueError, OSError, KeyError) as error:
        raise CaseError(str(error)) from None


def initial_by_label(case: Case, mesh: Mesh, labels: int) -> Floats:
    """(labels·cells) initial densities of a causal mask's labels, each of mass 1/labels. Raises CaseError as above.

    Points are in order: each label begins with as many of them as the others. Any other density is that of all labels.
    """
    kind = case.initial
    if not isinstance(kind, sections.Points):
        return np.tile(initial_density(case, mesh) / labels, labels)
    rows = np.array(kind.points).reshape(labels, -1, case.domain.d)
    return np.concatenate([initial.initial_points(mesh, points) / labels for points in rows])


def _tokens(mesh: Mesh, kind: sections.Tokens) -> Floats:
    """Embeddings as equal point masses; their directions count."""
    return initial.initial_points(mesh, embeddings_of(kind, mesh.centers.shape[1]))


def embeddings_of(kind: sections.Tokens, d: int) -> Floats:
    """(n, d) embeddings of a file. Raises ValueError or OSError for one that has none."""
    try:
        embeddings = read_array(Path(kind.file), kind.dataset)
    except FileNotFoundError:
        raise ValueError(f"initial.file = {kind.file}: no such file") from None
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"initial.file = {kind.file}: cannot be read as an array of numbers: {error}") from None
    if embeddings.ndim != 2 or embeddings.shape[1] != d or not len(embeddings):
        raise ValueError(f"initial.file = {kind.file}: expected an array (n, {d}), got {embeddings.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(embeddings, axis=1)
    if not (np.isfinite(lengths).all() and lengths.min() > 0):
        raise ValueError(f"initial.file = {kind.file}: expected finite vectors that are not zero")
    return embeddings


_INITIAL: dict[type, Callable[[Mesh, Any], Floats]] = {
    sections.Uniform: lambda mesh, kind: initial.initial_uniform(mesh),
    sections.Perturbed: lambda mesh, kind: initial.initial_perturbed(mesh, kind.amplitude, kind.degrees, kind.seed),
    sections.Harmonic: lambda mesh, kind: initial.initial_harmonic(mesh, kind.degree, kind.order, kind.amplitude),
    sections.VonMisesFisher: lambda mesh, kind: initial.initial_von_mises_fisher(
        mesh,
        [component.center for component in kind.components],
        [component.concentration for component in kind.components],
        [component.mass for component in kind.components],
    ),
    sections.Moebius: lambda mesh, kind: initial.initial_moebius(mesh, kind.axis, kind.parameter),
    sections.Points: lambda mesh, kind: initial.initial_points(mesh, kind.points, kind.masses),
    sections.Tokens: _tokens,
}
