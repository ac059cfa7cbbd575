"""Problems of tokens with a radius beside their direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from meanfield.case.case import Case
from meanfield.clusters.near import merging_angle
from meanfield.diagnostics.table import Diagnostics
from meanfield.diagnostics.unbounded import DIAGNOSTICS, UnboundedTokens
from meanfield.domains.common.model_of_case import feed_forward_of, heads_by_layer
from meanfield.domains.common.problem import Check, Problem, dynamics_by_interval, escape_check
from meanfield.domains.domain import load
from meanfield.domains.free_radius.attention import ShellAttention, output_at_directions, output_at_positions
from meanfield.domains.free_radius.equation import FreeRadius, Output, free_radius_equation, radial_mesh
from meanfield.domains.free_radius.initial import initial_at_points, initial_at_radius, initial_gaussian
from meanfield.domains.free_radius.section import FreeRadiusCircle, FreeRadiusSphere
from meanfield.domains.sphere.coordinates import coordinates_of
from meanfield.domains.sphere.embeddings import embeddings_of
from meanfield.domains.sphere.initial_density import initial_density
from meanfield.model.heads import matrix_of, steepness
from meanfield.model.layer_norm import LAYER_NORMS, LayerNorm
from meanfield.sections import initial as sections
from solvers.backends import Backend
from solvers.io.layout import Variable
from solvers.mesh.interval import edges_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.density import DensityIntegrator
from solvers.timestepping.density.moments import PolynomialMoments
from solvers.timestepping.equation import Equation
from solvers.timestepping.schedules import Listed
from solvers.timestepping.state import State


def set_up_free_radius(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case with a free radius: initial density, dynamics, diagnostics.

    The state is on the device of ``backend``, by default the host. Raises ValueError for a domain that is not valid.
    """
    domain = case.domain
    assert isinstance(domain, FreeRadiusCircle | FreeRadiusSphere)
    radial = radial_mesh(domain.innermost, domain.outermost, domain.radii, domain.core)
    space = FreeRadius(_directions(domain), radial, domain.expansion)
    device_space = space if backend is None else space.on(backend)
    to_device, equation = device_space.directions.backend.to_device, _equations(case, device_space)

    radii = device_space.radii()
    moments = PolynomialMoments(device_space.directions, radii, device_space.radial.on_host.volumes)

    def integrator(k: int) -> DensityIntegrator:
        return DensityIntegrator(equation(k), case.time.method, moments, case.time.cfl, to_device=to_device)

    return Problem(
        space=_cells(space),
        initial=lambda: _initial(case, space).reshape(-1),
        dynamics=dynamics_by_interval(integrator, Listed((0.0, _switch_time(case)))),
        check=_radius_check(device_space, domain.outermost),
        prepare=lambda state: equation(0).begin().prepare(state.time, to_device(state.values)),
        diagnostics=_diagnostics(case, space),
        variables=(*coordinates_of(space.around.centers), *_radii(space)),
    )


def _equations(case: Case, space: FreeRadius) -> Callable[[int], Equation]:
    """Return the equations of a case by interval of time: 0 before the switch of the layer norm mix, 1 after it."""

    @lru_cache(maxsize=1)
    def equation(k: int) -> Equation:
        norm = LayerNorm(case.stabilizers.layer_norm, switch=0.0 if k else np.inf)
        return free_radius_equation(space, norm, _output(case, space, norm), case.stabilizers.gate)

    return equation


def _switch_time(case: Case) -> float:
    """Return the time from which the layer norm mix is pre-norm; infinite for other layer norms."""
    stabilizers = case.stabilizers
    if LAYER_NORMS[stabilizers.layer_norm].parameter != "switch":
        return np.inf
    return stabilizers.switch_time


def _radius_check(space: FreeRadius, outermost: float) -> Check:
    """Return a check of states that little mass is in the cells of the largest radius, ``outermost`` at time 0."""

    def in_last_cells(state: State) -> float:
        """Return the mass in the cells of the largest radius."""
        return float(state.values.reshape(space.shape)[-1] @ space.volumes[-1])

    growth = f"·exp({space.expansion:g} t)" if space.expansion else ""
    return escape_check(in_last_cells, f"radius {outermost:g}{growth}")


def _diagnostics(case: Case, space: FreeRadius) -> Callable[[Sequence[str], int | None], Diagnostics]:
    """Return a function of names and degrees that returns the diagnostics of a case; degrees are not used."""
    dimension = space.directions.centers.shape[1]
    (head,) = heads_by_layer(case)[0]
    scale = merging_angle(abs(steepness(case.attention.beta, head)))
    table = DIAGNOSTICS | {"clusters": DIAGNOSTICS["clusters"]._replace(attributes=(("scale", scale),))}

    def sample(time: float, values: Floats) -> UnboundedTokens:
        """Return the tokens of a state, from which diagnostics are computed."""
        density = values.reshape(space.shape)
        points = space.centers(time).reshape(-1, dimension)
        masses = (density * space.volumes).reshape(-1)
        on_directions = space.directions, space.on_directions(density)
        return UnboundedTokens(points, masses, space.escaped(density), on_directions, scale)

    return lambda names, degrees: Diagnostics(names, table, {"d": dimension, "end": 2}, sample)


def _radii(space: FreeRadius) -> tuple[Variable, Variable]:
    """Return the radii of the cells (cells,) and the radii of the edges between the cells, at time 0."""
    of_cells, between = np.repeat(space.radii(), space.directions.cells), np.exp(edges_of(space.radial))
    growth = "at time 0; it grows as exp(expansion t)"
    return (
        Variable("radius", ("cell",), of_cells, "1", f"radius of each cell {growth}", is_coordinate=True),
        Variable("radius_edge", ("edge",), between, "1", f"radius between cells {growth}"),
    )


def _output(case: Case, space: FreeRadius, norm: LayerNorm) -> Output:
    """Return a function of time and density with attention plus feed-forward network, A + F, of a case.

    Both are evaluated at positions or at directions of tokens, depending on the layer norm.
    """
    (head,) = heads_by_layer(case)[0]
    d = case.domain.d
    key_query = matrix_of(head.key, d).T @ matrix_of(head.query, d)
    attention = ShellAttention(
        space.directions,
        case.attention.beta,
        matrix_of(head.value, d),
        key_query,
        case.attention.normalization,
    )
    network = feed_forward_of(case)
    at_positions = norm.scheme.sees_positions
    attend = (output_at_positions if at_positions else output_at_directions)(space, attention)
    if network is None:
        return attend

    def output(time: float, density: Floats) -> Floats:
        points = space.centers(time) if at_positions else space.directions.centers[None]
        return attend(time, density) + network(points.reshape(-1, d)).reshape(points.shape)

    return output


def _initial(case: Case, space: FreeRadius) -> Floats:
    """Return the initial density (shells, directions) of a case."""
    kind = case.initial
    if isinstance(kind, sections.Gaussian):
        mean = np.zeros(case.domain.d) if isinstance(kind.mean, float) else np.array(kind.mean)
        return initial_gaussian(
            space, mean, np.array(kind.variance) if isinstance(kind.variance, tuple) else kind.variance
        )
    if kind.radius is None and isinstance(kind, sections.Points):
        return initial_at_points(space, kind.points, kind.masses)
    if kind.radius is None and isinstance(kind, sections.Tokens):
        return initial_at_points(space, embeddings_of(kind, case.domain.d))
    return initial_at_radius(space, initial_density(case, space.directions), kind.radius or 1.0)


def _cells(space: FreeRadius) -> Mesh:
    """Return the cells of a snapshot as a mesh, radius by radius, with volumes with respect to d(log r) dω."""
    return replace(space.around, volumes=space.volumes.reshape(-1))


def _directions(domain: FreeRadiusCircle | FreeRadiusSphere) -> Mesh:
    """Return the mesh of the directions, on the circle or on the sphere."""
    assert domain.directions.mesh is not None
    directions: Mesh = load(domain.directions.mesh)(domain.cells_across)
    return directions
