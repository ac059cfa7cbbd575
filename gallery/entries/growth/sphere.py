"""
Growth of a mode of the uniform density on the sphere
=====================================================

A spherical harmonic of degree l grows as e^{λt} with λ_l = l(l+1) I_{l+1/2}(β)/(β I_{1/2}(β)) for softmax attention.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

case = mf.load_case("growth_sphere", ["domain.resolution=48"])
result = mf.simulate(case)
degree, beta = case.initial.degree, case.attention.beta

time = np.asarray(result.diagnostics.time)
power = np.asarray(result.diagnostics["power"])[:, degree]
early = power < 1e-6
slope = np.polyfit(time[early], np.log(power[early]) / 2, 1)[0]

STATEMENT = Statement(
    text=f"degree {degree} grows at λ = l(l+1) I_{{l+½}}(β)/(β I_½(β)), β = {beta:g}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=degree * (degree + 1) * ive(degree + 0.5, beta) / (beta * ive(0.5, beta)),
    found=slope,
    tolerance=3e-3,
    reason="second order in 48 rings",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
