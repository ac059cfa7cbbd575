"""Problems on the circle and the sphere, to which layer norm confines tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.model_of_case import feed_forward_of, heads_by_interval, reaction_of
from meanfield.domains.common.problem import Problem, dynamics_by_interval
from meanfield.domains.domain import load
from meanfield.domains.sphere.causal import causal_equation
from meanfield.domains.sphere.coordinates import coordinates_of
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.domains.sphere.initial_density import initial_by_label, initial_density
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.discrete_layers import LayerIntegrator, LayerMap
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm
from solvers.backends import Backend
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.density import DensityIntegrator
from solvers.timestepping.density.moments import HarmonicMoments
from solvers.timestepping.equation import Equation
from solvers.timestepping.integrate import Dynamics, fixed
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.state import State

Motion = tuple[Dynamics, Callable[[State], object]]  # dynamics and prepare of a problem


def set_up_round(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case on a circle or a sphere: initial density, dynamics, diagnostics.

    The state is on the device of ``backend``, by default the host. Raises ValueError or OSError for a file that cannot
    be used.
    """
    assert case.domain.mesh is not None  # true for all domains whose mesh is given by one number of cells or rings
    mesh = load(case.domain.mesh)(case.domain.resolution)
    number = np.float32 if case.domain.is_single_precision else np.float64
    # of the state; diagnostics are on the host
    device_mesh = mesh.on(mesh.backend if backend is None else backend, number)
    heads, labels = heads_by_interval(case), case.domain.labels or 1

    @lru_cache(maxsize=2)
    def velocity(interval: int, mesh: Mesh) -> Velocity:
        return velocity_of(case, mesh, heads.of_interval(interval))

    def velocity_at(time: float) -> Velocity:
        return velocity(heads.interval_at(time), mesh)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return diagnostics_round(names, mesh, velocity_at, degrees, labels)

    if case.time.method == "layers":
        motion = _layered_dynamics(case, device_mesh, lambda time: velocity(heads.interval_at(time), device_mesh))
    else:
        motion = _continuous_dynamics(
            case, device_mesh, lambda interval: velocity(interval, device_mesh), heads.intervals, labels
        )
    dynamics, prepare = motion
    to_device = _to_device(device_mesh)
    return Problem(
        space=mesh,
        initial=lambda: initial_by_label(case, mesh, labels) if case.domain.labels else initial_density(case, mesh),
        dynamics=dynamics,
        prepare=lambda state: prepare(replace(state, values=to_device(state.values))),
        diagnostics=diagnostics,
        snapshot=lambda values: values.reshape(labels, -1).sum(axis=0) if labels > 1 else values,
        snapshot_is_state=labels == 1,
        variables=coordinates_of(mesh.centers),
    )


def _to_device(mesh: Mesh) -> Callable[[Floats], Floats]:
    """Return a function that moves values of a state to the device of the mesh, in its number format."""
    number, to_device = mesh.volumes.dtype, mesh.backend.to_device
    return lambda values: to_device(values.astype(number, copy=False))


def _continuous_dynamics(
    case: Case, mesh: Mesh, velocity: Callable[[int], Velocity], intervals: Schedule, labels: int
) -> Motion:
    """Return the dynamics of a case in continuous time, and a function that compiles the kernels of a step.

    ``velocity`` gives the velocity field in each of the ``intervals`` of time, which differ in their matrices.
    """

    @lru_cache(maxsize=1)
    def equation(interval: int) -> Equation:
        noise = case.noise_on_unit_sphere
        if labels > 1:
            return causal_equation(mesh, velocity(interval), labels, noise)
        return mean_field_equation(mesh, velocity(interval), noise, reaction_of(case, mesh))

    moments = HarmonicMoments(mesh)

    def integrator(interval: int) -> DensityIntegrator:
        time = case.time
        return DensityIntegrator(equation(interval), time.method, moments, time.cfl, to_device=_to_device(mesh))

    def prepare(state: State) -> None:
        equation(0).begin().prepare(state.time, state.values)

    return dynamics_by_interval(integrator, intervals), prepare


def _layered_dynamics(case: Case, mesh: Mesh, velocity_at: Callable[[float], Velocity]) -> Motion:
    """Return the dynamics of a case in discrete layers, and a function that compiles the kernels of a layer.

    A layer pushes the density forward by its map of tokens.
    """
    layer = LayerMap(
        mesh,
        lambda time, density: velocity_at(time).output(density),
        velocity_at(0.0).norm,
        case.time.step or 1.0,
        case.stabilizers.residual,
    )

    def prepare(state: State) -> None:
        with suppress(FloatingPointError):  # the first layer raises this error as well
            layer(state.time, state.values)

    return fixed(LayerIntegrator(layer, mesh.backend.to_device)), prepare


def velocity_of(case: Case, mesh: Mesh, heads: Sequence[Head]) -> Velocity:
    """Return the velocity field X[ρ] of a case with given attention heads, accurate where there is mass.

    Tokens on a sphere of radius g attend as on the unit sphere with β g².
    """
    attention, stabilizers = case.attention, case.stabilizers
    norm = LayerNorm(stabilizers.layer_norm, stabilizers.alpha)
    return Velocity(
        Attention(
            mesh,
            case.beta_of_heads,
            attention.normalization,
            heads=heads,
            kernel=attention.kernel,
            window=attention.window,
            rescaled=attention.rescaled,
            include_radial=norm.sees_size or case.time.method == "layers",
        ),
        norm,
        feed_forward_of(case),
    ).restricted_to_mass
