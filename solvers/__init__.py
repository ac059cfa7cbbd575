"""Finite-volume solvers on meshes of closed manifolds: transport, diffusion and zonal operators for PDEs of your own.

    from solvers import Advection, Diffusion, Equation, State, evolve, sphere

Names load their module on first use, so that ``import solvers`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvers.conservation_law import ConservationLaw
    from solvers.deposit import deposit_points
    from solvers.evolution import (
        STEPPERS,
        Equation,
        NonFinite,
        Observer,
        State,
        Stepper,
        evolve,
        limit_positivity,
    )
    from solvers.harmonics import harmonic_transform
    from solvers.harmonics_points import PointHarmonics
    from solvers.mesh import Mesh, circle, sphere
    from solvers.mesh_interval import interval
    from solvers.mesh_product import product
    from solvers.mesh_stack import stack
    from solvers.output import Column, FileError, RunFile, read
    from solvers.pairwise import exponential_sums
    from solvers.push_forward import PushForward, push_forward
    from solvers.schedules import Every, Listed, Logarithmic
    from solvers.terms import Advection, Diffusion
    from solvers.zonal import zonal_operator

_HOME = {
    "solvers.mesh": ("Mesh", "circle", "sphere"),
    "solvers.mesh_interval": ("interval",),
    "solvers.mesh_product": ("product",),
    "solvers.mesh_stack": ("stack",),
    "solvers.pairwise": ("exponential_sums",),
    "solvers.push_forward": ("PushForward", "push_forward"),
    "solvers.harmonics": ("harmonic_transform",),
    "solvers.harmonics_points": ("PointHarmonics",),
    "solvers.zonal": ("zonal_operator",),
    "solvers.conservation_law": ("ConservationLaw",),
    "solvers.deposit": ("deposit_points",),
    "solvers.terms": ("Advection", "Diffusion"),
    "solvers.evolution": (
        "STEPPERS", "Equation", "NonFinite", "Observer", "State", "Stepper", "evolve", "limit_positivity",
    ),
    "solvers.schedules": ("Every", "Listed", "Logarithmic"),
    "solvers.output": ("Column", "FileError", "RunFile", "read"),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "STEPPERS",
    "Advection",
    "Column",
    "ConservationLaw",
    "Diffusion",
    "Equation",
    "Every",
    "FileError",
    "Listed",
    "Logarithmic",
    "Mesh",
    "NonFinite",
    "Observer",
    "PointHarmonics",
    "PushForward",
    "RunFile",
    "State",
    "Stepper",
    "circle",
    "deposit_points",
    "evolve",
    "exponential_sums",
    "harmonic_transform",
    "interval",
    "limit_positivity",
    "product",
    "push_forward",
    "read",
    "sphere",
    "stack",
    "zonal_operator",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'solvers' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
