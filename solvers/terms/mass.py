"""Mass Σ V u of the values that an equation prepares, computed once for all terms."""

from __future__ import annotations

import threading

from ..backends.protocol import Array
from ..mesh.mesh import Floats, Mesh


class _Prepared(threading.local):
    """Values for which an equation prepares its terms in this thread, and their cached mass on a mesh."""

    values: Floats | None = None
    mesh: Mesh | None = None
    mass: Array | None = None


_prepared = _Prepared()


class Unchanged:
    """Context of the preparation of terms, in which :func:`mass_of` computes the mass of ``values`` only once.

    The values must not change within the context.
    """

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __enter__(self) -> None:
        prepared = _prepared
        self._before = prepared.values, prepared.mesh, prepared.mass
        prepared.values, prepared.mesh, prepared.mass = self._values, None, None

    def __exit__(self, *raised: object) -> None:
        _prepared.values, _prepared.mesh, _prepared.mass = self._before


def mass_of(mesh: Mesh, values: Floats) -> Array:
    """Return the mass Σ V u of u = ``values`` (cells,), with cell volumes V, as an array () on their device."""
    if values is not _prepared.values:
        return mesh.backend.dot(mesh.volumes, values)
    if _prepared.mesh is not mesh:
        _prepared.mesh, _prepared.mass = mesh, mesh.backend.dot(mesh.volumes, values)
    assert _prepared.mass is not None
    return _prepared.mass
