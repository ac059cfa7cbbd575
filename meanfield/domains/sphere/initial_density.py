"""Density on a circle or a sphere from the section [initial] of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.domains.common.given_density import GIVEN_DENSITIES, InitialMesh
from meanfield.domains.sphere import initial
from meanfield.domains.sphere.embeddings import embeddings_of
from meanfield.sections import initial as sections
from meanfield.sections.formula import LABEL, names_in
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, Mesh


def initial_density(case: Case, mesh: Mesh) -> Floats:
    """Return the initial density (cells) of a case on the circle or the sphere.

    Raises ValueError for a negative density, or a file that cannot be used.
    """
    return _density(mesh, case.initial)


def initial_by_label(case: Case, mesh: Mesh, labels: int) -> Floats:
    """Return the initial densities (labels·cells) of the labels of a causal mask, each of mass 1/labels.

    A label is a position of tokens in the sequence. Points, and tokens of a file, are split into consecutive groups,
    one for each label, whose sizes differ by at most one. An array may have a row for each label; a formula may depend
    on ``label``. Initial densities of the kind by_label are consecutive parts, each for equally many labels. For
    any other kind, all labels have the same density. Raises ValueError as ``initial_density``.
    """
    return np.concatenate([density / labels for density in _label_densities(case.initial, mesh, labels)])


def _label_densities(kind: sections.InitialKind, mesh: Mesh, labels: int) -> Iterable[Floats]:
    """Return an initial density (cells) of mass 1 for each label of a causal mask.

    A label is a position of tokens in the sequence.
    """
    if isinstance(kind, sections.Points | sections.Tokens):
        d = mesh.centers.shape[1]
        points = np.array(kind.points) if isinstance(kind, sections.Points) else embeddings_of(kind, d)
        if len(points) < labels:
            raise refusal("domain.labels", labels, f"at most the number of tokens, {len(points)}")
        return (initial.initial_points(mesh, some) for some in np.array_split(points, labels))
    if isinstance(kind, sections.ByLabel):
        return (_density(mesh, part) for part in kind.parts for _ in range(labels // len(kind.parts)))
    if isinstance(kind, sections.Array):
        return np.broadcast_to(
            GIVEN_DENSITIES[sections.Array](InitialMesh(mesh, labels=labels), kind), (labels, mesh.cells)
        )
    if isinstance(kind, sections.Formula) and LABEL in names_in(kind.density):
        return (_density(mesh, kind, {LABEL: np.full(mesh.cells, (k + 0.5) / labels)}) for k in range(labels))
    return [_density(mesh, kind)] * labels


def _density(mesh: Mesh, kind: sections.InitialKind, more: Mapping[str, Floats] | None = None) -> Floats:
    """Return the initial density (cells) of mass 1 that a section [initial] describes.

    ``more`` are further coordinates for formulas, beside those of ``angles``.
    """
    if type(kind) in INITIAL:
        return INITIAL[type(kind)](mesh, kind)
    return GIVEN_DENSITIES[type(kind)](InitialMesh(mesh, angles(mesh) | dict(more or {})), kind)


def angles(mesh: Mesh) -> dict[str, Floats]:
    """Return the coordinates (cells) of the cell centers that formulas may use, by name.

    x, y and z are those of the unit vectors, phi the azimuth (−π to π), on the circle the angle, theta the polar angle.
    """
    x = unit_vectors(mesh.centers)
    values = dict(zip("xyz", x.T, strict=False)) | {"phi": np.arctan2(x[:, 1], x[:, 0])}
    return values | {"theta": np.arccos(np.clip(x[:, 2], -1.0, 1.0))} if x.shape[1] == 3 else values


def _tokens(mesh: Mesh, kind: sections.Tokens) -> Floats:
    """Return the density (cells) of token embeddings in a file, as equal point masses at their directions."""
    return initial.initial_points(mesh, embeddings_of(kind, mesh.centers.shape[1]))


INITIAL: dict[type, Callable[[Mesh, Any], Floats]] = {
    sections.Uniform: lambda mesh, kind: initial.initial_uniform(mesh),
    sections.Perturbed: lambda mesh, kind: initial.initial_perturbed(mesh, kind.amplitude, kind.degrees, kind.seed),
    sections.Harmonic: lambda mesh, kind: initial.initial_harmonic(mesh, kind.degree, kind.order, kind.amplitude),
    sections.VonMisesFisher: lambda mesh, kind: initial.initial_von_mises_fisher(mesh, *kind.columns),
    sections.Moebius: lambda mesh, kind: initial.initial_moebius(mesh, kind.axis, kind.parameter),
    sections.Points: lambda mesh, kind: initial.initial_points(mesh, kind.points, kind.masses),
    sections.Tokens: _tokens,
}
