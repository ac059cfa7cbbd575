"""Predictions of a case by the names of the diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from meanfield.figures.predictions.flows import (
    centroid_of_equiangular,
    centroid_of_moebius,
    centroid_of_selection,
    radius_of_constant_field,
)
from meanfield.figures.predictions.gaussian import variance_of
from meanfield.figures.predictions.pair import centroid_of_pair, centroid_of_two, radius_of_two
from meanfield.figures.predictions.prediction import Prediction

if TYPE_CHECKING:
    from meanfield.case.case import Case


def predictions_of(case: Case) -> dict[str, Prediction]:
    """Return the predicted curves for a case by the names of the diagnostics, the first valid one of each."""
    found: dict[str, Prediction] = {}
    for name, predict in PREDICTIONS:
        if name not in found and (prediction := predict(case)) is not None:
            found[name] = prediction
    return found


PREDICTIONS: tuple[tuple[str, Callable[[Case], Prediction | None]], ...] = (
    ("variance", variance_of),
    ("centroid", centroid_of_pair),
    ("centroid", centroid_of_two),
    ("centroid", centroid_of_moebius),
    ("centroid", centroid_of_equiangular),
    ("centroid", centroid_of_selection),
    ("radius", radius_of_constant_field),
    ("radius", radius_of_two),
)
