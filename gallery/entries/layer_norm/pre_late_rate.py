"""
Layer norm pre: tokens come together as t⁻²
===========================================

Late, 1 − g falls with a power of time instead of exponentially, for the radius grows as t.
"""

import numpy as np

import meanfield as mf
from gallery.statement import Statement

changes = ["stabilizers.layer_norm=pre", "attention.beta=2", "domain.count=8", "domain.dimension=8"]
result = mf.simulate(mf.load_case("tokens_equiangular", [*changes, "time.end=2000", "output.samples=4"]))
time, tokens = np.asarray(result.time), np.asarray(result.position)
tokens = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
apart = np.linalg.norm(tokens[:, 0] - tokens[:, 1], axis=-1) ** 2 / 2
late = time > 1000

STATEMENT = Statement(
    text="1 − g of equiangular tokens falls as t⁻² (pre)",
    source="Karagodin and others 2510.22026, table 5.1",
    read="formula derived again",
    published=-2.0,
    found=np.polyfit(np.log(time[late]), np.log(apart[late]), 1)[0],
    tolerance=1e-2,
    reason="corrections of order 1/t",
)
