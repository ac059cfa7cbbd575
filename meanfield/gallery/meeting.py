"""Meeting times of random tokens in many dimensions and of orthonormal tokens: run and formula of two entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.integrate import quad

import meanfield as mf
from solvers.mesh.mesh import Floats

N, MET = 32, 0.999  # number of tokens, and the cosine above which two tokens have met


def formula(beta: float, normalization: str) -> float:
    """Return the time until the common cosine g of N tokens that begin orthonormal reaches MET.

    dg/dt = 2e^{βg}(1 − g)((n − 1)g + 1)/Z, g(0) = 0, with Z = e^β + (n − 1)e^{βg} (softmax) or n (unnormalized), n = N
    (arXiv:2512.01868, section 6.1).
    """

    def slowness(g: float) -> float:
        total = np.exp(beta * (1 - g)) + N - 1 if normalization == "softmax" else N * np.exp(-beta * g)
        return float(total / (2 * (1 - g) * ((N - 1) * g + 1)))

    return float(quad(slowness, 0, MET)[0])


def run(d: int, beta: float, normalization: str, seeds: int) -> tuple[float, Floats, Floats]:
    """Return the time at which half of the pairs of N tokens in R^d have met, the sample times, and shares of pairs.

    Tokens begin as uniform random directions. Two tokens have met once their cosine exceeds MET. The shares are
    averaged over random starts.
    """
    end = 1.5 * formula(beta, normalization)
    changes = [f"attention.normalization={normalization}", f"domain.count={N}", f"domain.dimension={d}"]
    changes += ["initial.kind=uniform", f"time.end={end}", "time.tolerance=1e-5", "output.snapshots=1"]
    changes += [f"attention.beta={beta}", "output.samples=300", 'output.diagnostics=["pairs_close"]']
    case = mf.load_case("tokens_pair", changes)
    keys: dict[str, Sequence[int]] = {"domain.seed": range(seeds)}
    found = mf.sweep(
        case, keys, jobs=1, scalars={"share": lambda result: np.asarray(result.diagnostics["pairs_close"])}
    )
    share = np.asarray(found["share"]).mean(axis=0)
    times = np.linspace(0, end, len(share))
    return float(np.interp(0.5, share, times)), times, share
