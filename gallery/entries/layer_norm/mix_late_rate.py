"""
Layer norm mix: post first, then pre
====================================

Tokens converge exponentially until the switch, and as (t + const)⁻² afterwards.
"""

from meanfield.gallery.equiangular import draw_late_rate, late_power
from meanfield.gallery.statement import Statement

power, curves = late_power("mix", "stabilizers.switch=2")

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (mix), after the switch",
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
