"""
Ordered state just below the critical noise
===========================================

For softmax on the circle, the first harmonic a₁ of the stationary density obeys a₁² = (κ#/κ − 1)/(8|C₃| r₁³) just below
κ#.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.analysis.branches.branch import branch_of
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 2.0
branch = branch_of(mf.load_case("noise_below", [f"attention.beta={BETA}"])).branch
small = [point for point in branch.equilibria if 1e-3 < point.order < 0.1]
lengths = np.array([point.order for point in small])
drop = np.array([branch.critical / point.noise - 1 for point in small])
r1 = ive(1, BETA) / ive(0, BETA)
p, r = 1 / r1, ive(2, BETA) / ive(1, BETA)
c3 = p * (p - 1) / 16 * (r * (p - 1) / (1 - r) - (p + 2))

STATEMENT = Statement(
    text="∂a₁²/∂(κ#/κ) at the transition, β = 2",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; formula derived here",
    expected=1 / (8 * abs(c3) * r1**3),
    found=1 / np.polyfit(lengths**2, drop / lengths**2, 1)[1],
    tolerance=1e-2,
    reason="linear fit near the transition",
)

# %%
draw(
    "κ#/κ − 1",
    "length of the mean token",
    branch=(drop, lengths),
    formula=(drop, np.sqrt(drop * STATEMENT.expected)),
)
print(STATEMENT)
