"""
Staircase of the energy
=======================

With k remaining clusters of masses m_j, 2βe^{−β}E is Σ m_j². A merger of i and j raises this value by 2 m_i m_j.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle

BETA, MASSES = 12.0, [0.5, 0.3, 0.2]
changes = [
    f"attention.beta={BETA}",
    f"initial.points={on_circle([0.0, 1.0, 3.0]).tolist()}",
    f"initial.masses={MASSES}",
]
changes += ["attention.normalization=unnormalized", "attention.rescaled=true", "time.end=1000", "output.samples=2000"]
result = mf.simulate(mf.load_case("tokens_pair", changes))
time, energy = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["energy"])
levels = 2 * BETA * np.exp(-BETA) * energy

STATEMENT = Statement(
    text="rise of 2βe^{−β}E when clusters of masses 0.5 and 0.3 merge, β = 12",
    source="Geshkovski, Koubbi, Polyanskiy, Rigollet 2410.06833v1; Rigollet 2512.01868, section 5.2",
    read="text of 2512.01868; rise derived here",
    expected=2 * MASSES[0] * MASSES[1],
    found=levels[-1] - levels[0],
    tolerance=1e-2,
    reason="0.4 % of the rise, e^{β(cos 1 − 1)}, is present initially",
)

# %%
draw("time", r"$2\beta e^{-\beta}E$", run=(time, levels), formula=(time[[0, -1]], np.full(2, 0.64 + 0.04)))
print(STATEMENT)
