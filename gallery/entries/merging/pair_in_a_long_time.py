"""
Merger of the closest pair in a time of order e^{β(1 − ρ)}
==========================================================

Two tokens with the initial cosine ρ merge after about e^{β(1−ρ)}/(2β(1−ρ²)), up to a relative error of order 1/β.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, ANGLE = 40.0, 2.0
rho = np.cos(ANGLE)
points = [[float(np.cos(1)), sign * float(np.sin(1))] for sign in (1, -1)]
changes = [f"attention.beta={BETA}", "initial.kind=points", f"initial.points={points}", "domain.dimension=2"]
changes += ["time.end=1e24", "output.first=1e22", "output.spacing=log", "output.snapshots=100"]
result = mf.simulate(mf.load_case("tokens_ladder", changes))
time, tokens = np.asarray(result.time), np.asarray(result.position)
cosine = np.einsum("td,td->t", tokens[:, 0], tokens[:, 1])
expected = np.exp(BETA * (1 - rho)) / (2 * BETA * (1 - rho**2))

STATEMENT = Statement(
    text="log of the time until two tokens 2 rad apart have merged, β = 40",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (closest pair)",
    read="abstract; formula derived here",
    expected=np.log(expected),
    found=np.log(time[np.argmax(cosine > 0.5)]),
    tolerance=1e-3,
    reason="1/β in the time, and snapshots 6 % apart",
)

# %%
draw(
    "time", "cosine of the two tokens", logx=True, run=(time[1:], cosine[1:]), formula=(np.full(2, expected), [rho, 1])
)
print(STATEMENT)
