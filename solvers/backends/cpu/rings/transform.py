"""Harmonic transform on rings of latitude."""

import numpy as np

from ..caching import compiled
from ..launching import index, kernel, share


@kernel
def unfold_rings(worker, workers, spectrum, cells, first_ring, modes_re, modes_im):
    """Compute azimuthal modes Σ_j w_j e^{−imφ_j} of rings of ``cells`` cells from the discrete Fourier transforms of w.

    w_j are the masses of the cells of a ring, φ_j = (j + ½)·2π/cells. The modes m = 0 … L are exact also beyond
    cells/2. Ring r of the ``spectrum`` is number ``first_ring`` + r of all rings.
    """
    degrees, rings = modes_re.shape[0], spectrum.shape[0]
    for m in range(worker, degrees, workers):
        k = m % cells
        phase = np.exp(-1j * np.pi * m / cells)
        for r in range(rings):
            value = spectrum[r, k] if 2 * k <= cells else np.conj(spectrum[r, cells - k])
            value = value * phase
            modes_re[m, first_ring + r] = value.real
            modes_im[m, first_ring + r] = value.imag


@kernel
def fold_rings(worker, workers, modes_re, modes_im, cells, first_ring, by_order, scale, spectrum):
    """Compute the discrete Fourier transform of the values on each ring from azimuthal modes m = 0 … L.

    The value at a cell is the sum of the modes times e^{imφ_j}, φ_j = (j + ½)·2π/cells, and of their conjugates for
    m > 0. ``by_order`` multiplies mode m by i·m (the derivative along φ); ``scale`` (rings) multiplies each ring.
    """
    degrees, rings = modes_re.shape[0], spectrum.shape[0]
    first, last = share(worker, workers, rings)
    for r in range(first, last):
        for k in range(spectrum.shape[1]):
            spectrum[r, k] = 0.0
    for m in range(degrees):
        k = m % cells
        opposite = (cells - k) % cells
        phase = np.exp(1j * np.pi * m / cells)
        if by_order:
            phase = phase * 1j * m
        for r in range(first, last):
            value = complex(modes_re[m, first_ring + r], modes_im[m, first_ring + r]) * phase * scale[first_ring + r]
            if 2 * k <= cells:
                spectrum[r, k] += value
            if m > 0 and 2 * opposite <= cells:
                spectrum[r, opposite] += np.conj(value)


@kernel
def gradient_to_vectors(worker, workers, centers, east, north, along, result):
    """Compute vectors in R³ from components east, north and along the position, at points of the unit sphere.

    ``along`` is (0,) for tangent vectors.
    """
    first, last = share(worker, workers, len(result))
    for i in range(first, last):
        x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]
        sine = np.sqrt(x * x + y * y)
        cos_phi, sin_phi = x / sine, y / sine
        result[i, 0] = -north[i] * z * cos_phi - east[i] * sin_phi
        result[i, 1] = -north[i] * z * sin_phi + east[i] * cos_phi
        result[i, 2] = north[i] * sine
        if len(along):
            result[i, 0] += along[i] * x
            result[i, 1] += along[i] * y
            result[i, 2] += along[i] * z


@compiled(fastmath={"reassoc", "contract"})
def apply_blocks(worker, workers, blocks, start, first, width, vectors, result):
    """Compute the products (n, rows) of a block-diagonal matrix with each of ``vectors`` (n, columns).

    Row i of the matrix is blocks[start[i]: start[i] + width[i]], from column first[i] on.
    """
    begin, end = share(worker, workers, result.shape[1])
    for item in range(begin, end):
        i = index(item)
        row, column, count = start[i], first[i], width[i]
        for k in range(len(vectors)):
            total = 0.0
            for c in range(count):
                total += blocks[index(row + c)] * vectors[index(k), index(column + c)]
            result[index(k), i] = total
