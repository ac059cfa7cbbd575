"""Initial densities on the circle and the sphere from an array in a file, and from a formula in coordinates."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from meanfield.case.errors import refusal
from meanfield.case.formula import LABEL, evaluate
from meanfield.sections import initial as sections
from solvers.io.arrays import read_array
from solvers.mesh.mesh import Floats, Mesh


def density_of_array(mesh: Mesh, kind: sections.Array, labels: int = 1) -> Floats:
    """Densities of mass 1, (cells) or (labels, cells), at the mesh's cells in their order. Raises CaseError."""
    try:
        values = read_array(Path(kind.file), kind.dataset)
    except (ValueError, TypeError, OSError) as error:
        raise refusal("initial.file", kind.file, f"an array of numbers: {error}") from None
    allowed = [(mesh.cells,), (labels, mesh.cells)]
    if values.shape not in allowed:
        text = f"({mesh.cells},)" + (f" or ({labels}, {mesh.cells})" if labels > 1 else "")
        raise refusal("initial.file", kind.file, f"an array {text}, a number for each cell, not {values.shape}")
    return _normalized(mesh, values, "initial.file", kind.file)


def density_of_formula(mesh: Mesh, kind: sections.Formula, label: float | None = None) -> Floats:
    """The density (cells) of mass 1 that a formula is in proportion to, at cell centers. Raises CaseError.

    x, y, z are coordinates of the unit vector, phi the azimuth (−π to π), on the circle the angle, theta the polar
    angle; ``label`` is for a formula with that name.
    """
    x = mesh.centers / np.linalg.norm(mesh.centers, axis=1)[:, None]
    values = dict(zip("xyz", x.T, strict=False)) | {"phi": np.arctan2(x[:, 1], x[:, 0])}
    if x.shape[1] == 3:
        values["theta"] = np.arccos(np.clip(x[:, 2], -1.0, 1.0))
    if label is not None:
        values[LABEL] = np.full(mesh.cells, label)
    return _normalized(mesh, evaluate(kind.density, values), "initial.density", kind.density)


def _normalized(mesh: Mesh, values: Floats, key: str, given: str) -> Floats:
    """Values (..., cells) over their integral, refused where they are no density."""
    if not np.isfinite(values).all() or values.min() < 0:
        raise refusal(key, given, "values that are finite and nowhere negative")
    largest = values.max(axis=-1, keepdims=True)
    if not (largest > 0).all():
        raise refusal(key, given, "values that are not zero everywhere")
    scaled: Floats = values / largest  # sums of large numbers are finite too
    return scaled / (scaled @ mesh.volumes)[..., None] if scaled.ndim > 1 else scaled / (scaled @ mesh.volumes)
