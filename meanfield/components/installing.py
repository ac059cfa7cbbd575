"""Tables in which built-in parts are found, with those of a user's own among them once they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.components.component import LOADED, Component
from meanfield.components.in_case import parameters_of, section_of
from meanfield.diagnostics.table import Diagnostic, Table
from meanfield.domains.atoms.diagnostics import DIAGNOSTICS as AT_ATOMS
from meanfield.domains.common.model_of_case import FIELDS, REACTIONS
from meanfield.domains.domain import load
from meanfield.domains.sphere.initial_density import INITIAL
from meanfield.domains.table import DOMAINS
from meanfield.model.errors import ArgumentError
from meanfield.model.kernel import KERNELS, Kernel
from meanfield.model.layer_norm import LAYER_NORMS, Scheme
from meanfield.model.reactions import Reaction
from solvers.mesh.mesh import Floats, Mesh

BUILT_IN = {"kernel": frozenset(KERNELS), "layer_norm": frozenset(LAYER_NORMS)}


def built_in(component: Component) -> bool:
    """Whether its name is that of a part of this package."""
    if component.kind == "diagnostic":
        return any(component.name in table and component.name not in _OWN for table in _tables())
    return component.name in BUILT_IN.get(component.kind, ())


def _kernel(component: Component) -> None:
    def zonal(cosines: Floats, beta: float, window: float) -> Floats:
        return np.asarray(component.function(cosines, beta) * np.exp(-abs(beta)))

    KERNELS[component.name] = Kernel(component.name, zonal=zonal)


def _layer_norm(component: Component) -> None:
    LAYER_NORMS[component.name] = Scheme(
        lambda norm, time, radius, size: component.function(time, size),
        sees_size=True,
        text=f"{component.name} layer norm",
    )


def _reaction(component: Component) -> None:
    def make(mesh: Mesh, section: Any) -> Reaction:
        x, given = mesh.backend.to_host(mesh.centers), parameters_of(section)

        def growth(density: Floats) -> Floats:
            host = component.function(x, mesh.backend.to_host(density), **given)
            return mesh.backend.to_device(np.broadcast_to(np.asarray(host, float), len(x)).copy())

        return Reaction(growth)

    REACTIONS[section_of(component)] = make


def _feed_forward(component: Component) -> None:
    def make(section: Any) -> Callable[[Floats], Floats]:
        return lambda points: np.asarray(component.function(points, **parameters_of(section)), float)

    FIELDS[section_of(component)] = make


def _initial(component: Component) -> None:
    def make(mesh: Mesh, section: Any) -> Floats:
        values = np.asarray(component.function(mesh.centers, **parameters_of(section)), float)
        if values.shape != (mesh.cells,) or not (np.isfinite(values).all() and values.min() >= 0 and values.max() > 0):
            expected = "values (n,) that are finite, not negative, and not all 0"
            raise ArgumentError("initial.kind", component.name, expected)
        return values / (values @ mesh.volumes)

    INITIAL[section_of(component)] = make


def _diagnostic(component: Component) -> None:
    def measured(sample: Any) -> float:
        points = sample.points if hasattr(sample, "points") else sample.mesh.centers
        return float(component.function(points, sample.masses))

    name, words = component.name, component.long_name or component.name
    for table in _tables():
        table[name] = Diagnostic(measured, "", words, lambda case: ("diagnostic", name) in LOADED, default=False)
    AT_ATOMS[name] = lambda sample: float(component.function(sample.atoms.positions, sample.atoms.masses))
    _OWN.add(name)


def _tables() -> list[Table]:
    """The tables of diagnostics of all domains whose samples are points with masses."""
    names = {kind.diagnostics for kind in DOMAINS.values() if kind.mesh is not None or kind.has_tokens}
    return [load(name) for name in sorted(names)]


_OWN: set[str] = set()
INSTALL: dict[str, Callable[[Component], None]] = {
    "kernel": _kernel,
    "layer_norm": _layer_norm,
    "reaction": _reaction,
    "feed_forward": _feed_forward,
    "initial": _initial,
    "diagnostic": _diagnostic,
}
