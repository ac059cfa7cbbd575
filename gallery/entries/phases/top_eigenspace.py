"""
Alignment: tokens converge to the leading eigenspace
====================================================

At large β a token attends to its own neighborhood: dx/dt = Pₓ V x. With V = diag(1, 1, 0.2) all tokens converge to the
circle of the first two axes at the rate 1 − 0.2, each to its own projection.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run, uniform

VALUE, BETA = np.diag([1.0, 1.0, 0.2]), 2000.0
start = uniform(40, 3, 0)
time, path = run(start, 6.0, f"attention.beta={BETA}", f"attention.value={VALUE.tolist()}", "output.snapshots=60")
projected = start * [1, 1, 0]
projected /= np.linalg.norm(projected, axis=1)[:, None]
distance = np.sqrt(np.square(path - projected).sum(axis=2).mean(axis=1))
slope = np.exp(np.log(np.abs(path[..., 2]) / np.linalg.norm(path[..., :2], axis=2)).mean(axis=1))

STATEMENT = Statement(
    text="rate at which 40 tokens approach the leading eigenspace of V = diag(1, 1, 0.2), β = 2000",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (alignment); Alcalde, Bungert, Riedl, Roith 2605.10931v1 (e^{−ct})",
    read="abstracts; formula derived here",
    expected=-0.8,
    found=np.polyfit(time, np.log(slope), 1)[0],
    tolerance=2e-2,
    reason="neighbors within 1/√β = 0.02",
)

# %%
draw(
    "time",
    "distance",
    logy=True,
    height_over_the_eigenspace=(time, slope),
    distance_from_the_projections=(time, distance),
    formula=(time, slope[0] * np.exp(-0.8 * time)),
)
print(STATEMENT)
