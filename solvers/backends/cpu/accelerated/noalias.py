"""Assumption that the arrays a kernel writes share no memory with its other arguments.

Numba sets the flag for no public option: this is the one file that reaches into its internals for it. Without the
assumption README's main job takes 1.3 times as long.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba.core.cpu import CPUTargetOptions
from numba.core.registry import cpu_target


class _ArraysApart(CPUTargetOptions):
    """Options of functions whose arguments are apart in memory."""

    def finalize(self, flags: Any, options: Any) -> None:
        super().finalize(flags, options)
        flags.noalias = True


_APART = SimpleNamespace(
    options=_ArraysApart, typing_context=cpu_target.typing_context, target_context=cpu_target.target_context
)


def assume_no_alias(dispatcher: Any) -> None:
    """Compile the function of a dispatcher under the assumption."""
    dispatcher._compiler.targetdescr = _APART
