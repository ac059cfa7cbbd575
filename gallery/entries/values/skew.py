"""
Rotation of all tokens by a skew V
==================================

One token obeys x(t) = e^{tV}x₀/‖e^{tV}x₀‖; a skew V gives a rigid rotation.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

OMEGA, END = 0.7, 3.0
points = [[1.0, 0.0], [1.0, 0.0]]
changes = [f"attention.value=[[0.0, {-OMEGA}], [{OMEGA}, 0.0]]", f"initial.points={points}", f"time.end={END}"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
token = np.asarray(result.position)[-1, 0]

STATEMENT = Statement(
    text="angle of equal tokens at t = 3 with V = 0.7 J",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=OMEGA * END,
    found=np.arctan2(token[1], token[0]) % (2 * np.pi),
    tolerance=1e-8,
    reason="steps to 1e-10",
)

# %%
path, time = np.asarray(result.position)[:, 0], np.asarray(result.time)
draw(
    "time",
    "angle of the tokens",
    run=(time, np.unwrap(np.arctan2(path[:, 1], path[:, 0]))),
    formula=(time, OMEGA * time),
)
print(STATEMENT)
