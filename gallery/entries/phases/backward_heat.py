"""
Heat: attention at large β is the backward heat equation
========================================================

In the time s = t/β the density obeys ∂ₛμ = −Δμ. Degree l grows at l² where l² ≪ β, exactly at l² I_l(β)/I₀(β). The
backward heat equation is ill-posed. At finite β no mode grows faster than 2/e, so that rounding errors become visible
after 50 units of time only.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, L = 400.0, 3
changes = [f"attention.beta={BETA}", f"initial.degree={L}", "domain.resolution=512", "time.end=8"]
result = mf.simulate(mf.load_case("growth_circle", changes))
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, L]
theory = mf.stability(mf.load_case("growth_circle", [f"attention.beta={BETA}"]), 20)
l = np.asarray(theory.degrees)

STATEMENT = Statement(
    text="growth rate of degree 3 in the time t/β, β = 400: 3² for the backward heat equation",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (heat phase)",
    read="abstract; formula derived here",
    expected=float(L**2),
    found=BETA * np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=1.5e-2,
    reason="I₃(β)/I₀(β) = 1 − 9/(2β) + …: 1.1 %",
    where="where l² ≪ β",
)

# %%
assert abs(STATEMENT.found / (L**2 * ive(L, BETA) / ive(0, BETA)) - 1) < 1e-3  # second order in the cells
draw("degree l", "growth rate per unit of t/β", rates=(l, BETA * theory.rates), formula_of_heat=(l, l**2))
print(STATEMENT)
