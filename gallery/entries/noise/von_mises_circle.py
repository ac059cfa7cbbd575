"""
Noise and attraction at β = 0: von Mises
========================================

The stationary density is e^{R⟨x,e⟩/κ} with R = I₁(R/κ)/I₀(R/κ), R the length of the mean token.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

KAPPA = 0.3
changes = ["attention.beta=0", f"stabilizers.noise={KAPPA}", "time.end=60", "initial.amplitude=0.5"]
result = mf.simulate(mf.load_case("noise_below", changes))

STATEMENT = Statement(
    text="length of the mean token at κ = 0.3 on the circle, β = 0",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; formula derived here",
    expected=brentq(lambda r: ive(1, r / KAPPA) / ive(0, r / KAPPA) - r, 0.1, 1.0),
    found=np.linalg.norm(np.asarray(result.diagnostics["centroid"])[-1]),
    tolerance=1e-3,
    reason="second order in 128 cells",
)

# %%
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
time = np.asarray(result.diagnostics.time)
draw("time", "length of the mean token", run=(time, length), formula=(time[[0, -1]], np.full(2, STATEMENT.expected)))
print(STATEMENT)
