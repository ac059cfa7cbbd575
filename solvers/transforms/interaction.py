"""Interactions of a field with itself: sums ∫K(x, y) u(y) dy over all cells, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_mesh, check_unmasked
from ..mesh.mesh import Floats, Mesh
from .uniform import uniform_share
from .zonal import kernel_multipliers, zonal_operator

Kernel = Callable[[Floats], Floats]
TILE_BYTES = 1 << 26  # size of a tile of a dense kernel
NODES = 4  # of Gauss's rule along each axis of a cell, for averages of kernels; an even rule has no node at 0


class Zonal:
    """Sums ∫K(⟨x, y⟩) u(y) dy on the circle or the sphere by transforms (Funk–Hecke): ``potential`` and its gradient.

    kernel   K(z), z from −1 to 1, as ``lambda z: 2.0 * z``, or multipliers (degrees,): the eigenvalue of each degree
    tol      largest fraction of K in the omitted degrees; ``truncation`` is the actual fraction
    On the sphere the sums of a uniform field are exact, those of a nearly uniform field nearly so (see `.uniform`).
    The velocity ``drift(u)`` is an attraction where K increases: Kuramoto's oscillators have K = coupling · z.
    The error in every cell is about 1e-13 of the largest sum, max ∫|K||u|. A quotient or logarithm of much smaller
    sums, as far from all mass with a steep K, is inaccurate: `exponential_sums` and DenseKernel keep the relative
    accuracy. Raises ValueError for another mesh, and where the kernel needs more degrees than the mesh has rings or
    cells: the message reports the lost fraction.
    """

    def __init__(self, mesh: Mesh, kernel: Kernel | Floats, tol: float = 1e-12) -> None:
        check_mesh(mesh)
        check_unmasked("kernel", kernel)
        if mesh.manifold not in _MAX_DEGREES:
            raise ValueError(f"Zonal on a {mesh.manifold}: expected a circle or a sphere of rings; else DenseKernel")
        if not 0 < tol < 1:
            raise ValueError(f"tol = {tol}: expected a number between 0 and 1")
        self.mesh, max_degree, d = mesh, _MAX_DEGREES[mesh.manifold](mesh), mesh.ambient_dimension
        found = (
            kernel_multipliers(d, _checked(kernel), 2 * max_degree)
            if callable(kernel)
            else np.asarray(kernel, dtype=np.float64)
        )
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
            raise ValueError("kernel: expected finite numbers, a function K(z) or multipliers (degrees,)")
        l = np.arange(len(found))
        parts = np.abs(found) * (np.where(l > 0, 2.0, 1.0) if d == 2 else 2 * l + 1)
        beyond = np.append(np.cumsum(parts[::-1])[::-1], 0.0) / max(parts.sum(), np.finfo(float).tiny)
        degrees = min(int(np.argmax(beyond <= tol)), max_degree)
        self.truncation = float(beyond[degrees])
        if self.truncation > max(tol, 1e-3):
            raise ValueError(
                f"kernel: {degrees} degrees omit {self.truncation:.1e} of it; expected a finer mesh or a larger tol"
            )
        self.multipliers = np.append(found[:degrees], 0.0)[: max(degrees, 2)]
        self._operator = zonal_operator(mesh, self.multipliers, self.multipliers)

    def potential(self, u: Floats) -> Floats:
        """Return ∫K(⟨x, y⟩) u(y) dy (cells) for u (cells)."""
        return self._applied(u)[0]

    def drift(self, u: Floats) -> Floats:
        """Return ∇ of :meth:`potential`, (cells, d), tangent."""
        return self._applied(u)[1]

    def _applied(self, u: Floats) -> tuple[Floats, Floats]:
        check_array("u", u, (self.mesh.cells,))
        masses = u * self.mesh.volumes
        if self.mesh.dimension == 1:  # sums of uniform densities are exact on the circle
            return self._operator.apply(masses)
        mean = masses.sum() / self.mesh.volume
        share = uniform_share(masses - mean * self.mesh.volumes, np.abs(masses).sum())
        return self._operator.of_density(u, share * mean)


_MAX_DEGREES: dict[str, Callable[[Mesh], int]] = {
    "circle": lambda mesh: mesh.cells // 2,
    "sphere": lambda mesh: len(mesh.ring_cells),
}


class Convolution:
    """Convolution ∫K(x − y) u(y) dy on a box of equal cells by FFT: ``potential`` and its gradient ``drift``.

    kernel     K(r), r (n, d) → (n,): averaged over cells, so that K may be singular at 0, such as −log|r|/2π
    gradient   ∇K(r), (n, d) → (n, d), also averaged; by default differences of K over two cells
    Along periodic axes r is the shortest of all images; along other axes u is 0 outside the box.
    Raises ValueError for other meshes.
    """

    def __init__(self, mesh: Mesh, kernel: Kernel, gradient: Kernel | None = None) -> None:
        check_mesh(mesh)
        check_call("kernel", kernel, "r")
        if gradient is not None:
            check_call("gradient", gradient, "r")
        host = mesh.on_host
        shape = host.shape or ((host.cells,) if host.dimension == 1 and host.centers.shape[1] == 1 else ())
        if len(shape) != host.centers.shape[1] or np.ptp(host.volumes) > 1e-9 * host.volumes.max():
            raise ValueError(f"Convolution on a {mesh.manifold}: expected an interval or a box of equal cells")
        self.mesh, self._shape = mesh, shape
        grid = host.centers.reshape(*shape, -1)
        widths = np.array([np.take(grid[..., c], 1, c).flat[0] - grid[..., c].flat[0] for c in range(len(shape))])
        periodic = [bool(host.periods) and np.isfinite(host.periods[c]) for c in range(len(shape))]
        self._padded = tuple(n if around else 2 * n for n, around in zip(shape, periodic, strict=True))
        steps = [np.fft.fftfreq(n, 1 / n) * width for n, width in zip(self._padded, widths, strict=True)]
        offsets = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, len(shape))
        self._potential = self._spectrum(_averaged(kernel, offsets, widths))
        slopes = _slopes(kernel, offsets, widths) if gradient is None else _averaged(gradient, offsets, widths).T
        for c, (slope, around, n) in enumerate(zip(slopes, periodic, shape, strict=True)):
            if around and n % 2 == 0:  # the slopes of both images cancel at half a period
                slope.reshape(self._padded)[(slice(None),) * c + (n // 2,)] = 0.0
        self._slopes = [self._spectrum(slope) for slope in slopes]

    def potential(self, u: Floats) -> Floats:
        """Return ∫K(x − y) u(y) dy (cells) for u (cells)."""
        return self._inverse(self._forward(u) * self._potential)

    def drift(self, u: Floats) -> Floats:
        """Return ∇ of :meth:`potential`, (cells, d)."""
        spectrum = self._forward(u)
        return np.stack([self._inverse(spectrum * slope) for slope in self._slopes], axis=1)

    def _spectrum(self, values: Floats) -> Any:
        if not np.isfinite(values).all():
            raise ValueError("kernel: expected finite numbers at all offsets but 0")
        return np.fft.rfftn(values.reshape(self._padded))

    def _forward(self, u: Floats) -> Any:
        check_array("u", u, (self.mesh.cells,))
        return np.fft.rfftn((u * self.mesh.volumes).reshape(self._shape), self._padded, axes=range(len(self._shape)))

    def _inverse(self, spectrum: Any) -> Floats:
        values = np.fft.irfftn(spectrum, self._padded, axes=range(len(self._shape)))
        return np.ascontiguousarray(values[tuple(slice(n) for n in self._shape)]).reshape(-1)


class DenseKernel:
    """Sums ∫K(x, y) u(y) dy on any mesh, in tiles of cells: cells² evaluations of K at each call.

    kernel   K(x (m, 1, d), y (1, n, d)) → (m, n), or (m, n, d) for a velocity
    """

    def __init__(self, mesh: Mesh, kernel: Callable[[Floats, Floats], Floats]) -> None:
        check_mesh(mesh)
        check_call("kernel", kernel, "x, y")
        self.mesh, self.kernel = mesh, kernel

    def __call__(self, u: Floats) -> Floats:
        """Return (cells,) or (cells, d) sums for u (cells)."""
        check_array("u", u, (self.mesh.cells,))
        x, masses = self.mesh.centers, u * self.mesh.volumes
        rows = max(TILE_BYTES // (8 * self.mesh.cells * x.shape[1]), 1)
        tiles = [self.kernel(x[i : i + rows, None], x[None]) for i in range(0, self.mesh.cells, rows)]
        check_unmasked("kernel", tiles[0])
        xp = self.mesh.backend.xp
        sums: Floats = xp.concatenate([xp.einsum("mn...,n->m...", tile, masses) for tile in tiles])
        return sums


def _checked(kernel: Kernel) -> Kernel:
    """Return K(z) with as many values as z, which raises TypeError and ValueError for other functions."""
    check_call("kernel", kernel, "z")

    def values(z: Floats) -> Floats:
        found = kernel(z)
        check_unmasked("kernel", found)
        found = np.asarray(found)
        if found.dtype.kind not in "fiub" or found.shape not in ((), z.shape):
            raise ValueError(f"kernel returns {found.dtype} of shape {found.shape}: expected real {z.shape}, as z")
        if not np.isfinite(found).all():
            raise ValueError("kernel: expected finite numbers, a function K(z) or multipliers (degrees,)")
        return np.asarray(np.broadcast_to(found, z.shape), dtype=np.float64)

    return values


def _averaged(kernel: Kernel, offsets: Floats, widths: Floats) -> Floats:
    """Return K averaged over the cell around each offset, (n,) or (n, d), by a rule without a node at the center."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    grids = np.stack(np.meshgrid(*[nodes] * len(widths), indexing="ij"), axis=-1).reshape(-1, len(widths))
    shares = np.prod(np.stack(np.meshgrid(*[weights / 2] * len(widths), indexing="ij"), axis=-1), axis=-1).reshape(-1)
    total: Any = 0.0
    for share, node in zip(shares, grids, strict=True):
        found = kernel(offsets + node * widths / 2)
        check_unmasked("kernel", found)
        total = total + share * np.asarray(found, dtype=np.float64)
    return np.asarray(total)


def _slopes(kernel: Kernel, offsets: Floats, widths: Floats) -> list[Floats]:
    """Return ∂K along each axis, by differences over two cells."""
    found = []
    for c, width in enumerate(widths):
        step = width * np.eye(len(widths))[c]
        ahead, behind = _averaged(kernel, offsets + step, widths), _averaged(kernel, offsets - step, widths)
        found.append((ahead - behind) / (2 * width))
    return found
