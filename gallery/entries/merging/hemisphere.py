"""
Invariance of a hemisphere
==========================

If all tokens lie in an open hemisphere about w, the smallest ⟨x, w⟩ never decreases (cone collapse).
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

generator = np.random.default_rng(0)
points = generator.standard_normal((12, 3))
points /= np.linalg.norm(points, axis=1, keepdims=True)
points[:, 2] = np.abs(points[:, 2])
case = mf.load_case(
    "tokens_pair", ["attention.beta=4", "time.end=20", f"initial.points={points.tolist()}", "domain.dimension=3"]
)
result = mf.simulate(case)
height = np.asarray(result.position)[..., 2].min(axis=1)

STATEMENT = Statement(
    text="share of time samples at which min ⟨x_i, w⟩ has not decreased",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (cone collapse); "
    "Rigollet 2512.01868, section 4.2, theorem on cones",
    read="text of 2512.01868",
    expected=1.0,
    found=float((np.diff(height) >= -1e-12).mean()),
    tolerance=0.0,
    reason="holds in every case",
)

# %%
draw("time", "least ⟨x, w⟩", run=(np.asarray(result.time), height))
print(STATEMENT)
