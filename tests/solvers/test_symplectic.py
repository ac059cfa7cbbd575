"""Symplectic steps: order, energy, reversibility, stability, wave equations, refused equations."""

import numpy as np
import pytest
from support import exact

from solvers.mesh.interval import interval
from solvers.text.equation import from_text
from solvers.timestepping.equation import Equation
from solvers.timestepping.methods import METHODS
from solvers.timestepping.solve import solve
from solvers.timestepping.state import State

PENDULUM = Equation(None, [lambda t, u: np.array([u[1], -np.sin(u[0])])])
LINE = interval(0.0, 2 * np.pi, 32, periodic=True)


def run(equation, u0, end, **options):
    return solve(equation, u0, (0.0, end), **{"method": "symplectic", "times": [end], **options}).u[-1]


def test_the_order_is_4_also_with_rates_that_depend_on_time():
    """q̈ = −q + t² has the solution t² − 2 + 2 cos t from q = 0 at rest; in half as many steps errors are 2⁴ times."""
    forced = Equation(None, [lambda t, u: np.array([u[1], t**2 - u[0]])])
    errors = []
    for step in (0.2, 0.1, 0.05):
        q, p = run(forced, [0.0, 0.0], 4.0, first_step=step, max_step=step)
        errors.append(abs(q - (14 + 2 * np.cos(4))) + abs(p - (8 - 2 * np.sin(4))))
    assert exact.orders(errors, [1, 2, 4])[-1] == pytest.approx(4, abs=0.1), errors


def test_the_energy_of_a_pendulum_oscillates_but_does_not_drift():
    """An explicit method of order 5 at its default tolerance changes the energy by 2e-2 in the same time."""
    times = np.linspace(0.0, 1000.0, 501)[1:]
    q, p = solve(PENDULUM, [2.0, 0.0], (0.0, 1000.0), times=times, method="symplectic", max_step=0.4, rtol=1.0).u.T
    error = p**2 / 2 - np.cos(q) + np.cos(2.0)
    assert np.abs(error).max() < 2e-4
    assert abs(error[:250].mean() - error[250:].mean()) < 2e-6  # a hundredth of the oscillation


def test_steps_are_reversible():
    there = run(PENDULUM, [2.0, 0.3], 20.0, first_step=0.1, max_step=0.1)
    back = run(PENDULUM, [there[0], -there[1]], 20.0, first_step=0.1, max_step=0.1)
    assert [back[0], -back[1]] == pytest.approx([2.0, 0.3], abs=1e-12)


def test_the_stable_step_is_that_of_the_highest_frequency():
    """The oscillator of frequency 10 stays bounded at 99.5 % of the stable step, and grows without limit at 100.5 %."""
    oscillator, sizes = Equation(None, [lambda t, u: np.array([u[1], -100 * u[0]])]), []
    for part in (0.995, 1.005):
        integrator = METHODS["symplectic"](oscillator, 1e9, 1.0, 1.05 * part)  # the estimate has a margin of 1.05
        state = State(0.0, np.array([1.0, 0.0]))
        integrator.begin(state)
        while state.steps < 1500:
            integrator.step(state, 1e6)
        sizes.append(np.abs(state.values).max())
    assert sizes[0] < 100
    assert sizes[1] > 1e6


@pytest.mark.parametrize("text", ["dt(dt(u)) = laplace(u) - 3*u", "dt(u) = v; dt(v) = laplace(u) - 3*u"])
def test_waves_of_klein_and_gordon(text):
    """cos(kx − ωt) with ω² = k² + m², k = 1, m² = 3, by default."""
    x, volumes = LINE.centers[:, 0], LINE.volumes
    wave = from_text(text, LINE)
    found = solve(wave, [np.cos(x), 2 * np.sin(x)], (0.0, 10.0))
    assert "by symplectic in" in found.message
    assert np.abs(found.u[-1][0] - np.cos(x - 20)).max() < 1e-4
    slopes = [np.roll(u, -1) - u for u in found.u[:, 0]]
    energy = [(v**2 + 3 * u**2) @ volumes + (slope**2).sum() / volumes[0]
              for (u, v), slope in zip(found.u, slopes, strict=True)]  # fmt: skip
    assert np.ptp(energy) < 1e-3 * energy[0]


def test_the_steps_of_fine_meshes_are_stable():
    """The 40th power of the largest eigenvalue 9·10⁴ of the waves is beyond the range of numbers when it is squared."""
    mesh = interval(0.0, 1.0, 128, periodic=True)
    wave = np.cos(2 * np.pi * mesh.centers[:, 0])
    q, p = run(from_text("dt(dt(u)) = laplace(u)", mesh), [wave, 0 * wave], 1.0)
    np.testing.assert_allclose(q, wave, atol=1e-6)
    np.testing.assert_allclose(p, 0, atol=1e-4)


def test_a_damped_wave_decays():
    """u″ = Δu − 2γ u′ has u = e^{−γt}(cos ωt + γ/ω sin ωt) cos x with ω² = 1 − γ²; its method is not symplectic."""
    x, damping = LINE.centers[:, 0], 0.6
    equation = from_text("dt(dt(u)) = laplace(u) - 2*g*dt(u)", LINE, {"g": damping})
    found = solve(equation, [np.cos(x), 0 * x], (0.0, 3.0))
    exactly = np.exp(-0.6 * 3) * (np.cos(0.8 * 3) + 0.75 * np.sin(0.8 * 3)) * np.cos(x)
    assert "symplectic" not in found.message
    assert np.abs(found.u[-1][0] - exactly).max() < 2e-3


def test_velocities_come_after_all_fields():
    """The fields of the state are u, n, u_t."""
    equation = from_text("dt(dt(u)) = -u; dt(n) = -n", LINE)
    u, n, u_t = solve(equation, np.ones((3, 32)), (0.0, 1.0), rtol=1e-8).u[-1][:, 0]
    assert [u, n, u_t] == pytest.approx([np.cos(1) + np.sin(1), np.exp(-1), np.cos(1) - np.sin(1)], abs=1e-6)


@pytest.mark.parametrize(
    ("equation", "u0", "message"),
    [
        (
            lambda t, u: np.array([u[1], -u[0] - u[1]]),
            [1.0, 0.0],
            "∂ₜp depends on p: expected a function of t and q",
        ),
        (lambda t, u: np.array([u[0], -u[0]]), [1.0, 0.0], "^method = .symplectic.: ∂ₜq depends on q: expected"),
        (lambda t, u: -u, [1.0], r"^u0 of 1 rows: expected an even number with method = 'symplectic', first q and"),
    ],
)
def test_other_equations_are_refused(equation, u0, message):
    with pytest.raises(ValueError, match=message):
        run(Equation(None, [equation]), u0, 1.0)


def test_names_of_velocities_are_free():
    with pytest.raises(ValueError, match="u_t: expected no field of the name of a velocity"):
        from_text("dt(dt(u)) = -u; dt(u_t) = 1", LINE)
