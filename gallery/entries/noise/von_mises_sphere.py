"""
Noise and attraction at β = 0 on the sphere
===========================================

The stationary density is e^{R⟨x,e⟩/κ} with R = coth(R/κ) − κ/R.
"""

import numpy as np
from scipy.optimize import brentq

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

KAPPA = 0.2
changes = ["domain.resolution=32", f"stabilizers.noise={KAPPA}", "initial.parameter=1.0", "time.end=30"]
result = mf.simulate(mf.load_case("flow_beta0_sphere", changes))

STATEMENT = Statement(
    text="length of the mean token at κ = 0.2 on the sphere, β = 0",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; formula derived here",
    expected=brentq(lambda r: 1 / np.tanh(r / KAPPA) - KAPPA / r - r, 0.1, 1.0),
    found=np.linalg.norm(np.asarray(result.diagnostics["centroid"])[-1]),
    tolerance=5e-3,
    reason="second order in 32 rings",
)

# %%
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
time = np.asarray(result.diagnostics.time)
draw("time", "length of the mean token", run=(time, length), formula=(time[[0, -1]], np.full(2, STATEMENT.expected)))
print(STATEMENT)
