"""Work of a time step on a small sphere, as counts of kernels, transforms, threads."""

import numpy as np

from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.backends import cpu
from solvers.backends.cpu import launching
from solvers.mesh.mesh import sphere
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

STAGES = 3
OF_TRANSFORM = ("ring_analysis", "zonal_modes", "ring_functions")
OF_FLUX = ("reconstruct_on_rings", "outgoing_flux_on_rings", "outflow_rates_on_rings", "divergence_on_rings")


def test_a_stage_is_nine_kernels_in_one_thread(monkeypatch):
    """8630 cells: each kernel runs once a stage, in one thread, since a second thread would take longer to start
    than to run."""
    mesh = sphere(80)
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 9.0)))
    state = State(0.0, initial_perturbed(mesh, amplitude=0.02))
    work = (np.empty_like(state.values), np.empty_like(state.values))
    dt = 0.5 * float(equation.prepare(0.0, state.values, with_stiff=True))
    launched, launch = [], launching.launch

    def counted(kernel, work, *arguments):
        launched.append(kernel.__name__)
        return launch(kernel, work, *arguments)

    monkeypatch.setattr(cpu, "launch", counted)
    monkeypatch.setattr(launching, "WORKERS", 8)
    monkeypatch.setattr(launching, "_pool", lambda: None)  # no work can go to another thread
    STEPPERS["ssprk3"].step(equation, state, dt, work)
    per_stage = {name: launched.count(name) for name in set(launched)}
    prepared = STAGES - 1  # the previous step has prepared the first stage
    expected = dict.fromkeys((*OF_TRANSFORM, *OF_FLUX, "scale_softmax"), prepared)
    assert per_stage == expected | {"divergence_on_rings": STAGES, "advance_first": 1, "advance": STAGES - 1}
