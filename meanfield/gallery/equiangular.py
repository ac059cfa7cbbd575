"""Equiangular tokens, whose pairs all have the same cosine g: runs, formula and late rates, used by several entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.gallery.figure import draw
from solvers.mesh.mesh import Floats


def run(norm: str, n: int, beta: float, end: float, *more: str) -> tuple[Floats, Floats]:
    """Return times and 1 − g of a run of n tokens that begin orthonormal; g is the common cosine of all pairs.

    ``norm`` is the layer norm, and ``more`` are changes of the case. 1 − g is computed without cancellation.
    """
    changes = [f"stabilizers.layer_norm={norm}", f"attention.beta={beta}", f"domain.count={n}", f"domain.dimension={n}"]
    case = mf.load_case("tokens_equiangular", [*changes, f"time.end={end}", "output.samples=4", *more])
    result = mf.simulate(case)
    tokens = np.asarray(result.position)
    tokens = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    return np.asarray(result.time), np.linalg.norm(tokens[:, 0] - tokens[:, 1], axis=-1) ** 2 / 2


def formula(norm: str, n: int, beta: float, times: Floats) -> Floats:
    """Return 1 − g at ``times`` for n tokens with equal cosines g of all pairs and radius r, by its ODE.

    dg/dt = 2e^{βg}(1 − g)((n−1)g + 1)/(e^β + (n−1)e^{βg})/s with g = 0 and r = 1 at time 0, θ the direction of a token
    and A its attention. Layer norm pre: s = r, dr/dt = ⟨θ, A⟩; peri: s = r|A|, dr/dt = ⟨θ, A⟩/|A|; ngpt: s = |A|
    (Karagodin and others, arXiv:2510.22026, table 1).
    """
    near = np.exp(beta)

    def rate(time: float, state: Floats) -> tuple[float, float]:
        g, r = state
        far = np.exp(beta * g)
        total = near + (n - 1) * far
        along = (near + (n - 1) * far * g) / total  # ⟨θ, A⟩
        length = np.sqrt(near**2 + 2 * (n - 1) * near * far * g + (n - 1) * far**2 * (1 + (n - 2) * g)) / total  # |A|
        speed = {"pre": r, "peri": r * length, "ngpt": length}[norm]
        radial = {"pre": along, "peri": along / length, "ngpt": 0.0}[norm]
        return 2 * far * (1 - g) * ((n - 1) * g + 1) / total / speed, radial

    found = solve_ivp(rate, (0, times[-1]), [0.0, 1.0], t_eval=times, rtol=1e-11, atol=1e-13)
    return np.asarray(1 - found.y[0])


def late_exponential(
    norm: str, end: float, expected: float, *more: str, clock: Callable[[Floats], Floats] = np.asarray
) -> tuple[float, dict[str, tuple[Floats, Floats]]]:
    """Return the late exponential rate of 1 − g, g the common cosine of 8 tokens at β = 2, and curves to draw.

    The run has the layer norm ``norm``, the end time ``end`` and the changes ``more`` of the case. The rate is the
    slope of log(1 − g) over ``clock(t)`` while 1e-11 < 1 − g < 1e-3. The curves are 1 − g of the run,
    and an exponential of the ``expected`` rate from the first late time on.
    """
    time, gap = run(norm, 8, 2.0, end, *more)
    late = (gap < 1e-3) & (gap > 1e-11)
    x = clock(time)
    line = gap[late][0] * np.exp(expected * (x[late] - x[late][0]))
    return float(np.polyfit(x[late], np.log(gap[late]), 1)[0]), {"run": (x, gap), "formula": (x[late], line)}


def late_power(norm: str, *more: str) -> tuple[float, dict[str, tuple[Floats, Floats]]]:
    """Return the late power p of 1 − g ∝ tᵖ, g the common cosine of 8 tokens at β = 2, and curves to draw.

    The run has the layer norm ``norm`` and the changes ``more`` of the case. The power is fitted from t = 1000 to 2000.
    The curves are 1 − g of the run, and a power law ∝ t⁻².
    """
    time, gap = run(norm, 8, 2.0, 2000.0, *more)
    late, after = time > 1000, time > 1
    power = np.polyfit(np.log(time[late]), np.log(gap[late]), 1)[0]
    line = gap[late][0] * (time[late] / time[late][0]) ** -2
    return float(power), {"run": (time[after], gap[after]), "formula_of_slope_-2": (time[late], line)}


def draw_late_rate(x: str, curves: dict[str, tuple[Floats, Floats]], *, logx: bool = False) -> None:
    """Draw curves of 1 − g on a logarithmic axis; g is the common cosine of all pairs of tokens."""
    draw(x, "1 − g", logx=logx, logy=True, **curves)


def after_a_layer(n: int, cosine: float, beta: float) -> float:
    """Return the common cosine of all pairs of n tokens after one attention layer without residual, from ``cosine``."""
    changes = [f"attention.beta={beta}", f"domain.count={n}", f"domain.dimension={n}", f"initial.cosine={cosine}"]
    changes += ["time.step=1", "time.method=layers", "time.layers=1", "stabilizers.residual=false"]
    quiet = ["output.snapshots=1", "output.samples=1", 'output.diagnostics=["mass"]']
    tokens = np.asarray(mf.simulate(mf.load_case("tokens_equiangular", [*changes, *quiet])).position)[-1]
    return float(tokens[0] @ tokens[1])
