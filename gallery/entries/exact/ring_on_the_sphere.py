"""
Contraction of a ring of latitude
=================================

A ring at polar angle θ remains a ring: dθ/dt = −sin θ cos θ (1 − I₁(b)/I₀(b)), b = β sin² θ, for softmax attention.
"""

import numpy as np
from scipy.integrate import quad
from scipy.special import ive

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, N = 5.0, 64  # tokens on the ring, whose sums equal the integrals to rounding
angle = 2 * np.pi * np.arange(N) / N
points = np.stack([np.sin(1.0) * np.cos(angle), np.sin(1.0) * np.sin(angle), np.full(N, np.cos(1.0))], axis=1)
changes = [f"attention.beta={BETA}", f"initial.points={points.tolist()}", "domain.dimension=3", "time.end=7"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
theta = np.arccos(np.asarray(result.position)[:, 0, 2])
crossed = int(np.argmax(theta < 0.1))
step = slice(crossed - 3, crossed + 3)
found = float(np.polyval(np.polyfit(np.log(theta[step]), np.asarray(result.time)[step], 4), np.log(0.1)))


def slowness(polar):
    b = BETA * np.sin(polar) ** 2
    return 1 / (np.sin(polar) * np.cos(polar) * (1 - ive(1, b) / ive(0, b)))


STATEMENT = Statement(
    text="time from θ = 1 to θ = 0.1 of a ring on S², β = 5",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=quad(slowness, 0.1, 1.0)[0],
    found=found,
    tolerance=1e-5,
    reason="a polynomial through six snapshots",
)

# %%
angles = np.linspace(0.1, 1.0, 30)
formula = [quad(slowness, angle, 1.0)[0] for angle in angles]
draw("time", "polar angle of the ring", run=(np.asarray(result.time), theta), formula=(formula, angles))
print(STATEMENT)
