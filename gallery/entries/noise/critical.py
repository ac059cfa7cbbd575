"""
The critical noise of softmax attention
=======================================

Below κ = I_{d/2}(β)/(β I_{d/2−1}(β)) the uniform density is unstable.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from gallery.figure import draw
from gallery.statement import Statement

# %%
# Two runs on the sphere just beside it: the rate of degree 1 is linear in κ, and is zero at the critical noise.
BETA, rates, noises = 3.0, [], (0.2, 0.3)
for noise in noises:
    changes = [f"attention.beta={BETA}", f"stabilizers.noise={noise}", "initial.degree=1", "initial.order=0"]
    result = mf.simulate(mf.load_case("growth_sphere", [*changes, "domain.resolution=32", "time.end=2"]))
    time = np.asarray(result.diagnostics.time)
    power = np.asarray(result.diagnostics["power"])[:, 1]
    rates.append(np.polyfit(time, np.log(power) / 2, 1)[0])
found = noises[0] - rates[0] * (noises[1] - noises[0]) / (rates[1] - rates[0])

STATEMENT = Statement(
    text="the uniform density on the sphere is unstable below κ = I_{3/2}(β)/(β I_{1/2}(β)), β = 3",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; formula derived here",
    published=ive(1.5, BETA) / (BETA * ive(0.5, BETA)),
    found=found,
    tolerance=5e-3,
    reason="second order in 32 rings",
)

# %%
draw("noise κ", "growth rate of degree 1", runs=(noises, rates), formula=(np.full(2, STATEMENT.published), rates))
print(STATEMENT)
