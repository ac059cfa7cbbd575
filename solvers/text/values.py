"""Values of expressions on a mesh, and their derivatives by one of the fields."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ..mesh.checks import as_numbers, check_reals
from ..mesh.mesh import Floats, Mesh
from ..terms.operators import MAX_RISE
from ..transforms.interaction import Convolution, DenseKernel, Zonal, grid_shape
from .grammar import POINTWISE, TWO_ARGUMENTS, is_call, nonnegative, products
from .operators import Affine, Operators


@dataclass(frozen=True, eq=False)
class Tangent:
    """Value (cells,) of an expression with its derivative by one field, a sparse matrix (cells, cells)."""

    value: Any
    matrix: Any

    __array_ufunc__ = None  # NumPy leaves its operators to those here

    def __neg__(self) -> Tangent:
        return Tangent(-self.value, -self.matrix)

    def __add__(self, other: Any) -> Tangent:
        if isinstance(other, Tangent):
            return Tangent(self.value + other.value, self.matrix + other.matrix)
        return Tangent(self.value + other, self.matrix)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tangent:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Tangent:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Tangent:
        if isinstance(other, Tangent):
            matrix = self._scaled(other.value) + other._scaled(self.value)
            return Tangent(self.value * other.value, matrix)
        return Tangent(self.value * other, self._scaled(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tangent:
        return self.__mul__(other**-1.0 if isinstance(other, Tangent) else 1.0 / np.asarray(other))

    def __rtruediv__(self, other: Any) -> Tangent:
        return self.__pow__(-1.0).__mul__(other)

    def __pow__(self, power: Any) -> Tangent:
        if isinstance(power, Tangent):
            return power.__mul__(self.through(np.log, lambda a: 1 / a)).through(np.exp, np.exp)
        base = base_of(self.value, power)
        return Tangent(base**power, self._scaled(power * base ** (power - 1.0)))

    def __rpow__(self, base: Any) -> Tangent:
        return self.__mul__(np.log(base)).through(np.exp, np.exp)

    def through(self, function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Tangent:
        """Return f(a) and its derivative by the chain rule: a is this expression, f ``function``, and f′ ``slope``."""
        return Tangent(function(self.value), self._scaled(slope(self.value)))

    def after(self, matrix: Any) -> Tangent:
        """Return the expression with a sparse matrix applied to it."""
        return Tangent(matrix @ self.value, matrix @ self.matrix)

    def _scaled(self, factor: Any) -> Any:
        """Return the derivative matrix with its rows multiplied by a factor."""
        from scipy.sparse import diags_array

        return diags_array(np.broadcast_to(as_numbers(factor), (self.matrix.shape[0],)).copy()) @ self.matrix


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluation of expressions.

    operators    operators of the mesh
    parameters   numbers and arrays (cells,) by name
    kernels      convolutions by their text, made at their first use
    """

    operators: Operators
    parameters: Mapping[str, Any]
    kernels: dict[str, Any] = field(default_factory=dict)

    @property
    def mesh(self) -> Mesh:
        """Return the mesh of the operators."""
        return self.operators.mesh

    def value(self, tree: ast.expr, time: float, fields: Mapping[str, Any]) -> Any:
        """Return the value of an expression at a time, where the fields have the given values.

        Fields are arrays (cells,), or :class:`Tangent` for the derivative. The derivative leaves out convolutions and
        integrals, whose matrices would be full.
        """
        with np.errstate(all="ignore"):  # steps check that rates are finite
            return _Evaluation(self, {**self._constants, "t": time, **fields}).of(tree)

    @cached_property
    def _constants(self) -> dict[str, Any]:
        """Return π, the coordinates of the cell centers and the parameters by name."""
        return {"pi": np.pi, **dict(zip("xyz", self.mesh.centers.T, strict=False)), **self.parameters}

    def convolution(self, kernel: ast.expr) -> Any:
        """Return the convolution with a kernel: of the distance r, or of c = ⟨x, y⟩ on a circle or a sphere."""
        text = ast.unparse(kernel)
        if text not in self.kernels:
            self.kernels[text] = _convolution(self.mesh, _Kernel(kernel, self))
        return self.kernels[text]


def _convolution(mesh: Mesh, kernel: _Kernel) -> Any:
    """Return the convolution of fields with a kernel, by a transform if the mesh allows it."""
    if mesh.manifold in ("circle", "sphere"):
        return Zonal(mesh, kernel.of_cosine).potential
    if grid_shape(mesh):
        return Convolution(mesh, kernel.of_offsets).potential
    return DenseKernel(mesh, kernel.of_pairs)


@dataclass(frozen=True, eq=False)
class _Kernel:
    """Kernel of a convolution, as an expression of the distance r or of the cosine c."""

    tree: ast.expr
    evaluator: Evaluator

    def of_cosine(self, z: Floats) -> Floats:
        """Return the kernel at cosines z."""
        return self._value(c=z)

    def of_offsets(self, r: Floats) -> Floats:
        """Return the kernel (n,) at offsets x − y (n, d) of pairs of points."""
        return self._value(r=np.linalg.norm(r, axis=1))

    def of_pairs(self, x: Floats, y: Floats) -> Floats:
        """Return the kernel at pairs of points x and y, arrays that broadcast to (n, m, d), as (n, m)."""
        return self._value(r=np.linalg.norm(self.evaluator.mesh.shortest(x - y), axis=2))

    def _value(self, **places: Floats) -> Floats:
        """Return the kernel at given distances r or cosines c."""
        numbers = {name: value for name, value in self.evaluator.parameters.items() if np.ndim(value) == 0}
        found = _Evaluation(self.evaluator, {"pi": np.pi, **numbers, **places}).of(self.tree)
        check_reals(f"kernel {ast.unparse(self.tree)}", found)
        (place,) = places.values()
        return np.broadcast_to(np.asarray(found, dtype=np.float64), place.shape).copy()


_SLOPES: dict[str, Callable[[Any], Any]] = {
    "abs": np.sign, "arccos": lambda a: -1 / np.sqrt(1 - a * a), "arcsin": lambda a: 1 / np.sqrt(1 - a * a),
    "arctan": lambda a: 1 / (1 + a * a), "conj": np.ones_like, "cos": lambda a: -np.sin(a), "cosh": np.sinh,
    "exp": np.exp, "heaviside": np.zeros_like, "imag": np.zeros_like, "log": lambda a: 1 / a, "real": np.ones_like,
    "sign": np.zeros_like, "sin": np.cos, "sinh": np.cosh,
    "sqrt": lambda a: 0.5 / np.sqrt(nonnegative(a)), "tan": lambda a: 1 + np.tan(a) ** 2,
    "tanh": lambda a: 1 - np.tanh(a) ** 2,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """One evaluation of expressions, where ``names`` have the given values; vectors are tuples of components."""

    evaluator: Evaluator
    names: Mapping[str, Any]

    def of(self, node: ast.expr) -> Any:
        """Return the value of a node of the syntax tree: a number, an array, a vector or a tangent."""
        match node:
            case ast.Constant(value=number):
                return np.complex128(number) if isinstance(number, complex) else np.float64(number)  # type: ignore[arg-type]
            case ast.Name(id=name):
                if name not in self.names:  # within a kernel; other names are checked before
                    place = "the distance r" if "r" in self.names else "the cosine c"
                    raise ValueError(f"{name}: expected a kernel of {place} and of parameters that are numbers")
                return self.names[name]
            case ast.List(elts=parts):
                return tuple(self._scalar(part) for part in parts)
            case ast.UnaryOp(op=op, operand=operand):
                value = self.of(operand)
                return value if isinstance(op, ast.UAdd) else self._binary(ast.Mult(), -1.0, value, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.of(left), self.of(right), node)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
        raise TypeError(ast.dump(node))  # the grammar allows nothing else

    def _call(self, name: str, node: ast.Call) -> Any:
        """Return the value of a call of a function or an operator."""
        operators, first = self.evaluator.operators, node.args[0]
        if name in POINTWISE:
            value = self._scalar(first)
            function = POINTWISE[name]
            return value.through(function, _SLOPES[name]) if isinstance(value, Tangent) else function(value)
        if name in TWO_ARGUMENTS:
            return self._extreme(name, *map(self._scalar, node.args))
        if name == "laplace":
            known = self._of_field(first, lambda name: [operators.laplacians[name]])
            return known[0] if known else self._apply(operators.laplacian, self._scalar(first))
        if name == "grad":
            value = self._scalar(first)
            return self._of_field(first, lambda name: operators.gradients[name]) or tuple(
                self._apply(matrix, value) for matrix in operators.gradient
            )
        if name in ("dx", "dy", "dz"):
            axis, parts = "xyz".index(name[1]), self._call("grad", node)
            if axis >= len(parts):
                raise ValueError(f"{ast.unparse(node)}: the mesh has {len(parts)} coordinate(s)")
            return parts[axis]
        if name == "dot":
            one, other = map(self._vector, node.args)
            return _sum([a * b for a, b in zip(one, other, strict=True)])
        if name == "div":
            return _sum([self._divergence(*product) for product in products(first)])
        density = self._scalar(node.args[-1])
        density = density.value if isinstance(density, Tangent) else density
        cells = np.broadcast_to(as_numbers(density), (self.evaluator.mesh.cells,))
        if name == "integral":
            return np.dot(cells, self.evaluator.mesh.volumes)[()]
        convolution = self.evaluator.convolution(first)
        if cells.dtype.kind == "c":
            return convolution(cells.real.copy()) + 1j * convolution(cells.imag.copy())
        return convolution(cells)

    def _extreme(self, name: str, one: Any, other: Any) -> Any:
        """Return the minimum or the maximum of two values."""
        values = [part.value if isinstance(part, Tangent) else part for part in (one, other)]
        takes_one = TWO_ARGUMENTS[name](*values) == values[0]
        if isinstance(one, Tangent) or isinstance(other, Tangent):
            return one * takes_one + other * (1.0 - takes_one)
        return np.where(takes_one, *values)

    def _of_field(self, node: ast.expr, parts_of: Callable[[str], list[Affine]]) -> tuple[Any, ...]:
        """Return discrete operators applied to a field, including its boundary conditions.

        ``parts_of`` returns the operators for the name of a field. The result is () if the expression ``node`` is not
        the name of a field, or if the field has no boundary conditions.
        """
        if not isinstance(node, ast.Name) or not self.evaluator.operators.boundaries.get(node.id):
            return ()
        value, time = self.of(node), self.names["t"]
        return tuple(self._apply(matrix, value) + source(time) for matrix, source in parts_of(node.id))

    def _apply(self, matrix: Any, value: Any) -> Any:
        """Return a sparse matrix applied to a value, or to a tangent by the chain rule."""
        if isinstance(value, Tangent):
            return value.after(matrix)
        if np.ndim(value) == 0:
            value = np.full(self.evaluator.mesh.cells, value)
        return matrix @ value

    def _divergence(self, sign: float, above: list[ast.expr], below: list[ast.expr]) -> Any:
        """Return the divergence of a vector: ``sign`` times the factors ``above``, over those ``below``.

        A product a grad(b) has differences of two cells at each face, another vector the means of both cells.

        div(a ∇b) = ½ (Δ(ab) + a Δb − b Δa) holds exactly for two-point fluxes with the mean of a at each face.
        """
        operators, gradients = self.evaluator.operators, [each for each in above if is_call(each, "grad")]
        if len(gradients) != 1:
            vector = reduce(lambda one, other: ast.BinOp(one, ast.Mult(), other), above)
            components = self._vector(reduce(lambda one, other: ast.BinOp(one, ast.Div(), other), below, vector))
            return _sum([sign * self._apply(m, v) for m, v in zip(operators.divergence, components, strict=True)])
        others = [self._scalar(each) for each in above if each is not gradients[0]]
        a = reduce(lambda x, y: x * y, others, np.float64(sign))
        a = reduce(lambda x, y: x / y, [self._scalar(each) for each in below], a)
        argument = gradients[0].args[0]
        b, matrix = self._scalar(argument), operators.two_point_laplacian
        found = 0.5 * (self._apply(matrix, a * b) + a * self._apply(matrix, b) - b * self._apply(matrix, a))
        inflows = self._of_field(argument, lambda name: operators.inflows[name])
        rises = operators.rises[argument.id] if isinstance(argument, ast.Name) and inflows else []
        return _sum([found, *(self._at_faces(a, rise) * part for rise, part in zip(rises, inflows, strict=True))])

    def _at_faces(self, a: Any, matrix: Any) -> Any:
        """Return a coefficient a at a part of the boundary: ``a`` plus its rise, by a matrix, except at a jump."""
        rise = self._apply(matrix, a)
        size, inside = (np.abs(each.value if isinstance(each, Tangent) else each) for each in (rise, a))
        return a + rise * (size <= MAX_RISE * inside)

    def _scalar(self, node: ast.expr) -> Any:
        """Return the value of an expression that is a number or a field."""
        if isinstance(value := self.of(node), tuple):
            raise ValueError(f"{ast.unparse(node)} is a vector, expected a number or a field")
        return value

    def _vector(self, node: ast.expr) -> tuple[Any, ...]:
        """Return the components of a vector in a text; raise ValueError for a value that is no vector."""
        value, d = self.of(node), self.evaluator.mesh.ambient_dimension
        if not isinstance(value, tuple) or len(value) != d:
            raise ValueError(f"{ast.unparse(node)}: expected a vector of {d} component(s)")
        return value

    def _binary(self, op: ast.operator, a: Any, b: Any, node: ast.expr) -> Any:
        """Return a + b, a − b, a b, a/b or a**b of numbers, fields and vectors; ``node`` is for messages."""
        if isinstance(a, tuple) and isinstance(b, tuple):
            if not isinstance(op, ast.Add | ast.Sub) or len(a) != len(b):
                raise ValueError(f"{ast.unparse(node)}: vectors have sums, differences and products dot(a, b)")
            return tuple(self._binary(op, x, y, node) for x, y in zip(a, b, strict=True))
        if isinstance(a, tuple) or isinstance(b, tuple):
            if not isinstance(op, ast.Mult) and not (isinstance(op, ast.Div) and isinstance(a, tuple)):
                raise ValueError(f"{ast.unparse(node)}: a vector, expected a number or a field")
            pairs = [(x, b) for x in a] if isinstance(a, tuple) else [(a, y) for y in b]
            return tuple(self._binary(op, x, y, node) for x, y in pairs)
        match op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case ast.Div():
                return a / b
        return a**b if isinstance(a, Tangent) or isinstance(b, Tangent) else base_of(a, b) ** b


def base_of(values: Any, power: Any) -> Any:
    """Return the base of a power: for a fractional power, values that are negative by rounding count as 0."""
    is_whole = power.is_integer() if isinstance(power, float) else np.all(power == np.round(power))
    return values if is_whole else nonnegative(values)


def _sum(parts: list[Any]) -> Any:
    """Return the sum of at least one value."""
    return reduce(lambda a, b: a + b, parts)
