"""Sums over an axisymmetric density on S^{d−1} with the kernel e^{β⟨x,y⟩}, for any d ≥ 2.

A cell represents mass spread evenly over the circle of latitude θ′. The mean kernel at latitude θ is

    K = e^{β cosθ cosθ′} g(|β| sinθ sinθ′),   g = g_ν,  ν = (d − 3)/2,   S¹: cosh, S²: I₀
    ∂_θK/β = K·(−sinθ cosθ′ + cosθ sinθ′ r),   mean of K⟨x,y⟩ = K·(cosθ cosθ′ + sinθ sinθ′ r),   r = ± r_ν

with g_ν, r_ν of solvers/transforms/bessel.py at |β| sinθ sinθ′ and the sign of β. K is positive, so that a sum over
masses is accurate to rounding at every latitude. The expansion Σ_l c_l φ_l(θ)φ_l(θ′) in Gegenbauer functions is
accurate only for the largest Z: on S^{63} at β = 100 with half the mass at a pole, Z in the bulk has an error of 2e-8;
with all mass but 1e-6 at the pole, the error is 2 %. The tables K and K·(…) have 8·cells² bytes each. On one core both
sums take 0.14 ms at 512 cells and 1.5 ms at 2048 (the expansion to degree 260: 0.05 and 0.19 ms), the setup 0.1 s and
4 s.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats, Mesh
from .bessel import log_bessel

MAX_CELLS = 4096


class PolarKernel:
    """Sums ∫K dμ and ∫K⟨x,y⟩ dμ with the kernel K = e^{β⟨x,y⟩} over an axisymmetric measure μ on S^{d−1}.

    The sums and the slope ∂_θ∫K dμ are computed at the cell centers of a mesh of polar angles θ, from the masses
    (cells,) of μ in the cells.

    mesh        polar angles, at most 4096 cells
    dimension   d ≥ 2
    beta        any real number

    All sums at cell i are multiplied by e^{−log_scale[i]}, log_scale (cells,) = max_j log K_ij, to prevent overflow.
    ``uniform_sums`` (2, cells) are ∫K and ∫K⟨x,y⟩ over the uniform distribution, in closed form; the slope of ∫K
    vanishes, and ``uniform_mean`` is the second sum over the first. Special functions are evaluated on the host, the
    tables are stored on the device of the mesh. Raises ValueError for too many cells.
    """

    def __init__(self, mesh: Mesh, dimension: int, beta: float) -> None:
        if mesh.cells > MAX_CELLS:
            raise ValueError(f"{mesh.cells} polar angles: expected at most {MAX_CELLS}, since all pairs are stored")
        self.mesh, to_device = mesh, mesh.backend.to_device
        theta = mesh.on_host.centers[:, 0]
        self._order, self._beta = (dimension - 3) / 2, beta
        cosine, sine = np.cos(theta), np.sin(theta)
        log_kernel, ratio = log_bessel((dimension - 3) / 2, abs(beta) * np.multiply.outer(sine, sine))
        log_kernel += beta * np.multiply.outer(cosine, cosine)
        log_scale = log_kernel.max(axis=1)
        log_mean, mean_cosine = log_bessel(dimension / 2 - 1, np.array([abs(beta)]))
        self.uniform_mean = float(np.sign(beta) * mean_cosine[0])
        uniform_sums = np.exp(log_mean - log_scale) * np.array([[1.0], np.sign(beta) * mean_cosine])
        self.log_scale, self.uniform_sums, self._cosine, self._sine = map(
            to_device, (log_scale, uniform_sums, cosine, sine)
        )
        self._kernel = to_device(np.exp(log_kernel - log_scale[:, None]))
        self._ratio = to_device(ratio if beta >= 0 else -ratio)

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return Z e^{−log_scale} and ∂_θZ e^{−log_scale}/β at the polar angles θ of the cells, both (cells,).

        Z(θ) = ∫e^{β⟨x,y⟩} dμ(y), with ``masses`` (cells,) of the axisymmetric measure μ. At β = 0 the second result is
        the limit.
        """
        return self._kernel @ masses, self._slope @ masses

    def radial(self, masses: Floats) -> Floats:
        """Return ∫ ⟨x,y⟩ e^{β⟨x,y⟩} dμ(y) at the polar angles of the cells, (cells,), times e^{−log_scale}.

        ``masses`` (cells,) are those of the axisymmetric measure μ.
        """
        return self._along @ masses

    def means(self, masses: Floats, cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the mean of ⟨x,y⟩ and ∂_θZ/βZ, both (n,), at ``cells`` (n,), also if Z e^{−log_scale} underflows.

        Z = ∫e^{β⟨x,y⟩} dμ(y), and the mean has the weights e^{β⟨x,y⟩} dμ(y)/Z. ``masses`` (cells,) are those of the
        axisymmetric measure μ. Arguments and results are on the host.
        """
        theta, held = self.mesh.on_host.centers[:, 0], np.flatnonzero(masses > 0)
        cosine, sine = np.cos(theta[cells])[:, None], np.sin(theta[cells])[:, None]
        source_cosine, source_sine = np.cos(theta[held]), np.sin(theta[held])
        logs, ratio = log_bessel(self._order, abs(self._beta) * sine * source_sine)
        logs = logs + self._beta * cosine * source_cosine + np.log(masses[held])
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        ratio = np.copysign(ratio, self._beta)
        radial = (weights * (sine * source_sine * ratio + cosine * source_cosine)).sum(axis=1)
        return radial, (weights * (cosine * source_sine * ratio - sine * source_cosine)).sum(axis=1)

    @cached_property
    def _slope(self) -> Floats:
        """Return the table ∂_θK/β (cells, cells) over pairs of polar angles, times e^{−log_scale}."""
        cosine, sine = self._cosine, self._sine
        slopes: Floats = self._kernel * (cosine[:, None] * sine * self._ratio - sine[:, None] * cosine)
        return slopes

    @cached_property
    def _along(self) -> Floats:
        """Return the table of K⟨x, y⟩ (cells, cells) over pairs of polar angles, times e^{−log_scale}."""
        cosine, sine = self._cosine, self._sine
        parts: Floats = self._kernel * (sine[:, None] * sine * self._ratio + cosine[:, None] * cosine)
        return parts
