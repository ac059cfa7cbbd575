"""
Three tokens that repel each other: stability below β = −2/3
============================================================

With β < 0 tokens repel each other. Perturbations of the equilateral triangle, unnormalized, grow at the rate
e^{−β/2}(½ + ¾β). For β < −2/3 the triangle is stable, and tokens do not synchronize.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

ANGLES, SMALL = 2 * np.pi * np.arange(3) / 3, 1e-5
wave, negative = np.cos(ANGLES), "attention.key=[[-1, 0], [0, -1]]"
betas, rates = np.array([-0.72, -0.6]), []
for beta in betas:
    changes = [f"attention.beta={-beta}", negative, "attention.normalization=unnormalized", "output.snapshots=40"]
    time, path = run(on_circle(ANGLES + SMALL * wave), 4.0, *changes)
    amplitude = (continuous_angles(path) - continuous_angles(path)[0] + SMALL * wave) @ wave
    rates.append(np.polyfit(time, np.log(amplitude), 1)[0] * np.exp(beta / 2))

STATEMENT = Statement(
    text="β at which the equilateral triangle is neutral",
    source="Polyanskiy, Rigollet, Yao 2507.22857v1: no synchronization for β < −2/3",
    read="abstract; formula derived here",
    expected=-2 / 3,
    found=betas[0] - rates[0] * (betas[1] - betas[0]) / (rates[1] - rates[0]),
    tolerance=1e-4,
    reason="linear in β up to a known factor; quadratic terms of 1e-5",
)

# %%
draw("β", r"growth rate times $e^{\beta/2}$", runs=(betas, rates), formula=(betas, 0.5 + 0.75 * betas))
print(STATEMENT)
