"""Sides of the cells of rings of latitude: neighbor, plane and face of each side.

``sent[0, f]`` is the outgoing flux of the first cell of face f, ``sent[1, f]`` that of the second: planes 0 and 1 of a
side. ``flux``, also (2, faces), is A u·n as computed by each cell. A ring between two rings of equal size has sides
east, north, west, south at every cell, and loops over the ring have unit stride.

rows       (rings, 13) integers, see :mod:`solvers.terms.ring_geometry`; kinds and times are 1 or 2, so that shifts and
           bits replace divisions by these numbers, which take long on a GPU
"""

from ..caching import compiled

START, COUNT, KIND, KINDS, REGULAR = range(5)  # columns of rows: first cell, cells, first kind of cell, kinds
NORTH, NORTH_FACES, FACE_NORTH, NORTH_TIMES = range(5, 9)  # first cell of the northern ring, faces of a cell, first
SOUTH, SOUTH_FACES, FACE_SOUTH, SOUTH_TIMES = range(9, 13)  # face, and faces of a neighbor there; also to the south

row_kernel = compiled(fastmath={"contract"})
helper = compiled(fastmath={"contract"}, forceinline=True)  # inlined by LLVM, which compiles faster than by Numba


@helper
def ring_of(rows, i):
    """Return the number of the ring that holds cell i, by bisection in ``rows``, a table with one row for each ring."""
    low, high = 0, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        if rows[middle, START] <= i:
            low = middle
        else:
            high = middle
    return low


@helper
def side_of(k, j, row):
    """Return three numbers of side k of cell j of a ring: plane, face and neighbor.

    The plane, 0 or 1, says whether the cell is the first or second cell of the face. ``row`` (13,) describes the ring.
    """
    north, south = row[NORTH_FACES], row[SOUTH_FACES]
    if k == 0:
        east = j + 1 if j + 1 < row[COUNT] else 0
        return 0, row[START] + j, row[START] + east
    if k <= north:
        f = j * north + north - k
        return 1, row[FACE_NORTH] + f, row[NORTH] + (f >> row[NORTH_TIMES] - 1)
    if k == north + 1:
        west = j - 1 if j > 0 else row[COUNT] - 1
        return 1, row[START] + west, row[START] + west
    f = j * south + k - north - 2
    return 0, row[FACE_SOUTH] + f, row[SOUTH] + (f >> row[SOUTH_TIMES] - 1)


@helper
def ring_of_side(k, r, row):
    """Return the ring of the neighbor across side k of a cell of ring r: r, r − 1 (north) or r + 1 (south).

    ``row`` (13,) describes the ring.
    """
    if k == 0 or k == row[NORTH_FACES] + 1:
        return r
    return r - 1 if k <= row[NORTH_FACES] else r + 1


@helper
def cells_of_part(part, start, count):
    """Return the bounds of part 0, 1 or 2 of a ring, the first, inner or last cells, and offsets to their neighbors.

    The offsets are those of the eastern and the western neighbor, which is at the other end for the first and the last
    cell of a ring with cells start … start + count − 1.
    """
    if part == 0:
        return start, start + 1, 1, count - 1
    if part == 1:
        return start + 1, start + count - 1, 1, -1
    return start + count - 1, start + count, 1 - count, -1
