"""Protocols of backends: arrays and compiled kernels of each device, and their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
"""Array of float64 or float32, or of integers: NumPy's on the host, CuPy's on a GPU.

NumPy's ufuncs accept both; other functions of arrays are those of :attr:`Backend.xp`.
The arrays of a call have one device and one floating-point format.
"""

Kernel = Callable[..., Any]
"""Compiled function ``(worker, workers, *arguments)`` for :meth:`Backend.launch`, which computes a worker's share."""


T = TypeVar("T")


class Summary(NamedTuple):
    """Numbers of a field on a mesh, on the field's device.

    mass       () sum of values times volumes
    occupied   (1,) a multiple of the mass: the density above which a cell counts as occupied
    largest    () largest value, NaN if one is NaN; None on the host, where terms find it faster
    """

    mass: Array
    occupied: Array
    largest: Array | None


class Backend(Protocol):
    """Module of functions for one device: `solvers.backends.cpu`, `solvers.backends.gpu`.

    The protocol lists the functions and kernels. The docstrings, with the shape of each argument, are in
    `solvers.backends.cpu`, whose source is translated for the GPU.
    """

    __name__: str

    def __hash__(self) -> int: ...

    PAIRS_ONLY: bool  # whether sums over arbitrary points use all pairs
    PAIR_BYTES: int  # of a row of a tile of targets
    PAIR_SOURCES: int  # in a group
    REMAP_PARTS: int  # partial sums of a remap
    WORKERS: int  # threads of the host

    # Arrays.
    xp: Any  # NumPy or CuPy, for functions of arrays

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = ..., /) -> Array: ...
    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = ..., /) -> Array: ...
    def cached(self, make: Callable[[], Array], /) -> Callable[[], Array]: ...
    def to_device(self, array: Array, /) -> Array: ...
    def to_host(self, array: Array, /) -> Array: ...

    # Functions of arrays.
    def dot(self, one: Array, other: Array, /) -> Array: ...
    def evaluate(self, formula: Callable[..., float], *arguments: float | Array) -> Any: ...
    def largest_share(self, shares: list[Any], /) -> Any: ...
    def step_of_shares(self, shares: list[Any], /) -> Any: ...
    def summary(self, values: Array, volumes: Array, occupied: float, /) -> Summary: ...
    def uniform_part(self, density: Array, volumes: Array, mass: Array, volume: float, /) -> Any: ...
    def erf(self, values: Array, /) -> Array: ...
    def erfc(self, values: Array, /) -> Array: ...
    def rfft(self, values: Array, /) -> Array: ...
    def irfft(self, spectrum: Array, count: int, norm: str = ..., /) -> Array: ...
    def sums_at(self, places: Array, amounts: Array, count: int, /) -> Array: ...
    def wave_table(self, count: int, points: int, degree: int, /) -> Array: ...
    def solve_tridiagonal(self, below: Array, diagonal: Array, above: Array, right: Array, /) -> Array: ...
    def true_indices(self, mask: Array, /) -> tuple[Array, int | Array]: ...
    def may_have_true(self, mask: Array, /) -> bool: ...
    def conditional(self, condition: bool | Array, one: Callable[[], T], other: Callable[[], T], /) -> T: ...

    def persistent_basins(
        self, level: Array, contrast: float, start: Array, neighbors: Array, order: Array, basin: Array, /
    ) -> None: ...

    def redo_sums(
        self, lost: Array, occupied: Array, count: int | Array, targets: Callable[[Any], Array], sources: Array,
        weights: Array, sums: tuple[Array, ...], by: Callable[..., Any], /,
    ) -> None: ...  # fmt: skip

    def launch(self, kernel: Kernel, work: int, /, *arguments: Any) -> list[Any]: ...

    # Kernels of cells and time steps.
    advance: Kernel
    advance_first: Kernel
    apply_matrix: Kernel
    project_to_tangent: Kernel
    scale_softmax: Kernel

    # Kernels of transport and diffusion.
    diffuse_on_lines: Kernel
    diffuse_on_surface: Kernel
    limit_outgoing_flux: Kernel
    local_components: Kernel
    reconstruct_on_rings: Kernel
    outflow_rates_on_rings: Kernel
    divergence_on_rings: Kernel
    outgoing_flux_on_rings: Kernel
    reconstruct_on_curve: Kernel
    reconstruct_on_surface: Kernel
    outflow_rates: Kernel
    divergence: Kernel
    diffusive_flux_on_lines: Kernel
    diffusive_flux_on_surface: Kernel
    outgoing_flux_on_curve: Kernel
    outgoing_flux_on_surface: Kernel
    values_at_faces: Kernel
    vectors_at_faces: Kernel
    flux_at_faces: Kernel
    outgoing_flux_through_faces: Kernel
    divergence_of_sides: Kernel

    # Kernels of transforms and of sums over pairs.
    exponential_sums: Kernel
    gradient_to_vectors: Kernel
    legendre_analysis: Kernel
    legendre_synthesis: Kernel
    apply_blocks: Kernel
    ring_analysis: Kernel
    ring_functions: Kernel
    zonal_modes: Kernel

    # Kernels of the push-forward.
    fill_corners: Kernel
    locate_on_sphere: Kernel
    reconstruct_density: Kernel
    stretch_factors: Kernel
    remap_on_curve: Kernel
    remap_on_sphere: Kernel


class HostBackend(Backend, Protocol):
    """Backend of the host, with additional functions: `solvers.backends.cpu`."""

    # Functions of arrays.

    def bin_pairs(
        self, points: Array, tiles: Array, first: int, last: int, masses: Array, edges: Array, slots: Array,
        sums: Array, /,
    ) -> None: ...  # fmt: skip

    def sum_over_basins(
        self, basin: Array, masses: Array, points: Array, number: Array, basin_masses: Array, centers: Array, /
    ) -> int: ...

    # Kernels of clusters and of many systems of points.
    clusters_of_rows: Kernel
    exponential_sums_of_systems: Kernel

    # Kernels of rings.

    # Kernels of nonuniform transforms.
    add_bands: Kernel
    count_points: Kernel
    interpolate: Kernel
    sort_points: Kernel
    spread: Kernel
