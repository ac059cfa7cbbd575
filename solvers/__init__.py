"""Finite-volume solvers on meshes of closed manifolds: transport, diffusion and zonal operators for PDEs of your own.

    from solvers import Advection, Diffusion, Equation, State, evolve, sphere

Names load their module on first use, so that ``import solvers`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvers.io.run_file import Column, FileError, RunFile, read
    from solvers.mesh.interval import interval
    from solvers.mesh.mesh import Mesh, circle, sphere
    from solvers.mesh.product import product
    from solvers.mesh.stack import stack
    from solvers.remap.deposit import deposit_points
    from solvers.remap.push_forward import PushForward, push_forward
    from solvers.terms.advection import Advection, Diffusion
    from solvers.terms.conservation_law import ConservationLaw
    from solvers.timestepping.evolution import (
        STEPPERS,
        Equation,
        NonFinite,
        Observer,
        State,
        Stepper,
        evolve,
        limit_positivity,
    )
    from solvers.timestepping.schedules import Every, Listed, Logarithmic
    from solvers.transforms.harmonics import harmonic_transform
    from solvers.transforms.harmonics_points import PointHarmonics
    from solvers.transforms.pairwise import exponential_sums
    from solvers.transforms.zonal import zonal_operator

_HOME = {
    "solvers.mesh.mesh": ("Mesh", "circle", "sphere"),
    "solvers.mesh.interval": ("interval",),
    "solvers.mesh.product": ("product",),
    "solvers.mesh.stack": ("stack",),
    "solvers.transforms.pairwise": ("exponential_sums",),
    "solvers.remap.push_forward": ("PushForward", "push_forward"),
    "solvers.transforms.harmonics": ("harmonic_transform",),
    "solvers.transforms.harmonics_points": ("PointHarmonics",),
    "solvers.transforms.zonal": ("zonal_operator",),
    "solvers.terms.conservation_law": ("ConservationLaw",),
    "solvers.remap.deposit": ("deposit_points",),
    "solvers.terms.advection": ("Advection", "Diffusion"),
    "solvers.timestepping.evolution": (
        "STEPPERS", "Equation", "NonFinite", "Observer", "State", "Stepper", "evolve", "limit_positivity",
    ),
    "solvers.timestepping.schedules": ("Every", "Listed", "Logarithmic"),
    "solvers.io.run_file": ("Column", "FileError", "RunFile", "read"),
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
