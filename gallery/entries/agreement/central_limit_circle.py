"""
Fluctuations of n tokens on the circle
======================================

Fluctuations of n independent tokens about the uniform density grow with its modes: n times the variance of a
coordinate of the mean token begins at ½ and grows as e^{2λt} for many tokens, with the rate λ of the first mode.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("growth_circle", {"initial": {"kind": "uniform"}, "attention.beta": 4, "time.end": 1.5})
found = mf.limit(case, n=[64, 256], seeds=100, intervals=3, progress=False).limit

# %%
# Both coordinates of the mean token have the same distribution. The growth of the variance depends little on the seeds.
variance = found.fluctuations[-1].mean(axis=1)
rate = mf.stability(case).rates[1]

STATEMENT = Statement(
    text="variance of the mean of n uniform tokens grows by e^{2λt} for n → ∞, β = 4, t = 1.5",
    source="central limit theorem, Sznitman 1991",
    read="derived here",
    expected=np.exp(2 * rate * 1.5),
    found=variance[-1] / variance[0],
    tolerance=0.05,
    reason="nonlinear terms, of order n^{−1/2} in each run",
)

# %%
time = np.linspace(0, 1.5, 50)
growth = variance[0] * np.exp(2 * rate * time)
draw("time", "n Var of the mean token", tokens=(found.time, variance), formula=(time, growth))
print(STATEMENT)
