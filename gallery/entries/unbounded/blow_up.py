"""
Blow-up of a Gaussian without layer norm
========================================

On the line, with V = 1, a Gaussian of variance s remains Gaussian with ds/dt = 2βs²; it blows up at t = 1/(2βs).
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("blow_up_line")
result = mf.simulate(case)
time, variance = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["variance"]).ravel()
half = time <= 0.8 * time[-1]
# 1/s falls linearly with the slope −2β, and is zero at the blow-up.
line = np.polyfit(time[half], 1 / variance[half], 1)

STATEMENT = Statement(
    text="a Gaussian of variance s on the line blows up at t = 1/(2βs)",
    source="formula derived here; growth without layer norm as in Zhang and Zhou 2408.09523v2",
    read="abstract",
    expected=1 / (2 * case.attention.beta * case.initial.variance),
    found=-line[1] / line[0],
    tolerance=5e-3,
    reason="second order in the cells of the core",
)

# %%
draw(
    "time",
    "1/variance",
    run=(time, 1 / variance),
    formula=(time, 1 / case.initial.variance - 2 * case.attention.beta * time),
)
print(STATEMENT)
