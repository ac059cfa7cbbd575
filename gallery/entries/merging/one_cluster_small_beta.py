"""
Convergence to one cluster for small β
======================================

For β ≤ 1 almost every start on the circle ends in one cluster.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run, uniform

seeds, lengths = range(size(12, 200)), []
for seed in seeds:
    time, path = run(uniform(16, 2, seed), 60.0, "attention.beta=1", "output.snapshots=30")
    lengths.append(np.linalg.norm(path.mean(axis=1), axis=1))
ends = np.array(lengths)[:, -1]

STATEMENT = Statement(
    text="share of uniform starts of 16 tokens on the circle that end in one cluster, β = 1",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v5, section 4 (β ≤ C/n; β ≤ 1 on the circle)",
    read="statement transcribed by a third party",
    expected=1.0,
    found=float((ends > 0.999).mean()),
    tolerance=0.0,
    reason="holds in every case",
)

# %%
draw(
    "time",
    "length of the mean token",
    shortest=(time, np.min(lengths, axis=0)),
    median=(time, np.median(lengths, axis=0)),
)
print(STATEMENT)
