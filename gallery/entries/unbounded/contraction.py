"""
A negative V contracts
======================

With V = −1 on the line the variance of a Gaussian is s₀/(1 + 2βs₀t).
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("contraction_line", ["time.end=2"])
result = mf.simulate(case)
variance = np.asarray(result.diagnostics["variance"]).ravel()
s = case.initial.variance

STATEMENT = Statement(
    text="variance of a Gaussian on the line at t = 2 with V = −1",
    source="formula derived here; the equation without layer norm as in Zhang and Zhou 2408.09523v2",
    read="abstract",
    expected=s / (1 + 2 * case.attention.beta * s * 2.0),
    found=variance[-1],
    tolerance=1e-2,
    reason="second order in the cells of the core",
)

# %%
time = np.asarray(result.diagnostics.time)
draw("time", "variance", run=(time, variance), formula=(time, s / (1 + 2 * case.attention.beta * s * time)))
print(STATEMENT)
