"""
Noise lowers growth rates by l²κ
================================

The growth rates on the circle are λ_l = l² (I_l(β)/(β I₀(β)) − κ).
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

KAPPA = 0.05
case = mf.load_case("growth_circle", [f"stabilizers.noise={KAPPA}"])
result = mf.simulate(case)
l, beta = case.initial.degree, case.attention.beta
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, l]

STATEMENT = Statement(
    text="mode 3 on the circle with κ = 0.05, β = 5",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; formula derived here",
    expected=l**2 * (ive(l, beta) / (beta * ive(0, beta)) - KAPPA),
    found=np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=1e-3,
    reason="second order in 256 cells",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
