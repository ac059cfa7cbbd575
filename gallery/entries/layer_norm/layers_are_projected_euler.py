"""
Layers are projected Euler steps
================================

x ← N(x + Δt A(x)) differs from the continuous flow in proportion to Δt.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

END, errors = 2.0, []
exact = np.asarray(
    mf.simulate(mf.load_case("tokens_pair", ["attention.beta=2", f"time.end={END}", "output.samples=4"])).position
)[-1]
for layers in (160, 320):
    changes = ["attention.beta=2", "time.method=layers", f"time.layers={layers}", f"time.step={END / layers}"]
    changes += ["output.snapshots=2", "output.samples=2"]
    result = mf.simulate(mf.load_case("tokens_pair", changes))
    tokens = np.asarray(result.position)[-1]
    errors.append(np.abs(tokens - exact).max())

STATEMENT = Statement(
    text="order in Δt of layers against the flow",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=1.0,
    found=np.log2(errors[0] / errors[1]),
    tolerance=3e-2,
    reason="160 and 320 layers: next order",
)

# %%
steps = [END / layers for layers in (160, 320)]
formula = [errors[0], errors[0] / 2]
draw("step", "largest error", runs=(steps, errors), formula_of_first_order=(steps, formula))
print(STATEMENT)
