"""
First-order transition on the sphere beyond β*
==============================================

Without normalization the transition is continuous up to β* with I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d, and of first order
beyond: the branch of ordered states leaves the uniform density forwards or backwards in the noise.
"""

from gallery.figure import draw
from gallery.statement import Statement
from gallery.transition import formula, run

found, curves = run(d=3, betas=(1.7, 1.95))

STATEMENT = Statement(
    text="β* from which on the transition is discontinuous, d = 3",
    source="Mun and Rosenzweig 2606.05140v1, abstract",
    read="abstract",
    published=formula(3),
    found=found,
    tolerance=5e-3,
    reason="linear interpolation between two β",
)

# %%
draw("noise over the critical", "length of the mean token", **curves)
print(STATEMENT)
