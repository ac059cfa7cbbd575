"""
Isolated motion of the closest pair
===================================

Clusters move at speeds of order e^{−β(1 − ⟨x_i, x_j⟩)}. Of three clusters, the speeds of the nearest and the farthest
differ by the factor e^{βΔ}, where Δ is the difference of the cosines with their nearest neighbors.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

ANGLES, betas, ratios = np.array([0.0, 0.8, 2.8]), np.array([10.0, 12.0, 14.0, 16.0]), []
for beta in betas:
    time, path = run(on_circle(ANGLES), 1e-2, f"attention.beta={beta}", "output.snapshots=1")
    speeds = np.abs(continuous_angles(path)[-1] - continuous_angles(path)[0])
    ratios.append(np.log(speeds[0] / speeds[2]))

STATEMENT = Statement(
    text="log of the ratio of speeds of tokens 1 and 3 at 0, 0.8 and 2.8 rad, per unit of β",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (slow phase); Rigollet 2512.01868, section 5.2",
    read="text of 2512.01868; rates at finite β derived here",
    expected=np.cos(0.8) - np.cos(2.0),
    found=np.polyfit(betas, ratios, 1)[0],
    tolerance=1e-2,
    reason="weights of the third token, and rounding of displacements of 1e-12",
)

# %%
draw(
    "β",
    "log of the ratio of speeds",
    runs=(betas, ratios),
    formula=(betas, ratios[0] + STATEMENT.expected * (betas - betas[0])),
)
print(STATEMENT)
