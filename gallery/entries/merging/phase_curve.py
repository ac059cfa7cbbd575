"""
Meeting time of random tokens
=============================

In the plane of t and β, the time at which 32 random tokens meet follows the curve of orthonormal tokens (figure 3).
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.meeting import formula, run
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement

SEEDS = {128: size(1, 2048)} | ({1024: 64} if size(0, 1) else {})  # 2048 as in the authors' code
betas = (1.0, 3.0, 5.0, 9.0)[: size(2, 4)]
curve = np.array([formula(beta, "softmax") for beta in betas])
random = {d: np.array([run(d, beta, "softmax", count)[0] for beta in betas]) for d, count in SEEDS.items()}
D = max(SEEDS)

STATEMENT = Statement(
    text=f"time until half of the pairs of 32 uniform tokens in R^{D} have cosine 0.999, over that of orthonormal ones",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v5, section 6.3 and figure 3",
    read="caption as repeated in the text of 2512.01868; code of the figures by its authors; figure not seen",
    expected=1.0,
    found=np.mean(random[D] / curve),
    tolerance=0.05,
    reason="of order √(log d/d) = 0.2 in the cosines at the start, of either sign",
)

# %%
draw("β", "time when half have met", **{f"d_=_{d}": (betas, t) for d, t in random.items()}, formula=(betas, curve))
print(STATEMENT)
