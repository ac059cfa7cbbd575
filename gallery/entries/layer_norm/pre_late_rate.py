"""
Layer norm pre: tokens come together as t⁻²
===========================================

Late, 1 − g falls with a power of time instead of exponentially, for the radius grows as t.
"""

import numpy as np

from gallery.equiangular import run
from gallery.figure import draw
from gallery.statement import Statement

time, apart = run("pre", 8, 2.0, 2000.0)
late = time > 1000

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (pre)",
    source="Karagodin and others 2510.22026v2, table 5.1; Rigollet 2512.01868, section 6.2",
    read="text of 2512.01868",
    published=-2.0,
    found=np.polyfit(np.log(time[late]), np.log(apart[late]), 1)[0],
    tolerance=1e-2,
    reason="corrections of order 1/t",
)

# %%
after = time > 1
draw(
    "time",
    "1 − g",
    logx=True,
    logy=True,
    run=(time[after], apart[after]),
    formula_of_slope_2=(time[late], apart[late][0] * (time[late] / time[late][0]) ** -2),
)
print(STATEMENT)
