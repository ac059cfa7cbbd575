"""
Stability of the uniform density for V = −I
===========================================

Every growth rate changes its sign: a mode decays as fast as it grows for V = I.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw_growth
from meanfield.gallery.statement import Statement

case = mf.load_case("growth_circle", ["attention.value=[[-1, 0], [0, -1]]", "initial.amplitude=1e-3", "time.end=4"])
result = mf.simulate(case)
degree, beta = case.initial.degree, case.attention.beta
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, degree]

STATEMENT = Statement(
    text=f"mode {degree} decays at l² I_l(β)/(β I₀(β)) where V = −I, β = {beta:g}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=-(degree**2) * ive(degree, beta) / (beta * ive(0, beta)),
    found=np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=1e-3,
    reason="second order in 256 cells, and in the amplitude",
)

# %%
draw_growth(time, power, STATEMENT.expected)
print(STATEMENT)
