"""
Fixed first token under a causal mask
=====================================

Under a causal mask token 1 attends to itself alone. With V = I it does not move, and token 2 follows
dφ/dt = −sin φ e/(1 + e), e = e^{β(cos φ − 1)}.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, END = 3.0, 3.0
changes = [f"attention.beta={BETA}", "attention.mask=causal", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
tokens = np.asarray(result.position)


def rate(time, angle):
    e = np.exp(BETA * (np.cos(angle) - 1))
    return -np.sin(angle) * e / (1 + e)


assert np.abs(tokens[:, 0] - tokens[0, 0]).max() < 1e-12

STATEMENT = Statement(
    text="angle of token 2 to token 1 at t = 3, initially 2 rad, causal, β = 3",
    source="Karagodin, Polyanskiy, Rigollet 2411.04990v2",
    read="abstract; formula derived here",
    expected=solve_ivp(rate, (0, END), [2.0], rtol=1e-11, atol=1e-13).y[0, -1],
    found=np.arccos(tokens[-1, 0] @ tokens[-1, 1]),
    tolerance=1e-7,
    reason="steps to 1e-10",
)

# %%
time = np.asarray(result.time)
angles = np.arccos(np.clip(np.einsum("td,td->t", tokens[:, 0], tokens[:, 1]), -1, 1))
formula = solve_ivp(rate, (0, END), [2.0], t_eval=time, rtol=1e-9).y[0]
draw("time", "angle of token 2 to token 1", run=(time, angles), formula=(time, formula))
print(STATEMENT)
