"""
Equiangular tokens without normalization
========================================

The cosine g obeys dg/dt = (2/n) e^{βg}(1 − g)((n−1)g + 1) for unnormalized attention.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from gallery.statement import Statement

changes = ["attention.normalization=unnormalized", "time.end=0.5", "output.snapshots=2", "output.samples=4"]
case = mf.load_case("tokens_equiangular", changes)
tokens = np.asarray(mf.simulate(case).position)
n, beta = tokens.shape[1], case.attention.beta


def rate(time, g):
    return 2 / n * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1)


STATEMENT = Statement(
    text="cosine of 32 equiangular tokens at t = ½, β = 4, unnormalized",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794",
    read="formula derived again",
    published=solve_ivp(rate, (0, 0.5), [tokens[0, 0] @ tokens[0, 1]], rtol=1e-11, atol=1e-13).y[0, -1],
    found=tokens[-1, 0] @ tokens[-1, 1],
    tolerance=1e-7,
    reason="steps to 1e-10",
)
