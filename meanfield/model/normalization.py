"""Normalization of attention: the output A from sums over tokens, shared by densities, particles and atoms.

    Z(x) = ∫ k(x,y) ρ(y) dy ,   N(x) = ∫ y k(x,y) ρ(y) dy ,   given as Z e^{−s} and N e^{−s} with s = s(x)

    softmax        A = N/Z
    unnormalized   A = N e^{−c} ,   c = 0, or the logarithm of the largest kernel for attention that is rescaled
    sinkhorn       A = N of the doubly stochastic kernel, see :mod:`meanfield.model.sinkhorn`

Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), (SA) and (USA); Sander, Ablin, Blondel, Peyré (2110.11773).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from solvers.mesh.mesh import Floats

Sums: TypeAlias = "tuple[Floats | float, Floats, Floats]"  # s (...), Z e^{−s} (...) and N e^{−s} (..., d)

MAX_LOG_KERNEL = 700.0  # e^709 is the largest double


def weighted_mean(normalizer: Floats, numerator: Floats, reach: float = np.inf) -> Floats:
    """Return means N/max(Z, |N|/reach) (..., d) of vectors y with weights w, from N = Σ w y (..., d) and Z = Σ w (...).

    The result replaces N, and is 0 where both sums are 0. ``reach`` is the length of the longest y, which
    bounds the length of a mean even where Z is lost to rounding. ``reach`` is infinite where Z has all its digits.
    """
    from solvers.backends import backend_for

    backend = backend_for(numerator)
    vectors = numerator.reshape(-1, numerator.shape[-1])
    backend.launch(backend.scale_softmax, len(vectors), normalizer.reshape(-1), vectors, float(reach))
    return vectors.reshape(numerator.shape)


@dataclass(frozen=True)
class Normalization:
    """Normalization of attention, which computes the output A from kernel sums: an entry of the table NORMALIZATIONS.

    ``normalization(sums, log_rescaling, reach)`` is A(x) (..., d). The sums are s, Z e^{−s} and N e^{−s}, where Z and N
    are the sums of k(x, y) and of y k(x, y) over tokens y. ``log_rescaling`` is the logarithm of the divisor of
    rescaled attention, and ``reach`` the largest |y|.

    apply          the formula, evaluated in place of N e^{−s}
    is_relative    whether a multiple of k(x, ·) gives the same A(x), so that |A| ≤ max |y|
    is_two_sided   whether the sums are those of :func:`meanfield.model.sinkhorn.doubly_stochastic`
    """

    name: str
    apply: Callable[[Sums, float | Floats, float], Floats]
    is_relative: bool = True
    is_two_sided: bool = False

    def __call__(self, sums: Sums, log_rescaling: float | Floats = 0.0, reach: float = np.inf) -> Floats:
        """Return the output A (..., d) of attention from the kernel sums s (...), Z e^{−s} (...) and N e^{−s} (..., d).

        Z and N are the sums of k and of y k over tokens y, and s is a logarithmic scale. ``log_rescaling`` is the
        logarithm of the divisor of rescaled attention, and ``reach`` the length of the longest y.
        """
        return self.apply(sums, log_rescaling, reach)

    def check_range(self, beta: float, log_bound: float, rescaled: bool) -> None:
        """Raise ArgumentError where the largest kernel, e^{log_bound}, exceeds the range of floating-point numbers.

        Attention that is relative to Z, or rescaled, has no such limit.
        """
        from meanfield.model.errors import ArgumentError

        if not self.is_relative and not rescaled and log_bound > MAX_LOG_KERNEL:
            raise ArgumentError(
                "beta",
                beta,
                f"a kernel up to e^{MAX_LOG_KERNEL:g}; with these matrices it reaches e^{log_bound:.4g} "
                "(rescaled = true avoids it)",
            )


def normalization_of(name: str, *, two_sided: bool = True) -> Normalization:
    """Return the normalization of attention named "softmax", "unnormalized" or "sinkhorn".

    Where ``two_sided`` is false, normalizations of both sides of the kernel, such as sinkhorn, are refused. Raises
    ArgumentError for another name.
    """
    from meanfield.model.errors import one_of

    return one_of("normalization", name, {k: n for k, n in NORMALIZATIONS.items() if two_sided or not n.is_two_sided})


def _softmax(sums: Sums, log_rescaling: float | Floats, reach: float) -> Floats:
    """Return A = N/Z (..., d) from the sums s, Z e^{−s}, N e^{−s}, which A replaces."""
    return weighted_mean(sums[1], sums[2], reach)


def _unnormalized(sums: Sums, log_rescaling: float | Floats, reach: float) -> Floats:
    """Return A = N e^{−c} (..., d) with c = ``log_rescaling`` from the sums s, Z e^{−s}, N e^{−s}, which A replaces."""
    log_scale, _, numerator = sums
    if isinstance(log_scale, float):
        factor = np.exp(log_scale - log_rescaling)
    else:
        factor = np.exp(log_scale - log_rescaling)[..., None].astype(numerator.dtype, copy=False)
    numerator *= factor
    return numerator


def _sinkhorn(sums: Sums, log_rescaling: float | Floats, reach: float) -> Floats:
    """Return A = N (..., d), since the sums are those of the doubly stochastic kernel."""
    return sums[2]


NORMALIZATIONS: dict[str, Normalization] = {
    entry.name: entry
    for entry in (
        Normalization("softmax", _softmax),
        Normalization("unnormalized", _unnormalized, is_relative=False),
        Normalization("sinkhorn", _sinkhorn, is_two_sided=True),
    )
}
