"""
The fastest mode at large β
===========================

For large β the fastest degree obeys l(l+d−2) ≈ 2β, so that √(2β) clusters come out of a nearly uniform circle.
"""

import numpy as np

import meanfield as mf
from gallery.statement import Statement

BETA = 1000.0
fastest = mf.stability(mf.load_case("growth_circle", [f"attention.beta={BETA}"]), 100).fastest

STATEMENT = Statement(
    text="the fastest mode on the circle is l = √(2β), β = 1000",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794",
    read="formula derived again",
    published=np.sqrt(2 * BETA),
    found=float(fastest),
    tolerance=2e-2,
    reason="l is an integer near 45",
)
