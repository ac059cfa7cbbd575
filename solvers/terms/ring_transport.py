"""Transport of a density on a sphere of rings, by kernels with one geometry for each ring instead of each cell."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ..mesh.mesh import Floats, Mesh
from .ring_geometry import ring_geometry


class RingTransport:
    """Advection of a density on a sphere of rings: outgoing fluxes and divergence, with tables for each ring.

    Outgoing fluxes are (2, faces): of the first cell of each face, and of the second. The fluxes equal those of the
    kernels for any surface to rounding.
    """

    def __init__(self, mesh: Mesh) -> None:
        tables = ring_geometry(mesh)
        on_device = {field.name: mesh.backend.to_device(getattr(tables, field.name)) for field in fields(tables)}
        self.mesh, self._tables = mesh, replace(tables, **on_device)

    def outgoing_flux(
        self, density: Floats, velocity: Floats, low_high: tuple[float, float], occupied: Floats, sent: Floats,
        outflow: Floats,
    ) -> list[Any]:  # fmt: skip
        """Compute the mass per time that each cell sends through its faces; return the largest rates of outflow.

        density    (cells,)
        velocity   (cells, 3), or components east and north (2, cells)
        low_high   smoothness indicators below which a cell is resolved, and above which it is not
        occupied   (1,) density below which a cell does not count for the result
        sent       (2, faces), overwritten with the outgoing fluxes
        outflow    (cells,), overwritten with the fraction of mass that each cell loses per time

        The result is a list of the largest ``outflow`` of occupied cells, one number for each worker (thread).
        """
        t, cells, backend, (low, high) = self._tables, self.mesh.cells, self.mesh.backend, low_high
        east, north = velocity if velocity.shape == (2, cells) else self._local(velocity)
        flux = backend.empty(sent.shape, sent.dtype)
        backend.launch(
            backend.reconstruct_on_rings, cells, t.rows, t.slopes, t.offsets, t.tangents, t.stencils,
            density, east, north, low, high, occupied, flux, outflow, sent,
        )  # fmt: skip
        backend.launch(
            backend.outgoing_flux_on_rings, cells, t.rows, t.volumes, t.slopes, t.offsets, t.reach, t.spans,
            t.opposite, density, east, north, flux, outflow, occupied, sent,
        )  # fmt: skip
        return backend.launch(
            backend.outflow_rates_on_rings, cells, t.rows, t.volumes, density, occupied, sent, outflow
        )

    def _local(self, velocity: Floats) -> Floats:
        """Return the components east and north (2, cells) of a velocity (cells, 3)."""
        mesh, backend, t = self.mesh, self.mesh.backend, self._tables
        components: Floats = backend.empty((2, mesh.cells), mesh.volumes.dtype)
        backend.launch(
            backend.local_components, mesh.cells, t.rows, t.sine, t.cosine, mesh.centers, velocity,
            *components,
        )  # fmt: skip
        return components

    def add_divergence(self, sent: Floats, outflow: Floats, dt: float, rate: Floats) -> None:
        """Add the inflow less the outflow of each cell, per area, to ``rate`` (cells,).

        ``sent`` and ``outflow`` are results of :meth:`outgoing_flux`. A cell that would lose more than its mass within
        dt loses all its mass.
        """
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        backend.launch(
            backend.divergence_on_rings, mesh.cells, tables.rows, tables.volumes, sent, outflow, dt, rate
        )  # fmt: skip
