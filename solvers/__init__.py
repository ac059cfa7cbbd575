"""Finite-volume solvers for user-defined PDEs: meshes, terms of an equation, time stepping, files.

    from solvers import Advection, Diffusion, Equation, solve, sphere

Names load their module on first use, so that ``import solvers`` is fast.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis.convergence import ConvergenceStudy, convergence_study
    from .io.run_file import Column, FileError, Run, RunFile, read
    from .mesh.boundaries import Flux, Outflow, Periodic, Robin, Value, Wall
    from .mesh.icosphere import icosphere
    from .mesh.interval import interval
    from .mesh.mesh import Mesh, circle, sphere
    from .mesh.product import box, product, torus
    from .mesh.simplices.files import read_tetrahedra, read_triangles
    from .mesh.simplices.tetrahedra import ball, tetrahedra
    from .mesh.simplices.triangles import disk, triangles
    from .mesh.stack import stack
    from .mesh.symmetric import axisymmetric, radial
    from .recording.record import record, restart
    from .remap.deposit import deposit_points
    from .remap.push_forward import PushForward, push_forward
    from .terms.advection import Advection
    from .terms.conservation_law import ConservationLaw
    from .terms.diffusion import Diffusion, NonlinearDiffusion
    from .terms.drift.scharfetter_gummel import DriftDiffusion
    from .terms.face_fluxes import FaceFluxes, StreamFunction
    from .terms.laplacian import Laplacian
    from .terms.laws.euler import Euler
    from .terms.laws.shallow_water import ShallowWater
    from .terms.source import Source
    from .terms.term import StiffTerm, Term
    from .text.equation import from_text
    from .timestepping.equation import Equation, limit_positivity
    from .timestepping.events import SteadyState, Threshold
    from .timestepping.integrate import Integrator
    from .timestepping.methods import METHODS
    from .timestepping.noise import Noise
    from .timestepping.observers import Observer
    from .timestepping.schedules import Every, Listed, Logarithmic
    from .timestepping.solution import Solution
    from .timestepping.solve import solve
    from .timestepping.state import Exploding, NonFinite, State
    from .timestepping.steady import solve_steady
    from .transforms.harmonics import harmonic_transform
    from .transforms.harmonics_points import PointHarmonics
    from .transforms.interaction import Convolution, DenseKernel, Zonal
    from .transforms.pairwise import exponential_sums
    from .transforms.zonal import zonal_operator

_HOME = {
    ".analysis.convergence": ("ConvergenceStudy", "convergence_study"),
    ".mesh.mesh": ("Mesh", "circle", "sphere"),
    ".mesh.icosphere": ("icosphere",),
    ".mesh.interval": ("interval",),
    ".mesh.product": ("box", "product", "torus"),
    ".mesh.stack": ("stack",),
    ".mesh.symmetric": ("axisymmetric", "radial"),
    ".mesh.simplices.files": ("read_tetrahedra", "read_triangles"),
    ".mesh.simplices.tetrahedra": ("ball", "tetrahedra"),
    ".mesh.simplices.triangles": ("disk", "triangles"),
    ".transforms.pairwise": ("exponential_sums",),
    ".remap.push_forward": ("PushForward", "push_forward"),
    ".transforms.harmonics": ("harmonic_transform",),
    ".transforms.harmonics_points": ("PointHarmonics",),
    ".transforms.zonal": ("zonal_operator",),
    ".terms.conservation_law": ("ConservationLaw",),
    ".terms.drift.scharfetter_gummel": ("DriftDiffusion",),
    ".transforms.interaction": ("Convolution", "DenseKernel", "Zonal"),
    ".terms.laplacian": ("Laplacian",),
    ".terms.laws.euler": ("Euler",),
    ".terms.laws.shallow_water": ("ShallowWater",),
    ".recording.record": ("record", "restart"),
    ".remap.deposit": ("deposit_points",),
    ".mesh.boundaries": ("Flux", "Outflow", "Periodic", "Robin", "Value", "Wall"),
    ".terms.advection": ("Advection",),
    ".terms.face_fluxes": ("FaceFluxes", "StreamFunction"),
    ".terms.diffusion": ("Diffusion", "NonlinearDiffusion"),
    ".timestepping.equation": ("Equation", "limit_positivity"),
    ".timestepping.observers": ("Observer",),
    ".timestepping.state": ("Exploding", "NonFinite", "State"),
    ".terms.source": ("Source",),
    ".terms.term": ("StiffTerm", "Term"),
    ".text.equation": ("from_text",),
    ".timestepping.events": ("SteadyState", "Threshold"),
    ".timestepping.integrate": ("Integrator",),
    ".timestepping.methods": ("METHODS",),
    ".timestepping.noise": ("Noise",),
    ".timestepping.schedules": ("Every", "Listed", "Logarithmic"),
    ".timestepping.solution": ("Solution",),
    ".timestepping.solve": ("solve",),
    ".timestepping.steady": ("solve_steady",),
    ".io.run_file": ("Column", "FileError", "Run", "RunFile", "read"),
}  # fmt: skip
_INTERNAL = {
    "evolve": ".timestepping.evolution",
    "integrate": ".timestepping.integrate",
    "Stepper": ".timestepping.steppers",
    "STEPPERS": ".timestepping.steppers",
}  # public names once
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "METHODS",
    "Advection",
    "Column",
    "ConservationLaw",
    "ConvergenceStudy",
    "Convolution",
    "DenseKernel",
    "Diffusion",
    "DriftDiffusion",
    "Equation",
    "Euler",
    "Every",
    "Exploding",
    "FaceFluxes",
    "FileError",
    "Flux",
    "Integrator",
    "Laplacian",
    "Listed",
    "Logarithmic",
    "Mesh",
    "Noise",
    "NonFinite",
    "NonlinearDiffusion",
    "Observer",
    "Outflow",
    "Periodic",
    "PointHarmonics",
    "PushForward",
    "Robin",
    "Run",
    "RunFile",
    "ShallowWater",
    "Solution",
    "Source",
    "State",
    "SteadyState",
    "StiffTerm",
    "StreamFunction",
    "Term",
    "Threshold",
    "Value",
    "Wall",
    "Zonal",
    "axisymmetric",
    "ball",
    "box",
    "circle",
    "convergence_study",
    "deposit_points",
    "disk",
    "exponential_sums",
    "from_text",
    "harmonic_transform",
    "icosphere",
    "interval",
    "limit_positivity",
    "product",
    "push_forward",
    "radial",
    "read",
    "read_tetrahedra",
    "read_triangles",
    "record",
    "restart",
    "solve",
    "solve_steady",
    "sphere",
    "stack",
    "tetrahedra",
    "torus",
    "triangles",
    "zonal_operator",
]


def __getattr__(name: str) -> Any:
    if name in _INTERNAL:
        message = f"solvers.{name} is internal: use solvers.solve"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module(_INTERNAL[name], __name__), name)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
