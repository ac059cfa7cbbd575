"""Cost on a GPU, relative to a copy and a matrix product on the GPU; a second benchmark compares with two CPU cores.

Without a GPU the table lists the figures still to be measured. With a GPU the benchmark is designed to take less than
three minutes, and the figures are saved in ``benchmarks/results/gpu.json``. Failures such as out of memory appear in
the table, and all other figures are kept.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, timed
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.backends import Backend, NoDevice, backend_on, host_backend
from solvers.mesh.mesh import Mesh, sphere
from solvers.terms.advection import Advection
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms.pairwise import exponential_sums

RINGS = (80, 272, 862, 2724, 4042)  # 10⁴, 10⁵, 10⁶, 10⁷ and 2.2·10⁷ cells
ON_BOTH = (272, 862)  # numbers of rings for which a device and the CPU are compared
BETA = 50.0
TOKENS, TOKENS_BETA = 100_000, 4.0
COPIED, MULTIPLIED = 1 << 30, 4096  # bytes of a copy; rows of a product
MAX_STEPS = {80: 2.0, 2724: 4.0, 4042: 8.0}  # ms on an H200, by the number of rings: targets
MAX_LAUNCHES, MAX_FLUX, MAX_MEMORY = 40, 2.0, 4.0  # 1, ×, GB: targets
AT_FLUX, AT_MEMORY = 4042, 2724  # numbers of rings for which the targets hold
STEP_BYTES = 390  # least memory traffic of a step in float64 for a cell: what each stage reads and writes once
CORES = 2  # CPU cores that a device is compared with
CPU_SECONDS = 120  # time limit of the CPU's part: about 60 s on two cores of 2024, in both formats
SIMULATED_RINGS = 16  # maximum in the simulator, which runs one Python thread per device thread
REPEATS = 7  # on the device; the CPU, which takes minutes, has one repeat after a warm-up
NUMBERS = (np.float64, np.float32)
MEASURED = ("velocity", "flux", "SSPRK3 step")
Timed = dict[str, float]
_CHILD = "import os; {pin}; from benchmarks.gpu import child; child({rings}, {tokens})"


def gpu(rings: tuple[int, ...] = RINGS, tokens: int = TOKENS, copied: int = COPIED) -> Iterator[Figure]:
    """Measure velocity, flux and SSPRK3 step on spheres, and attention among tokens, on a GPU.

    Times are compared with the limit by memory bandwidth. ``copied`` is the size of a memory copy in bytes.
    """
    backend = _device(rings)
    if backend is None:
        yield from _missing_figures(rings, tokens)
        return
    bandwidth = _copy_bandwidth(backend, copied)
    yield Figure("copy on the GPU, read and written together", bandwidth / 1e9, "GB/s")
    yield from _products(backend, copied)
    for count in rings:
        mesh = sphere(count)  # shared by both formats: making it takes as long as all measurements on it
        for number in NUMBERS:
            yield from _on_sphere(backend, mesh, number, bandwidth)
    for number in NUMBERS:
        name = _tokens_name(tokens, number)
        found, note = _attempt(lambda name=name, number=number: {name: _attention(backend, tokens, number)})
        yield _time(name, found.get(name), note=note)


def gpu_over_cpu(rings: tuple[int, ...] = ON_BOTH, tokens: int = TOKENS) -> Iterator[Figure]:
    """Measure velocity, flux, SSPRK3 step and attention among tokens on a GPU relative to CORES CPU cores."""
    backend = _device(rings)
    if backend is None:
        return
    cpu_times = _on_cpu(rings, tokens)
    for number in NUMBERS:
        for count in rings:
            mesh = sphere(count)
            found = _velocity_and_flux(mesh, backend, number) | _step(mesh, backend, number)
            for what in MEASURED:
                name = f"{what} on a GPU, {mesh.cells} cells, β = {BETA:g}, {number.__name__}"
                yield _speed(name, cpu_times.get(_key(what, count, number)), found[what])
        name = _tokens_name(tokens, number)
        yield _speed(name, cpu_times.get(name), _attention(backend, tokens, number))


def _device(rings: tuple[int, ...]) -> Backend | None:
    """Return the GPU's backend; None, after a message, without a GPU, or in the simulator for too many rings."""
    try:
        backend = backend_on("gpu")
        if _simulated() and max(rings) > SIMULATED_RINGS:
            raise NoDevice("Numba's simulator, which NUMBA_ENABLE_CUDASIM asks for, is none to be timed")
    except NoDevice as error:
        print(f"no GPU: {error}")
        return None
    return backend


def _missing_figures(rings: tuple[int, ...], tokens: int) -> Iterator[Figure]:
    note = "still to be measured: no GPU found"
    for number in NUMBERS:
        for count in rings:
            name = f"{_cells(count)} cells, β = {BETA:g}, {number.__name__}"
            for what in MEASURED:
                yield Figure(f"{what} on a GPU, {name}", None, "ms", note=note)
        yield Figure(_tokens_name(tokens, number), None, "ms", note=note)


def _cells(rings: int) -> str:
    return f"about {1.347 * rings**2:.2g}"


def _attempt(timings: Callable[[], Timed]) -> tuple[Timed, str]:
    """Return the times in seconds by name with an empty message; after a failure no times and the error message."""
    try:
        return timings(), ""
    except Exception as error:  # CuPy, Numba or a library fails, most likely out of memory
        return {}, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _time(name: str, seconds: float | None, most: float | None = None, note: str = "") -> Figure:
    return Figure(name, None if seconds is None else 1e3 * seconds, "ms", most=most, note=note)


def _speed(name: str, on_cpu: float | None, on_gpu: float) -> Figure:
    name = f"{name}: speed relative to {CORES} CPU cores"
    if on_cpu is None:
        return Figure(name, None, "×", note="not measured on the CPU")
    return Figure(name, on_cpu / on_gpu, "×")


def _products(backend: Backend, copied: int) -> Iterator[Figure]:
    for number in NUMBERS:
        rows = int(min(MULTIPLIED, np.sqrt(copied / 8)))
        matrix = backend.to_device(np.ones((rows, rows), number))
        seconds = _seconds(backend, lambda matrix=matrix: matrix @ matrix)
        yield Figure(f"product of matrices on the GPU, {number.__name__}", 2e-12 * rows**3 / seconds, "Tflop/s")


def _copy_bandwidth(backend: Backend, copied: int) -> float:
    source, target = backend.zeros(copied // 16), backend.zeros(copied // 16)

    def copy() -> None:
        target[...] = source

    return 2 * source.nbytes / _seconds(backend, copy)


def _seconds(backend: Backend, call: Callable[[], object]) -> float:
    """Return the median time of a call, including the completion of its kernels on the device."""
    last = backend.zeros(1)

    def done() -> None:
        call()
        backend.to_host(last)  # kernels run in order, so all previous ones have completed

    return timed(done, 1 if backend is host_backend() else REPEATS).median


def _on_sphere(backend: Backend, mesh: Mesh, number: Any, bandwidth: float) -> Iterator[Figure]:
    rings, cells = len(mesh.ring_cells), f"{mesh.cells} cells, β = {BETA:g}, {number.__name__}"
    itemsize, is_double = np.dtype(number).itemsize, number is np.float64
    found, note = _attempt(lambda: _velocity_and_flux(mesh, backend, number))
    _, before = _reset_memory(backend)  # frees memory of earlier measurements, so that only the step is counted
    stepped, late_note = _attempt(lambda: _step(mesh, backend, number))
    held = _reset_memory(backend)[0] - before
    found |= stepped
    for what in MEASURED:
        name, seconds = f"{what} on a GPU, {cells}", found.get(what)
        limit = MAX_STEPS.get(rings) if what == "SSPRK3 step" and is_double else None
        yield _time(name, seconds, limit, late_note if what == "SSPRK3 step" else note)
        if what == "flux" and seconds is not None:
            over = seconds * bandwidth / _flux_bytes(mesh, itemsize)
            yield Figure(
                f"{name}: time relative to its bandwidth limit", over, "×", most=MAX_FLUX if rings == AT_FLUX else None
            )
        if what == "SSPRK3 step" and seconds is not None:
            least = STEP_BYTES * itemsize / 8 * mesh.cells / bandwidth
            yield Figure(f"{name}: time relative to its bandwidth limit", seconds / least, "×")
            yield Figure(f"{name}: launches of kernels", found["launches"], "1", most=MAX_LAUNCHES)
            yield _time(f"{name}: on the host", found["host"])
    if held > 0 and stepped:
        limit = MAX_MEMORY if rings == AT_MEMORY and is_double else None
        yield Figure(f"memory on a GPU, {cells}", held / 1e9, "GB", most=limit)
        yield Figure(f"memory on a GPU, {cells}: a cell", held / mesh.cells, "bytes")


def _velocity_and_flux(mesh: Mesh, backend: Backend, number: Any = np.float64) -> Timed:
    """Return the seconds of one velocity, and of one flux with a known velocity, including its step limit."""
    device_mesh, density = _to_device(mesh, backend, number)
    attention = Attention(device_mesh, BETA)
    velocity = attention.output(density, empty="bounded")
    advection, rate = (
        Advection(device_mesh, lambda time, density: velocity, nonnegative=True),
        backend.xp.zeros_like(density),
    )
    dt = 0.25 * float(advection.prepare(0.0, density))

    def flux() -> None:
        advection.prepare(0.0, density)
        advection.rate(dt, rate)

    return {
        "velocity": _seconds(backend, lambda: attention.output(density, empty="bounded")),
        "flux": _seconds(backend, flux),
    }


def _step(mesh: Mesh, backend: Backend, number: Any = np.float64) -> Timed:
    """Return the seconds of one SSPRK3 step of the mean-field equation, including its step limit.

    On a device also return the seconds on the host and the number of kernels that are launched. A run needs the memory
    of this step plus the initial density.
    """
    step = _one_step(mesh, backend, number)
    found = {"SSPRK3 step": _seconds(backend, step)}
    if backend is not host_backend():
        launched = import_module("solvers.backends.gpu.launching").launched
        before, began = launched.total(), time.perf_counter()
        step()
        found |= {"host": time.perf_counter() - began, "launches": launched.total() - before}
    return found


def _one_step(mesh: Mesh, backend: Backend, number: Any = np.float64) -> Callable[[], None]:
    """Return a function that makes one SSPRK3 step of the mean-field equation from the same density each time."""
    device_mesh, density = _to_device(mesh, backend, number)
    equation = mean_field_equation(device_mesh, Velocity(Attention(device_mesh, BETA)))
    state, work = State(0.0, density.copy()), (density.copy(), density.copy())
    dt = 0.25 * float(equation.prepare(0.0, density))

    def step() -> None:
        state.values[...] = density
        equation.prepare(0.0, state.values)
        STEPPERS["ssprk3"].step(equation, state, dt, work)

    return step


def _to_device(mesh: Mesh, backend: Backend, number: Any) -> tuple[Mesh, Any]:
    """Return the mesh and a random density on it, both on the device of ``backend`` in the format ``number``."""
    return mesh.on(backend, number), backend.to_device(initial_perturbed(mesh, amplitude=0.5).astype(number))


def launches(rings: int = 6) -> Iterator[Figure]:
    """Count the kernels of an SSPRK3 step on a sphere by name, on a GPU or in the simulator of the tests."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    backend = import_module("support.device").gpu
    launched, step = import_module("solvers.backends.gpu.launching").launched, _one_step(sphere(rings), backend)
    before = launched.copy()
    step()
    of_step = launched - before
    for name, count in of_step.most_common():
        yield Figure(f"launches of {name} in an SSPRK3 step", count, "1")
    yield Figure("launches of kernels in an SSPRK3 step", of_step.total(), "1", most=MAX_LAUNCHES)


def _flux_bytes(mesh: Mesh, itemsize: int) -> int:
    """Return the minimum memory traffic of a flux in bytes: ρ and X once; the rate and intermediate arrays twice."""
    of_state = 5 * mesh.cells  # ρ, two components of X, and the rate, which is read and written
    between = 2 * (2 * 2 * mesh.faces + 2 * mesh.cells)  # two values per side; smoothness and outflow per cell
    return itemsize * (of_state + between)


def _tokens_name(tokens: int, number: Any) -> str:
    return f"attention among {tokens} tokens in R³, all pairs, on a GPU, {number.__name__}"


def _attention(backend: Backend, tokens: int, number: Any) -> float:
    """Return the seconds of the sums of attention over all pairs of ``tokens`` uniform tokens on the sphere."""
    points = backend.to_device(tokens_uniform(tokens, 3).astype(number))
    towards, weights = number(TOKENS_BETA) * points, backend.xp.full_like(points[:, 0], 1 / tokens)
    return _seconds(backend, lambda: exponential_sums(towards, points, weights))


def _simulated() -> bool:
    return bool(import_module("solvers.backends.gpu.arrays").SIMULATED)


def _reset_memory(backend: Backend) -> tuple[int, int]:
    """Clear the memory pool of the device; return its peak in bytes since the last call, and what it still holds.

    Both are 0 in the simulator.
    """
    if _simulated():
        return 0, 0
    cupy = import_module("cupy")
    pool = cupy.get_default_memory_pool()
    peak = int(pool.total_bytes())  # the pool frees no memory by itself, so its size is the peak
    gc.collect()
    pool.free_all_blocks()
    return peak, int(pool.total_bytes())  # a small array that is kept may hold a large block


def _on_cpu(rings: tuple[int, ...], tokens: int) -> Timed:
    """Return the times of velocity, flux, step and attention on CORES CPU cores, in seconds by name.

    A separate process measures them; times that it has not printed within CPU_SECONDS are missing.
    """
    pin = f"os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{CORES}])"
    pin = pin if hasattr(os, "sched_setaffinity") else "pass"
    command = [sys.executable, "-c", _CHILD.format(pin=pin, rings=rings, tokens=tokens)]
    try:
        lines = subprocess.run(command, stdout=subprocess.PIPE, timeout=CPU_SECONDS).stdout
    except subprocess.TimeoutExpired as late:
        lines = late.stdout or b""
    found: Timed = {}
    for line in lines.splitlines():
        found |= json.loads(line)
    return found


def child(rings: tuple[int, ...], tokens: int) -> None:
    """Print the CPU times of attention, and then of velocity, flux and step on each mesh, as lines of JSON.

    All are measured in float64 and float32.
    """
    host = host_backend()
    for number in NUMBERS:
        print(json.dumps({_tokens_name(tokens, number): _attention(host, tokens, number)}), flush=True)
    for count in rings:
        mesh = sphere(count)
        for number in NUMBERS:
            timings = _velocity_and_flux(mesh, host, number) | _step(mesh, host, number)
            print(json.dumps({_key(what, count, number): seconds for what, seconds in timings.items()}), flush=True)


def _key(what: str, rings: int, number: Any) -> str:
    """Return the name of a CPU time: measured quantity ``what``, number of rings, and number format."""
    return f"{what}, {rings}, {number.__name__}"


def machine() -> dict[str, str]:
    """Return the name of the GPU and the versions of its driver and libraries; empty without a GPU or if simulated."""
    try:
        backend_on("gpu")
    except NoDevice:
        return {}
    if _simulated():
        return {}
    cupy = import_module("cupy")
    runtime = cupy.cuda.runtime
    return {
        "GPU": runtime.getDeviceProperties(0)["name"].decode(),
        "CUDA driver": str(runtime.driverGetVersion()),
        "CUDA runtime": str(runtime.runtimeGetVersion()),
        "cupy": cupy.__version__,
        "numba-cuda": version("numba-cuda"),
    }
