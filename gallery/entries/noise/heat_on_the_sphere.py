"""
Heat equation: noise without attention
======================================

Without attention degree l on the sphere decays as e^{−l(l+1)κt}.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

KAPPA = 0.1
changes = ["attention.value=[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]", f"stabilizers.noise={KAPPA}"]
case = mf.load_case("growth_sphere", [*changes, "domain.resolution=64", "time.end=2"])
result = mf.simulate(case)
l = case.initial.degree
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, l]

STATEMENT = Statement(
    text="decay of degree 3 at κ = 0.1 without attention",
    source="heat equation",
    read="formula derived here",
    expected=-l * (l + 1) * KAPPA,
    found=np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=5e-3,
    reason="second order in 64 rings",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
