"""Transforms along the rings of a sphere: from cells to azimuthal modes, and from modes to values and vectors.

By sums with tables of waves where the degrees are few, on the CPU; by FFTs elsewhere. Both are exact for every order,
also beyond half of a ring's cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..backends import host_backend
from ..mesh.mesh import Floats, Mesh
from .gauss_grid import GaussGrid

Rings = Mesh | GaussGrid
Outputs = list[tuple[bool, Floats]]  # of each set of modes: whether to take ∂/∂φ, and a factor (rings,)
MAX_PRODUCTS = 100  # of a sum for a cell: where there are more, FFTs take less time, on small meshes from some 200 on
PRODUCTS = 16  # that take about as long as an item of other kernels, of which there have to be many for threads


class RingTransform(Protocol):
    """Modes m = 0 … degree of the cells of each ring; ``half`` are the northern rings and the equator's."""

    def analysis(self, masses: Floats) -> Floats:
        """(..., 4, degree + 1, half) Σ_j w_j e^{−imφ_j} of masses (..., cells), with at most one dimension before them.

        Of the sum of mirrored rings re and im, then of their difference.
        """
        ...

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        """As :meth:`analysis` of (ρ_j − level) V_j, for ρ (..., cells) and level (...), or of ρ_j V_j."""
        ...

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        """(cells) a real function of modes (1, degree + 1, rings)."""
        ...

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        """(cells) a function and (cells, 3) vectors of modes (4, degree + 1, rings)."""
        ...

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        """(..., cells) a function, (2, ..., cells) east and north of a gradient, another function, of modes.

        These are (..., 3 or 4, degree + 1, rings): of the function; of sin θ ∂f/∂θ and f for the gradient; of the other
        one, which is empty without them.
        """
        ...


class RingSums:
    """Sums with tables of waves, on the host, for few degrees."""

    def __init__(self, mesh: Rings, degree: int) -> None:
        self.mesh, self._shape = mesh, (degree + 1, (len(mesh.ring_cells) + 1) // 2)
        self._ones = np.ones(len(mesh.ring_cells))
        self._of_gradient = _stacked(_of_gradient(self._ones, 1.0 / mesh.ring_axis[0]), [0, 1, 0, 2])  # east first
        self._of_vectors = _stacked([(False, self._ones)] * 4, [0, 0, 1, 2])
        self._rings = mesh.ring_start, mesh.ring_cells
        counts = np.asarray(mesh.ring_cells[: self._shape[1]], dtype=np.int64)
        self._points = _points(counts)
        kinds, which = np.unique(counts, return_inverse=True)
        wave_table = host_backend().wave_table
        tables = [wave_table(int(count), int(n), degree) for count, n in zip(kinds, _points(kinds), strict=True)]
        starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
        self._tables = self._points, np.concatenate(tables), starts[which]
        self._work = int(_products(counts, degree) @ counts) // PRODUCTS
        self._analysis_work = int(_products(counts, np.minimum(degree, counts // 2)) @ counts) // PRODUCTS

    def analysis(self, masses: Floats) -> Floats:
        return self._analysis(masses, None, self._ones)

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        return self._analysis(density, level, self._volumes)

    @cached_property
    def _volumes(self) -> Floats:
        """(rings,) of a cell of each ring."""
        assert isinstance(self.mesh, Mesh)
        return self.mesh.volumes[self.mesh.ring_start[:-1]].astype(np.float64)

    def _analysis(self, values: Floats, level: Floats | None, weights: Floats) -> Floats:
        if not (values.flags.c_contiguous and values.flags.writeable):
            values = values.copy()  # what it is would be compiled for
        rows = values.reshape(-1, self.mesh.cells)
        level = np.zeros(len(rows)) if level is None else np.reshape(level, -1)
        host = host_backend()
        modes = host.empty((len(rows), 4, *self._shape))
        host.launch(
            host.ring_analysis, len(rows) * self._analysis_work, rows, level, weights, *self._rings, *self._tables,
            modes,
        )  # fmt: skip
        return modes[0] if values.ndim == 1 else modes

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        host = host_backend()
        values = host.empty(self.mesh.cells, self.mesh.volumes.dtype)
        host.launch(host.ring_synthesis, self._work, re, im, *self._rings, *self._tables, values)
        return values

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        values, components = self._functions(re, im, *self._of_vectors)
        return values, np.ascontiguousarray(components.T)

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        values, fields = self._functions(re, im, *self._of_gradient)
        return values, fields[:2], fields[2] if len(fields) > 2 else fields[0, ..., :0]

    def _functions(
        self, re: Floats, im: Floats, by_order: Floats, scales: Floats, places: Floats
    ) -> tuple[Floats, Floats]:
        """(..., cells) and (sets − 1, ..., cells) functions of modes (..., sets, degree + 1, rings), k at places[k]."""
        cells, number, shape, sets = self.mesh.cells, self.mesh.volumes.dtype, re.shape[:-3], re.shape[-3]
        modes = (each.reshape(-1, *each.shape[-3:]) for each in (re, im))
        host = host_backend()
        values = host.empty((*shape, cells), number)  # apart, so that they can be given back before the others
        fields = host.empty((sets - 1, *shape, cells), number)
        host.launch(
            host.ring_functions, values.size // cells * sets * self._work, *modes, by_order, scales,
            places, *self._rings, *self._tables, values.reshape(-1, cells), fields.reshape(sets - 1, -1, cells),
        )  # fmt: skip
        return values, fields


def _stacked(outputs: Outputs, places: list[int]) -> tuple[Floats, Floats, Floats]:
    """Whether to take ∂/∂φ of each set (sets,), its factors (sets, rings), and its row."""
    by_order, scales = zip(*outputs, strict=True)
    return np.array(by_order), np.stack(scales), np.array(places)


def _of_gradient(one: Floats, over_sine: Floats) -> Outputs:
    """A function, the components north and east of a gradient, and another function: see :class:`RingTransform`."""
    return [(False, one), (False, -over_sine), (True, over_sine), (False, one)]


def _points(counts: np.ndarray) -> np.ndarray:
    """Points of a ring's tables: a quarter of its cells, or all."""
    return np.where(counts % 4 == 0, counts // 4, counts)


def _products(counts: np.ndarray, degree: int | np.ndarray) -> np.ndarray:
    """Products for a cell of rings of so many cells, up to a degree."""
    return np.where(counts % 4 == 0, 0.5, 2.0) * (degree + 1)


@dataclass(frozen=True)
class _Block:
    """Consecutive rings with the same number of cells: one batched FFT, as large as is good for the kernels."""

    cells: int
    first_ring: int
    last_ring: int
    start: int
    stop: int


class RingFFTs:
    """A batched FFT for consecutive rings of as many cells; modes beyond half of them are added to those within."""

    def __init__(self, mesh: Rings, degree: int) -> None:
        self.mesh, rings = mesh, len(mesh.ring_cells)
        to_device = mesh.backend.to_device
        self._one = to_device(np.ones(rings))
        self._over_sine = to_device(1.0 / mesh.ring_axis[0])
        self._mirror = to_device(np.arange(rings)[::-1][: (rings + 1) // 2].copy())
        self._blocks = list(_blocks(mesh))
        self._shape = 2, degree + 1, rings

    def analysis(self, masses: Floats) -> Floats:
        if masses.ndim > 1:
            of_rows: Floats = self.mesh.backend.xp.stack([self.analysis(row) for row in masses])
            return of_rows
        backend, half = self.mesh.backend, len(self._mirror)
        of_rings = backend.empty(self._shape)
        for block in self._blocks:
            rows = masses[block.start : block.stop].reshape(-1, block.cells)
            spectrum = backend.rfft(rows)
            backend.launch(backend.unfold_rings, spectrum.size, spectrum, block.cells, block.first_ring, *of_rings)
        north, south = of_rings[:, :, :half], of_rings[:, :, self._mirror]
        if len(self._one) % 2:
            south[:, :, -1] = 0.0
        modes: Floats = backend.xp.concatenate([north + south, north - south])
        return modes

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        assert isinstance(self.mesh, Mesh)
        mesh, backend = self.mesh, self.mesh.backend
        if density.ndim > 1:
            levels = backend.zeros(len(density)) if level is None else level
            modes = [self.of_density(*row) for row in zip(density, levels, strict=True)]
            of_rows: Floats = backend.xp.stack(modes)
            return of_rows
        if level is None:
            return self.analysis(density * mesh.volumes)
        masses = backend.empty(mesh.cells, mesh.volumes.dtype)
        backend.launch(backend.masses_above, mesh.cells, density, mesh.volumes, backend.xp.reshape(level, 1), masses)
        return self.analysis(masses)

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        values: Floats = self.mesh.backend.empty(self.mesh.cells, self.mesh.volumes.dtype)
        for here, (block_values,) in self._synthesized(re, im, [(False, self._one)]):
            values[here] = block_values
        return values

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        backend, cells, number = self.mesh.backend, self.mesh.cells, self.mesh.volumes.dtype
        values, vectors = backend.empty(cells, number), backend.empty((cells, 3), number)
        for here, (value, *components) in self._synthesized(re, im, [(False, self._one)] * 4):
            values[here] = value
            for axis, component in enumerate(components):
                vectors[here, axis] = component
            del value, components, component  # the next block is made in their place
        return values, vectors

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        if re.ndim > 3:
            of_values, of_components, of_radial = zip(*map(self.gradient, re, im), strict=True)
            xp = self.mesh.backend.xp
            return xp.stack(of_values), xp.stack(of_components, axis=1), xp.stack(of_radial)
        backend, cells, number = self.mesh.backend, self.mesh.cells, self.mesh.volumes.dtype
        outputs = _of_gradient(self._one, self._over_sine)
        values, components = backend.empty(cells, number), backend.empty((2, cells), number)
        radial = backend.empty(cells if len(re) > 3 else 0, number)
        for here, (value, north, east, *along) in self._synthesized(re, im, outputs[: len(re)]):
            values[here], components[0, here], components[1, here] = value, east, north
            if along:
                radial[here] = along[0]
            del value, north, east, along  # the next block is made in their place
        return values, components, radial

    def _synthesized(self, re: Floats, im: Floats, outputs: Outputs) -> Iterator[tuple[slice, list[Floats]]]:
        """The slice of cells of each block and the values there of each set."""
        backend, number = self.mesh.backend, np.result_type(self.mesh.volumes.dtype, np.complex64)
        for block in self._blocks:
            values = []
            for k, (by_order, scale) in enumerate(outputs):
                spectrum = backend.empty((block.last_ring - block.first_ring, block.cells // 2 + 1), number)
                backend.launch(
                    backend.fold_rings, spectrum.size, re[k], im[k], block.cells, block.first_ring, by_order, scale,
                    spectrum,
                )  # fmt: skip
                values.append(backend.irfft(spectrum, block.cells, "forward").reshape(-1))
            yield slice(block.start, block.stop), values


def _blocks(mesh: Rings) -> Iterator[_Block]:
    counts, start = mesh.ring_cells, mesh.ring_start
    changes = np.flatnonzero(np.diff(counts)) + 1
    for first, last in zip([0, *changes], [*changes, len(counts)], strict=True):
        height = max(mesh.backend.TRANSFORM_CELLS // int(counts[first]), 1)
        for ring in range(int(first), int(last), height):
            end = min(ring + height, int(last))
            yield _Block(int(counts[first]), ring, end, int(start[ring]), int(start[end]))


def ring_transform(mesh: Rings, degree: int) -> RingTransform:
    """The transform along the rings of a sphere that takes the least time for modes up to ``degree``."""
    counts = np.asarray(mesh.ring_cells, dtype=np.int64)
    few = float(_products(counts, degree) @ counts) <= MAX_PRODUCTS * mesh.cells
    return RingSums(mesh, degree) if few and mesh.backend is host_backend() else RingFFTs(mesh, degree)
