"""CPU kernels, compiled by Numba on first use and cached on disk; the list of kernels that a backend has."""

from .arrays import (
    PAIRS_ONLY,
    TRANSFORM_CELLS,
    cached,
    distance,
    dot,
    empty,
    erf,
    erfc,
    irfft,
    rfft,
    sums_at,
    to_device,
    to_host,
    work_array,
    zeros,
)
from .basins import persistent_basins
from .cells import advance, advance_first, apply_matrix, masses_above, project_to_tangent, scale_softmax
from .diffusion import (
    diffuse_on_lines,
    diffuse_on_surface,
    diffusive_flux_on_lines,
    diffusive_flux_on_surface,
    limit_outgoing_flux,
)
from .launching import WORKERS, launch
from .locating import locate_on_sphere
from .pairwise import (
    PAIR_BYTES,
    PAIR_ROWS,
    PAIR_SOURCES,
    conditional,
    exponential_sums,
    redo_sums,
    true_indices,
)
from .push_forward import fill_corners, reconstruct_density, stretch_factors
from .remapping import REMAP_PARTS, remap_on_curve, remap_on_sphere
from .rings.divergence import divergence_on_rings, outflow_rates_on_rings
from .rings.legendre import legendre_analysis, legendre_synthesis
from .rings.transform import apply_blocks, fold_rings, gradient_to_vectors, unfold_rings, zonal_sets
from .rings.transport import local_components, outgoing_flux_on_rings, reconstruct_on_rings
from .transport import divergence, outflow_rates
from .transport_curve import outgoing_flux_on_curve, reconstruct_on_curve
from .transport_faces import (
    divergence_of_sides,
    flux_at_faces,
    outgoing_flux_through_faces,
    values_at_faces,
)
from .transport_surface import outgoing_flux_on_surface, reconstruct_on_surface
from .tridiagonal import solve_tridiagonal

__all__ = [
    "PAIRS_ONLY",
    "PAIR_BYTES",
    "PAIR_ROWS",
    "PAIR_SOURCES",
    "REMAP_PARTS",
    "TRANSFORM_CELLS",
    "WORKERS",
    "advance",
    "advance_first",
    "apply_blocks",
    "apply_matrix",
    "cached",
    "conditional",
    "diffuse_on_lines",
    "diffuse_on_surface",
    "diffusive_flux_on_lines",
    "diffusive_flux_on_surface",
    "distance",
    "divergence",
    "divergence_of_sides",
    "divergence_on_rings",
    "dot",
    "empty",
    "erf",
    "erfc",
    "exponential_sums",
    "fill_corners",
    "flux_at_faces",
    "fold_rings",
    "gradient_to_vectors",
    "irfft",
    "launch",
    "legendre_analysis",
    "legendre_synthesis",
    "limit_outgoing_flux",
    "local_components",
    "locate_on_sphere",
    "masses_above",
    "outflow_rates",
    "outflow_rates_on_rings",
    "outgoing_flux_on_curve",
    "outgoing_flux_on_rings",
    "outgoing_flux_on_surface",
    "outgoing_flux_through_faces",
    "persistent_basins",
    "project_to_tangent",
    "reconstruct_density",
    "reconstruct_on_curve",
    "reconstruct_on_rings",
    "reconstruct_on_surface",
    "redo_sums",
    "remap_on_curve",
    "remap_on_sphere",
    "rfft",
    "scale_softmax",
    "solve_tridiagonal",
    "stretch_factors",
    "sums_at",
    "to_device",
    "to_host",
    "true_indices",
    "unfold_rings",
    "values_at_faces",
    "work_array",
    "zeros",
    "zonal_sets",
]
