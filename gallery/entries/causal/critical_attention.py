"""
Critical β between averaging and identity
=========================================

For many tokens of cosine ρ and β = γ log n, the outputs of a layer have the cosine 1 where γ < 1/(1 − ρ), ρ where
γ > 1/(1 − ρ), and 4ρ/(1 + 3ρ) at the critical γ: a token gives half of its attention to itself, and the other half to
all others.
"""

import numpy as np

from meanfield.gallery.equiangular import after_a_layer
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

RHO, COUNTS = 0.5, (64, 256)
gammas = np.linspace(0.5, 4, 15)
curves = {f"n_=_{n}": (gammas, [after_a_layer(n, RHO, gamma * np.log(n)) for gamma in gammas]) for n in COUNTS}
critical = 1 / (1 - RHO)

STATEMENT = Statement(
    text="cosine of the outputs of a layer for n = 256 tokens of cosine ½ and β = γ log n, γ = 1/(1 − ρ)",
    source="Chen, Lin, Polyanskiy, Rigollet 2510.05554v1; Rigollet 2512.01868, section 6.3, last theorem",
    read="abstract; text of 2512.01868",
    expected=4 * RHO / (1 + 3 * RHO),
    found=after_a_layer(COUNTS[-1], RHO, critical * np.log(COUNTS[-1])),
    tolerance=2e-3,
    reason="of order 1/n in the attention to itself",
)

# %%
limit = ([0.5, critical, critical, critical, 4], [1, 1, STATEMENT.expected, RHO, RHO])
draw("γ", "cosine after a layer", **curves, formula_for_many_tokens=limit)
print(STATEMENT)
