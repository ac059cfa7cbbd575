"""
Convergence of all tokens to the first under a causal mask
==========================================================

With V = I, token k approaches the first at the late rate 1 − 1/k, so that all tokens together converge as e^{−t/2}.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

result = mf.simulate(mf.load_case("tokens_causal"))
time, tokens = np.asarray(result.time), np.asarray(result.position)
angle = np.linalg.norm(tokens[:, 1] - tokens[:, 0], axis=1)
late = (angle < 1e-2) & (angle > 1e-7)

STATEMENT = Statement(
    text="distance of token 2 from token 1 decays as e^{−t/2}",
    source="Karagodin, Polyanskiy, Rigollet 2411.04990v2",
    read="abstract; formula derived here",
    expected=-0.5,
    found=np.polyfit(time[late], np.log(angle[late]), 1)[0],
    tolerance=1e-2,
    reason="nonlinear terms below an angle of 0.01",
)

# %%
draw(
    "time",
    "distance of token 2 from token 1",
    logy=True,
    run=(time, angle),
    formula=(time[late], angle[late][0] * np.exp(-(time[late] - time[late][0]) / 2)),
)
print(STATEMENT)
