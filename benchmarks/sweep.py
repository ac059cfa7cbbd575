"""Sweep of many small systems of tokens as a whole command, beside Euler steps of all systems in one array.

The Euler loop is a user's own program in PyTorch, or in NumPy where PyTorch is not installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, Spread, timed
from benchmarks.startup import seconds_of
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.sweeping.results import read_sweep
from solvers.mesh.mesh import Floats

BETAS = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0)
SEEDS, TOKENS, END, STEPS, SAMPLES = 32, 32, 20.0, 200, 1
QUICK = 1e-3  # tolerance of steps, which also bounds the error of the mean token
_SWEEP = """
[case]
domain = {{manifold = "particles", dimension = 2, count = {tokens}}}
attention = {{beta = 1.0}}
initial = {{kind = "uniform"}}
time = {{end = {end}}}
output = {{snapshots = 1, samples = {samples}}}
[keys]
"attention.beta" = {betas}
"domain.seed" = {{seeds = {seeds}}}
"""


def sweep(betas: Sequence[float] = BETAS, seeds: int = SEEDS, tokens: int = TOKENS, end: float = END) -> list[Figure]:
    """Measure the ratio of the time of ``meanfield sweep`` to that of Euler steps of all systems in one array.

    The errors of the mean token by both are given too.
    """
    text = _SWEEP.format(tokens=tokens, end=end, samples=SAMPLES, betas=list(betas), seeds=seeds)
    points = np.stack([tokens_uniform(tokens, 2, seed) for seed in range(seeds)])
    points, beta = np.tile(points, (len(betas), 1, 1)), np.repeat(betas, seeds)
    whole, centroids = _whole_command(text)
    exact = _whole_command(text + '[set]\n"time.tolerance" = 1e-12\n', 1)[1]
    name, loop = f"sweep of {len(beta)} systems of {tokens} tokens", _euler_torch if find_spec("torch") else _euler
    other = "PyTorch" if find_spec("torch") else "NumPy"
    euler = timed(lambda: loop(points, beta, end))
    errors = {
        "by Euler": np.linalg.norm(loop(points, beta, end).mean(axis=1) - exact, axis=1),
        "of the sweep": np.linalg.norm(centroids - exact, axis=1),
    }
    quick, near = _whole_command(text + f'[set]\n"time.tolerance" = {QUICK:g}\n')
    errors[f"of the sweep at tolerance {QUICK:g}"] = np.linalg.norm(near - exact, axis=1)
    over = f"whole command relative to {STEPS} Euler steps of all systems in {other}"
    return [
        Figure.of(f"{name}, whole command", whole, "s"),
        Figure.of(f"{name}: {STEPS} Euler steps of all systems in {other}", euler, "s"),
        Figure.of(f"{name}: {over}", whole / euler, "×"),  # at an error of 1e-8; the target is for one of 1e-3
        Figure.of(f"{name}, tolerance {QUICK:g}: {over}", quick / euler, "×", most=8.0),
        *(
            Figure(f"{name}: error of the mean token {of}, {what}", float(number), "1")
            for of, error in errors.items()
            for what, number in (("median", np.median(error)), ("largest", error.max()))
        ),
    ]


def _whole_command(text: str, repeats: int | None = None) -> tuple[Spread, Floats]:
    """Return the wall times of the sweep described by ``text``, and the mean token at the end of each of its runs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sweep.toml").write_text(text, encoding="utf-8")
        command = ["sweep", "sweep.toml", "-o", "index.h5", "--quiet", "--overwrite"]
        times = timed(lambda: seconds_of(command, folder), repeats)
        return times, read_sweep(Path(folder, "index.h5")).scalars["centroid"]


def _euler_torch(points: Floats, beta: Floats, end: float) -> Floats:
    """Return the result of :func:`_euler`, computed in PyTorch."""
    import torch

    x, dt = torch.from_numpy(points), end / STEPS
    factor = torch.from_numpy(np.asarray(beta, dtype=float))[:, None, None]
    for _ in range(STEPS):
        output = torch.softmax(factor * (x @ x.transpose(1, 2)), dim=2) @ x
        x = x + dt * (output - (output * x).sum(2, keepdim=True) * x)
        x = x / x.norm(dim=2, keepdim=True)
    return np.asarray(x.numpy())


def _euler(points: Floats, beta: Floats, end: float) -> Floats:
    """Return tokens (systems, n, 2) at time ``end`` by STEPS projected Euler steps of softmax attention ẋ = P_x A(x).

    ``points`` (systems, n, 2) are the initial tokens; each system has its own ``beta`` (systems,).
    """
    x, dt = points, end / STEPS
    for _ in range(STEPS):
        exponents = beta[:, None, None] * (x @ x.transpose(0, 2, 1))
        kernel = np.exp(exponents - exponents.max(axis=2, keepdims=True))
        output = (kernel @ x) / kernel.sum(axis=2, keepdims=True)
        x = x + dt * (output - (output * x).sum(axis=2, keepdims=True) * x)
        x = x / np.linalg.norm(x, axis=2, keepdims=True)
    return x
