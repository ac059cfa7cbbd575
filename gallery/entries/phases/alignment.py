"""
Alignment: first velocity of uniform tokens
===========================================

The velocity of uniform tokens with V = D is Pₓ D x I_{d/2}(β)/I_{d/2−1}(β). The factor is close to 1 for large β, so
that alignment is fast.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

VALUE, betas, speeds = (1.0, 0.5), np.array([1.0, 4.0, 16.0, 64.0]), []
for beta in betas:
    changes = [f"attention.beta={beta}", f"attention.value={np.diag(VALUE).tolist()}", "domain.resolution=512"]
    result = mf.simulate(
        mf.load_case("uniform", ["domain.manifold=circle", *changes, "time.end=1e-6", "output.samples=1"])
    )
    speeds.append(float(np.asarray(result.diagnostics["speed"])[0]))
factor = ive(1, betas) / ive(0, betas)
expected = (VALUE[0] - VALUE[1]) / np.sqrt(8) * factor

STATEMENT = Statement(
    text="root mean square speed of uniform tokens on the circle with V = diag(1, ½), β = 16",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (alignment), with the factor of finite β",
    read="abstract; formula derived here",
    expected=expected[2],
    found=speeds[2],
    tolerance=1e-3,
    reason="second order in 512 cells",
)

# %%
draw("β", "speed", logx=True, runs=(betas, speeds), formula=(betas, expected))
print(STATEMENT)
