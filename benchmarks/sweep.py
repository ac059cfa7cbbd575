"""A sweep of many small systems of tokens, the whole command, beside Euler steps of all of them in one array."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, shortest
from benchmarks.startup import seconds_of
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.sweeping.results import read_sweep
from solvers.mesh.mesh import Floats

BETAS = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0)
SEEDS, TOKENS, END, STEPS, SAMPLES = 32, 32, 20.0, 200, 1
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
    """Time of ``meanfield sweep`` over that of the steps of Euler, and how far the mean tokens of these are off."""
    text = _SWEEP.format(tokens=tokens, end=end, samples=SAMPLES, betas=list(betas), seeds=seeds)
    points = np.stack([tokens_uniform(tokens, 2, seed) for seed in range(seeds)])
    points, beta = np.tile(points, (len(betas), 1, 1)), np.repeat(betas, seeds)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sweep.toml").write_text(text, encoding="utf-8")
        command = ["sweep", "sweep.toml", "-o", "index.h5", "--quiet", "--overwrite"]
        seconds_of(command, folder)  # compiles
        whole = seconds_of(command, folder)
        centroids = read_sweep(Path(folder, "index.h5")).scalars["centroid"]
    euler = shortest(lambda: _euler(points, beta, end), 3)
    error = np.linalg.norm(_euler(points, beta, end).mean(axis=1) - centroids, axis=1)
    name = f"sweep of {len(beta)} systems of {tokens} tokens"
    return [
        Figure(f"{name}, whole command", whole, "s"),
        Figure(f"{name}: over {STEPS} Euler steps of all in NumPy", whole / euler, "×", most=4.0),
        Figure(f"{name}: error of the mean token by Euler, median", float(np.median(error)), "1"),
        Figure(f"{name}: error of the mean token by Euler, largest", float(error.max()), "1"),
    ]


def _euler(points: Floats, beta: Floats, end: float) -> Floats:
    """Tokens (systems, n, 2) at time ``end`` by ẋ = P_x A(x) with softmax and β (systems,), back to the circle."""
    x, dt = points, end / STEPS
    for _ in range(STEPS):
        exponents = beta[:, None, None] * (x @ x.transpose(0, 2, 1))
        kernel = np.exp(exponents - exponents.max(axis=2, keepdims=True))
        output = (kernel @ x) / kernel.sum(axis=2, keepdims=True)
        x = x + dt * (output - (output * x).sum(axis=2, keepdims=True) * x)
        x = x / np.linalg.norm(x, axis=2, keepdims=True)
    return x
