"""
Ornstein and Uhlenbeck: variance in time
========================================

∂ₜρ = ∂ₓ(xρ) + ∂ₓ²ρ preserves Gaussians, with variance 1 − (1 − s₀)e^{−2t}.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import DriftDiffusion, Equation, State, interval
from solvers.timestepping.evolution import evolve

mesh, start, end = interval(-8.0, 8.0, 200), 0.25, 0.5
x = mesh.centers[:, 0]
term = DriftDiffusion(mesh, 1.0, x**2 / 2)
density = np.exp(-(x**2) / (2 * start)) / np.sqrt(2 * np.pi * start)
values = evolve(State(0.0, density.copy()), Equation(None, [term]), "ssprk3", end, rtol=1e-6).values

STATEMENT = Statement(
    text="variance at t = ½, initially ¼",
    source="Ornstein and Uhlenbeck (1930)",
    read="formula derived here",
    expected=1 - (1 - start) * np.exp(-2 * end),
    found=(values * x**2) @ mesh.volumes,
    tolerance=2e-3,
    reason="second order in 200 cells",
)

# %%
variance = STATEMENT.expected
draw(
    "x",
    "density",
    start=(x, density),
    end=(x, values),
    formula=(x, np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)),
)
print(STATEMENT)
