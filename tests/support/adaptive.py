"""Adaptive integration of u̇ = rate(t, u) with the package's time loop."""

from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.integrate import fixed, integrate


def evolve_adaptively(state, rate, until, observers=(), tolerance=1e-9):
    """Advance ``state`` in place to ``until``."""
    return integrate(state, fixed(AdaptiveIntegrator(rate, tolerance)), until, observers)
