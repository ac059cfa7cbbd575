"""Scalars of a sweep's points: numbers computed from diagnostics over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from meanfield.domains.domain import load
from meanfield.domains.table import DOMAINS
from solvers.mesh.mesh import Floats

Tables = Mapping[str, Floats]  # "time" (samples) and the columns (samples, ...)


def lengths(centroids: Floats) -> Floats:
    """Return the length |∫xρ| of each centroid ∫xρ (mean token) in an array (..., d).

    The length is infinite where the square overflows.
    """
    with np.errstate(over="ignore"):
        return np.asarray(np.linalg.norm(centroids, axis=-1))


def scalars(tables: Tables) -> dict[str, Floats]:
    """Return the final results of a run of a sweep by name, from its diagnostics over time ``tables``.

    The results are the last value of each diagnostic, and those entries of the table SCALARS whose required diagnostic
    was recorded. Without a sample there are no results.
    """
    if not len(tables.get("time", ())):
        return {}
    last = {name: np.asarray(values[-1]) for name, values in tables.items() if name != "time"}
    made = {name: np.asarray(make(tables)) for name, (needs, make, _) in SCALARS.items() if needs in tables}
    return last | made


def long_name(name: str) -> str:
    """Return the description of a scalar, such as "time of the last sample"."""
    return SCALARS[name][2] if name in SCALARS else f"{name} at the end"


def axes(name: str, count: int, manifold: str) -> list[str]:
    """Return the names of the ``count`` axes of a scalar from the diagnostics of the domain, else name_1, name_2, …"""
    table = load(DOMAINS[manifold].diagnostics)
    known = table[name].dimensions.split() if name in table else []
    return known if len(known) == count else [f"{name}_{axis}" for axis in range(1, count + 1)]


def _samples_of_maximum(tables: Tables) -> NDArray[np.intp]:
    """Return the indices of the samples with the largest number of clusters."""
    return np.flatnonzero(tables["clusters"] == tables["clusters"].max())


SCALARS: dict[str, tuple[str, Callable[[Tables], float], str]] = {  # required column, value, description
    "end_time": ("time", lambda tables: float(tables["time"][-1]), "time of the last sample"),
    "most_clusters": ("clusters", lambda tables: float(tables["clusters"].max()), "largest number of clusters"),
    "most_clusters_from": (
        "clusters",
        lambda tables: float(tables["time"][_samples_of_maximum(tables)[0]]),
        "first time with the maximal number of clusters",
    ),
    "most_clusters_until": (
        "clusters",
        lambda tables: float(tables["time"][_samples_of_maximum(tables)[-1] :][:2][-1]),
        "last time with the maximal number of clusters",
    ),
    "centroid_length": ("centroid", lambda tables: float(lengths(tables["centroid"][-1])), "length of the mean token"),
}
