"""Small latitude–longitude grid on the sphere that integrates harmonics exactly."""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from ..backends import Backend, backend_for
from ..mesh.mesh import Floats, Integers


class GaussGrid:
    """Gauss–Legendre rings with equispaced nodes: ∫ f = Σ volumes·f for every f of degree up to 2·degree.

    The (degree + 1) rings of (2 degree + 2) nodes are numbered like the cells of a sphere's mesh, so that
    `harmonics.SphereHarmonics` accepts both. Attributes: ``centers`` (nodes, 3), ``volumes`` (nodes,), ``ring_axis``.
    """

    manifold = "sphere"

    def __init__(self, degree: int) -> None:
        rings, count = degree + 1, 2 * degree + 2
        z, weights = (values[::-1] for values in scipy.special.roots_legendre(rings))
        phi = (np.arange(count) + 0.5) * (2 * np.pi / count)
        self.ring_axis: tuple[Floats, Floats] = np.sqrt(1 - z * z), z.copy()
        sine = self.ring_axis[0][:, None]
        parts = np.broadcast_arrays(sine * np.cos(phi), sine * np.sin(phi), z[:, None])
        self.centers: Floats = np.stack(parts, axis=-1).reshape(-1, 3)
        self.volumes: Floats = np.repeat(weights * (2 * np.pi / count), count)
        self.ring_cells: Integers = np.full(rings, count, dtype=np.int32)

    def on(self, backend: Backend) -> GaussGrid:
        """Return a copy of the Gauss grid with its arrays on the device of a backend, like `Mesh.on`."""
        device_grid = copy(self)
        device_grid.centers, device_grid.volumes = backend.to_device(self.centers), backend.to_device(self.volumes)
        return device_grid

    @property
    def cells(self) -> int:
        """Return the number of nodes."""
        return len(self.volumes)

    @cached_property
    def ring_start(self) -> NDArray[np.int64]:
        """Return the index of the first node of each ring, followed by the number of nodes (rings + 1,)."""
        return np.concatenate([[0], np.cumsum(self.ring_cells, dtype=np.int64)])

    @property
    def backend(self) -> Backend:
        """Return the backend of the device that holds the arrays."""
        return backend_for(self.volumes)
