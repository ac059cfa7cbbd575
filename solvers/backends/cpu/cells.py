"""Kernels over all cells: Runge–Kutta stages, softmax, vectors."""

import numpy as np

from .caching import compiled
from .launching import index, inline, kernel, share

TINY_COMPONENT, RAISING_FACTOR = 2.0**-400, 2.0**600  # squares of smaller numbers would lose digits by underflow


@inline
def _after_stage(start, value, rate, dt, weight, least):
    """Return w + weight (start − w), w = value + dt rate: a stage of a Runge–Kutta scheme in Shu–Osher form.

    In this form the result is bitwise equal to w if start = w. A result below ``least`` is replaced by ``least``.
    """
    w = value + dt * rate
    new = w + weight * (start - w)
    return least if new < least else new


@compiled(relative_speed=8)
def advance_first(worker, workers, values, rate, dt, weight, least, start, first):
    """Compute the first stage of a Shu–Osher scheme: values ← w + weight (start − w), w = values + dt rate.

    Before the stage start ← values; afterward rate ← 0 and first ← values, unless ``first`` is (0,). ``least`` is a
    lower bound of the new values, −∞ for none.
    """
    begin, end = share(worker, workers, len(values))
    for i in range(begin, end):
        k = index(i)
        u = values[k]
        start[k], values[k], rate[k] = u, _after_stage(u, u, rate[k], dt, weight, least), 0.0
    for i in range(begin, min(end, len(first))):
        first[index(i)] = values[index(i)]


@compiled(relative_speed=8)
def advance(worker, workers, start, values, rate, dt, weight, least):
    """Compute a stage of a Shu–Osher scheme: values ← w + weight (start − w), w = values + dt rate.

    Afterward rate ← 0. ``least`` is a lower bound of the new values, −∞ for none.
    """
    first, last = share(worker, workers, len(values))
    for i in range(first, last):
        k = index(i)
        values[k], rate[k] = _after_stage(start[k], values[k], rate[k], dt, weight, least), 0.0


@inline
def _raising_factor(largest):
    """Return a power of two by which to multiply numbers up to ``largest``, so that their squares do not underflow."""
    return RAISING_FACTOR if largest < TINY_COMPONENT else 1.0


@compiled(fastmath={"contract"})
def scale_softmax(worker, workers, normalizer, numerator, reach):
    """Divide the numerator N (n, d) of a softmax average by max(Z, |N|/reach), in place, with the normalizer Z (n,).

    The quotient has |N| ≤ reach even if Z is lost to rounding. Where the divisor is 0, the numerator is unchanged.
    """
    first, last = share(worker, workers, len(normalizer))
    d, least = numerator.shape[1], 1.0 / reach
    for i in range(first, last):
        largest, square = 0.0, 0.0
        for c in range(d):
            largest = max(largest, abs(numerator[i, c]))
        up = _raising_factor(largest)
        for c in range(d):
            square += (numerator[i, c] * up) ** 2
        bound = max(normalizer[i], np.sqrt(square) / up * least)
        if bound > 0.0:
            for c in range(d):
                numerator[i, c] /= bound


@kernel
def apply_matrix(worker, workers, matrix, vectors):
    """Compute vectors[i] = matrix vectors[i] in place, for vectors (n, d)."""
    first, last = share(worker, workers, len(vectors))
    d = vectors.shape[1]
    image = np.empty(d)
    for i in range(first, last):
        for a in range(d):
            image[a] = 0.0
            for b in range(d):
                image[a] += matrix[a, b] * vectors[i, b]
        for a in range(d):
            vectors[i, a] = image[a]


@kernel
def project_to_tangent(worker, workers, points, vectors):
    """Compute vectors[i] −= ⟨x_i, vectors[i]⟩ x_i in place, for unit vectors x (n, d)."""
    first, last = share(worker, workers, len(vectors))
    d = vectors.shape[1]
    for i in range(first, last):
        along = 0.0
        for c in range(d):
            along += points[i, c] * vectors[i, c]
        for c in range(d):
            vectors[i, c] -= along * points[i, c]
