"""Checks of an installation: small runs compared with exact answers, as ``meanfield selftest`` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from meanfield.results.result import Result
from meanfield.results.runs import load_case, run, simulate
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class CheckOutcome:
    """Outcome of a check: an error and its limit."""

    name: str
    error: float
    limit: float

    @property
    def passed(self) -> bool:
        """Return whether the error is within its limit; False where the error is not a number."""
        return self.error <= self.limit


def selftest() -> Iterator[CheckOutcome]:
    """Yield the outcome of each check of the installation as soon as it is known.

    All checks take less than a minute on two cores, mostly for the first compilation.
    """
    for name, (check, limit) in CHECKS.items():
        yield CheckOutcome(name, check(), limit)


def growth() -> float:
    """Return the relative error of λ for a mode of degree 3 on the circle: growth e^{λt}, λ = 9 I_3(β)/(β I_0(β))."""
    from scipy.special import ive

    result = simulate(load_case("growth_circle", ["domain.resolution=128", "time.end=4"]))
    mesh = result.mesh
    mode = np.cos(3 * np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])) * mesh.volumes
    found = np.log((result.density[-1] @ mode) / (result.density[0] @ mode)) / result.time[-1]
    exact = 9 * ive(3, 5.0) / (5.0 * ive(0, 5.0))
    return float(abs(found / exact - 1))


def flow() -> float:
    """Return the error of |mean token| of the flow at β = 0 on the sphere: m(s) = coth s − s/sinh² s with ṡ = m(s)."""
    from scipy.integrate import solve_ivp

    result = simulate(load_case("flow_beta0_sphere", ["domain.resolution=32", "time.end=1"]))
    mean = result.mesh.centers.T @ (result.density[-1] * result.mesh.volumes)
    exact = solve_ivp(lambda t, s: _mean_token(s), (0, 1), [0.2], rtol=1e-11, atol=1e-12).y[0, -1]
    return float(abs(np.linalg.norm(mean) - _mean_token(exact)))


def pair() -> float:
    """Return the error of the cosine of two tokens at the time when the exact cosine is ½, for β = 4.

    The tokens start 2 rad apart. The time t = 38.6657808166 follows from the exponential integral Ei.
    """
    tokens = "domain={manifold = 'particles', dimension = 2}"
    result = simulate(load_case("merging_pair_circle", [tokens, f"time.end={_time_to_half(4.0)!r}"]))
    a, b = result.position[-1]
    return float(abs(a @ b - 0.5))


def blow_up() -> float:
    """Return the relative error of the variance of a Gaussian on the line without layer norm at t = 1.

    The exact variance is s₀/(1 − 2βs₀t).
    """
    result = simulate(load_case("blow_up_line", ["time.end=1"]))
    exact = 0.2 / (1 - 2 * 0.2)
    return float(abs(np.ravel(result.diagnostics["variance"][-1])[0] / exact - 1))


def uniform() -> float:
    """Return the largest relative change of the uniform density on the sphere, which is stationary."""
    result = simulate(load_case("uniform", ["domain={manifold = 'sphere', resolution = 16}", "time.end=2"]))
    return float(np.abs(result.density[-1] / result.density[0] - 1).max())


def files() -> float:
    """Return the number of values that differ between a run in a file and the same run in memory."""
    case = load_case("metastable_circle", ["domain.resolution=64", "time.end=2"])
    with TemporaryDirectory() as folder:
        in_file: Result = run(case, Path(folder) / "run.h5")
        return float((np.asarray(in_file.density[:]) != np.asarray(simulate(case).density[:])).sum())


def _mean_token(s: Floats) -> Floats:
    """Return coth s − s/sinh² s, the length of the mean token of a Möbius density with the parameter s."""
    return np.asarray(1 / np.tanh(s) - s / np.sinh(s) ** 2)


def _time_to_half(beta: float) -> float:
    """Return the time in which softmax attention moves two tokens from an angle of 2 rad to the cosine ½."""
    from scipy.special import expi

    def t(c: float) -> float:
        return float(0.5 * np.arctanh(c) + 0.25 * (-expi(beta * (1 - c)) + np.exp(2 * beta) * expi(-beta * (1 + c))))

    return t(0.5) - t(float(np.cos(2.0)))


CHECKS: dict[str, tuple[Callable[[], float], float]] = {  # limits: a few times the error at these resolutions
    "growth rate of a mode on the circle": (growth, 1e-4),
    "exact flow on the sphere": (flow, 1e-3),
    "time of two tokens to merge": (pair, 1e-9),
    "blow-up on the line": (blow_up, 1e-2),
    "uniform density stays": (uniform, 1e-12),
    "file equals memory": (files, 0.0),
}
