"""
Five tokens that repel each other
=================================

The regular pentagon becomes stable at the β < 0 at which the last of its modes is neutral: Σ_j f′(2πj/5)(1 −
cos(2πmj/5)) = 0 with f(φ) = e^{β cos φ} sin φ.
"""

import numpy as np
from scipy.optimize import brentq

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

ANGLES, SMALL = 2 * np.pi * np.arange(5) / 5, 1e-5


def growth(beta, m):
    slope = np.exp(beta * np.cos(ANGLES)) * (np.cos(ANGLES) - beta * np.sin(ANGLES) ** 2)
    return -(slope @ (1 - np.cos(m * ANGLES))) / 5


threshold = min(brentq(growth, -8, 0, args=(m,)) for m in (1, 2))
last = min((1, 2), key=lambda m: brentq(growth, -8, 0, args=(m,)))
wave, negative = np.cos(last * ANGLES), "attention.key=[[-1, 0], [0, -1]]"
betas, rates = threshold + np.array([-0.05, 0.05]), []
for beta in betas:
    changes = [f"attention.beta={-beta}", negative, "attention.normalization=unnormalized", "output.snapshots=40"]
    time, path = run(on_circle(ANGLES + SMALL * wave), 4.0, *changes)
    amplitude = (continuous_angles(path) - continuous_angles(path)[0] + SMALL * wave) @ wave
    rates.append(np.polyfit(time, np.log(amplitude), 1)[0])

STATEMENT = Statement(
    text="β at which the regular pentagon is neutral",
    source="Polyanskiy, Rigollet, Yao 2507.22857v1",
    read="abstract, which does not give this number; formula derived here",
    expected=threshold,
    found=betas[0] - rates[0] * (betas[1] - betas[0]) / (rates[1] - rates[0]),
    tolerance=2e-3,
    reason="linear interpolation between two β 0.1 apart",
)

# %%
all_betas = np.linspace(-4, 0, 60)
both = {f"formula_of_mode_{m}": (all_betas, [growth(beta, m) for beta in all_betas]) for m in (1, 2)}
draw("β", "growth rate", runs=(betas, rates), **both)
print(STATEMENT)
