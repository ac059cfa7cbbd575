"""
Onsager: instability of the isotropic phase of rods
===================================================

With the excluded area c|sin γ| between rods, degree 2 grows for c > 32/π.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import DenseKernel, DriftDiffusion, sphere

rates, strengths, mesh = [], (9.0, 11.0), sphere(24)
z = mesh.centers[:, 2]
shape = (3 * z**2 - 1) / 2
field = DenseKernel(mesh, lambda x, y: np.sqrt(np.clip(1 - (x * y).sum(axis=-1) ** 2, 0, None)))
for strength in strengths:
    term = DriftDiffusion(mesh, 1.0, lambda t, u, c=strength: c * field(u), nonnegative=True)
    moments = []
    for amplitude in (-1e-3, 1e-3):
        term.prepare(0.0, (1 + amplitude * shape) / (4 * np.pi))
        rate = np.zeros(mesh.cells)
        term.rate(0.0, rate)
        moments.append((rate * mesh.volumes) @ shape)
    rates.append(moments[1] - moments[0])

STATEMENT = Statement(
    text="concentration c at which degree 2 of the isotropic phase is neutral",
    source="Onsager (1949); Kayser and Raveché (1978)",
    read="formula derived here",
    expected=32 / np.pi,
    found=strengths[0] - rates[0] * 2 / (rates[1] - rates[0]),
    tolerance=1e-2,
    reason="second order in 24 rings",
)

# %%
draw(
    "concentration c", "growth of degree 2", growth=(strengths, rates), formula=(np.full(2, STATEMENT.expected), rates)
)
print(STATEMENT)
