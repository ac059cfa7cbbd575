"""
Pairing: the closest pair and the clock that it needs
=====================================================

For β → ∞ the closest two clusters move as dy_i/ds = P y_j in the time dt = e^{β(1−⟨x_i,x_j⟩)} ds, and the others
rest. The cosine in it is that of the moment. With the cosine of the start, as a survey has it, the pair is together
at s = O(1/β).
"""

import numpy as np
from scipy.integrate import quad

from gallery.figure import draw
from gallery.statement import Statement
from gallery.tokens import on_circle, run, turned

BETA, ANGLE, HALF = 30.0, 0.8, 0.4
scale = float(np.exp(BETA * (1 - np.cos(ANGLE))))
halved = quad(lambda phi: (1 + np.exp(BETA * (1 - np.cos(phi)))) / (2 * np.sin(phi)), HALF, ANGLE)[0]  # of two tokens
times = [*(halved * (1 - np.geomspace(1, 1e-5, 400))).tolist(), *np.linspace(halved, 2 * halved, 60).tolist()]
changes = [f"attention.beta={BETA}", f"output.times={times}", "time.tolerance=1e-10"]
time, path = run(on_circle([0.0, ANGLE, 2.8]), 2 * halved, *changes)
angles = turned(path)
apart = angles[:, 1] - angles[:, 0]
of_start = time / scale
clock = np.exp(-BETA * (1 - np.cos(apart)))
of_moment = np.concatenate([[0], np.cumsum(np.diff(time) * (clock[1:] + clock[:-1]) / 2)])
still = apart > HALF
assert np.abs(angles[:, 2] - angles[0, 2]).max() < 1e-3  # the third rests


def limit(s):
    """Angle of two tokens with dy_i/ds = P y_j."""
    return 2 * np.arctan(np.tan(ANGLE / 2) * np.exp(-2 * s))


half = np.log(np.tan(ANGLE / 2) / np.tan(HALF / 2)) / 2  # the s at which it is HALF
found = float(np.interp(-HALF, -apart, of_moment))

STATEMENT = Statement(
    text="angle of the closest pair, 0.8 rad at s = 0, when it should be 0.4, with the time scaled by its first cosine",
    source="Rigollet 2512.01868, section 5.2, theorem after Bruno, Pasqualotto, Agazzi 2509.25040v1",
    read="text of 2512.01868; abstract of 2509.25040",
    published=HALF,
    found=float(np.interp(half, of_start, apart)),  # beyond the end: as at the end
    tolerance=1e-3,
    reason="the two are together by then",
    holds=0.0,
    where=f"for the first cosine; with that of the moment it is 0.4 at s = {found:.3f}, by the formula {half:.3f}",
)

# %%
s = np.linspace(0, 0.5, 50)
curves = {
    "time_by_the_first_cosine": (of_start, apart),
    "by_the_cosine_of_the_moment": (of_moment[still], apart[still]),
}
draw("s", "angle of the pair", **curves, formula=(s, limit(s)))
print(STATEMENT)
