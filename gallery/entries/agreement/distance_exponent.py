"""
Distance of n tokens from the density
=====================================

The Wasserstein distance W₁ from n independent tokens on the circle to their density decreases as n^{−1/2}.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

center = [{"center": [1.0, 0.0], "concentration": 1.0}]
case = mf.load_case("growth_circle", {"initial": {"kind": "von_mises_fisher", "components": center}, "time.end": 0.2})
found = mf.limit(case, n=[16, 64, 256], seeds=150, observables=["x"], intervals=1, progress=False).limit

STATEMENT = Statement(
    text="W₁ from n independent tokens to the density is proportional to n^{−1/2} on the circle, β = 5",
    source="central limit theorem, Fernandez and Méléard 1997",
    read="derived here",
    expected=-0.5,
    found=found.exponent.value,
    tolerance=0.05,
    reason="scatter of the exponent over the seeds",
)

# %%
distance = found.distance.mean(axis=(1, 2))
line = distance[0] * np.sqrt(found.n[0] / found.n)
draw("n", "W₁ (rad)", logx=True, logy=True, tokens=(found.n, distance), formula=(found.n, line))
print(STATEMENT)
