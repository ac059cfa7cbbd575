"""
Exponentially weak attraction of kinks of the Allen–Cahn equation
=================================================================

For ∂ₜu = u″ + u − u³ on the line, kinks at the distance L approach each other at 24√2 e^{−√2 L}, as clusters do on the
sphere.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Diffusion, Equation, interval, solve

mesh = interval(0.0, 14.0, 280)  # half of an even field: the second kink is the mirror image in x = 0
x = mesh.centers[:, 0]
equation = Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: u - u**3])
distances, speeds, times = [5.0, 6.0, 7.0], [], np.array([6.0, 8.0, 10.0])
for distance in distances:
    u = np.tanh((x - distance / 2) / np.sqrt(2))
    solution = solve(equation, u, (0.0, times[-1]), times=times, rtol=1e-7, atol=1e-10)
    zeros = [np.interp(0.0, u, x) for u in np.asarray(solution.u)]
    length = 2 * zeros[1]
    speeds.append((length, 2 * (zeros[0] - zeros[2]) / (times[2] - times[0])))
lengths, speeds = np.array(speeds).T

STATEMENT = Statement(
    text="power a in the speed e^{−aL} of two kinks at the distance L",
    source="Carr and Pego (1989); Otto and Reznikoff (2007)",
    read="formula derived here",
    expected=np.sqrt(2),
    found=-np.polyfit(lengths, np.log(speeds), 1)[0],
    tolerance=2e-2,
    reason="of order e^{−√2 L} at L = 5, and of the mesh",
)

# %%
draw(
    "distance L",
    "speed",
    logy=True,
    runs=(lengths, speeds),
    formula=(lengths, 24 * np.sqrt(2) * np.exp(-np.sqrt(2) * lengths)),
)
print(STATEMENT)
