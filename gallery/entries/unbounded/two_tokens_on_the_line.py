"""
Two tokens on the line
======================

For tokens at ±a without layer norm, u = βa² obeys du/dt = 2u tanh u.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, A, END = 1.5, 0.6, 0.5
points = [[A, 0.0], [-A, 0.0]]
changes = [f"attention.beta={BETA}", f"initial.points={points}", "stabilizers.layer_norm=none", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
tokens = np.asarray(result.position)[-1]
u = solve_ivp(lambda time, u: 2 * u * np.tanh(u), (0, END), [BETA * A**2], rtol=1e-11, atol=1e-13).y[0, -1]

STATEMENT = Statement(
    text="distance of two tokens from their midpoint at t = ½, β = 1.5, without layer norm",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (without layer norm)",
    read="abstract; formula derived here",
    expected=np.sqrt(u / BETA),
    found=np.linalg.norm(tokens[0]),
    tolerance=1e-8,
    reason="steps to 1e-10",
)

# %%
time = np.asarray(result.time)
formula = solve_ivp(lambda time, u: 2 * u * np.tanh(u), (0, END), [BETA * A**2], t_eval=time, rtol=1e-9).y[0]
apart = np.linalg.norm(np.asarray(result.position)[:, 0], axis=1)
draw("time", "distance from the midpoint", run=(time, apart), formula=(time, np.sqrt(formula / BETA)))
print(STATEMENT)
