"""
Kuramoto: synchrony at K = 3D
=============================

Oscillators of one frequency with noise D and coupling K have r = I₁(Kr/D)/I₀(Kr/D).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ive

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Advection, Diffusion, Equation, SteadyState, circle, solve

RATIO, mesh = 3.0, circle(128)
x, area = mesh.centers, mesh.volumes


def pull(time, density):
    mean = RATIO * (density * area) @ x
    return mean - (x @ mean)[:, None] * x


equation = Equation(mesh, [Advection(mesh, pull, limiter="none"), Diffusion(mesh, 1.0)])
solution = solve(equation, (1 + 0.5 * x[:, 0]) / (2 * np.pi), (0.0, 15.0), events=SteadyState(1e-6))

STATEMENT = Statement(
    text="order parameter r at K/D = 3",
    source="Kuramoto (1984); formula of the Gibbs density",
    read="formula derived here",
    expected=brentq(lambda r: ive(1, RATIO * r) / ive(0, RATIO * r) - r, 0.1, 1.0),
    found=np.linalg.norm((solution.u[-1] * area) @ x),
    tolerance=2e-4,
    reason="second order in 128 cells",
)

# %%
angles = np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)
order = np.argsort(angles)
gibbs = np.exp(RATIO * STATEMENT.expected * (np.cos(angles[order]) - 1))
draw(
    "angle",
    "density",
    run=(angles[order], solution.u[-1][order]),
    formula=(angles[order], gibbs / gibbs.mean() / (2 * np.pi)),
)
print(STATEMENT)
