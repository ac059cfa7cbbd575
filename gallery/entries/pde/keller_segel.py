"""
Keller and Segel: collapse above the mass 8π
============================================

In the plane dM₂/dt = 4M(1 − M/8π): the second moment falls if the mass M exceeds 8π.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Convolution, DriftDiffusion, box

mesh = box((96, 96), ((-6.0, 6.0), (-6.0, 6.0)))
square = (mesh.centers**2).sum(axis=1)
field = Convolution(mesh, lambda r: -np.log((r**2).sum(axis=-1)) / (4 * np.pi))
rates = []
for mass in (20.0, 30.0):
    u = mass * np.exp(-square / 2) / (2 * np.pi)
    term = DriftDiffusion(mesh, 1.0, lambda t, u: -field.potential(u), nonnegative=True)
    term.prepare(0.0, u)
    rate = np.zeros(mesh.cells)
    term.rate(0.0, rate)
    rates.append((rate * mesh.volumes) @ square / mass)

STATEMENT = Statement(
    text="mass at which the second moment is constant",
    source="Blanchet, Dolbeault, Perthame (2006)",
    read="formula derived here",
    expected=8 * np.pi,
    found=20 - rates[0] * 10 / (rates[1] - rates[0]),
    tolerance=1e-2,
    reason="second order in 96² cells",
)

# %%
draw(
    "mass",
    "d⟨r²⟩/dt",
    second_moment=((20, 30), rates),
    formula=((20, 30), [4 * (1 - m / (8 * np.pi)) for m in (20, 30)]),
)
print(STATEMENT)
