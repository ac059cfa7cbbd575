"""
Two tokens without normalization
================================

The cosine of two tokens obeys dρ/dt = e^{βρ}(1 − ρ²) for unnormalized attention.
"""

import numpy as np
from scipy.integrate import quad

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 4.0
changes = [f"attention.beta={BETA}", "attention.normalization=unnormalized", "time.end=1.5", "output.snapshots=60"]
result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"]))
time, tokens = np.asarray(result.time), np.asarray(result.position)
cosine = np.einsum("td,td->t", tokens[:, 0], tokens[:, 1])
crossed = int(np.argmax(cosine > 0.5))
step = slice(crossed - 3, crossed + 3)
found = float(np.polyval(np.polyfit(cosine[step], time[step], 5), 0.5))

STATEMENT = Statement(
    text="two tokens 2 rad apart reach cos = ½ at t = ∫dρ e^{−βρ}/(1 − ρ²), β = 4, unnormalized",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4",
    read="abstract; formula derived here",
    expected=quad(lambda rho: np.exp(-BETA * rho) / (1 - rho**2), np.cos(2.0), 0.5)[0],
    found=found,
    tolerance=1e-5,
    reason="a polynomial through six snapshots",
)

# %%
cosines = np.linspace(np.cos(2.0), 0.9, 40)
formula = [quad(lambda rho: np.exp(-BETA * rho) / (1 - rho**2), np.cos(2.0), c)[0] for c in cosines]
draw("time", "cosine of the two tokens", run=(time, cosine), formula=(formula, cosines))
print(STATEMENT)
