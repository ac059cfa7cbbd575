"""
Massless tracer near one cluster
================================

A token of vanishing mass moves toward a Dirac measure as z(t) = tanh(t + artanh z₀), where z is the cosine, for softmax
attention and every β.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

Z0, END = -0.6, 2.0
points = [[1.0, 0.0], [Z0, float(np.sqrt(1 - Z0**2))]]
changes = ["attention.beta=3", f"initial.points={points}", "initial.masses=[1.0, 1e-12]", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
tokens = np.asarray(result.position)[-1]

STATEMENT = Statement(
    text="cosine with a Dirac measure at t = 2, initially −0.6, β = 3",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=np.tanh(END + np.arctanh(Z0)),
    found=tokens[0] @ tokens[1],
    tolerance=1e-8,
    reason="steps to 1e-10",
)

# %%
path, time = np.asarray(result.position), np.asarray(result.time)
cosines = np.einsum("td,td->t", path[:, 0], path[:, 1])
draw("time", "cosine with the Dirac measure", run=(time, cosines), formula=(time, np.tanh(time + np.arctanh(Z0))))
print(STATEMENT)
