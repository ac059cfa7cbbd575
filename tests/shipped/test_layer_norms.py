"""Shipped cases of each layer norm with the same two tokens, against the equation of two tokens."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.shipped_runs import finished, pair_angles


@pytest.mark.parametrize("scheme", ["post", "ngpt", "cod", "pre", "peri", "mix"])
def test_promise(scheme, tmp_path):
    name = f"layer_norm_{scheme}"
    PROMISES[name](*finished(name, tmp_path))


def tokens(case, times):
    """Return the angle (times,) between two equal tokens, and their radius (times,): φ̇ = −2 (A across)/s, ṙ = g.

    Table 1 of Karagodin and others (2510.22026) gives s and g, which are written out here independently of the
    package.
    """
    beta, norm = case.attention.beta, case.stabilizers

    def rate(time, state):
        angle, radius = state
        other = np.exp(beta * (np.cos(angle) - 1))
        along, across = (1 + other * np.cos(angle)) / (1 + other), other * np.sin(angle) / (1 + other)
        length = np.hypot(along, across)
        scheme = norm.layer_norm
        if scheme == "mix":
            scheme = "post" if time < norm.switch else "pre"
        pace = {
            "post": 1,
            "ngpt": length / norm.alpha,
            "cod": np.sqrt(time + 1),
            "pre": radius,
            "peri": radius * length,
        }
        growth = {"pre": along, "peri": along / length}
        return [-2 * across / pace[scheme], growth.get(scheme, 0.0)]

    options = {"t_eval": times, "rtol": 1e-9, "max_step": 0.01}  # short steps, because mix has a corner at its switch
    return solve_ivp(rate, (0, times[-1]), [2.0, 1.0], "DOP853", **options).y


def pair(case, file):
    angle, radius = tokens(case, file.times)
    late = file.times >= 0.5  # earlier the distribution of an atom over several cells shows
    # The tolerance includes the half percent error of merging_pair_circle.
    assert (2 - pair_angles(file))[late] == pytest.approx(2 - angle[late], rel=0.01)
    if case.domain.has_radius:
        np.testing.assert_array_equal(file.times, file.sample_times)
        assert file.diagnostics["radius"] == pytest.approx(radius, rel=0.01)


PROMISES = {f"layer_norm_{scheme}": pair for scheme in ("post", "ngpt", "cod", "pre", "peri", "mix")}
