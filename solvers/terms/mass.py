"""Mass, occupied density and largest value of a field, computed once for all terms of an equation."""

from __future__ import annotations

import threading

from ..backends.protocol import Array, Summary
from ..mesh.mesh import Floats, Mesh

OCCUPIED = 1e-8  # times the mean density: cells below hold less than 1e-8 of the mass and do not limit the time step


class _PreparedValues(threading.local):
    """Values for which an equation prepares its terms in this thread, and their cached summary on a mesh."""

    values: Floats | None = None
    mesh: Mesh | None = None
    summary: Summary | None = None


_prepared = _PreparedValues()


class CachedSummary:
    """Context for the preparation of terms, in which :func:`summary_of` computes the summary of ``values`` only once.

    The values must not change within the context.
    """

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __enter__(self) -> None:
        prepared = _prepared
        self._before = prepared.values, prepared.mesh, prepared.summary
        prepared.values, prepared.mesh, prepared.summary = self._values, None, None

    def __exit__(self, *raised: object) -> None:
        _prepared.values, _prepared.mesh, _prepared.summary = self._before


def summary_of(mesh: Mesh, values: Floats) -> Summary:
    """Return the mass of u = ``values`` (cells,), the density of an occupied cell, and on a GPU the largest value.

    A cell counts as occupied above OCCUPIED times the mean density.
    """
    prepared = _prepared
    if values is not prepared.values:
        return mesh.backend.summary(values, mesh.volumes, OCCUPIED / mesh.volume)
    if prepared.mesh is not mesh or prepared.summary is None:
        prepared.mesh = mesh
        prepared.summary = mesh.backend.summary(values, mesh.volumes, OCCUPIED / mesh.volume)
    return prepared.summary


def mass_of(mesh: Mesh, values: Floats) -> Array:
    """Return the mass Σ V u of u = ``values`` (cells,), with cell volumes V, as an array () on their device."""
    return summary_of(mesh, values).mass
