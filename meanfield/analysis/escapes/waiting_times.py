"""Mean times of escape from simulations, some of which ended before the escape, and their dependence on n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from solvers.mesh.mesh import Floats

LEVEL = 0.95  # of confidence
_NORMAL = NormalDist().inv_cdf(
    (1 + LEVEL) / 2
)  # half-width of the interval of a normal variable at LEVEL, in standard deviations


@dataclass(frozen=True)
class WaitingTime:
    """Exponential waiting time, estimated by maximum likelihood from censored simulations.

    Attributes
    ----------
    n : int
        Number of tokens of a system.
    systems : int
        Number of simulated systems.
    escaped : int
        Number of systems that have escaped.
    exposure : float
        Sum of the simulated times of all systems.
    """

    n: int
    systems: int
    escaped: int
    exposure: float

    @property
    def mean(self) -> float:
        """Return the maximum-likelihood mean, exposure/escaped; ∞ if no system has escaped."""
        return self.exposure / self.escaped if self.escaped else np.inf

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval of the mean with a confidence of 95 %, by the distribution χ² of the exposure.

        The upper end is ∞ if no system has escaped.
        """
        from scipy.stats import chi2

        tail = (1 - LEVEL) / 2
        least = 2 * self.exposure / float(chi2.ppf(1 - tail, 2 * self.escaped + 2))
        most = 2 * self.exposure / float(chi2.ppf(tail, 2 * self.escaped)) if self.escaped else np.inf
        return least, most


@dataclass(frozen=True)
class Slope:
    """Slope of the logarithm of the mean time against n.

    Attributes
    ----------
    value : float
        Slope per token.
    half_width : float
        Half of the interval with a confidence of 95 %.
    """

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:.5f} ± {self.half_width:.5f}"

    def contains(self, number: float) -> bool:
        """Return whether the interval contains a number."""
        return abs(number - self.value) <= self.half_width


def slope_of(times: Sequence[WaitingTime], log_prefactor: Floats | None = None) -> Slope | None:
    """Return the slope of log T − ``log_prefactor`` against n by weighted least squares; None with fewer than two n.

    The variance of log T is 1/escaped. Values of n without an escape are left out.
    """
    offsets = np.zeros(len(times)) if log_prefactor is None else log_prefactor
    used = [k for k, one in enumerate(times) if one.escaped]
    if len({times[k].n for k in used}) < 2:
        return None
    n = np.array([times[k].n for k in used], dtype=float)
    weights = np.array([times[k].escaped for k in used], dtype=float)
    logs = np.array([np.log(times[k].mean) - offsets[k] for k in used])
    from_mean = n - weights @ n / weights.sum()
    spread = float(weights @ from_mean**2)
    return Slope(float(weights @ (from_mean * logs)) / spread, _NORMAL / np.sqrt(spread))
