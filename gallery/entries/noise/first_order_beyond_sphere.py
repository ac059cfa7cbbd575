"""
First-order transition on the sphere beyond β*
==============================================

The threshold for d = 3 is I_{5/2}(β*)/I_{3/2}(β*) = 1/3 (noise/first_order_beyond_circle has the circle).
"""

from meanfield.gallery.figure import draw
from meanfield.gallery.transition import first_order

STATEMENT, curves = first_order(d=3, betas=(1.7, 1.95))

# %%
draw("noise over the critical", "length of the mean token", **curves)
print(STATEMENT)
