"""
States of two clusters with noise, and their decay
==================================================

A branch of states with two equal clusters bifurcates from degree 2 of the uniform density. These states are unstable:
the clusters exchange mass at the rate that ``branch`` reports as the largest eigenvalue about their axis.
"""

import numpy as np

import meanfield as mf
from meanfield.analysis.branches.continuation import follow
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.branches.varied import NoiseParameter
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

BETA = 4.0
at = Equilibria(2, BETA, nodes=64)
state = follow(NoiseParameter(at), degree=2, steps=8).equilibria[-1]

# %%
# The state as a density on cells, with slightly more mass in one of the clusters.
fit = np.polynomial.Chebyshev.fit(at.nodes, state.log_density, 24, domain=[-1, 1]).coef
terms = "+".join(f"({c:.12g})*cos({k}*phi)" for k, c in enumerate(fit))  # T_k(cos φ) = cos kφ
changes = [f"attention.beta={BETA}", f"stabilizers.noise={state.noise}", "domain.resolution=256", "time.end=40"]
changes += ["initial.kind=formula", f'initial.density="exp({terms})*(1+1e-5*cos(phi))"', "output.samples=80"]
case = mf.load_case("uniform", ["domain.manifold=circle", *changes])
result = mf.simulate(case)
time = np.asarray(result.diagnostics.time)
length = np.linalg.norm(np.asarray(result.diagnostics["centroid"]), axis=1)
late = (time > 15) & (length < 1e-2)

STATEMENT = Statement(
    text=f"rate of mass exchange of two clusters at κ = {state.noise:.4f}, β = 4, softmax",
    source="formula derived here; coarsening with noise as in Mun and Rosenzweig 2606.05140v1",
    read="abstract; eigenvalue of the linearized equation",
    expected=state.fastest,
    found=np.polyfit(time[late], np.log(length[late]), 1)[0],
    tolerance=1e-2,
    reason="second order in 256 cells",
)

# %%
formula = length[late][0] * np.exp(state.fastest * (time[late] - time[late][0]))
draw("time", "length of the mean token", logy=True, run=(time, length), formula=(time[late], formula))
print(STATEMENT)
