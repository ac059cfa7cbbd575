"""
Fisher, Kolmogorov, Petrovsky, Piskunov: the speed of the front
===============================================================

∂ₜu = u″ + u(1 − u): a front from compact data moves at 2 − 3/(2t) + 3√π/(2t^{3/2}) + (9/8)(5 − 6 log 2)(1 − log t)/t²
+ O(t⁻²).
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from solvers import Diffusion, Equation, interval, solve

mesh, t = interval(0.0, 400.0, 2000), 160.0
x = mesh.centers[:, 0]
equation = Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: u * (1 - u)])
times = np.array([t - 1, t + 1])
solution = solve(equation, (x < 5).astype(float), (0.0, times[1]), times=times, rtol=1e-6)
places = [np.interp(-0.5, -u, x) for u in np.asarray(solution.u)]
expansion = 2 - 3 / (2 * t) + 1.5 * np.sqrt(np.pi) * t**-1.5 + 9 / 8 * (5 - 6 * np.log(2)) * (1 - np.log(t)) / t**2

STATEMENT = Statement(
    text="speed of the front at t = 160",
    source="Bramson (1983); Berestycki, Brunet, Derrida (2017)",
    read="formula; its error times t² is constant from t = 80 to 300",
    expected=expansion,
    found=(places[1] - places[0]) / 2,
    tolerance=5e-4,
    reason="the next term, measured as -14/t²: 6e-4 of 2",
)

# %%
fronts = np.asarray(solution.u)
draw("x", "u", **{f"t_=_{time:g}": (x, u) for time, u in zip(times, fronts, strict=True)})
print(STATEMENT)
