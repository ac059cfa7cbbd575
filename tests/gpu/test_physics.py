"""Physics on the device: exact solutions. The simulator is too slow: without a GPU the tests run on the CPU."""

import numpy as np
import pytest
from support import exact
from support.device import SIMULATED, gpu

from meanfield.domains.particles.steps import dynamics_adaptive
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import initial_harmonic, initial_moebius, initial_perturbed, initial_points
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.backends import cpu
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms.harmonics import harmonic_transform

there = cpu if SIMULATED else gpu
MESHES = [circle(64), sphere(24)]
on_each = pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: mesh.manifold)


def evolved(mesh, beta, density, until, noise=0.0, after_step=lambda state: False):
    equation = mean_field_equation(mesh.on(there), Velocity(Attention(mesh.on(there), beta)), noise)
    state = State(0.0, there.to_device(density))
    evolve(state, equation, STEPPERS["ssprk3"], until, after_step=after_step, rtol=None)
    return there.to_host(state.values)


@on_each
def test_modes_grow_as_linear_theory_says(mesh):
    transform = harmonic_transform(mesh, 2)
    start = initial_harmonic(mesh, 2, 0, 1e-5)
    end = evolved(mesh, 5.0, start.copy(), 0.5)
    before, after = (transform.power((values - 1 / mesh.volume) * mesh.volumes)[2] for values in (start, end))
    expected = exact.growth_rate(mesh.centers.shape[1], 5.0, 2)
    assert np.log(after / before) / (2 * 0.5) == pytest.approx(expected, rel=0.03)  # second order: 1e-3 on fine meshes


@on_each
def test_uniform_stays_uniform(mesh):
    end = evolved(mesh, 9.0, np.full(mesh.cells, 1 / mesh.volume), 1.0)
    assert np.abs(end * mesh.volume - 1).max() < 1e-12


@on_each
def test_mass_is_kept_and_stays_positive(mesh):
    end = evolved(mesh, 20.0, initial_perturbed(mesh, amplitude=0.5), 3.0, noise=0.001)
    assert end @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    assert end.min() >= 0.0


@on_each
def test_smooth_flow_is_the_exact_one(mesh):
    d = mesh.centers.shape[1]
    axis = (0.48, 0.6, 0.64)[:d]
    end = evolved(mesh, 0.0, initial_moebius(mesh, axis, 0.2), 1.0)
    expected = initial_moebius(mesh, axis, exact.moebius_parameter(d, 0.2, 1.0))
    # 64 cells, 24 rings; the error falls with the square of the width.
    assert np.abs(end - expected) @ mesh.volumes < 0.02


def test_two_lumps_meet_when_they_should():
    mesh, found = circle(256), []

    def past_half(state):
        mean = (there.to_host(state.values) * mesh.volumes) @ mesh.centers
        found.append((np.linalg.norm(mean), state.time))
        return found[-1][0] > np.sqrt(0.75)

    start = initial_points(mesh, [[np.cos(angle), np.sin(angle)] for angle in (0.3, 2.3)])
    evolved(mesh, 4.0, start, 100.0, after_step=past_half)
    reached = np.interp(np.sqrt(0.75), *np.array(found[-2:]).T)
    assert reached == pytest.approx(exact.pair_time_equal(4.0), rel=0.01)  # point masses as wide as a cell


def test_two_tokens_meet_when_they_should():
    start = there.to_device(np.array([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]]))
    state, time = State(0.0, start), exact.pair_time_equal(4.0)
    integrate(state, dynamics_adaptive(lambda k: ParticleVelocity(4.0), tolerance=1e-12), time)
    first, second = there.to_host(state.values)
    assert first @ second == pytest.approx(0.5, abs=1e-7)
