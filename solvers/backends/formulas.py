"""Formulas of single numbers that a backend evaluates on its device, on a GPU in a kernel of one thread.

Numba compiles the functions for a GPU and keeps them in the folder of kernels, whose name has a hash of the files of
the backends: formulas belong to this file.
"""

from math import inf, nan

TINY = 1.1754943508222875e-38  # the smallest normal number of float32
UNIT_RTOL = 1e-12  # a density's mass is 1 to rounding


def mean_density(mass: float, volume: float) -> float:
    """Return the mean density mass/volume, and 1/volume where the mass is 1 to rounding."""
    one = 1.0 / volume
    mean = mass * one
    return one if abs(mean - one) <= UNIT_RTOL * one else mean


def uniform_part(distance: float, mean: float, volume: float) -> float:
    """Return the uniform part of a density that is summed in closed form: max(1 − (distance/mass)², 0) times the mean.

    ``distance`` is Σ|ρ − mean| V over the cells; see :func:`solvers.transforms.uniform.uniform_share`.
    """
    return mean * (1.0 - min(distance / max(mean * volume, TINY), 1.0) ** 2)


def step_below(largest: float, mass: float, limit: float, step: float) -> float:
    """Return the time step ``step`` if the largest density is below ``limit`` times the mass, else ∞."""
    return step if largest < limit * mass else inf


def step_of_rate(rate: float) -> float:
    """Return the time step 1/rate of an outflow rate ≥ 0, ∞ for 0."""
    return 1.0 / rate if rate != 0.0 else inf


def finite_step(mass: float, step: float, other: float, limit: float) -> float:
    """Return the least of three time steps; NaN where one is NaN, or the mass of the state is not finite."""
    if not -inf < mass < inf or step != step or other != other or limit != limit:
        return nan
    return min(step, other, limit)
