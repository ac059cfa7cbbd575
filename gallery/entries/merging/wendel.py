"""
Wendel: random tokens in one hemisphere
=======================================

The probability that n uniform tokens in R^d lie in one hemisphere is 2^{−(n−1)} Σ_{k<d} C(n−1, k). Such tokens
converge to one cluster (cone collapse). For n ≤ d the probability is 1.
"""

import numpy as np

from meanfield.gallery.counts import in_one_hemisphere, share_in_one_hemisphere
from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import uniform

D, N, draws = 4, 9, size(12_000, 100_000)
counts = range(4, 13)
shares = [np.mean([in_one_hemisphere(uniform(n, D, seed)) for seed in range(150)]) for n in counts]
probability = share_in_one_hemisphere(N, D)
share = float(np.mean([in_one_hemisphere(uniform(N, D, seed)) for seed in range(draws)]))

STATEMENT = Statement(
    text="probability that 9 uniform tokens in R⁴ lie in one hemisphere",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4, section 6; Wendel (1962)",
    read="abstract and contents; formula of Wendel",
    expected=probability,
    found=share,
    tolerance=4 * ((1 - probability) / probability / draws) ** 0.5,
    reason="four standard deviations of the draws",
)

# %%
draw("tokens", "probability", draws=(counts, shares), formula=(counts, [share_in_one_hemisphere(n, D) for n in counts]))
print(STATEMENT)
