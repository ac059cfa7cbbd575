"""
Porous medium: unnormalized attention with V = −I
=================================================

The kernel e^{β⟨x,y⟩} scaled to unit mass tends to a Dirac measure, so that X = −∇ρ/β. In the time s = t/β the density
obeys ∂ₛμ = ½Δ(μ²) with V = −I, and the backward equation with V = I.
"""

import numpy as np
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Equation, circle, solve

BETA, CELLS, END = 300.0, 256, 0.4
clock = 2 * np.pi * ive(0, BETA)  # mass of the rescaled kernel
changes = [f"attention.beta={BETA}", f"domain.resolution={CELLS}", "attention.value=[[-1, 0], [0, -1]]"]
changes += ["attention.normalization=unnormalized", "attention.rescaled=true", f"time.end={END * BETA / clock}"]
changes += ["initial.degree=1", "initial.amplitude=0.6", "output.snapshots=1", "output.samples=1"]
result = mf.simulate(mf.load_case("growth_circle", changes))
density, centers = np.asarray(result.density), np.asarray(result.mesh.centers)

# %%
# The limit, by finite differences of second order on the same cells.
h = 2 * np.pi / CELLS


def porous(t, u):
    square = u**2 / 2
    return (np.roll(square, 1) - 2 * square + np.roll(square, -1)) / h**2


solution = solve(Equation(circle(CELLS), [porous]), density[0], (0.0, END), rtol=1e-8)
limit = np.asarray(solution.u[-1])

STATEMENT = Statement(
    text="amplitude of the density at t/β = 0.4, β = 300, by the limit ∂ₛμ = ½Δ(μ²)",
    source="Bruno, Pasqualotto, Agazzi 2509.25040v1 (unnormalized); porous medium limit",
    read="abstract; limit by finite differences here",
    expected=np.ptp(limit),
    found=np.ptp(density[-1]),
    tolerance=5e-3,
    reason="the kernel's width, of order 1/(2β): 0.2 %",
)

# %%
angle = np.mod(np.arctan2(centers[:, 1], centers[:, 0]), 2 * np.pi)
order = np.argsort(angle)
draw(
    "angle",
    "density",
    start=(angle[order], density[0][order]),
    end=(angle[order], density[-1][order]),
    formula=(angle[order], limit[order]),
)
print(STATEMENT)
