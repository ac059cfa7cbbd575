"""Transport of a density on a sphere of rings, by kernels with one geometry for each ring instead of each cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from ..backends import host_backend
from ..mesh.mesh import Floats, Mesh
from .ring_geometry import ring_geometry


class RingWork:
    """Scratch arrays of one solve: fluxes, and local components of a velocity in R³."""

    def __init__(self, mesh: Mesh, fluxes: int) -> None:
        self._mesh, self.flux = mesh, mesh.backend.work_array(fluxes, mesh.volumes.dtype)

    @cached_property
    def components(self) -> tuple[Callable[[], Floats], Callable[[], Floats]]:
        """Return two functions that return the arrays (cells,) of east and north components, made on first use."""
        work_array, cells, number = self._mesh.backend.work_array, self._mesh.cells, self._mesh.volumes.dtype
        return work_array(cells, number), work_array(cells, number)


class RingTransport:
    """Outgoing fluxes and divergence by the kernels for a sphere of rings.

    in_bands   whether one kernel handles each band of rings, by default on the host; else one kernel after another

    Outgoing fluxes are (2, faces): of the first cell of each face, and of the second. The fluxes equal
    those of the kernels for any surface to rounding.
    """

    def __init__(self, mesh: Mesh, in_bands: bool | None = None) -> None:
        backend = mesh.backend
        tables = ring_geometry(mesh)
        on_device = {field.name: backend.to_device(getattr(tables, field.name)) for field in fields(tables)}
        self.mesh, self._tables = mesh, replace(tables, **on_device)
        self._is_in_bands = backend is host_backend() if in_bands is None else in_bands
        shape: tuple[int, ...] = (2, mesh.faces)
        if self._is_in_bands:
            self._bands, self._parts, self._rows, count = host_backend().plan_bands(mesh.ring_cells, tables.rows)
            shape = len(self._parts) - 1, 2, count
        self._flux_shape = shape

    def work_arrays(self) -> RingWork:
        """Return scratch arrays for :meth:`outgoing_flux`."""
        return RingWork(self.mesh, math.prod(self._flux_shape))

    def outgoing_flux(
        self, density: Floats, velocity: Floats, low_high: tuple[float, float], occupied: Floats, sent: Floats,
        outflow: Floats, work: RingWork | None = None,
    ) -> list[Any]:  # fmt: skip
        """Write outgoing fluxes to ``sent`` and the fraction of mass that each cell loses per time to ``outflow``.

        ``velocity`` is (cells, 3), or (2, cells) along east and north. Returns the largest outflow of the occupied
        cells for each worker. ``work`` holds scratch arrays; None allocates new ones.
        """
        work = self.work_arrays() if work is None else work
        east, north = velocity if velocity.shape == (2, self.mesh.cells) else self._local(velocity, work)
        (low, high), flux = low_high, work.flux().reshape(self._flux_shape)
        t, cells, backend, host = self._tables, self.mesh.cells, self.mesh.backend, host_backend()
        if self._is_in_bands:
            shares = host.launch(
                host.flux_in_bands, cells, self._bands, self._parts, self._rows, t.volumes, t.offsets, t.reach,
                t.slopes, t.tangents, t.stencils, t.spans, t.opposite, density, east, north, low, high, occupied, flux,
                sent, outflow,
            )  # fmt: skip
            between = [
                host.join_bands(
                    part, self._parts, self._rows, t.volumes, t.offsets, t.reach, t.slopes, t.spans, t.opposite,
                    density, occupied, east, north, flux, sent, outflow,
                )
                for part in range(len(self._parts) - 2)
            ]  # fmt: skip
            return shares + between
        backend.launch(
            backend.reconstruct_on_rings, cells, 0, cells, t.rows, t.slopes, t.offsets, t.tangents, t.stencils,
            density, east, north, low, high, occupied, flux, outflow, sent,
        )  # fmt: skip
        backend.launch(
            backend.outgoing_flux_on_rings, cells, 0, cells, t.rows, t.volumes, t.slopes, t.offsets, t.reach, t.spans,
            t.opposite, density, east, north, flux, outflow, occupied, sent,
        )  # fmt: skip
        return backend.launch(
            backend.outflow_rates_on_rings, cells, 0, cells, t.rows, t.volumes, density, occupied, sent, outflow
        )

    def _local(self, velocity: Floats, work: RingWork) -> tuple[Floats, Floats]:
        """Return components along east and north, (cells,) each, in scratch arrays."""
        mesh, backend, t = self.mesh, self.mesh.backend, self._tables
        east, north = (array() for array in work.components)
        backend.launch(
            backend.local_components, mesh.cells, 0, mesh.cells, t.rows, t.sine, t.cosine, mesh.centers, velocity,
            east, north,
        )  # fmt: skip
        return east, north

    def add_divergence(self, sent: Floats, outflow: Floats, dt: float, rate: Floats) -> None:
        """Add to ``rate`` (cells,) the inflow less the outflow of each cell within dt, per area."""
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        backend.launch(
            backend.divergence_on_rings, mesh.cells, tables.rows, tables.volumes, sent, outflow, dt, rate
        )  # fmt: skip
