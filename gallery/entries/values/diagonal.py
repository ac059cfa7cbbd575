"""
Power method of equal tokens
============================

With V symmetric x(t) = e^{tV}x₀/‖e^{tV}x₀‖ converges to the leading eigenvector.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

END = 2.0
start = [0.28, 0.96]
changes = ["attention.value=[[1.0, 0.0], [0.0, 0.4]]", f"initial.points={[start, start]}", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
token = np.asarray(result.position)[-1, 0]

STATEMENT = Statement(
    text="slope x₂/x₁ of equal tokens at t = 2 with V = diag(1, 0.4)",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=start[1] / start[0] * np.exp(-0.6 * END),
    found=token[1] / token[0],
    tolerance=1e-8,
    reason="steps to 1e-10",
)

# %%
path, time = np.asarray(result.position)[:, 0], np.asarray(result.time)
draw(
    "time",
    "slope of the tokens",
    run=(time, path[:, 1] / path[:, 0]),
    formula=(time, start[1] / start[0] * np.exp(-0.6 * time)),
)
print(STATEMENT)
