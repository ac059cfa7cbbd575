"""
Diffusion along a sequence
==========================

Without attention the mode cos kx of a field u(x, t) decays as e^{−κk²t}; with free ends k = π for length 1.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

changes = [f"attention.value={np.zeros((3, 3)).tolist()}", "stabilizers.layer_norm=none", "time.end=1"]
case = mf.load_case("representation_rate", changes)
result = mf.simulate(case)
field, time = np.asarray(result.position), np.asarray(result.time)
size = np.linalg.norm(field - field.mean(axis=1, keepdims=True), axis=(1, 2))
rate = np.polyfit(time, np.log(size), 1)[0]

STATEMENT = Statement(
    text="decay of the first mode along a sequence of length 1, κ = 0.1",
    source="Zhang and Zhou 2408.09523v2 (diffusion term)",
    read="abstract",
    expected=-0.1 * np.pi**2,
    found=rate,
    tolerance=1e-3,
    reason="second order in 128 tokens",
)

# %%
draw(
    "time",
    "deviation from the mean",
    logy=True,
    run=(time, size),
    formula=(time, size[0] * np.exp(-0.1 * np.pi**2 * time)),
)
print(STATEMENT)
