"""Calls of components: what goes wrong in a function of a user's own is one line with its file and line."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.components.component import Component
from solvers.mesh.mesh import Floats


def call(component: Component, *arguments: Any, **options: Any) -> Any:
    """Its value. Raises CaseError, from what the function raises, with the line of it."""
    try:
        return component.function(*arguments, **options)
    except Exception as error:
        code = component.function.__code__
        file, first = code.co_filename, code.co_firstlineno  # of a call with other arguments, which enters nothing
        lines = [first] + [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise CaseError(f"component {component.name}: {file}, line {lines[-1]}: {what}") from error


def array(component: Component, shape: tuple[int, ...], *arguments: Any, **options: Any) -> Floats:
    """(shape) its value, as floats; a number stands for an array of it. Raises CaseError for another shape."""
    value, what = call(component, *arguments, **options), f"component {component.name}: returns"
    if np.ma.is_masked(value):
        raise CaseError(f"{what} an array with masked numbers: expected numbers {shape}")
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise CaseError(f"{what} {type(value).__name__}: expected numbers {shape}") from None
    if found.shape not in (shape, ()):
        raise CaseError(f"{what} an array {found.shape}: expected {shape}")
    return np.array(np.broadcast_to(found, shape))  # a copy: it may be an argument, such as the mesh's centers
