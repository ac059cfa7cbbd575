"""
First-order transition on the circle beyond β*
==============================================

Without normalization the transition is continuous up to β* with I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d, and of first order
beyond. At β* the branch of ordered states changes from decreasing to increasing noise where it leaves the uniform one.
"""

from meanfield.gallery.figure import draw
from meanfield.gallery.transition import first_order

STATEMENT, curves = first_order(d=2, betas=(2.3, 2.6))

# %%
draw("noise over the critical", "length of the mean token", **curves)
print(STATEMENT)
