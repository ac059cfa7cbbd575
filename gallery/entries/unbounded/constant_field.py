"""
A field without layer norm explodes
===================================

A nearly constant field u(x, t) grows as e^{(1 − γ)t} for V = I and a gate γ.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("representation_blow_up", ["domain.count=32"])
result = mf.simulate(case)
time, field = np.asarray(result.time), np.asarray(result.position)
length = np.linalg.norm(field.mean(axis=1), axis=1)
late = time > time[-1] / 2

STATEMENT = Statement(
    text=f"a constant field grows at Re λ_max(V) − γ = 1 − {case.stabilizers.gate:g}",
    source="formula derived here; explosion without layer norm as in Zhang and Zhou 2408.09523v2",
    read="abstract",
    expected=1 - case.stabilizers.gate,
    found=np.polyfit(time[late], np.log(length[late]), 1)[0],
    tolerance=1e-3,
    reason="initial waves of amplitude 0.1 decay first",
)

# %%
line = length[late][0] * np.exp(STATEMENT.expected * (time[late] - time[late][0]))
draw("time", "length of the mean of the field", logy=True, run=(time, length), formula=(time[late], line))
print(STATEMENT)
