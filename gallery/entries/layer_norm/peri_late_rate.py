"""
Layer norm peri: tokens converge as t⁻²
=======================================

At late times, 1 − g falls as a power of time instead of exponentially, since the radius grows as t.
"""

from meanfield.gallery.equiangular import draw_late_rate, late_power
from meanfield.gallery.statement import Statement

power, curves = late_power("peri")

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (peri)",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2",
    read="abstract; formula derived here",
    expected=-2.0,
    found=power,
    tolerance=1e-2,
    reason="corrections of order 1/t",
)

# %%
draw_late_rate("time", curves, logx=True)
print(STATEMENT)
