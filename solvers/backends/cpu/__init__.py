"""CPU kernels, compiled by Numba on first use and cached on disk; the list of kernels that a backend has."""

# mypy: implicit-reexport
# ruff: noqa: F401

from .arrays import (
    PAIRS_ONLY,
    cached,
    dot,
    empty,
    erf,
    erfc,
    evaluate,
    irfft,
    largest_share,
    rfft,
    step_of_shares,
    summary,
    sums_at,
    to_device,
    to_host,
    uniform_part,
    xp,
    zeros,
)
from .basins import clusters_of_rows, persistent_basins, sum_over_basins
from .cells import advance, advance_first, apply_matrix, project_to_tangent, scale_softmax
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
    PAIR_SOURCES,
    bin_pairs,
    conditional,
    exponential_sums,
    may_have_true,
    redo_sums,
    true_indices,
)
from .points.spreading import add_bands, count_points, interpolate, sort_points, spread
from .push_forward import fill_corners, reconstruct_density, stretch_factors
from .remapping import REMAP_PARTS, remap_on_curve, remap_on_sphere
from .rings.divergence import divergence_on_rings, outflow_rates_on_rings
from .rings.legendre import legendre_analysis, legendre_synthesis, zonal_modes
from .rings.sums import ring_analysis, ring_functions, wave_table
from .rings.transform import apply_blocks, gradient_to_vectors
from .rings.transport import local_components, outgoing_flux_on_rings, reconstruct_on_rings
from .systems import exponential_sums_of_systems
from .transport import divergence, outflow_rates
from .transport_curve import outgoing_flux_on_curve, reconstruct_on_curve
from .transport_faces import (
    divergence_of_sides,
    flux_at_faces,
    outgoing_flux_through_faces,
    values_at_faces,
    vectors_at_faces,
)
from .transport_surface import outgoing_flux_on_surface, reconstruct_on_surface
from .tridiagonal import solve_tridiagonal
