"""
Fastest mode at large β
=======================

For large β the fastest degree obeys l(l+d−2) ≈ 2β, so that √(2β) clusters form from a nearly uniform circle.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 1000.0
theory = mf.stability(mf.load_case("growth_circle", [f"attention.beta={BETA}"]), 100)

STATEMENT = Statement(
    text="the fastest mode on the circle is l = √(2β), β = 1000",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=np.sqrt(2 * BETA),
    found=float(theory.fastest),
    tolerance=2e-2,
    reason="l is an integer near 45",
)

# %%
draw(
    "degree l",
    "growth rate",
    rates=(theory.degrees, theory.rates),
    formula=(np.full(2, np.sqrt(2 * BETA)), [0, theory.rates.max()]),
)
print(STATEMENT)
