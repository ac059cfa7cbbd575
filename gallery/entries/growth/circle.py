"""
Growth of a mode of the uniform density on the circle
=====================================================

A perturbation cos lφ of the uniform density grows as e^{λt} with λ_l = l² I_l(β)/(β I_0(β)) for softmax attention.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

case = mf.load_case("growth_circle")
result = mf.simulate(case)
degree, beta = case.initial.degree, case.attention.beta

# %%
# The amplitude of the mode is the root of its power; its logarithm is a line of slope λ.
time = np.asarray(result.diagnostics.time)
power = np.asarray(result.diagnostics["power"])[:, degree]
early = power < 1e-6  # relative to the uniform density: nonlinear terms are of that order
slope = np.polyfit(time[early], np.log(power[early]) / 2, 1)[0]

STATEMENT = Statement(
    text=f"mode {degree} grows at λ = l² I_l(β)/(β I₀(β)), β = {beta:g}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=degree**2 * ive(degree, beta) / (beta * ive(0, beta)),
    found=slope,
    tolerance=1e-4,
    reason="second order in 256 cells",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
