"""
Convergence to antipodal points for V = −I
==========================================

With V = −I and β = 0 the length r of the mean token falls within the Möbius family: dr/dt = −r(1 − r²)/2.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

END = 3.0
changes = ["attention.value=[[-1.0, 0.0], [0.0, -1.0]]", f"time.end={END}"]
case = mf.load_case("flow_beta0_circle", changes)
result = mf.simulate(case)
r0 = np.tanh(case.initial.parameter / 2)
r = solve_ivp(lambda time, r: -r * (1 - r**2) / 2, (0, END), [r0], rtol=1e-11).y[0, -1]

STATEMENT = Statement(
    text="length of the mean token at t = 3, V = −I, β = 0",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (β = 0)",
    read="abstract; formula derived here",
    expected=r,
    found=np.linalg.norm(np.asarray(result.diagnostics["centroid"])[-1]),
    tolerance=1e-3,
    reason="second order in the cells",
)

# %%
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
time = np.asarray(result.diagnostics.time)
formula = solve_ivp(lambda time, r: -r * (1 - r**2) / 2, (0, END), [r0], t_eval=time, rtol=1e-9).y[0]
draw("time", "length of the mean token", run=(time, length), formula=(time, formula))
print(STATEMENT)
