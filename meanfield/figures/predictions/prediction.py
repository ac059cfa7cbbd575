"""Prediction of a diagnostic: a curve, and the time of a predicted event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.figures.axes import Floats


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted values of a diagnostic over time, and the time of a predicted event.

    trace   times (samples,) → (samples,), NaN without a prediction
    text    description of the curve, such as "exact"
    moment  time of an event, or NaN
    event   description of the event
    """

    trace: Callable[[Floats], Floats]
    text: str = "exact"
    moment: float = np.nan
    event: str = ""
