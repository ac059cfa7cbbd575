"""Transport of a density on a sphere of rings, by kernels that know each ring's geometry instead of each cell's."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ..mesh.mesh import Floats, Mesh
from .ring_geometry import ring_geometry


class RingTransport:
    """The kernels of :mod:`solvers.backends.cpu.rings.transport`, for a mesh that is of rings.

    Outgoing fluxes are (2, faces): of the first cell of each face, and of the second. They equal those of any sphere's
    cells but for rounding, :mod:`solvers.backends.cpu.transport_surface`.
    """

    def __init__(self, mesh: Mesh) -> None:
        backend, number = mesh.backend, mesh.volumes.dtype
        tables = ring_geometry(mesh.on_host)
        on_device = {field.name: backend.to_device(getattr(tables, field.name)) for field in fields(tables)}
        self.mesh, self._tables = mesh, replace(tables, **on_device)
        self._east, self._north = backend.work_array(mesh.cells, number), backend.work_array(mesh.cells, number)

    def outgoing_flux(
        self, density: Floats, velocity: Floats, low_high: tuple[float, float], occupied: Floats, flux: Floats,
        smooth: Floats, sent: Floats,
    ) -> None:  # fmt: skip
        """Outgoing fluxes of each cell into ``sent``; uses ``flux`` (2, faces) and ``smooth`` (cells,)."""
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        east, north = self._east(), self._north()
        backend.launch(
            backend.local_components, mesh.cells, tables.rows, tables.sine, tables.cosine, mesh.centers, velocity,
            east, north,
        )  # fmt: skip
        backend.launch(
            backend.reconstruct_on_rings, mesh.cells, tables.rows, tables.slopes, tables.offsets, tables.tangents,
            tables.stencils, density, east, north, *low_high, occupied, flux, smooth, sent,
        )  # fmt: skip
        backend.launch(
            backend.outgoing_flux_on_rings, mesh.cells, tables.rows, tables.volumes, tables.slopes, tables.offsets,
            tables.reach, tables.spans, tables.opposite, density, east, north, flux, smooth, occupied, sent,
        )  # fmt: skip

    def outflow_rates(self, density: Floats, occupied: Floats, sent: Floats, outflow: Floats) -> list[Any]:
        """The part of its mass that each cell loses per time, (cells,); returns the largest of the occupied ones."""
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        return backend.launch(
            backend.outflow_rates_on_rings, mesh.cells, tables.rows, tables.volumes, density, occupied, sent, outflow
        )

    def add_divergence(self, sent: Floats, outflow: Floats, dt: float, rate: Floats) -> None:
        """Add to ``rate`` (cells,) what each cell receives less what it loses within dt, per area."""
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        backend.launch(
            backend.divergence_on_rings, mesh.cells, tables.rows, tables.volumes, sent, outflow, dt, rate
        )  # fmt: skip
