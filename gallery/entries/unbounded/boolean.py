"""
Boolean limit of the attention matrix in one dimension
======================================================

Without layer norm, for d = 1 and V = 1, all weight of each row of the attention matrix concentrates in one column. At
most two columns remain, those of the outermost tokens (leaders).
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run

points = np.random.default_rng(0).uniform(-1, 1, (12, 1))
time, path = run(points, 7.0, "attention.beta=1", "stabilizers.layer_norm=none", "output.snapshots=60")
x = path[..., 0]
scores = x[:, :, None] * x[:, None, :]
weights = np.exp(scores - scores.max(axis=2, keepdims=True))
weights /= weights.sum(axis=2, keepdims=True)
largest = weights.max(axis=2).min(axis=1)
assert len(np.unique(weights[-1].argmax(axis=1))) <= 2

STATEMENT = Statement(
    text="smallest row maximum of the attention matrix at t = 7, 12 tokens on the line, β = 1",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2305.05465v6",
    read="abstract and summary",
    expected=1.0,
    found=largest[-1],
    tolerance=1e-5,
    reason="all weights but the largest fall as exp(−c e^{2t})",
)

# %%
draw("time", "smallest row maximum", run=(time, largest))
print(STATEMENT)
