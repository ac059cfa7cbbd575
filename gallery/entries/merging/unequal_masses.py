"""
Two tokens of unequal masses
============================

The angle φ of tokens of masses m₁ and m₂ obeys dφ/dt = −sin φ [m₂e/(m₁ + m₂e) + m₁e/(m₂ + m₁e)], e = e^{β(cos φ −
1)}.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, MASSES, END = 3.0, (0.8, 0.2), 5.0
changes = [f"attention.beta={BETA}", f"initial.masses={list(MASSES)}", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
tokens = np.asarray(result.position)[-1]


def rate(time, angle):
    e = np.exp(BETA * (np.cos(angle) - 1))
    a, b = MASSES
    return -np.sin(angle) * (b * e / (a + b * e) + a * e / (b + a * e))


STATEMENT = Statement(
    text="angle of two tokens of masses 0.8 and 0.2 at t = 5, initially 2 rad, β = 3",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=solve_ivp(rate, (0, END), [2.0], rtol=1e-11, atol=1e-13).y[0, -1],
    found=np.arccos(tokens[0] @ tokens[1]),
    tolerance=1e-7,
    reason="steps to 1e-10",
)

# %%
time = np.asarray(result.time)
path = np.asarray(result.position)
angles = np.arccos(np.einsum("td,td->t", path[:, 0], path[:, 1]))
formula = solve_ivp(rate, (0, END), [2.0], t_eval=time, rtol=1e-9).y[0]
draw("time", "angle of the two tokens", run=(time, angles), formula=(time, formula))
print(STATEMENT)
