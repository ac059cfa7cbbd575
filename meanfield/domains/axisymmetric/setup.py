"""Problems on S^{d−1} with densities that are symmetric about an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics, energy_entry
from meanfield.domains.axisymmetric import initial
from meanfield.domains.axisymmetric.diagnostics import DIAGNOSTICS, Polar, energy
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention, AxisymmetricVelocity, axisymmetric_equation
from meanfield.domains.axisymmetric.section import Axisymmetric
from meanfield.domains.common.given_density import GIVEN_DENSITIES, InitialMesh
from meanfield.domains.common.problem import Problem
from meanfield.model.layer_norm import LayerNorm
from meanfield.sections import initial as sections
from solvers.backends import Backend
from solvers.io.layout import Variable
from solvers.mesh.interval import edges_of, polar
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.density import DensityIntegrator
from solvers.timestepping.density.moments import CosineMoments
from solvers.timestepping.integrate import fixed


def set_up_axisymmetric(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case with axisymmetric densities: initial density, dynamics, diagnostics.

    The state is on the device of ``backend``, by default the host. Raises ValueError for a domain that is not valid.
    """
    dimension, attention, stabilizers = case.domain.d, case.attention, case.stabilizers
    assert isinstance(case.domain, Axisymmetric)
    mesh = polar(case.domain.cells_across, dimension)
    norm = LayerNorm(stabilizers.layer_norm, stabilizers.alpha)

    @cache
    def attention_on(mesh: Mesh) -> AxisymmetricAttention:
        """Return the self-attention of the case on a mesh, on the host or on the device."""
        return AxisymmetricAttention(
            mesh,
            dimension,
            attention.beta_effective,
            attention.normalization,
            attention.value_scale,
            attention.rescaled,
        )

    device_mesh = mesh if backend is None else mesh.on(backend)  # of the state; diagnostics are computed on the host
    to_device, velocity = device_mesh.backend.to_device, AxisymmetricVelocity(attention_on(mesh), norm)
    equation = axisymmetric_equation(attention_on(device_mesh), stabilizers.noise, norm)
    time, moments = case.time, CosineMoments(device_mesh)
    integrator = DensityIntegrator(equation, time.method, moments, time.cfl, to_device=to_device)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        """Return the named diagnostics; ``degrees`` is not used."""
        return Diagnostics(
            names,
            DIAGNOSTICS | {"energy": energy_entry(energy, abs(attention.beta_effective))},
            {"d": 1},
            lambda time, density: Polar(velocity, time, density, attention.beta, attention.scales),
        )

    return Problem(
        space=mesh,
        initial=lambda: _initial(mesh, dimension, case.initial),
        dynamics=fixed(integrator),
        prepare=lambda state: equation.begin().prepare(state.time, to_device(state.values)),
        diagnostics=diagnostics,
        variables=(
            Variable("angle", ("cell",), mesh.centers[:, 0], "rad", "polar angle", is_coordinate=True),
            Variable("cell_edge", ("edge",), edges_of(mesh), "rad", "polar angle between cells"),
            Variable(
                "uniform", ("cell",), attention_on(mesh).uniform, "rad-1", "distribution of the angle of uniform tokens"
            ),
        ),
    )


def _initial(mesh: Mesh, dimension: int, kind: sections.InitialKind) -> Floats:
    """Return the initial distribution (cells,) of the polar angle, per radian, for a section [initial]."""
    if type(kind) in _INITIAL:
        return _INITIAL[type(kind)](mesh, dimension, kind)
    theta = mesh.centers[:, 0]
    coordinates = {"theta": theta, "z": np.cos(theta)}  # of a density on the sphere
    return GIVEN_DENSITIES[type(kind)](
        InitialMesh(mesh, coordinates, relative_to=initial.initial_uniform(mesh, dimension)), kind
    )


def _points(mesh: Mesh, dimension: int, kind: sections.Points) -> Floats:
    """Return the initial distribution (cells,) of the polar angle, per radian, for point masses.

    A point mass stands for the circle of latitude through its position.
    """
    return initial.initial_points(mesh, np.arccos(np.array(kind.points)[:, 0]).tolist(), kind.masses)


def _von_mises_fisher(mesh: Mesh, dimension: int, kind: sections.VonMisesFisher) -> Floats:
    """Return the initial distribution (cells,) of the polar angle, per radian, for von Mises–Fisher densities."""
    centers, concentrations, masses = kind.columns
    cosines = [center[0] for center in centers]
    return initial.initial_von_mises_fisher(mesh, dimension, concentrations, masses, cosines)


_INITIAL: dict[type, Callable[[Mesh, int, Any], Floats]] = {
    sections.Uniform: lambda mesh, d, kind: initial.initial_uniform(mesh, d),
    sections.Perturbed: lambda mesh, d, kind: initial.initial_perturbed(
        mesh, d, kind.amplitude, kind.degrees, kind.seed
    ),
    sections.Harmonic: lambda mesh, d, kind: initial.initial_harmonic(mesh, d, kind.degree, kind.amplitude),
    sections.VonMisesFisher: _von_mises_fisher,
    sections.Moebius: lambda mesh, d, kind: initial.initial_moebius(
        mesh, d, kind.parameter * float(np.sign(kind.axis[0]))
    ),
    sections.Points: _points,
}
