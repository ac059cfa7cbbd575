"""
Convergence to at most three hyperplanes without layer norm
===========================================================

If V has a simple leading eigenvalue λ > 0, the limit of e^{−λt}⟨φ, x⟩ along its eigenvector takes at most three values,
one of them 0.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run

VALUE = np.diag([1.0, 0.4, -0.5])
points = np.random.default_rng(0).uniform(-1, 1, (20, 3))
changes = [
    "attention.beta=1",
    "stabilizers.layer_norm=none",
    f"attention.value={VALUE.tolist()}",
    "output.snapshots=40",
]
time, path = run(points, 9.0, *changes)
along = path[..., 0] * np.exp(-time)[:, None]
values = np.array([along[-1].min(), 0.0, along[-1].max()])
apart = np.abs(along[..., None] - values).min(axis=2)

STATEMENT = Statement(
    text="share of 20 tokens within 0.02 of one of three hyperplanes, V = diag(1, 0.4, −0.5)",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2305.05465v6",
    read="abstract and summary",
    expected=1.0,
    found=np.mean(apart[-1] < 0.02),
    tolerance=0.0,
    reason="holds for every token at t = 9",
)

# %%
draw("time", r"$e^{-t}\langle\varphi, x\rangle$", **{f"token_{k}": (time, along[:, k]) for k in range(5)})
print(STATEMENT)
