"""Push-forward of a density by a map: smoothness indicators, stretch factors of cells, and masses of pieces."""

import numpy as np

from .launching import inline, kernel, share
from .transport import blending_weight, smoothness_indicator


@kernel
def reconstruct_density(
    worker, workers, centers, cell_start, cell_sides, neighbors, coefficients, density, low, high, slope, smooth
):
    """Compute the least-squares gradient (cells, d) of a density, and a weight (cells,), 1 where it is resolved.

    The weight decreases from 1 to 0 where a smoothness indicator increases from ``low`` to ``high``. ``coefficients``
    are the weights of the gradient for each side.
    """
    first, last = share(worker, workers, len(density))
    d = centers.shape[1]
    for i in range(first, last):
        start, end = cell_start[i], cell_start[i + 1]
        slope[i] = 0.0
        for k in range(start, end):
            rise = density[neighbors[cell_sides[k] ^ 1]] - density[i]
            for c in range(d):
                slope[i, c] += coefficients[k, c] * rise
        worst = 0.0
        for k in range(start, end):
            j = neighbors[cell_sides[k] ^ 1]
            predicted = density[i]
            for c in range(d):
                predicted += slope[i, c] * (centers[j, c] - centers[i, c])
            worst = max(worst, smoothness_indicator(density[i], density[j], predicted))
        smooth[i] = blending_weight(worst, low, high)


@inline
def _distance(points, p, q):
    """Return the distance of the points numbered p and q."""
    square = 0.0
    for c in range(points.shape[1]):
        square += (points[q, c] - points[p, c]) ** 2
    return np.sqrt(square)


@inline
def _size(points, corner):
    """Return the length of a segment or the area of a triangle, whose corners are the points numbered ``corner``."""
    a, b = corner[0], corner[1]
    if len(corner) == 2:
        return _distance(points, a, b)
    c = corner[2]
    px, py, pz = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
    qx, qy, qz = points[c, 0] - points[a, 0], points[c, 1] - points[a, 1], points[c, 2] - points[a, 2]
    x, y, z = py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx
    return 0.5 * np.sqrt(x * x + y * y + z * z)


@kernel
def stretch_factors(worker, workers, points, images, corners, start, largest, smallest):
    """Compute the largest and smallest factors by which a map of points to images stretches each cell.

    The largest factor is that of an edge. The smallest one is the change of the cell's area over the largest factor, on
    a curve the change of its length. Cell i consists of the segments or triangles in rows start[i] to start[i + 1] − 1
    of ``corners``.
    """
    first, last = share(worker, workers, len(largest))
    ends = corners.shape[1]
    for i in range(first, last):
        longest, before, after = 0.0, 0.0, 0.0
        for k in range(start[i], start[i + 1]):
            before += _size(points, corners[k])
            after += _size(images, corners[k])
            for a in range(ends):
                for b in range(a):
                    p, q = corners[k, a], corners[k, b]
                    longest = max(longest, _distance(images, p, q) / _distance(points, p, q))
        largest[i] = longest
        smallest[i] = after / before / longest ** (ends - 2) if longest > 0.0 else 0.0


@kernel
def fill_corners(worker, workers, points, centroids, corners, start, volumes, density, slope, masses):
    """Compute the volume of each piece of a cell times the density at its corners, (pieces, dimension + 1).

    The density is a linear reconstruction, ρ + g·(x − centroid) in a cell, with the slope g shortened such that no
    corner is negative. The mass of a piece is the mean over its corners.
    """
    first, last = share(worker, workers, len(density))
    d, ends = points.shape[1], corners.shape[1]
    for i in range(first, last):
        lowest = 0.0
        for k in range(start[i], start[i + 1]):
            for e in range(ends):
                rise = 0.0
                for c in range(d):
                    rise += slope[i, c] * (points[corners[k, e], c] - centroids[i, c])
                masses[k, e] = rise
                lowest = min(lowest, rise)
        part = -density[i] / lowest if density[i] + lowest < 0.0 else 1.0
        for k in range(start[i], start[i + 1]):
            for e in range(ends):
                masses[k, e] = volumes[k] * max(density[i] + part * masses[k, e], 0.0)
