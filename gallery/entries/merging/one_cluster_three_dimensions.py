"""
Convergence to one cluster in three dimensions, for every β
===========================================================

For d ≥ 3 almost every start ends in one cluster, for every β.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run, uniform

curves, ends = {}, []
for beta in (0.5, 1.5, 3.0):
    lengths = []
    for seed in range(size(3, 100)):
        changes = [f"attention.beta={beta}", "output.spacing=log", "output.first=0.1", "output.snapshots=30"]
        time, path = run(uniform(8, 3, seed), 1000.0, *changes)
        lengths.append(np.linalg.norm(path.mean(axis=1), axis=1))
    curves[f"β_=_{beta:g}"] = (time[1:], np.min(lengths, axis=0)[1:])
    ends += [length[-1] for length in lengths]

STATEMENT = Statement(
    text="share of uniform starts of 8 tokens on S² that end in one cluster, β = ½, 1.5 and 3",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4, part 2, and works cited there; "
    "Rigollet 2512.01868, section 4.1, first theorem",
    read="text of 2512.01868",
    expected=1.0,
    found=float((np.array(ends) > 0.999).mean()),
    tolerance=0.0,
    reason="holds in every case",
)

# %%
draw("time", "shortest mean token", logx=True, **curves)
print(STATEMENT)
