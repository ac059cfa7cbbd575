"""Finite-volume solvers for user-defined PDEs: meshes, terms of an equation, time stepping, files.

    from solvers import Advection, Diffusion, Equation, solve, sphere

Names load their module on first use, so that ``import solvers`` is fast.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis.convergence import ConvergenceStudy as ConvergenceStudy
    from .analysis.convergence import convergence_study as convergence_study
    from .io.run_file import Column as Column
    from .io.run_file import FileError as FileError
    from .io.run_file import Run as Run
    from .io.run_file import RunFile as RunFile
    from .io.run_file import read as read
    from .mesh.boundaries import Flux as Flux
    from .mesh.boundaries import Outflow as Outflow
    from .mesh.boundaries import Periodic as Periodic
    from .mesh.boundaries import Robin as Robin
    from .mesh.boundaries import Value as Value
    from .mesh.boundaries import Wall as Wall
    from .mesh.icosphere import icosphere as icosphere
    from .mesh.interval import interval as interval
    from .mesh.mesh import Mesh as Mesh
    from .mesh.mesh import circle as circle
    from .mesh.mesh import sphere as sphere
    from .mesh.product import box as box
    from .mesh.product import product as product
    from .mesh.product import torus as torus
    from .mesh.simplices.files import read_tetrahedra as read_tetrahedra
    from .mesh.simplices.files import read_triangles as read_triangles
    from .mesh.simplices.tetrahedra import ball as ball
    from .mesh.simplices.tetrahedra import tetrahedra as tetrahedra
    from .mesh.simplices.triangles import disk as disk
    from .mesh.simplices.triangles import triangles as triangles
    from .mesh.stack import stack as stack
    from .mesh.symmetric import axisymmetric as axisymmetric
    from .mesh.symmetric import radial as radial
    from .recording.record import record as record
    from .recording.record import restart as restart
    from .remap.deposit import deposit_points as deposit_points
    from .remap.push_forward import PushForward as PushForward
    from .remap.push_forward import push_forward as push_forward
    from .terms.advection import Advection as Advection
    from .terms.conservation_law import ConservationLaw as ConservationLaw
    from .terms.diffusion import Diffusion as Diffusion
    from .terms.diffusion import NonlinearDiffusion as NonlinearDiffusion
    from .terms.drift.scharfetter_gummel import DriftDiffusion as DriftDiffusion
    from .terms.face_fluxes import FaceFluxes as FaceFluxes
    from .terms.face_fluxes import StreamFunction as StreamFunction
    from .terms.laplacian import Laplacian as Laplacian
    from .terms.laws.euler import Euler as Euler
    from .terms.laws.shallow_water import ShallowWater as ShallowWater
    from .terms.source import Source as Source
    from .terms.term import StiffTerm as StiffTerm
    from .terms.term import Term as Term
    from .text.equation import from_text as from_text
    from .timestepping.equation import Equation as Equation
    from .timestepping.equation import limit_positivity as limit_positivity
    from .timestepping.events import SteadyState as SteadyState
    from .timestepping.events import Threshold as Threshold
    from .timestepping.integrate import Integrator as Integrator
    from .timestepping.methods import METHODS as METHODS
    from .timestepping.noise import Noise as Noise
    from .timestepping.observers import Observer as Observer
    from .timestepping.schedules import Every as Every
    from .timestepping.schedules import Listed as Listed
    from .timestepping.schedules import Logarithmic as Logarithmic
    from .timestepping.solution import Solution as Solution
    from .timestepping.solve import solve as solve
    from .timestepping.state import Exploding as Exploding
    from .timestepping.state import NonFinite as NonFinite
    from .timestepping.state import State as State
    from .timestepping.steady import solve_steady as solve_steady
    from .transforms.harmonics import harmonic_transform as harmonic_transform
    from .transforms.harmonics_points import PointHarmonics as PointHarmonics
    from .transforms.interaction import Convolution as Convolution
    from .transforms.interaction import DenseKernel as DenseKernel
    from .transforms.interaction import Zonal as Zonal
    from .transforms.pairwise import exponential_sums as exponential_sums
    from .transforms.zonal import zonal_operator as zonal_operator

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

__all__ = sorted(_MODULES)


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
