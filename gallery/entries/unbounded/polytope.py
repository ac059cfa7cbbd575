"""
Convergence to the vertices of a polytope without layer norm
============================================================

With V = I and x rescaled by e^{−t}, tokens converge to the vertices of a convex polytope in the hull of their starts.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run

points = np.random.default_rng(3).uniform(-1, 1, (16, 2))
time, path = run(points, 9.0, "attention.beta=1", "stabilizers.layer_norm=none", "output.snapshots=40")
scaled = path * np.exp(-time)[:, None, None]
leaders = [tokens[(tokens @ tokens.T).argmax(axis=1)] for tokens in scaled]  # vertex of largest attention
apart = np.linalg.norm(scaled - leaders, axis=2)

STATEMENT = Statement(
    text="share of 16 tokens that end within 0.02 of the vertex that they attend to most, V = I, without layer norm",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2305.05465v6",
    read="abstract and summary",
    expected=1.0,
    found=np.mean(apart[-1] < 0.02),
    tolerance=0.0,
    reason="holds for every token at t = 9",
)

# %%
farthest, median = np.max(apart, axis=1), np.median(apart, axis=1)
draw("time", "distance from the vertex", farthest=(time, farthest), median=(time, median))
print(STATEMENT)
