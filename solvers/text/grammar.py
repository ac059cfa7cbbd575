"""Grammar of equations and expressions in text: Python's arithmetic on names, numbers and known functions.

Text is parsed to a tree and never executed. Allowed are numbers, names, + − * / **, brackets, vectors [a, b], and calls
of the functions in POINTWISE and OPERATORS.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeGuard

import numpy as np

ROOT_RTOL = 1e-6  # of the largest value: values between −ROOT_RTOL and 0 come from iterations and count as 0


def nonnegative(values: Any) -> Any:
    """Return values with 0 for those that are negative only by the error of an iteration, for roots and powers.

    Trial states of implicit steps undershoot 0 by such errors, where a NaN would shrink the step without end.
    """
    if np.iscomplexobj(values):
        return values
    return np.where((values < 0) & (values >= -ROOT_RTOL * np.abs(values).max()), 0.0, values)


POINTWISE: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs, "arccos": np.arccos, "arcsin": np.arcsin, "arctan": np.arctan, "conj": np.conj, "cos": np.cos,
    "cosh": np.cosh, "exp": np.exp, "heaviside": lambda a: np.heaviside(a, 0.5), "imag": np.imag, "log": np.log,
    "real": np.real, "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": lambda a: np.sqrt(nonnegative(a)),
    "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
TWO_ARGUMENTS = {"min": np.minimum, "max": np.maximum}
OPERATORS = {  # number of arguments of each
    "convolve": 2, "div": 1, "dot": 2, "dx": 1, "dy": 1, "dz": 1, "grad": 1, "integral": 1, "laplace": 1,
}  # fmt: skip
COORDINATES = ("x", "y", "z")
_ARGUMENTS = {**dict.fromkeys(POINTWISE, 1), **dict.fromkeys(TWO_ARGUMENTS, 2), **OPERATORS}
_MAX_LENGTH, _MAX_DEPTH = 5000, 200  # characters of an expression; operations within each other, such as a + b + …
_RATE = re.compile(r"\bdt\(\s*([^\W\d]\w*)\s*\)")
_SECOND = re.compile(r"dt\(\s*dt\(\s*([^\W\d]\w*)\s*\)\s*\)")
_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.List, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd,
)  # fmt: skip


def parse_equations(text: str) -> dict[str, ast.expr]:
    """Return the right side of each equation "dt(u) = …" in a text by the name of its field u.

    An equation "dt(dt(u)) = …" becomes one of u and one of its velocity u_t, which "dt(u)" means on right sides. The
    velocities come last. Equations are on lines of their own, or separated by semicolons. Text after # is a comment.
    Raises ValueError for another form, an unknown function, and a field with two equations.
    """
    if not isinstance(text, str):
        raise TypeError(f"text = {text!r}: expected a text such as 'dt(u) = laplace(u)'")
    lines = [line.partition("#")[0].strip() for line in re.split(r"[\n;]", text)]
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for line in filter(None, lines):
        left, equals, right = (part.strip() for part in line.partition("="))
        twice = _SECOND.fullmatch(left)
        found = twice or _RATE.fullmatch(left)
        if not equals or found is None:
            raise ValueError(f"{line!r}: expected an equation such as 'dt(u) = laplace(u)'")
        field = found[1]
        if field in first | second:
            raise ValueError(f"{line!r}: a second equation of {field}")
        (second if twice else first)[field] = right
    velocities = {field: f"{field}_t" for field in second}
    texts = {field: velocities[field] for field in second} | first
    texts |= {velocities[field]: right for field, right in second.items()}
    if len(texts) < len(first) + 2 * len(second):
        raise ValueError(f"{text!r}: {', '.join(velocities.values())}: expected no field of the name of a velocity")
    sides = {
        field: parse_expression(_RATE.sub(lambda rate: velocities.get(rate[1], rate[0]), right))
        for field, right in texts.items()
    }
    if not sides:
        raise ValueError(f"{text!r}: expected an equation such as 'dt(u) = laplace(u)'")
    return sides


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression; ^ is a power. Raises ValueError for what the grammar does not allow."""
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"{text[:40]!r}…: expected at most {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{text!r}: expected an expression such as 'u - u**3'") from None
    if _is_deeper(tree, _MAX_DEPTH):
        raise ValueError(f"{text[:40]!r}…: expected at most {_MAX_DEPTH} operations within each other")
    for node in ast.walk(tree):
        _check_node(text, node)
    return tree


def _is_deeper(tree: ast.expr, depth: int) -> bool:
    """Return whether nodes of a tree lie more than ``depth`` levels below its root."""
    level: list[ast.AST] = [tree]
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _check_node(text: str, node: ast.AST) -> None:
    """Raise ValueError unless the grammar allows one node of the tree of ``text``."""
    part = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
    if not isinstance(node, _ALLOWED):
        raise ValueError(f"{text!r}: {part}: expected numbers, names, + - * / **, [a, b] and functions")
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float, complex):
        raise ValueError(f"{text!r}: {part}: expected a number")
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else part
        if name not in _ARGUMENTS:
            raise ValueError(f"{text!r}: {name}: no function{_meant(name, _ARGUMENTS)}")
        if len(node.args) != _ARGUMENTS[name] or node.keywords:
            raise ValueError(f"{text!r}: {part}: expected {_ARGUMENTS[name]} argument(s) of {name}")


def check_names(trees: Mapping[str, ast.expr], known: Collection[str]) -> None:
    """Raise ValueError if a right side has an unknown name, other than r and c in kernels.

    trees   right sides, each by the text of its left side
    known   names that may occur
    """
    for left, tree in trees.items():
        kernels = [node.args[0] for node in ast.walk(tree) if is_call(node, "convolve")]
        inside = {id(node) for kernel in kernels for node in ast.walk(kernel)}
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and id(node) not in called and node.id not in known:
                if id(node) in inside and node.id in ("r", "c"):
                    continue
                raise ValueError(f"{left} = {ast.unparse(tree)}: {node.id}: unknown name{_meant(node.id, known)}")


def check_new_name(name: str, what: str, taken: Collection[str]) -> None:
    """Raise ValueError unless ``name`` is an identifier and neither a function nor one of the names ``taken``.

    ``what`` describes the name in the message.
    """
    if not (isinstance(name, str) and name.isidentifier()) or name in _ARGUMENTS or name in taken:
        raise ValueError(
            f"{what} {name!r}: expected a name that is neither a function, a coordinate, t, pi nor a field"
        )


def is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    """Return whether a node is a call of the function of this name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def summands(node: ast.expr, sign: float = 1.0) -> list[tuple[float, ast.expr]]:
    """Return the summands of an expression, each with its sign 1 or −1."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        second = -sign if isinstance(node.op, ast.Sub) else sign
        return summands(node.left, sign) + summands(node.right, second)
    if isinstance(node, ast.UnaryOp):
        return summands(node.operand, -sign if isinstance(node.op, ast.USub) else sign)
    return [(sign, node)]


def products(node: ast.expr, sign: float = 1.0) -> list[tuple[float, list[ast.expr], list[ast.expr]]]:
    """Return an expression as a sum of products: signs ±1, factors of the numerators and factors of the denominators.

    Only expressions with a gradient outside of calls are expanded; others are single factors.
    """
    if isinstance(node, ast.UnaryOp) and _has_gradient(node):
        return products(node.operand, -sign if isinstance(node.op, ast.USub) else sign)
    if isinstance(node, ast.BinOp) and _has_gradient(node):
        left = products(node.left, sign)
        if isinstance(node.op, ast.Add | ast.Sub):
            return left + products(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
        if isinstance(node.op, ast.Mult):
            each = [(one, other) for one in left for other in products(node.right)]
            return [(one[0] * other[0], one[1] + other[1], one[2] + other[2]) for one, other in each]
        if isinstance(node.op, ast.Div):
            return [(one, above, [*below, node.right]) for one, above, below in left]
    return [(sign, [node], [])]


def _has_gradient(node: ast.expr) -> bool:
    """Return whether an expression has a gradient that is no argument of another call."""
    if isinstance(node, ast.UnaryOp):
        return _has_gradient(node.operand)
    if isinstance(node, ast.BinOp):
        return _has_gradient(node.left) or _has_gradient(node.right)
    return is_call(node, "grad")


def has_time(tree: ast.expr) -> bool:
    """Return whether a syntax tree contains the time t."""
    return any(isinstance(node, ast.Name) and node.id == "t" for node in ast.walk(tree))


def _meant(name: str, known: Collection[str]) -> str:
    """Return the end of a message: a known name that is similar to ``name``, or all known names."""
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(known))}"
