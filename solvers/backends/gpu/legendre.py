"""Legendre transforms over the rings of a sphere: a block of threads for each order, whose rings the threads share."""

from math import pi, sqrt

import numpy as np
from numba import cuda

from ..cpu.rings.legendre import set_convolutions
from .arrays import SIMULATED, zeros
from .launching import device_function, run, shape_of, translated
from .unrolling import with_loops_written_out

LANES = 8 if SIMULATED else 256  # threads of a block
RINGS_TOGETHER = 8  # rings of a thread in an analysis, with their Legendre functions in registers
DEGREES = 4 if SIMULATED else 8  # whose sums over the rings a block adds at a time
SETS = 4  # sets of coefficients with common Legendre functions in a synthesis
_SUMS, _BOTH = 2 * DEGREES, 2 * SETS  # re and im of the sums; even and odd degrees of the sets
_PARTS = LANES // _SUMS
_PADDED_LANES, _PADDED_PARTS = LANES + 1, _PARTS + 1  # so that rows of sums lie in different banks

_set_convolutions = translated(set_convolutions)


@device_function
def _legendre_norm(m):
    """Return the orthonormal Legendre function P̄_mm at the equator, (1/√4π) Π √((2k+1)/2k), k = 1 … m."""
    norm = 1.0 / sqrt(4.0 * pi)
    for k in range(1, m + 1):
        norm *= sqrt((2.0 * k + 1.0) / (2.0 * k))
    return norm


@device_function
def _legendre_up(l, m):
    """Return α_l of the recurrence P̄_lm = α_l (cos θ P̄_{l−1,m} − P̄_{l−2,m}/α_{l−1}) of Legendre functions."""
    return sqrt((4.0 * l * l - 1.0) / (l * l - m * m))


@device_function
def _analyze_order(m, cosine, sine, even_re, even_im, odd_re, odd_im, coefficients):
    """Compute coefficients[l, m] = Σ P̄_lm(cos θ) modes[m, ring] for one order m.

    A thread adds RINGS_TOGETHER rings, then the block adds the sums of its threads in a fixed order. The modes are
    those of the sums (even l − m) or differences (odd) of mirrored rings, re and im.
    """
    degrees, half, lane = len(coefficients), len(cosine), cuda.threadIdx.x
    previous, current = cuda.local.array(RINGS_TOGETHER, np.float64), cuda.local.array(RINGS_TOGETHER, np.float64)
    sums = cuda.shared.array((_SUMS, _PADDED_LANES), np.float64)
    parts = cuda.shared.array((_SUMS, _PADDED_PARTS), np.float64)
    norm = _legendre_norm(m)
    for start in range(0, half, LANES * RINGS_TOGETHER):
        begin, below = start + lane * RINGS_TOGETHER, 0.0
        for r in range(RINGS_TOGETHER):  # a constant number, to stay in registers; 0 beyond the last ring
            previous[r] = 0.0
            current[r] = norm * sine[begin + r] ** m if begin + r < half else 0.0
        for first in range(m, degrees, DEGREES):
            for k in range(min(DEGREES, degrees - first)):
                l, odd, re, im = first + k, (first + k - m) % 2 == 1, 0.0, 0.0
                up = _legendre_up(l + 1.0, m)
                for r in range(RINGS_TOGETHER):
                    legendre, ring = current[r], min(begin + r, half - 1)
                    re += legendre * (odd_re[m, ring] if odd else even_re[m, ring])
                    im += legendre * (odd_im[m, ring] if odd else even_im[m, ring])
                    current[r] = up * (cosine[ring] * legendre - below * previous[r])
                    previous[r] = legendre
                sums[k, lane], sums[DEGREES + k, lane] = re, im
                below = 1.0 / up
            cuda.syncthreads()
            row, part, total = lane % _SUMS, lane // _SUMS, 0.0
            for k in range(part * _SUMS, part * _SUMS + _SUMS):
                total += sums[row, k]
            parts[row, part] = total
            cuda.syncthreads()
            if lane < min(DEGREES, degrees - first):
                re, im = 0.0, 0.0
                for part in range(_PARTS):
                    re += parts[lane, part]
                    im += parts[DEGREES + lane, part]
                before = coefficients[first + lane, m] if start > 0 else complex(0.0, 0.0)
                coefficients[first + lane, m] = before + complex(re, im)


@device_function
@with_loops_written_out
def _synthesize_order(m, first_set, sets, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute azimuthal modes of order m of mirrored pairs of rings, a thread for each pair.

    The harmonic coefficients are ``sets`` ≤ SETS sets from ``first_set`` on, with common Legendre functions, by
    recurrence over the degree.
    """
    degrees, half, lane = coefficients.shape[1], len(cosine), cuda.threadIdx.x
    re, im = cuda.local.array(_BOTH, np.float64), cuda.local.array(_BOTH, np.float64)  # of even l − m, then odd
    factors = cuda.shared.array((2, LANES), np.float64)  # α and 1/α
    norm = _legendre_norm(m)
    for start in range(0, half, LANES):
        r = min(start + lane, half - 1)  # beyond the last ring for the barriers alone
        previous, current, below = 0.0, norm * sine[r] ** m, 0.0
        for s in range(_BOTH):
            re[s], im[s] = 0.0, 0.0
        for first in range(m, degrees, LANES):
            cuda.syncthreads()
            factors[0, lane] = _legendre_up(first + lane + 1.0, m)
            factors[1, lane] = 1.0 / factors[0, lane]
            cuda.syncthreads()
            for l in range(first, min(first + LANES, degrees)):
                odd = (l - m) % 2 == 1
                for s in range(SETS):
                    if s < sets:
                        value = coefficients[first_set + s, l, m]
                        if odd:
                            re[SETS + s] += value.real * current
                            im[SETS + s] += value.imag * current
                        else:
                            re[s] += value.real * current
                            im[s] += value.imag * current
                k = l - first
                previous, current = current, factors[0, k] * (cosine[r] * current - below * previous)
                below = factors[1, k]
        if start + lane < half:
            for s in range(SETS):
                if s < sets:
                    of_re, of_im = modes_re[first_set + s, m], modes_im[first_set + s, m]
                    of_re[mirror[r]], of_im[mirror[r]] = re[s] - re[SETS + s], im[s] - im[SETS + s]
                    of_re[r], of_im[r] = re[s] + re[SETS + s], im[s] + im[SETS + s]  # the equator is its own mirror


@cuda.jit
def _analyze(cosine, sine, modes, coefficients):
    """Compute the coefficients of :func:`legendre_analysis`, a block of threads for each row and order."""
    row, m = cuda.blockIdx.x // modes.shape[2], cuda.blockIdx.x % modes.shape[2]
    parts = modes[row]
    _analyze_order(m, cosine, sine, parts[0], parts[1], parts[2], parts[3], coefficients[row])


@cuda.jit
def _square(coefficients, squares):
    """Compute squares[r, m, l] = |coefficients[r, l, m]|², twice as much for m > 0; one thread for each number."""
    degrees = coefficients.shape[1]
    item = cuda.grid(1)
    if item < coefficients.size:
        row, m, l = item // (degrees * degrees), item // degrees % degrees, item % degrees
        value = coefficients[row, l, m]
        squares[row, m, l] = (1.0 if m == 0 else 2.0) * (value.real**2 + value.imag**2)


def legendre_analysis(worker, workers, cosine, sine, modes, coefficients, squares):
    """Compute coefficients[r, l, m] = Σ_rings P̄_lm(cos θ) modes[r, ..., m, ring] over northern rings, or squares.

    For the arguments see :func:`solvers.backends.cpu.rings.legendre.legendre_analysis`.
    """
    found = coefficients if len(coefficients) else zeros(squares.shape, complex)
    run(_analyze, (len(modes) * modes.shape[2], LANES), cosine, sine, modes, found)
    if len(squares):
        run(_square, shape_of(found.size), found, squares)


@cuda.jit
def _synthesize(cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute the modes of :func:`legendre_synthesis`, a block of threads for each order and up to SETS sets."""
    sets, degrees = coefficients.shape[0], coefficients.shape[1]
    first, m = cuda.blockIdx.x // degrees * SETS, cuda.blockIdx.x % degrees
    _synthesize_order(m, first, min(SETS, sets - first), cosine, sine, coefficients, mirror, modes_re, modes_im)


def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """Compute azimuthal modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) on all rings, for several sets s.

    For the arguments see :func:`solvers.backends.cpu.rings.legendre.legendre_synthesis`.
    """
    sets, degrees = coefficients.shape[:2]
    shape = -(-sets // SETS) * degrees, LANES
    run(_synthesize, shape, cosine, sine, coefficients, mirror, modes_re, modes_im)


@cuda.jit
def _convolve(
    cosine, sine, modes, uniform, multipliers, below, above, mirror, coefficients, sets, modes_re, modes_im
):  # fmt: skip
    """Compute the modes of :func:`zonal_modes`, a block of threads for each row and order."""
    degrees, count = coefficients.shape[1], len(multipliers) + 1
    row, m = cuda.blockIdx.x // degrees, cuda.blockIdx.x % degrees
    parts = modes[row]
    _analyze_order(m, cosine, sine, parts[0], parts[1], parts[2], parts[3], coefficients[row])
    cuda.syncthreads()
    for l in range(m + cuda.threadIdx.x, degrees, cuda.blockDim.x):
        _set_convolutions(row, l, m, m + 1, coefficients, uniform, multipliers, below, above, sets)
    cuda.syncthreads()
    _synthesize_order(m, row * count, count, cosine, sine, sets, mirror, modes_re, modes_im)


def zonal_modes(
    worker, workers, cosine, sine, modes, uniform, multipliers, below, above, mirror, coefficients, sets, modes_re,
    modes_im,
):  # fmt: skip
    """Compute azimuthal modes of convolutions f, p and r of functions with three kernels, and of sin θ ∂p/∂θ.

    For the arguments see :func:`solvers.backends.cpu.rings.legendre.zonal_modes`.
    """
    run(
        _convolve, (len(modes) * modes.shape[2], LANES), cosine, sine, modes, uniform, multipliers, below, above,
        mirror, coefficients, sets, modes_re, modes_im,
    )  # fmt: skip
