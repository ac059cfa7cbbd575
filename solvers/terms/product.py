"""Advection on the product of two meshes, along both in one stage."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ..backends import backend_for
from ..mesh.checks import check_array, check_call
from ..mesh.mesh import Floats, Mesh
from .advection import Advection
from .term import Step

Velocities = Callable[[float, Floats], tuple[Floats, Floats]]


class ProductAdvection:
    """Advection −div_c(ρ X_c) − div_r(ρ X_r) of a density ρ (rows, columns) on the product of two meshes.

    One mesh has a cell for each row, the other a cell for each column; X_r and X_c are velocities on these meshes. Both
    parts are `solvers.terms.advection.Advection`, one on a stack of all rows and one on a stack of all columns. Both
    parts act in the same Runge–Kutta stage (unsplit), so that an unresolved cell moves diagonally at its own velocity.
    Each part may remove at most half of the mass of a cell.

    in_rows      stack of copies of the mesh of columns, one for each row
    in_columns   stack of copies of the mesh of rows, one for each column
    shape        (rows, columns)
    velocities   (time, ρ (rows, columns)) → X_c (rows, columns, d) and X_r (rows, columns, d'), tangent to their meshes

    States may be flat. Raises ValueError if the two stacks have different numbers of cells.
    """

    def __init__(self, in_rows: Mesh, in_columns: Mesh, shape: tuple[int, int], velocities: Velocities) -> None:
        if not in_rows.cells == in_columns.cells == shape[0] * shape[1]:
            raise ValueError(f"stacks of {in_rows.cells} and {in_columns.cells} cells: expected {shape} of both")
        check_call("velocities", velocities)
        self.shape, self.velocities = shape, velocities
        given: Any = velocities  # prepare() evaluates the velocities and passes them to both parts
        self._in_rows = Advection(in_rows, given, nonnegative=True)
        self._in_columns = Advection(in_columns, given, nonnegative=True)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_in_rows": copy(self._in_rows), "_in_columns": copy(self._in_columns)}

    def prepare(self, time: float, values: Floats) -> Step:
        check_array("values", values.reshape(-1), (self.shape[0] * self.shape[1],))
        density = values.reshape(self.shape)
        in_rows, in_columns = self.velocities(time, density)
        of_rows, of_columns = (each.mesh.centers.shape for each in (self._in_rows, self._in_columns))
        check_array("velocity in rows", in_rows, (*self.shape, of_rows[1]))
        check_array("velocity in columns", in_columns, (*self.shape, of_columns[1]))
        row_velocity = in_rows.ravel().reshape(of_rows)  # contiguous, as kernels require
        column_velocity = in_columns.swapaxes(0, 1).reshape(of_columns)
        row_dt = self._in_rows.prepare_with(row_velocity, values.reshape(-1))
        column_dt = self._in_columns.prepare_with(column_velocity, density.T.reshape(-1))
        with np.errstate(divide="ignore"):
            step: Step = np.divide(1.0, np.divide(1.0, row_dt) + np.divide(1.0, column_dt))
            return step

    def rate(self, dt: float, rate: Floats) -> None:
        rows, columns = self.shape
        transposed = backend_for(rate).zeros((columns, rows))
        self._in_rows.rate(2 * dt, rate.reshape(-1))  # doubling dt limits the outflow to half of a cell's mass
        self._in_columns.rate(2 * dt, transposed.reshape(-1))
        rate.reshape(self.shape)[...] += transposed.T
