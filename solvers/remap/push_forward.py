"""Push-forward T_# ρ of a density by a map T: the distribution of T(x) when x has the distribution ρ.

    ∫ f dT_#ρ = ∫ f(T(x)) ρ(x) dx

on the circle, the sphere and intervals. T need be neither one-to-one nor onto, and may have jumps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..mesh.checks import check_array, check_call, check_finite, check_mesh
from ..mesh.mesh import Floats, Integers, Mesh
from ..transforms.harmonics import has_harmonics
from .dual import Dual
from .pieces import Pieces, split_into_pieces
from .splitting import images_of, split_long

Map = Callable[[Floats], Floats]


class PushForward:
    """Push-forward T#ρ on one mesh for any number of densities and maps; conserves mass to rounding and keeps ρ ≥ 0.

    T#ρ is the distribution of T(x) when x has the distribution ρ. T need be neither one-to-one nor onto, and may have
    jumps. Mass that would pass an end of an interval goes into the cell there.

    Parameters
    ----------
    mesh : Mesh
        A circle, a sphere of rings, or an interval that is not periodic.
    resolved : (float, float), optional
        Relative smoothness indicators (low, high). A cell counts as resolved below low and as unresolved above high,
        and in part between them.

    Attributes
    ----------
    mesh : Mesh
        The mesh.
    min_stretch : (float, float)
        Bounds of a cell's smallest stretch by T: below, the cell moves as a point mass.
    min_compactness : (float, float)
        Bounds of a cell's compactness: above, the mass moves as an atom.
    max_stretch : (float, float)
        Bounds of a cell's largest stretch by T: above, the cell moves in pieces.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`.
    ValueError
        For another mesh.

    Notes
    -----
    Mass of a resolved cell moves in pieces. T is approximated as linear on each piece, and ρ on the cell; the image of
    a piece is divided among the cells that it overlaps. The identity map is exact to rounding, and images have no gaps
    however large the stretch. The method is of second order on a curve. On a sphere, circles of latitude do not cut
    flat pieces exactly. The misplaced fraction of the displacement is of order h next to the poles and h² elsewhere, up
    to about h cot θ/100 of a cell.

    Mass of an unresolved cell moves as a point from the cell's center and is deposited with its first moment. Mass as
    compact as a deposited point mass is first gathered into that point, which then remains one point at its exact
    position under any number of maps. Less compact mass spreads in proportion to the square root of the number of maps,
    unless the maps contract it.

    A resolved cell also moves as a point mass where T contracts it so much that overlaps would only determine which
    cell contains the image. An unresolved cell moves in pieces where T stretches it.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import PushForward, circle
    >>> mesh = circle(64)
    >>> density = (1 + mesh.centers[:, 0]) / (2 * np.pi)
    >>> remap = PushForward(mesh)
    >>> onto_point = remap.apply(density, lambda x: np.full_like(x, [1.0, 0.0]))
    >>> round(float(onto_point @ mesh.volumes), 6)
    1.0
    >>> np.flatnonzero(onto_point)  # the two cells around angle 0
    array([ 0, 63])
    """

    min_stretch = (0.125, 0.25)  # bounds of a cell's smallest stretch: below, it moves as a point mass
    min_compactness = (0.8, 0.95)  # bounds of a cell's compactness: above, its mass moves as an atom
    max_stretch = (2.0, 4.0)  # bounds of a cell's largest stretch: above, it moves in pieces

    def __init__(self, mesh: Mesh, resolved: tuple[float, float] = (0.05, 0.15)) -> None:
        check_mesh(mesh)
        is_interval = mesh.dimension == 1 and mesh.centers.shape[1] == 1 and not mesh.periods
        if not (is_interval or has_harmonics(mesh)):
            raise ValueError(
                f"mesh of a {mesh.manifold}: expected a circle, a sphere of rings or an interval with ends"
            )
        self.mesh, self._low_high = mesh, resolved
        self.dual = Dual(mesh)
        host, to_device = mesh.on_host, mesh.backend.to_device
        self._pieces: Pieces = split_into_pieces(host).on(mesh.backend)
        self._coefficients = to_device(_gradient_coefficients(host))
        self._rings = to_device(mesh.ring_start), to_device(mesh.ring_cells)
        self._edges, self._period = to_device(_curve_edges(host)), 2 * np.pi if self.dual.closed else 0.0
        self._neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)

    def apply(self, density: Floats, map: Map) -> Floats:
        """Return T#ρ of a density ρ by a map T.

        Parameters
        ----------
        density : (cells,) array
            Density ρ at the cells. The positive and the negative part are moved separately.
        map : function x (n, d) -> (n, d) array
            The map T, from points of the manifold to points of the manifold.

        Returns
        -------
        (cells,) array
            The density T#ρ.

        Raises
        ------
        TypeError
            If the density is not an array of floating-point numbers, ``map`` not a function of x, or T(x) not real.
        ValueError
            If the density has another shape, is masked or not finite, or T(x) has another shape than x.
        FloatingPointError
            If T is not finite at a point.
        """
        check_array("density", density, (self.mesh.cells,))
        check_finite("density", density)
        check_call("map", map, "x")
        if density.min() < 0:
            return self.apply(density.clip(min=0), map) - self.apply((-density).clip(min=0), map)
        mesh, pieces = self.mesh, self._pieces
        images = images_of(map, pieces.points)
        slope, smooth = self._reconstruct(density)
        unresolved, stretched = self._unresolved_shares(images, smooth)
        resolved = 1.0 - unresolved
        masses = mesh.backend.empty(pieces.corners.shape)
        mesh.backend.launch(
            mesh.backend.fill_corners, len(pieces.corners), pieces.points, pieces.centroids, pieces.corners,
            pieces.start, pieces.volumes, density * resolved, slope * resolved[:, None], masses,
        )  # fmt: skip
        long = mesh.backend.xp.flatnonzero(stretched[pieces.corners[:, 0]])  # the first corner is the cell's center
        scattered = self._scatter(*split_long(map, long, pieces, images, masses))
        if unresolved.any():
            scattered += self._move_unresolved(unresolved, density * mesh.volumes, map)
        return scattered / mesh.volumes

    def _move_unresolved(self, unresolved: Floats, masses: Floats, map: Map) -> Floats:
        """Return the mass (cells,) that each cell receives from unresolved cells, whose mass a map moves as points.

        unresolved   (cells,) fraction of each cell's mass that moves in this way
        masses       (cells,) mass of each cell
        Compact mass, such as a deposited point mass, is first gathered into atoms (point masses). All other mass moves
        from the cell centers.
        """
        xp = self.mesh.backend.xp
        compact = _ramp(self.dual.compactness(masses), self.min_compactness)
        spread = unresolved * (1 - compact) * masses
        cells = xp.flatnonzero(spread)
        atoms, atom_masses = self.dual.gather(unresolved * compact * masses)
        points = xp.concatenate([atoms, self.mesh.centers[cells]])
        return self.dual.deposit(images_of(map, points), xp.concatenate([atom_masses, spread[cells]]))

    def _reconstruct(self, density: Floats) -> tuple[Floats, Floats]:
        """Return the gradient (cells, d) of a density, and its smoothness (cells,): 1 if resolved, 0 if unresolved."""
        mesh = self.mesh
        slope = mesh.backend.empty(mesh.centers.shape, mesh.centers.dtype)
        smooth = mesh.backend.empty(mesh.cells, mesh.volumes.dtype)
        mesh.backend.launch(
            mesh.backend.reconstruct_density, mesh.cells, mesh.centers, *self._neighborhood, self._coefficients,
            density, *self._low_high, slope, smooth,
        )  # fmt: skip
        return slope, smooth

    def _unresolved_shares(self, images: Floats, smooth: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the unresolved fraction (cells,) of each cell's mass, and a mask of cells that the map stretches.

        images   (n, d) images of the points of the cells' pieces
        smooth   (cells,) resolved fraction according to the smoothness of the density
        Cells that the map contracts much also count as unresolved, and stretched cells as resolved.
        """
        mesh, pieces = self.mesh, self._pieces
        largest, smallest = (mesh.backend.empty(mesh.cells, mesh.volumes.dtype) for _ in range(2))
        mesh.backend.launch(
            mesh.backend.stretch_factors, mesh.cells, pieces.points, images, pieces.corners, pieces.start, largest,
            smallest,
        )  # fmt: skip
        unresolved = np.maximum(1 - smooth, 1 - _ramp(smallest, self.min_stretch)) * (
            1 - _ramp(largest, self.max_stretch)
        )
        return unresolved, largest > self.max_stretch[0]

    def _scatter(self, images: Floats, corners: Integers, masses: Floats, bulges: Floats) -> Floats:
        """Return the mass (cells,) that each cell receives from the pieces whose images overlap it.

        images    (n, d) images of points
        corners   (pieces, dimension + 1) indices of the images at each piece's corners
        masses    (pieces, dimension + 1) volume of each piece times the density at each corner; their mean is its mass
        bulges    (pieces, 3) offsets of curved sides from their chords, see `Pieces`
        """
        mesh, backend = self.mesh, self.mesh.backend
        scattered = backend.zeros((backend.REMAP_PARTS, mesh.cells))
        if mesh.dimension == 2:
            angles = np.arctan2(np.hypot(images[:, 0], images[:, 1]), images[:, 2])
            placed = backend.xp.column_stack([images, angles])
            backend.launch(
                backend.remap_on_sphere, len(corners), placed, corners, masses, bulges, mesh.face_normals,
                *self._rings, self._edges, scattered,
            )  # fmt: skip
        else:
            places = np.arctan2(images[:, 1], images[:, 0]) if self.dual.closed else images[:, 0].copy()
            backend.launch(
                backend.remap_on_curve, len(corners), places, corners, masses, self._edges, self._period, scattered
            )
        total: Floats = scattered.sum(axis=0)
        return total


def push_forward(mesh: Mesh, density: Floats, map: Map) -> Floats:
    """Return T#ρ for one density and one map: the distribution of T(x) when x has the distribution ρ.

    Mass is conserved to rounding. For several maps on one mesh use :class:`~solvers.PushForward`, which describes the
    method.

    Parameters
    ----------
    mesh : Mesh
        A circle, a sphere of rings, or an interval that is not periodic.
    density : (cells,) array
        Density ρ at the cells, of any sign.
    map : function x (n, d) -> (n, d) array
        The map T, from points of the manifold to points of the manifold.

    Returns
    -------
    (cells,) array
        The density T#ρ.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, the density not an array of floating-point numbers, ``map`` not a
        function of x, or T(x) not real.
    ValueError
        For another mesh, a density that has another shape, is masked or not finite, or T(x) of another shape than x.
    FloatingPointError
        If T is not finite at a point.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import circle, push_forward
    >>> mesh = circle(64)
    >>> density = (1 + mesh.centers[:, 0]) / (2 * np.pi)
    >>> turned = push_forward(mesh, density, lambda x: np.stack([-x[:, 1], x[:, 0]], axis=1))  # by 90°, or 16 cells
    >>> bool(np.allclose(turned, np.roll(density, 16)))
    True
    """
    return PushForward(mesh).apply(density, map)


def _gradient_coefficients(mesh: Mesh) -> Floats:
    """Return coefficients c (sides, d) of least-squares gradients: ∇u = Σ c (u_j − u_i) over the sides of a cell i.

    Cell j is the neighbor across a side. The c are tangent vectors, in the order of ``cell_sides``.
    """
    x = mesh.centers
    cell = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    offsets = x[mesh.side_cells[mesh.cell_sides ^ 1]] - x[cell]
    if x.shape[1] == mesh.dimension:
        squares = np.add.reduceat(offsets[:, :, None] * offsets[:, None, :], mesh.cell_start[:-1])
    else:
        offsets -= np.einsum("nd,nd->n", offsets, x[cell])[:, None] * x[cell]
        squares = np.add.reduceat(offsets[:, :, None] * offsets[:, None, :], mesh.cell_start[:-1])
        squares += np.trace(squares, axis1=1, axis2=2)[:, None, None] * x[:, :, None] * x[:, None, :]  # invertible
    return np.asarray(np.einsum("nij,nj->ni", np.linalg.inv(squares)[cell], offsets))


def _curve_edges(mesh: Mesh) -> Floats:
    """Return the edges (cells + 1,) of a curve's cells: angles on a circle, positions on an interval.

    On a sphere they are the polar angles of the circles between rings (rings + 1,).
    """
    if mesh.dimension == 2:
        return mesh.ring_edges
    if mesh.centers.shape[1] == 1:
        return mesh.face_centers[:, 0].copy()
    return np.asarray(2 * np.pi / mesh.cells * np.arange(mesh.cells + 1), dtype=np.float64)


def _ramp(values: Floats, low_high: tuple[float, float]) -> Floats:
    """Return a smooth step of values: 0 below low, 1 above high, and a cubic between."""
    low, high = low_high
    part = ((values - low) / (high - low)).clip(0, 1)
    ramp: Floats = part * part * (3 - 2 * part)
    return ramp
