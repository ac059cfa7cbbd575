"""
Equal tokens follow the power method
====================================

With V symmetric x(t) = e^{tV}x₀/|e^{tV}x₀| comes to the leading eigenvector.
"""

import numpy as np

import meanfield as mf
from gallery.statement import Statement

END = 2.0
start = [0.28, 0.96]
changes = ["attention.value=[[1.0, 0.0], [0.0, 0.4]]", f"initial.points={[start, start]}", f"time.end={END}"]
token = np.asarray(mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=4"])).position)[-1, 0]

STATEMENT = Statement(
    text="slope of equal tokens at t = 2 with V = diag(1, 0.4)",
    source="Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794",
    read="formula derived again",
    published=start[1] / start[0] * np.exp(-0.6 * END),
    found=token[1] / token[0],
    tolerance=1e-8,
    reason="steps to 1e-10",
)
