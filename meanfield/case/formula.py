"""Formulas in coordinates, as text: parsed to numbers, operators and a table of functions; no code is executed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from solvers.mesh.mesh import Floats

MAX_LENGTH = 1000  # characters
LABEL = "label"  # of a causal mask, (k + ½)/labels for label k


def formula_problem(text: str, names: Collection[str]) -> str | None:
    """What was expected of a formula in these names; None where it can be evaluated."""
    try:
        _checked(_parsed(text), names)
    except ValueError as error:
        return str(error)
    return None


def names_in(text: str) -> set[str]:
    """The names of coordinates in a formula. Raises ValueError for what is none."""
    nodes = list(ast.walk(_parsed(text)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def evaluate(text: str, values: Mapping[str, Floats | float]) -> Floats:
    """The value of a formula such as "exp(4*x) + 0.1*cos(3*phi)", as array of the shape of ``values``.

    Operators + − * / **, the functions of the table FUNCTIONS, numbers, ``pi`` and the names of ``values``.
    Raises ValueError, with what was expected, for anything else.
    """
    tree = _parsed(text)
    _checked(tree, values)
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    return np.broadcast_to(_value(tree, values), shape).astype(float)


def _parsed(text: str) -> ast.expr:
    expected = f"a formula of at most {MAX_LENGTH} characters"
    if len(text) > MAX_LENGTH:
        raise ValueError(expected)
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError('a formula such as "exp(4*x) + 0.1*cos(3*phi)"') from None


def _checked(node: ast.expr, names: Collection[str]) -> None:
    """Raise ValueError for a node that is no number, known name, operator or function."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if abs(number) > sys.float_info.max:
                raise ValueError(f"numbers of at most {sys.float_info.max:.2g} in size")
        case ast.Name(id=name):
            if name not in CONSTANTS and name not in names:
                raise ValueError(f"a formula in {', '.join(names)} and pi, not {name}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            _checked(left, names)
            _checked(right, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _checked(operand, names)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            if name not in FUNCTIONS:
                raise ValueError(f"functions of {', '.join(FUNCTIONS)}, not {name}")
            _checked(argument, names)
        case _:
            raise ValueError(f"numbers, names, + - * / ** and functions, not {ast.unparse(node)[:40]}")


def _value(node: ast.expr, values: Mapping[str, Floats | float]) -> Any:
    match node:
        case ast.Constant(value=number):
            return np.float64(number)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return values[name] if name in values else CONSTANTS[name]
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            sign = -1.0 if isinstance(op, ast.USub) else 1.0
            return sign * _value(operand, values)
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return FUNCTIONS[name](_value(argument, values))
    raise AssertionError(ast.dump(node))  # such nodes have been refused


CONSTANTS: dict[str, float] = {"pi": np.pi}
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.float_power,
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(np, name)
    for name in ("exp", "log", "sqrt", "abs", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh")
}
