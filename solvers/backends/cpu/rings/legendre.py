"""Legendre transforms over rings of latitude: sums of associated Legendre functions, their transpose, and convolutions.

P̄_lm is computed for PAIRS of degrees at RINGS rings at a time, which stay in a core's fastest cache. A pair has one
degree that is even about the equator, and one that is odd.
"""

import numpy as np

from ...sizes import ROOT_OF_AREA
from ..caching import compiled
from ..launching import inline
from ..product import add_rows
from .sides import helper

RINGS, PAIRS = 64, 8
NEGLIGIBLE = 1e-290  # smaller P̄_mm are set to 0, since subnormal numbers slow a processor down

_kernel = compiled(fastmath={"contract", "reassoc"})


@inline
def _orders_of(worker, workers, degrees):
    """Return the first order m and the last + 1 of one worker; each worker has about as many pairs l ≥ m.

    Neighboring orders belong to one worker, so that no two workers write to one cache line.
    """
    first, last = 0, 0
    for m in range(degrees):
        owner = m * (2 * degrees - m + 1) * workers // (degrees * (degrees + 1))
        first += owner < worker
        last += owner <= worker
    return first, last


@inline
def _roots(degrees):
    """Return √n, 1/√n, √(4n² − 1) and 1/√(4n² − 1) for n = 1 … 2 degrees, (4, 2 degrees + 1), not filled at n = 0."""
    roots = np.empty((4, 2 * degrees + 1))
    for n in range(1, roots.shape[1]):
        roots[0, n], roots[2, n] = np.sqrt(np.float64(n)), np.sqrt(4.0 * n * n - 1.0)
        roots[1, n], roots[3, n] = 1.0 / roots[0, n], 1.0 / roots[2, n]
    return roots


@inline
def _advance_order(m, sine, diagonal):
    """Advance the Legendre functions P̄_mm of the rings from order m − 1 to m, in place in ``diagonal``.

    P̄_mm = √((2m + 1)/2m) sin θ P̄_{m−1,m−1}, starting with P̄_00 = 1/√4π for m = 0.
    """
    factor = np.sqrt((2.0 * m + 1.0) / (2.0 * m)) if m > 0 else 1.0 / np.sqrt(4.0 * np.pi)
    for r in range(len(sine)):
        value = factor * sine[r] * diagonal[r] if m > 0 else factor
        diagonal[r] = value if value > NEGLIGIBLE else 0.0


@inline
def _start_recurrence(diagonal, ring, count, here, before):
    """Set ``here`` to P̄_mm, ``diagonal`` (half,), on ``count`` rings from ``ring`` on, and ``before`` (RINGS,) to 0."""
    for r in range(RINGS):  # a copy of a slice would take two seconds to compile
        before[r] = 0.0
    for r in range(count):
        here[r] = diagonal[ring + r]


@inline
def _find_steps(m, pairs, roots, steps):
    """Compute the factors α_{l+1} and α_{l+1}/α_l of the Legendre recurrence, for 2 ``pairs`` degrees l from m on.

    With α_l = √(4l² − 1)/√((l − m)(l + m)) the recurrence is P̄_{l+1} = α_{l+1} cos θ P̄_l − α_{l+1}/α_l P̄_{l−1}. Each
    degree has a row of ``steps``.
    """
    for k in range(2 * pairs):
        steps[k, 0] = roots[2, m + k + 1] * (roots[1, k + 1] * roots[1, 2 * m + k + 1])
    steps[0, 1] = 0.0
    for k in range(1, 2 * pairs):
        steps[k, 1] = steps[k, 0] * (roots[3, m + k] * (roots[0, k] * roots[0, 2 * m + k]))


@inline
def _advance_pairs(cosine, steps, first, pairs, here, before, legendre):
    """Compute the Legendre functions P̄_lm of the next ``pairs`` pairs of degrees l by a recurrence.

    The recurrence is P̄_{l+1} = α_{l+1} cos θ P̄_l − α_{l+1}/α_l P̄_{l−1}. A pair has one degree that is even about the
    equator, and one that is odd. ``steps`` holds the factors of all degrees, ``first`` is the number of the first pair.

    here, before   (RINGS,) P̄ of the first degree and of the previous one, updated for the next pairs
    legendre       (PAIRS, 2 RINGS) out: the even degrees, then the odd ones
    """
    for pair in range(pairs):
        k = 2 * (first + pair)
        a, b, c, d = steps[k, 0], steps[k, 1], steps[k + 1, 0], steps[k + 1, 1]
        for r in range(len(cosine)):
            even = here[r]
            odd = a * cosine[r] * even - b * before[r]
            legendre[pair, r], legendre[pair, RINGS + r] = even, odd
            here[r], before[r] = c * cosine[r] * odd - d * even, odd


@inline
def _add_products(legendre, pair, modes, m, first, count, found):
    """Add Σ P̄_lm modes over ``count`` rings from ``first`` on to found (2, 2), for the two degrees l of a pair.

    The rows of ``found`` belong to the degree that is even about the equator and to the odd one, the columns to re and
    im. ``modes`` are azimuthal modes of the sums and differences of mirrored rings.
    """
    even_re, even_im, odd_re, odd_im = 0.0, 0.0, 0.0, 0.0
    for r in range(count):
        even, odd = legendre[pair, r], legendre[pair, RINGS + r]
        even_re += even * modes[0, m, first + r]
        even_im += even * modes[1, m, first + r]
        odd_re += odd * modes[2, m, first + r]
        odd_im += odd * modes[3, m, first + r]
    found[0, 0] += even_re
    found[0, 1] += even_im
    found[1, 0] += odd_re
    found[1, 1] += odd_im


@_kernel
def legendre_analysis(worker, workers, cosine, sine, modes, coefficients, squares):
    """Compute coefficients[r, l, m] = Σ_rings P̄_lm(cos θ) modes[r, ..., m, ring] over northern rings, or squares.

    The coefficients are Legendre transforms of azimuthal modes of the rings; the squares are those of their absolute
    values.

    modes          (rows, 4, L + 1, half): sums of the modes of mirrored rings, re and im, then their differences
    coefficients   (rows, L + 1, L + 1) or (0, 0, 0)
    squares        (rows, m, l) |coefficients|², twice for m > 0, since m and −m are equal, 0 for l < m; or (0, 0, 0)
    """
    rows, degrees, half = len(modes), modes.shape[2], modes.shape[3]
    roots, steps, diagonal = _roots(degrees), np.empty((degrees + 1, 2)), np.empty(half)
    here, before, legendre = np.empty(RINGS), np.empty(RINGS), np.empty((PAIRS, 2 * RINGS))
    found = np.empty((rows, degrees + 1, 2))
    first_order, stop = _orders_of(worker, workers, degrees)
    for m in range(stop):
        _advance_order(m, sine, diagonal)
        if m < first_order:
            continue
        pairs = (degrees - m + 1) // 2
        _find_steps(m, pairs, roots, steps)
        found[:, : 2 * pairs] = 0.0
        for ring in range(0, half, RINGS):
            count = min(RINGS, half - ring)
            _start_recurrence(diagonal, ring, count, here, before)
            for first in range(0, pairs, PAIRS):
                some = min(PAIRS, pairs - first)
                _advance_pairs(cosine[ring : ring + count], steps, first, some, here, before, legendre)
                for row in range(rows):
                    for pair in range(some):
                        degree = 2 * (first + pair)
                        _add_products(legendre, pair, modes[row], m, ring, count, found[row, degree : degree + 2])
        for row in range(rows):
            for k in range(degrees - m if len(coefficients) > 0 else 0):
                coefficients[row, m + k, m] = complex(found[row, k, 0], found[row, k, 1])
            for l in range(degrees if len(squares) > 0 else 0):
                square = found[row, l - m, 0] ** 2 + found[row, l - m, 1] ** 2 if l >= m else 0.0
                squares[row, m, l] = square if m == 0 else 2.0 * square


@_kernel
def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute azimuthal modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) on all rings, for several sets s.

    ``cosine`` and ``sine`` (half,) are those of θ on the northern rings and the equator; ``mirror`` (half,) is the
    southern ring of each.
    """
    sets, degrees, half = coefficients.shape[0], coefficients.shape[1], len(cosine)
    roots, steps, diagonal = _roots(degrees), np.empty((degrees + 1, 2)), np.empty(half)
    here, before, legendre = np.empty(RINGS), np.empty(RINGS), np.empty((PAIRS, 2 * RINGS))
    factors, sums = np.empty((sets, 2, 2, degrees // 2 + 1)), np.empty((sets, 2, 2, RINGS))  # re and im, even and odd
    first_order, stop = _orders_of(worker, workers, degrees)
    for m in range(stop):
        _advance_order(m, sine, diagonal)
        if m < first_order:
            continue
        pairs = (degrees - m + 1) // 2
        _find_steps(m, pairs, roots, steps)
        for s in range(sets):
            for k in range(2 * pairs):
                value = coefficients[s, m + k, m] if m + k < degrees else 0.0j
                factors[s, 0, k % 2, k // 2], factors[s, 1, k % 2, k // 2] = value.real, value.imag
        for ring in range(0, half, RINGS):
            count = min(RINGS, half - ring)
            _start_recurrence(diagonal, ring, count, here, before)
            sums[:] = 0.0
            for first in range(0, pairs, PAIRS):
                some = min(PAIRS, pairs - first)
                _advance_pairs(cosine[ring : ring + count], steps, first, some, here, before, legendre)
                for s in range(sets):
                    for part in range(2):
                        for parity in range(2):
                            of_pairs = factors[s, part, parity, first : first + some]
                            add_rows(of_pairs, legendre, parity * RINGS, count, sums[s, part, parity])
            for s in range(sets):
                for r in range(count):
                    north, south = ring + r, mirror[ring + r]
                    modes_re[s, m, south] = sums[s, 0, 0, r] - sums[s, 0, 1, r]
                    modes_im[s, m, south] = sums[s, 1, 0, r] - sums[s, 1, 1, r]
                    modes_re[s, m, north] = sums[s, 0, 0, r] + sums[s, 0, 1, r]
                    modes_im[s, m, north] = sums[s, 1, 0, r] + sums[s, 1, 1, r]


@helper
def set_convolutions(row, l, first, stop, coefficients, uniform, multipliers, below, above, sets):
    """Compute ``sets``: harmonic coefficients of f, sin θ ∂p/∂θ, p and r for the convolutions f, p and r of a row.

    The function fills degree l and the orders ``first`` to ``stop`` − 1. For the other arguments see
    :func:`zonal_modes`. Coefficients of orders m > l are not read.
    """
    k, kinds, degrees = row * (len(multipliers) + 1), len(multipliers), coefficients.shape[1]
    up = multipliers[1, l - 1] if l > 0 else 0.0
    down = multipliers[1, l + 1] if l + 1 < degrees else 0.0
    for m in range(first, min(stop, l + 1)):
        value, re, im = coefficients[row, l, m], 0.0, 0.0
        if l == 0:
            value += ROOT_OF_AREA * uniform[row]
        if l > m:
            factor, before = up * below[l - 1, m], coefficients[row, l - 1, m]
            re, im = factor * before.real, factor * before.imag
        if l + 1 < degrees:
            factor, after = down * above[l, m], coefficients[row, l + 1, m]
            re, im = re - factor * after.real, im - factor * after.imag
        sets[k, l, m] = complex(multipliers[0, l] * value.real, multipliers[0, l] * value.imag)
        sets[k + 1, l, m] = complex(re, im)
        sets[k + 2, l, m] = complex(multipliers[1, l] * value.real, multipliers[1, l] * value.imag)
        if kinds > 2:
            sets[k + 3, l, m] = complex(multipliers[2, l] * value.real, multipliers[2, l] * value.imag)


@_kernel
def zonal_modes(
    worker, workers, cosine, sine, modes, uniform, multipliers, below, above, mirror, coefficients, sets, modes_re,
    modes_im,
):  # fmt: skip
    """Compute azimuthal modes of convolutions f, p and r of functions with three kernels, and of sin θ ∂p/∂θ.

    A convolution multiplies the harmonic coefficients of degree l by the kernel's multiplier of degree l. The results
    are those of f, sin θ ∂p/∂θ, p and, if there is a third kernel, r. Every order is independent of all others.

    modes               (rows, 4, L + 1, half) of the functions, as in :func:`legendre_analysis`
    uniform             (rows,) constant functions that are added; their only harmonic coefficient is [0, 0]
    multipliers         (2 or 3, L + 1) of f, p and r; the highest degree of p must vanish
    below, above        factors of sin θ ∂/∂θ, see :func:`solvers.transforms.harmonics.sine_derivative_factors`
    coefficients        (rows, L + 1, L + 1) work space
    sets                (rows · (3 or 4), L + 1, L + 1) work space
    modes_re, modes_im  (rows · (3 or 4), L + 1, rings) out, as in :func:`legendre_synthesis`
    """
    legendre_analysis(worker, workers, cosine, sine, modes, coefficients, np.empty((0, 0, 0)))
    first, stop = _orders_of(worker, workers, coefficients.shape[1])
    for row in range(len(coefficients)):
        for l in range(first, coefficients.shape[1]):
            set_convolutions(row, l, first, stop, coefficients, uniform, multipliers, below, above, sets)
    legendre_synthesis(worker, workers, cosine, sine, sets, mirror, modes_re, modes_im)
