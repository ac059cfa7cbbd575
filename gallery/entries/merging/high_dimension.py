"""
Collapse in high dimensions
===========================

The cosine g of two tokens of a density about an axis obeys dg/dt = 2g(1 − g) as d → ∞, for every β.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("collapse_high_dimension", ["domain.resolution=256"])
result = mf.simulate(case)
time = np.asarray(result.diagnostics.time)
g = np.asarray(result.diagnostics["centroid"]).ravel() ** 2  # mean cosine of two tokens drawn from ρ: |∫xρ|²
between = (g > 0.1) & (g < 0.9)

STATEMENT = Statement(
    text=f"log g/(1−g) grows at 2 in d = {case.domain.dimension} dimensions",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (d → ∞)",
    read="abstract; formula derived here",
    expected=2.0,
    found=np.polyfit(time[between], np.log(g / (1 - g))[between], 1)[0],
    tolerance=2e-2,
    reason="of order 1/d, and second order in the cells",
)

# %%
start = int(np.argmax(between))
line = np.log(g / (1 - g))[start] + 2 * (time[between] - time[start])
draw("time", "log g/(1 − g)", run=(time[1:], np.log(g[1:] / (1 - g[1:]))), formula_of_slope_2=(time[between], line))
print(STATEMENT)
