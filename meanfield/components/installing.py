"""Installation of user-defined components in the tables of built-in options."""

from __future__ import annotations

from collections.abc import Callable
from traceback import extract_tb
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError, refusal
from meanfield.components.component import LOADED, Component
from meanfield.components.in_case import parameters_of, section_of
from meanfield.diagnostics.table import LENGTHS, Diagnostic, Table, only_if_named
from meanfield.domains.atoms.diagnostics import DIAGNOSTICS as AT_ATOMS
from meanfield.domains.common.given_density import GIVEN_DENSITIES, InitialMesh, normalize_density
from meanfield.domains.common.model_of_case import FIELDS, REACTIONS
from meanfield.domains.domain import load
from meanfield.domains.particles.initial_tokens import USER_TOKENS
from meanfield.domains.table import DOMAINS
from meanfield.equation import Local
from meanfield.model.kernel import KERNELS, Kernel
from meanfield.model.layer_norm import LAYER_NORMS, Scheme
from meanfield.model.reactions import Reaction
from meanfield.sections.initial import Initial
from meanfield.sections.section import OWN, Section, tag_of
from solvers.mesh.mesh import Floats, Mesh


def call(component: Component, *arguments: Any, **options: Any) -> Any:
    """Return the value of a user-defined component's function. Raises CaseError with the line at which it failed."""
    try:
        return component.function(*arguments, **options)
    except Exception as error:
        code = component.function.__code__
        file, first = code.co_filename, code.co_firstlineno  # the definition: wrong arguments fail before line 1
        lines = [first] + [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise CaseError(f"component {component.name}: {file}, line {lines[-1]}: {what}") from error


def array(component: Component, shape: tuple[int, ...], *arguments: Any, **options: Any) -> Floats:
    """Return the value of a user-defined component's function as floats of ``shape``; a number is broadcast.

    Raises CaseError for another shape, for masked arrays and for values that are not numbers.
    """
    value, what = call(component, *arguments, **options), f"component {component.name}: returns"
    if np.ma.is_masked(value):
        raise CaseError(f"{what} an array with masked numbers: expected numbers {shape}")
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise CaseError(f"{what} {type(value).__name__}: expected numbers {shape}") from None
    if found.shape not in (shape, ()):
        raise CaseError(f"{what} an array {found.shape}: expected {shape}")
    return np.array(np.broadcast_to(found, shape))  # a copy: the value may be an argument, such as the mesh's centers


_INITIAL = frozenset(map(tag_of, Initial.__args__))
BUILT_IN = {
    "kernel": frozenset(KERNELS),
    "layer_norm": frozenset(LAYER_NORMS),
    "reaction": frozenset(map(tag_of, REACTIONS)),
    "initial": _INITIAL,
    "tokens": _INITIAL,
}


def is_built_in(component: Component) -> bool:
    """Return whether the component has the name of a built-in option."""
    if component.kind == "diagnostic":
        return any(component.name in table and component.name not in _OF_USER for table in _tables())
    return component.name in BUILT_IN.get(component.kind, ())


def _kernel(component: Component) -> None:
    """Add a user-defined kernel, a function of cosines and β, to the table of kernels."""

    def zonal(cosines: Floats, beta: float, window: float) -> Floats:
        return array(component, cosines.shape, cosines, beta) * float(np.exp(-abs(beta)))

    KERNELS[component.name] = Kernel(component.name, zonal=zonal)


def _layer_norm(component: Component) -> None:
    """Add a user-defined layer norm, the speed of tokens by time and output, to the table of layer norms."""
    LAYER_NORMS[component.name] = Scheme(
        lambda norm, time, radius, size: call(component, time, size),
        sees_size=True,
        text=f"{component.name} layer norm",
    )


def _add_own_section(component: Component) -> type[Section]:
    """Add the section of a user-defined component to the table of such sections, and return the section."""
    section = OWN[component.kind][component.name] = section_of(component)
    return section


def _reaction(component: Component) -> None:
    """Add a user-defined reaction, a rate of growth at each cell, to the table of reactions."""

    def make(mesh: Mesh, section: Section) -> Reaction:
        x, given = mesh.backend.to_host(mesh.centers), parameters_of(section)

        def growth(density: Floats) -> Floats:
            return mesh.backend.to_device(array(component, (len(x),), x, mesh.backend.to_host(density), **given))

        return Reaction(growth)

    REACTIONS[_add_own_section(component)] = make


def _feed_forward(component: Component) -> None:
    """Add a user-defined feed-forward network, a vector field at points, to the table of networks."""

    def make(section: Section) -> Local:
        return lambda points: array(component, points.shape, points, **parameters_of(section))

    FIELDS[_add_own_section(component)] = make


def _initial(component: Component) -> None:
    """Add a user-defined initial density, a function of cell centers, to the table of densities."""

    def make(place: InitialMesh, section: Section) -> Floats:
        values = array(component, (place.mesh.cells,), place.mesh.centers, **parameters_of(section))
        return normalize_density(place.mesh, values * place.relative_to, "initial.kind", component.name)

    GIVEN_DENSITIES[_add_own_section(component)] = make


def _tokens(component: Component) -> None:
    """Add user-defined random initial tokens to the table of tokens."""

    def draw(section: Section, count: int, dimension: int, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        drawn = array(component, (count, dimension), rng, count, dimension, **parameters_of(section))
        if not np.isfinite(drawn).all():
            raise refusal("initial.kind", component.name, "positions (count, dimension) that are finite")
        return drawn

    USER_TOKENS[_add_own_section(component)] = draw


def _diagnostic(component: Component) -> None:
    """Add a user-defined diagnostic, a function of points and masses, to the tables of diagnostics."""
    name, words, shape = component.name, component.long_name or component.name, tuple(component.dimensions.values())

    def measured(points: Floats, masses: Floats) -> float | Floats:
        value = array(component, shape, points, masses)
        return value if shape else float(value)

    def of_sample(sample: Any) -> float | Floats:
        points, masses = sample.points if hasattr(sample, "points") else sample.mesh.centers, sample.masses
        return measured(points, masses) if masses.ndim == 1 else np.array([measured(points, row) for row in masses])

    _check_dimensions(component)
    LENGTHS.update(component.dimensions)
    dimensions = " ".join(component.dimensions)
    entry = Diagnostic(of_sample, dimensions, words, lambda case: ("diagnostic", name) in LOADED, only_if_named)
    for table in _tables():
        table[name] = entry
    AT_ATOMS[name] = lambda sample: measured(sample.atoms.positions, sample.atoms.masses)
    _OF_USER.add(name)


def _check_dimensions(component: Component) -> None:
    """Raise CaseError for a dimension used by built-in diagnostics, or by another component with another length."""
    reserved = {"time", "sample", "cell", "label"}
    for table in _tables():
        reserved.update(*(entry.dimensions.split() for name, entry in table.items() if name not in _OF_USER))
    others = [other for other in LOADED.values() if other.name != component.name]
    for dimension, length in component.dimensions.items():
        if dimension in reserved or any(other.dimensions.get(dimension, length) != length for other in others):
            what = f"{component.source}: dimension {dimension} of {component.name}"
            raise CaseError(f"{what}: is already used by other diagnostics; choose another name")


def _tables() -> list[Table]:
    """Return the tables of built-in diagnostics of all domains with a mesh or with tokens.

    On these domains a diagnostic is a function of points with masses.
    """
    names = {kind.diagnostics for kind in DOMAINS.values() if kind.mesh is not None or kind.has_tokens}
    return [load(name) for name in sorted(names)]


_OF_USER: set[str] = set()
INSTALL: dict[str, Callable[[Component], None]] = {
    "kernel": _kernel,
    "layer_norm": _layer_norm,
    "reaction": _reaction,
    "feed_forward": _feed_forward,
    "initial": _initial,
    "tokens": _tokens,
    "diagnostic": _diagnostic,
}
