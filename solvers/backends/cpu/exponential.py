"""An exponential that loops over arrays take in vectors: several times as fast as a call for each number.

    eˣ = 2ⁿ eʳ,   n = round(x / ln 2),   |r| ≤ ½ ln 2,   eʳ = 1 + r + r² q(r)

q interpolates (eʳ − 1 − r)/r² at Chebyshev points, with degree 9 in float64 and 4 in float32; ln 2 is split in two so
that r is exact; n is added to the exponent's bits. Below 2 units in the last place; e⁰ is 1; what would be below the
normal numbers is 0, above the largest ∞, and NaN stays NaN.
Cody and Waite, Software Manual for the Elementary Functions (1980), chapter 6.
"""

from dataclasses import dataclass

import numpy as np
from numba import types
from numba.extending import overload

CONTRACT = {"contract"}  # a·b + c in one instruction; sums are left in their order


@dataclass(frozen=True)
class _Format:
    """What depends on the number format.

    bits             integers of as many bits
    digits           bits of the fraction
    shift            1.5 times the number from which there is no room for a fraction: x + shift rounds x
    ln2              ln 2 in two parts, of which the first has zeros at its end
    least, largest   where the exponential leaves the normal numbers
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
    """The exponential of numbers of one format; a constant of another format would widen what it meets."""
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
    """eˣ of a float32 or float64, inside a kernel."""
    raise NotImplementedError("exponential is for compiled kernels")


@overload(exponential, jit_options={"fastmath": CONTRACT, "error_model": "numpy"})
def _(x):
    return _IMPLEMENTATIONS[x]
