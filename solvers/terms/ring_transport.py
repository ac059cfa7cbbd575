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
    """Scratch arrays of one solve on a sphere of rings: fluxes, and components east and north of a velocity."""

    def __init__(self, mesh: Mesh, fluxes: int) -> None:
        self._mesh, self.flux = mesh, mesh.backend.work_array(fluxes, mesh.volumes.dtype)

    @cached_property
    def components(self) -> tuple[Callable[[], Floats], Callable[[], Floats]]:
        """Return two functions without arguments that return scratch arrays (cells,), for components east and north."""
        work_array, cells, number = self._mesh.backend.work_array, self._mesh.cells, self._mesh.volumes.dtype
        return work_array(cells, number), work_array(cells, number)


class RingTransport:
    """Advection of a density on a sphere of rings: outgoing fluxes and divergence, with tables for each ring.

    in_bands   whether one kernel does all passes for one band (group of neighboring rings) after the other, by default
               on the host; otherwise each pass is a kernel over all cells

    Outgoing fluxes are (2, faces): of the first cell of each face, and of the second. The fluxes equal those of the
    kernels for any surface to rounding.
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
        """Return new scratch arrays for the argument ``work`` of :meth:`outgoing_flux`."""
        return RingWork(self.mesh, math.prod(self._flux_shape))

    def outgoing_flux(
        self, density: Floats, velocity: Floats, low_high: tuple[float, float], occupied: Floats, sent: Floats,
        outflow: Floats, work: RingWork | None = None,
    ) -> list[Any]:  # fmt: skip
        """Compute the mass per time that each cell sends through its faces; return the largest rates of outflow.

        density    (cells,)
        velocity   (cells, 3), or components east and north (2, cells)
        low_high   smoothness indicators below which a cell is resolved, and above which it is not
        occupied   (1,) density below which a cell does not count for the result
        sent       (2, faces), overwritten with the outgoing fluxes
        outflow    (cells,), overwritten with the fraction of mass that each cell loses per time
        work       scratch arrays; None allocates new ones

        The result is a list of the largest ``outflow`` of occupied cells: one number for each worker (thread), and one
        for each border between the bands of two workers.
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
        """Return the components east and north of a velocity (cells, 3): two scratch arrays (cells,)."""
        mesh, backend, t = self.mesh, self.mesh.backend, self._tables
        east, north = (array() for array in work.components)
        backend.launch(
            backend.local_components, mesh.cells, 0, mesh.cells, t.rows, t.sine, t.cosine, mesh.centers, velocity,
            east, north,
        )  # fmt: skip
        return east, north

    def add_divergence(self, sent: Floats, outflow: Floats, dt: float, rate: Floats) -> None:
        """Add the inflow less the outflow of each cell, per area, to ``rate`` (cells,).

        ``sent`` and ``outflow`` are results of :meth:`outgoing_flux`. A cell that would lose more than its mass within
        dt loses all its mass.
        """
        mesh, backend, tables = self.mesh, self.mesh.backend, self._tables
        backend.launch(
            backend.divergence_on_rings, mesh.cells, tables.rows, tables.volumes, sent, outflow, dt, rate
        )  # fmt: skip
