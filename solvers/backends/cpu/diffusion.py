"""Diffusion: two-point fluxes on surfaces, fourth-order fluxes on curves and in boxes of equal cells."""

from .launching import inline, kernel, share


@inline
def _fourth_order(before, left, right, after):
    """Return the difference of density between cells ``left`` and ``right`` for a diffusive flux of fourth order.

    ``before`` and ``after`` are the densities of the next cells on either side; all cells are equal.
    """
    return (15.0 * (right - left) - (after - before)) / 12.0


@inline
def _flux_along_line(i, k, opposite, conductance, cell_start, cell_sides, neighbors, density):
    """Return the diffusive flux into cell i through its side k, of fourth order on a line of equal cells."""
    start = cell_start[i]
    side = cell_sides[start + k]
    behind, ahead = neighbors[cell_sides[start + opposite[k]] ^ 1], neighbors[side ^ 1]
    beyond = neighbors[cell_sides[cell_start[ahead] + k] ^ 1]
    rise = _fourth_order(density[behind], density[i], density[ahead], density[beyond])
    return conductance[side >> 1] * rise


@kernel
def diffuse_on_lines(worker, workers, volumes, conductance, opposite, cell_start, cell_sides, neighbors, density, rate):
    """Compute the rate Δρ of a density ρ on lines of equal cells, by fluxes of fourth order between cells.

    opposite[k] is the number of the side opposite to side k of a cell. ``conductance`` (faces,) multiplies the
    difference between two cells.
    """
    first, last = share(worker, workers, len(rate))
    for i in range(first, last):
        total = 0.0
        for k in range(len(opposite)):
            total += _flux_along_line(i, k, opposite, conductance, cell_start, cell_sides, neighbors, density)
        rate[i] = total / volumes[i]


@kernel
def diffuse_on_surface(worker, workers, volumes, conductance, cell_start, cell_sides, neighbors, density, rate):
    """Compute the rate Δρ of a density ρ by two-point fluxes: Σ_faces conductance (ρ_j − ρ_i) / V_i in cell i.

    j is the neighbor across a face, V the cell volume. ``conductance`` is (faces,).
    """
    first, last = share(worker, workers, len(rate))
    for i in range(first, last):
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            total += conductance[side >> 1] * (density[neighbors[side ^ 1]] - density[i])
        rate[i] = total / volumes[i]


@kernel
def diffusive_flux_on_lines(worker, workers, conductance, opposite, cell_start, cell_sides, neighbors, density, sent):
    """Compute the diffusive flux out of each cell through each of its sides, 0 where the flux is inward.

    The fluxes are those of :func:`diffuse_on_lines`, of fourth order on lines of equal cells.
    """
    first, last = share(worker, workers, len(density))
    for i in range(first, last):
        for k in range(len(opposite)):
            flux = _flux_along_line(i, k, opposite, conductance, cell_start, cell_sides, neighbors, density)
            sent[cell_sides[cell_start[i] + k]] = max(-flux, 0.0)


@kernel
def diffusive_flux_on_surface(worker, workers, conductance, cell_start, cell_sides, neighbors, density, sent):
    """Compute the diffusive flux out of each cell through each of its sides, 0 where the flux is inward.

    The fluxes are those of :func:`diffuse_on_surface`, conductance times the difference of two densities.
    """
    first, last = share(worker, workers, len(density))
    for i in range(first, last):
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            sent[side] = max(conductance[side >> 1] * (density[i] - density[neighbors[side ^ 1]]), 0.0)


@kernel
def limit_outgoing_flux(
    worker, workers, volumes, cell_start, cell_sides, neighbors, density, sent, keep, following, result
):
    """Compute the density after each cell has sent the fraction ``keep`` of the masses ``sent``, and the next fraction.

    A cell sends masses (sides,) through its sides to its neighbors. The fraction ``following`` (cells,) for the next
    iteration is at most ``keep``, and so small that the cell would lose no more than it had and gained.
    """
    first, last = share(worker, workers, len(result))
    for i in range(first, last):
        gained, lost = 0.0, 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            gained += sent[side ^ 1] * keep[neighbors[side ^ 1]]
            lost += sent[side]
        mass = density[i] * volumes[i] + gained
        result[i] = (mass - keep[i] * lost) / volumes[i]
        following[i] = min(keep[i], mass / lost) if lost > 0.0 else keep[i]
        if result[i] < 0.0 and result[i] > -1e-15 * mass / volumes[i]:
            result[i] = 0.0  # rounding of a cell that sends all its mass
