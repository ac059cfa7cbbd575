"""CPU kernels, compiled by Numba on first use and cached on disk; the list of kernels that a backend has."""

from .arrays import (
    PAIRS_ONLY,
    TRANSFORM_CELLS,
    dot,
    empty,
    erf,
    erfc,
    irfft,
    kept,
    rfft,
    sums_at,
    to_device,
    to_host,
    work_array,
    zeros,
)
from .cells import (
    advance,
    apply_matrix,
    average_neighbors,
    persistent_basins,
    project_to_tangent,
    scale_softmax,
)
from .diffusion import (
    diffuse_on_curve,
    diffuse_on_surface,
    limit_sent,
    send_diffusion_on_curve,
    send_diffusion_on_surface,
)
from .launching import WORKERS, launch
from .locating import locate_on_sphere
from .pairwise import (
    PAIR_BYTES,
    PAIR_ROWS,
    PAIR_SOURCES,
    chosen,
    either,
    exponential_sums,
    redo_sums,
)
from .push_forward import fill_corners, look_at_density, look_at_images
from .remapping import REMAP_PARTS, remap_on_curve, remap_on_sphere
from .rings.transform import (
    fold_rings,
    gradient_to_vectors,
    legendre_analysis,
    legendre_synthesis,
    unfold_rings,
)
from .rings.transport import (
    local_components,
    look_on_rings,
    outflows_on_rings,
    receive_on_rings,
    send_on_rings,
)
from .transport import outflows, receive
from .transport_curve import look_on_curve, send_on_curve
from .transport_faces import (
    divergence_of_sides,
    flux_at_faces,
    send_through_faces,
    values_at_faces,
)
from .transport_surface import look_on_surface, send_on_surface
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
    "apply_matrix",
    "average_neighbors",
    "chosen",
    "diffuse_on_curve",
    "diffuse_on_surface",
    "divergence_of_sides",
    "dot",
    "either",
    "empty",
    "erf",
    "erfc",
    "exponential_sums",
    "fill_corners",
    "flux_at_faces",
    "fold_rings",
    "gradient_to_vectors",
    "irfft",
    "kept",
    "launch",
    "legendre_analysis",
    "legendre_synthesis",
    "limit_sent",
    "local_components",
    "locate_on_sphere",
    "look_at_density",
    "look_at_images",
    "look_on_curve",
    "look_on_rings",
    "look_on_surface",
    "outflows",
    "outflows_on_rings",
    "persistent_basins",
    "project_to_tangent",
    "receive",
    "receive_on_rings",
    "redo_sums",
    "remap_on_curve",
    "remap_on_sphere",
    "rfft",
    "scale_softmax",
    "send_diffusion_on_curve",
    "send_diffusion_on_surface",
    "send_on_curve",
    "send_on_rings",
    "send_on_surface",
    "send_through_faces",
    "solve_tridiagonal",
    "sums_at",
    "to_device",
    "to_host",
    "unfold_rings",
    "values_at_faces",
    "work_array",
    "zeros",
]
