"""Transforms along the rings of a sphere: from cells to azimuthal modes, and from modes to values and vectors.

A GPU and low degrees on the CPU use sums over all cells of a ring, other transforms FFTs. Both are exact for every
order, also beyond half of a ring's cells.
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
Outputs = list[tuple[bool, Floats]]  # for each set of modes: whether to take ∂/∂φ, and a factor (rings,)
PRODUCTS = 16  # products that take as long as one item of other kernels, the unit for the number of threads


class RingTransform(Protocol):
    """Transform between the cells of a sphere's rings of latitude and azimuthal modes m = 0 … degree on each ring.

    ``half`` counts the northern rings and that on the equator.
    """

    def analysis(self, masses: Floats) -> Floats:
        """Return the azimuthal modes Σ_j w_j e^{−imφ_j} over the cells j of each ring, for masses w (..., cells).

        The result is (..., 4, degree + 1, half) for the northern rings and that on the equator. The axis of 4 holds re
        and im for the sum of the modes of mirrored rings, then for the difference. ``masses`` have at most two
        dimensions.
        """
        ...

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        """Return the azimuthal modes of the masses (ρ_j − level) V_j on each ring, for a density ρ (..., cells).

        V are the cell volumes, ``level`` (...) is a number for each density, or None for 0. The result is that of
        :meth:`analysis`.
        """
        ...

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        """Return the values (cells,) of a real function from its azimuthal modes, re and im (1, degree + 1, rings)."""
        ...

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        """Return a function (cells,) and vectors (cells, 3) from azimuthal modes, re and im (4, degree + 1, rings).

        The four sets of modes belong to the function and to the three components of the vectors.
        """
        ...

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        """Return f (..., cells), ∇p (2, ..., cells) and r (..., cells), from azimuthal modes of functions f, p and r.

        The components of the gradient are east and north. The modes, re and im (..., 3 or 4, degree + 1, rings), are
        those of f, sin θ ∂p/∂θ, p and r. With 3 sets of modes r is empty.
        """
        ...


class RingSums:
    """Transform between cells and azimuthal modes of rings by sums: for low degrees on the CPU, for all on a GPU."""

    def __init__(self, mesh: Rings, degree: int) -> None:
        self.mesh, self._shape = mesh, (degree + 1, (len(mesh.ring_cells) + 1) // 2)
        backend, ones = mesh.backend, np.ones(len(mesh.ring_cells))
        to_device = backend.to_device
        self._ones = to_device(ones)
        of_gradient = _stack_outputs(_gradient_outputs(ones, 1.0 / mesh.ring_axis[0]), [0, 1, 0, 2])  # east first
        self._of_gradient = list(map(to_device, of_gradient))
        self._of_vectors = list(map(to_device, _stack_outputs([(False, ones)] * 4, [0, 0, 1, 2])))
        self._rings = to_device(mesh.ring_start), to_device(mesh.ring_cells)
        counts = np.asarray(mesh.ring_cells[: self._shape[1]], dtype=np.int64)
        kinds, which = np.unique(counts, return_inverse=True)
        tables = [backend.wave_table(int(n), int(q), degree) for n, q in zip(kinds, _points(kinds), strict=True)]
        starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
        self._tables = list(map(to_device, (_points(counts), np.concatenate(tables), starts[which])))
        self._work = int(_products(counts, degree) @ counts) // PRODUCTS
        self._analysis_work = int(_products(counts, np.minimum(degree, counts // 2)) @ counts) // PRODUCTS

    def analysis(self, masses: Floats) -> Floats:
        """Return the azimuthal modes of masses, see :meth:`RingTransform.analysis`."""
        return self._analysis(masses, None, self._ones)

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        """Return the azimuthal modes of the masses of a density, see :meth:`RingTransform.of_density`."""
        return self._analysis(density, level, self._volumes)

    @cached_property
    def _volumes(self) -> Floats:
        """Return the volume of one cell of each ring of latitude, (rings,); all cells of a ring are equal."""
        assert isinstance(self.mesh, Mesh)
        first_cells = self.mesh.backend.to_device(self.mesh.ring_start[:-1])
        return self.mesh.volumes[first_cells].astype(np.float64)

    def _analysis(self, values: Floats, level: Floats | None, weights: Floats) -> Floats:
        """Return the azimuthal modes of ``values`` − ``level``, times ``weights`` (rings,), on each ring."""
        if not (values.flags.c_contiguous and getattr(values.flags, "writeable", True)):
            values = values.copy()  # other layouts would compile the kernel anew
        rows, backend = values.reshape(-1, self.mesh.cells), self.mesh.backend
        level = backend.zeros(len(rows)) if level is None else backend.xp.reshape(level, -1)
        modes = backend.empty((len(rows), 4, *self._shape))
        backend.launch(
            backend.ring_analysis, len(rows) * self._analysis_work, rows, level, weights, *self._rings, *self._tables,
            modes,
        )  # fmt: skip
        return modes[0] if values.ndim == 1 else modes

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        """Return a real function from its azimuthal modes, see :meth:`RingTransform.synthesis`."""
        backend = self.mesh.backend
        values = backend.empty(self.mesh.cells, self.mesh.volumes.dtype)
        backend.launch(backend.ring_synthesis, self._work, re, im, *self._rings, *self._tables, values)
        return values

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        """Return a function and vectors from azimuthal modes, see :meth:`RingTransform.vectors`."""
        values, components = self._functions(re, im, *self._of_vectors)
        return values, self.mesh.backend.xp.ascontiguousarray(components.T)

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a function and a gradient from azimuthal modes, see :meth:`RingTransform.gradient`."""
        values, fields = self._functions(re, im, *self._of_gradient)
        return values, fields[:2], fields[2] if len(fields) > 2 else fields[0, ..., :0]

    def _functions(
        self, re: Floats, im: Floats, by_order: Floats, scales: Floats, places: Floats
    ) -> tuple[Floats, Floats]:
        """Return functions from their azimuthal modes: the first one (..., cells), and an array of all others.

        The array is (sets − 1, ..., cells).

        re, im     (..., sets, degree + 1, rings) modes, one set for each function
        by_order   (sets,) whether to take ∂/∂φ of a function
        scales     (sets, rings) factor of each ring
        places     (sets,) index of each function in the array; unused for the first function
        """
        cells, number, shape, sets = self.mesh.cells, self.mesh.volumes.dtype, re.shape[:-3], re.shape[-3]
        modes = (each.reshape(-1, *each.shape[-3:]) for each in (re, im))
        backend = self.mesh.backend
        values = backend.empty((*shape, cells), number)  # separate, so that the memory can be freed before the fields
        fields = backend.empty((sets - 1, *shape, cells), number)
        backend.launch(
            backend.ring_functions, values.size // cells * sets * self._work, *modes, by_order, scales,
            places, *self._rings, *self._tables, values.reshape(-1, cells), fields.reshape(sets - 1, -1, cells),
        )  # fmt: skip
        return values, fields


def _stack_outputs(outputs: Outputs, places: list[int]) -> tuple[Floats, Floats, Floats]:
    """Return the outputs of a transform as arrays: flags (sets,), factors (sets, rings) and result rows (sets,).

    An output is one function with its own set of azimuthal modes. The flag is whether to take ∂/∂φ of the function, the
    factor (rings,) multiplies its modes, and ``places`` are the rows of the result, see :meth:`RingSums._functions`.
    """
    by_order, scales = zip(*outputs, strict=True)
    return np.array(by_order), np.stack(scales), np.array(places)


def _gradient_outputs(one: Floats, over_sine: Floats) -> Outputs:
    """Return four outputs of a transform: a function, the north and east components of a gradient, another function.

    An output is a pair: whether to take ∂/∂φ of a set of azimuthal modes, and a factor (rings,). ``one`` and
    ``over_sine`` are the factors 1 and 1/sin θ.
    """
    return [(False, one), (False, -over_sine), (True, over_sine), (False, one)]


def _points(counts: np.ndarray) -> np.ndarray:
    """Return the number of points in the table of waves of a ring with ``counts`` cells: a quarter of them, or all.

    By symmetry a quarter suffices if the number of cells is a multiple of 4.
    """
    return np.where(counts % 4 == 0, counts // 4, counts)


def _products(counts: np.ndarray, degree: int | np.ndarray) -> np.ndarray:
    """Return the number of products for each cell in sums over rings with ``counts`` cells for modes up to ``degree``.

    Rings whose number of cells is a multiple of 4 take a quarter of the products, by symmetry.
    """
    return np.where(counts % 4 == 0, 0.5, 2.0) * (degree + 1)


@dataclass(frozen=True)
class _Block:
    """Consecutive rings with equal numbers of cells for one batched FFT, at most TRANSFORM_CELLS cells."""

    cells: int
    first_ring: int
    last_ring: int
    start: int
    stop: int


class RingFFTs:
    """Transform between cells and azimuthal modes of rings by batched FFTs of consecutive equal rings, on the CPU.

    Modes beyond half of a ring's cells are exact too, as aliases of lower modes.
    """

    def __init__(self, mesh: Rings, degree: int) -> None:
        self.mesh, rings = mesh, len(mesh.ring_cells)
        self._one, self._over_sine = np.ones(rings), 1.0 / mesh.ring_axis[0]
        self._mirror = np.arange(rings)[::-1][: (rings + 1) // 2].copy()
        self._blocks = list(_blocks(mesh))
        self._shape = 2, degree + 1, rings

    def analysis(self, masses: Floats) -> Floats:
        """Return the azimuthal modes of masses, see :meth:`RingTransform.analysis`."""
        if masses.ndim > 1:
            return np.stack([self.analysis(row) for row in masses])
        host, half = host_backend(), len(self._mirror)
        of_rings = host.empty(self._shape)
        for block in self._blocks:
            rows = masses[block.start : block.stop].reshape(-1, block.cells)
            spectrum = host.rfft(rows)
            host.launch(host.unfold_rings, spectrum.size, spectrum, block.cells, block.first_ring, *of_rings)
        north, south = of_rings[:, :, :half], of_rings[:, :, self._mirror]
        if len(self._one) % 2:
            south[:, :, -1] = 0.0
        return np.concatenate([north + south, north - south])

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        """Return the azimuthal modes of the masses of a density, see :meth:`RingTransform.of_density`."""
        assert isinstance(self.mesh, Mesh)
        mesh, host = self.mesh, host_backend()
        if density.ndim > 1:
            levels = host.zeros(len(density)) if level is None else level
            modes = [self.of_density(*row) for row in zip(density, levels, strict=True)]
            return np.stack(modes)
        if level is None:
            return self.analysis(density * mesh.volumes)
        masses = host.empty(mesh.cells, mesh.volumes.dtype)
        host.launch(host.masses_above, mesh.cells, density, mesh.volumes, np.reshape(level, 1), masses)
        return self.analysis(masses)

    def synthesis(self, re: Floats, im: Floats) -> Floats:
        """Return a real function from its azimuthal modes, see :meth:`RingTransform.synthesis`."""
        values: Floats = host_backend().empty(self.mesh.cells, self.mesh.volumes.dtype)
        for here, (block_values,) in self._synthesize_blocks(re, im, [(False, self._one)]):
            values[here] = block_values
        return values

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        """Return a function and vectors from azimuthal modes, see :meth:`RingTransform.vectors`."""
        host, cells, number = host_backend(), self.mesh.cells, self.mesh.volumes.dtype
        values, vectors = host.empty(cells, number), host.empty((cells, 3), number)
        for here, (value, *components) in self._synthesize_blocks(re, im, [(False, self._one)] * 4):
            values[here] = value
            for axis, component in enumerate(components):
                vectors[here, axis] = component
            del value, components, component  # free the memory for the next block
        return values, vectors

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a function and a gradient from azimuthal modes, see :meth:`RingTransform.gradient`."""
        if re.ndim > 3:
            of_values, of_components, of_radial = zip(*map(self.gradient, re, im), strict=True)
            return np.stack(of_values), np.stack(of_components, axis=1), np.stack(of_radial)
        host, cells, number = host_backend(), self.mesh.cells, self.mesh.volumes.dtype
        outputs = _gradient_outputs(self._one, self._over_sine)
        values, components = host.empty(cells, number), host.empty((2, cells), number)
        radial = host.empty(cells if len(re) > 3 else 0, number)
        for here, (value, north, east, *along) in self._synthesize_blocks(re, im, outputs[: len(re)]):
            values[here], components[0, here], components[1, here] = value, east, north
            if along:
                radial[here] = along[0]
            del value, north, east, along  # free the memory for the next block
        return values, components, radial

    def _synthesize_blocks(self, re: Floats, im: Floats, outputs: Outputs) -> Iterator[tuple[slice, list[Floats]]]:
        """Yield the cells (a slice) of each block of rings, and the values of each function in these cells.

        Function k has the azimuthal modes ``re[k]`` and ``im[k]`` (degree + 1, rings). The pair ``outputs[k]`` states
        whether to take ∂/∂φ of the function, and a factor (rings,).
        """
        host, number = host_backend(), np.result_type(self.mesh.volumes.dtype, np.complex64)
        for block in self._blocks:
            values = []
            for k, (by_order, scale) in enumerate(outputs):
                spectrum = host.empty((block.last_ring - block.first_ring, block.cells // 2 + 1), number)
                host.launch(
                    host.fold_rings, spectrum.size, re[k], im[k], block.cells, block.first_ring, by_order, scale,
                    spectrum,
                )  # fmt: skip
                values.append(host.irfft(spectrum, block.cells, "forward").reshape(-1))
            yield slice(block.start, block.stop), values


def _blocks(mesh: Rings) -> Iterator[_Block]:
    """Yield blocks of adjacent rings that have the same number of cells."""
    counts, start = mesh.ring_cells, mesh.ring_start
    changes = np.flatnonzero(np.diff(counts)) + 1
    for first, last in zip([0, *changes], [*changes, len(counts)], strict=True):
        height = max(host_backend().TRANSFORM_CELLS // int(counts[first]), 1)
        for ring in range(int(first), int(last), height):
            end = min(ring + height, int(last))
            yield _Block(int(counts[first]), ring, end, int(start[ring]), int(start[end]))


def ring_transform(mesh: Rings, degree: int) -> RingTransform:
    """Return the faster transform between the cells of each ring and their azimuthal modes up to ``degree``.

    The transform uses sums if they take at most MAX_PRODUCTS products per cell, else FFTs. A GPU always uses sums:
    FFTs would take one launch for each length of a ring.
    """
    counts = np.asarray(mesh.ring_cells, dtype=np.int64)
    few = float(_products(counts, degree) @ counts) <= mesh.backend.MAX_PRODUCTS * mesh.cells
    return RingSums(mesh, degree) if few else RingFFTs(mesh, degree)
