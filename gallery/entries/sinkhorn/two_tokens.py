"""
Two tokens with Sinkhorn attention
==================================

Two tokens of masses m and n attend to each other with the weight p = 2/(1 + √(1 + 4mn(e^{2β(1 − cos φ)} − 1))), and
dφ/dt = −p sin φ.
"""

import numpy as np
from scipy.integrate import solve_ivp

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle, run

BETA, MASSES, END = 2.0, [0.8, 0.2], 3.0
changes = [f"attention.beta={BETA}", "attention.normalization=sinkhorn", f"initial.masses={MASSES}"]
time, path = run(on_circle([1.0, -1.0]), END, *changes)
angle = np.arccos(np.clip(np.einsum("td,td->t", path[:, 0], path[:, 1]), -1, 1))


def rate(time, angle):
    q = MASSES[0] * MASSES[1] * (np.exp(2 * BETA * (1 - np.cos(angle))) - 1)
    return -2 * np.sin(angle) / (1 + np.sqrt(1 + 4 * q))


expected = solve_ivp(rate, (0, END), [2.0], t_eval=time, rtol=1e-11, atol=1e-13).y[0]

STATEMENT = Statement(
    text="angle of two tokens of masses 0.8 and 0.2 at t = 3, initially 2 rad, Sinkhorn, β = 2",
    source="Sander, Ablin, Blondel, Peyré 2110.11773 (Sinkhorn attention)",
    read="formula derived here",
    expected=expected[-1],
    found=angle[-1],
    tolerance=1e-6,
    reason="steps to 1e-10, and tolerance of the Sinkhorn iteration",
)

# %%
draw("time", "angle of the two tokens", run=(time, angle), formula=(time, expected))
print(STATEMENT)
