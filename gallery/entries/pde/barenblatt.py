"""
Barenblatt solution of the porous medium equation
=================================================

∂ₜu = Δu² on the line has the solution u = t^{−1/3}(1 − ξ²/12)₊ with ξ = x t^{−1/3}; its support ends at √12 t^{1/3}.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Equation, NonlinearDiffusion, State, interval
from solvers.timestepping.evolution import evolve

mesh = interval(-4.0, 4.0, 200)
x = mesh.centers[:, 0]


def barenblatt(time):
    """Return the Barenblatt solution t^{−1/3} (1 − ξ²/12)₊ with ξ = x t^{−1/3} at the cell centers x."""
    return np.maximum(1 - (x / time ** (1 / 3)) ** 2 / 12, 0) / time ** (1 / 3)


term = NonlinearDiffusion(mesh, lambda u: u**2)
end = evolve(State(0.1, barenblatt(0.1)), Equation(None, [term]), "ssprk3", 1.0, rtol=1e-5).values

STATEMENT = Statement(
    text="second moment of ∂ₜu = Δu² at t = 1 from the Barenblatt solution at t = 0.1",
    source="Barenblatt (1952)",
    read="formula derived here",
    expected=(barenblatt(1.0) * x**2) @ mesh.volumes,
    found=(end * x**2) @ mesh.volumes,
    tolerance=2e-3,
    reason="first order at the edge, 200 cells",
)

# %%
draw("x", "u", start=(x, barenblatt(0.1)), end=(x, end), formula=(x, barenblatt(1.0)))
print(STATEMENT)
