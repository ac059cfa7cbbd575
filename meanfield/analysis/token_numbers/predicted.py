"""Theory of a case for large n: central-limit variance of observables, and rate at which fluctuations grow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from meanfield.analysis.stability_report import rates_of, refusal_of_theory
from meanfield.analysis.token_numbers.central_limit import LinearizedFlow, Points, central_limit_variance
from meanfield.analysis.token_numbers.zonal_limit import ZonalFlow
from meanfield.case.case import Case
from meanfield.domains.axisymmetric.section import Axisymmetric
from meanfield.domains.common.from_run import mesh_of_run
from meanfield.model.linear_stability import degrees_to_search
from meanfield.model.normalization import normalization_of
from meanfield.running import run_in_memory
from meanfield.sections.evolution import Output
from meanfield.sections.formula import evaluate
from solvers.io.run_file import Run
from solvers.mesh.interval import polar
from solvers.mesh.mesh import Floats, Mesh, circle
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.harmonics import SphereHarmonics

CELLS, RINGS = 256, 64  # resolution of the density beside the backward equation, at most
DEGREE = 31  # of the Gauss grid of the backward equation on the sphere
NEAR_UNIFORM = 0.1  # root mean square of ρ/ρ̄ − 1 up to which linear theory describes the density


def refusal_of_prediction(case: Case) -> str:
    """Return the reason why the central-limit variance of a density is not computed; empty where it is."""
    if case.domain.labels is not None:
        return "not available with a causal mask"
    if (refused := refusal_of_theory(case)) is not None:
        return str(refused)
    if normalization_of(case.attention.normalization).is_two_sided:
        return f'attention.normalization = "{case.attention.normalization}": not available'
    return ""


def predicted_variance(case: Case, intervals: int, observables: Sequence[str]) -> Floats:
    """Return the limits n → ∞ of n Var⟨φ, ρ_n⟩ (intervals + 1, m) for observables φ of n tokens, over time.

    The times are 0 and the end of each of equal ``intervals``. The density is computed anew at the times of the
    Runge–Kutta stages, on at most CELLS cells or RINGS rings. If :func:`refusal_of_prediction` is empty, all errors are
    those of the mesh and the time step. Once the cells do not resolve the density, as after a collapse, the result is
    NaN.
    """
    domain = case.domain
    resolution = min(domain.resolution or 0, RINGS if domain.space == "S2" else CELLS)
    flow = _flow_of(case, resolution)
    steps = math.ceil(case.time.end / intervals / flow.longest_step(case.speed_bound))
    run = run_in_memory(
        msgspec.structs.replace(
            case,
            domain=msgspec.structs.replace(domain, resolution=resolution),
            output=Output(snapshots=2 * steps * intervals, samples=1, spacing="linear", diagnostics=("mass",)),
        )
    )
    mesh = flow.points if isinstance(flow.points, Mesh) else mesh_of_run(run)
    count = max(
        _count_resolved(flow.max_difference, mesh, [run.density(2 * k * steps) for k in range(intervals + 1)]), 1
    )
    outputs = [k * steps for k in range(count)]
    values = observable_values(observables, unit_vectors_at(flow.points.centers), domain.formula)
    step, found = case.time.end / (intervals * steps), np.full((intervals + 1, len(observables)), np.nan)
    found[:count] = central_limit_variance(flow, _densities_at(run, flow.points), step, values, outputs)
    return found


def _count_resolved(most: float, mesh: Mesh, densities: Sequence[Floats]) -> int:
    """Return the number of densities (cells,) before the first one that the cells do not resolve.

    ``most`` is the largest difference between neighboring cells, relative to the maximum.
    """
    one, other = mesh.face_cells.T
    resolved = [np.abs(rho[one] - rho[other]).max() <= most * rho.max() for rho in densities]
    return next((k for k, is_resolved in enumerate(resolved) if not is_resolved), len(densities))


def _flow_of(case: Case, resolution: int) -> LinearizedFlow | ZonalFlow:
    """Return the backward equation of a case, for a density on a mesh of this resolution."""
    d, attention = case.domain.d, case.attention
    physics = (
        case.beta_on_unit_sphere,
        attention.normalization,
        attention.value_scale,
        case.noise_on_unit_sphere,
        attention.rescaled,
    )
    if isinstance(case.domain, Axisymmetric):
        return ZonalFlow(polar(resolution, d), d, *physics)
    return LinearizedFlow(circle(resolution) if d == 2 else GaussGrid(DEGREE), *physics)


def _densities_at(run: Run, points: Points) -> Floats:
    """Return the densities (snapshots, points) of a run, on the sphere by their harmonics at the points of a grid."""
    densities = np.stack([run.density(k) for k in range(run.snapshots)])
    if not isinstance(points, GaussGrid):
        return densities
    on_mesh, on_grid = (SphereHarmonics(each, DEGREE) for each in (mesh_of_run(run), points))
    return np.stack([on_grid.synthesis(on_mesh.of_density(density)) for density in densities])


def observable_values(formulas: Sequence[str], points: Floats, names: Sequence[str]) -> Floats:
    """Return the values (m, points) of formulas at unit vectors (points, d), in the named coordinates of a domain.

    The coordinates are those of `meanfield.sections.initial.Formula`. phi is from −π to π; z and the polar
    angle theta are those of the last axis.
    """
    x, y, z = points[..., 0], points[..., 1], points[..., -1]
    phi, theta = np.arctan2(y, x), np.arctan2(np.linalg.norm(points[..., :-1], axis=-1), z)
    every = {"x": x, "y": y, "z": z, "phi": phi, "theta": theta}
    return np.stack([evaluate(formula, {name: every[name] for name in names}) for formula in formulas])


def unit_vectors_at(centers: Floats) -> Floats:
    """Return the unit vectors (cells, d) of cell centers: the centers themselves, or (sin θ, cos θ) of polar angles."""
    return centers if centers.shape[1] > 1 else np.column_stack([np.sin(centers), np.cos(centers)])


def fastest_rate(case: Case, density: Floats, uniform: Floats) -> float:
    """Return the largest growth rate λ > 0 about the uniform density; NaN if no mode grows or no theory applies.

    The theory applies to an initial ``density`` within NEAR_UNIFORM of the ``uniform`` one, given as masses (cells,).
    """
    squares = (density - uniform) ** 2
    with np.errstate(over="ignore", divide="ignore"):  # uniform masses near the poles underflow in high dimensions
        deviation = float(np.sqrt(np.divide(squares, uniform, out=np.zeros_like(squares), where=squares > 0).sum()))
    if deviation > NEAR_UNIFORM or refusal_of_theory(case) is not None:
        return np.nan
    rate = float(rates_of(case, np.arange(1, degrees_to_search(case.beta_on_unit_sphere))).max())
    return rate if rate > 0 else np.nan
