"""Transforms along the rings of a sphere: from cells to azimuthal modes, and from modes to values and vectors."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..mesh.mesh import Floats, Mesh
from .gauss_grid import GaussGrid

Rings = Mesh | GaussGrid
Outputs = list[tuple[bool, Floats]]  # for each set of modes: whether to take ∂/∂φ, and a factor (rings,)
PRODUCTS = 16  # products that take as long as one item of other kernels, the unit for the number of threads


class RingTransform:
    """Transform between the cells of a sphere's rings of latitude and azimuthal modes m = 0 … degree on each ring.

    Sums over all cells of a ring are exact for every order, also beyond half of a ring's cells. ``half`` counts the
    northern rings and that on the equator.
    """

    def __init__(self, mesh: Rings, degree: int) -> None:
        self.mesh, self._shape = mesh, (degree + 1, (len(mesh.ring_cells) + 1) // 2)
        backend, ones = mesh.backend, np.ones(len(mesh.ring_cells))
        to_device = backend.to_device
        self._ones = to_device(ones)
        over_sine = 1.0 / mesh.ring_axis[0]
        north_and_east = [(False, -over_sine), (True, over_sine)]
        of_gradient = _stack_outputs([(False, ones), *north_and_east, (False, ones)], [0, 1, 0, 2])  # east first
        self._of_gradient = list(map(to_device, of_gradient))
        self._of_value = list(map(to_device, _stack_outputs([(False, ones)], [0])))
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
        """Return the azimuthal modes Σ_j w_j e^{−imφ_j} over the cells j of each ring, for masses w (..., cells).

        The result is (..., 4, degree + 1, half) for the northern rings and that on the equator. The axis of 4 holds re
        and im for the sum of the modes of mirrored rings, then for the difference. ``masses`` have at most two
        dimensions.
        """
        return self._analysis(masses, None, self._ones)

    def of_density(self, density: Floats, level: Floats | None) -> Floats:
        """Return the azimuthal modes of the masses (ρ_j − level) V_j on each ring, for a density ρ (..., cells).

        V are the cell volumes, ``level`` (...) is a number for each density, or None for 0. The result is that of
        :meth:`analysis`.
        """
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
        """Return the values (cells,) of a real function from its azimuthal modes, re and im (1, degree + 1, rings)."""
        return self._functions(re, im, *self._of_value)[0]

    def vectors(self, re: Floats, im: Floats) -> tuple[Floats, Floats]:
        """Return a function (cells,) and vectors (cells, 3) from azimuthal modes, re and im (4, degree + 1, rings).

        The four sets of modes belong to the function and to the three components of the vectors.
        """
        values, components = self._functions(re, im, *self._of_vectors)
        return values, self.mesh.backend.xp.ascontiguousarray(components.T)

    def gradient(self, re: Floats, im: Floats) -> tuple[Floats, Floats, Floats]:
        """Return f (..., cells), ∇p (2, ..., cells) and r (..., cells), from azimuthal modes of functions f, p and r.

        The components of the gradient are east and north. The modes, re and im (..., 3 or 4, degree + 1, rings), are
        those of f, sin θ ∂p/∂θ, p and r. With 3 sets of modes r is empty.
        """
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
        re, im = (each.reshape(-1, *each.shape[-3:]) for each in (re, im))
        backend = self.mesh.backend
        values = backend.empty((*shape, cells), number)  # separate, so that the memory can be freed before the fields
        fields = backend.empty((sets - 1, *shape, cells), number)
        backend.launch(
            backend.ring_functions, len(re) * sets * self._work, re, im, by_order, scales, places, *self._rings,
            *self._tables, values.reshape(-1, cells), fields.reshape(sets - 1, len(re), cells),
        )  # fmt: skip
        return values, fields


def _stack_outputs(outputs: Outputs, places: list[int]) -> tuple[Floats, Floats, Floats]:
    """Return the outputs of a transform as arrays: flags (sets,), factors (sets, rings) and result rows (sets,).

    An output is one function with its own set of azimuthal modes. The flag is whether to take ∂/∂φ of the function, the
    factor (rings,) multiplies its modes, and ``places`` are the rows of the result of
    :meth:`RingTransform._functions`.
    """
    by_order, scales = zip(*outputs, strict=True)
    return np.array(by_order), np.stack(scales), np.array(places)


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
