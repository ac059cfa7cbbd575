"""
Selection: the replicator equation
==================================

∂ₜρ = ρ(f − ∫fρ) with f = a⟨v, x⟩ makes ρ ∝ e^{f t} of the uniform density: a von Mises density.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from gallery.statement import Statement

case = mf.load_case("reaction")
result = mf.simulate(case)
concentration = case.reaction.rate * case.time.end * np.linalg.norm(case.reaction.vector)

STATEMENT = Statement(
    text="length of the mean token at t = 3 under selection alone",
    source="replicator equation; formula derived again",
    read="formula derived again",
    published=ive(1, concentration) / ive(0, concentration),
    found=np.linalg.norm(np.asarray(result.diagnostics["centroid"])[-1]),
    tolerance=1e-3,
    reason="second order in 128 cells",
)
