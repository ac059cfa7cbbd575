"""
After layer norm tokens come together exponentially
===================================================

Late, 1 − g of equiangular tokens falls as e^{−2t} with the layer norm post, for every β.
"""

import numpy as np

import meanfield as mf
from gallery.figure import draw
from gallery.statement import Statement

result = mf.simulate(mf.load_case("tokens_equiangular", ["time.end=12", "output.snapshots=60", "output.samples=4"]))
time, tokens = np.asarray(result.time), np.asarray(result.position)
apart = np.linalg.norm(tokens[:, 0] - tokens[:, 1], axis=1) ** 2 / 2  # 1 − g, without cancellation
late = (apart < 1e-3) & (apart > 1e-10)

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as e^{−2t} (post)",
    source="Karagodin and others 2510.22026v2, table 5.1; Rigollet 2512.01868, section 6.2",
    read="text of 2512.01868",
    published=-2.0,
    found=np.polyfit(time[late], np.log(apart[late]), 1)[0],
    tolerance=2e-3,
    reason="from 1 − g = 1e-3 on",
)

# %%
draw(
    "time",
    "1 − g",
    logy=True,
    run=(time, apart),
    formula=(time[late], apart[late][0] * np.exp(-2 * (time[late] - time[late][0]))),
)
print(STATEMENT)
