"""
Long contexts: growth of β with the length
==========================================

For n tokens of cosine ρ and β = γ log n a token attends to itself if γ > 1/(1 − ρ), and equally to all tokens
otherwise.
"""

import numpy as np
from scipy.optimize import brentq

from meanfield.gallery.equiangular import after_a_layer
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

N, RHO = 256, 0.5
gammas, weights = np.linspace(1.6, 2.4, 9), []


def cosine(weight):
    """Return the cosine of two tokens after a layer without residual, in which a token attends to itself by ``weight``.

    Before the layer all pairs of the N tokens have the cosine RHO. Attention to all other tokens is equal.
    """
    b = (1 - weight) / (N - 1)
    a, others = weight - b, 1 + (N - 1) * RHO
    common = 2 * a * b * others + b**2 * N * others
    return (a**2 * RHO + common) / (a**2 + common)


for gamma in gammas:
    g = after_a_layer(N, RHO, gamma * np.log(N))
    weights.append(brentq(lambda w, g=g: cosine(w) - g, 1 / N, 1 - 1e-9))

STATEMENT = Statement(
    text="γ at which a token gives half of its attention to itself, β = γ log n, n = 256, ρ = ½",
    source="Chen, Lin, Polyanskiy, Rigollet 2510.05554v1; Rigollet 2512.01868, section 6.3",
    read="abstract; text of 2512.01868",
    expected=1 / (1 - RHO),
    found=np.interp(0.5, weights, gammas),
    tolerance=5e-3,
    reason="log(n − 1)/log n, and interpolation",
)

# %%
draw("γ", "attention of a token to itself", runs=(gammas, weights), formula=(np.full(2, 1 / (1 - RHO)), [0, 1]))
print(STATEMENT)
