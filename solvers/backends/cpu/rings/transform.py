"""Harmonic transform on rings of latitude."""

import numpy as np

from ..caching import compiled
from ..launching import index, inline, kernel, share


@kernel
def unfold_rings(worker, workers, spectrum, cells, first_ring, modes_re, modes_im):
    """Azimuthal modes m = 0 … L of rings with ``cells`` cells from their discrete Fourier transform.

    modes[m, ring] = Σ_j w_j e^{−imφ_j}, φ_j = (j + ½)·2π/cells; exact for every m, also beyond cells/2.
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
    """Discrete Fourier transform of rings from their azimuthal modes: the inverse of :func:`unfold_rings`.

    ``by_order`` multiplies mode m by i·m (the derivative along φ); ``scale`` (rings) multiplies each ring.
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


@inline
def legendre_norm(m):
    """(1/√4π) Π √((2k+1)/2k), k = 1 … m: P̄_mm of the orthonormal associated Legendre functions at the equator."""
    norm = 1.0 / np.sqrt(4.0 * np.pi)
    for k in range(1, m + 1):
        norm *= np.sqrt((2.0 * k + 1.0) / (2.0 * k))
    return norm


@inline
def _legendre_start(m, sine, previous, current):
    """P̄_mm = norm · sin^m θ at every ring."""
    norm = legendre_norm(m)
    for r in range(len(sine)):
        previous[r] = 0.0
        current[r] = norm * sine[r] ** m


@inline
def legendre_up(l, m):
    """α of P̄_l = α_l (cos θ P̄_{l−1} − P̄_{l−2}/α_{l−1})."""
    return np.sqrt((4.0 * l * l - 1.0) / (l * l - m * m))


@compiled(fastmath={"reassoc", "contract"})
def legendre_analysis(worker, workers, cosine, sine, even_re, even_im, odd_re, odd_im, coefficients):
    """coefficients[l, m] = Σ_rings P̄_lm(cos θ) modes[m, ring], over northern rings.

    even, odd: (L + 1, half) sums and differences of the modes of mirrored rings.
    """
    degrees, half = even_re.shape
    previous, current, following = np.empty(half), np.empty(half), np.empty(half)
    for m in range(worker, degrees, workers):
        _legendre_start(m, sine, previous, current)
        below = 0.0
        for l in range(m, degrees):
            re, im = 0.0, 0.0
            if (l - m) % 2 == 0:
                for r in range(half):
                    re += current[r] * even_re[m, r]
                    im += current[r] * even_im[m, r]
            else:
                for r in range(half):
                    re += current[r] * odd_re[m, r]
                    im += current[r] * odd_im[m, r]
            coefficients[l, m] = complex(re, im)
            up = legendre_up(l + 1.0, m)
            for r in range(half):
                following[r] = up * (cosine[r] * current[r] - below * previous[r])
            below = 1.0 / up
            previous, current, following = current, following, previous


@compiled(fastmath={"contract"})
def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) for several sets s at once, on all rings.

    cosine, sine: (half) northern rings and the equator; ``mirror`` (half) is the southern ring of each.
    """
    sets, degrees = coefficients.shape[0], coefficients.shape[1]
    half = len(cosine)
    previous, current, following = np.empty(half), np.empty(half), np.empty(half)
    sums = np.empty((2 * sets, 2, half))  # (re and im of each set), (even, odd), ring
    for m in range(worker, degrees, workers):
        _legendre_start(m, sine, previous, current)
        sums[:] = 0.0
        below = 0.0
        for l in range(m, degrees):
            parity = (l - m) % 2
            for s in range(sets):
                re, im = coefficients[s, l, m].real, coefficients[s, l, m].imag
                to_re, to_im = sums[2 * s, parity], sums[2 * s + 1, parity]
                for r in range(half):
                    value = current[r]
                    to_re[r] += re * value
                    to_im[r] += im * value
            up = legendre_up(l + 1.0, m)
            for r in range(half):
                following[r] = up * (cosine[r] * current[r] - below * previous[r])
            below = 1.0 / up
            previous, current, following = current, following, previous
        for s in range(sets):
            for r in range(half):
                modes_re[s, m, mirror[r]] = sums[2 * s, 0, r] - sums[2 * s, 1, r]
                modes_im[s, m, mirror[r]] = sums[2 * s + 1, 0, r] - sums[2 * s + 1, 1, r]
                modes_re[s, m, r] = sums[2 * s, 0, r] + sums[2 * s, 1, r]
                modes_im[s, m, r] = sums[2 * s + 1, 0, r] + sums[2 * s + 1, 1, r]


@kernel
def zonal_sets(worker, workers, coefficients, multipliers, below, above, sets):
    """Coefficients (3 or 4, l, m) of f, of sin θ ∂p/∂θ and p, and of r: those of a density times multipliers.

    multipliers     (2 or 3, degrees) of f, p and r; the highest degree of p has to vanish
    below, above    of sin θ ∂/∂θ, see :func:`solvers.transforms.harmonics.sine_derivative_factors`
    """
    degrees = len(coefficients)
    first, last = share(worker, workers, degrees * degrees)
    for item in range(first, last):
        l, m = item // degrees, item % degrees
        value, slope = coefficients[l, m], 0j
        if l > 0:
            slope += below[l - 1, m] * (multipliers[1, l - 1] * coefficients[l - 1, m])
        if l + 1 < degrees:
            slope -= above[l, m] * (multipliers[1, l + 1] * coefficients[l + 1, m])
        sets[0, l, m], sets[1, l, m], sets[2, l, m] = multipliers[0, l] * value, slope, multipliers[1, l] * value
        if len(sets) > 3:
            sets[3, l, m] = multipliers[2, l] * value


@kernel
def gradient_to_vectors(worker, workers, centers, east, north, along, result):
    """Vectors in R³ from their components along east, north and the given points; ``along`` (0,) where tangent."""
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


@compiled(fastmath={"reassoc", "contract"}, apart=True)
def apply_blocks(worker, workers, blocks, start, first, width, vectors, result):
    """Products (n, rows) of vectors (n, columns) and a matrix of blocks along the diagonal.

    Row i is blocks[start[i]: start[i] + width[i]], from column first[i] on.
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
