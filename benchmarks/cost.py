"""Cost of a velocity and of a flux on the sphere, relative to a memory copy, ducc0's transforms and dense sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measure import CORES, Figure, Spread, both_timed, copy_bandwidth, timed
from benchmarks.problem import SphereProblem, brute_force_velocity, sphere_problem
from benchmarks.transforms import ducc0_installed, ducc0_transforms
from solvers.backends import host_backend
from solvers.mesh.mesh import Floats
from solvers.transforms.exponential import exponential_degree

RINGS = (128, 256, 512, 1024)
BETAS = (9.0, 50.0)
LARGE = 1_000_000  # minimum number of cells for which the targets of a velocity and a flux hold
BRUTE_FORCE_PAIRS = 2**22  # pairs of cells in one dense sum: 32 MB of kernel values


def velocity(rings: tuple[int, ...] = RINGS) -> list[Figure]:
    """Measure one evaluation of the attention velocity on spheres of ``rings`` rings.

    The figures are its time, its ratio to the time of a memory copy of its input and output, to ducc0's transforms and
    to a dense sum, and its error.
    """
    bandwidth = copy_bandwidth()
    figures = [Figure.of("memory copy, read and written together", bandwidth / 1e9, "GB/s")]
    for count in rings:
        for beta in BETAS:
            problem = sphere_problem(count, beta)
            cells, name = problem.mesh.cells, _name(problem)
            seconds = timed(problem.components)
            moved = problem.density.nbytes + problem.components().nbytes
            ducc0, note = _over_ducc0(problem)
            target = 1.6 if cells >= LARGE and beta == max(BETAS) else None
            dense, error = _brute_force(problem)
            figures += [
                Figure.of(f"velocity, {name}", 1e3 * seconds, "ms"),
                Figure.of(f"velocity, {name}: per cell", 1e9 * seconds / cells, "ns"),
                Figure.of(
                    f"velocity, {name}: time relative to a copy of ρ and X", seconds / (2 * moved / bandwidth), "×"
                ),
                Figure.of(
                    f"velocity, {name}: processor time relative to ducc0's transforms",
                    ducc0,
                    "×",
                    most=target,
                    note=note,
                ),
                Figure.of(f"dense sum, {name}: time relative to the velocity", dense / seconds, "×"),
                Figure(f"velocity, {name}: relative error against the direct sum", error, "1", most=1e-12),
            ]
    return figures


def flux(rings: tuple[int, ...] = RINGS) -> list[Figure]:
    """Measure one evaluation of the upwind flux on spheres, relative to a memory copy, alone and with a velocity.

    The evaluation computes the flux through each face and the rate of change of each cell.
    """
    bandwidth = copy_bandwidth()
    figures = []
    for count in rings:
        for beta in BETAS:
            problem = sphere_problem(count, beta)
            name, (of_velocity, of_flux) = _name(problem), _seconds(problem)
            moved = 4 * problem.density.nbytes  # ρ, the velocity's two components, the rate
            large = problem.mesh.cells >= LARGE
            target = 500.0 if large else None
            of_cores, copied = both_timed(_one_flux(problem), _copy(problem.density), clock=CORES)
            figures += [
                Figure.of(f"flux, {name}", 1e3 * of_flux, "ms"),
                Figure.of(
                    f"flux, {name}: time relative to a copy of ρ, X and the rate",
                    of_flux / (2 * moved / bandwidth),
                    "×",
                ),
                Figure.of(
                    f"flux, {name}: processor time in each cell",
                    1e9 * of_cores / problem.mesh.cells,
                    "ns",
                    most=40.0 if large else None,
                ),
                Figure.of(
                    f"flux, {name}: processor time of a core relative to NumPy's copy of ρ, X and rate",
                    of_cores / host_backend().WORKERS / copied,
                    "×",
                    most=8.0 if large else None,
                ),
                Figure.of(f"velocity and flux, {name}", 1e3 * (of_velocity + of_flux), "ms", most=target),
            ]
    return figures


def scaling(rings: tuple[int, ...] = RINGS) -> list[Figure]:
    """Measure the growth of the time of one velocity and one flux from n to 4n rings, 16 times as many cells."""
    figures = []
    for beta in BETAS:
        cost = {count: _seconds(sphere_problem(count, beta)) for count in rings}
        for count in rings:
            if 4 * count in cost:
                few, many = cost[count], cost[4 * count]
                name = f"from {count} to {4 * count} rings, β = {beta:g}"
                figures.append(Figure.of(f"velocity, {name}: growth of the time", many[0] / few[0], "×", most=20.0))
                whole = (many[0] + many[1]) / (few[0] + few[1])
                figures.append(Figure.of(f"velocity and flux, {name}: growth of the time", whole, "×", most=20.0))
    return figures


def _name(problem: SphereProblem) -> str:
    return f"{problem.mesh.cells} cells, β = {problem.attention.beta:g}"


def _seconds(problem: SphereProblem) -> tuple[Spread, Spread]:
    """Return the wall times in seconds of one velocity, and of one flux with a known velocity."""
    return timed(problem.components), timed(_one_flux(problem))


def _one_flux(problem: SphereProblem) -> Callable[[], None]:
    advection, rate = problem.flux()

    def one_flux() -> None:
        dt = advection.prepare(0.0, problem.density)
        advection.rate(0.5 * dt, rate)

    return one_flux


def _copy(density: Floats) -> Callable[[], None]:
    """Return a function that copies four arrays of the size of ``density``."""
    source, target = np.ones((4, len(density))), np.zeros((4, len(density)))
    return lambda: np.copyto(target, source)


def _over_ducc0(problem: SphereProblem) -> tuple[Spread | None, str]:
    if not ducc0_installed():
        return None, "skipped: ducc0 is not installed (pip install ducc0)"
    masses = problem.density * problem.mesh.volumes
    degree = exponential_degree(problem.mesh.centers.shape[1], problem.attention.beta)
    own, peer = both_timed(problem.components, ducc0_transforms(problem.mesh, masses, degree), clock=CORES)
    return own / peer, ""


def _brute_force(problem: SphereProblem) -> tuple[Spread, float]:
    """Return the seconds of a dense sum for the velocity of all cells, and the relative error of the fast velocity.

    Both are measured at some cells. The time is extrapolated to all.
    """
    cells = problem.mesh.cells
    sampled = np.linspace(0, cells - 1, min(max(BRUTE_FORCE_PAIRS // cells, 1), cells)).astype(int)
    targets = problem.mesh.centers[sampled]
    seconds = timed(lambda: brute_force_velocity(problem, targets))
    found = problem.velocity()
    error = np.abs(found[sampled] - brute_force_velocity(problem, targets)).max() / np.abs(found).max()
    return seconds * (cells / len(sampled)), float(error)
