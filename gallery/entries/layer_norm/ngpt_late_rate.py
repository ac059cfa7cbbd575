"""
nGPT: tokens come together as e^{−2t}
=====================================

Late, 1 − g of equiangular tokens falls as e^{−2αt} with the layer norm ngpt.
"""

import numpy as np

from gallery.equiangular import run
from gallery.figure import draw
from gallery.statement import Statement

time, apart = run("ngpt", 8, 2.0, 10.0, "stabilizers.alpha=1")
late = (apart < 1e-3) & (apart > 1e-11)
clock = time
rate, offset = np.polyfit(clock[late], np.log(apart[late]), 1)

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−2αt} (ngpt), to t = 10",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2, table 5.1",
    read="abstract; formula derived here",
    published=-2.0,
    found=rate,
    tolerance=0.002,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw("t", "1 − g", logy=True, run=(clock, apart), formula=(clock[late], np.exp(offset + -2.0 * clock[late])))
print(STATEMENT)
