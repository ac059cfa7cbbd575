"""Memory of a run on the sphere in bytes per cell: growth of a process's peak between two sizes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure

SIZES = (256, 1024)
_CHILD = "from benchmarks.memory import child; child({rings})"


def memory(sizes: tuple[int, int] = SIZES) -> list[Figure]:
    """Measure the peak memory of a process that makes two time steps, and the memory of the arrays of each object.

    Both are in bytes per cell; the peak is the growth between spheres of ``sizes`` rings.
    """
    for rings in sizes:
        _peak(rings)  # compiles missing kernels of that size first, since compilation takes memory
    (few, small), (many, large) = (_peak(rings) for rings in sizes)
    figures = [
        Figure(
            f"peak memory: growth from {few} to {many} cells",
            (large - small) / (many - few),
            "bytes/cell",
            most=120.0,
        )
    ]
    figures += [Figure(f"memory of the {name}", held, "bytes/cell") for name, held in _bytes_by_object(sizes[0])]
    return figures


def _peak(rings: int) -> tuple[int, int]:
    """Return the number of cells and the peak resident bytes of a process that takes two steps."""
    command = [sys.executable, "-c", _CHILD.format(rings=rings)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cells, peak = map(int, output.split())
    return cells, peak


def child(rings: int) -> None:
    """Take two steps on ``rings`` rings at β = 9; print the number of cells and the peak resident bytes."""
    from meanfield.domains.sphere.initial import initial_perturbed
    from meanfield.equation import Velocity, mean_field_equation
    from meanfield.model.attention import Attention
    from solvers.mesh.mesh import sphere
    from solvers.timestepping.evolution import evolve
    from solvers.timestepping.state import State
    from solvers.timestepping.steppers import STEPPERS

    mesh = sphere(rings)
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 9.0)))
    state = State(0.0, initial_perturbed(mesh, amplitude=0.5))
    evolve(state, equation, STEPPERS["ssprk3"], 1e9, after_step=lambda state: state.steps == 2, rtol=None)
    print(mesh.cells, _peak_bytes())


def _peak_bytes() -> int:
    """Return the peak resident bytes of this process.

    On Linux, getrusage would include the parent's memory, which a new process has until it loads its program.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _bytes_by_object(rings: int) -> Iterator[tuple[str, float]]:
    """Yield the names of the objects that a run keeps between steps, each with the bytes per cell of its arrays."""
    from meanfield.equation import Velocity
    from meanfield.model.attention import Attention
    from solvers.mesh.lazy import Lazy
    from solvers.mesh.mesh import sphere
    from solvers.terms.advection import Advection

    mesh = sphere(rings)
    attention = Attention(mesh, 9.0)
    advection = Advection(mesh, Velocity(attention), nonnegative=True)
    harmonics = vars(attention.sums[0].operator)["_harmonics"]
    for name, owner in (("mesh", mesh), ("transform", harmonics), ("advection", advection)):
        held = [vars(value).get("array") if isinstance(value, Lazy) else value for value in vars(owner).values()]
        arrays = (value for value in held if isinstance(value, np.ndarray) and value.base is None)
        yield name, sum(array.nbytes for array in arrays) / mesh.cells
    yield "state, its start and its rate", 3 * 8.0
