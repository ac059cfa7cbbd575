"""Linear operators div(D∇u) with conditions on the boundary, as kernels over faces or as a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..backends import backend_for
from ..mesh.boundaries import Flux, Outflow, Part, Robin
from ..mesh.checks import shape_of
from ..mesh.lines import opposite_sides
from ..mesh.mesh import Floats, Integers, Mesh
from ..mesh.ring_gradients import MIN_RINGS, ring_gradients
from ..mesh.rings import Rings
from .ring_geometry import is_of_rings

MAX_RISE = 0.4  # relative change of a coefficient from a cell center to the boundary: a larger one is that of a jump


class Operator(Protocol):
    """Linear diffusion operator L u = coefficient · apply(u), with conditions on the boundary and without their data.

    coefficient   number D, taken out of the matrix, which may be complex; 1 for other D
    decay         (cells,) rates at which conditions on the boundary reduce u, divided by ``coefficient``; None for 0
    explicit_dt   largest explicit Euler step without a new extremum
    """

    mesh: Mesh
    coefficient: Any
    decay: Any
    explicit_dt: float

    def apply(self, values: Floats, out: Floats) -> None:
        """Write L u / coefficient (cells,) of a real field u = ``values`` (cells,) to ``out``, with Re(decay)."""
        ...

    def matrix(self) -> Any:
        """Return the sparse matrix (cells, cells) of L divided by ``coefficient``, as in :meth:`apply`, on the host."""
        ...


class FaceOperator:
    """Diffusion div(D∇u) by two-point fluxes: conductance times difference of both cells, at each face.

    D is a number, or D ≥ 0 in each cell with harmonic means at the faces. On a curve or in a box of equal cells, with a
    number D and walls only, fluxes by four cells replace these, of fourth order.
    """

    def __init__(self, mesh: Mesh, D: float | Floats, parts: tuple[Part, ...] = ()) -> None:
        self.mesh = mesh
        backend, volumes = mesh.backend, mesh.on_host.volumes
        is_number = not shape_of(D)
        self.coefficient: Any = _number(D) if is_number else 1.0
        conductances = np.asarray(mesh.face_conductances(), dtype=np.float64)
        if not is_number:
            of_cells: Any = D
            conductances = conductances * face_means(mesh, backend.to_host(of_cells))
        self.conductances = backend.to_device(conductances.astype(volumes.dtype, copy=False))
        self.decay = _decay(mesh, 1.0 if is_number else D, parts)
        rates = two_point_rates(mesh, conductances) + (0.0 if self.decay is None else backend.to_host(self.decay))
        fastest = abs(self.coefficient) * np.abs(rates).max()
        opposite = opposite_sides(mesh.on_host) if is_number and not parts else None
        self._opposite = opposite
        if opposite is not None:
            fastest *= 4 / 3  # the highest mode of the fourth-order flux
        self.explicit_dt = 1.0 / fastest if fastest > 0 else np.inf
        self._apply, self._send = _KERNELS[opposite is not None]
        sides = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        self._neighborhood = sides if opposite is None else (backend.to_device(opposite), *sides)

    def apply(self, values: Floats, out: Floats) -> None:
        mesh, backend = self.mesh, self.mesh.backend
        kernel = getattr(backend, self._apply)
        backend.launch(kernel, mesh.cells, mesh.volumes, self.conductances, *self._neighborhood, values, out)
        if self.decay is not None:
            out -= self.decay.real * values

    def matrix(self) -> Any:
        """Return the sparse matrix (cells, cells) of div(D∇u), divided by D if D is a number, on the host."""
        conductances = self.mesh.backend.to_host(self.conductances)
        if self._opposite is None:
            matrix = links_matrix(self.mesh.on_host, conductances)
        else:
            matrix = _lines_matrix(self.mesh.on_host, conductances, self._opposite)
        return _without(matrix, self.mesh, self.decay)

    def outward_flux(self, values: Floats) -> Floats:
        """Return the outward part ≥ 0 of the flux of :meth:`apply` through each side (2 faces,), for ``values``.

        Sides 2f and 2f + 1 are those of the first and second cell of face f.
        """
        mesh, backend = self.mesh, self.mesh.backend
        sent: Floats = backend.zeros(2 * mesh.faces, values.dtype)  # the flux of the outer sides of walls is 0
        kernel = getattr(backend, self._send)
        backend.launch(kernel, mesh.cells, self.conductances, *self._neighborhood, values, sent)
        return sent


_KERNELS = {
    True: ("diffuse_on_lines", "diffusive_flux_on_lines"),
    False: ("diffuse_on_surface", "diffusive_flux_on_surface"),
}


class TensorOperator:
    """Diffusion div(D∇u) as a sparse matrix, for a positive symmetric tensor D or a scalar D.

    A tensor is (d, d), or (cells, d, d) for one in each cell; a scalar is a number, or D ≥ 0 (cells,). The part of D n
    along the line between two centers is multiplied by the difference quotient, the rest by the mean of both cells'
    least-squares gradients: second order on any mesh, not monotone where D is strongly anisotropic. For a number D on
    rings of latitude, fluxes are those of fitted cubics (:mod:`solvers.mesh.ring_gradients`).
    """

    def __init__(self, mesh: Mesh, D: float | Floats, parts: tuple[Part, ...] = ()) -> None:
        self.mesh = mesh
        self.coefficient: Any = 1.0
        given: Any = D
        if not shape_of(D):
            self.coefficient, given = _number(given), np.ones(mesh.cells)
        is_number, host = not shape_of(D), mesh.on_host
        D = np.asarray(mesh.backend.to_host(given), dtype=np.float64)
        if D.ndim == 1:
            D = D[:, None, None] * np.eye(mesh.centers.shape[1])
        fluxes = _fluxes_of_cubics(host) if is_number else None
        rows, columns, weights = _entries(host, fluxes or _gradient_fluxes_of(host, D))
        for part in parts:
            more, others, rates = _rates_along(host, D, part)
            rows, columns, weights = _sum_duplicates(
                np.append(rows, more), np.append(columns, others), np.append(weights, rates), mesh.cells
            )
        to_device = mesh.backend.to_device
        self.rows, self.columns = to_device(rows), to_device(columns)
        self.weights = to_device(weights.astype(mesh.volumes.dtype))
        self.decay = _decay(mesh, to_device(D), parts)
        sums = np.bincount(rows, np.abs(weights), mesh.cells) / 2
        decay = 0.0 if self.decay is None else np.abs(mesh.backend.to_host(self.decay))
        fastest = abs(self.coefficient) * (sums + decay).max()
        self.explicit_dt = 1.0 / fastest if fastest > 0 else np.inf

    def apply(self, values: Floats, out: Floats) -> None:
        rises = values[self.columns] - values[self.rows]  # differences: the rate of a uniform field is exactly 0
        out[...] = self.mesh.backend.sums_at(self.rows, self.weights * rises, self.mesh.cells)
        if self.decay is not None:
            out -= self.decay.real * values

    def matrix(self) -> Any:
        """Return the sparse matrix (cells, cells) of div(D∇u), divided by D if D is a number, on the host."""
        from scipy.sparse import coo_matrix

        to_host, cells = self.mesh.backend.to_host, self.mesh.cells
        entries = to_host(self.weights), (to_host(self.rows), to_host(self.columns))
        return _without(coo_matrix(entries, (cells, cells)).tocsr(), self.mesh, self.decay)


def _number(D: Any) -> complex:
    """Return a coefficient as a float, or as a complex number if it is complex."""
    return complex(D) if is_complex_number(D) else float(D)


def is_complex_number(D: Any) -> bool:
    """Return whether a coefficient is one complex number; arrays of complex numbers are refused elsewhere."""
    return isinstance(D, complex | np.complexfloating)


def links_matrix(mesh: Mesh, ahead: Floats, back: Floats | None = None) -> Any:
    """Return the sparse matrix (cells, cells) of the rates of change of u by two-point fluxes through all faces.

    A face between cells i and j adds (back u_j − ahead u_i)/V_i to the rate of u_i, and (ahead u_i − back u_j)/V_j to
    that of u_j, with the volumes V.

    ahead   (faces,) coefficients of the mass sent from the first cell i to the second
    back    (faces,) coefficients of the mass sent back; None for ``ahead``, as for diffusion
    """
    from scipy.sparse import coo_matrix

    back = ahead if back is None else back
    inner = mesh.face_cells[:, 0] != mesh.face_cells[:, 1]
    (i, j), to, fro = mesh.face_cells[inner].T, ahead[inner], back[inner]
    rows, columns = np.concatenate([i, j, i, j]), np.concatenate([j, i, i, j])
    amounts = np.concatenate([fro, to, -to, -fro]) / mesh.volumes[rows]
    return coo_matrix((amounts, (rows, columns)), (mesh.cells, mesh.cells)).tocsr()


def _lines_matrix(mesh: Mesh, conductances: Floats, opposite: Integers) -> Any:
    """Return the sparse matrix (cells, cells) of Δ by fourth-order fluxes on a curve, torus or box of equal cells.

    conductances   (faces,)
    opposite       (sides of a cell,) the side opposite to each side
    """
    from scipy.sparse import csr_matrix, diags

    every, shape = np.arange(mesh.cells), (mesh.cells, mesh.cells)
    sides = mesh.cell_sides.reshape(mesh.cells, -1)
    next_to = [csr_matrix((np.ones(mesh.cells), (every, mesh.side_cells[column ^ 1])), shape) for column in sides.T]
    one, total = diags(np.ones(mesh.cells)), csr_matrix(shape)
    for k, ahead in enumerate(next_to):
        rise = (15 * (ahead - one) - (ahead @ ahead - next_to[opposite[k]])) / 12
        total = total + diags(conductances[sides[:, k] >> 1] / mesh.volumes) @ rise
    return total


def _without(matrix: Any, mesh: Mesh, decay: Floats | None) -> Any:
    """Return a sparse matrix minus the diagonal matrix of the rates ``decay`` (cells,), if given."""
    from scipy.sparse import diags

    return matrix if decay is None else matrix - diags(mesh.backend.to_host(decay))


def diffusion_source(
    mesh: Mesh, shares: Sequence[Any], parts: tuple[Part, ...], time: float, fields: int = 0
) -> Floats | None:
    """Return the rates of change (cells,) of u by boundary data g at a time, or (fields, cells) for fields > 0.

    ``shares`` are those of :func:`share_of_data`, one for each part. The result is None if no boundary part has data.
    """
    rates: Floats | None = None
    for part, share in zip(parts, shares, strict=True):
        if isinstance(part.condition, Outflow):
            continue
        coming = part.areas * part.data(time, fields) * share / mesh.volumes[part.cells]
        rates = add_at(mesh, rates, part.cells, coming)
    return rates


def face_means(mesh: Mesh, D: Floats) -> Floats:
    """Return harmonic means (faces,) of a coefficient D (cells,), as for layers in series.

    The weights are the distances from both cell centers to the face center. The mean is 0 if D is 0 in one cell.
    """
    host = mesh.on_host
    first, second = host.face_cells.T
    first_distance, far = (
        np.linalg.norm(host.shortest(host.face_centers - host.centers[side]), axis=1) for side in (first, second)
    )
    total = first_distance + far
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / (first_distance / D[first] + far / D[second])
    return np.where((D[first] > 0) & (D[second] > 0), mean, 0.0)


def two_point_rates(mesh: Mesh, conductances: Floats) -> Floats:
    """Return Σ c/V (cells,) over the inner faces of each cell of volume V, for conductances c (faces,).

    1 over the maximum is the largest explicit Euler step of diffusion without a new extremum.
    """
    host = mesh.on_host
    first, second = host.face_cells.T
    is_wall = first == second
    amounts = np.where(is_wall, 0.0, conductances) if is_wall.any() else conductances
    rates = np.bincount(first, amounts, mesh.cells)
    rates += np.bincount(second, amounts, mesh.cells)
    return np.asarray(rates / host.volumes)


def _coefficient_inside(D: Any, part: Part) -> Any:
    """Return the diffusion coefficient normal to the n faces of a boundary part in the adjacent cells.

    The result is n·D n (n,) for a tensor D with the normals n, D (n,) for one number per cell, and the number itself
    for a number.
    """
    if not shape_of(D):
        return D
    xp = backend_for(D).xp
    in_cells = xp.broadcast_to(D, (len(part.cells), *D.shape)) if len(D.shape) == 2 else D[part.cells]
    return _along_normals(xp, in_cells, part.normals)


def _along_normals(xp: Any, D: Any, normals: Any) -> Any:
    """Return n·D n (n,) for tensors D (n, d, d) and the ``normals`` n (n, d); D itself for numbers D (n,)."""
    return D if len(D.shape) == 1 else xp.einsum("nc,ncd,nd->n", normals, D, normals)


def _robin(part: Part) -> tuple[complex, float] | None:
    """Return the numbers a, b of a boundary condition a u + b ∂ₙu = g; None for a given flux and for outflow."""
    condition = part.condition
    if isinstance(condition, Robin):
        return condition.a, condition.b
    return None if isinstance(condition, (Flux, Outflow)) else (1.0, 0.0)


def share_of_data(mesh: Mesh, D: Any, part: Part) -> Any:
    """Return the derivative of the inward flux through a boundary part by the data g of its condition a u + b ∂ₙu = g.

    The derivative is D/(a h + b D/D_f) (n,) with the distance h from cell center to face, or 1 where g itself is the
    flux. D_f is the coefficient D at the face.
    """
    robin = _robin(part)
    if robin is None:
        return 1.0
    a, b = robin
    return _coefficient_inside(D, part) / (a * part.distances + (b * _fall(mesh, D, part) if b else 0.0))


def _fall(mesh: Mesh, D: Any, part: Part) -> Any:
    """Return the ratio D/D_f (n,) of a coefficient D in the cells at a boundary part to D_f at the faces.

    D_f is extrapolated linearly. The ratio is 1 at a jump, and for a coefficient that is the same in all cells.
    """
    if len(shape_of(D)) not in (1, 3):
        return 1.0
    to_host, values = mesh.backend.to_host, np.asarray(mesh.backend.to_host(D), dtype=np.float64)
    cells, normals, distances = to_host(part.cells), to_host(part.normals), to_host(part.distances)
    gradients = mesh.on_host.gradient(values.reshape(mesh.cells, -1).T)[:, cells]
    slopes = np.einsum("kcd,cd->ck", gradients, normals).reshape(-1, *values.shape[1:])
    inside = _along_normals(np, values[cells], normals)
    rise = distances * _along_normals(np, slopes, normals)
    is_smooth = np.abs(rise) <= MAX_RISE * inside
    found = np.divide(inside, inside + rise, where=is_smooth & (inside > 0), out=np.ones_like(inside))
    return mesh.backend.to_device(found.astype(mesh.volumes.dtype))


def _rates_along(mesh: Mesh, D: Floats, part: Part) -> tuple[Integers, Integers, Floats]:
    """Return the rates of change by the fluxes of a tensor along a part of the boundary, as entries of a sparse matrix.

    A condition a u + b ∂ₙu = g gives the flux n·D n ∂ₙu. The flux (D n − (n·D n) n)·∇u remains, with ∇u in the cells.
    """
    to_host = mesh.backend.to_host
    cells, normals, areas = to_host(part.cells), to_host(part.normals), to_host(part.areas)
    conormal = np.einsum("...cd,...d->...c", D if D.ndim == 2 else D[cells], normals)
    along = conormal - (conormal * normals).sum(axis=1)[:, None] * normals
    at_faces = np.zeros((mesh.cells, mesh.ambient_dimension))
    if _robin(part) is not None:
        np.add.at(at_faces, cells, areas[:, None] * along)
    owner, neighbor, weights = mesh.gradient_weights
    rates = (at_faces[owner] * weights).sum(axis=1) / mesh.volumes[owner]
    used = np.flatnonzero(rates)
    rows, columns, rates = owner[used].astype(np.int32), neighbor[used], rates[used]
    return np.append(rows, rows), np.append(columns, rows), np.append(rates, -rates)


def _decay(mesh: Mesh, D: float | Floats, parts: tuple[Part, ...]) -> Floats | None:
    """Return the decay rates a D A/(V (a h + b)) (cells,) of u by the conditions a u + b ∂ₙu = g on the boundary.

    A is a face's area, h its distance from the cell center, and V the cell's volume. The result is None if no condition
    has a ≠ 0.
    """
    total: Floats | None = None
    for part in parts:
        robin = _robin(part)
        if robin is not None and robin[0] != 0:
            rate = robin[0] * share_of_data(mesh, D, part) * part.areas / mesh.volumes[part.cells]
            total = add_at(mesh, total, part.cells, rate)
    return total


def add_at(mesh: Mesh, sums: Any, cells: Integers, amounts: Floats) -> Floats:
    """Return ``sums`` with ``amounts`` (n,) or (fields, n) added at n cells, in a new array; cells may occur twice.

    ``sums`` is (cells,), (fields, cells), or None for zeros.
    """
    if amounts.dtype.kind == "c":
        return add_at(mesh, sums, cells, amounts.real) + 1j * add_at(mesh, None, cells, amounts.imag)
    rows = amounts.reshape(-1, amounts.shape[-1])
    sums_of_rows = [mesh.backend.sums_at(cells, row, mesh.cells) for row in rows]
    added = mesh.backend.xp.stack(sums_of_rows).astype(mesh.volumes.dtype)
    added = added.reshape(*amounts.shape[:-1], mesh.cells)
    total: Floats = added if sums is None else sums + added
    return total


def _gradient_fluxes_of(mesh: Mesh, D: Floats) -> tuple[Integers, Integers, Floats]:
    """Return the fluxes A n·D∇u of a tensor D into the first cell of each inner face, as entries of a sparse matrix.

    The entries are face numbers, cells and weights: the flux is the sum of weight times u over the cells of a face.
    """
    inner = np.flatnonzero(mesh.face_cells[:, 0] != mesh.face_cells[:, 1])
    face, column, weight = gradient_fluxes(mesh, inner, D)
    return inner[face].astype(np.int32), column, weight


def has_cubics(mesh: Mesh) -> bool:
    """Return whether a mesh allows diffusive fluxes by fitted cubics: a sphere of at least MIN_RINGS rings."""
    return is_of_rings(mesh) and len(mesh.ring_cells) >= MIN_RINGS


def _fluxes_of_cubics(mesh: Mesh) -> tuple[Integers, Integers, Floats] | None:
    """Return the fluxes A n·∇u by fitted cubics into the first cell of each face, as entries of a sparse matrix.

    The entries are face numbers, cells and weights: the flux is the sum of weight times u over the cells of a face. The
    result is None on meshes other than rings of latitude.
    """
    if not has_cubics(mesh):
        return None
    faces, cells, gradients = ring_gradients(Rings(mesh.ring_cells.astype(np.int64), mesh.ring_edges))
    return faces, cells, mesh.face_areas[faces] * gradients


def _entries(mesh: Mesh, fluxes: tuple[Integers, Integers, Floats]) -> tuple[Integers, Integers, Floats]:
    """Return the sparse matrix (cells, cells) of the rates of change by ``fluxes`` into the first cell of each face.

    Fluxes and result are rows, columns and weights of the entries; the rows of the fluxes are face numbers.
    """
    face, column, weight = fluxes
    first, second = mesh.face_cells.T
    rows, columns, amounts = np.append(first[face], second[face]), np.append(column, column), np.append(weight, -weight)
    return _sum_duplicates(rows, columns, amounts / mesh.volumes[rows], mesh.cells)


def gradient_fluxes(mesh: Mesh, inner: NDArray[np.integer], D: Floats) -> tuple[Integers, Integers, Floats]:
    """Return the fluxes A n·D∇u of a tensor D into the first cell of each inner face, as entries of a sparse matrix.

    The entries are positions within ``inner`` (the numbers of the inner faces), cells and weights: the flux is the sum
    of weight times u over the cells of a face. Weights combine the difference of both cells and their mean gradients.
    """
    first, second = mesh.face_cells[inner].T
    offset = mesh.shortest(mesh.centers[second] - mesh.centers[first])
    distance = np.linalg.norm(offset, axis=1)
    line = offset / distance[:, None]
    tensor = np.broadcast_to(D, (len(inner), *D.shape)) if D.ndim == 2 else 0.5 * (D[first] + D[second])
    conormal = np.einsum("fcd,fc->fd", tensor, mesh.face_normals[inner]) * mesh.face_areas[inner, None]
    along = (conormal * line).sum(axis=1)
    across = conormal - along[:, None] * line
    every = np.arange(len(inner))
    entries = [(every, second, along / distance), (every, first, -along / distance)]
    owner, neighbor, weights = mesh.gradient_weights
    start = np.append(0, np.cumsum(np.bincount(owner, minlength=mesh.cells)))
    for cell in (first, second):
        counts = np.diff(start)[cell]
        face = np.repeat(every, counts)
        entry = np.repeat(start[cell] - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(counts.sum())
        weight = 0.5 * (across[face] * weights[entry]).sum(axis=1)
        entries += [(face, neighbor[entry], weight), (face, owner[entry], -weight)]
    faces, columns, amounts = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return faces, columns, amounts


def _sum_duplicates(rows: Any, columns: Any, weights: Floats, cells: int) -> tuple[Integers, Integers, Floats]:
    """Return the entries (row, column, weight) of a sparse matrix sorted by row, with duplicates summed."""
    key, place = np.unique(rows.astype(np.int64) * cells + columns, return_inverse=True)
    sums = np.bincount(place, weights)
    return (key // cells).astype(np.int32), (key % cells).astype(np.int32), np.asarray(sums, dtype=np.float64)
