"""
Growth on the circle without normalization
==========================================

Mode l of a perturbed uniform density grows at l² I_l(β)/β per unit of time.
"""

import numpy as np
from scipy.special import iv

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

BETA = 2.0
case = mf.load_case("growth_circle", [f"attention.beta={BETA}", "attention.normalization=unnormalized", "time.end=3"])
result = mf.simulate(case)
l = case.initial.degree
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, l]

STATEMENT = Statement(
    text=f"mode {l} grows at λ = l² I_l(β)/β, unnormalized, β = {BETA:g}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=l**2 * iv(l, BETA) / BETA,
    found=np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=1e-3,
    reason="second order in the cells",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
