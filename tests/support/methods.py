"""Names of the time integration methods that solve any equation."""

from solvers.timestepping.methods import METHODS

SPECIAL = "symplectic", "etd4"  # for ∂ₜq = g(t, p), ∂ₜp = f(t, q), and for a stiff term that is diagonalized
GENERAL = [name for name in METHODS if name not in SPECIAL]
