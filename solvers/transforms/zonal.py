"""Zonal operators: sums Σ_j K(⟨x_i, x_j⟩) w_j over all cells by transforms (Funk–Hecke) instead of cells² terms.

A zonal kernel multiplies harmonics of degree l by a number c_l, the multiplier. Multipliers of e^{βz} are in
exponential.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol

import numpy as np

from ..mesh.checks import as_floats, check_unmasked
from ..mesh.mesh import Floats, Mesh
from .gauss_grid import GaussGrid
from .harmonics import SphereHarmonics, require_harmonics


def kernel_multipliers(dimension: int, kernel: Callable[[Floats], Floats], degrees: int) -> Floats:
    """Return the multipliers c_l of a smooth kernel K(⟨x, y⟩) on S¹ or S², d = ``dimension`` = 2 or 3, by quadrature.

    A convolution with K multiplies harmonics of degree l by c_l (Funk–Hecke), with the Chebyshev (d = 2) or Legendre
    (d = 3) polynomials P_l:

        c_l = |S^{d−2}| ∫ K(z) P_l(z) (1 − z²)^{(d−3)/2} dz ,   z from −1 to 1

    At most ``degrees`` multipliers are returned; a tail of rounding errors is omitted. Raises ValueError for another
    dimension, or if K returns an array of another shape than z.
    """
    if dimension == 2:
        nodes = 4 * degrees
        cosine = np.cos(2 * np.pi / nodes * np.arange(nodes))
        values = np.fft.rfft(_evaluate_kernel(kernel, cosine)).real * (2 * np.pi / nodes)
    elif dimension == 3:
        values = _legendre_multipliers(kernel, degrees)
    else:
        raise ValueError(f"dimension = {dimension}: expected 2 or 3")
    values = values[:degrees]
    significant = np.flatnonzero(np.abs(values) > 1e-16 * np.abs(values).max())
    return np.asarray(values[: int(significant[-1]) + 2 if len(significant) else 1])  # K = 0 has a multiplier 0


def _evaluate_kernel(kernel: Callable[[Floats], Floats], cosine: Floats) -> Floats:
    """Return the values of a kernel K(z) at z = ``cosine`` (n,); a constant result is broadcast to (n,).

    Raises ValueError if K returns an array of another shape.
    """
    values = kernel(cosine)
    check_unmasked("kernel", values)
    values = np.asarray(values, dtype=np.float64)
    if values.shape not in ((), cosine.shape):
        raise ValueError(f"kernel returns an array of shape {values.shape}: expected {cosine.shape}, as z has")
    return np.broadcast_to(values, cosine.shape)


def _legendre_multipliers(kernel: Callable[[Floats], Floats], degrees: int) -> Floats:
    """Return the multipliers 2π ∫ K(cos θ) P_l(cos θ) sin θ dθ of a kernel K on S², l = 0 … degrees − 1.

    The integral over θ from 0 to π is a sum of Gauss's rules on short intervals, accurate to rounding.
    """
    nodes, weights = np.polynomial.legendre.leggauss(20)
    pieces = degrees // 4 + 8
    angle = ((np.arange(pieces)[:, None] + (nodes + 1) / 2) * (np.pi / pieces)).ravel()
    cosine = np.cos(angle)
    density = np.tile(weights, pieces) * (np.pi**2 / pieces) * _evaluate_kernel(kernel, cosine) * np.sin(angle)
    before, now, multipliers = np.zeros_like(cosine), np.ones_like(cosine), np.empty(degrees)
    for l in range(degrees):
        multipliers[l] = density @ now
        before, now = now, ((2 * l + 1) * cosine * now - l * before) / (l + 1)
    return multipliers


def gradient_multipliers(dimension: int, multipliers: Floats) -> Floats:
    """Return the multipliers (degrees,) of a kernel G with G′ = K, from the multipliers of K (degrees,).

    The gradient of G is ∇ₓ G(⟨x, y⟩) = K(⟨x, y⟩) Pₓ y, with Pₓ the projection to the tangent space at x. A multiplier
    is the number by which a convolution with a kernel multiplies harmonics of degree l.
    """
    l = np.arange(len(multipliers))
    above = np.append(multipliers[1:], 0.0)
    below = np.append(0.0, multipliers[:-1])
    result = np.zeros(len(multipliers))
    result[1:] = (below - above)[1:] / (2 * l + dimension - 2)[1:]
    return result


def radial_multipliers(dimension: int, multipliers: Floats) -> Floats:
    """Return the multipliers (degrees,) of the kernel z K(z), z = ⟨x, y⟩, from the multipliers of K(z) (degrees,).

    A multiplier is the number by which a convolution with a kernel multiplies harmonics of degree l. The kernel z K
    gives the component along x of the vector Σ_j y_j K(⟨x, y_j⟩) w_j.
    """
    l = np.arange(len(multipliers))
    above = np.append(multipliers[1:], 0.0)
    below = np.append(0.0, multipliers[:-1])
    result = above.copy()  # degree 0
    result[1:] = ((l * below + (l + dimension - 2) * above)[1:]) / (2 * l + dimension - 2)[1:]
    return result


class ZonalOperator(Protocol):
    """Operator of sums Σ_j K(⟨x_i, x_j⟩) w_j over point masses w_j at the cell centers x_j of a circle or a sphere."""

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K(⟨x_i, x_j⟩) w_j and ∇Σ_j G(⟨x_i, x_j⟩) w_j + x_i Σ_j R(⟨x_i, x_j⟩) w_j at the cell centers.

        Parameters
        ----------
        masses : (cells,) array
            Masses w of the cells; on the circle also (..., cells) with independent rows.

        Returns
        -------
        values : (cells,) array
            The sums of K.
        vectors : (cells, d) array
            The sums of G and R; without R tangent at x_i.
        """
        ...

    def of_density(self, density: Floats, uniform: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K(⟨x_i, x_j⟩) w_j and ∇Σ_j G(⟨x_i, x_j⟩) w_j + x_i Σ_j R(⟨x_i, x_j⟩) w_j for a density.

        The masses w_j are density times volume of the cells, and x the cell centers, as in :meth:`apply`. A uniform
        part of the density is summed in closed form, without the error of the sum over cells.

        Parameters
        ----------
        density : (cells,) array
            Density, which includes the uniform part; on the circle also (..., cells).
        uniform : float or () array
            The uniform part of the density; on the circle also (...,) for several rows.

        Returns
        -------
        values : (cells,) array
            The sums of K.
        vectors : (cells, d) array
            The sums of G and R.
        """
        ...


class CircleZonal:
    """Zonal sums on the circle: circular convolutions with the sampled kernels K, G and R.

    The sums over cells are exact to rounding for any kernel, also for a kernel narrower than a cell.

    Parameters
    ----------
    mesh : Mesh
        A circle.
    value, gradient : (degrees,) array
        Multipliers of K and G.
    radial : (degrees,) array, optional
        Multipliers of R.
    """

    def __init__(self, mesh: Mesh, value: Floats, gradient: Floats, radial: Floats | None = None) -> None:
        self.mesh = mesh
        to_device = mesh.backend.to_device
        kernels = [
            self._sample_kernels(value, np.cos),
            self._sample_kernels(-gradient * np.arange(len(gradient)), np.sin),
        ]
        self._integrals = to_device(np.array([value[0], 0.0 if radial is None else radial[0]]))  # ∫K and ∫R
        if radial is not None:
            kernels.append(self._sample_kernels(radial, np.cos))
        self._kernels = to_device(np.fft.rfft(np.stack(kernels)))
        self._tangent = mesh.backend.xp.stack([-mesh.centers[:, 1], mesh.centers[:, 0]], axis=1)

    @classmethod
    def of_rows(cls, operators: Sequence[CircleZonal]) -> CircleZonal:
        """Return one operator of zonal sums for rows of masses on one circle, each row with its own kernels.

        Parameters
        ----------
        operators : sequence of CircleZonal
            Operators of the rows, on the same mesh.

        Returns
        -------
        CircleZonal
            Operator for masses (rows, cells).
        """
        rows = copy(operators[0])
        rows._kernels = rows.mesh.backend.xp.stack([operator._kernels for operator in operators])
        rows._integrals = rows.mesh.backend.xp.stack([operator._integrals for operator in operators])
        return rows

    def _sample_kernels(self, multipliers: Floats, wave: Callable[[Floats], Floats]) -> Floats:
        """Return the kernel (m₀ wave(0) + 2 Σ_{l ≥ 1} m_l wave(lφ))/2π at the cells; ``wave`` is cos or sin."""
        angle = float(self.mesh.volumes[0]) * np.arange(self.mesh.cells, dtype=np.float64)
        values = np.zeros(self.mesh.cells)
        for degree, multiplier in enumerate(multipliers):
            values += (1.0 if degree == 0 else 2.0) / (2 * np.pi) * multiplier * wave(degree * angle)
        return values

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K w_j (..., cells) and vectors ∇Σ_j G w_j + x_i Σ_j R w_j (..., cells, 2) of masses w.

        The masses are (..., cells). K, G and R are functions of ⟨x_i, x_j⟩ at the cell centers x. Without R the vectors
        are tangent to the circle.
        """
        backend, cells = self.mesh.backend, self.mesh.cells
        found = backend.irfft(backend.rfft(masses)[..., None, :] * self._kernels, cells)
        values, slope, *radial = (found[..., k, :] for k in range(self._kernels.shape[-2]))
        vectors = slope[..., None] * self._tangent
        for part in radial:
            vectors += part[..., None] * self.mesh.centers
        return values, vectors

    def of_density(self, density: Floats, uniform: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K w_j (..., cells) and vectors ∇Σ_j G w_j + x_i Σ_j R w_j (..., cells, 2) of a density, w = ρ V.

        The kernels K, G and R are functions of ⟨x_i, x_j⟩ at the cell centers x; V are the cell volumes, ρ (..., cells)
        the density. The part ``uniform`` (...,) of each density is summed in closed form.
        """
        uniform = self.mesh.backend.xp.asarray(uniform)
        values, vectors = self.apply((density - uniform[..., None]) * self.mesh.volumes)
        of_value, of_radial = self._integrals[..., 0], self._integrals[..., 1]
        values += (of_value * uniform)[..., None]
        if self._kernels.shape[-2] > 2:
            vectors += (of_radial * uniform)[..., None, None] * self.mesh.centers
        return values, vectors


class SphereZonal:
    """Zonal sums on the sphere with multipliers of the kernels K, G and R; the gradient is (∂θ, ∂φ/sin θ) as vectors.

    Parameters
    ----------
    mesh : Mesh or GaussGrid
        A sphere of rings.
    value, gradient : (degrees,) array
        Multipliers of K and G.
    radial : (degrees,) array, optional
        Multipliers of R.
    """

    def __init__(self, mesh: Mesh | GaussGrid, value: Floats, gradient: Floats, radial: Floats | None = None) -> None:
        self.mesh = mesh
        self._harmonics = SphereHarmonics(mesh, len(value))  # one degree more, for the derivative along θ
        multipliers = np.stack([value, gradient, *([] if radial is None else [radial])])
        self._multipliers = mesh.backend.to_device(np.pad(multipliers, ((0, 0), (0, 1))))

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K w_j (cells,) and the vectors ∇Σ_j G w_j + x_i Σ_j R w_j (cells, 3) of masses w (cells,).

        K, G and R are functions of ⟨x_i, x_j⟩ at the cell centers x. Without R the vectors are tangent to the sphere.
        """
        return self._harmonics.gradient(self._harmonics.along_rings.analysis(masses), self._multipliers)

    def of_density(self, density: Floats, uniform: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K w_j (cells,) and the vectors ∇Σ_j G w_j + x_i Σ_j R w_j (cells, 3) of a density, w = ρ V.

        K, G and R are functions of ⟨x_i, x_j⟩ at the cell centers x; V are the cell volumes, ρ (cells,) the density.
        The part ``uniform`` () of the density is summed in closed form.
        """
        modes = self._harmonics.along_rings.of_density(density, uniform)
        return self._harmonics.gradient(modes, self._multipliers, uniform)

    def along_rings(self, density: Floats, uniform: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j K w_j and the components east and north of ∇Σ_j G w_j for a density.

        K and G are functions of ⟨x_i, x_j⟩ at the cell centers x, and w_j is density times volume of cell j.

        Parameters
        ----------
        density : (cells,) or (rows, cells) array
            Densities.
        uniform : () or (rows,) array
            Uniform parts of the densities.

        Returns
        -------
        values : (cells,) or (rows, cells) array
            The sums of K.
        components : (2, cells) or (2, rows, cells) array
            The components of the gradient.
        """
        modes = self._harmonics.along_rings.of_density(density, uniform)
        return self._harmonics.gradient_along_rings(modes, self._multipliers[:2], uniform)


def zonal_operator(mesh: Mesh, value: Floats, gradient: Floats, radial: Floats | None = None) -> ZonalOperator:
    """Return the operator of sums over all cells with zonal kernels K, G and R, by transforms (Funk–Hecke).

    A zonal kernel K(⟨x, y⟩) multiplies harmonics of degree l by a number, its multiplier. For a kernel given as a
    function use :class:`~solvers.Zonal`.

    Parameters
    ----------
    mesh : Mesh
        A circle, or a sphere of rings.
    value : (degrees,) array
        Multipliers of K.
    gradient : (degrees,) array
        Multipliers of G.
    radial : (degrees,) array, optional
        Multipliers of R.

    Returns
    -------
    ZonalOperator
        Object with ``apply(masses)``, which returns Σ_j K(⟨x_i, x_j⟩) w_j (cells,) and the vectors ∇Σ_j G(⟨x_i, x_j⟩)
        w_j + x_i Σ_j R(⟨x_i, x_j⟩) w_j (cells, d) of masses w; and ``of_density(density, uniform)``, which returns
        these sums for a density whose uniform part, a number, is summed in closed form.

    Raises
    ------
    TypeError
        For multipliers that are not real numbers.
    ValueError
        For another mesh, without multipliers, or for multipliers of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import sphere, zonal_operator
    >>> mesh = sphere(16)
    >>> multipliers = np.array([0.0, 4 * np.pi / 3])  # K = G = ⟨x, y⟩
    >>> masses = np.zeros(mesh.cells)
    >>> masses[0] = 1.0
    >>> values, vectors = zonal_operator(mesh, multipliers, multipliers).apply(masses)
    >>> bool(np.allclose(values, mesh.centers @ mesh.centers[0]))
    True
    """
    require_harmonics(mesh)
    value = as_floats("value", value)
    if value.ndim != 1 or not len(value):
        raise ValueError(f"value of shape {value.shape}: expected (degrees,), at least one")
    gradient = _as_multipliers("gradient", gradient, value)
    radial = None if radial is None else _as_multipliers("radial", radial, value)
    return _OPERATORS[mesh.manifold](mesh, value, gradient, radial)


def _as_multipliers(name: str, multipliers: Floats, value: Floats) -> Floats:
    """Return the multipliers of a derivative as floating-point numbers, as many as the multipliers ``value``.

    Raises ValueError for another number; ``name`` is the name of the argument in the message.
    """
    found: Floats = as_floats(name, multipliers)
    if found.shape != value.shape:
        raise ValueError(f"{name} of shape {found.shape}: expected {value.shape}, the shape of value")
    return found


_OPERATORS: dict[str, type[CircleZonal] | type[SphereZonal]] = {"circle": CircleZonal, "sphere": SphereZonal}
