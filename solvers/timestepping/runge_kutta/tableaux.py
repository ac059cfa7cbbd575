"""Butcher tableaux of explicit and additive Runge–Kutta methods.

Yᵢ = u + dt Σⱼ (a^E_ij E(Yⱼ) + a^I_ij I(Yⱼ)) ,   u ← u + dt Σ (b^E_i E(Yᵢ) + b^I_i I(Yᵢ)) ,   ∂ₜu = E + I
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ...mesh.mesh import Floats


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of a Runge–Kutta method with an embedded method of another order.

    The method is explicit, or additive with superscripts E and I for explicit and implicit terms.

    stages     (s, s) a^E, strictly lower
    weights    (s,) b^E of order ``order``
    embedded   (s,) b̂: the difference of both results is the error of a step, of order ``embedded_order`` + 1
    implicit   (s, s) a^I, lower with a constant diagonal, 0 in the first row allowed; None for an explicit method.
               The last row is b^I: the method is stiffly accurate
    """

    stages: Floats
    weights: Floats
    embedded: Floats
    order: int
    embedded_order: int
    implicit: Floats | None = None

    @property
    def nodes(self) -> Floats:
        """Return the nodes c_i = Σⱼ a_ij (s,): the times of the stages, as fractions of the step."""
        return np.asarray(self.stages.sum(axis=1))


def _lower(rows: list[list[float]]) -> Floats:
    """Return a square matrix from the rows of its lower triangle, which may end early; other numbers are 0."""
    found = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found


def ssp3() -> Tableau:
    """Return the strong-stability-preserving explicit method of 4 stages and order 3 of Kraaijevanger (1991).

    The embedded method of order 2 is that of Conde, Fekete and Shadid (2018).
    """
    stages = _lower([[], [1 / 2], [1 / 2, 1 / 2], [1 / 6, 1 / 6, 1 / 6]])
    return Tableau(stages, np.array([1 / 6, 1 / 6, 1 / 6, 1 / 2]), np.full(4, 1 / 4), 3, 2)


def dopri5() -> Tableau:
    """Return the explicit method of Dormand and Prince (1980) of order 5, with an embedded method of order 4.

    The coefficients are those of SciPy. A seventh stage at the end of the step serves the error estimate.
    """
    from scipy.integrate import RK45

    stages = np.zeros((7, 7))
    stages[:6, :5], stages[6, :6] = RK45.A, RK45.B
    weights = np.append(RK45.B, 0.0)
    return Tableau(stages, weights, weights + RK45.E, 5, 4)  # RK45.E is the result of order 4 less that of order 5


def ars2() -> Tableau:
    """Return the additive L-stable method of order 2 of Ascher, Ruuth and Spiteri (1997), section 2.6.

    Source: Appl. Numer. Math. 25 (1997) 151.
    """
    gamma = 1 - np.sqrt(0.5)
    delta = 1 - 1 / (2 * gamma)
    implicit = np.diag([0.0, gamma, gamma])
    implicit[2, 1] = 1 - gamma
    return Tableau(
        _lower([[], [gamma], [delta, 1 - delta]]),
        np.array([delta, 1 - delta, 0.0]),
        np.array([0.0, 1.0, 0.0]),
        2,
        1,
        implicit,
    )


def ark3() -> Tableau:
    """Return the additive L-stable method ARK3(2)4L[2]SA of order 3 of Kennedy and Carpenter (2003).

    Source: Appl. Numer. Math. 44 (2003) 139.
    """
    gamma = 1767732205903 / 4055673282236
    weights = [
        1471266399579 / 7840856788654, -4482444167858 / 7529755066697, 11266239266428 / 11593286722821, gamma,
    ]  # fmt: skip
    explicit = _lower([
        [],
        [1767732205903 / 2027836641118],
        [5535828885825 / 10492691773637, 788022342437 / 10882634858940],
        [6485989280629 / 16251701735622, -4246266847089 / 9704473918619, 10755448449292 / 10357097424841],
    ])  # fmt: skip
    implicit = _lower([
        [],
        [gamma, gamma],
        [2746238789719 / 10658868560708, -640167445237 / 6845629431997, gamma],
        weights,
    ])  # fmt: skip
    embedded = [
        2756255671327 / 12835298489170, -10771552573575 / 22201958757719, 9247589265047 / 10645013368117,
        2193209047091 / 5459859503100,
    ]  # fmt: skip
    return Tableau(explicit, np.array(weights), np.array(embedded), 3, 2, implicit)


def ark4() -> Tableau:
    """Return the additive L-stable method ARK4(3)6L[2]SA of order 4 of Kennedy and Carpenter (2003).

    Source: Appl. Numer. Math. 44 (2003) 139.
    """
    weights = [82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 1 / 4]
    explicit = _lower([
        [],
        [1 / 2],
        [13861 / 62500, 6889 / 62500],
        [-116923316275 / 2393684061468, -2731218467317 / 15368042101831, 9408046702089 / 11113171139209],
        [-451086348788 / 2902428689909, -2682348792572 / 7519795681897, 12662868775082 / 11960479115383,
         3355817975965 / 11060851509271],
        [647845179188 / 3216320057751, 73281519250 / 8382639484533, 552539513391 / 3454668386233,
         3354512671639 / 8306763924573, 4040 / 17871],
    ])  # fmt: skip
    implicit = _lower([
        [],
        [1 / 4, 1 / 4],
        [8611 / 62500, -1743 / 31250, 1 / 4],
        [5012029 / 34652500, -654441 / 2922500, 174375 / 388108, 1 / 4],
        [15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912, 1 / 4],
        weights,
    ])  # fmt: skip
    embedded = [
        4586570599 / 29645900160, 0.0, 178811875 / 945068544, 814220225 / 1159782912, -3700637 / 11593932,
        61727 / 225920,
    ]  # fmt: skip
    return Tableau(explicit, np.array(weights), np.array(embedded), 4, 3, implicit)


TABLEAUX = {name.__name__: cache(name) for name in (ssp3, dopri5, ars2, ark3, ark4)}
