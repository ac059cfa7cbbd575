"""Memory of a run on the sphere in bytes per cell: 10⁷ cells fit in 4 GB, on a device and on the CPU.

A device's arrays are counted as stand-ins while kernels do nothing: the sizes do not depend on the values.
"""

import tracemalloc
import weakref
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from support.device import SIMULATED, gpu
from support.idle import replace_kernels
from support.stand_in import StandIn

from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.heads import Head
from solvers.mesh.mesh import sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

CELLS = 1e7  # in 4 GB of a device, which is 400 bytes each; the same limit holds for the CPU
RINGS = 512  # with so many rings, degrees × rings and degrees² are small beside the number of cells
# CUDA's own memory and the work areas of transforms are not counted: 0.6 GB for both, with noise 0.4 GB. Noise needs
# the sides of cells and their conductances; it is small, for few stages, whose number takes no memory.
LITTLE_NOISE, PLAIN = 1e-6, (Head(),)
SHEAR = np.eye(3) + 0.1 * np.eye(3, k=-1)
# Tables of each ring take 6 bytes a cell for so few rings, and less than one for 10⁷ cells.
ON_A_DEVICE, ON_THE_CPU = ((0.0, 124.0), (LITTLE_NOISE, 184.0)), ((0.0, 136.0), (LITTLE_NOISE, 192.0))
only_simulated = pytest.mark.skipif(not SIMULATED, reason="counts the simulator's arrays")


def step(mesh, density, noise, heads=PLAIN):
    """Advance one step at β = 50, with softmax."""
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 50.0, heads=heads)), noise)
    evolve(State(0.0, density), equation, STEPPERS["ssprk3"], 1e9, after_step=lambda state: True, rtol=None)


def density_on(mesh):
    """Return a density for the cells of a mesh, computed on another mesh, since a step needs no centers."""
    mesh = sphere(len(mesh.ring_cells))
    density = np.exp(mesh.centers[:, 0])
    density /= density @ mesh.volumes
    return density


class Counted:
    """Bytes of memory held by stand-ins, current and maximal; shared memory counts once."""

    def __init__(self):
        self.held, self.most = {}, 0

    def see(self, array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        if id(array) not in self.held:
            self.held[id(array)] = array.nbytes
            weakref.finalize(array, self.held.pop, id(array))
            self.most = max(self.most, sum(self.held.values()))


@pytest.fixture
def counted(monkeypatch):
    """Count the memory of stand-ins; kernels do nothing, and arrays that kernels would fill hold ones."""
    count = Counted()
    make = StandIn.__init__

    def seen(self, array):
        make(self, array)
        count.see(self.held)

    monkeypatch.setattr(StandIn, "__init__", seen)
    replace_kernels(monkeypatch)
    return count


@pytest.fixture
def mesh():
    return sphere(RINGS)


@only_simulated
@pytest.mark.parametrize(("noise", "most"), ON_A_DEVICE)
def test_ten_million_cells_fit_on_a_device(counted, mesh, noise, most):
    step(mesh.on(gpu), gpu.to_device(density_on(mesh)), noise)
    bytes_a_cell = counted.most / mesh.cells
    assert bytes_a_cell < most, f"{bytes_a_cell:.1f} bytes a cell"


@only_simulated
@pytest.mark.parametrize(("count", "most"), [(1, 203.0), (2, 238.0), (4, 266.0)])
def test_so_they_do_with_any_number_of_general_heads(counted, mesh, count, most):
    """Every head has small grids, up to 15 bytes a cell for so few cells, and less than one for 10⁷ cells."""
    heads = [Head(query=np.eye(3) + turn * np.eye(3, k=1), value=SHEAR, weight=turn) for turn in (0.3, 0.2, 0.5, 0.1)]
    step(mesh.on(gpu), gpu.to_device(density_on(mesh)), 0.0, heads[:count])
    bytes_a_cell = counted.most / mesh.cells
    assert bytes_a_cell < most, f"{bytes_a_cell:.1f} bytes a cell"


@only_simulated
def test_heads_with_the_transform_of_one_hold_one_velocity_more(counted, mesh):
    """Three heads with a matrix V and K = kI hold the partial sum (cells, 3) and V's product in addition to one head's
    arrays."""
    heads = [Head(key=key, value=SHEAR, weight=0.3) for key in (1.0, 0.9, 0.8)]
    step(mesh.on(gpu), gpu.to_device(density_on(mesh)), 0.0, heads)
    bytes_a_cell = counted.most / mesh.cells
    assert bytes_a_cell < 195.0, f"{bytes_a_cell:.1f} bytes a cell"


@only_simulated
def test_step_of_the_benchmark_holds_what_that_of_a_run_does(counted, mesh, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # benchmarks are not installed
    import_module("benchmarks.gpu")._step(mesh, gpu)
    bytes_a_cell = counted.most / mesh.cells - 8.0  # the initial density
    assert bytes_a_cell < ON_A_DEVICE[0][1], f"{bytes_a_cell:.1f} bytes a cell"


@pytest.mark.parametrize(("noise", "most"), ON_THE_CPU)
def test_cpu_takes_little_more(noise, most):
    few = sphere(128)  # uses the same kernels as many cells
    step(few, density_on(few), noise)  # kernels and modules take memory at first use
    tracemalloc.start()
    try:
        mesh = sphere(RINGS)
        step(mesh, density_on(mesh), noise)
        bytes_a_cell = tracemalloc.get_traced_memory()[1] / mesh.cells
    finally:
        tracemalloc.stop()
    assert bytes_a_cell < most, f"{bytes_a_cell:.1f} bytes a cell"
