"""
Instability of a regular polygon of equal clusters
==================================================

A regular polygon of k equal clusters on the circle is an equilibrium. Its mode m grows at −Σ_j f′(2πj/k)(1 −
cos(2πmj/k))/Σ_j e^{β cos(2πj/k)} with f(φ) = e^{β cos φ} sin φ.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.polygon import rate
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

K, BETA, M, SMALL = 5, 3.0, 2, 1e-6
angles = 2 * np.pi * np.arange(K) / K
wave = np.cos(M * angles)
time, path = run(on_circle(angles + SMALL * wave), 8.0, f"attention.beta={BETA}", "output.snapshots=80")
amplitude = 2 / K * (continuous_angles(path) - continuous_angles(path)[0] + SMALL * wave) @ wave
expected = rate(K, BETA, M)

STATEMENT = Statement(
    text="growth of mode 2 of a regular pentagon of equal clusters, β = 3",
    source="Geshkovski, Koubbi, Polyanskiy, Rigollet 2410.06833v1 (saddles)",
    read="abstract; formula derived here",
    expected=expected,
    found=np.polyfit(time, np.log(amplitude), 1)[0],
    tolerance=1e-3,
    reason="rounding of angles, 1e-16 of 1e-6, and quadratic terms",
)

# %%
draw("time", "amplitude", logy=True, run=(time, amplitude), formula=(time, SMALL * np.exp(expected * time)))
print(STATEMENT)
