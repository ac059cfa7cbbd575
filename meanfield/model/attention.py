"""Self-attention velocity of a density."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import get_args

import numpy as np

from meanfield.model.errors import ArgumentError, check_number
from meanfield.model.heads import Head
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

        softmax        Z = ∫ k ρ dy, so |A| ≤ Σ w ‖V‖
        unnormalized   Z = 1
        sinkhorn       k(x,y) is scaled to the doubly stochastic f(x) k(x,y) g(y): ∫ … ρ dy = ∫ … ρ dx = 1
                       (Sander, Ablin, Blondel, Peyré, Sinkformers, 2110.11773)

    Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), (SA) and (USA), in the limit of many tokens. With Q = K = V
    = I, Pₓ A is (1/β) ∇ log Z for softmax, and (1/β) ∇ ∫ k ρ dy for unnormalized attention.

    mesh            a circle or a sphere
    beta            inverse temperature β
    normalization   "softmax", "unnormalized" or "sinkhorn"
    heads           matrices and weights; one head of identities by default
    kernel          "exponential"; "gaussian": e^{−β|Qx−Ky|²/2}; "windowed": e^{β⟨x,y⟩} for tokens within ``window``; or
                    a :class:`meanfield.model.kernel.Kernel`
    window          angle (radians) at which the windowed kernel has fallen to half
    rescaled        unnormalized attention with k·e^{−log_bound} for all heads: the same flow by e^{log_bound} t
    include_radial  whether to include the part of A along x; if not, A may be P_x A, which is cheaper

    Attributes: ``tangent``: whether A is returned as P_x A; ``log_bound``: logarithm of the largest k; ``rate``: the
    fastest growth or decay of a mode about the uniform density (an upper bound for general matrices); ``rate_degree``:
    the degree of that mode; ``sums``: the kernel sums of each head; ``log_rescaling``: logarithm of the divisor of
    unnormalized sums.

    The masses of the cells count as points at the cell centers. Raises ArgumentError for another mesh, a beta that is
    not finite, an unknown normalization or kernel, and matrices that do not fit.

    The transforms are accurate relative to the largest Z of all cells. Digits are lost in cells far from all mass, and
    the option ``empty`` of the methods sets the values in these cells:

    exact    A is accurate to 1e-10 of Σ w ‖V‖ (softmax, sinkhorn) or of Σ w ‖V‖ ∫ k ρ dy (unnormalized) in every cell,
             by sums over pairs of a lost cell and a cell with mass. The default
    nan      NaN in cells whose sums are lost and which hold almost no mass: the cost is that of the transforms
    bounded  accurate where there is mass, and elsewhere no longer than Σ w ‖V‖ with softmax: the option of runs, where
             these cells move no mass
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
        self.heads = tuple(heads)
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
        """Return A[ρ] at the cell centers.

        Parameters
        ----------
        density : (cells,) array
            ρ ≥ 0 with respect to surface area.
        empty : {"exact", "nan", "bounded"}
            Values in cells far from all mass, see the class; by default they are accurate too.

        Returns
        -------
        (cells, d) array

        Raises
        ------
        ArgumentError
            For a density of another shape, and an unknown ``empty``.
        """
        check_unmasked("density", density)
        return self._over_heads(density, None, empty)

    def along_rings(
        self, density: Floats, normalizer: Floats | None = None, *, empty: Empty = "exact"
    ) -> Floats | None:
        """Return the components of P_x A[ρ] along east and north on the sphere (2, cells); None where A has to be in
        R³.

        Unless ``normalizer`` (cells,) is None, the sums of :meth:`normalizer_and_output` are added to ``normalizer``.
        ``empty`` is that of :meth:`output`.
        """
        if not self.has_components:
            return None
        if empty != "bounded":
            return along_east_and_north(self.mesh, self._over_heads(density, normalizer, empty))
        output = None
        for head, sums in zip(self.heads, self.sums, strict=True):
            assert isinstance(sums, ZonalSums)
            added = self._normalized(head, sums.apply_along_rings(density), normalizer)
            output = added if output is None else output + added
        assert output is not None
        return output.T

    def normalizer_and_output(self, density: Floats, *, empty: Empty = "exact") -> tuple[Floats, Floats]:
        """Return Σ_h w_h ∫ k_h(x,y) ρ(y) dy · e^{−log_bound} (cells,) and A[ρ] (cells, d) of a density (cells).

        ``empty`` is that of :meth:`output`.
        """
        normalizer = self.mesh.backend.xp.zeros_like(density)
        return normalizer, self._over_heads(density, normalizer, empty)

    @cached_property
    def has_components(self) -> bool:
        """Return whether A is tangent and computed by components along the rings of a sphere."""
        zonal = all(isinstance(sums, ZonalSums) and sums.has_components for sums in self.sums)
        return zonal and self.tangent and not self.normalization.is_two_sided

    @property
    def takes_rows(self) -> bool:
        """Return whether :meth:`of_rows` is faster than one density after the other: on the circle, by FFTs alone."""
        zonal = all(isinstance(sums, ZonalSums) and not sums.has_components for sums in self.sums)
        return zonal and not self.normalization.is_two_sided

    def of_rows(self, densities: Floats, *, empty: Empty = "exact") -> tuple[Floats, Floats]:
        """Return :meth:`normalizer_and_output` of densities (rows, cells), each row independent of the other rows.

        Requires ``takes_rows`` or ``has_components``. With ``has_components``, A is given by its components (rows,
        cells, 2).
        """
        xp = self.mesh.backend.xp
        normalizer, output = xp.zeros_like(densities), None
        if empty != "bounded":
            outputs = [self._over_heads(*row, empty) for row in zip(densities, normalizer, strict=True)]
            if self.has_components:
                outputs = [along_east_and_north(self.mesh, row).T for row in outputs]
            return normalizer, xp.stack(outputs)
        for head, sums in zip(self.heads, self.sums, strict=True):
            assert isinstance(sums, ZonalSums)
            added = self._normalized(head, sums.apply_to_rows(densities), normalizer)
            output = added if output is None else output + added
        assert output is not None
        return normalizer, output

    def _over_heads(self, density: Floats, normalizer: Floats | None, empty: Empty) -> Floats:
        """Return A[ρ], summed over the heads; unless ``normalizer`` (cells,) is None, the weighted Z are
        added to it.
        """
        if empty not in get_args(Empty):
            raise ArgumentError("empty", empty, f"one of {', '.join(get_args(Empty))}")
        if density.shape != (self.mesh.cells,):
            raise ArgumentError("density", density.shape, f"shape ({self.mesh.cells},), the number of cells")
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
        if self.normalization.is_two_sided:
            found = doubly_stochastic_density(sums, back, density, empty)
        else:
            found = sums.apply(density, empty=empty)
        return self._normalized(head, found, total)

    def _normalized(self, head: Head, sums: Sums, total: Floats | None) -> Floats:
        """Return A of one head from its sums, in place of N; unless ``total`` is None, the weighted Z is added to
        ``total``.
        """
        log_scale, normalizer, numerator = sums
        shape = numerator.shape
        found = self.normalization(sums, self.log_rescaling, reach=1.0).reshape(-1, shape[-1])
        if total is not None:
            total += normalizer * (head.weight * np.exp(log_scale - self.log_bound))
        return head.values(found, head.weight).reshape(shape)

    def _response(self, head: Head, sums: HeadSums) -> Floats:
        """Return c_l (degrees) of :func:`linear_rates`, with Q, K and V replaced by their norms."""
        relative = self.normalization.is_relative
        scale = 1.0 / sums.uniform if relative else np.exp(sums.log_bound - self.log_rescaling)
        response = np.zeros(1 + max(len(other.gradient) for other in self.sums))
        response[: len(sums.gradient)] = head.weight * head.value_norm * scale * sums.gradient / self.mesh.volume
        return response
