"""
Attraction of two tokens in a time of order e^{β(1 − cos)}
==========================================================

The cosine ρ of two tokens obeys dρ/dt = 2(1 − ρ²)/(1 + e^{β(1−ρ)}) for softmax attention.
"""

import numpy as np
from scipy.integrate import quad

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA, ANGLE = 4.0, 2.0
points = [[float(np.cos(1)), sign * float(np.sin(1))] for sign in (1, -1)]
changes = [f"attention.beta={BETA}", "time.end=40", f"initial.points={points}", "output.samples=4"]
case = mf.load_case("tokens_pair", changes)
result = mf.simulate(case)

# %%
# The time at which the cosine is ½, by interpolation.
time = np.asarray(result.time)
tokens = np.asarray(result.position)
cosine = np.einsum("td,td->t", tokens[:, 0], tokens[:, 1])
crossed = int(np.argmax(cosine > 0.5))
step = slice(crossed - 2, crossed + 2)
found = float(np.polyval(np.polyfit(cosine[step], time[step], 3), 0.5))

STATEMENT = Statement(
    text="two tokens 2 rad apart reach cos = ½ at t = ∫dρ (1 + e^{β(1−ρ)})/(2(1−ρ²)), β = 4",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=quad(lambda rho: (1 + np.exp(BETA * (1 - rho))) / (2 * (1 - rho**2)), np.cos(ANGLE), 0.5)[0],
    found=found,
    tolerance=1e-5,
    reason="a cubic through four snapshots",
)

# %%
cosines = np.linspace(np.cos(ANGLE), 0.9, 40)
formula = [quad(lambda rho: (1 + np.exp(BETA * (1 - rho))) / (2 * (1 - rho**2)), np.cos(ANGLE), c)[0] for c in cosines]
draw("time", "cosine of the two tokens", run=(time, cosine), formula=(formula, cosines))
print(STATEMENT)
