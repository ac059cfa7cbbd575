"""
First-order transition on the sphere beyond β*
==============================================

Without normalization the transition is continuous up to β* with I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d, and of first order
beyond: the branch of ordered states leaves the uniform density forwards or backwards in the noise.
"""

from scipy.optimize import brentq
from scipy.special import ive

from gallery.figure import draw
from gallery.statement import Statement
from meanfield.analysis.branches.continuation import follow
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.branches.varied import OverNoise

D, betas, slopes, curves = 3, (1.7, 1.95), [], {}
for beta in betas:
    branch = follow(OverNoise(Equilibria(D, beta, "unnormalized", nodes=48)), steps=8)
    first = branch.equilibria[1]
    slopes.append((1 - branch.critical / first.noise) / first.order**2)
    noises = [point.noise / branch.critical for point in branch.equilibria]
    curves[f"β_=_{beta:g}"] = (noises, [point.order for point in branch.equilibria])

STATEMENT = Statement(
    text="β* from which on the transition is discontinuous, d = 3",
    source="Mun and Rosenzweig 2606.05140v1, abstract",
    read="abstract",
    published=brentq(lambda b: ive(D / 2 + 1, b) / ive(D / 2, b) - 1 / D, 0.5, 5.0),
    found=betas[0] - slopes[0] * (betas[1] - betas[0]) / (slopes[1] - slopes[0]),
    tolerance=5e-3,
    reason="linear interpolation between two β",
)

# %%
draw("noise over the critical", "length of the mean token", **curves)
print(STATEMENT)
