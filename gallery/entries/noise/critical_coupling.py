"""
Critical coupling in every dimension
====================================

K# = β^{d/2}/(2^{d/2} Γ(d/2) I_{d/2}(β)) without normalization, which is 1/(2κ#) in the units of this package.
"""

import numpy as np
from scipy.special import gamma, iv

from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, dimensions = 3.0, np.array([2, 3, 5, 8, 16])
couplings = [1 / (2 * Equilibria(d, BETA, "unnormalized", nodes=64).critical_noise(1)) for d in dimensions]
expected = BETA ** (dimensions / 2) / (2 ** (dimensions / 2) * gamma(dimensions / 2) * iv(dimensions / 2, BETA))

STATEMENT = Statement(
    text="critical coupling K# in R⁸, β = 3",
    source="Mun and Rosenzweig 2606.05140v1, abstract",
    read="abstract",
    expected=expected[3],
    found=couplings[3],
    tolerance=1e-10,
    reason="Gauss–Jacobi sums, exact to rounding",
)

# %%
draw("dimension", "critical coupling", found=(dimensions, couplings), formula=(dimensions, expected))
print(STATEMENT)
