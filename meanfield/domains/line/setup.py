"""Problems on the line, without layer norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.diagnostics.unbounded import DIAGNOSTICS_LINE, UnboundedTokens
from meanfield.domains.common.given_density import GIVEN_DENSITIES, InitialMesh
from meanfield.domains.common.problem import Problem, escape_check
from meanfield.domains.line.equation import MIN_MASS, LineAttention, initial_gaussian, initial_interval, line_equation
from meanfield.domains.line.section import Line
from meanfield.model.discrete_layers import LayerIntegrator, LayerMap
from meanfield.model.layer_norm import LayerNorm
from meanfield.sections import initial as sections
from solvers.backends import Backend
from solvers.io.layout import Variable
from solvers.mesh.interval import edges_of, line
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.deposit_interval import deposit_on_interval
from solvers.timestepping.density import DensityIntegrator
from solvers.timestepping.density.moments import PolynomialMoments
from solvers.timestepping.integrate import Integrator, fixed
from solvers.timestepping.state import State


def set_up_line(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case on the line: initial density, dynamics, diagnostics.

    The state is on the device of ``backend``, by default the host. Raises ValueError for a domain that is not valid.
    """
    domain, attention = case.domain, case.attention
    assert isinstance(domain, Line)
    mesh = line(domain.cells_across, domain.outermost, domain.core)
    device_mesh = mesh if backend is None else mesh.on(backend)  # of the state; diagnostics are computed on the host
    to_device, method = device_mesh.backend.to_device, case.time.method
    velocity = LineAttention(
        device_mesh,
        attention.beta_effective,
        attention.normalization,
        attention.value_scale,
        case.stabilizers.gate,
        least_mass=0.0 if method == "layers" else MIN_MASS,  # a push-forward has no numerical tail ahead of the density
    )
    equation = line_equation(device_mesh, velocity, case.stabilizers.noise)
    integrator: Integrator = (
        LayerIntegrator(_layer(case, velocity), to_device)
        if method == "layers"
        else DensityIntegrator(equation, method, PolynomialMoments(device_mesh), case.time.cfl, to_device=to_device)
    )

    def at_ends(state: State) -> float:
        """Return the mass in the first and the last cell."""
        return float(state.values[0] * mesh.volumes[0] + state.values[-1] * mesh.volumes[-1])

    def sample_of(time: float, density: Floats) -> UnboundedTokens:
        """Return the tokens of a state, from which diagnostics are computed."""
        masses = density * mesh.volumes
        return UnboundedTokens(mesh.centers, masses, (float(masses[0]), float(masses[-1])))

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        """Return the named diagnostics; ``degrees`` is not used."""
        return Diagnostics(names, DIAGNOSTICS_LINE, {"d": 1, "end": 2}, sample_of)

    return Problem(
        space=mesh,
        initial=lambda: _initial(mesh, case.initial),
        dynamics=fixed(integrator),
        check=escape_check(at_ends, f"|x| = {domain.outermost:g}"),
        prepare=lambda state: equation.begin().prepare(state.time, to_device(state.values)),
        diagnostics=diagnostics,
        variables=(
            Variable("x", ("cell",), mesh.centers[:, 0], "1", "token x", is_coordinate=True),
            Variable("cell_edge", ("edge",), edges_of(mesh), "1", "coordinate between cells"),
        ),
    )


def _layer(case: Case, attention: LineAttention) -> LayerMap:
    """Return one discrete layer of a case as a map of densities, with attention that is exact at every point."""

    def output(time: float, density: Floats) -> Floats:
        return attention.output_at(time, density, attention.mesh.centers)

    norm, step = LayerNorm(case.stabilizers.layer_norm), case.time.step or 1.0
    residual, gate = case.stabilizers.residual, case.stabilizers.gate
    return LayerMap(attention.mesh, output, norm, step, residual, gate, attention.output_at)


def _initial(mesh: Mesh, kind: sections.InitialKind) -> Floats:
    """Return the initial density (cells,) on the line for a section [initial]."""
    if type(kind) in _INITIAL:
        return _INITIAL[type(kind)](mesh, kind)
    return GIVEN_DENSITIES[type(kind)](InitialMesh(mesh, {"x": mesh.centers[:, 0]}), kind)


def _gaussian(mesh: Mesh, kind: sections.Gaussian) -> Floats:
    """Return the initial density (cells,) of a Gaussian on the line."""
    mean, variance = (float(np.ravel(value)[0]) for value in (kind.mean, kind.variance))
    return initial_gaussian(mesh, mean, variance)


def _points(mesh: Mesh, kind: sections.Points) -> Floats:
    """Return the initial density (cells,) of point masses on the line."""
    masses = np.ones(len(kind.points)) if kind.masses is None else np.array(kind.masses)
    return deposit_on_interval(mesh, np.array(kind.points)[:, 0], masses / masses.sum())


_INITIAL: dict[type, Callable[[Mesh, Any], Floats]] = {
    sections.Gaussian: _gaussian,
    sections.Interval: lambda mesh, kind: initial_interval(mesh, kind.low, kind.high),
    sections.Points: _points,
}
