"""
Hardmax: interior tokens move straight to a vertex
==================================================

As β → ∞, without layer norm and with a gate of 1, dx/dt = argmax⟨x, y⟩ − x. Vertices are fixed, and an interior token
moves along a straight line to the vertex of its cell, as e^{−t}.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run

POINTS = [[3.0, 0.0], [-1.0, 2.5], [-1.0, -2.5], [0.4, 0.2]]
changes = ["attention.beta=60", "stabilizers.layer_norm=none", "stabilizers.gate=1", "output.snapshots=60"]
time, path = run(POINTS, 6.0, *changes)
distance = np.linalg.norm(path[:, 3] - path[:, 0], axis=1)
assert np.linalg.norm(path[-1, 1:3] - path[0, 1:3], axis=1).max() < 1e-12  # vertices without a nearby token

STATEMENT = Statement(
    text="rate at which an interior token approaches its vertex, β = 60",
    source="Alcalde, Geshkovski, Ruiz-Balet 2508.09628v1",
    read="abstract; formula derived here",
    expected=-1.0,
    found=np.polyfit(time, np.log(distance), 1)[0],
    tolerance=1e-3,
    reason="initial softmax weights e^{−0.7β} of other tokens",
)

# %%
draw("time", "distance from the vertex", logy=True, run=(time, distance), formula=(time, distance[0] * np.exp(-time)))
print(STATEMENT)
