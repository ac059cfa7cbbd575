"""
Layers with V = −I: flip bifurcation of a regular polygon
=========================================================

Each layer multiplies a perturbation of mode m by 1 − Δλ/(1 − Δa), where λ is the growth rate for V = I and a is that
of the entry repulsion/flip. At the multiplier −1, Δ = 2/(2a + λ), the polygon loses its stability to a motion of
period two (flip bifurcation).
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.polygon import rate, self_attention
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

N, BETA, SMALL = 6, 2.0, 1e-6
angles = 2 * np.pi * np.arange(N) / N
mode = max(range(2, N // 2 + 1), key=lambda m: rate(N, BETA, m))
wave = np.cos(mode * angles)
expected = 2 / (2 * self_attention(N, BETA) + rate(N, BETA, mode))


def layers(step, count, size):
    """Return the angles of the tokens after each of ``count`` layers, minus the angles of the regular polygon.

    ``step`` is the step of a layer and ``size`` the amplitude of the initial perturbation.
    """
    changes = [f"attention.beta={BETA}", "attention.value=[[-1, 0], [0, -1]]", "time.method=layers"]
    changes += [f"time.layers={count}", f"time.step={step}", f"output.snapshots={count}"]
    return continuous_angles(run(on_circle(angles + size * wave), step * count, *changes)[1]) - angles


def multiplier(step):
    path = layers(step, 1, SMALL)
    return (path[-1] @ wave) / (path[0] @ wave)


low, high = 0.8 * expected, 1.1 * expected
while high - low > 1e-6 * low:
    middle = (low + high) / 2
    low, high = (middle, high) if multiplier(middle) > -1 else (low, middle)
beyond = layers(1.02 * expected, 400, 1e-3)
amplitude = 2 / N * beyond @ wave
assert abs(amplitude[-1] - amplitude[-3]) < 1e-6 < abs(amplitude[-1] - amplitude[-2])  # the period is two, not one

STATEMENT = Statement(
    text="step at which a regular hexagon loses its stability to a motion of period two, V = −I, β = 2",
    source="Gao, Yang, Chen 2609.28448v1 (flip bifurcation of the regular polygon)",
    read="abstract, and a summary by a third party; formula derived here",
    expected=expected,
    found=low,
    tolerance=2e-5,
    reason="bisection to 1e-6, rounding of angles 1e-16 of 1e-6, and quadratic terms",
)

# %%
count = np.arange(len(amplitude))
draw("layer", "amplitude", even_layers=(count[::2], amplitude[::2]), odd_layers=(count[1::2], amplitude[1::2]))
print(STATEMENT)
