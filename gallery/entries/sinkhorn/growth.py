"""
Growth with Sinkhorn attention
==============================

Degree l of the uniform density grows at l² q/(β(1 + q)) on the circle, q = I_l(β)/I₀(β). For large β this is half
the rate of softmax, l²/2β, and Sinkhorn attention approximates the (backward) Laplacian.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

changes = ["attention.normalization=sinkhorn", "domain.resolution=128", "time.end=4", "output.samples=40"]
case = mf.load_case("growth_circle", changes)
result = mf.simulate(case)
l, beta = case.initial.degree, case.attention.beta
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])[:, l]
q = ive(l, beta) / ive(0, beta)

STATEMENT = Statement(
    text=f"mode {l} grows at l² q/(β(1 + q)), q = I_l/I₀, Sinkhorn, β = {beta:g}",
    source="Sander, Ablin, Blondel, Peyré 2110.11773 (Sinkhorn attention)",
    read="formula derived here",
    expected=l**2 * q / (beta * (1 + q)),
    found=np.polyfit(time, np.log(power) / 2, 1)[0],
    tolerance=2e-3,
    reason="second order in 128 cells",
)

# %%
line = np.sqrt(power[0]) * np.exp(STATEMENT.expected * time)
draw("time", "amplitude of the mode", logy=True, run=(time, np.sqrt(power)), formula=(time, line))
print(STATEMENT)
