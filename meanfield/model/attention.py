"""Self-attention velocity of a density."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import get_args

import numpy as np

from meanfield.model.errors import ArgumentError, check_number, finite_array
from meanfield.model.heads import Head, merge_heads
from meanfield.model.kernel import Kernel, kernel_of
from meanfield.model.kernel_sums import HeadSums, ZonalSums, head_sums
from meanfield.model.linear_stability import linear_rates
from meanfield.model.normalization import Sums, normalization_of
from meanfield.model.sinkhorn import doubly_stochastic_density, transposed
from solvers.mesh.checks import check_unmasked
from solvers.mesh.coordinates import along_east_and_north
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.harmonics import has_harmonics
from solvers.transforms.lost_sums import Empty


class Attention:
    """Self-attention A[ρ](x) = Σ_h w_h V_h ∫ y k(Q_h x, K_h y) ρ(y) dy / Z_h(x), k = e^{β⟨Qx,Ky⟩}, on circle or sphere.

    The sum runs over the heads h with weights w. The normalization selects Z:

    - softmax: Z = ∫ k ρ dy, so that ``|A|`` ≤ Σ w ‖V‖.
    - unnormalized: Z = 1.
    - sinkhorn: k is replaced by the doubly stochastic kernel f(x) k(x,y) g(y) with ∫ … ρ dx = ∫ … ρ dy = 1.

    Each cell counts as a point mass at its center. With Q = K = V = I, the tangential part Pₓ A is (1/β) ∇ log Z for
    softmax, and (1/β) ∇ ∫ k ρ dy for unnormalized attention.

    Parameters
    ----------
    mesh : Mesh
        A circle, or a sphere of rings of latitude.
    beta : float
        Inverse temperature β, of any sign. Large β gives narrow clusters. Good values: 1 to 25.
    normalization : {"softmax", "unnormalized", "sinkhorn"}
        Denominator of the attention weights.
    heads : sequence of Head
        Matrices and weights of the heads. One head with Q = K = V = I by default. Heads with equal Q and K are merged.
    kernel : str
        "exponential" k = e^{β⟨Qx,Ky⟩}, "gaussian" ``e^{−β|Qx−Ky|²/2}``, or "windowed", the exponential kernel with a
        smooth cutoff at the angle ``window``. The name of a loaded component of the kind "kernel" is a kernel too.
        Windowed kernels and components require Q and K that are multiples of the identity.
    window : float, optional
        Angle in radians, 0 < window ≤ π, at which the cutoff of the windowed kernel is 1/2. Required for this kernel,
        and not allowed for others.
    rescaled : bool
        Whether unnormalized attention is divided by the largest kernel e^{log_bound}. Trajectories are the same, and
        times are longer by this factor. Required where the largest kernel exceeds e^700.
    include_radial : bool
        Whether A includes its part along x. Without it, A is Pₓ A where this is cheaper: see ``tangent``.

    Attributes
    ----------
    tangent : bool
        Whether A is returned as Pₓ A, tangent to the circle or sphere.
    log_bound : float
        Logarithm of the largest kernel of all heads.
    log_rescaling : float
        Logarithm of the divisor of unnormalized attention: ``log_bound`` if rescaled, else 0.
    rate : float
        Upper bound of the growth or decay rate of any mode about the uniform density, by attention alone.
    rate_degree : int
        Degree of the mode with this rate.
    sums : list
        Operators of the kernel sums, one for each head after merging.

    Raises
    ------
    ValueError
        If the mesh is neither a circle nor a sphere of rings, if beta is not finite, for an unknown normalization or
        kernel, for matrices of another dimension than the mesh, for a window that does not fit the kernel, and where
        the kernel exceeds the range of floating-point numbers or is too steep to be resolved.

    Notes
    -----
    Sums over the cells are computed by transforms, whose errors are relative to the largest Z of all cells. In cells
    far from all mass Z is tiny, and its digits are lost. The option ``empty`` of the methods selects the values in
    these cells:

    - "exact": Lost sums are recomputed over pairs of cells. The error of A is below 1e-10 of Σ w ‖V‖ (softmax,
      sinkhorn) or of Σ w ‖V‖ ∫ k ρ dy (unnormalized) in every cell.
    - "nan": NaN in cells whose sums are lost and which hold almost no mass. This costs no more than the transforms.
    - "bounded": Inaccurate values, with softmax no longer than Σ w ‖V‖. This suffices for advection, since these cells
      have almost no mass to move. A is NaN for a density that is not finite, which other options refuse.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794, equations (SA) and (USA), in the limit of many tokens.
    Sinkhorn normalization: Sander, Ablin, Blondel, Peyré, arXiv:2110.11773, section 3.

    Examples
    --------
    A is parallel to x for the uniform density. On the circle its length is I₁(β)/I₀(β), a ratio of Bessel functions:

    >>> import numpy as np
    >>> import meanfield as mf
    >>> from solvers import circle
    >>> mesh = circle(32)
    >>> attention = mf.Attention(mesh, beta=1.0, include_radial=True)
    >>> uniform = np.full(mesh.cells, 1 / mesh.volume)
    >>> along = (attention.output(uniform) * mesh.centers).sum(axis=1)
    >>> round(float(along[0]), 6)
    0.44639
    """

    def __init__(
        self,
        mesh: Mesh,
        beta: float,
        normalization: str = "softmax",
        *,
        heads: Sequence[Head] = (Head(),),
        kernel: str | Kernel = "exponential",
        window: float | None = None,
        rescaled: bool = False,
        include_radial: bool = False,
    ) -> None:
        if not isinstance(mesh, Mesh) or not has_harmonics(mesh):
            raise ArgumentError("mesh", getattr(mesh, "manifold", mesh), "a circle or a sphere")
        check_number("beta", beta)
        if not isinstance(heads, Sequence) or not heads or not all(isinstance(head, Head) for head in heads):
            raise ArgumentError("heads", heads, "a list of one or more Head")
        for head in heads:
            head.check_dimension(mesh.ambient_dimension)
        self.normalization, self.kernel = normalization_of(normalization), kernel_of(kernel, window)
        self.mesh, self.beta, self.rescaled = mesh, beta, rescaled
        self.heads = heads = merge_heads(heads, mesh.ambient_dimension)
        include_radial = include_radial or not all(head.is_scalar for head in heads)
        self.sums: list[HeadSums] = [head_sums(mesh, beta, head, self.kernel, include_radial) for head in heads]
        two_sided = self.normalization.is_two_sided
        back = [transposed(head, self.kernel) if two_sided else None for head in heads]
        self._back = [None if head is None else head_sums(mesh, beta, head, self.kernel, False) for head in back]
        self.tangent = not include_radial
        self.log_bound = max(sums.log_bound for sums in self.sums)
        self.normalization.check_range(beta, self.log_bound, rescaled)
        self.log_rescaling = self.log_bound if rescaled else 0.0
        responses = [self._response(head, sums) for head, sums in zip(heads, self.sums, strict=True)]
        rates = linear_rates(mesh.ambient_dimension, np.sum(np.abs(responses), axis=0))
        self.rate, self.rate_degree = float(rates.max()), int(rates.argmax())

    def output(self, density: Floats, *, empty: Empty = "exact") -> Floats:
        """Return the self-attention A[ρ] of a density ρ at the cell centers.

        Parameters
        ----------
        density : (cells,) array
            Density ρ ≥ 0 with respect to arc length or surface area.
        empty : {"exact", "nan", "bounded"}
            Values in cells far from all mass, see the Notes of the class. "exact" by default.

        Returns
        -------
        (cells, d) array
            A, tangent where ``tangent`` is true.

        Raises
        ------
        ValueError
            If the density has another shape, masked numbers, NaN or ∞, or if ``empty`` is unknown.
        NonFinite
            If the Sinkhorn iteration does not converge.
        """
        return self._sum_over_heads(self._check_density("density", density, empty), None, empty)

    def along_rings(
        self, density: Floats, normalizer: Floats | None = None, *, empty: Empty = "exact"
    ) -> Floats | None:
        """Return the components east and north of the tangential self-attention Pₓ A[ρ], on a sphere of rings.

        Parameters
        ----------
        density : (cells,) array
            Density ρ ≥ 0 with respect to surface area.
        normalizer : (cells,) array, optional
            Array to which the normalizer of :meth:`normalizer_and_output` is added in place.
        empty : {"exact", "nan", "bounded"}
            Values in cells far from all mass, see the Notes of the class. "exact" by default.

        Returns
        -------
        (2, cells) array or None
            Components along east and north; None where ``has_components`` is false.

        Raises
        ------
        ValueError
            As for :meth:`output`, or if the normalizer has another shape than the density.
        """
        if not self.has_components:
            return None
        density = self._check_density("density", density, empty)
        if normalizer is not None and np.shape(normalizer) != density.shape:
            raise ArgumentError("normalizer", np.shape(normalizer), f"shape {density.shape}, the number of cells")
        if empty != "bounded":
            return along_east_and_north(self.mesh, self._sum_over_heads(density, normalizer, empty))
        output = None
        for head, sums in zip(self.heads, self.sums, strict=True):
            assert isinstance(sums, ZonalSums)
            added = self._normalize_sums(head, sums.apply_along_rings(density), normalizer)
            output = added if output is None else output + added
        assert output is not None
        return output.T

    def normalizer_and_output(self, density: Floats, *, empty: Empty = "exact") -> tuple[Floats, Floats]:
        """Return the scaled sum of the kernels over a density ρ, and the self-attention A[ρ], at the cell centers.

        Parameters
        ----------
        density : (cells,) array
            Density ρ ≥ 0 with respect to arc length or surface area.
        empty : {"exact", "nan", "bounded"}
            Values in cells far from all mass, see the Notes of the class. "exact" by default.

        Returns
        -------
        normalizer : (cells,) array
            Σ_h w_h ∫ k_h(x,y) ρ(y) dy · e^{−log_bound}, the same for all normalizations.
        output : (cells, d) array
            A as returned by :meth:`output`.

        Raises
        ------
        ValueError
            As for :meth:`output`.
        NonFinite
            If the Sinkhorn iteration does not converge.
        """
        density = self._check_density("density", density, empty)
        normalizer = self.mesh.backend.xp.zeros_like(density)
        return normalizer, self._sum_over_heads(density, normalizer, empty)

    @cached_property
    def has_components(self) -> bool:
        """Return whether A is tangent and computed by its components along the rings of a sphere."""
        zonal = all(isinstance(sums, ZonalSums) and sums.has_components for sums in self.sums)
        return zonal and self.tangent and not self.normalization.is_two_sided

    @property
    def takes_rows(self) -> bool:
        """Return whether :meth:`of_rows` is faster than a loop over densities: where FFTs on the circle suffice."""
        zonal = all(isinstance(sums, ZonalSums) and not sums.has_components for sums in self.sums)
        return zonal and not self.normalization.is_two_sided

    def of_rows(self, densities: Floats, *, empty: Empty = "exact") -> tuple[Floats, Floats]:
        """Return scaled kernel sums and self-attention A[ρ] of several densities ρ, each independent of the others.

        Requires ``takes_rows`` or ``has_components``.

        Parameters
        ----------
        densities : (rows, cells) array
            Densities ρ ≥ 0.
        empty : {"exact", "nan", "bounded"}
            Values in cells far from all mass, see the Notes of the class. "exact" by default.

        Returns
        -------
        normalizer : (rows, cells) array
            Scaled sums of the kernels, as in :meth:`normalizer_and_output`.
        output : (rows, cells, d) or (rows, cells, 2) array
            A of each row. With ``has_components``, its components along east and north.

        Raises
        ------
        ValueError
            As for :meth:`output`.
        """
        xp, densities = self.mesh.backend.xp, self._check_density("densities", densities, empty, axes=2)
        normalizer, output = xp.zeros_like(densities), None
        if empty != "bounded":
            outputs = [self._sum_over_heads(*row, empty) for row in zip(densities, normalizer, strict=True)]
            if self.has_components:
                outputs = [along_east_and_north(self.mesh, row).T for row in outputs]
            return normalizer, xp.stack(outputs)
        for head, sums in zip(self.heads, self.sums, strict=True):
            assert isinstance(sums, ZonalSums)
            added = self._normalize_sums(head, sums.apply_to_rows(densities), normalizer)
            output = added if output is None else output + added
        assert output is not None
        return normalizer, output

    def _check_density(self, name: str, density: Floats, empty: Empty, axes: int = 1) -> Floats:
        """Return a density (cells,) or densities (rows, cells) as floating-point numbers.

        Raises ArgumentError for another shape or type, for an unknown ``empty``, and for numbers that are not finite;
        ``empty`` = "bounded" allows these in an array.
        """
        if empty not in get_args(Empty):
            raise ArgumentError("empty", empty, f"one of {', '.join(get_args(Empty))}")
        check_unmasked(name, density)
        if not hasattr(density, "dtype"):
            density = self.mesh.backend.to_device(finite_array(name, density, axes))
        if density.ndim != axes or density.shape[-1] != self.mesh.cells:
            rows = "" if axes == 1 else "rows, "
            expected = f"shape ({rows}{self.mesh.cells}{',' * (axes == 1)}), the number of cells"
            raise ArgumentError(name, density.shape, expected)
        if density.dtype.kind not in "fiu":
            raise ArgumentError(name, str(density.dtype), "real numbers")
        if empty != "bounded" and not np.isfinite(density).all():
            raise ArgumentError(name, "not finite", "finite numbers")
        return density if density.dtype.kind == "f" else density.astype(float)

    def _sum_over_heads(self, density: Floats, normalizer: Floats | None, empty: Empty) -> Floats:
        """Return the attention field A (cells, d) of a density (cells,), summed over the heads.

        The weighted sums Z of the kernels are added to ``normalizer`` (cells,), unless it is None.
        """
        output = None
        for each in zip(self.heads, self.sums, self._back, strict=True):
            added = self._attend(*each, density, normalizer, empty)
            output = added if output is None else np.add(output, added, out=output)
            del added  # free the memory before the next head allocates its sums
        assert output is not None
        return output

    def _attend(
        self, head: Head, sums: HeadSums, back: HeadSums | None, density: Floats, total: Floats | None, empty: Empty
    ) -> Floats:
        """Return the normalized attention field A of a head for a ``density`` (cells,), also two-sided (Sinkhorn).

        The weighted sum Z of the kernel is added to ``total`` (cells,) unless that is None. ``back`` gives the sums
        with the kernel k(y, x); it is None for a symmetric kernel, and for one-sided attention.
        """
        if self.normalization.is_two_sided:
            found = doubly_stochastic_density(sums, back, density, empty)
        else:
            found = sums.apply(density, empty=empty)
        return self._normalize_sums(head, found, total)

    def _normalize_sums(self, head: Head, sums: Sums, total: Floats | None) -> Floats:
        """Return the attention field A of one head from its kernel sums, in place of the sum N of y k over the density.

        The weighted sum Z of the kernel is added to ``total``, unless it is None.
        """
        log_scale, normalizer, numerator = sums
        shape = numerator.shape
        found = self.normalization(sums, self.log_rescaling, reach=1.0).reshape(-1, shape[-1])
        if total is not None:
            total += normalizer * (head.weight * np.exp(log_scale - self.log_bound))
        return head.values(found, head.weight).reshape(shape)

    def _response(self, head: Head, sums: HeadSums) -> Floats:
        """Return the linear response c_l (degrees) of one head to perturbations of the uniform density, an upper bound.

        c_l is that of :func:`linear_rates`, with Q, K and V replaced by their norms.
        """
        relative = self.normalization.is_relative
        scale = 1.0 / sums.uniform if relative else np.exp(sums.log_bound - self.log_rescaling)
        response = np.zeros(1 + max(len(other.gradient) for other in self.sums))
        response[: len(sums.gradient)] = head.weight * head.value_norm * scale * sums.gradient / self.mesh.volume
        return response
