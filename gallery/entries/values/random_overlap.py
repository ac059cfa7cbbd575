"""
Overlap with a random V in each layer
=====================================

V ~ N(0, 1/d) is drawn for each layer. At β = 0 and for large d the overlap u of two tokens grows as
u₀/(u₀ + (1 − u₀)e^{−t}), where t is the sum of the squared steps.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import run

N, D, LAYERS, END = 6, 400, 24, 2.4
step = np.sqrt(END / LAYERS)
tokens = np.sqrt(0.9) * np.eye(N, D) + np.sqrt(0.1) * np.eye(D)[N]
overlaps = [np.mean((tokens @ tokens.T)[np.triu_indices(N, 1)])]
mean = np.square(tokens.mean(axis=0)).sum()  # mean cosine of all pairs, including a token with itself
for layer in range(LAYERS):
    value = f"attention.value={{ensemble='ginibre', seed={layer}}}"
    changes = ["attention.beta=0", value, "time.method=layers", "time.layers=1", f"time.step={step}"]
    tokens = run(tokens, step, *changes, "output.snapshots=1")[1][-1]
    overlaps.append(np.mean((tokens @ tokens.T)[np.triu_indices(N, 1)]))
time = np.arange(LAYERS + 1) * step**2


def rate(u):
    """Return the rate du/dt of the overlap u of n = N tokens, (1 − u)(1 + (n − 1)u)/n, about u(1 − u) for many."""
    return (1 + (N - 1) * u) / N * (1 - u)


expected = [overlaps[0]]
for _ in range(LAYERS):
    size_of_field = (1 + (N - 1) * expected[-1]) / N * step**2  # squared size of a layer's update
    expected.append((expected[-1] + size_of_field) / (1 + size_of_field))

STATEMENT = Statement(
    text="overlap of six tokens in R⁴⁰⁰ after 24 layers of random V, t = 2.4, β = 0",
    source="Koubbi and others, Homogenized Transformers 2604.01978v1",
    read="abstract; formula derived here, with finite n and step",
    expected=expected[-1],
    found=overlaps[-1],
    tolerance=5e-2,
    reason="of order 1/√d per layer",
)

# %%
draw("t", "overlap", run=(time, overlaps), formula=(time, expected))
print(STATEMENT)
