"""Σ V u of values that an equation prepares, added up once for all of its terms."""

from __future__ import annotations

import threading

from ..backends.protocol import Array
from ..mesh.mesh import Floats, Mesh


class _Prepared(threading.local):
    """What this thread prepares, and its mass once a term has asked for it."""

    values: Floats | None = None
    mesh: Mesh | None = None
    mass: Array | None = None


_prepared = _Prepared()


class Unchanged:
    """Within it :func:`mass_of` adds up these values once: nothing may change them meanwhile."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __enter__(self) -> None:
        prepared = _prepared
        self._before = prepared.values, prepared.mesh, prepared.mass
        prepared.values, prepared.mesh, prepared.mass = self._values, None, None

    def __exit__(self, *raised: object) -> None:
        _prepared.values, _prepared.mesh, _prepared.mass = self._before


def mass_of(mesh: Mesh, values: Floats) -> Array:
    """Σ V u of values (cells,), (), on their device."""
    if values is not _prepared.values:
        return mesh.backend.dot(mesh.volumes, values)
    if _prepared.mesh is not mesh:
        _prepared.mesh, _prepared.mass = mesh, mesh.backend.dot(mesh.volumes, values)
    assert _prepared.mass is not None
    return _prepared.mass
