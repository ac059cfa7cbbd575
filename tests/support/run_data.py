"""Synthetic run data for figures: three blobs that grow and sharpen, and the data of other domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from meanfield.analysis.snapshot_clusters import SnapshotClusters, peaks
from meanfield.clusters.on_cells import find_clusters
from meanfield.clusters.pairs import pairs_of_points
from meanfield.figures.run_data import RunData, TokenData
from meanfield.figures.trim import trim_cells
from solvers.mesh.mesh import Mesh, circle, sphere

MASSES = np.array([0.5, 0.3, 0.2])
BLOBS = {
    "sphere": np.array([[0.6, 0.0, 0.8], [-0.8, 0.6, 0.0], [0.0, -0.96, -0.28]]),
    "circle": np.array([[1.0, 0.0], [-0.6, 0.8], [0.0, -1.0]]),
}
LINEAR, LOG = np.linspace(0, 10, 41), np.concatenate([[0], np.geomspace(1e-3, 10, 40)])


def blobs(mesh: Mesh, concentration: float, amount: float) -> np.ndarray:
    """Return the density (cells,) of three von Mises–Fisher blobs that hold a share ``amount`` of the mass, the rest
    uniform."""
    bumps = np.exp(concentration * (mesh.centers @ BLOBS[mesh.manifold].T - 1))
    bumps /= mesh.volumes @ bumps
    return (1 - amount) / mesh.volume + amount * bumps @ MASSES


def run_data(mesh: Mesh, times: np.ndarray, **changes: object) -> RunData:
    """Return a run of three blobs that grow and sharpen until half the time, with synthetic but plausible
    diagnostics."""
    progress = np.minimum(2 * np.arange(len(times)) / max(len(times) - 1, 1), 1)

    def density(k: int) -> np.ndarray:
        return blobs(mesh, 4 * 50 ** progress[k], progress[k])

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
        RunData(
            title="Three blobs that grow and sharpen",
            manifold=mesh.manifold,
            ring_cells=mesh.ring_cells,
            beta=9.0,
            noise=0.0,
            attention="softmax attention",
            times=times,
            density=density,
            diagnostics=diagnostics,
            growth=0.5 - 0.1 * np.abs(np.arange(13) - 3),
            clusters=counted(mesh, density) if mesh.manifold in BLOBS else None,
        ),
        **changes,
    )


def counted(mesh: Mesh, density: Callable[[int], np.ndarray]) -> Callable[[int], SnapshotClusters]:
    """Return a function that counts the clusters of each snapshot of a density on the circle or the sphere."""

    def count(k: int) -> SnapshotClusters:
        found = find_clusters(mesh, density(k))
        return SnapshotClusters(found.count, found.masses, peaks(mesh, density(k), found))

    return count


def crowd(mesh: Mesh) -> np.ndarray:
    """Return a density (cells,) of forty point masses in random cells."""
    rng = np.random.default_rng(2)
    density = np.zeros(mesh.cells)
    density[rng.choice(mesh.cells, 40)] = rng.random(40)
    return density / (mesh.volumes @ density)


def without(data: RunData, *names: str) -> RunData:
    return replace(data, diagnostics={k: v for k, v in data.diagnostics.items() if k not in names})


def law(manifold: str, times: np.ndarray, **changes: object) -> RunData:
    """Return synthetic data of a run in one dimension other than the circle, or with a free radius, as ``run_data``
    does."""
    data = MANIFOLDS[manifold](times)
    recorded = {name: values for name, values in data.diagnostics.items() if name != "power"}
    progress = np.arange(len(times)) / max(len(times) - 1, 1)
    if manifold != "axisymmetric":
        for name in ("entropy", "energy", "speed"):
            del recorded[name]
        recorded |= {"radius": 0.3 * 1e4**progress, "variance": 0.1 * 1e8**progress}
        recorded["escaped"] = np.stack([1e-9 * progress, 1e-3 * progress], axis=1)
    recorded["centroid"] = np.outer(progress, [0.6])
    return replace(data, growth=None, diagnostics=recorded, **changes)


def _axisymmetric(times: np.ndarray) -> RunData:
    """Return a run from the uniform distribution to the pole, in 64 dimensions."""
    from solvers.mesh.interval import edges_of, polar
    from solvers.transforms.polar import uniform_distribution

    mesh = polar(96, 64)
    theta, uniform = mesh.centers[:, 0], uniform_distribution(mesh, 64)

    def density(k: int) -> np.ndarray:
        place = np.pi / 2 * (1 - k / max(len(times) - 1, 1))
        blob = np.exp(-50 * (theta - place) ** 2)
        return blob / (mesh.volumes @ blob) if k else uniform

    data = replace(run_data(mesh, times), density=density, edges=edges_of(mesh), uniform=uniform, dimension=64)
    return trim_cells(data)


def _line(times: np.ndarray) -> RunData:
    """Return a run of a Gaussian that spreads over four decades."""
    from meanfield.domains.line.equation import initial_gaussian
    from solvers.mesh.interval import edges_of, line

    mesh = line(300, 1e5, 0.3)
    widths = 0.3 * 1e4 ** (np.arange(len(times)) / max(len(times) - 1, 1))
    data = replace(
        run_data(mesh, times), density=lambda k: initial_gaussian(mesh, 0.0, widths[k] ** 2), edges=edges_of(mesh)
    )
    return trim_cells(data)


def cloud(dimension: int, count: int, progress: float, growth: float = 0.0) -> np.ndarray:
    """Return random tokens (count, d) that shrink towards three points as ``progress`` goes from 0 to 1; r =
    e^growth."""
    start = np.random.default_rng(3).standard_normal((count, dimension))
    places = np.eye(dimension)[np.arange(count) % min(3, dimension)]
    moved = (1 - progress) * start / np.linalg.norm(start, axis=1)[:, None] + progress * places
    return np.exp(growth) * moved / np.linalg.norm(moved, axis=1)[:, None]


def particles(
    dimension: int, count: int, times: np.ndarray = LINEAR, radius: bool = False, **changes: object
) -> RunData:
    """Return a run of tokens that gather at three points, or two in the plane, with the diagnostics of particles."""
    parts = np.arange(len(times)) / max(len(times) - 1, 1)
    weights = np.arange(1.0, count + 1) / (count * (count + 1) / 2)

    def positions(k: int) -> np.ndarray:
        return cloud(dimension, count, parts[k], 8 * parts[k] if radius else 0.0)

    def clusters(k: int) -> SnapshotClusters:
        return SnapshotClusters(
            found if k else 0,
            *((masses[k, :found], centers[k, :found]) if k else (np.empty(0), np.empty((0, dimension)))),
        )

    few = min(count, 99)
    masses, centers = np.full((len(times), 32), np.nan), np.full((len(times), 32, dimension), np.nan)
    found = min(3, dimension, count)
    masses[1:, :found], centers[1:, :found] = 1 / found, np.eye(dimension)[:found]
    recorded = {
        "time": times,
        "mass": np.ones(len(times)),
        "energy": 1 + parts**2,
        "speed": 1e-3 * (1.1 - parts),
        "centroid": np.outer(parts, np.ones(dimension)) / dimension,
        "clusters": np.where(parts > 0, float(found), 0.0),
        "cluster_mass": masses,
        "cluster_center": centers,
        "pairs": np.array([pairs_of_points(cloud(dimension, few, part), np.ones(few)) for part in parts]),
        "pairs_close": parts**3 / 3,
    }  # fmt: skip
    if radius:
        recorded |= {"radius": np.exp(8 * parts), "variance": np.exp(16 * parts)}
    data = RunData(
        title="Tokens that gather at three places",
        manifold="particles",
        ring_cells=np.empty(0, dtype=int),
        beta=9.0,
        noise=0.0,
        attention="softmax attention",
        times=times,
        density=positions,
        diagnostics=recorded,
        dimension=dimension,
        particles=TokenData(positions, weights, radius),
        clusters=clusters,
    )
    return replace(data, **changes)


def _free_radius(directions: Mesh) -> Callable[[np.ndarray], RunData]:
    def made(times: np.ndarray) -> RunData:
        """Return the run of the three blobs, at radii that grow by two decades."""
        edges, data = np.geomspace(0.01, 1000, 61), run_data(directions, times)
        middle = np.log(edges[1:] * edges[:-1]) / 2

        def density(k: int) -> np.ndarray:
            radial = np.exp(-2 * (middle - np.log(0.5 * 100 ** (k / max(len(times) - 1, 1)))) ** 2)
            return np.outer(radial / (np.diff(np.log(edges)) @ radial), data.density(k)).ravel()

        return replace(data, manifold=f"free_radius_{directions.manifold}", edges=edges, density=density)

    return made


MANIFOLDS = {
    "axisymmetric": _axisymmetric,
    "line": _line,
    "free_radius_circle": _free_radius(circle(48)),
    "free_radius_sphere": _free_radius(sphere(12)),
}
