"""
Collapse of attention onto the nearest key
==========================================

A query among n uniform keys on S^{d−1} gives half of its attention to one of them at β* ≍ n^{2/(d−1)}.
"""

import numpy as np
from scipy.optimize import brentq

from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import uniform

D, sizes, betas = 5, np.array([300, 1000, 3000, 10000]), []
for n in sizes:
    gaps = [1 - uniform(n, D, seed)[:, 0] for seed in range(size(60, 2000))]  # 1 − cosine with a query
    near = np.array([np.sort(gap)[:60] - gap.min() for gap in gaps])
    betas.append(np.exp(brentq(lambda b, near=near: np.mean(1 / np.exp(-np.exp(b) * near).sum(axis=1)) - 0.5, -2, 15)))

STATEMENT = Statement(
    text="power of n in the β at which the nearest of n keys has half of the attention on average, d = 5",
    source="Fixed query, random keys: 2605.08505v1, abstract",
    read="abstract",
    expected=2 / (D - 1),
    found=np.polyfit(np.log(sizes), np.log(betas), 1)[0],
    tolerance=0.15,
    reason="60 draws per size: ± 0.05",
)

# %%
line = betas[0] * (sizes / sizes[0]) ** STATEMENT.expected
draw("keys", "β", logx=True, logy=True, draws=(sizes, betas), formula=(sizes, line))
print(STATEMENT)
