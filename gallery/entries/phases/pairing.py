"""
Pairing: time scale of the closest pair
=======================================

For β → ∞ the closest two clusters move as dy_i/ds = P y_j in the time dt = e^{β(1−⟨x_i,x_j⟩)} ds, and all others are
fixed. The cosine in this time scale is the current one. With the initial cosine, as printed in a survey, the pair
merges at s = O(1/β).
"""

import numpy as np
from scipy.integrate import quad

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle, run

BETA, ANGLE, HALF = 30.0, 0.8, 0.4
scale = float(np.exp(BETA * (1 - np.cos(ANGLE))))
# Time of two tokens from ANGLE to HALF.
halved = quad(lambda phi: (1 + np.exp(BETA * (1 - np.cos(phi)))) / (2 * np.sin(phi)), HALF, ANGLE)[0]
times = [*(halved * (1 - np.geomspace(1, 1e-5, 400))).tolist(), *np.linspace(halved, 2 * halved, 60).tolist()]
changes = [f"attention.beta={BETA}", f"output.times={times}", "time.tolerance=1e-10"]
time, path = run(on_circle([0.0, ANGLE, 2.8]), 2 * halved, *changes)
angles = continuous_angles(path)
apart = angles[:, 1] - angles[:, 0]
of_start = time / scale
clock = np.exp(-BETA * (1 - np.cos(apart)))
of_moment = np.concatenate([[0], np.cumsum(np.diff(time) * (clock[1:] + clock[:-1]) / 2)])
still = apart > HALF
assert np.abs(angles[:, 2] - angles[0, 2]).max() < 1e-3  # the third is fixed


def limit(s):
    """Return the angle φ of the closest pair at times s by dφ/ds = −2 sin φ, the limit β → ∞, from φ(0) = ANGLE."""
    return 2 * np.arctan(np.tan(ANGLE / 2) * np.exp(-2 * s))


half = np.log(np.tan(ANGLE / 2) / np.tan(HALF / 2)) / 2  # time s at which the angle is HALF
found = float(np.interp(-HALF, -apart, of_moment))

STATEMENT = Statement(
    text="angle of the closest pair, initially 0.8 rad, at the time at which the theorem with the time scale of the "
    "initial cosine gives 0.4",
    source="Rigollet 2512.01868, section 5.2, theorem after Bruno, Pasqualotto, Agazzi 2509.25040v1",
    read="text of 2512.01868; abstract of 2509.25040",
    expected=HALF,
    found=float(np.interp(half, of_start, apart)),  # constant beyond the end
    tolerance=1e-3,
    reason="the pair has merged by then",
    holds=0.0,
    where=f"for the initial cosine; with the current cosine the angle is 0.4 at s = {found:.3f}, by the formula "
    f"{half:.3f}",
)

# %%
s = np.linspace(0, 0.5, 50)
curves = {
    "time_by_the_initial_cosine": (of_start, apart),
    "by_the_current_cosine": (of_moment[still], apart[still]),
}
draw("s", "angle of the pair", **curves, formula=(s, limit(s)))
print(STATEMENT)
