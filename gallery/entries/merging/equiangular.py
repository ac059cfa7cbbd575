"""
Equiangular tokens
==================

The cosine g of n tokens with equal pairwise angles obeys dg/dt = 2e^{βg}(1−g)((n−1)g+1)/(e^β + (n−1)e^{βg}).
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("tokens_equiangular", ["time.end=2", "output.snapshots=4", "output.samples=4"])
result = mf.simulate(case)
tokens = np.asarray(result.position)[-1]
n, beta = len(tokens), case.attention.beta
cosines = (tokens @ tokens.T)[np.triu_indices(n, 1)]
start = (np.asarray(result.position)[0] @ np.asarray(result.position)[0].T)[0, 1]


def rate(time, g):
    return 2 * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1) / (np.exp(beta) + (n - 1) * np.exp(beta * g))


STATEMENT = Statement(
    text=f"cosine of {n} equiangular tokens at t = 2, β = {beta:g}",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4; Rigollet 2512.01868, section 6.1",
    read="text of 2512.01868 (equation of ρ)",
    expected=solve_ivp(rate, (0, 2), [start], rtol=1e-11, atol=1e-12).y[0, -1],
    found=cosines.mean(),
    tolerance=1e-7,
    reason="steps to 1e-10",
)

# %%
path, time = np.asarray(result.position), np.asarray(result.time)
cosines = np.einsum("td,td->t", path[:, 0], path[:, 1])
fine = np.linspace(0, 2, 100)
formula = solve_ivp(rate, (0, 2), [start], t_eval=fine, rtol=1e-9).y[0]
draw("time", "cosine of two tokens", run=(time, cosines), formula=(fine, formula))
print(STATEMENT)
