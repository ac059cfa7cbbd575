"""
Layer norm mix: post first, then pre
====================================

Until the switch tokens come together exponentially, afterwards as (t + const)⁻².
"""

import numpy as np

from gallery.equiangular import run
from gallery.figure import draw
from gallery.statement import Statement

time, apart = run("mix", 8, 2.0, 2000.0, "stabilizers.switch=2")
late = time > 1000

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (mix), after the switch",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2, table 5.1",
    read="abstract; formula derived here",
    published=-2.0,
    found=np.polyfit(np.log(time[late]), np.log(apart[late]), 1)[0],
    tolerance=1e-2,
    reason="corrections of order 1/t",
)

# %%
after = time > 1
line = apart[late][0] * (time[late] / time[late][0]) ** -2
draw("time", "1 − g", logx=True, logy=True, run=(time[after], apart[after]), formula=(time[late], line))
print(STATEMENT)
