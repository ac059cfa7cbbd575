"""CUDA kernels for a GPU, with the names of :mod:`solvers.backends.cpu`, compiled at the first launch."""

# mypy: implicit-reexport
# ruff: noqa: F401

from .arrays import (
    PAIRS_ONLY,
    cached,
    empty,
    erf,
    erfc,
    irfft,
    rfft,
    to_device,
    to_host,
    xp,
    zeros,
)
from .cells import apply_matrix, persistent_basins, sums_at
from .launching import WORKERS, launch
from .legendre import legendre_analysis, legendre_synthesis, zonal_modes
from .pairwise import (
    PAIR_BYTES,
    PAIR_SOURCES,
    conditional,
    exponential_sums,
    may_have_true,
    redo_sums,
    true_indices,
)
from .reductions import dot, evaluate, largest_share, step_of_shares, summary, uniform_part
from .remapping import REMAP_PARTS, remap_on_curve, remap_on_sphere
from .ring_transport import (
    divergence_on_rings,
    outflow_rates_on_rings,
    outgoing_flux_on_rings,
    reconstruct_on_rings,
)
from .rings import ring_analysis, ring_functions, wave_table
from .shared import (
    advance,
    advance_first,
    apply_blocks,
    diffuse_on_lines,
    diffuse_on_surface,
    diffusive_flux_on_lines,
    diffusive_flux_on_surface,
    divergence,
    divergence_of_sides,
    fill_corners,
    flux_at_faces,
    gradient_to_vectors,
    limit_outgoing_flux,
    local_components,
    locate_on_sphere,
    outflow_rates,
    outgoing_flux_on_curve,
    outgoing_flux_on_surface,
    outgoing_flux_through_faces,
    project_to_tangent,
    reconstruct_density,
    reconstruct_on_curve,
    reconstruct_on_surface,
    scale_softmax,
    stretch_factors,
    values_at_faces,
    vectors_at_faces,
)
from .tridiagonal import solve_tridiagonal
