"""The windowed kernel: e^{β⟨x,y⟩} for tokens within an angle of each other, smoothly none beyond, and its multipliers.

Its edge is w/8 wide for a window of w radians, so that about 100/w degrees carry it to rounding, however few the cells
are: with fewer, tokens beyond the window would attend by ripples of the edge.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import fft

from meanfield.model.errors import ArgumentError
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.zonal import kernel_multipliers

MOST_DEGREES = 1000
_ROUNDING = 1e-15  # of the largest multiplier: what the FFT leaves of nothing
_RIPPLE = 1e-6  # of the largest multiplier, that may be left out on the sphere
_MOST_LOSS = 8.0  # logarithm of what Z of a token may be less than the largest, of which harmonics keep 1e-16


def windowed(cosines: Floats, beta: float, window: float) -> Floats:
    """e^{βz − |β|} ½ erfc((cos w − z)/δ), δ = (1 − cos w)/4, at cosines z: smooth, half of it at z = cos w."""
    edge = float(np.cos(window))
    share = backend_for(cosines).erfc((edge - cosines) * (4 / (1 - edge))) / 2
    kernel: Floats = np.exp(beta * cosines - abs(beta)) * share
    return kernel


@cache
def windowed_multipliers(dimension: int, beta: float, window: float) -> Floats | None:
    """(degrees) multipliers of :func:`windowed` to rounding; None where they are more than MOST_DEGREES."""
    degrees = int(np.flatnonzero(_sizes(beta, window) > _ROUNDING)[-1]) + 2
    return _multipliers(dimension, beta, window, degrees) if degrees <= MOST_DEGREES else None


def windowed_on(mesh: Mesh, beta: float, window: float) -> Floats:
    """(degrees) multipliers with which sums over the cells of a circle or a sphere are those of :func:`windowed`.

    On the circle those of its values at the cells, exactly, whatever the window. Raises ValueError on the sphere for a
    window that MOST_DEGREES do not carry, and where tokens attend to the edge of the window by e^8 more than to their
    own place, which harmonics would lose.
    """
    if beta * (1 - np.cos(window)) < -_MOST_LOSS:
        steepest = _MOST_LOSS / (1 - np.cos(window))
        raise ArgumentError("window", window, f"beta times the scales of Q and K >= -{steepest:.4g}")
    if mesh.dimension == 1:
        return _of_values(windowed(np.cos(2 * np.pi / mesh.cells * np.arange(mesh.cells)), beta, window))
    sizes = _sizes(beta, window)
    if sizes[MOST_DEGREES:].max() > _RIPPLE:
        raise ArgumentError("window", window, "at least 0.05 on the sphere; its edge is too sharp")
    degrees = min(int(np.flatnonzero(sizes > _ROUNDING)[-1]) + 2, MOST_DEGREES)
    return _multipliers(3, beta, window, degrees)


def _multipliers(dimension: int, beta: float, window: float, degrees: int) -> Floats:
    return kernel_multipliers(dimension, lambda cosines: windowed(cosines, beta, window), degrees)


def _sizes(beta: float, window: float) -> Floats:
    """(2·MOST_DEGREES + 1) |multipliers| on the circle over the largest: how many degrees the kernel has."""
    nodes = 4 * MOST_DEGREES
    waves = np.abs(fft.rfft(windowed(np.cos(2 * np.pi / nodes * np.arange(nodes)), beta, window)).real)
    return np.asarray(waves / waves.max())


def _of_values(values: Floats) -> Floats:
    """(degrees) multipliers on the circle of a kernel that has even ``values`` (cells) at angles 2πj/cells."""
    multipliers = fft.rfft(values).real * (2 * np.pi / len(values))
    if len(values) % 2 == 0:
        multipliers[-1] /= 2  # cos(jπ) is one wave, others count for both signs
    return np.append(multipliers, 0.0)  # of a degree more, which K sin has
