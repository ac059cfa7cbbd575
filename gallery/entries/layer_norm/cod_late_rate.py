"""
CoD: tokens come together as e^{−4√t}
=====================================

Late, 1 − g of equiangular tokens falls as e^{−4√(t+1)} with the layer norm cod, a power of e in √t.
"""

import numpy as np

from gallery.equiangular import run
from gallery.figure import draw
from gallery.statement import Statement

time, apart = run("cod", 8, 2.0, 40.0)
late = (apart < 1e-3) & (apart > 1e-11)
clock = np.sqrt(time + 1)
rate, offset = np.polyfit(clock[late], np.log(apart[late]), 1)

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−4√(t+1)} (cod), to t = 40",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2, table 5.1",
    read="abstract; formula derived here",
    published=-4.0,
    found=rate,
    tolerance=0.002,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw("√(t + 1)", "1 − g", logy=True, run=(clock, apart), formula=(clock[late], np.exp(offset + -4.0 * clock[late])))
print(STATEMENT)
