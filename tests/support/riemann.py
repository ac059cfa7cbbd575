"""Exact solution of the Riemann problem of an ideal gas, also with a vacuum (Toro 2009, chapter 4)."""

import numpy as np
from scipy.optimize import brentq

# ρ, v, p to the left and right of 0.5, and the time: tests 1 to 5 of table 4.1
TORO = {
    1: ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1), 0.25),
    2: ((1.0, -2.0, 0.4), (1.0, 2.0, 0.4), 0.15),
    3: ((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01), 0.012),
    4: ((1.0, 0.0, 0.01), (1.0, 0.0, 100.0), 0.035),
    5: ((5.99924, 19.5975, 460.894), (5.99242, -6.19633, 46.0950), 0.035),
}


def exact_star(left, right, g=1.4):
    """Return the pressure between the waves, and the velocities left and right of the contact, which a vacuum parts."""
    speeds = [np.sqrt(g * p / density) for density, _, p in (left, right)]
    into_vacuum = left[1] + 2 * speeds[0] / (g - 1), right[1] - 2 * speeds[1] / (g - 1)
    if into_vacuum[0] <= into_vacuum[1]:
        return 0.0, *into_vacuum

    def change(p, state, c):
        density, _, before = state
        if p > before:
            return (p - before) * np.sqrt(2 / density / ((g + 1) * p + (g - 1) * before))
        return 2 * c / (g - 1) * ((p / before) ** ((g - 1) / (2 * g)) - 1)

    largest = 10 * (left[2] + right[2] + max(left[0], right[0]) * (left[1] - right[1]) ** 2)
    found = brentq(
        lambda p: sum(change(p, state, c) for state, c in zip((left, right), speeds, strict=True)) + right[1] - left[1],
        0.0, largest, xtol=1e-14 * largest, rtol=1e-14,
    )  # fmt: skip
    velocity = left[1] - change(found, left, speeds[0])
    return found, velocity, velocity


def exact_riemann(left, right, s, g=1.4):
    """Return density, velocity and pressure (3, n) at x/t = s (n,)."""
    p, before, after = exact_star(left, right, g)
    from_left = _left_of_contact(left, p, before, s, g)
    from_right = _left_of_contact((right[0], -right[1], right[2]), p, -after, -s, g) * [[1], [-1], [1]]
    return np.where(s < before, from_left, np.where(s > after, from_right, 0.0))


def _left_of_contact(state, p, v, s, g):
    density, velocity, pressure = state
    c, ratio, m = np.sqrt(g * pressure / density), p / pressure, (g - 1) / (g + 1)
    if ratio > 1:
        head = tail = velocity - c * np.sqrt((g + 1) / (2 * g) * ratio + (g - 1) / (2 * g))
        behind = density * (ratio + m) / (m * ratio + 1)
    else:
        head, tail = velocity - c, v - c * ratio ** ((g - 1) / (2 * g))
        behind = density * ratio ** (1 / g)
    within = np.maximum(2 / (g + 1) + m * (velocity - s) / c, 0.0)  # speed of sound in a fan, over c
    fan = (
        density * within ** (2 / (g - 1)),
        2 / (g + 1) * (c + (g - 1) / 2 * velocity + s),
        pressure * within ** (2 * g / (g - 1)),
    )
    return np.array([
        np.where(s < head, one, np.where(s < tail, middle, star))
        for one, middle, star in zip(state, fan, (behind, v, p), strict=True)
    ])  # fmt: skip
