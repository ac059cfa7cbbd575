"""
Prevention of blow-up by a gate
===============================

With a gate γ the variance obeys ds/dt = 2s(βs − γ): it falls for s₀ < γ/β and blows up for s₀ > γ/β.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

case = mf.load_case("gate_line", ["time.end=1"])
result = mf.simulate(case)
variance = np.asarray(result.diagnostics["variance"]).ravel()
beta, gate = case.attention.beta, case.stabilizers.gate


def rate(time, s):
    return 2 * s * (beta * s - gate)


STATEMENT = Statement(
    text="variance at t = 1 just below the threshold γ/β",
    source="formula derived here; the gate as in Zhang and Zhou 2408.09523v2",
    read="abstract",
    expected=solve_ivp(rate, (0, 1), [case.initial.variance], rtol=1e-10).y[0, -1],
    found=variance[-1],
    tolerance=1e-2,
    reason="second order in the cells of the core",
)

# %%
time = np.asarray(result.diagnostics.time)
formula = solve_ivp(rate, (0, time[-1]), [case.initial.variance], t_eval=time, rtol=1e-9).y[0]
draw("time", "variance", run=(time, variance), formula=(time, formula))
print(STATEMENT)
