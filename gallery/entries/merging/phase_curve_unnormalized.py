"""
Meeting time of random tokens without normalization
===================================================

For unnormalized attention the meeting time is shorter by a factor of about e^{βg}. In the plane of t and β the curve
bends in the opposite direction (figure 4).
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.meeting import formula, run
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement

D, SEEDS = size(128, 1024), size(1, 64)
betas = (1.0, 3.0, 5.0, 9.0)[: size(2, 4)]
curve = np.array([formula(beta, "unnormalized") for beta in betas])
random = np.array([run(D, beta, "unnormalized", SEEDS)[0] for beta in betas])

STATEMENT = Statement(
    text=f"time until half of the pairs of 32 uniform tokens in R^{D} have met over that of orthonormal ones",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v5, section 6.3 and figure 4",
    read="equation in the text of 2512.01868; code of the figures by its authors; figure not seen",
    expected=1.0,
    found=np.mean(random / curve),
    tolerance=0.1,
    reason="of order β√(log d/d) in the weights at the start",
)

# %%
draw("β", "time when half have met", logy=True, random=(betas, random), formula=(betas, curve))
print(STATEMENT)
