"""Unrolling of loops in GPU kernels. Registers have no index: an array that a loop indexes would be in slow memory."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import deepcopy
from inspect import getsource
from textwrap import dedent
from typing import Any, TypeVar

F = TypeVar("F", bound=Any)


def with_loops_written_out(function: F) -> F:
    """Return a function with the same results in which loops over a range of constants are unrolled.

    The bounds of these loops are expressions of whole numbers and of global constants; a range of whole numbers alone
    stays a loop.
    """
    tree = ast.parse(dedent(getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    named = function.__globals__
    constants = {name: value for name, value in named.items() if type(value) is int}
    written_out = ast.fix_missing_locations(_WrittenOut(constants).visit(tree))
    space: dict[str, Any] = {}
    exec(compile(written_out, function.__code__.co_filename, "exec"), named, space)
    found: F = space[function.__name__]
    return found


class _WrittenOut(ast.NodeTransformer):
    """Rewriting of a syntax tree that unrolls loops over constant ranges, innermost loops first."""

    def __init__(self, constants: Mapping[str, int]) -> None:
        self._constants = constants

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """Return the statements of a loop over a constant range for each number in turn, or the loop itself."""
        self.generic_visit(node)
        numbers = self._numbers(node.iter)
        if numbers is None or not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        return [_With(name, number).visit(deepcopy(each)) for number in numbers for each in node.body]

    def _numbers(self, of: ast.expr) -> range | None:
        """Return the range of a loop; None unless its bounds contain a global constant, and no other name or call."""
        if not isinstance(of, ast.Call) or not isinstance(of.func, ast.Name) or of.func.id != "range":
            return None
        names = {each.id for bound in of.args for each in ast.walk(bound) if isinstance(each, ast.Name)}
        calls = any(isinstance(each, ast.Call | ast.Attribute) for bound in of.args for each in ast.walk(bound))
        if calls or not names or not names <= self._constants.keys():
            return None
        values = [eval(ast.unparse(bound), {}, dict(self._constants)) for bound in of.args]
        return range(*values)


class _With(ast.NodeTransformer):
    """Rewriting of a syntax tree that replaces a variable by a number."""

    def __init__(self, name: str, number: int) -> None:
        self._name, self._number = name, number

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return the number for the variable, other names unchanged."""
        return ast.Constant(self._number) if node.id == self._name else node
