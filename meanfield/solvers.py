"""Alias of the package `solvers`: its names, loaded on first use.

    from meanfield.solvers import Advection, Diffusion, Equation, solve, sphere

is the same as from `solvers`; import modules within the package from there (`solvers.mesh.mesh`).
"""

from typing import TYPE_CHECKING, Any

import solvers as _solvers
from solvers import __all__ as __all__

if TYPE_CHECKING:
    from solvers import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_solvers, name)


def __dir__() -> list[str]:
    return list(__all__)
