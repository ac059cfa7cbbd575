"""
Two tokens and random V: convergence to one point or to antipodes
=================================================================

V ~ N(0, 1/d) is drawn for each layer, β = 0, and steps are small. With u the cosine of two tokens, artanh u has the
drift (d − 2 + u)/2d and the variance 1/d per unit of time (derived here). For d ≥ 3 tokens converge to one point. On
the circle two tokens φ apart do so with probability 1 − φ/π, and converge to antipodes otherwise.
"""

import tempfile
from pathlib import Path

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle, run

LAYERS, STEP, ANGLE, COUNT = 400, 0.25, 2.0, size(40, 2000)
paths = []
with tempfile.TemporaryDirectory() as folder:
    for seed in range(COUNT):
        values = np.random.default_rng(seed).standard_normal((LAYERS, 2, 2)) / np.sqrt(2)
        np.savez(Path(folder) / "values.npz", value=values)
        changes = ["attention.beta=0", f"attention.file={folder}/values.npz", "time.method=layers"]
        changes += [f"time.layers={LAYERS}", f"time.step={STEP}", "output.snapshots=12"]
        path = run(on_circle([0.0, ANGLE]), LAYERS * STEP, *changes)[1]
        paths.append(np.einsum("td,td->t", path[:, 0], path[:, 1]))
cosines = np.array(paths)
opposite = float((cosines[:, -1] < 0).mean())

STATEMENT = Statement(
    text="share of pairs of tokens on the circle, 2 rad apart, that end opposite each other, random V, β = 0",
    source="Fedorov, Sander, Elie, Marion, Laurière, Clustering in Deep Stochastic Transformers (PMLR 306): opposite "
    "tokens attract with positive probability, by the dimension",
    read="abstract; probability derived here",
    expected=ANGLE / np.pi,
    found=opposite,
    tolerance=3 * np.sqrt((1 - ANGLE / np.pi) / (ANGLE / np.pi) / COUNT) + 0.02,
    reason="three standard deviations of the share, and steps of 0.25",
)

# %%
share = (cosines < 0).mean(axis=0)
time = np.linspace(0, LAYERS * STEP**2, len(share))
draw(
    "t",
    "share of pairs farther apart than π/2",
    run=(time, share),
    formula_at_the_end=(time[[0, -1]], [ANGLE / np.pi] * 2),
)
print(STATEMENT)
