"""
Cluster formation in a time of order β
======================================

Tokens of one of several separate groups converge as e^{−t}. A group shrinks by the factor e^{−β} in a time β, long
before groups merge after e^{β(1 − cos)}.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle, run

betas, times, curves = (8.0, 12.0, 16.0), [], {}
for beta in betas:
    time, path = run(on_circle([0, 0.03, 2, 2.03]), 20.0, f"attention.beta={beta}", "output.snapshots=300")
    apart = np.linalg.norm(path[:, 0] - path[:, 1], axis=1)
    times.append(np.interp(beta, -np.log(apart / apart[0]), time))
    curves[f"β_=_{beta:g}"] = (time, np.maximum(apart, 1e-16))

STATEMENT = Statement(
    text="time per β until a group of tokens has shrunk by e^{−β}, β = 8 to 16",
    source="Geshkovski, Koubbi, Polyanskiy, Rigollet 2410.06833v1 (times T₁ ≪ T₂); "
    "Rigollet 2512.01868, section 5.1 (T₁ ~ β, log T₂ ~ β)",
    read="text of 2512.01868; rate derived here",
    expected=1.0,
    found=np.polyfit(betas, times, 1)[0],
    tolerance=5e-3,
    reason="β·0.03² in the initial weights",
)

# %%
draw("time", "distance within a group", logy=True, **curves)
print(STATEMENT)
