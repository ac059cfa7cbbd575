"""
Selection: the replicator equation
==================================

∂ₜρ = ρ(f − ∫fρ) with f = a⟨v, x⟩ makes ρ ∝ e^{f t} of the uniform density: a von Mises density.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("reaction")
result = mf.simulate(case)
concentration = case.reaction.rate * case.time.end * np.linalg.norm(case.reaction.vector)

STATEMENT = Statement(
    text="length of the mean token at t = 3 under selection alone",
    source="replicator equation",
    read="formula derived here",
    expected=ive(1, concentration) / ive(0, concentration),
    found=np.linalg.norm(np.asarray(result.diagnostics["centroid"])[-1]),
    tolerance=1e-3,
    reason="second order in 128 cells",
)

# %%
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
time = np.asarray(result.diagnostics.time)
concentrations = case.reaction.rate * time * np.linalg.norm(case.reaction.vector)
formula = ive(1, concentrations) / ive(0, concentrations)
draw("time", "length of the mean token", run=(time, length), formula=(time, formula))
print(STATEMENT)
