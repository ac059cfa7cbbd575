"""
When random tokens cluster
==========================

In the plane of t and β the time at which random tokens become one follows the curve of orthonormal ones (figure 3).
"""

import numpy as np

from gallery.figure import draw
from gallery.size import size
from gallery.statement import Statement
from gallery.tokens import run, uniform

N, D, CLOSE = 16, size(256, 1024), 0.99


def time_of_clustering(points, beta):
    """When the least cosine of two tokens is CLOSE."""
    time, path = run(points, 4 + 4 * beta, f"attention.beta={beta}", "output.snapshots=300")
    least = np.array([(tokens @ tokens.T).min() for tokens in path])
    return np.interp(CLOSE, least, time)


betas = (0.5, 1.0, 2.0, 3.0)
curve = [time_of_clustering(np.eye(N), beta) for beta in betas]
random = [np.mean([time_of_clustering(uniform(N, D, seed), beta) for seed in range(size(1, 10))]) for beta in betas]

STATEMENT = Statement(
    text=f"time until all cosines of {N} uniform tokens in R^{D} are {CLOSE}, over that of orthonormal ones",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4, figure 3",
    read="abstract and contents; the figure was not seen",
    published=1.0,
    found=np.mean(np.array(random) / curve),
    tolerance=0.1,
    reason="of order √(log d/d) = 0.15 in the cosines, which grow by e in half a unit of time",
)

# %%
draw("β", "time of clustering", random=(betas, random), formula_of_orthonormal_tokens=(betas, curve))
print(STATEMENT)
