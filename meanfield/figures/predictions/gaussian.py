"""Covariance of a Gaussian density without layer norm, which stays Gaussian: A = V(m + βSx) for Q = K = I."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.predictions.prediction import Prediction

if TYPE_CHECKING:
    from meanfield.case.case import Case

HUGE = 1e8  # ratio to the first variance at which the integration ends: 1e-8 of the time to blow-up remains
AHEAD = 2.0  # multiple of the end of the run up to which a blow-up is searched


def variance_of(case: Case) -> Prediction | None:
    """Return the predicted variance tr S of a Gaussian density of covariance S, with the time of its blow-up if any.

    The initial state is N(m, sI), without layer norm. None for all other cases.
    """
    from meanfield.sections.evolution import Stabilizers
    from meanfield.sections.initial import Gaussian

    start, stabilizers, d = case.initial, case.stabilizers, case.domain.d
    if not isinstance(start, Gaussian) or not isinstance(start.variance, float) or case.domain.has_tokens:
        return None
    in_layers = case.time.method == "layers"
    expected = Stabilizers(layer_norm="none", gate=stabilizers.gate, residual=not in_layers)
    value = _value(case)
    if value is None or stabilizers != expected or case.feed_forward is not None or case.reaction is not None:
        return None
    steepness, first = case.attention.beta * value, start.variance * np.eye(d)
    if in_layers:
        return _variance_by_layers(steepness, first) if stabilizers.gate == 0 and case.time.step == 1 else None
    return _variance_in_time(steepness, stabilizers.gate, first, AHEAD * case.time.end)


def _value(case: Case) -> Floats | None:
    """Return the matrix V (d, d) of a case with softmax attention, Q = K = I and β ≠ 0, else None."""
    from meanfield.sections.attention import Attention

    plain = msgspec.structs.replace(case.attention, value=None) == Attention(beta=case.attention.beta)
    if not plain or case.attention.beta == 0:
        return None
    value = np.eye(case.domain.d) if case.attention.value is None else case.attention.value
    return np.array(value, dtype=float) if isinstance(value, tuple | np.ndarray) else None


def _variance_by_layers(steepness: Floats, first: Floats) -> Prediction:
    """Return the predicted variance tr S for layers without the residual, in each of which S becomes β²VS³Vᵀ.

    ``steepness`` is βV and ``first`` the initial covariance S.
    """

    def trace(times: Floats) -> Floats:
        found, covariance = [float(np.trace(first))], first
        while len(found) <= times[-1]:
            slope = steepness @ covariance
            covariance = slope @ covariance @ slope.T
            found.append(float(np.trace(covariance)))
        return np.interp(times, np.arange(len(found)), found)

    return Prediction(trace)


def _variance_in_time(steepness: Floats, gate: float, first: Floats, until: float) -> Prediction:
    """Return the predicted variance tr S in continuous time, up to the time ``until`` or a blow-up.

    The equation is dS/dt = β(VS² + S²Vᵀ) − 2γS with ``steepness`` βV, ``gate`` γ and initial covariance ``first``.
    """
    from scipy.integrate import solve_ivp

    d = len(first)

    def rate(time: float, flat: Floats) -> Floats:
        covariance = flat.reshape(d, d)
        slope = steepness @ covariance - gate * np.eye(d)
        return np.asarray((slope @ covariance + covariance @ slope.T).ravel())

    def room(time: float, flat: Floats) -> float:
        return float(HUGE * np.trace(first) - np.trace(flat.reshape(d, d)))

    room.terminal = True  # type: ignore[attr-defined]
    accuracy: Any = {"rtol": 1e-11, "atol": 1e-13 * float(np.trace(first)), "dense_output": True}
    found = solve_ivp(rate, (0, until), first.ravel(), "DOP853", events=room, **accuracy)
    last = float(found.t[-1])

    def trace(times: Floats) -> Floats:
        inside = np.minimum(times, last)
        traces = np.trace(found.sol(inside).reshape(d, d, -1))
        return np.where(times < last, traces, np.nan)

    return Prediction(trace, moment=last, event="blow-up") if found.status == 1 else Prediction(trace)
