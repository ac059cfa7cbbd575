"""
Counterexample: a start that does not end in one cluster
========================================================

Two clusters at antipodal points, with two thirds and one third of the mass, are an equilibrium. Convergence
therefore holds for almost every start only. The uniform density is an equilibrium as well.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import on_circle, run

time, path = run(on_circle([0, 0, np.pi]), 50.0, "attention.beta=1", "output.snapshots=50")
apart = np.linalg.norm(path[:, 0] - path[:, 2], axis=1)

STATEMENT = Statement(
    text="distance at t = 50 of two tokens at one point and one at the antipode, if every start ended in one cluster",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794v4 (almost every start)",
    read="abstract and contents; counterexample derived here",
    expected=0.0,
    found=apart[-1],
    tolerance=1e-12,
    reason="equilibria are exact to rounding",
    holds=2.0,
    where="for this start of measure zero",
)

# %%
draw("time", "distance of the two clusters", run=(time, apart))
print(STATEMENT)
