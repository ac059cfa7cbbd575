"""Σ V u of values that an equation prepares, added up once for all of its terms."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..backends.protocol import Array
from ..mesh.mesh import Floats, Mesh


class _Prepared(threading.local):
    """What this thread prepares, and its mass once a term has asked for it."""

    values: Floats | None = None
    mesh: Mesh | None = None
    mass: Array | None = None


_prepared = _Prepared()


@contextmanager
def unchanged(values: Floats) -> Iterator[None]:
    """Within it :func:`mass_of` adds up these values once: nothing may change them meanwhile."""
    before = dict(vars(_prepared))
    _prepared.values, _prepared.mesh, _prepared.mass = values, None, None
    try:
        yield
    finally:
        vars(_prepared).clear()
        vars(_prepared).update(before)


def mass_of(mesh: Mesh, values: Floats) -> Array:
    """Σ V u of values (cells,), (), on their device."""
    if values is not _prepared.values:
        return mesh.backend.dot(mesh.volumes, values)
    if _prepared.mesh is not mesh:
        _prepared.mesh, _prepared.mass = mesh, mesh.backend.dot(mesh.volumes, values)
    assert _prepared.mass is not None
    return _prepared.mass
