"""Exponential function that compilers vectorize in loops, several times faster than scalar calls.

    eˣ = 2ⁿ eʳ,   n = round(x / ln 2),   |r| ≤ ½ ln 2,   eʳ = 1 + r + r² q(r)

q interpolates (eʳ − 1 − r)/r² at Chebyshev points, with degree 9 in float64 and 4 in float32; ln 2 is split in two so
that r is exact; n is added to the exponent's bits. The error is below 2 units in the last place, and e⁰ = 1. Results
below the normal numbers are 0, results above the largest number are ∞, and NaN stays NaN.
Cody and Waite, Software Manual for the Elementary Functions (1980), chapter 6.
"""

from dataclasses import dataclass

import numpy as np
from numba import types
from numba.extending import overload

CONTRACT = {"contract"}  # a·b + c in one instruction; the order of sums is kept


@dataclass(frozen=True)
class _Format:
    """Constants of a floating-point format.

    bits             integer type of the same size
    digits           bits of the fraction
    shift            1.5 times the least number without fractional bits: x + shift rounds x
    ln2              ln 2 in two parts; the first ends in zero bits
    least, largest   bounds of x for normal results
    q                coefficients of q from the highest degree down
    """

    number: type
    bits: type
    digits: int
    shift: float
    ln2: tuple[float, float]
    least: float
    largest: float
    q: tuple[float, ...]


_DOUBLE = _Format(
    np.float64, np.int64, 52, 1.5 * 2**52, (0.6931471803691238, 1.9082149292705877e-10), -708.39, 709.7827128933840,
    (
        2.514607327466879e-08, 2.7645531125171713e-07, 2.7557155969357046e-06, 2.4801464190023566e-05,
        0.0001984126996084305, 0.0013888888955848023, 0.008333333333293223, 0.04166666666654551,
        0.16666666666666718, 0.5,
    ),
)  # fmt: skip
_SINGLE = _Format(
    np.float32, np.int32, 23, 1.5 * 2**23, (0.693359375, -2.12194440e-4), -87.33, 88.72283,
    (0.0013926250394433737, 0.00836323294788599, 0.04166655242443085, 0.16666576266288757, 0.5),
)  # fmt: skip


def _exponential(form):
    """Return a function that computes eˣ in one floating-point format, float32 or float64.

    All its constants have this format, since constants of another one would widen results.
    """
    number, bits, digits = form.number, form.bits, form.bits(form.digits)
    zero, one, infinity, inverse = number(0), number(1), number(np.inf), number(1 / np.log(2))
    shift, ln2_high, ln2_low = number(form.shift), number(form.ln2[0]), number(form.ln2[1])
    smallest, largest = number(form.least), number(form.largest)
    leading, following = number(form.q[0]), tuple(number(coefficient) for coefficient in form.q[1:])

    def exponential(x):
        shifted = x * inverse + shift
        n = shifted - shift
        r = (x - n * ln2_high) - n * ln2_low
        q = leading
        for coefficient in following:
            q = q * r + coefficient
        mantissa, power = number((q * r * r + r) + one).view(bits), number(shifted).view(bits)
        value = bits(mantissa + (power << digits)).view(number)  # n is in the last bits of ``shifted``
        if x < smallest:
            value = zero
        return infinity if x > largest else value

    return exponential


_IMPLEMENTATIONS = {types.float64: _exponential(_DOUBLE), types.float32: _exponential(_SINGLE)}


def exponential(x):
    """Return eˣ of a float32 or float64 inside a compiled kernel; raise NotImplementedError elsewhere."""
    raise NotImplementedError("exponential is for compiled kernels")


@overload(exponential, jit_options={"fastmath": CONTRACT, "error_model": "numpy"})
def _(x):
    """Return the implementation of eˣ for Numba's type of x."""
    return _IMPLEMENTATIONS[x]
