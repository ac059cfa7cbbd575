"""
Vicsek: alignment in three dimensions
=====================================

Mean-field alignment of noise 1 and strength K: r = I_{3/2}(Kr)/I_{1/2}(Kr) = coth Kr − 1/(Kr).
"""

import numpy as np
from scipy.optimize import brentq

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import DriftDiffusion, axisymmetric

K, orders = 4.5, []
for cells in (48, 96):
    mesh = axisymmetric(3, cells)
    z, area = np.cos(mesh.centers[:, 0]), mesh.volumes
    weights = K * area * z

    def potential(t, u, z=z, weights=weights):
        return -z * (u @ weights)

    term = DriftDiffusion(mesh, 1.0, potential, nonnegative=True)
    u = (1 + 0.5 * z) / area.sum()
    for _ in range(200):
        term.prepare(0.0, u)
        term.step(0.5, u)
    orders.append((u * area) @ z)

STATEMENT = Statement(
    text="order parameter at K = 1.5 d, d = 3",
    source="Frouvelle and Liu (2012); formula of the Gibbs density",
    read="formula derived here",
    expected=brentq(lambda r: 1 / np.tanh(K * r) - 1 / (K * r) - r, 0.1, 1.0),
    found=orders[1] + (orders[1] - orders[0]) / 3,
    tolerance=1e-4,
    reason="Richardson of 48 and 96 cells",
)

# %%
draw(
    "z",
    "density",
    run=(z, u),
    formula=(z, np.exp(K * STATEMENT.expected * (z - 1)) / (np.exp(K * STATEMENT.expected * (z - 1)) @ area)),
)
print(STATEMENT)
