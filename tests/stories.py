"""Runs made up to be drawn: three blobs that grow and sharpen, and what else a figure has to cope with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.plot_story import Story
from solvers.mesh import Mesh

MASSES = np.array([0.5, 0.3, 0.2])
BLOBS = {
    "sphere": np.array([[0.6, 0.0, 0.8], [-0.8, 0.6, 0.0], [0.0, -0.96, -0.28]]),
    "circle": np.array([[1.0, 0.0], [-0.6, 0.8], [0.0, -1.0]]),
}
LINEAR, LOG = np.linspace(0, 10, 41), np.concatenate([[0], np.geomspace(1e-3, 10, 40)])


def blobs(mesh: Mesh, concentration: float, amount: float) -> np.ndarray:
    """(cells,) three von Mises–Fisher blobs of the given share of the mass, the rest uniform."""
    bumps = np.exp(concentration * (mesh.centers @ BLOBS[mesh.manifold].T - 1))
    bumps /= mesh.volumes @ bumps
    return (1 - amount) / mesh.volume + amount * bumps @ MASSES


def story(mesh: Mesh, times: np.ndarray, **changes: object) -> Story:
    """Three blobs that grow and sharpen until half the time, with every diagnostic made up but plausible."""
    progress = np.minimum(2 * np.arange(len(times)) / max(len(times) - 1, 1), 1)
    power = 1e-6 ** (1 - progress)[:, None] * 10.0 ** -np.arange(13)
    diagnostics = {
        "time": times,
        "entropy": progress**2,
        "energy": progress**3,
        "speed": 1e-3 * (1.1 - progress),
        "clusters": np.where(progress < 1, 0.0, 3.0),
        "power": power,
    }
    return replace(
        Story(
            title="Three blobs that grow and sharpen",
            manifold=mesh.manifold,
            ring_cells=mesh.ring_cells,
            beta=9.0,
            noise=0.0,
            attention="softmax attention",
            times=times,
            density=lambda k: blobs(mesh, 4 * 50 ** progress[k], progress[k]),
            diagnostics=diagnostics,
            growth=0.5 - 0.1 * np.abs(np.arange(13) - 3),
        ),
        **changes,
    )


def crowd(mesh: Mesh) -> np.ndarray:
    """(cells,) forty point masses at random places."""
    rng = np.random.default_rng(2)
    density = np.zeros(mesh.cells)
    density[rng.choice(mesh.cells, 40)] = rng.random(40)
    return density / (mesh.volumes @ density)


def without(told: Story, *names: str) -> Story:
    return replace(told, diagnostics={k: v for k, v in told.diagnostics.items() if k not in names})
