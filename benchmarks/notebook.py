"""Finite-difference program for the mean-field equation on the circle, beside a whole command for the same case.

    ∂ₜρ + ∂_θ(ρ V) = 0 ,    V(θ) = ∫ sin(ω − θ) e^{β cos(θ − ω)} ρ(ω) dω        β = 5, until T = 0.5

The program is Lax–Friedrichs on 9,999 points with dt = 0.02 dx and the velocity by direct convolution. Its time is
extrapolated from some steps. Its error is that of all steps, with the same sums by FFT.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from scipy import fft, ndimage, special

from benchmarks.measure import Figure, timed
from benchmarks.startup import seconds_of
from solvers.mesh.mesh import Floats

POINTS, COURANT, BETA, END, DEGREE = 9999, 0.02, 5.0, 0.5, 3
AMPLITUDE = 1e-7  # initial amplitude of the mode, which grows by e^9.3
CELLS = 128  # resolution of the package's run
RATE = DEGREE**2 * special.iv(DEGREE, BETA) / BETA  # growth rate of the mode about the uniform density: 18.59607
_CASE = f"""
[domain]
manifold = "circle"
resolution = {CELLS}
[attention]
beta = {BETA}
normalization = "unnormalized"
[initial]
kind = "harmonic"
degree = {DEGREE}
amplitude = {AMPLITUDE}
[time]
end = {END}
[output]
snapshots = 1
samples = 1
diagnostics = ["power"]
"""
_RUN = ["run", "case.toml", "-o", "run.h5", "--overwrite", "--quiet"]
Convolution = Callable[[Floats], Floats]


def notebook(points: int = POINTS) -> list[Figure]:
    """Measure the time of a simple finite-difference program relative to the whole command ``meanfield run``.

    The errors of the growth rates that both find are given too.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "case.toml").write_text(_CASE, encoding="utf-8")
        whole = timed(lambda: seconds_of(_RUN, folder))
        with h5py.File(Path(folder, "run.h5")) as file:
            power, time = file["diagnostics/power"][:, DEGREE], file["diagnostics/time"][:]
    found = 0.5 * np.log(power[-1] / power[0]) / time[-1]
    name, start, steps = f"Lax–Friedrichs on {points} points", _start(points), _steps(points)
    figures = [Figure.of("growth of degree 3 on the circle, whole command", whole, "s")]
    for how, convolve, target in (
        ("ndimage.convolve1d", _wrapped(points), 1500.0),
        ("NumPy's convolve", _by_dot_products(points), None),
    ):
        program = timed(lambda convolve=convolve: _step(start, convolve)) * steps
        figures.append(
            Figure.of(f"{name} with {how}: time relative to the whole command", program / whole, "×", least=target)
        )
    error = abs(_growth_rate(points) - RATE)
    return [
        *figures,
        Figure(f"{name}: error of the growth rate {RATE:.5f}", float(error), "1"),
        Figure(f"{CELLS} cells of this package: error of the growth rate {RATE:.5f}", abs(float(found) - RATE), "1"),
    ]


def _angles(points: int) -> Floats:
    return 2 * np.pi / points * np.arange(points)


def _start(points: int) -> Floats:
    """Return the initial density 1/2π (1 + √2 a cos 3θ) with a = AMPLITUDE at equally spaced points of the circle."""
    return np.asarray((1 + np.sqrt(2) * AMPLITUDE * np.cos(DEGREE * _angles(points))) / (2 * np.pi))


def _steps(points: int) -> int:
    return round(END / (COURANT * 2 * np.pi / points))


def _kernel(points: int) -> Floats:
    """Return the kernel K = −sin θ e^{β cos θ} dx of the velocity V = K * ρ at equally spaced points of the circle."""
    angle = _angles(points)
    return np.asarray(-np.sin(angle) * np.exp(BETA * np.cos(angle)) * (2 * np.pi / points))


def _wrapped(points: int) -> Convolution:
    centered = np.roll(_kernel(points), points // 2)
    return lambda density: np.asarray(ndimage.convolve1d(density, centered, mode="wrap"))


def _by_dot_products(points: int) -> Convolution:
    kernel = _kernel(points)
    return lambda density: np.roll(np.convolve(np.concatenate([density, density[:-1]]), kernel, "valid"), -1 - points)


def _by_fft(points: int) -> Convolution:
    spectrum = fft.rfft(_kernel(points))
    return lambda density: np.asarray(fft.irfft(spectrum * fft.rfft(density), points))


def _step(density: Floats, convolve: Convolution) -> Floats:
    """Return the density after one Lax–Friedrichs step; ``convolve`` computes the velocity of a density."""
    flux = density * convolve(density)
    mean = 0.5 * (np.roll(density, -1) + np.roll(density, 1))
    return np.asarray(mean - 0.5 * COURANT * (np.roll(flux, -1) - np.roll(flux, 1)))


def _growth_rate(points: int) -> float:
    convolve, density, steps = _by_fft(points), _start(points), _steps(points)
    for _ in range(steps):
        density = _step(density, convolve)
    first, last = (abs(fft.rfft(values)[DEGREE]) for values in (_start(points), density))
    return float(np.log(last / first) / (steps * COURANT * 2 * np.pi / points))
