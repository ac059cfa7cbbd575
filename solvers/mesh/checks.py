"""Checks of the arguments of terms: shapes and dtypes at each call, finiteness once."""

from __future__ import annotations

import dis
import warnings
from collections.abc import Sequence
from inspect import signature
from types import FunctionType
from typing import Any
from weakref import WeakSet

import numpy as np

from ..backends import name_of
from .mesh import Mesh

TILE = 1 << 16  # faces checked at a time
READERS = {"eval", "exec", "locals", "vars"}  # functions that read any argument of their caller


def check_unmasked(name: str, array: Any) -> None:
    """Raise ValueError for a masked array with hidden numbers, since computations would use these numbers.

    The array may be an element of a list or a tuple.
    """
    for part in array if isinstance(array, list | tuple) else (array,):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            hidden = int(np.asarray(part.mask).sum())
            raise ValueError(f"{name}: {hidden} of {part.size} masked: expected numbers, such as those of filled(…)")


def as_floats(name: str, array: Any) -> Any:
    """Return numbers as an array: float32 and float64 unchanged, integers and sequences in float64.

    Raises TypeError for other numbers, such as complex ones, and ValueError for masked numbers.
    """
    check_unmasked(name, array)
    found = array if hasattr(array, "dtype") else np.asarray(array)
    if found.dtype.kind not in "fiu":
        what = f"of dtype {found.dtype}" if found is array else f"= {type(array).__name__}"
        raise TypeError(f"{name} {what}: expected real numbers")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def as_numbers(values: Any) -> Any:
    """Return numbers as an array of complex128 if they are complex, else of float64."""
    return np.asarray(values, dtype=np.complex128 if np.iscomplexobj(values) else np.float64)


def check_array(name: str, array: Any, shape: tuple[int, ...], rows: str = "cells", kinds: str = "f") -> None:
    """Raise TypeError unless ``array`` holds floating-point numbers, ValueError unless its shape is ``shape``.

    rows    name of the entities that shape[0] counts, for the message
    kinds   accepted kinds of numbers in NumPy's letters, "fc" also for complex ones
    Masked numbers raise ValueError.
    """
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        raise TypeError(f"{name} = {type(array).__name__}: expected an array {shape} of floating-point numbers")
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} of dtype {array.dtype}: expected floating-point numbers, such as float64")
    if array.shape != shape:
        raise ValueError(f"{name} of shape {array.shape}: expected {shape}, as the mesh has {shape[0]} {rows}")
    check_unmasked(name, array)


def check_field(name: str, array: Any, mesh: Mesh, fields: int = 0, kinds: str = "f") -> None:
    """Raise TypeError or ValueError unless ``array`` holds floating-point numbers of shape (cells,) or (fields, cells).

    With ``fields`` > 0 only (fields, cells) with that number of fields is accepted. Raises ValueError for masked
    numbers and for several fields that are not contiguous. ``kinds`` as in :func:`check_array`.
    """
    if getattr(array, "ndim", 0) == 2 or fields:
        count = fields or (len(array) if hasattr(array, "__len__") else 1)
        check_array(name, array, (count, mesh.cells), "fields", kinds)
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} of strides {array.strides}: expected a contiguous array")
    else:
        check_array(name, array, (mesh.cells,), kinds=kinds)


def check_finite(name: str, array: Any) -> None:
    """Raise ValueError for NaN or ∞, naming the first such entry, and for masked numbers."""
    check_unmasked(name, array)
    finite = np.isfinite(array)
    if not finite.all():
        flat = array.reshape(-1)
        first = int(finite.reshape(-1).argmin())
        number = complex(flat[first]) if flat.dtype.kind == "c" else float(flat[first])
        raise ValueError(f"{name}[{first}] = {number}: expected finite numbers")


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a number, or of an array on any device."""
    return value.shape if hasattr(value, "shape") else np.shape(value)


def check_number(name: str, value: Any, above: float | None = None) -> None:
    """Raise TypeError unless ``value`` is one real number, ValueError unless it is finite and ≥ 0 (or > ``above``)."""
    expected = "expected a number >= 0" if above is None else f"expected a number > {above}"
    if not isinstance(value, (int, float, np.integer, np.floating)):
        what = f"an array {value.shape}" if hasattr(value, "shape") else _one_line_repr(value)
        raise TypeError(f"{name} = {what}: {expected}")
    if not (value >= 0 if above is None else value > above) or not value < np.inf:
        raise ValueError(f"{name} = {value}: {expected}, finite")


def check_reals(name: str, numbers: Any, expected: str = "real numbers", kinds: str = "fiub") -> None:
    """Raise TypeError unless a number, or an array on any device, is real; raise ValueError for masked numbers.

    expected   description of valid numbers for the message
    kinds      accepted kinds of numbers in NumPy's letters
    """
    check_unmasked(name, numbers)
    try:
        found = numbers if hasattr(numbers, "dtype") else np.asarray(numbers)
    except ValueError:
        raise TypeError(f"{name}: rows of unequal lengths: expected {expected}") from None
    if found.dtype.kind not in kinds:
        what = f"of dtype {found.dtype}" if found.ndim else f"= {_one_line_repr(numbers)}"
        raise TypeError(f"{name} {what}: expected {expected}")


def check_on_host(name: str, mesh: Mesh) -> None:
    """Raise ValueError for a mesh on another device than the CPU.

    name   name of the class that accepts no such mesh, for the message
    """
    if mesh is not mesh.on_host:
        raise ValueError(f"{name} on a mesh of the {name_of(mesh.backend)}: expected a mesh of the cpu")


def _one_line_repr(value: Any) -> str:
    """Return the repr of a value in one line."""
    return " ".join(repr(value).split())


def check_call(name: str, function: Any, arguments: str = "") -> None:
    """Raise TypeError unless ``function`` is callable, with ``arguments`` such as "t, u" if these are given."""
    if not callable(function):
        raise TypeError(
            f"{name} = {type(function).__name__}: expected a function" + f" of ({arguments})" * bool(arguments)
        )
    if arguments and not takes(function, arguments.count(",") + 1):
        called = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"{name} = {called}{signature(function)}: expected a function of ({arguments})")


def listed_calls(name: str, given: Any, arguments: str, others: tuple[type, ...] = ()) -> Sequence[Any]:
    """Return one function, or a sequence of functions, as a sequence; ``others`` are types of other valid objects.

    Raises TypeError for classes and for wrong signatures.
    """
    found = given if isinstance(given, Sequence) else (given,)
    for number, one in enumerate(found):
        if isinstance(one, type):
            raise TypeError(f"{name}[{number}] = {one.__name__}: expected an object, as {one.__name__}(…)")
        if not isinstance(one, others):
            check_call(f"{name}[{number}]", one, arguments)
    return found


def takes(function: Any, count: int) -> bool:
    """Return whether a function accepts ``count`` positional arguments; True if the signature is unknown."""
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a function in C has no signature
        return True
    return True


def ignores_time(function: Any) -> bool:
    """Return whether a user's function (t, …) is written in Python and never reads its first argument."""
    if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
        return False
    code = function.__code__
    time = code.co_varnames[0]
    read = [step.argval for step in dis.get_instructions(code)]
    reads_time = any(time in one if isinstance(one, tuple) else time == one for one in read)
    return not reads_time and not READERS & set(code.co_names)


def check_unchanged(name: str, values: Any, before: Any) -> None:
    """Raise ValueError if a user's function has modified the field ``values`` passed to it, which equaled ``before``.

    name   name of the function for the message
    """
    if values is not before and not (values == before).all():
        raise ValueError(f"{name} changes the field u that it is given: expected a new array")


def check_mesh(mesh: Any) -> None:
    """Raise TypeError for an object that is not a mesh, ValueError for a mesh whose arrays contradict each other.

    Each mesh is checked once.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh = {type(mesh).__name__}: expected a Mesh")
    if mesh in _CHECKED or mesh.is_by_formula:
        return
    cells, faces, d = mesh.cells, mesh.faces, mesh.centers.shape[-1]
    shapes = {
        "centers": (cells, d), "face_cells": (faces, 2), "face_centers": (faces, d), "face_normals": (faces, d),
        "face_curvatures": (faces,), "cell_start": (cells + 1,),
    }  # fmt: skip
    for name, shape in shapes.items():
        found = getattr(mesh, name).shape
        if found != shape:
            raise ValueError(f"mesh.{name} of shape {found}: expected {shape}, for {cells} cells and {faces} faces")
    for name in ("face_cells", "cell_start", "cell_sides"):
        if getattr(mesh, name).dtype.kind != "i":
            raise ValueError(f"mesh.{name} of dtype {getattr(mesh, name).dtype}: expected integers")
    to_host = mesh.backend.to_host
    start, sides, owners = to_host(mesh.cell_start), to_host(mesh.cell_sides), to_host(mesh.face_cells).reshape(-1)
    if len(sides) != start[-1] or start[0] != 0 or not (np.diff(start) > 0).all():
        raise ValueError(f"mesh.cell_start: expected to rise from 0 to the {len(sides)} of cell_sides")
    if len(sides) and not (sides.min() >= 0 and sides.max() < 2 * faces):
        raise ValueError(f"mesh.cell_sides up to {sides.max()}: expected sides 0 to {2 * faces - 1}")
    wrong = np.flatnonzero(owners[sides] != np.repeat(np.arange(cells), np.diff(start)))
    if len(wrong):
        raise ValueError(f"mesh.cell_sides[{wrong[0]}] = {sides[wrong[0]]}: expected a side of its own cell")
    inner = np.repeat(owners[0::2] != owners[1::2], 2)
    if not np.array_equal(np.sort(sides[inner[sides]]), np.flatnonzero(inner)):
        raise ValueError("mesh.cell_sides: expected each side of an inner face once")
    if not (to_host(mesh.volumes) > 0).all():
        raise ValueError(f"mesh.volumes: expected numbers > 0, the least is {to_host(mesh.volumes).min()}")
    _check_normals(mesh.on_host)
    _CHECKED.add(mesh)


def _check_normals(mesh: Mesh) -> None:
    """Raise ValueError for face normals that are longer than 1 or point from a face's second cell to its first.

    At a wall, a normal must not point into the wall's cell. Faces are checked in tiles to limit the memory.
    """
    own_side = np.zeros(2 * mesh.faces, dtype=bool)
    own_side[mesh.cell_sides] = True
    for begin in range(0, mesh.faces, TILE):
        part = slice(begin, begin + TILE)
        normals, (first, second) = mesh.face_normals[part], mesh.face_cells[part].T
        is_wall = first == second
        ends = np.where(is_wall[:, None], mesh.face_centers[part], mesh.centers[second])
        along = (mesh.shortest(ends - mesh.centers[first]) * normals).sum(axis=1)
        along *= np.where(is_wall & ~own_side[0::2][part], -1.0, 1.0)
        lower_bound = np.where(is_wall, -1e-5 * mesh.width, 0.0)  # a cell center may lie on the boundary
        lengths = np.linalg.norm(normals, axis=1)  # below 1 for the mean normal of a curved face
        wrong = np.flatnonzero(~(lengths < 1 + 1e-5) | ~(along > lower_bound))
        if len(wrong):
            k = wrong[0]
            raise ValueError(
                f"mesh.face_normals[{begin + k}] = {normals[k]}: expected a unit vector from the first cell to the"
                " second, out of the mesh at a wall; a periodic mesh has to be embedded, as a circle is in the plane"
            )


def is_same(one: Mesh, other: Mesh) -> bool:
    """Return whether two meshes have the same cells, with centers and volumes equal to a relative tolerance of 1e-5."""
    if one is other:
        return True
    if one.cells != other.cells or one.ambient_dimension != other.ambient_dimension:
        return False
    if one.is_by_formula and other.is_by_formula and one.manifold == other.manifold:
        return bool(np.array_equal(one.ring_cells, other.ring_cells))
    pairs = [(mesh.on_host.centers, mesh.on_host.volumes) for mesh in (one, other)]
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-5 * one.width) for a, b in zip(*pairs, strict=True))


_CHECKED: WeakSet[Mesh] = WeakSet()  # terms are often constructed repeatedly on one mesh


def warn_of_pointwise(velocity: Any, time: float, values: Any) -> None:
    """Warn if the values of a user's velocity function in a cell depend mostly on the field in that same cell.

    The test increases the largest |u| by a thousandth. A convolution then changes in many cells, each by little; a
    pointwise velocity such as 1 − u changes in that cell only. The warning is issued where that cell has more than half
    of the total change.
    """
    if not isinstance(velocity, FunctionType):
        return
    changed = values.copy()
    cell = int(np.abs(values).argmax())
    changed[cell] += 1e-3 * np.abs(values[cell]) + 1e-6
    one = velocity(time, values)
    if not hasattr(one, "shape") or one.shape[:1] != values.shape:
        return  # the term that uses this velocity raises an error for its shape
    one, other = one.copy(), velocity(time, changed)
    change = np.abs(other - one).reshape(len(values), -1).sum(axis=1)
    if change[cell] > 0.5 * change.sum():
        warnings.warn(
            f"velocity in cell {cell} depends on the field there: waves then move at another speed than the velocity's;"
            " use ConservationLaw(mesh, flux, speed) for ∂ₜu + div f(u) = 0",
            RuntimeWarning,
            stacklevel=4,
        )
