"""Initial distributions of the polar angle on S^{d−1}, with mass 1: exact cell averages (cells,), per radian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meanfield.model.errors import ArgumentError
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.deposit_interval import deposit_on_interval
from solvers.transforms.bessel import log_bessel
from solvers.transforms.gegenbauer import gegenbauer
from solvers.transforms.polar import log_masses, uniform_distribution


def initial_uniform(mesh: Mesh, dimension: int) -> Floats:
    """Return the distribution p̄ ∝ sin^{d−2} θ (cells,) of the polar angle of uniform tokens on S^{d−1}."""
    return uniform_distribution(mesh, dimension)


def initial_perturbed(mesh: Mesh, dimension: int, amplitude: float, degrees: int = 12, seed: int = 0) -> Floats:
    """Return the distribution p̄ (a g + √(1 + a²g²)) (cells,), scaled to mass 1, with a Gaussian random function g.

    p̄ is the uniform distribution and a the amplitude. g has unit variance over the sphere, with equal power in degrees
    1 … ``degrees``. For small a·g the result is p̄ e^{a·g}, as on the circle and the sphere. For large d, however, the
    harmonics φ_l of g grow towards the poles, up to the square root of the number of harmonics, and e^{a·g} would have
    all its mass there. The function g depends on ``seed`` and ``degrees``, not on the resolution.
    """
    draws = np.random.default_rng(seed).standard_normal(degrees) * (amplitude / np.sqrt(degrees))

    def log_relative(theta: Floats) -> Floats:
        return np.asarray(np.arcsinh(np.tensordot(draws, gegenbauer(dimension, theta, degrees)[1:], 1)))

    return _distribution(mesh, dimension, log_relative)


def initial_harmonic(mesh: Mesh, dimension: int, degree: int, amplitude: float) -> Floats:
    """Return the distribution p̄ (1 + amplitude·φ_l) (cells,), with the uniform p̄ and an axisymmetric harmonic φ_l.

    φ_l has the degree l and unit mean square. Raises ValueError if the density is negative somewhere. All amplitudes up
    to 1/φ_l(0) in modulus are allowed; larger ones can be allowed only if they are positive and l is even.
    """
    poles = amplitude * gegenbauer(dimension, np.array([0.0, np.pi]), degree)[degree]
    inner = amplitude * gegenbauer(dimension, np.linspace(0.0, np.pi, 4001), degree)[degree]
    lowest = min(poles.min(), inner.min())
    if lowest < -1:
        largest = abs(amplitude) / -lowest
        raise ArgumentError("amplitude", amplitude, f"at most {largest:.4g}, where the density becomes negative")

    def log_relative(theta: Floats) -> Floats:
        return np.asarray(np.log1p(np.maximum(amplitude * gegenbauer(dimension, theta, degree)[degree], -1 + 1e-15)))

    return _distribution(mesh, dimension, log_relative)


def initial_von_mises_fisher(
    mesh: Mesh,
    dimension: int,
    concentrations: Sequence[float],
    masses: Sequence[float],
    cosines: Sequence[float] | None = None,
) -> Floats:
    """Return a mixture Σ_k m_k e^{c_k ⟨x,μ_k⟩} / ∫… (cells,) of von Mises–Fisher densities, averaged about the axis e.

    ``cosines`` are z_k = ⟨μ_k,e⟩, by default 1, and Σ m_k is scaled to 1. Off the axis the density is the mean over all
    rotations about the axis, e^{c z cosθ} g(c √(1 − z²) sinθ), where g(b) = Γ(ν + 1)(2/b)^ν I_ν(b), ν = (d − 3)/2. A
    component with c < 0 is centered at −μ. A component narrower than half a cell is deposited as the circle of latitude
    through its mean, ⟨x,e⟩ = zA, so that its mass and mean angle are kept. A = c/(k + √(k² + c²)), k = (d − 1)/2, is
    I_{d/2}(c)/I_{d/2−1}(c) up to a relative error of d/c² (Amos 1974).
    """
    density = np.zeros(mesh.cells)
    for c, mass, z in zip(concentrations, masses, cosines or [1.0] * len(masses), strict=True):
        if abs(c) * mesh.width**2 > 4:
            length = c / (0.5 * (dimension - 1) + np.hypot(0.5 * (dimension - 1), c))
            component = initial_points(mesh, [float(np.arccos(z * length))])
        else:
            component = _distribution(mesh, dimension, partial(_log_von_mises_fisher, dimension, c, z))
        density += mass * component
    return density / (density @ mesh.volumes)


def _log_von_mises_fisher(dimension: int, concentration: float, cosine: float, theta: Floats) -> Floats:
    """Return the logarithm of a von Mises–Fisher density averaged about the axis, up to a constant, at angles (n,)."""
    across = abs(concentration) * np.sqrt(1 - cosine**2) * np.sin(theta)
    return concentration * cosine * np.cos(theta) + log_bessel((dimension - 3) / 2, across)[0]


def initial_moebius(mesh: Mesh, dimension: int, parameter: float) -> Floats:
    """Return the uniform distribution (cells,) transported along the axis by the flow ż = 1 − z² for a time s.

    z = cos θ, and s = ``parameter`` has either sign. p ∝ sin^{d−2} θ (cosh s − cos θ sinh s)^{−(d−1)}: an exact state
    of the flow at β = 0 on every sphere, ṡ = ⟨z⟩.
    """
    s = parameter

    def log_relative(theta: Floats) -> Floats:  # cosh s − cos θ sinh s = e^{−s} + 2 sinh s sin²(θ/2), no cancellation
        half = np.sin(theta / 2) if s >= 0 else np.cos(theta / 2)
        return np.asarray(-(dimension - 1) * np.log(np.exp(-abs(s)) + 2 * np.sinh(abs(s)) * half**2))

    return _distribution(mesh, dimension, log_relative)


def initial_points(mesh: Mesh, angles: Sequence[float], masses: Sequence[float] | None = None) -> Floats:
    """Return the distribution (cells,) of tokens on circles of latitude at polar ``angles``, with mass 1.

    Each circle is split over two cells, which keeps its mass and mean angle. Within half a cell of a pole all mass goes
    to the last cell.
    """
    weights = np.ones(len(angles)) if masses is None else np.asarray(masses, dtype=float)
    return deposit_on_interval(mesh, angles, weights / weights.sum())


def _distribution(mesh: Mesh, dimension: int, log_relative: Callable[[Floats], Floats]) -> Floats:
    """Return the distribution (cells,) of the polar angle per radian, from a log density relative to uniform."""
    return np.asarray(np.exp(log_masses(mesh, dimension, log_relative)) / mesh.volumes)
