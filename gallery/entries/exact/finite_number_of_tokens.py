"""
Convergence to the mean-field limit as n^{−1/2}
===============================================

The mean token of n independent tokens differs from that of the density by order n^{−1/2}, initially and later.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

sizes, seeds, deviations = (64, 256, 1024), range(16), []
for n in sizes:
    changes = ["attention.beta=0.0", f"domain.count={n}", "time.end=1", "output.snapshots=1", "output.samples=1"]
    ends = [
        np.asarray(mf.simulate(mf.load_case("tokens_drift", [*changes, f"domain.seed={seed}"])).position)[-1]
        for seed in seeds
    ]
    ends = np.mean(ends, axis=1)
    deviations.append(np.sqrt(np.square(ends - np.mean(ends, axis=0)).sum(axis=1).mean()))

STATEMENT = Statement(
    text="power of n in the deviation of the mean token at t = 1",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (mean-field limit)",
    read="abstract; formula derived here",
    expected=-0.5,
    found=np.polyfit(np.log(sizes), np.log(deviations), 1)[0],
    tolerance=0.25,
    reason="16 seeds per size: ± 0.07",
)

# %%
formula = deviations[0] * (np.array(sizes) / sizes[0]) ** -0.5
draw(
    "number of tokens",
    "deviation of the mean token",
    logx=True,
    logy=True,
    runs=(sizes, deviations),
    formula=(sizes, formula),
)
print(STATEMENT)
