"""
Layer norm nGPT: equiangular tokens
===================================

Directions move at P_θA/s with s = ‖A‖; the cosine g of equiangular tokens obeys one equation.
"""

from meanfield.gallery.equiangular import formula, run
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

N, BETA, END = 8, 2.0, 4.0
time, apart = run("ngpt", N, BETA, END, "stabilizers.alpha=1")

expected = formula("ngpt", N, BETA, time)

STATEMENT = Statement(
    text="1 − g of 8 orthonormal tokens at t = 4, layer norm ngpt, β = 2",
    source="Karagodin and others 2510.22026v2",
    read="abstract; formula derived here",
    expected=expected[-1],
    found=apart[-1],
    tolerance=1e-6,
    reason="steps to 1e-10",
)

# %%
draw("time", "1 − g", logy=True, run=(time, apart), formula=(time, expected))
print(STATEMENT)
