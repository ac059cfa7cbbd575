"""Names of the time integration methods that solve any equation."""

from solvers.timestepping.methods import METHODS

GENERAL = [name for name in METHODS if name != "symplectic"]  # which solves ∂ₜq = g(t, p), ∂ₜp = f(t, q)
