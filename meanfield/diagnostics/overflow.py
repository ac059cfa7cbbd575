"""Diagnostics out of the range of floating-point numbers: recorded as infinite, and stated in every description of a
run.

Tokens without a layer norm are unbounded. Their energy contains e^{β|x|²}, which exceeds the largest double, 1.8e308,
for |x| > √(709/β), long before the tokens overflow. Times and states of the run stay accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from solvers.mesh.mesh import Floats

OVERFLOW = (("overflow", "inf where it exceeds 1.8e308"),)  # attribute of the dataset


def overflows(times: Floats, diagnostics: Mapping[str, Floats]) -> dict[str, float]:
    """Return the first time at which each diagnostic is infinite, by name, for the diagnostics that overflow.

    times         (samples,)
    diagnostics   by their names, values (samples, ...)
    """
    found = {}
    for name, values in diagnostics.items():
        infinite = np.isinf(values).any(axis=tuple(range(1, values.ndim)))
        if infinite.any():
            found[name] = float(times[np.argmax(infinite)])
    return found


def describe_overflow(found: Mapping[str, float], moment: Callable[[float], str] = "t = {:.4g}".format) -> str:
    """Return text such as "energy infinite (beyond 1.8e308) from t = 12.5 on", from the times by name; "" for none."""
    texts = []
    for time in sorted(set(found.values())):
        names = [name for name in found if found[name] == time]
        texts.append(f"{' and '.join(names)} infinite (beyond 1.8e308) from {moment(time)} on")
    return ", ".join(texts)
