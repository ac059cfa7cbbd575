"""
Layers with V = −I flip a regular polygon
=========================================

A layer x ← N(x − Δ A(x)) preserves a regular polygon or rotates it by π. The rotation occurs for Δ > 1/a with
a = Σ_j e^{β cos 2πj/n} cos(2πj/n)/Σ_j e^{β cos 2πj/n}.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.polygon import self_attention
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle, run

N, BETA = 6, 2.0
angles = 2 * np.pi * np.arange(N) / N
a = self_attention(N, BETA)


def cosine_after_a_layer(step):
    changes = [f"attention.beta={BETA}", "attention.value=[[-1, 0], [0, -1]]", "time.method=layers", "time.layers=1"]
    path = run(on_circle(angles), step, *changes, f"time.step={step}", "output.snapshots=1")[1]
    return path[-1, 0] @ path[0, 0]


low, high = 0.5 / a, 2 / a
tried = {step: cosine_after_a_layer(step) for step in np.linspace(low, high, 8)}
while high - low > 1e-6 * low:
    middle = (low + high) / 2
    low, high = (low, middle) if cosine_after_a_layer(middle) < 0 else (middle, high)

STATEMENT = Statement(
    text="step beyond which a layer with V = −I rotates a regular hexagon by π, β = 2",
    source="Gao, Yang, Chen 2609.28448v1 (V = −I in layers on the circle)",
    read="abstract, and a summary by a third party; formula derived here",
    expected=1 / a,
    found=low,
    tolerance=2e-6,
    reason="bisection to 1e-6",
)

# %%
curves = {"runs": (list(tried), list(tried.values())), "formula": (np.full(2, 1 / a), [-1, 1])}
draw("step", "cosine of a token before and after the layer", **curves)
print(STATEMENT)
