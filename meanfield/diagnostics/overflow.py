"""Diagnostics beyond the range of numbers: recorded as infinite, and stated wherever a run is described.

Tokens that no layer norm keeps on a sphere have no bound. Their energy holds e^{β|x|²}, which exceeds the largest
double, 1.8e308, from |x| = √(709/β) on, long before the tokens do. Times and states of a run stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from solvers.mesh.mesh import Floats

OVERFLOW = (("overflow", "inf where it exceeds 1.8e308"),)  # attribute of the dataset


def overflows(times: Floats, diagnostics: Mapping[str, Floats]) -> dict[str, float]:
    """The time from which on each diagnostic is infinite at some sample; only of those that are.

    times         (samples,)
    diagnostics   by their names, values (samples, ...)
    """
    found = {}
    for name, values in diagnostics.items():
        infinite = np.isinf(values).any(axis=tuple(range(1, values.ndim)))
        if infinite.any():
            found[name] = float(times[np.argmax(infinite)])
    return found


def overflow_in_words(found: Mapping[str, float], moment: Callable[[float], str] = "t = {:.4g}".format) -> str:
    """Return overflows as text, "energy infinite (beyond 1.8e308) from t = 12.5 on" for example; "" for none."""
    texts = []
    for time in sorted(set(found.values())):
        names = [name for name in found if found[name] == time]
        texts.append(f"{' and '.join(names)} infinite (beyond 1.8e308) from {moment(time)} on")
    return ", ".join(texts)
