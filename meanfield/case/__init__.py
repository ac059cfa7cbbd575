"""A case file from TOML to a frozen, checked Case: loading, overrides, combinations, validation, messages.

The sections of a case are typed records, from which one may also be built in Python:

    from meanfield.case import Attention, Case, Circle, Perturbed, Time

    case = Case(domain=Circle(resolution=64), attention=Attention(beta=4.0), initial=Perturbed(), time=Time(end=2.0))

Names load their module on first use.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "meanfield.case.case": ("Case",),
    "meanfield.case.errors": ("CaseError",),
    "meanfield.domains.axisymmetric.section": ("Axisymmetric",),
    "meanfield.domains.free_radius.section": ("FreeRadiusCircle", "FreeRadiusSphere"),
    "meanfield.domains.line.section": ("Line",),
    "meanfield.domains.particles.section": ("Particles",),
    "meanfield.domains.sphere.section": ("Circle", "Sphere"),
    "meanfield.sections.attention": (
        "Attention", "FeedForward", "Head", "Linear", "Logistic", "RandomMatrix", "Replicator",
    ),
    "meanfield.sections.evolution": ("HandOver", "Stabilizers", "Time", "TokenSequence"),
    "meanfield.sections.initial": (
        "Array", "ByLabel", "Component", "Equiangular", "Formula", "Gaussian", "Harmonic", "Interval", "Moebius",
        "Perturbed", "Points", "Snapshot", "Tokens", "Uniform", "VonMisesFisher", "Waves",
    ),
    "meanfield.sections.output": ("Output",),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
