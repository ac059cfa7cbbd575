"""Splitting of pieces with long images, so that a map is nearly linear on each piece."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..backends import backend_for
from ..mesh.checks import as_floats
from ..mesh.mesh import Floats, Integers
from .pieces import Numbers, Pieces

MAX_EDGE = 2.0  # maximum length of a piece's image, in cell widths
HALVINGS = {1: 10, 2: 4}  # by dimension; a map with a long image of 1/1024 or 1/16 of a cell counts as a jump


def split_long(
    map: Callable[[Floats], Floats], long: Numbers, pieces: Pieces, images: Floats, masses: Floats
) -> tuple[Floats, Integers, Floats, Floats]:
    """Split the pieces ``long`` of cells until their images under a map are short, and return the images of all pieces.

    map      function from points (n, d) to points (n, d); ``images`` (n, d) are those of ``pieces.points``
    long     indices of the pieces to split
    masses   (pieces, dimension + 1) volume of each piece times the density at each corner; their mean is its mass
    Returns images (n, d) of points; corners (pieces, dimension + 1), indices of these images; masses of that shape; and
    bulges (pieces, 3) as in `Pieces`. A piece whose image never becomes short lies across a jump; each of its corners
    then receives an equal part of the mass. Raises as :func:`images_of` for images of another shape, or that are not
    finite.
    """
    if not len(long):
        return images, pieces.corners, masses, pieces.bulges
    ends = masses.shape[1]
    parts = 2 ** (ends - 1)
    places, images_of_pieces, piece_masses = (
        pieces.points[pieces.corners[long]],
        images[pieces.corners[long]],
        masses[long],
    )
    width = pieces.widths[long]
    done: list[tuple[Floats, Floats]] = []
    for _ in range(HALVINGS[ends - 1]):
        short = _longest_edge(images_of_pieces) <= MAX_EDGE * width
        done.append((images_of_pieces[short], piece_masses[short]))
        if short.all():
            break
        places, piece_masses = _halve(places[~short]), _halve(piece_masses[~short][:, :, None])[:, :, 0] / parts
        width = width[~short].repeat(parts)
        images_of_pieces = images_of(map, pieces.project(places.reshape(-1, places.shape[2]))).reshape(places.shape)
    else:
        done += [(images_of_pieces[:, [k] * ends], piece_masses / ends) for k in range(ends)]
    return _replace_split_pieces(pieces, long, images, masses, done)


def images_of(map: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Return the images (n, d) of points (n, d) under a map.

    Raises TypeError unless the images are real numbers, ValueError unless they have the shape of the points, and
    FloatingPointError unless all are finite.
    """
    images: Floats = as_floats("map(x)", map(points))
    if images.shape != points.shape:
        raise ValueError(f"map(x) of shape {images.shape}: expected {points.shape}, the shape of x")
    if not np.isfinite(images).all():
        raise FloatingPointError(f"the map is not finite at {int((~np.isfinite(images)).any(axis=1).sum())} points")
    return images


def _replace_split_pieces(
    pieces: Pieces, long: Numbers, images: Floats, masses: Floats, done: list[tuple[Floats, Floats]]
) -> tuple[Floats, Integers, Floats, Floats]:
    """Return images, corners, masses and bulges of all pieces, in which split pieces replace those in ``long``.

    The four arrays are the results of :func:`split_long`: first the pieces that are not split, then the split ones.

    done   images (n, corners, d) and masses (n, corners) of the split pieces, in blocks
    """
    backend = backend_for(images)
    xp = backend.xp
    unchanged = xp.ones_like(masses[:, 0], dtype=bool)
    unchanged[long] = False
    extra = xp.concatenate([image for image, _ in done]).reshape(-1, images.shape[1])
    numbers = backend.to_device(len(images) + np.arange(len(extra), dtype=np.int32)).reshape(-1, masses.shape[1])
    return (
        xp.concatenate([images, extra]),
        xp.concatenate([pieces.corners[unchanged], numbers]),
        xp.concatenate([masses[unchanged], *(piece_masses for _, piece_masses in done)]),
        xp.concatenate([pieces.bulges[unchanged], backend.zeros((len(numbers), 3))]),
    )


def _longest_edge(places: Floats) -> Floats:
    """Return the length (n,) of the longest edge of segments (n, 2, d) or triangles (n, 3, d)."""
    xp = backend_for(places).xp
    edges = places - xp.roll(places, 1, axis=1)
    longest: Floats = np.sqrt(xp.einsum("nkd,nkd->nk", edges, edges).max(axis=1))
    return longest


def _halve(corners: Floats) -> Floats:
    """Split segments (n, 2, c) into two halves, or triangles (n, 3, c) into four quarters, at the midpoints of edges.

    Returns (2 n, 2, c) or (4 n, 3, c).
    """
    xp = backend_for(corners).xp
    middle = (corners + xp.roll(corners, -1, axis=1)) / 2
    if corners.shape[1] == 2:
        parts = [xp.stack([corners[:, 0], middle[:, 0]], axis=1), xp.stack([middle[:, 0], corners[:, 1]], axis=1)]
    else:
        parts = [xp.stack([corners[:, k], middle[:, k], middle[:, k - 1]], axis=1) for k in range(3)] + [middle]
    halves: Floats = xp.stack(parts, axis=1).reshape(-1, *corners.shape[1:])
    return halves
