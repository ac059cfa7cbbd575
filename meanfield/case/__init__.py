"""Case files in TOML and frozen, checked cases: loading, overrides, combinations, validation and messages.

The sections of a case are typed records. A case can also be built from them in Python:

    from meanfield.case import Attention, Case, Circle, Perturbed, Time

    case = Case(domain=Circle(resolution=64), attention=Attention(beta=4.0), initial=Perturbed(), time=Time(end=2.0))

Each name loads its module on first use. The names of domains are the classes in the table of domains.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "meanfield.case.case": ("Case",),
    "meanfield.case.errors": ("CaseError",),
    "meanfield.sections.attention": (
        "Attention", "FeedForward", "Head", "Linear", "Logistic", "RandomMatrix", "Replicator",
    ),
    "meanfield.sections.evolution": ("Handover", "Output", "Stabilizers", "Time", "TokenSequence"),
    "meanfield.sections.initial": (
        "Array", "ByLabel", "Component", "Equiangular", "Formula", "Gaussian", "Harmonic", "Interval", "Moebius",
        "Perturbed", "Points", "Snapshot", "Tokens", "Uniform", "Values", "VonMisesFisher", "Waves",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    from meanfield.domains.table import DOMAINS

    modules = {kind.__name__: kind.__module__ for kind in DOMAINS.values()}
    modules |= {each: module for module, names in _HOME.items() for each in names}
    if name == "__all__":
        return sorted(modules)
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(modules[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__getattr__("__all__")]
