"""
Exact flow at β = 0 on the circle
=================================

The Poisson kernel (1−r²)/(1−2r cos φ+r²)/2π keeps its form, and dr/dt = r(1−r²)/2.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("flow_beta0_circle")
result = mf.simulate(case)
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
time = float(np.asarray(result.diagnostics.time)[-1])
grown = length[0] / np.sqrt(1 - length[0] ** 2) * np.exp(time / 2)

STATEMENT = Statement(
    text=f"length of the mean token at t = {time:g}, r/√(1−r²) ~ e^{{t/2}}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (β = 0)",
    read="abstract; formula derived here",
    expected=grown / np.sqrt(1 + grown**2),
    found=length[-1],
    tolerance=1e-3,
    reason="second order in the cells",
)

# %%
times = np.asarray(result.diagnostics.time)
grown = length[0] / np.sqrt(1 - length[0] ** 2) * np.exp(times / 2)
draw("time", "length of the mean token", run=(times, length), formula=(times, grown / np.sqrt(1 + grown**2)))
print(STATEMENT)
