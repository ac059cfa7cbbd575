"""Formulas in coordinates, as text: parsed to numbers, operators and a table of functions; no code is executed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from solvers.mesh.mesh import Floats

MAX_LENGTH = 1000  # characters
LABEL = "label"  # of a causal mask: (k + ½)/labels for label k


def formula_problem(text: str, names: Collection[str]) -> str | None:
    """Return a description of the expected formula in these names, or None if the formula can be evaluated."""
    try:
        _checked(text, names)
    except ValueError as error:
        return str(error)
    return None


def names_in(text: str) -> set[str]:
    """Return the names of the coordinates in a formula. Raises ValueError for a text that is not a formula."""
    nodes = list(ast.walk(_parsed(text)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def evaluate(text: str, values: Mapping[str, Floats | float]) -> Floats:
    """Return the value of a formula such as "exp(4*x) + 0.1*cos(3*phi)", an array of the shape of ``values``.

    Allowed are the operators + − * / **, the functions of the table FUNCTIONS, numbers, ``pi`` and the names of
    ``values``. Raises ValueError, which states the expected formula, for anything else.
    """
    nodes = _checked(text, values)
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    return np.broadcast_to(_value(nodes, values), shape).astype(float)


def _parsed(text: str) -> ast.expr:
    """Return the syntax tree of a formula; raise ValueError, with the expected text, if it cannot be parsed."""
    expected = f"a formula of at most {MAX_LENGTH} characters"
    if len(text) > MAX_LENGTH:
        raise ValueError(expected)
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError('a formula such as "exp(4*x) + 0.1*cos(3*phi)"') from None


def _checked(text: str, names: Collection[str]) -> list[ast.expr]:
    """Return the nodes of a formula. Raises ValueError, with the expected formula, if evaluation is impossible."""
    nodes = _nodes(_parsed(text))
    for node in nodes:
        _check(node, text.strip(), names)
    return nodes


def _nodes(tree: ast.expr) -> list[ast.expr]:
    """Return the nodes of a formula, each before its operands. A loop avoids the recursion limit of nested formulas."""
    found, waiting = list[ast.expr](), [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        match node:
            case ast.BinOp(left=left, right=right):
                waiting += [right, left]
            case ast.UnaryOp(operand=operand):
                waiting.append(operand)
            case ast.Call(args=[argument]):
                waiting.append(argument)
    return found


def _check(node: ast.expr, text: str, names: Collection[str]) -> None:
    """Raise ValueError for a node of a formula that is not a number, known name, operator or function."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if abs(number) > sys.float_info.max:
                raise ValueError(f"numbers of absolute value at most {sys.float_info.max:.2g}")
        case ast.Name(id=name):
            if name not in CONSTANTS and name not in names:
                raise ValueError(f"a formula in {', '.join(names)} and pi, not {name}")
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            pass
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            pass
        case ast.Call(func=ast.Name(id=name), args=[_], keywords=[]):
            if name not in FUNCTIONS:
                raise ValueError(f"functions of {', '.join(FUNCTIONS)}, not {name}")
        case _:
            found = ast.get_source_segment(text, node) or ""
            raise ValueError(f"numbers, names, + - * / ** and functions, not {found[:40]}")


def _value(nodes: Sequence[ast.expr], values: Mapping[str, Floats | float]) -> Any:
    """Return the value of a formula from its nodes, evaluated last to first: operands precede operators."""
    operands: list[Any] = []
    for node in reversed(nodes):
        match node:
            case ast.Constant(value=number):
                operands.append(np.float64(number))  # type: ignore[arg-type]
            case ast.Name(id=name):
                operands.append(values[name] if name in values else CONSTANTS[name])
            case ast.BinOp(op=op):
                left, right = operands.pop(), operands.pop()
                operands.append(OPERATORS[type(op)](left, right))
            case ast.UnaryOp(op=op):
                operands.append((-1.0 if isinstance(op, ast.USub) else 1.0) * operands.pop())
            case ast.Call(func=ast.Name(id=name)):
                operands.append(FUNCTIONS[name](operands.pop()))
    (value,) = operands
    return value


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
