"""
Layer norm peri: equiangular tokens
===================================

Directions move at P_θA/s with s = r|A|, dr/dt = ⟨θ, A⟩/|A|; the cosine g of equiangular tokens obeys one equation.
"""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from gallery.statement import Statement

N, BETA, END = 8, 2.0, 10.0
changes = ["stabilizers.layer_norm=peri", f"attention.beta={BETA}", f"domain.count={N}", f"domain.dimension={N}"]
changes += ["initial.radius=1", f"time.end={END}", "output.snapshots=4", "output.samples=4"]
result = mf.simulate(mf.load_case("tokens_equiangular", changes))
tokens = np.asarray(result.position)
tokens = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
apart = np.linalg.norm(tokens[:, 0] - tokens[:, 1], axis=-1) ** 2 / 2  # 1 − g, without cancellation


def rate(time, state):
    """Of g and of the radius r."""
    g, r = state
    near, far = np.exp(BETA), np.exp(BETA * g)
    along = (near + (N - 1) * far * g) / (near + (N - 1) * far)  # ⟨θ, A⟩
    length = np.sqrt(near**2 + 2 * (N - 1) * near * far * g + (N - 1) * far**2 * (1 + (N - 2) * g))
    length /= near + (N - 1) * far  # |A|
    speed, growth = {"pre": (r, along), "peri": (r * length, along / length), "ngpt": (length, 0.0)}["peri"]
    return 2 * far * (1 - g) * ((N - 1) * g + 1) / (near + (N - 1) * far) / speed, growth


state = solve_ivp(rate, (0, END), [1 - apart[0], 1.0], rtol=1e-11, atol=1e-13).y[:, -1]

STATEMENT = Statement(
    text="1 − g of 8 orthonormal tokens at t = 10, layer norm peri, β = 2",
    source="Karagodin and others 2510.22026",
    read="formula derived again",
    published=1 - state[0],
    found=apart[-1],
    tolerance=1e-6,
    reason="steps to 1e-10",
)
