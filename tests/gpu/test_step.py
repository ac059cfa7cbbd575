"""Whole steps and a whole small run on the device, compared with the CPU, and copies to the host."""

from dataclasses import replace

import numpy as np
import pytest
from support.device import SIMULATED, gpu
from support.idle import replace_kernels
from support.status import run

from meanfield.case.load import parse
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.heads import Head
from meanfield.model.reactions import reaction_logistic
from solvers.io.run_file import read
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import SplitIntegrator, evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the simulator uses NumPy's numbers, which warn

EQUAL = 1e-12  # relative to the largest density
TURNED = Head(value=np.array([[1.0, 0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.1, 0.7]]))
LAWS = {
    "circle": (circle(24), Head(), 0.0, 0.0, 0.3),
    "circle, noise and reaction": (circle(24), Head(), 0.1, 0.1, 0.2),
    "sphere": (sphere(4), Head(), 0.0, 0.0, 0.01),
    "sphere, matrix": (sphere(4), TURNED, 0.0, 0.0, 0.01),
}


def evolved(mesh, density, head, noise, rate, until):
    reaction = reaction_logistic(mesh, rate) if rate else None
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 4.0, heads=(head,))), noise, reaction)
    state = State(0.0, density)
    before = getattr(type(density), "transfers", 0)
    evolve(state, equation, STEPPERS["ssprk3"], until, rtol=None)
    return state, getattr(type(density), "transfers", 0) - before


@pytest.mark.parametrize("law", LAWS)
def test_steps_are_the_cpu_s(law):
    mesh, head, noise, rate, until = LAWS[law]
    density = np.exp(2.0 * mesh.centers[:, 0])
    density[3] = 4.0  # a point mass
    density /= density @ mesh.volumes
    expected, _ = evolved(mesh, density.copy(), head, noise, rate, until)
    found, transfers = evolved(mesh.on(gpu), gpu.to_device(density), head, noise, rate, until)
    assert found.steps == expected.steps > 0
    worst = np.abs(gpu.to_host(found.values) - expected.values).max() / expected.values.max()
    assert worst < EQUAL, f"{worst:.1e}"
    if (
        SIMULATED and not noise
    ):  # the time step, and once at the start, where checks test that the state is finite and ≥ 0
        assert transfers == expected.steps + 5


CASE = """
title = "A small case"
[domain]
manifold = "circle"
resolution = 16
[attention]
beta = 4.0
[initial]
kind = "perturbed"
degrees = 2
amplitude = 0.5
[time]
end = 0.1
[output]
snapshots = 1
samples = 2
diagnostics = ["mass", "entropy", "energy"]
"""


def test_case_is_the_cpu_s(tmp_path):
    case = parse(CASE)
    assert run(case, tmp_path / "here.h5", quiet=True) == 0
    assert run(case, tmp_path / "there.h5", quiet=True, backend=gpu) == 0
    here, there = read(tmp_path / "here.h5"), read(tmp_path / "there.h5")
    for k in range(len(here.times)):
        assert there.density(k) == pytest.approx(here.density(k), rel=EQUAL)
    for name in here.diagnostics:
        assert there.diagnostics[name] == pytest.approx(here.diagnostics[name], rel=EQUAL)


SHEARED = Head(query=np.eye(3) + 0.3 * np.eye(3, k=1), value=np.eye(3) + 0.1 * np.eye(3, k=-1), weight=0.5)
TWO_HEADS = Head(value=TURNED.value, weight=0.5), Head(value=SHEARED.value, weight=0.5)
LAUNCHES = {  # of kernels in an SSPRK3 step; with little noise, as a step of diffusion has several stages
    "circle": (circle(64), 0.0, (Head(),), 30),
    "sphere": (sphere(12), 0.0, (Head(),), 39),
    "larger sphere": (sphere(80), 0.0, (Head(),), 39),
    "sphere, noise": (sphere(12), 1e-6, (Head(),), 59),
    "sphere, noise, two heads with V": (sphere(12), 1e-6, TWO_HEADS, 75),
    "sphere, noise, two heads with K and V": (sphere(12), 1e-6, (TWO_HEADS[0], replace(TWO_HEADS[1], key=0.9)), 103),
    "sphere, noise, two heads with Q, K, V": (sphere(12), 1e-6, (SHEARED, replace(SHEARED, key=0.9)), 71),
}
BYTES = 1320  # of a cell in the arguments of the kernels of a step, tables and coefficients included


def arguments_of_a_step(monkeypatch, mesh, noise, heads):
    """Return the number of kernels in an SSPRK3 step at β = 50, and the bytes of their arguments."""
    launched = []
    replace_kernels(monkeypatch, lambda kernel, shape, *arguments: launched.append(arguments))
    there = mesh.on(gpu)
    equation = mean_field_equation(there, Velocity(Attention(there, 50.0, heads=heads)), noise)
    state = State(0.0, gpu.to_device(np.full(mesh.cells, 1 / mesh.volume)))
    integrator = SplitIntegrator(equation, "ssprk3", rtol=None)
    integrator.begin(state)
    launched.clear()
    integrator.step(state, 1e9)
    return len(launched), sum(getattr(argument, "nbytes", 0) for arguments in launched for argument in arguments)


@pytest.mark.skipif(not SIMULATED, reason="counts the simulator's launches")
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_step_launches_few_kernels(monkeypatch, name):
    """The number of launches, which take most of the time on small meshes, does not depend on the mesh."""
    mesh, noise, heads, expected = LAUNCHES[name]
    launched, _ = arguments_of_a_step(monkeypatch, mesh, noise, heads)
    assert launched == expected


@pytest.mark.skipif(not SIMULATED, reason="counts the simulator's arrays")
def test_kernels_of_a_step_move_few_bytes(monkeypatch):
    """Each argument of a kernel counts once; the mesh has 97 thousand cells."""
    mesh = sphere(272)
    _, moved = arguments_of_a_step(monkeypatch, mesh, 0.0, (Head(),))
    assert moved / mesh.cells < BYTES
