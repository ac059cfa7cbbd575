"""
Layer norm post: tokens converge exponentially
==============================================

At late times, 1 − g of equiangular tokens falls as e^{−2t} with the layer norm post, for every β.
"""

from meanfield.gallery.equiangular import draw_late_rate, late_exponential
from meanfield.gallery.statement import Statement

rate, curves = late_exponential("post", 12.0, -2.0)

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−2t} (post)",
    source="Karagodin, Ge, Polyanskiy, Rigollet 2510.22026v2; Rigollet 2512.01868, section 6.2",
    read="text of 2512.01868",
    expected=-2.0,
    found=rate,
    tolerance=2e-3,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw_late_rate("time", curves)
print(STATEMENT)
