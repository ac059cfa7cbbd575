"""Cost on a GPU, relative to a copy and a matrix product on the GPU, and to two CPU cores of the same machine.

Without a GPU the table lists the figures still to be measured. With a GPU the benchmark is designed to take less than
eight minutes, most of them for the CPU's part, and the figures are saved in ``benchmarks/results/gpu.json``. Failures
such as out of memory appear in the table, and all other figures are kept.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
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

RINGS = (272, 862, 2724, 4042)  # 10⁵, 10⁶, 10⁷ and 2.2·10⁷ cells
BETA = 50.0
TOKENS, TOKENS_BETA = 100_000, 4.0
COPIED, MULTIPLIED = 1 << 30, 4096  # bytes of a copy; rows of a product
MAX_STEP, MIN_SPEED, MAX_FLUX, MAX_MEMORY = 60.0, 50.0, 2.0, 4.0  # ms, ×, ×, GB: targets
AT_STEP, AT_MEMORY = 4042, 2724  # numbers of rings for which the targets hold
CORES = 2  # CPU cores that a device is compared with
CPU_SECONDS = 330  # time limit of the CPU's part: about 250 s on two cores of 2024, in both formats
SIMULATED_RINGS = 16  # maximum in the simulator, which runs one Python thread per device thread
REPEATS = 7  # on the device; the CPU, which takes minutes, has one repeat after a warm-up
NUMBERS = (np.float64, np.float32)
MEASURED = ("velocity", "flux", "SSPRK3 step")
Timed = dict[str, float]
_CHILD = "import os; {pin}; from benchmarks.gpu import child; child({rings}, {tokens})"


def gpu(rings: tuple[int, ...] = RINGS, tokens: int = TOKENS, copied: int = COPIED) -> Iterator[Figure]:
    """Measure velocity, flux and SSPRK3 step on spheres, and attention among tokens, on a GPU.

    Times are compared with those of CORES CPU cores, and with the limit by memory bandwidth. ``copied`` is the size of
    a memory copy in bytes.
    """
    try:
        backend = backend_on("gpu")
        if _simulated() and max(rings) > SIMULATED_RINGS:
            raise NoDevice("Numba's simulator, which NUMBA_ENABLE_CUDASIM asks for, is none to be timed")
    except NoDevice as error:
        print(f"no GPU: {error}")
        yield from _missing_figures(rings, tokens)
        return
    bandwidth = _copy_bandwidth(backend, copied)
    yield Figure("copy on the GPU, read and written together", bandwidth / 1e9, "GB/s")
    yield from _products(backend, copied)
    cpu_times = _on_cpu(rings, tokens)
    for count in rings:
        mesh = sphere(count)  # shared by both formats: making it takes as long as all measurements on it
        for number in NUMBERS:
            yield from _on_sphere(backend, mesh, number, bandwidth, cpu_times)
    for number in NUMBERS:
        name = _tokens_name(tokens, number)
        found, note = _attempt(lambda name=name, number=number: {name: _attention(backend, tokens, number)})
        yield _time(name, found.get(name), note=note)
        yield _speed(name, cpu_times.get(name), found.get(name))


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


def _speed(name: str, on_cpu: float | None, on_gpu: float | None, least: float | None = None) -> Figure:
    name = f"{name}: speed over {CORES} CPU cores"
    if on_cpu is None or on_gpu is None:
        return Figure(name, None, "×", note=f"not measured on the {'GPU' if on_gpu is None else 'CPU'}")
    return Figure(name, on_cpu / on_gpu, "×", least=least)


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


def _on_sphere(backend: Backend, mesh: Mesh, number: Any, bandwidth: float, cpu_times: Timed) -> Iterator[Figure]:
    rings, cells = len(mesh.ring_cells), f"{mesh.cells} cells, β = {BETA:g}, {number.__name__}"
    found, note = _attempt(lambda: _velocity_and_flux(mesh, backend, number))
    _reset_peak_memory(backend)  # free memory of earlier measurements, so that only the step is counted
    stepped, late_note = _attempt(lambda: _step(mesh, backend, number))
    held = _reset_peak_memory(backend)
    found |= stepped
    for what in MEASURED:
        name, seconds = f"{what} on a GPU, {cells}", found.get(what)
        limit = MAX_STEP if (what, rings, number) == ("SSPRK3 step", AT_STEP, np.float64) else None
        yield _time(name, seconds, limit, late_note if what == "SSPRK3 step" else note)
        yield _speed(name, cpu_times.get(_key(what, rings, number)), seconds, limit and MIN_SPEED)
        if what == "flux" and seconds is not None:
            limit = MAX_FLUX if rings == AT_STEP else None
            over = seconds * bandwidth / _flux_bytes(mesh, np.dtype(number).itemsize)
            yield Figure(f"{name}: over its bandwidth limit", over, "×", most=limit)
    if held is not None and stepped:
        limit = MAX_MEMORY if (rings, number) == (AT_MEMORY, np.float64) else None
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

    A run needs the memory of this step plus the initial density.
    """
    device_mesh, density = _to_device(mesh, backend, number)
    equation = mean_field_equation(device_mesh, Velocity(Attention(device_mesh, BETA)))
    state, work = State(0.0, density.copy()), (density.copy(), density.copy())
    dt = 0.25 * float(equation.prepare(0.0, density))

    def step() -> None:
        state.values[...] = density
        equation.prepare(0.0, state.values)
        STEPPERS["ssprk3"].step(equation, state, dt, work)

    return {"SSPRK3 step": _seconds(backend, step)}


def _to_device(mesh: Mesh, backend: Backend, number: Any) -> tuple[Mesh, Any]:
    """Return the mesh and a random density on it, both on the device of ``backend`` in the format ``number``."""
    return mesh.on(backend, number), backend.to_device(initial_perturbed(mesh, amplitude=0.5).astype(number))


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


def _reset_peak_memory(backend: Backend) -> int | None:
    """Clear the memory pool of the device, and return its peak in bytes since the last call.

    None in the simulator.
    """
    if _simulated():
        return None
    cupy = import_module("cupy")
    pool = cupy.get_default_memory_pool()
    held = int(pool.total_bytes())  # the pool frees no memory by itself, so its size is the peak
    gc.collect()
    cupy.fft.config.clear_plan_cache()  # FFT plans hold memory
    pool.free_all_blocks()
    return held


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
