"""Interactions of a field with itself: sums ∫K(x, y) u(y) dy over all cells, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_mesh, check_on_host, check_reals, shape_of
from ..mesh.mesh import Floats, Mesh
from .uniform import uniform_share
from .zonal import kernel_multipliers, zonal_operator

Kernel = Callable[[Floats], Floats]
TILE_BYTES = 1 << 26  # size of a tile of a dense kernel
NODES = 4  # of Gauss's rule along each axis of a cell, for averages of kernels; an even rule has no node at 0


class Zonal:
    """Sums ∫K(⟨x, y⟩) u(y) dy on the circle or the sphere by transforms (Funk–Hecke), and their gradients.

    The velocity ``drift(u)`` is an attraction where K increases: Kuramoto's oscillators have K = coupling · z.

    Parameters
    ----------
    mesh : Mesh
        A circle, or a sphere of rings.
    kernel : function z -> K or (degrees,) array
        K for an array of z from −1 to 1, such as ``lambda z: 2.0 * z``, or the multipliers: the eigenvalue of each
        degree.
    tol : float, optional
        Largest fraction of K in the omitted degrees, between 0 and 1. If the mesh has too few degrees, a fraction up to
        1e-3 is accepted.

    Attributes
    ----------
    mesh : Mesh
        The mesh.
    multipliers : (degrees,) array
        Multipliers of the kernel.
    truncation : float
        Fraction of K in the omitted degrees.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, or the kernel takes another number of arguments or is not made of
        real numbers.
    ValueError
        For another mesh, a ``tol`` outside (0, 1), a kernel that returns numbers that are not finite or of another
        shape, and if the mesh has too few rings or cells for the kernel; the message reports the lost fraction.

    Notes
    -----
    The sums of a uniform field are exact. On the sphere those of a nearly uniform field are nearly exact. The error in
    every cell is about 1e-13 of the largest sum, ``max ∫|K||u|``. A quotient or logarithm of much smaller sums, such as
    those far from all mass with a steep K, is inaccurate: :func:`~solvers.exponential_sums` and
    :class:`~solvers.DenseKernel` keep the relative accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Zonal, circle
    >>> mesh = circle(64)
    >>> kuramoto = Zonal(mesh, lambda z: 2.0 * z)
    >>> density = (1 + mesh.centers[:, 0]) / (2 * np.pi)  # mean of x is (1/2, 0)
    >>> bool(np.allclose(kuramoto.potential(density), mesh.centers[:, 0]))
    True
    >>> drift = kuramoto.drift(density)
    >>> bool(np.allclose((drift * mesh.centers).sum(axis=1), 0.0))  # tangent
    True
    """

    def __init__(self, mesh: Mesh, kernel: Kernel | Floats, tol: float = 1e-12) -> None:
        check_mesh(mesh)
        if not callable(kernel):
            check_reals("kernel", kernel, "real numbers (degrees,), the multipliers, or a function K(z)")
        if mesh.manifold not in _MAX_DEGREES:
            raise ValueError(f"Zonal on a {mesh.manifold}: expected a circle or a sphere of rings; else DenseKernel")
        if not 0 < tol < 1:
            raise ValueError(f"tol = {tol}: expected a number between 0 and 1")
        self.mesh, max_degree, d = mesh, _MAX_DEGREES[mesh.manifold](mesh), mesh.ambient_dimension
        found = (
            kernel_multipliers(d, _check_kernel_values(kernel), 2 * max_degree)
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
        """Return ∫K(⟨x, y⟩) u(y) dy at the cell centers.

        Parameters
        ----------
        u : (cells,) array
            Field.

        Returns
        -------
        (cells,) array
            The sums.

        Raises
        ------
        TypeError
            If the field is not an array of floating-point numbers.
        ValueError
            If the field has another shape or is masked.
        """
        return self._apply_to(u)[0]

    def drift(self, u: Floats) -> Floats:
        """Return the gradient of ∫K(⟨x, y⟩) u(y) dy at the cell centers x.

        Parameters
        ----------
        u : (cells,) array
            Field.

        Returns
        -------
        (cells, d) array
            Tangent vectors.

        Raises
        ------
        TypeError
            If the field is not an array of floating-point numbers.
        ValueError
            If the field has another shape or is masked.
        """
        return self._apply_to(u)[1]

    def _apply_to(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the sums ∫K(x, y) u(y) dy (cells,) and their gradients (cells, d) for a field u (cells,)."""
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
    """Convolution ∫K(x − y) u(y) dy on a box of equal cells by FFT, and its gradient.

    Along periodic axes r = x − y is the shortest of all images; along other axes u is 0 outside the box.

    Parameters
    ----------
    mesh : Mesh
        An interval or a box of equal cells.
    kernel : function r (n, d) -> (n,) array
        K, averaged over cells, so that it may be singular at 0, such as ``−log|r|/2π``.
    gradient : function r (n, d) -> (n, d) array, optional
        ∇K, also averaged over cells. By default differences of K over two cells.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, or ``kernel`` or ``gradient`` not a function of one argument that
        returns real numbers.
    ValueError
        For another mesh, such as one on a GPU, and for a kernel that returns an array of another shape, masked numbers
        or numbers that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Convolution, interval
    >>> mesh = interval(0.0, 1.0, 64, periodic=True)
    >>> wave = np.cos(2 * np.pi * mesh.centers[:, 0])
    >>> smooth = Convolution(mesh, lambda r: np.cos(2 * np.pi * r[:, 0]))
    >>> bool(np.allclose(smooth.potential(1 + wave), wave / 2, atol=1e-3))
    True
    """

    def __init__(self, mesh: Mesh, kernel: Kernel, gradient: Kernel | None = None) -> None:
        check_mesh(mesh)
        check_on_host("Convolution", mesh)
        check_call("kernel", kernel, "r")
        if gradient is not None:
            check_call("gradient", gradient, "r")
        host, shape = mesh.on_host, grid_shape(mesh.on_host)
        if not shape:
            raise ValueError(f"Convolution on a {mesh.manifold}: expected an interval or a box of equal cells")
        self.mesh, self._shape, widths = mesh, shape, _widths(host, shape)
        periodic = [bool(host.periods) and np.isfinite(host.periods[c]) for c in range(len(shape))]
        self._padded = tuple(n if around else 2 * n for n, around in zip(shape, periodic, strict=True))
        steps = [np.fft.fftfreq(n, 1 / n) * width for n, width in zip(self._padded, widths, strict=True)]
        offsets = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, len(shape))
        points = offsets.shape
        self._potential = self._spectrum(_average_kernel("kernel", kernel, offsets, widths, points[:1]))
        if gradient is None:
            slopes = _slopes(kernel, offsets, widths)
        else:
            slopes = list(_average_kernel("gradient", gradient, offsets, widths, points).T)
        for c, (slope, around, n) in enumerate(zip(slopes, periodic, shape, strict=True)):
            if around and n % 2 == 0:  # the slopes of both images cancel at half a period
                slope.reshape(self._padded)[(slice(None),) * c + (n // 2,)] = 0.0
        self._slopes = [self._spectrum(slope) for slope in slopes]

    def potential(self, u: Floats) -> Floats:
        """Return ∫K(x − y) u(y) dy at the cell centers.

        Parameters
        ----------
        u : (cells,) array
            Field.

        Returns
        -------
        (cells,) array
            The sums.

        Raises
        ------
        TypeError
            If the field is not an array of floating-point numbers.
        ValueError
            If the field has another shape or is masked.
        """
        return self._inverse(self._forward(u) * self._potential)

    def drift(self, u: Floats) -> Floats:
        """Return the gradient of ∫K(x − y) u(y) dy at the cell centers x.

        Parameters
        ----------
        u : (cells,) array
            Field.

        Returns
        -------
        (cells, d) array
            The gradient.

        Raises
        ------
        TypeError
            If the field is not an array of floating-point numbers.
        ValueError
            If the field has another shape or is masked.
        """
        spectrum = self._forward(u)
        return np.stack([self._inverse(spectrum * slope) for slope in self._slopes], axis=1)

    def _spectrum(self, values: Floats) -> Any:
        """Return the discrete Fourier transform of kernel values on the padded grid."""
        return np.fft.rfftn(values.reshape(self._padded))

    def _forward(self, u: Floats) -> Any:
        """Return the discrete Fourier transform of the masses of a field u (cells,), padded with zeros beyond walls."""
        check_array("u", u, (self.mesh.cells,))
        return np.fft.rfftn((u * self.mesh.volumes).reshape(self._shape), self._padded, axes=range(len(self._shape)))

    def _inverse(self, spectrum: Any) -> Floats:
        """Return the values (cells,) of a function on the padded grid, from its discrete Fourier transform."""
        values = np.fft.irfftn(spectrum, self._padded, axes=range(len(self._shape)))
        return np.ascontiguousarray(values[tuple(slice(n) for n in self._shape)]).reshape(-1)


class DenseKernel:
    """Sums ∫K(x, y) u(y) dy on any mesh, by cells² evaluations of K at each call.

    The object is called with a field u (cells,) and returns the sums at the cell centers, (cells,), or (cells, d) for a
    kernel of vectors. The evaluations are in tiles of cells, which limit the memory.

    Parameters
    ----------
    mesh : Mesh
        Any mesh.
    kernel : function x (m, 1, d), y (1, n, d) -> (m, n) or (m, n, d) array
        K for all pairs of m and n cell centers; of vectors for a velocity.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, or the kernel not a function of two arguments. A call raises it if
        the field is not an array of floating-point numbers, or the kernel returns no real numbers.
    ValueError
        For arrays of the mesh that contradict each other. A call raises it if the field or the kernel's result has
        another shape, or the kernel returns masked numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import DenseKernel, interval
    >>> mesh = interval(0.0, 1.0, 100)
    >>> distance = DenseKernel(mesh, lambda x, y: np.abs(x - y)[..., 0])
    >>> x = mesh.centers[:, 0]
    >>> bool(np.allclose(distance(np.ones(100)), (x**2 + (1 - x) ** 2) / 2, atol=1e-4))  # ∫|x − y| dy
    True
    """

    def __init__(self, mesh: Mesh, kernel: Callable[[Floats, Floats], Floats]) -> None:
        check_mesh(mesh)
        check_call("kernel", kernel, "x, y")
        self.mesh, self.kernel = mesh, kernel

    def __call__(self, u: Floats) -> Floats:
        """Return the sums ∫K(x, y) u(y) dy at the cell centers, (cells,) or (cells, d), for a field u (cells,)."""
        check_array("u", u, (self.mesh.cells,))
        x, masses = self.mesh.centers, u * self.mesh.volumes
        rows = max(TILE_BYTES // (8 * self.mesh.cells * x.shape[1]), 1)
        tiles = [self._tile(x[i : i + rows, None], x[None]) for i in range(0, self.mesh.cells, rows)]
        xp = self.mesh.backend.xp
        sums: Floats = xp.concatenate([xp.einsum("mn...,n->m...", tile, masses) for tile in tiles])
        return sums

    def _tile(self, x: Floats, y: Floats) -> Floats:
        """Return the values of the user's kernel K(x, y), (m, n) or (m, n, d), for x (m, 1, d) and y (1, n, d).

        Raises TypeError unless they are real numbers, and ValueError for another shape.
        """
        found, shape = self.kernel(x, y), (len(x), self.mesh.cells)
        check_reals("kernel", found)
        if shape_of(found)[:2] != shape:
            raise ValueError(f"kernel of shape {shape_of(found)}: expected {shape}, or {(*shape, x.shape[-1])}")
        return found


def grid_shape(mesh: Mesh) -> tuple[int, ...]:
    """Return the numbers of cells along the axes of an interval or a box of equal cells; () for another mesh."""
    d = mesh.ambient_dimension
    shape = mesh.shape or ((mesh.cells,) if mesh.dimension == d == 1 else ())
    if not len(shape) == mesh.dimension == d:
        return ()
    places = np.column_stack(np.unravel_index(np.arange(mesh.cells), shape))
    grid = mesh.centers[0] + _widths(mesh, shape) * places
    is_equal = (
        np.ptp(mesh.volumes) <= 1e-9 * mesh.volumes.max() and np.abs(grid - mesh.centers).max() < 1e-3 * mesh.width
    )
    return shape if is_equal else ()


def _widths(mesh: Mesh, shape: tuple[int, ...]) -> Floats:
    """Return the distances (d,) of neighboring cell centers along the axes of a mesh with ``shape`` cells."""
    grid = mesh.centers.reshape(*shape, -1)
    return np.array([np.take(grid[..., c], 1, c).flat[0] - grid[..., c].flat[0] for c in range(len(shape))])


def _check_kernel_values(kernel: Kernel) -> Kernel:
    """Wrap a user's kernel K(z): the wrapper checks the values of K, and returns as many as z has.

    A constant is broadcast. The wrapper raises TypeError unless K returns real numbers, and ValueError for another
    shape or numbers that are not finite. Raises TypeError unless K is a function of one argument.
    """
    check_call("kernel", kernel, "z")

    def values(z: Floats) -> Floats:
        """Return the checked values of the kernel at z, in the shape of z."""
        found = kernel(z)
        check_reals("kernel", found)
        found = np.asarray(found)
        if found.shape not in ((), z.shape):
            raise ValueError(f"kernel of shape {found.shape}: expected {z.shape}, as z has")
        if not np.isfinite(found).all():
            raise ValueError("kernel: expected finite numbers, a function K(z) or multipliers (degrees,)")
        return np.asarray(np.broadcast_to(found, z.shape), dtype=np.float64)

    return values


def _average_kernel(name: str, kernel: Kernel, offsets: Floats, widths: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the averages of a kernel K(r) over the cells around offsets r (n, d): (n,), or (n, d) for vectors.

    Gauss's rule has no node at the center, where K may be singular. ``shape`` is the expected shape of K at the
    offsets, and ``name`` the kernel's name in messages.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    grids = np.stack(np.meshgrid(*[nodes] * len(widths), indexing="ij"), axis=-1).reshape(-1, len(widths))
    shares = np.prod(np.stack(np.meshgrid(*[weights / 2] * len(widths), indexing="ij"), axis=-1), axis=-1).reshape(-1)
    total: Any = 0.0
    for share, node in zip(shares, grids, strict=True):
        found = kernel(offsets + node * widths / 2)
        check_reals(name, found)
        if shape_of(found) != shape:
            raise ValueError(f"{name} of shape {shape_of(found)}: expected {shape}, for offsets {offsets.shape}")
        total = total + share * np.asarray(found, dtype=np.float64)
    if not np.isfinite(total).all():
        raise ValueError(f"{name}: expected finite numbers at all offsets except 0")
    return np.asarray(total)


def _slopes(kernel: Kernel, offsets: Floats, widths: Floats) -> list[Floats]:
    """Return ∂K/∂r_c (n,) along each axis c of a kernel K(r) at offsets r (n, d), by differences over two cells.

    Values of K are averages over a cell of ``widths`` (d,).
    """
    found = []
    for c, width in enumerate(widths):
        step = width * np.eye(len(widths))[c]
        ahead, behind = (
            _average_kernel("kernel", kernel, moved, widths, offsets.shape[:1])
            for moved in (offsets + step, offsets - step)
        )
        found.append((ahead - behind) / (2 * width))
    return found
