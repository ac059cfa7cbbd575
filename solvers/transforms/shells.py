"""Sums over shells of points rω with the kernel e^{b⟨ω,ω'⟩}, b = b(r, r'), by transforms of the directions.

On each pair of shells the kernel is zonal and multiplies a mode of degree l by a number (Funk–Hecke). These numbers
form a dense matrix between shells for each degree. On the sphere they are c_l(b) = 2π ∫ e^{bz} P_l(z) dz. On the circle
they are the discrete Fourier transform of the kernel at the angles between cells, so that sums over cells are exact for
any b.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from ..backends import backend_for
from ..mesh.mesh import Floats, Mesh
from .exponential import exponential_degree
from .harmonics import Complexes, SphereHarmonics
from .uniform import uniform_share


class CircleShells:
    """Sums over shells of points rω with the kernel e^{b⟨ω,ω'⟩} for any b, with directions ω at the cells of a circle.

    ``multipliers`` returns the kernel's factor for each Fourier mode.
    """

    largest_exponent = np.inf

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        half = mesh.cells // 2
        angle, degree = float(mesh.volumes[0]) * np.arange(half + 1), np.arange(half + 1)
        twice = np.where((degree == 0) | (2 * degree == mesh.cells), 1.0, 2.0)  # the other angles are symmetric
        cosines = twice[:, None] * np.cos(angle[:, None] * degree)
        self.multipliers = Multipliers(*map(mesh.backend.to_device, (np.cos(angle), cosines)))

    def sums(self, kernel: Floats, masses: Floats, levers: Floats) -> tuple[Floats, Floats]:
        """Return the sums Z and N of a kernel K over all source shells, for each target shell and direction ω.

            Z_i(ω) = Σ_j Σ_ω' K_ij(⟨ω,ω'⟩) m_j(ω') ,    N_i(ω) = Σ_j Σ_ω' K_ij(⟨ω,ω'⟩) m_j(ω') λ_j ω'

        Target shell i and source shell j consist of points rω of equal radius r, with directions at the cells of a
        circle. m_j are masses, λ_j are the factors ``levers``. Arguments and results are those of
        :meth:`SphereShells.sums`.
        """
        axes, xp = self.mesh.centers.T, self.mesh.backend.xp
        fields = xp.concatenate([xp.ones_like(axes[:1]), axes])[None] * masses[:, None]
        fields[:, 1:] *= levers[:, None, None]
        spectrum = xp.fft.rfft(fields).transpose(2, 0, 1)
        values = xp.fft.irfft(_convolve_shells(kernel, spectrum).transpose(1, 2, 0), self.mesh.cells)
        return values[:, 0], values[:, 1:].swapaxes(1, 2)


class SphereShells:
    """Sums over shells of points rω with the kernel e^{b⟨ω,ω'⟩}, with directions ω at the cells of a sphere.

    ``multipliers`` returns the kernel's factor for each degree of harmonics, for |b| up to ``largest_exponent``.

    The uniform part of a nearly uniform shell is summed in closed form, so that a uniform shell exerts no tangential
    force. For clusters the sums over cells are used, since the difference, O(h²), may be comparatively large.
    :func:`uniform_share` interpolates between both, shell by shell.
    """

    largest_exponent = 100.0

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        degree = exponential_degree(3, self.largest_exponent)
        self._harmonics = SphereHarmonics(mesh, degree)
        nodes, weights = leggauss(degree + 1)  # e^{bz} P_l is of degree 2·degree to rounding
        polynomials = 2 * np.pi * weights[:, None] * legvander(nodes, degree)
        self.multipliers = Multipliers(*map(mesh.backend.to_device, (nodes, polynomials)))

    def sums(self, kernel: Floats, masses: Floats, levers: Floats) -> tuple[Floats, Floats]:
        """Return the sums Z and N of a kernel K over all source shells, for each target shell and direction ω.

            Z_i(ω) = Σ_j Σ_ω' K_ij(⟨ω,ω'⟩) m_j(ω') ,    N_i(ω) = Σ_j Σ_ω' K_ij(⟨ω,ω'⟩) m_j(ω') λ_j ω'

        Target shell i and source shell j consist of points rω of equal radius r, with directions at the cells of a
        sphere.

        kernel   (degrees, n, m) multipliers of K between n target shells and m source shells
        masses   (m, directions) masses m_j
        levers   (m,) factors λ: the radii, for vectors λω'

        Returns Z (n, directions) and N (n, directions, d). Errors are a few roundings of the largest value on a shell.
        """
        mean, flat = masses.sum(axis=1), self.mesh.volumes / self.mesh.volume
        mean = mean * uniform_share(masses - mean[:, None] * flat, mean)
        rest = masses - mean[:, None] * flat
        values = self._convolve(kernel, rest, levers)
        moments = self.mesh.backend.xp.stack([mean, mean * levers])
        uniform = kernel[:2] @ moments.T / self.mesh.volume  # c₀ for Z, c₁ for ⟨ω, N⟩
        normalizer = values[:, 0] + uniform[0, :, 0, None]
        return normalizer, values[:, 1:].swapaxes(1, 2) + uniform[1, :, 1, None, None] * self.mesh.centers

    def _convolve(self, kernel: Floats, masses: Floats, levers: Floats) -> Floats:
        """Return the sums Z and N of a kernel over source shells, by harmonic transforms: (n, 4, directions), Z first.

        Z_i(ω) = Σ_j Σ_ω' K_ij(⟨ω,ω'⟩) m_j(ω') for target shell i and source shells j; N has the factor λ_j ω' in
        addition. The arguments are those of :meth:`sums`.
        """
        harmonics, empty = self._harmonics, self.mesh.backend.empty
        modes = empty((len(kernel), len(masses), 4, len(kernel)), complex)
        for j, (mass, lever) in enumerate(zip(masses, levers, strict=True)):
            for c, factor in enumerate([1.0, *(lever * self.mesh.centers.T)]):
                modes[:, j, c] = harmonics.analysis(mass * factor)
        spread = _convolve_shells(kernel, modes)
        values: Floats = empty((spread.shape[1], 4, self.mesh.cells))
        for i in range(len(values)):
            values[i, 0], vectors = harmonics.vectors(spread[:, i].swapaxes(0, 1))
            values[i, 1:] = vectors.T
        return values


class Multipliers:
    """Factors by which a convolution with e^{b⟨ω,ω'⟩ − |b|} multiplies each degree of harmonics, from values at nodes.

    nodes      (nodes,) values of z = ⟨ω,ω'⟩
    transform  (nodes, degrees) matrix from kernel values at the nodes to multipliers

    The last result is cached: constant radii need no new evaluation.
    """

    def __init__(self, nodes: Floats, transform: Floats) -> None:
        self._nodes, self._transform = nodes, transform
        self._last = np.empty((0, 0)), np.empty((0, 0, 0))  # exponents and result, assigned together for thread safety

    def of(self, exponents: Floats) -> Floats:
        """Return the multipliers (degrees, n, m) of the kernels e^{b⟨ω,ω'⟩ − |b|} for exponents b (n, m) on the host.

        A convolution with a kernel multiplies harmonics of degree l by the multiplier l.
        """
        known, found = self._last
        if not np.array_equal(exponents, known):
            placed = backend_for(self._nodes).to_device(exponents)
            samples = np.exp(placed[..., None] * self._nodes - np.abs(placed)[..., None])
            found = (samples @ self._transform).transpose(2, 0, 1).copy()
            self._last = exponents, found
        return found


def _convolve_shells(kernel: Floats, modes: Complexes) -> Complexes:
    """Return the modes (degrees, n, …) of n target shells: for each degree a matrix (n, m) times the modes of m shells.

    kernel  (degrees, n, m) the matrices
    modes   (degrees, m, …) modes of the source shells
    """
    flat = modes.ravel().reshape(*modes.shape[:2], -1).view(np.float64)  # contiguous
    spread = kernel @ flat
    return spread.view(np.complex128).reshape(*spread.shape[:2], *modes.shape[2:])


def shells(mesh: Mesh) -> CircleShells | SphereShells:
    """Return an object that sums e^{b⟨ω,ω'⟩} over shells of points rω, with directions ω at the cells of a mesh.

    The mesh is a circle or a sphere of rings.
    """
    return _SHELLS[mesh.manifold](mesh)


_SHELLS: dict[str, type[CircleShells] | type[SphereShells]] = {"circle": CircleShells, "sphere": SphereShells}
