"""Legendre transforms over the rings of a sphere: a thread for each result, or for a few rings of an order."""

from math import pi, sqrt

from numba import cuda, float64

from .arrays import empty, zeros
from .launching import run, shape_of

MAX_NUMBERS = 1 << 24  # numbers in partial sums: for many degrees a thread adds several parts
RINGS_TOGETHER = 8  # rings that a thread adds, with their Legendre functions in registers


@cuda.jit(device=True)
def _legendre_norm(m):
    """Return the orthonormal Legendre function P̄_mm at the equator, (1/√4π) Π √((2k+1)/2k), k = 1 … m."""
    norm = 1.0 / sqrt(4.0 * pi)
    for k in range(1, m + 1):
        norm *= sqrt((2.0 * k + 1.0) / (2.0 * k))
    return norm


@cuda.jit(device=True)
def _legendre_up(l, m):
    """Return α_l of the recurrence P̄_lm = α_l (cos θ P̄_{l−1,m} − P̄_{l−2,m}/α_{l−1}) of Legendre functions."""
    return sqrt((4.0 * l * l - 1.0) / (l * l - m * m))


@cuda.jit
def _analyze(cosine, sine, even_re, even_im, odd_re, odd_im, parts):
    """Compute partial sums parts[:, part, l, m] = Σ P̄_lm(cos θ) modes[m, ring] of a Legendre transform, re and im.

    A thread adds RINGS_TOGETHER rings at a time. ``modes`` are those of the sums (even l − m) or differences (odd) of
    mirrored rings.
    """
    degrees, half = even_re.shape
    item = cuda.grid(1)
    previous, current = cuda.local.array(RINGS_TOGETHER, float64), cuda.local.array(RINGS_TOGETHER, float64)
    if item < parts.shape[1] * degrees:
        part, m = item // degrees, item % degrees
        norm = _legendre_norm(m)
        for start in range(part * RINGS_TOGETHER, half, parts.shape[1] * RINGS_TOGETHER):
            for r in range(RINGS_TOGETHER):  # a constant number, to stay in registers; 0 beyond the last ring
                previous[r] = 0.0
                current[r] = norm * sine[start + r] ** m if start + r < half else 0.0
            below = 0.0
            for l in range(m, degrees):
                odd = (l - m) % 2 == 1
                up = _legendre_up(l + 1.0, m)
                re, im = 0.0, 0.0
                for r in range(RINGS_TOGETHER):
                    legendre, ring = current[r], min(start + r, half - 1)
                    re += legendre * (odd_re[m, ring] if odd else even_re[m, ring])
                    im += legendre * (odd_im[m, ring] if odd else even_im[m, ring])
                    current[r] = up * (cosine[ring] * legendre - below * previous[r])
                    previous[r] = legendre
                if start >= parts.shape[1] * RINGS_TOGETHER:
                    re, im = parts[0, part, l, m] + re, parts[1, part, l, m] + im
                parts[0, part, l, m], parts[1, part, l, m] = re, im
                below = 1.0 / up


@cuda.jit
def _add_parts(parts, coefficients):
    degrees = parts.shape[2]
    item = cuda.grid(1)
    l, m = item // degrees, item % degrees
    if l < degrees and m <= l:
        re, im = 0.0, 0.0
        for part in range(parts.shape[1]):
            re += parts[0, part, l, m]
            im += parts[1, part, l, m]
        coefficients[l, m] = complex(re, im)


@cuda.jit
def _square(coefficients, squares):
    degrees = coefficients.shape[1]
    item = cuda.grid(1)
    if item < coefficients.size:
        row, m, l = item // (degrees * degrees), item // degrees % degrees, item % degrees
        value = coefficients[row, l, m]
        squares[row, m, l] = (1.0 if m == 0 else 2.0) * (value.real**2 + value.imag**2)


def legendre_analysis(worker, workers, cosine, sine, modes, coefficients, squares):
    """Compute coefficients[r, l, m] = Σ_rings P̄_lm(cos θ) modes[r, ..., m, ring] over northern rings, or squares.

    The coefficients are Legendre transforms of azimuthal modes of the rings; the squares are those of their absolute
    values.

    modes          (rows, 4, L + 1, half): sums of the modes of mirrored rings, re and im, then their differences
    coefficients   (rows, L + 1, L + 1) or (0, 0, 0)
    squares        (rows, m, l) |coefficients|², twice for m > 0, since m and −m are equal, 0 for l < m; or (0, 0, 0)
    """
    degrees, half = modes.shape[2:]
    count = min(-(-half // RINGS_TOGETHER), max(MAX_NUMBERS // degrees**2, 1))
    parts = empty((2, count, degrees, degrees))
    every = coefficients if len(coefficients) else zeros(squares.shape, complex)
    for of_row, found in zip(modes, every, strict=True):
        run(_analyze, shape_of(parts.shape[1] * degrees), cosine, sine, *of_row, parts)
        run(_add_parts, shape_of(degrees * degrees), parts, found)
    if len(squares):
        run(_square, shape_of(every.size), every, squares)


@cuda.jit
def _synthesize(cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute azimuthal modes of mirrored pairs of rings from harmonic coefficients, one pair and order per thread.

    The Legendre functions follow by recurrence over the degree.
    """
    sets, degrees, half = coefficients.shape[0], coefficients.shape[1], len(cosine)
    item = cuda.grid(1)
    if item < sets * degrees * half:
        s, m, r = item // (degrees * half), item // half % degrees, item % half
        previous, current, below = 0.0, _legendre_norm(m) * sine[r] ** m, 0.0
        even_re, even_im, odd_re, odd_im = 0.0, 0.0, 0.0, 0.0
        for l in range(m, degrees):
            value = coefficients[s, l, m]
            if (l - m) % 2 == 0:
                even_re += value.real * current
                even_im += value.imag * current
            else:
                odd_re += value.real * current
                odd_im += value.imag * current
            up = _legendre_up(l + 1.0, m)
            previous, current = current, up * (cosine[r] * current - below * previous)
            below = 1.0 / up
        modes_re[s, m, mirror[r]], modes_im[s, m, mirror[r]] = even_re - odd_re, even_im - odd_im
        modes_re[s, m, r], modes_im[s, m, r] = even_re + odd_re, even_im + odd_im  # last: the equator is its own mirror


def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute azimuthal modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) on all rings, for several sets s.

    ``cosine`` and ``sine`` (half,) are those of θ on the northern rings and the equator; ``mirror`` (half,) is the
    southern ring of each.
    """
    sets, degrees = coefficients.shape[:2]
    shape = shape_of(sets * degrees * len(cosine))
    run(_synthesize, shape, cosine, sine, coefficients, mirror, modes_re, modes_im)
