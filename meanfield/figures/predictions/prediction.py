"""A prediction of a diagnostic: its curve, and the moment of what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.figures.axes import Floats


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predicted values of a diagnostic.

    trace    times (samples,) → (samples,), NaN where there is none
    text     what the curve is, as in "exact"
    moment   time of an event, NaN without one
    event    what happens then
    """

    trace: Callable[[Floats], Floats]
    text: str = "exact"
    moment: float = np.nan
    event: str = ""
