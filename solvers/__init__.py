"""Finite-volume solvers on meshes of closed manifolds: transport, diffusion and zonal operators for PDEs of your own.

    from solvers import Advection, Diffusion, Equation, State, evolve, sphere

Names load their module on first use, so that ``import solvers`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .io.run_file import Column, FileError, RunFile, read
    from .mesh.interval import interval
    from .mesh.mesh import Mesh, circle, sphere
    from .mesh.product import product
    from .mesh.stack import stack
    from .remap.deposit import deposit_points
    from .remap.push_forward import PushForward, push_forward
    from .terms.advection import Advection, Diffusion
    from .terms.conservation_law import ConservationLaw
    from .terms.source import Source
    from .timestepping.events import SteadyState, Threshold
    from .timestepping.evolution import (
        STEPPERS,
        Equation,
        NonFinite,
        Observer,
        State,
        Stepper,
        evolve,
        limit_positivity,
    )
    from .timestepping.integrate import Integrator, integrate
    from .timestepping.methods import METHODS
    from .timestepping.schedules import Every, Listed, Logarithmic
    from .timestepping.solve import Solution, solve
    from .timestepping.state import Exploding
    from .transforms.harmonics import harmonic_transform
    from .transforms.harmonics_points import PointHarmonics
    from .transforms.pairwise import exponential_sums
    from .transforms.zonal import zonal_operator

_HOME = {
    ".mesh.mesh": ("Mesh", "circle", "sphere"),
    ".mesh.interval": ("interval",),
    ".mesh.product": ("product",),
    ".mesh.stack": ("stack",),
    ".transforms.pairwise": ("exponential_sums",),
    ".remap.push_forward": ("PushForward", "push_forward"),
    ".transforms.harmonics": ("harmonic_transform",),
    ".transforms.harmonics_points": ("PointHarmonics",),
    ".transforms.zonal": ("zonal_operator",),
    ".terms.conservation_law": ("ConservationLaw",),
    ".remap.deposit": ("deposit_points",),
    ".terms.advection": ("Advection", "Diffusion"),
    ".timestepping.evolution": (
        "STEPPERS", "Equation", "NonFinite", "Observer", "State", "Stepper", "evolve", "limit_positivity",
    ),
    ".terms.source": ("Source",),
    ".timestepping.events": ("SteadyState", "Threshold"),
    ".timestepping.integrate": ("Integrator", "integrate"),
    ".timestepping.methods": ("METHODS",),
    ".timestepping.schedules": ("Every", "Listed", "Logarithmic"),
    ".timestepping.solve": ("Solution", "solve"),
    ".timestepping.state": ("Exploding",),
    ".io.run_file": ("Column", "FileError", "RunFile", "read"),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "METHODS",
    "STEPPERS",
    "Advection",
    "Column",
    "ConservationLaw",
    "Diffusion",
    "Equation",
    "Every",
    "Exploding",
    "FileError",
    "Integrator",
    "Listed",
    "Logarithmic",
    "Mesh",
    "NonFinite",
    "Observer",
    "PointHarmonics",
    "PushForward",
    "RunFile",
    "Solution",
    "Source",
    "State",
    "SteadyState",
    "Stepper",
    "Threshold",
    "circle",
    "deposit_points",
    "evolve",
    "exponential_sums",
    "harmonic_transform",
    "integrate",
    "interval",
    "limit_positivity",
    "product",
    "push_forward",
    "read",
    "solve",
    "sphere",
    "stack",
    "zonal_operator",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    """All public names, for ``dir`` and ``help``."""
    return sorted({*globals(), *__all__})
