"""Section [initial] of a case from an array, of tokens or of a density, or from a function of positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.case.errors import MIN_SIZE, CaseError, show
from meanfield.domains.domain import Domain, load
from meanfield.domains.table import DOMAINS
from meanfield.sections.initial import Values
from meanfield.sections.section import tag_of
from solvers.mesh.checks import check_unmasked

Tables = dict[str, Any]
Density = Callable[[NDArray[np.float64]], ArrayLike]  # from cell centers (cells, d) to (cells,)
GivenInitial = ArrayLike | Density


def is_given(value: object) -> bool:
    """Return whether an initial density is an array, a list or a function, instead of a section of a case."""
    return callable(value) or isinstance(value, list | tuple) or hasattr(value, "__array__")


def split_initial(changes: Any) -> tuple[Any, GivenInitial | None]:
    """Return changes of a case without an initial array or function, and this array or function; None without one."""
    if not (isinstance(changes, Mapping) and is_given(changes.get("initial"))):
        return changes, None
    return {key: value for key, value in changes.items() if key != "initial"}, changes["initial"]


def table_of(given: GivenInitial, data: Mapping[str, Any], case_of: Callable[[Tables], Any]) -> Tables:
    """Return the table [initial] for an array or a function of positions.

    ``data`` are the tables of the case, which ``case_of`` converts to a case. Raises CaseError for an array of the
    wrong shape, and for a function on a domain whose densities are not given by numbers.
    """
    section = data.get("domain")
    domain = DOMAINS.get(str(section.get("manifold"))) if isinstance(section, Mapping) else None
    if domain is None:
        return {"kind": "uniform"}  # the error is that of the domain
    if callable(given):
        return _values(_density_of_function(given, domain, data, case_of))
    array = _numbers(given)
    if domain.has_tokens or (array.ndim == 2 and array.shape[1] == (domain.coordinates or domain.ambient)):
        return {"kind": "points", "points": _tokens(array, domain)}
    if array.ndim == 2 and dict(data.get("attention", {})).get("mask") == "causal":
        return {"kind": "by_label", "parts": [_values(row) for row in array]}
    if array.ndim != 1:
        expected = f"a number for each cell, or an array (n, {domain.coordinates or domain.ambient}) of tokens"
        raise _refusal(f"an array {array.shape}", expected)
    return _values(array)


def _numbers(given: ArrayLike) -> NDArray[Any]:
    """Return an array of numbers. Raises CaseError for others, and for masked numbers."""
    try:
        check_unmasked("initial", given)
    except ValueError as error:
        raise CaseError(str(error), "initial") from None
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise _refusal(show(given), "an array of numbers")
    return array


def _tokens(array: NDArray[Any], domain: type[Domain]) -> list[list[float]]:
    """Return an array (n, d) of initial tokens as lists; raise CaseError for another shape."""
    if array.ndim != 2:
        raise _refusal(f"an array {array.shape}", "an array (n, d) of tokens")
    points: list[list[float]] = array.tolist()
    return points


def _density_of_function(
    function: Density, domain: type[Domain], data: Mapping[str, Any], case_of: Callable[[Tables], Any]
) -> NDArray[np.float64]:
    """Return the values of a function at the cell centers, times the uniform distribution of an axisymmetric domain."""
    name = getattr(function, "__name__", repr(function))
    if Values not in domain.initial:
        raise _refusal(f"the function {name}", f"an array (n, d) of tokens on the domain {tag_of(domain)}")
    uniform = case_of({**data, "initial": {"kind": "formula", "density": "1"}})
    problem = load(domain.set_up)(uniform, None)
    x = problem.space.centers
    values = np.asarray(_numbers(function(x)), dtype=float)
    if values.shape != (len(x),):
        expected = f"a function of x {x.shape} that returns an array ({len(x)},)"
        raise _refusal(f"the function {name} that returns an array {values.shape}", expected)
    relative_to = problem.initial()[: len(x)]
    return np.asarray(values * (relative_to / relative_to.max()))


def _values(density: NDArray[Any]) -> Tables:
    """Return the table [initial] with the numbers of a density (cells,); negligible ones are zero."""
    negligible = np.abs(density) < MIN_SIZE * np.max(density, initial=0.0)
    return {"kind": "values", "density": np.where(negligible, 0.0, density).tolist()}


def _refusal(given: str, expected: str) -> CaseError:
    """Return the CaseError for an initial density that is given as an object."""
    return CaseError(f"initial = {given}: expected {expected}", "initial")
