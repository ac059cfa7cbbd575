"""
Growth in eight dimensions
==========================

A perturbation of degree l grows at l(l+d−2) I_{l+ν}(β)/(β I_ν(β)), ν = d/2 − 1, in every dimension.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

D, L, BETA = 8, 1, 5.0
changes = ["domain.manifold=axisymmetric", f"domain.dimension={D}", "domain.resolution=192", f"attention.beta={BETA}"]
changes += ["initial.order=0", f"initial.degree={L}", "time.end=4"]
result = mf.simulate(mf.load_case("growth_sphere", changes))
time, mean = np.asarray(result.diagnostics.time), np.abs(np.asarray(result.diagnostics["centroid"]).ravel())
nu = D / 2 - 1

STATEMENT = Statement(
    text="the mean token grows at (d−1) I_{d/2}(β)/(β I_{d/2−1}(β)) in R^8, β = 5",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=L * (L + D - 2) * ive(L + nu, BETA) / (BETA * ive(nu, BETA)),
    found=np.polyfit(time, np.log(mean), 1)[0],
    tolerance=3e-3,
    reason="second order in 192 cells",
)

# %%
draw(
    "time",
    "length of the mean token",
    logy=True,
    run=(time, mean),
    formula=(time, mean[0] * np.exp(STATEMENT.expected * time)),
)
print(STATEMENT)
