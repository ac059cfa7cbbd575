"""
Layer norm pre: tokens converge as t⁻²
======================================

At late times, 1 − g falls as a power of time instead of exponentially, since the radius grows as t.
"""

from meanfield.gallery.equiangular import draw_late_rate, late_power
from meanfield.gallery.statement import Statement

power, curves = late_power("pre")

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (pre)",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2; Rigollet 2512.01868, section 6.2",
    read="text of 2512.01868",
    expected=-2.0,
    found=power,
    tolerance=1e-2,
    reason="corrections of order 1/t",
)

# %%
draw_late_rate("time", curves, logx=True)
print(STATEMENT)
