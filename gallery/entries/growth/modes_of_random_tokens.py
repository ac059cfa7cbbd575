"""
Number of modes of random tokens
================================

The kernel density e^{β⟨x,·⟩} of many uniform tokens on the circle has √(Σk⁴I_k²/Σk²I_k²) modes on average (Rice).
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, N, SAMPLES = 20.0, 1000, 72
counts = []
for seed in range(SAMPLES):
    changes = ["domain.dimension=2", f"domain.count={N}", f"attention.beta={BETA}", f"domain.seed={seed}"]
    changes += ["time.end=1e-6", "attention.mask=none", "output.snapshots=1", "output.samples=1"]
    changes.append('output.diagnostics=["modes"]')
    counts.append(np.asarray(mf.simulate(mf.load_case("tokens_causal", changes)).diagnostics["modes"])[0])
k = np.arange(60)
weights = ive(k, BETA) ** 2

STATEMENT = Statement(
    text="modes of the kernel density of 1000 uniform tokens on the circle, β = 20",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (√β clusters)",
    read="abstract; formula derived here",
    expected=np.sqrt((k**4 * weights).sum() / (k**2 * weights).sum()),
    found=np.mean(counts),
    tolerance=0.05,
    reason="72 samples: ± 0.09 modes",
)

# %%
modes, samples = np.unique(counts, return_counts=True)
draw(
    "modes",
    "samples",
    counted=(modes, samples),
    formula_of_the_mean=(np.full(2, STATEMENT.expected), [0, samples.max()]),
)
print(STATEMENT)
