"""
Equiangular tokens without normalization
========================================

The cosine g obeys dg/dt = (2/n) e^{βg}(1 − g)((n−1)g + 1) for unnormalized attention.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

changes = ["attention.normalization=unnormalized", "time.end=0.5", "output.snapshots=2", "output.samples=4"]
case = mf.load_case("tokens_equiangular", changes)
result = mf.simulate(case)
tokens = np.asarray(result.position)
n, beta = tokens.shape[1], case.attention.beta


def rate(time, g):
    return 2 / n * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1)


STATEMENT = Statement(
    text="cosine of 32 equiangular tokens at t = ½, β = 4, unnormalized",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4; Rigollet 2512.01868, section 6.1",
    read="text of 2512.01868 (equation of ρ)",
    expected=solve_ivp(rate, (0, 0.5), [tokens[0, 0] @ tokens[0, 1]], rtol=1e-11, atol=1e-13).y[0, -1],
    found=tokens[-1, 0] @ tokens[-1, 1],
    tolerance=1e-7,
    reason="steps to 1e-10",
)

# %%
cosines, fine = np.einsum("td,td->t", tokens[:, 0], tokens[:, 1]), np.linspace(0, 0.5, 100)
formula = solve_ivp(rate, (0, 0.5), [cosines[0]], t_eval=fine, rtol=1e-9).y[0]
draw("time", "cosine of two tokens", run=(np.asarray(result.time), cosines), formula=(fine, formula))
print(STATEMENT)
