"""Mean-field theory of Transformers: tokens as a probability density moved by self-attention.

``meanfield.solvers`` has the names of the package `solvers`, of finite volumes for PDEs of your own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from meanfield.shadowing import refuse_shadowed

if TYPE_CHECKING:
    from meanfield import solvers as solvers

__version__ = "0.1.0"

refuse_shadowed()


def __getattr__(name: str) -> Any:
    if name != "solvers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("meanfield.solvers")
