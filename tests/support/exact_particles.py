"""Exact dynamics of tokens as particles: ordinary differential equations of a few numbers, each with its source."""

import numpy as np
from scipy import integrate, special


def pair_time_unnormalized(beta, angle=2.0, cosine=0.5):
    """Return the time in which two tokens, ``angle`` apart, reach ``cosine`` by ρ̇ = e^{βρ}(1 − ρ²), ρ = ⟨x₁, x₂⟩.

    ∫dρ e^{−βρ}/(1 − ρ²) = ½[−e^{−β}Ei(β(1 − ρ)) + e^{β}Ei(−β(1 + ρ))].
    """

    def clock(s):
        ahead, behind = special.expi(beta * (1 - s)), special.expi(-beta * (1 + s))
        return (-np.exp(-beta) * ahead + np.exp(beta) * behind) / 2

    return clock(cosine) - clock(np.cos(angle))


def equiangular_rate(count, beta, cosine, normalization="softmax"):
    """Return ġ of n tokens with all cosines g: 2e^{βg}(1−g)((n−1)g+1)/(e^β+(n−1)e^{βg}), denominator n if unnormalized.

    Geshkovski and others (2312.10794), theorem 6.8 and its analogs: by symmetry the tokens stay equiangular.
    """
    others = np.exp(beta * cosine)
    size = np.exp(beta) + (count - 1) * others if normalization == "softmax" else count
    return 2 * others * (1 - cosine) * ((count - 1) * cosine + 1) / size


def equiangular_output(count, beta, cosine):
    """Return ⟨θ_i, A_i⟩ and |A_i| for softmax, from A_i = (e^β x_i + e^{βg} Σ_{j≠i} x_j)/(e^β + (n−1) e^{βg})."""
    own, others = np.exp(beta), np.exp(beta * cosine)
    size = own + (count - 1) * others
    along = own + (count - 1) * others * cosine
    square = own**2 + 2 * (count - 1) * own * others * cosine
    square += others**2 * (count - 1) * (1 + (count - 2) * cosine)
    return along / size, np.sqrt(square) / size


def equiangular_gap(scheme, count, beta, times, switch=1.0):
    """Return 1 − g at times from orthonormal tokens at radius 1 for a layer norm: ġ = ġ_post/s, ṙ by table 1.

    Karagodin and others (2510.22026). The gap 1 − g is itself the integrated variable, for a relative error of
    1e-10.
    """

    def rate(time, state):
        gap, radius = state
        along, length = equiangular_output(count, beta, 1 - gap)
        carried = scheme == "pre" or (scheme == "mix" and time >= switch)
        paces = {"pre": radius, "peri": radius * length, "ngpt": length, "cod": np.sqrt(time + 1)}
        pace = paces.get("pre" if carried else scheme, 1.0)
        growth = along if carried else along / length if scheme == "peri" else 0.0
        others = np.exp(beta * (1 - gap))
        closing = 2 * others * gap * ((count - 1) * (1 - gap) + 1) / (np.exp(beta) + (count - 1) * others)
        return -closing / pace, growth

    solution = integrate.solve_ivp(
        rate, (0.0, times[-1]), (1.0, 1.0), "DOP853", times, rtol=1e-11, atol=1e-30, max_step=0.5
    )
    return solution.y[0]
