"""
CoD is post in another time variable
====================================

With outputs scaled by 1/√(t+1), directions move as with post in the time 2(√(t+1) − 1).
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

END = 8.0
cosines, paths = {}, {}
for norm, end in (("cod", END), ("post", 2 * (np.sqrt(END + 1) - 1))):
    changes = ["attention.beta=1", f"time.end={end}", f"stabilizers.layer_norm={norm}", "output.samples=4"]
    case = mf.load_case("tokens_pair", changes)
    result = mf.simulate(case)
    path = np.asarray(result.position)
    paths[norm] = np.asarray(result.time), np.arccos(np.clip(np.einsum("td,td->t", path[:, 0], path[:, 1]), -1, 1))
    cosines[norm] = float(path[-1, 0] @ path[-1, 1])

STATEMENT = Statement(
    text="angle of two tokens at t = 8 with CoD is that of post at 2(√9 − 1) = 4",
    source="Karagodin and others 2510.22026v2",
    read="abstract; formula derived here",
    expected=np.arccos(cosines["post"]),
    found=np.arccos(cosines["cod"]),
    tolerance=1e-6,
    reason="steps to 1e-10, of cosines near 1",
)

# %%
clock = 2 * (np.sqrt(paths["cod"][0] + 1) - 1)
draw(
    "time of post", "angle of the two tokens", post=paths["post"], formula_of_CoD_in_this_time=(clock, paths["cod"][1])
)
print(STATEMENT)
