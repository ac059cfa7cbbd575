"""
Growth of the negative entropy ∫ρ log ρ as clusters form
========================================================

Without normalization d/dt ∫ρ log ρ = Σ_l l² I_l(β)/β p_l on the circle, with p_l the power of degree l.
"""

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.special import iv

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 2.0
changes = [f"attention.beta={BETA}", "attention.normalization=unnormalized", "initial.amplitude=0.3", "time.end=0.6"]
result = mf.simulate(mf.load_case("growth_circle", [*changes, "output.samples=200"]))
time, power = np.asarray(result.diagnostics.time), np.asarray(result.diagnostics["power"])
l = np.arange(power.shape[1])
gained = cumulative_simpson(power @ (l**2 * iv(l, BETA) / BETA), x=time, initial=0)
entropy = np.asarray(result.diagnostics["entropy"])
change = np.abs(entropy - entropy[0])

STATEMENT = Statement(
    text="change of the negative entropy ∫ρ log ρ until t = 0.6, β = 2, unnormalized",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract and contents; formula derived here",
    expected=gained[-1],
    found=change[-1],
    tolerance=5e-3,
    reason="second order in 256 cells",
)

# %%
draw("time", "change of the negative entropy ∫ρ log ρ", run=(time, change), formula=(time, gained))
print(STATEMENT)
