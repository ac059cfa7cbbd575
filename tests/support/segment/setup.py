"""Problems on a segment, which no token leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.given_density import GIVEN_DENSITIES, InitialMesh, normalize_density
from meanfield.domains.common.problem import Problem
from meanfield.domains.line.equation import LineAttention, initial_gaussian, line_equation
from meanfield.sections.initial import Gaussian, InitialKind
from solvers.backends import Backend
from solvers.io.layout import Variable
from solvers.mesh.interval import edges_of, interval
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.density import DensityIntegrator
from solvers.timestepping.density.moments import PolynomialMoments
from solvers.timestepping.integrate import fixed

from .diagnostics import DIAGNOSTICS, Sample
from .section import Segment, Step


def set_up_segment(case: Case, backend: Backend | None = None) -> Problem:
    domain, attention = case.domain, case.attention
    assert isinstance(domain, Segment)
    mesh = interval(-domain.half, domain.half, domain.resolution)
    velocity = LineAttention(mesh, attention.beta_effective, attention.normalization, gate=case.stabilizers.gate)
    equation = line_equation(mesh, velocity)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return Diagnostics(names, DIAGNOSTICS, {"side": 2}, lambda time, rho: Sample(mesh, rho * mesh.volumes))

    return Problem(
        space=mesh,
        initial=lambda: _initial(mesh, case.initial),
        dynamics=fixed(DensityIntegrator(equation, case.time.method, PolynomialMoments(mesh), case.time.cfl)),
        prepare=lambda state: equation.begin().prepare(state.time, state.values),
        diagnostics=diagnostics,
        variables=(Variable("cell_edge", ("edge",), edges_of(mesh), "1", "coordinate between cells"),),
    )


def _initial(mesh: Mesh, kind: InitialKind) -> Floats:
    x = mesh.centers[:, 0]
    if isinstance(kind, Step):
        return normalize_density(mesh, np.where(x > kind.at, kind.factor, 1.0), "initial.factor", str(kind.factor))
    if isinstance(kind, Gaussian):
        return initial_gaussian(mesh, float(np.ravel(kind.mean)[0]), float(np.ravel(kind.variance)[0]))
    return GIVEN_DENSITIES[type(kind)](InitialMesh(mesh, {"x": x}), kind)
