"""
Tripling of the logarithm in layers without residual
====================================================

A Gaussian on the line with x ← A(x) has s_{k+1} = β² s_k³, so that log(βs) triples in every layer.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("drift_line")
result = mf.simulate(case)
variance = np.asarray(result.diagnostics["variance"]).ravel()[:3]
ratio = np.log(case.attention.beta * variance)

STATEMENT = Statement(
    text="factor of log βs of a Gaussian on the line in a layer without residual",
    source="formula derived here; the loss of the residual as in Zhang and Zhou 2408.09523v2",
    read="abstract",
    expected=3.0,
    found=ratio[1] / ratio[0],
    tolerance=1e-2,
    reason="first layer, second order in the cells",
)

# %%
layers = np.arange(3)
draw("layer", "log βs", run=(layers, ratio), formula=(layers, ratio[0] * 3.0**layers))
print(STATEMENT)
