"""Initial densities from numbers in a file or a case, and from a formula in coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import refusal
from meanfield.sections import initial as sections
from meanfield.sections.formula import evaluate
from solvers.io.arrays import read_array
from solvers.mesh.mesh import Floats, Mesh


@dataclass(frozen=True)
class InitialMesh:
    """Mesh of an initial density that a file or a formula gives.

    mesh          cells of the density
    coordinates   coordinates (cells) by name, for formulas
    relative_to   density (cells) by which the values of a formula are multiplied
    labels        number of rows that an array may have: one density for each label of a causal mask, which is a
                  position of tokens in the sequence
    """

    mesh: Mesh
    coordinates: Mapping[str, Floats] = field(default_factory=dict)
    relative_to: Floats | float = 1.0
    labels: int = 1


def density_of_array(place: InitialMesh, kind: sections.Array) -> Floats:
    """Return the initial density of mass 1 from an array in a file: (cells), or (labels, cells) with a row a label.

    The values are in the order of the cells of the mesh. Raises CaseError for an array that cannot be used.
    """
    cells, labels = place.mesh.cells, place.labels
    try:
        values = read_array(Path(kind.file), kind.dataset)
    except (ValueError, TypeError, OSError) as error:
        raise refusal("initial.file", kind.file, f"an array of numbers: {error}") from None
    if values.shape != (cells,) and (labels == 1 or values.shape != (labels, cells)):
        text = f"({cells},)" + (f" or ({labels}, {cells})" if labels > 1 else "")
        raise refusal("initial.file", kind.file, f"an array {text}, a number for each cell, not {values.shape}")
    return normalize_density(place.mesh, values, "initial.file", kind.file)


def density_of_values(place: InitialMesh, kind: sections.Values) -> Floats:
    """Return the initial density (cells) of mass 1 that is proportional to numbers in the case.

    Raises CaseError for numbers that are all zero.
    """
    return normalize_density(place.mesh, np.array(kind.density), "initial.density", kind.density)


def density_of_formula(place: InitialMesh, kind: sections.Formula) -> Floats:
    """Return the initial density (cells) of mass 1 that is proportional to a formula at the cell centers.

    Raises CaseError for values that are negative, not finite, or all zero.
    """
    values = evaluate(kind.density, place.coordinates) * place.relative_to
    return normalize_density(place.mesh, values, "initial.density", kind.density)


def normalize_density(mesh: Mesh, values: Floats, key: str, given: object) -> Floats:
    """Return the density (..., cells) of mass 1 that is proportional to ``values`` (..., cells).

    Raises CaseError for values that are negative, not finite, or all zero; ``key`` and ``given`` are the key of the
    case and its value, for the message.
    """
    if not np.isfinite(values).all() or values.min() < 0:
        raise refusal(key, given, "values that are finite and nowhere negative")
    largest = values.max(axis=-1, keepdims=True)
    if not (largest > 0).all():
        raise refusal(key, given, "values that are not zero everywhere")
    scaled: Floats = values / largest  # avoids overflow of sums of large numbers
    return scaled / (scaled @ mesh.volumes)[..., None] if scaled.ndim > 1 else scaled / (scaled @ mesh.volumes)


GIVEN_DENSITIES: dict[type, Callable[[InitialMesh, Any], Floats]] = {
    sections.Array: density_of_array,
    sections.Values: density_of_values,
    sections.Formula: density_of_formula,
}
