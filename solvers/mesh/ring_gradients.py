"""Gradients at the faces between cells of rings of latitude, of third order or better, from cell averages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .rings import Counts, Floats, Integers, Rings, faces_between, starts_of

MIN_RINGS = 8  # smallest number of rings for which the cells around a face lie in one hemisphere
REACH = 2.3  # radius of the stencil around a face, in ring heights: about 17 cells
WEIGHT_LENGTH = 1.0  # decay length of the weights in the fit, in ring heights
NODES = 3  # Gauss points along faces and along each side of a cell
DEGREES = [(a, b) for a in range(4) for b in range(4 - a)]  # exponents of the monomials of a cubic


def ring_gradients(rings: Rings) -> tuple[Integers, Integers, Floats]:
    """Return faces, cells and weights, (entries,) each: Σ weight · u over a face's entries is the mean of n·∇u there.

    The gradient is that of a cubic in the tangent plane, fitted to the averages of the cells around a face. The
    least-squares weights are e^{−d²/h²} at the distance d, with h = WEIGHT_LENGTH ring heights. Fluxes of a smooth
    field are of third order at least, also where rings of N and 2N cells meet and next to the poles (the reconstruction
    of Ollivier-Gooch and Van Altena 2002). Faces that are images of each other under rotations of the rings have the
    same weights.
    """
    counts, face_counts = rings.counts, _face_counts(rings)
    common = _smallest_counts(counts)  # number of rotations that map the rings around each group of faces to themselves
    each = face_counts // common  # faces of a group that are no images of each other
    group = np.repeat(np.arange(len(each)), each)
    number = np.arange(len(group)) - np.repeat(starts_of(each)[:-1], each)
    cells, real, gradients = _cells_of_fit(rings, group, number)
    turns = np.repeat(np.arange(len(group)), common[group])
    turn = np.arange(len(turns)) - starts_of(common[group])[:-1][turns]
    start = starts_of(counts)
    ring = np.searchsorted(start, cells, side="right")[turns] - 1
    step = counts[ring] // common[group][turns, None]
    turned = start[ring] + (cells[turns] - start[ring] + turn[:, None] * step) % counts[ring]
    face = (starts_of(face_counts)[group] + number)[turns] + turn * each[group][turns]
    used = real[turns]
    faces = np.broadcast_to(face[:, None], used.shape)[used]
    return faces.astype(np.int32), turned[used].astype(np.int32), gradients[turns][used]


def _face_counts(rings: Rings) -> Counts:
    """Return the number of faces (groups,) within each ring of latitude, then on each circle between two rings."""
    return np.append(rings.counts, faces_between(rings.counts))


def _smallest_counts(counts: Counts) -> Counts:
    """Return the smallest number of cells of a ring near each group of faces (groups,).

    This number divides the numbers of cells of all rings near the group, which have ratios 2^k. The groups are the
    faces within each ring, then those on each circle between two rings.
    """
    reach, n = int(np.ceil(REACH)) + 1, len(counts)
    min_counts = np.array([counts[max(r - reach, 0) : r + reach + 1].min() for r in range(n)])
    return np.append(min_counts, np.minimum(min_counts[:-1], min_counts[1:]))


def _cells_of_fit(rings: Rings, group: Counts, number: Counts) -> tuple[Counts, NDArray[np.bool_], Floats]:
    """Return the cells around faces (faces, maximum), a mask of valid entries, and the cells' weights in n·∇u.

    group    (faces,) group of each face, see `_face_counts`
    number   (faces,) number of the face in its group
    """
    from scipy.spatial import cKDTree

    height = np.pi / len(rings.counts)
    points, normals, middle, axes = _face_points(rings, group, number)
    centers = rings.centers(np.arange(rings.counts.sum()))
    neighbors = cKDTree(centers).query_ball_point(middle, REACH * height)
    size = np.array([len(cells) for cells in neighbors])
    real = np.arange(size.max()) < size[:, None]
    cells = np.zeros(real.shape, dtype=np.int64)
    cells[real] = np.concatenate([sorted(found) for found in neighbors])

    place = _tangent_coordinates(middle, axes, points) / height
    across = np.einsum("fgc,fac->fag", normals, axes) / height
    weights = np.polynomial.legendre.leggauss(NODES)[1] / 2
    slopes = np.einsum("g,fag,pafg->fp", weights, across, _monomial_slopes(place))

    trust = np.exp(-((centers[cells] - middle[:, None]) ** 2).sum(axis=2) / (WEIGHT_LENGTH * height) ** 2) * real
    inverse = np.linalg.pinv(_cell_averages(rings, cells, middle, axes, height) * trust[:, :, None], rcond=1e-10)
    return cells, real, np.einsum("fp,fpk->fk", slopes, inverse * trust[:, None, :])


def _face_points(rings: Rings, group: Counts, number: Counts) -> tuple[Floats, Floats, Floats, Floats]:
    """Return Gauss points and normals along faces (faces, nodes, 3), face centers (faces, 3), axes (faces, 2, 3).

    The axes are the normal at the face center and the direction along the face.

    group    (faces,) group of each face, see `_face_counts`
    number   (faces,) number of the face in its group
    """
    n, nodes = len(rings.counts), np.polynomial.legendre.leggauss(NODES)[0] / 2
    within = (group < n)[:, None]
    width = (2 * np.pi / _face_counts(rings))[group]
    azimuth = (number + np.where(within[:, 0], 1.0, 0.5)) * width
    north = np.append(rings.edges[:-1], rings.edges[1:-1])[group]
    height = np.append(np.diff(rings.edges), np.zeros(n - 1))[group]
    theta = north[:, None] + np.where(within, height[:, None] * (nodes + 0.5), 0.0)
    phi = azimuth[:, None] + np.where(within, 0.0, width[:, None] * nodes)
    out, down, east = _directions(theta, phi)
    mean, mean_down, mean_east = _directions(north + height / 2, azimuth)
    normals = np.where(within[..., None], east, down)
    axes = np.stack([np.where(within, mean_east, mean_down), np.where(within, -mean_down, mean_east)], axis=1)
    return out, normals, mean, axes


def _cell_averages(rings: Rings, cells: Counts, middle: Floats, axes: Floats, height: float) -> Floats:
    """Return averages (faces, maximum, monomials) of plane monomials over the cells around faces, by Gauss's rule.

    cells    (faces, maximum) cells around each face
    middle   (faces, 3) centers of the faces, the origins of the plane coordinates
    axes     (faces, 2, 3) directions of the plane coordinates
    height   unit of the plane coordinates
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    start = starts_of(rings.counts)
    ring = np.searchsorted(start, cells, side="right") - 1
    width = (2 * np.pi / rings.counts)[ring]
    total, area = np.zeros((*cells.shape, len(DEGREES))), np.zeros(cells.shape)
    for node, weight in zip(nodes, weights, strict=True):
        theta = rings.edges[ring] + np.diff(rings.edges)[ring] * (node + 1) / 2
        for other, share in zip(nodes, weights, strict=True):
            phi = (cells - start[ring] + (other + 1) / 2) * width
            part = weight * share * np.sin(theta)
            place = _tangent_coordinates(middle, axes, _directions(theta, phi)[0]) / height
            total += np.moveaxis(_monomials(place), 0, -1) * part[..., None]
            area += part
    return total / area[..., None]


def _tangent_coordinates(middle: Floats, axes: Floats, points: Floats) -> Floats:
    """Return coordinates (faces, 2, n) of points (faces, n, 3) along axes (faces, 2, 3), with the origin ``middle``."""
    return np.asarray(np.einsum("fnc,fac->fan", points - middle[:, None], axes))


def _monomials(place: Floats) -> Floats:
    """Return all monomials of degree up to 3 (monomials, faces, n) of plane coordinates (faces, 2, n)."""
    return np.stack([place[:, 0] ** a * place[:, 1] ** b for a, b in DEGREES])


def _monomial_slopes(place: Floats) -> Floats:
    """Return the derivatives (monomials, 2, faces, n) of the monomials up to degree 3 along both plane coordinates."""
    x, y = place[:, 0], place[:, 1]
    return np.stack([[a * x ** max(a - 1, 0) * y**b, b * x**a * y ** max(b - 1, 0)] for a, b in DEGREES])


def _directions(theta: Floats, phi: Floats) -> tuple[Floats, Floats, Floats]:
    """Return unit vectors (…, 3) outward, southward and eastward at polar angles ``theta`` and azimuths ``phi`` (…)."""
    cos, sin, zero = np.cos(phi), np.sin(phi), np.zeros(np.shape(phi))
    down = np.stack([np.cos(theta) * cos, np.cos(theta) * sin, -np.sin(theta)], axis=-1)
    out = np.stack([np.sin(theta) * cos, np.sin(theta) * sin, np.cos(theta)], axis=-1)
    return out, down, np.stack([-sin, cos, zero], axis=-1)
