"""
Energy gain of unnormalized attention
=====================================

dE/dt = ∫|X|² dμ with E = (1/2β)∬e^{β⟨x,y⟩}dμdμ: the flow is the gradient flow of the energy.
"""

import numpy as np
from scipy.integrate import cumulative_simpson, simpson

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

changes = ["attention.normalization=unnormalized", "attention.beta=2", "attention.mask=none", "domain.count=32"]
result = mf.simulate(mf.load_case("tokens_causal", [*changes, "time.end=1", "output.samples=200"]))
time = np.asarray(result.diagnostics.time)
energy, speed = (np.asarray(result.diagnostics[name]) for name in ("energy", "speed"))

STATEMENT = Statement(
    text="∫∫|X|² dμ dt over a run of 32 tokens is the energy gained",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4; "
    "Rigollet 2512.01868, section 3.2 (gradient flow of the energy)",
    read="text of 2512.01868; formula derived here",
    expected=energy[-1] - energy[0],
    found=simpson(speed**2, x=time),
    tolerance=1e-6,
    reason="Simpson's rule on 200 samples",
)

# %%
draw(
    "time",
    "energy gained",
    energy=(time, energy - energy[0]),
    formula=(time, cumulative_simpson(speed**2, x=time, initial=0)),
)
print(STATEMENT)
