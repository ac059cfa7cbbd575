"""Equation from a text: linear parts as a stiff term, the rest as a source; conditions on the boundary from texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..mesh.boundaries import Outflow, Robin, Value, Wall
from ..mesh.checks import check_mesh, check_reals
from ..mesh.mesh import Floats, Mesh
from ..timestepping.equation import Equation
from .grammar import (
    COORDINATES,
    OPERATORS,
    check_names,
    check_new_name,
    has_time,
    is_call,
    parse_equations,
    parse_expression,
    summands,
)
from .operators import Operators
from .terms import LinearPart, Rates, Summand, Sums, is_linear
from .values import Evaluator

_NORMAL = "dn"  # outward normal derivative, in conditions on the boundary


def from_text(
    text: str,
    mesh: Mesh,
    parameters: Mapping[str, Any] | None = None,
    boundaries: Mapping[str, Any] | None = None,
) -> Equation:
    """Return an equation that is written as text, such as "dt(u) = laplace(u) + u - u**3".

    Summands that are linear in their own field, with operators and constant coefficients, form a stiff term. The
    default method is implicit in the stiff term and explicit in the other summands; implicit in all summands if a
    nonlinear one has second derivatives of its own field, as in laplace(u**2) or div(u*grad(u)); and explicit,
    "symplectic", for wave equations without damping and without t. Derivatives are finite volumes of second order, and
    laplace in boxes of equal cells of fourth order.

    Parameters
    ----------
    text : str
        Equations "dt(u) = …" of one field or several, on lines of their own or separated by semicolons. The state has
        one row for each field, in the order of the equations. An equation "dt(dt(u)) = …" has the fields u and u_t, its
        velocity; velocities come after all other fields. Expressions have numbers, ``+ - * / **``, fields,
        parameters, the coordinates x, y, z of the cell centers, the time t, pi, vectors ``[a, b]``, functions such as
        exp, sin, abs, min, max, conj, real, imag, and the operators laplace(a), grad(a), dx(a), dy(a), dz(a), div(v),
        dot(v, w), integral(a) and convolve(kernel, a). A kernel is an expression of the distance r, or of c = ⟨x, y⟩ on
        a circle or a sphere. Numbers such as 0.5j make the fields complex.
    mesh : Mesh
        Mesh of the fields, on the host.
    parameters : dict, optional
        Numbers, or arrays (cells,), by name; complex ones make the fields complex.
    boundaries : dict, optional
        Condition of each part of the boundary: an object such as :class:`~solvers.Value`, or a text "u = 1",
        "dn(u) = 0", "dn(u) + 2*u = t", "wall". :class:`~solvers.Flux` (g) is "dn(u) = g" here. With several equations,
        a dict of these for each field by name. In operators a velocity has the time derivatives of the conditions of
        its field; where data of the field depend on the time, the velocity needs conditions of its own.

    Returns
    -------
    Equation
        Equation with the fields of the text.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If the text does not follow the grammar, or has an unknown name; the message has the part of the text.

    Notes
    -----
    laplace(u), grad(u) and div(a*grad(u)) of a field have the conditions on the boundary; nothing flows through the
    boundary in operators of other expressions. div(a*grad(b)) has fluxes between two cells with the mean of a, other
    divergences have the mean of the vectors of both cells, so that div conserves ∫u.

    Examples
    --------
    The Allen–Cahn equation from small values to the steady state 1:

    >>> import numpy as np
    >>> from solvers import from_text, interval, solve
    >>> mesh = interval(0.0, 10.0, 50, periodic=True)
    >>> equation = from_text("dt(u) = D*laplace(u) + u - u**3", mesh, {"D": 0.5})
    >>> u = solve(equation, 0.1 + 0.01 * np.cos(mesh.centers[:, 0]), (0.0, 20.0)).u[-1]
    >>> bool(abs(u - 1).max() < 1e-4)
    True

    Two rows u and u_t obey the wave equation; its default method is "symplectic", by which the energy does not drift:

    >>> wave = from_text("dt(dt(u)) = laplace(u)", mesh)
    >>> standing = np.cos(0.2 * np.pi * mesh.centers[:, 0])
    >>> u, u_t = solve(wave, [standing, 0 * standing], (0.0, 10.0), times=[10.0]).u[-1]  # one period
    >>> bool(abs(u - standing).max() < 1e-3)
    True
    """
    check_mesh(mesh)
    trees = parse_equations(text)
    given = dict(parameters or {})
    taken = {"t", "pi", *COORDINATES, _NORMAL}
    for field in trees:
        check_new_name(field, "field", taken)
    for name, value in given.items():
        check_new_name(name, "parameter", taken | trees.keys())
        check_reals(f"parameters[{name!r}]", value, "numbers", "fiubc")
        if np.shape(value) not in ((), (mesh.cells,)):
            raise ValueError(f"parameters[{name!r}] of shape {np.shape(value)}: expected a number or ({mesh.cells},)")
    check_names(
        {f"dt({name})": tree for name, tree in trees.items()},
        {"t", "pi", *COORDINATES[: mesh.ambient_dimension], *trees, *given},
    )
    host = mesh.on_host
    evaluator = Evaluator(Operators(host, _conditions(host, trees, boundaries, given)), given)
    names, linear, rest = tuple(trees), [], []
    for field, tree in trees.items():
        _check_scalar(evaluator, field, tree, names)
        stiff, others = _split(evaluator, field, tree, names)
        linear.append(stiff)
        rest.append(others)
    conditions = [each for by_part in evaluator.operators.boundaries.values() for each in by_part.values()]
    is_constant = not any(map(_has_changing_data, conditions))
    is_autonomous = is_constant and not any(has_time(part) for parts in rest for _, part in parts)
    terms: list[Any] = [Rates(Sums(evaluator, names, rest, is_autonomous))] if any(rest) else []
    if any(linear):
        terms.append(LinearPart(Sums(evaluator, names, linear, is_constant)))
    return Equation(host, terms)


def _split(
    evaluator: Evaluator, field: str, tree: ast.expr, fields: Sequence[str]
) -> tuple[list[Summand], list[Summand]]:
    """Return the summands of an equation that are linear in its field, and the others.

    If no linear summand has an operator, no term is stiff: the first list is empty, the second has all summands.
    """
    linear: list[Summand] = []
    rest: list[Summand] = []
    for sign, part in summands(tree):
        (linear if is_linear(evaluator, part, field, fields) else rest).append((sign, part))
    if not any(_has_operator(part) for _, part in linear):
        return [], summands(tree)
    return linear, rest


def _has_operator(tree: ast.expr) -> bool:
    """Return whether a syntax tree calls an operator such as ``laplace``."""
    return any(is_call(node, each) for node in ast.walk(tree) for each in OPERATORS)


def _has_changing_data(condition: Any) -> bool:
    """Return whether data of a condition on the boundary may depend on the time."""
    g = getattr(condition, "g", None)
    return has_time(g.tree) if isinstance(g, Data) else callable(g)


def _check_scalar(evaluator: Evaluator, field: str, tree: ast.expr, fields: Sequence[str]) -> None:
    """Raise ValueError if the right side of an equation is no field, by an evaluation where all fields are 1."""
    value = evaluator.value(tree, 0.0, dict.fromkeys(fields, np.ones(evaluator.mesh.cells)))
    if isinstance(value, tuple):
        raise ValueError(f"dt({field}) = {ast.unparse(tree)} is a vector, expected a number or a field")


def _conditions(
    mesh: Mesh, trees: Mapping[str, ast.expr], boundaries: Mapping[str, Any] | None, parameters: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the condition of each part of the boundary for each field by name; texts become conditions.

    A velocity without conditions has those of its field, differentiated by time.
    """
    if boundaries is not None and not isinstance(boundaries, Mapping):
        raise TypeError(f"boundaries = {boundaries!r}: expected a dict, as {{'left': 'u = 1'}}")
    given, velocities = dict(boundaries or {}), _velocities(trees)
    own = [field for field in trees if field not in velocities]
    if len(own) == 1 and not trees.keys() & given.keys():
        given = {own[0]: given}
    if unknown := [name for name in given if name not in trees]:
        raise ValueError(
            f"boundaries[{unknown[0]!r}]: expected a dict of conditions for each field, {', '.join(trees)}"
        )
    numbers = {name: value for name, value in parameters.items() if np.ndim(value) == 0}
    found = {
        field: {
            part: condition_from_text(condition, field, mesh, numbers) if isinstance(condition, str) else condition
            for part, condition in given.get(field, {}).items()
        }
        for field in trees
    }
    for velocity, field in velocities.items():
        if velocity not in given and any(_is_differentiated(tree, velocity) for tree in trees.values()):
            if any(map(_has_changing_data, found[field].values())):
                raise ValueError(
                    f"boundaries[{velocity!r}]: expected conditions, as data of {field} depend on the time"
                )
            found[velocity] = {
                part: replace(condition, g=0.0) if hasattr(condition, "g") else condition
                for part, condition in found[field].items()
            }
    return found


def _velocities(trees: Mapping[str, ast.expr]) -> dict[str, str]:
    """Return the fields u of equations dt(u) = u_t by the names u_t of their velocities."""
    names = {f"{field}_t": field for field in trees}
    return {
        tree.id: field for field, tree in trees.items() if isinstance(tree, ast.Name) and names.get(tree.id) == field
    }


def _is_differentiated(tree: ast.expr, name: str) -> bool:
    """Return whether an operator such as ``laplace`` acts on a field in an expression."""
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for node in ast.walk(tree)
        if any(is_call(node, each) for each in OPERATORS)
        for inner in ast.walk(node)
    )


def condition_from_text(
    text: str, field: str, mesh: Mesh, parameters: Mapping[str, Any]
) -> Wall | Outflow | Value | Robin:
    """Return a condition on the boundary from a text: "u = g", "dn(u) = g", "dn(u) + a*u = g", "wall".

    dn is the outward normal derivative, g an expression of t, x, y, z and parameters, a a number. Raises ValueError
    for another text.
    """
    if text.strip() == "wall":
        return Wall()
    left, equals, right = text.partition("=")
    slope = re.match(rf"{_NORMAL}\(\s*{field}\s*\)\s*([+-]|$)", left.strip())
    value = left.strip()[slope.end() :].strip() if slope else left.strip()
    factor = re.fullmatch(rf"(?:(.+?)\s*\*\s*)?{field}", value)
    if not equals or (factor is None and (slope is None or value)):
        raise ValueError(
            f"boundary {text!r}: expected 'wall', '{field} = 1', 'dn({field}) = 0' or 'dn({field}) + 2*{field} = 1'"
        )
    tree = parse_expression(right)
    if any(is_call(node, each) for node in ast.walk(tree) for each in OPERATORS):
        raise ValueError(f"boundary {text!r}: expected an expression of t, x, y, z and parameters, without operators")
    check_names({left.strip(): tree}, {"t", "pi", *COORDINATES[: mesh.ambient_dimension], *parameters})
    data = Data(Evaluator(Operators(mesh, {}), parameters), tree)
    number = 0.0 if factor is None else 1.0 if factor[1] is None else _number(factor[1], parameters)
    number = -number if slope is not None and slope[1] == "-" else number
    if slope is None and number == 1.0:
        return Value(data)
    return Robin(number, 0.0 if slope is None else 1.0, data)


def _number(text: str, parameters: Mapping[str, Any]) -> complex:
    """Return the value of a number or a scalar parameter in a text; raise ValueError for another text."""
    try:
        found = parameters[text] if text in parameters else ast.literal_eval(text)
        return complex(found) if np.iscomplexobj(found) else float(found)
    except (ValueError, SyntaxError, TypeError):
        raise ValueError(f"{text!r}: expected a number or a parameter") from None


@dataclass(frozen=True, eq=False)
class Data:
    """Data (t, x) → g of a condition on the boundary, from an expression."""

    evaluator: Evaluator
    tree: ast.expr

    def __call__(self, t: float, x: Floats) -> Any:
        axes = dict(zip(COORDINATES, x.T, strict=False))
        return self.evaluator.value(self.tree, t, axes)
