"""
CoD: tokens converge as e^{−4√t}
================================

At late times, 1 − g of equiangular tokens falls as e^{−4√(t+1)} with the layer norm cod, exponentially in √t.
"""

import numpy as np

from meanfield.gallery.equiangular import draw_late_rate, late_exponential
from meanfield.gallery.statement import Statement

rate, curves = late_exponential("cod", 40.0, -4.0, clock=lambda time: np.sqrt(time + 1))

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−4√(t+1)} (cod), to t = 40",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2",
    read="abstract; formula derived here",
    expected=-4.0,
    found=rate,
    tolerance=2e-3,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw_late_rate("√(t + 1)", curves)
print(STATEMENT)
