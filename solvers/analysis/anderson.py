"""Anderson acceleration for fixed points x = T(x) of slowly converging iterations.

    x ← T(xₙ) − Σ_j c_j (T(xₙ) − T(x_j)) ,   c minimizes |rₙ − Σ_j c_j (rₙ − r_j)| ,   r = T(x) − x

D. G. Anderson, J. ACM 12 (1965); Walker and Ni, SIAM J. Numer. Anal. 49 (2011), (2.1). For a linear T the method is
equivalent to GMRES.
"""

from __future__ import annotations

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats

_HISTORY = 6  # number of mixed iterates
_ROUNDING = 500  # rounding error of a scalar product, in units of the machine epsilon


class Mixing:
    """Anderson mixing of the iterates x (n,) of a fixed-point iteration x ← T(x), which accelerates the iteration.

    weights   (n,) weights w of sum 1 in the norm |r|² = Σ w r² of residuals r = T(x) − x
    near      largest |r| at which iterates are mixed; farther from the fixed point, T is not nearly linear
    reach     largest length of the extrapolation from T(xₙ), since small differences of residuals make it unreliable
    """

    def __init__(self, weights: Floats, near: float, reach: float) -> None:
        self._weights, self._near, self._reach = weights, near, reach
        self._ends: list[Floats] = []  # T(x_j), the latest last
        self._steps: list[Floats] = []

    def next(self, place: Floats, step: Floats) -> Floats:
        """Return the next iterate (n,) by Anderson mixing from ``place`` = xₙ and ``step`` = T(xₙ) − xₙ, (n,) each."""
        end = place + step
        xp = backend_for(step).xp
        rows = xp.stack([step, *(step - old for old in self._steps)])
        products = backend_for(step).to_host((rows * self._weights) @ rows.T)
        shift = xp.zeros_like(step)
        if products[0, 0] <= self._near**2:
            for factor, old in zip(_least_squares(products), self._ends, strict=True):
                shift += factor * (old - end)
        else:
            self._ends, self._steps = [], []
        self._ends, self._steps = [*self._ends, end][1 - _HISTORY :], [*self._steps, step][1 - _HISTORY :]
        return self._limit_shift(end, step, shift)

    def _limit_shift(self, end: Floats, step: Floats, shift: Floats) -> Floats:
        """Return ``end`` + ``shift`` (n,), with a shift that exceeds the largest length shortened to that length.

        Such a shift is omitted if it points against ``step``.
        """
        xp = backend_for(step).xp
        size = np.sqrt(self._weights @ shift**2)
        is_ahead = (self._weights * shift) @ step > 0
        cut = xp.where(is_ahead, self._reach / np.maximum(size, self._reach), 0.0)
        result: Floats = end + shift * xp.where(size > self._reach, cut, 1.0).astype(step.dtype)
        return result


def _least_squares(products: Floats) -> list[float]:
    """Return the coefficients c that minimize |r − Σ c_j d_j|, from all scalar products of the vectors r, d₁, d₂, …."""
    tiny, rounding = np.finfo(products.dtype).tiny, _ROUNDING * np.finfo(products.dtype).eps
    scale = 1 / np.sqrt(np.maximum(np.diag(products)[1:].astype(float), float(tiny)))
    gram = scale[:, None] * products[1:, 1:] * scale + rounding * np.eye(len(scale))
    return [float(factor) for factor in scale * np.linalg.solve(gram, scale * products[1:, 0])]
