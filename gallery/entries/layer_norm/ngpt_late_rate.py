"""
nGPT: tokens converge as e^{−2t}
================================

At late times, 1 − g of equiangular tokens falls as e^{−2αt} with the layer norm ngpt.
"""

from meanfield.gallery.equiangular import draw_late_rate, late_exponential
from meanfield.gallery.statement import Statement

rate, curves = late_exponential("ngpt", 10.0, -2.0, "stabilizers.alpha=1")

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−2αt} (ngpt), to t = 10",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2",
    read="abstract; formula derived here",
    expected=-2.0,
    found=rate,
    tolerance=2e-3,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw_late_rate("time", curves)
print(STATEMENT)
