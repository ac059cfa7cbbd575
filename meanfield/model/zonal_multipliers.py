"""Multipliers of zonal kernels: eigenvalues of k(⟨x,y⟩) on harmonics of each degree, up to rounding."""

from __future__ import annotations

from functools import cache

import numpy as np

from meanfield.model.errors import ArgumentError
from meanfield.model.kernel import Kernel
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.zonal import kernel_multipliers

MAX_DEGREES = 1000
_ROUNDING = 1e-15  # relative to the largest multiplier: rounding of the FFT
_RIPPLE = 1e-6  # relative to the largest multiplier: truncation allowed on the sphere


@cache
def zonal_multipliers(dimension: int, kernel: Kernel, beta: float) -> Floats | None:
    """Return the multipliers (degrees) of a zonal kernel to rounding; None where they are more than MAX_DEGREES.

    A multiplier is the eigenvalue of the kernel k(⟨x,y⟩) on the harmonics of one degree.
    """
    degrees = int(np.flatnonzero(_sizes(kernel, beta) > _ROUNDING)[-1]) + 2
    return _multipliers(dimension, kernel, beta, degrees) if degrees <= MAX_DEGREES else None


def zonal_multipliers_on(mesh: Mesh, kernel: Kernel, beta: float) -> Floats:
    """Return the multipliers (degrees) of a zonal kernel for sums over the cells of a circle or sphere.

    A multiplier is the eigenvalue of the kernel k(⟨x,y⟩) on the harmonics of one degree. On the circle these are the
    multipliers of the values of the kernel at the cells: exact, however sharp the kernel. Raises as
    :func:`check_zonal`.
    """
    check_zonal(mesh.ambient_dimension, kernel, beta)
    if mesh.dimension == 1:
        return _of_values(kernel.values(np.cos(2 * np.pi / mesh.cells * np.arange(mesh.cells)), beta))
    degrees = min(int(np.flatnonzero(_sizes(kernel, beta) > _ROUNDING)[-1]) + 2, MAX_DEGREES)
    return _multipliers(3, kernel, beta, degrees)


def check_zonal(dimension: int, kernel: Kernel, beta: float) -> None:
    """Raise ArgumentError for a zonal kernel that cells of the circle (d = 2) or the sphere (d = 3) do not resolve.

    On both, a kernel is refused if tokens attend to the edge of its window by e^8 more than to their own position,
    which harmonics would lose to rounding. On the sphere it is refused, too, if it needs more than MAX_DEGREES degrees.
    """
    min_beta = kernel.least_beta(kernel.window or 0.0)
    if beta < min_beta:
        raise ArgumentError("window", kernel.window, f"beta times the scales of Q and K >= {min_beta:.4g}")
    if dimension > 2 and _sizes(kernel, beta)[MAX_DEGREES:].max() > _RIPPLE:
        if kernel.takes_window:
            raise ArgumentError(
                "window", kernel.window, "at least 0.06 on the sphere, where a narrower window is not resolved"
            )
        raise ArgumentError(
            "kernel", kernel.name, f"a kernel that {MAX_DEGREES} degrees of harmonics resolve on the sphere"
        )


def _multipliers(dimension: int, kernel: Kernel, beta: float, degrees: int) -> Floats:
    """Return the zonal multipliers (degrees,) of a kernel at β by quadrature."""
    return kernel_multipliers(dimension, lambda cosines: kernel.values(cosines, beta), degrees)


def _sizes(kernel: Kernel, beta: float) -> Floats:
    """Return the sizes |multipliers| of a zonal kernel on the circle, relative to the largest, (2·MAX_DEGREES + 1).

    The sizes bound the degrees of harmonics that the kernel contains.
    """
    nodes = 4 * MAX_DEGREES
    waves = np.abs(np.fft.rfft(kernel.values(np.cos(2 * np.pi / nodes * np.arange(nodes)), beta)).real)
    return np.asarray(waves / waves.max())


def _of_values(values: Floats) -> Floats:
    """Return the multipliers (degrees) on the circle of a kernel with given ``values`` (cells) at the angles 2πj/cells.

    The values are even in the angle. A multiplier is the eigenvalue of the kernel on the waves of one degree.
    """
    multipliers = np.fft.rfft(values).real * (2 * np.pi / len(values))
    if len(values) % 2 == 0:
        multipliers[-1] /= 2  # cos(jπ) is one wave, the other degrees count for both signs
    return np.append(multipliers, 0.0)  # one more degree, which K sin has
