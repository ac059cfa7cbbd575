"""
First-order transition without normalization
============================================

For β beyond 2.4469 on the circle ordered states exist above the critical noise, up to a fold that ``branch`` finds.
"""

import numpy as np

import meanfield as mf
from meanfield.analysis.branches.branch import branch_of
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 4.0
changes = [f"attention.beta={BETA}", "attention.normalization=unnormalized"]
branch = branch_of(mf.load_case("noise_below", changes)).branch
fold = branch.folds[0].noise

angle = 2 * np.pi * np.arange(512) / 512
kernel = np.exp(BETA * np.cos(angle[:, None] - angle))


def stationary(kappa):
    """Return the length of the mean token of the stationary density at noise κ = ``kappa``.

    The density is found by iterating ρ ← e^{(k∗ρ)/(βκ)}, normalized, from a narrow density; k is the kernel e^{β cos
    φ}.
    """
    rho = np.exp(50 * np.cos(angle))
    for _ in range(20000):
        rho /= rho.mean()
        exponent = kernel @ rho / len(angle) / (BETA * kappa)
        new = np.exp(exponent - exponent.max())
        if np.abs(new / new.mean() - rho).max() < 1e-10:
            break
        rho = new
    return abs((rho * np.exp(1j * angle)).mean() / rho.mean())


low, high = 0.99 * fold, 1.01 * fold
assert stationary(low) > 0.3
assert stationary(high) < 0.01
for _ in range(6):
    middle = (low + high) / 2
    low, high = (middle, high) if stationary(middle) > 0.3 else (low, middle)

STATEMENT = Statement(
    text="no ordered state above κ on the circle, unnormalized, β = 4, by iterating the stationary equation",
    source="Mun and Rosenzweig 2606.05140v1",
    read="abstract; expected number by bisection here",
    expected=(low + high) / 2,
    found=fold,
    tolerance=5e-4,
    reason="iterations slow down at the fold",
)

# %%
states = branch.equilibria
draw(
    "noise κ",
    "length of the mean token",
    branch=([s.noise for s in states], [abs(s.order) for s in states]),
    formula_of_the_fold=(np.full(2, STATEMENT.expected), [0, 1]),
)
print(STATEMENT)
