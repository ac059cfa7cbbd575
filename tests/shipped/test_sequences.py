"""Promises of the shipped cases of a representation field: tokens in a sequence."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.shipped_runs import assert_stated, finished


@pytest.mark.parametrize("name", ["domains", "rate", "window", "drift", "blow_up"])
def test_promise(name, tmp_path):
    name = {"domains": "representation_field"}.get(name, f"representation_{name}")
    PROMISES[name](*finished(name, tmp_path))


def attended(u, beta):
    """Return Σ_j softmax_j(β⟨u_i, u_j⟩) u_j, summed over all pairs."""
    shares = np.exp(beta * (u @ u.T))
    return shares @ u / shares.sum(axis=1, keepdims=True)


def unit(u):
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def domains(case, file):
    """Assert that positions solve ∂ₜu = P_u(A(u) + κ u″) on the sphere, u″ by second differences between walls."""
    n, kappa = case.domain.count, case.sequence.diffusion

    def rate(time, flat):
        u = flat.reshape(n, -1)
        padded = np.concatenate([u[:1], u, u[-1:]])
        moved = attended(u, case.attention.beta) + kappa * n**2 * (padded[2:] - 2 * u + padded[:-2])
        return (moved - (moved * u).sum(axis=1, keepdims=True) * u).ravel()

    k = int(np.searchsorted(file.times, 5.0))
    expected = solve_ivp(rate, (0.0, file.times[k]), file.positions(0).ravel(), "DOP853", rtol=1e-10, atol=1e-10)
    assert np.abs(file.positions(k).ravel() - expected.y[:, -1]).max() < 1e-6
    clusters, times = file.diagnostics["clusters"], file.sample_times
    assert (clusters[(times >= 2) & (times <= 8)] == 3).all()
    assert clusters[-1] == 1


def rate(case, file):
    k = np.pi / case.sequence.length
    expected = 2 * (1 + case.sequence.diffusion * k**2)
    found = -np.polyfit(file.sample_times, np.log(file.diagnostics["roughness"]), 1)[0]
    assert found == pytest.approx(expected, rel=1e-3)  # the discrete diffusion differs by (kh)²/12 = 5e-5


def window(case, file):
    reach, k = case.attention.pattern.local, 2 * np.pi / case.domain.count
    rate = 1 - np.cos(k * np.arange(-reach, reach + 1)).mean()
    assert rate == pytest.approx(reach * (reach + 1) / 6 * k**2, rel=0.01)
    late = file.sample_times >= 60
    found = -np.polyfit(file.sample_times[late], np.log(file.diagnostics["roughness"][late]), 1)[0]
    assert_stated("representation_window", f"twice that rate, {2 * rate:.4f}")
    assert found == pytest.approx(2 * rate, rel=1e-5)  # the next wave has decayed to e^{-0.17·60}


def drift(case, file):
    u, moved = file.positions(0), file.positions(0)
    for k in range(1, file.snapshots):
        u = unit(attended(u, case.attention.beta))
        moved = unit(moved + case.time.step * attended(moved, case.attention.beta))
        assert np.abs(file.positions(k) - u).max() < 1e-12
    start = file.positions(0)
    without, with_residual = (1 - (v * start).sum(axis=1).mean() for v in (u, moved))
    assert file.diagnostics["drift"][-1] == pytest.approx(without, abs=1e-12)
    assert without > 5 * with_residual


def blow_up(case, file):
    radius, times = file.diagnostics["radius"], file.sample_times
    late = times > 2  # the field is then constant up to a few thousandths
    growth = np.polyfit(times[late], np.log(radius[late]), 1)[0]
    assert growth == pytest.approx(1 - case.stabilizers.gate, rel=1e-3)
    assert radius[-1] > 1e6 * radius[0]


PROMISES = {
    "representation_field": domains,
    "representation_rate": rate,
    "representation_window": window,
    "representation_drift": drift,
    "representation_blow_up": blow_up,
}
