"""Self-attention as a velocity of the density: every token moves towards the tokens that it attends to."""

from __future__ import annotations

import numpy as np

from solvers.mesh import Floats, Mesh
from solvers.zonal import (
    exponential_degree,
    exponential_gradient_multipliers,
    exponential_multipliers,
    zonal_operator,
)


class Attention:
    """X[ρ](x) = v Pₓ ∫ y e^{β⟨x,y⟩} ρ(y) dy / Z(x) on the circle or the sphere, for multiples of the identity.

    softmax: Z = ∫ e^{β⟨x,y⟩} ρ dy, so X = (v/β) ∇ log Z and |X| ≤ |v|.
    unnormalized: Z = 1, so X = (v/β) ∇ ∫ e^{β⟨x,y⟩} ρ dy.
    Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), (SA) and (USA), in the limit of many tokens.

    mesh            a circle or a sphere
    beta            inverse temperature; negative where QᵀK = −I
    normalization   "softmax" or "unnormalized"
    value           v of V = vI
    rescaled        unnormalized attention with e^{β⟨x,y⟩ − |β|}: the same flow by the clock e^{|β|} t

    ``rate`` is the fastest growth or decay of a mode about the uniform density, ``rate_degree`` that mode's degree.

    The cells' masses count as points at the cell centers; the uniform density's part is exact, so that uniform stays
    uniform to the last bit.
    """

    def __init__(
        self,
        mesh: Mesh,
        beta: float,
        normalization: str = "softmax",
        value: float = 1.0,
        rescaled: bool = False,
    ) -> None:
        if normalization not in ("softmax", "unnormalized"):
            raise ValueError(f"normalization = {normalization!r}: expected 'softmax' or 'unnormalized'")
        dimension = mesh.centers.shape[1]
        degrees = exponential_degree(dimension, beta) + 1
        kernel = exponential_multipliers(dimension, beta, degrees)
        self.mesh, self.beta, self.normalization, self.value = mesh, beta, normalization, value
        self.scale = 1.0 if rescaled or normalization == "softmax" else float(np.exp(abs(beta)))
        gradient = exponential_gradient_multipliers(dimension, beta, degrees)
        self._sum = zonal_operator(mesh, kernel, gradient)
        self._mean = 1.0 / mesh.volume
        self._masses = np.empty(mesh.cells)
        self._uniform = float(kernel[0]) * self._mean  # Z of the uniform density
        l = np.arange(degrees)
        size = self._uniform if normalization == "softmax" else 1.0 / self.scale
        rates = l * (l + dimension - 2) * np.abs(gradient * self._mean * value / size)
        self.rate, self.rate_degree = float(rates.max()), int(rates.argmax())

    def velocity(self, time: float, density: Floats) -> Floats:
        """X[ρ] at cell centers, (cells, d), tangent; ``time`` is not used."""
        return self.normalizer_and_velocity(density)[1]

    def normalizer_and_velocity(self, density: Floats) -> tuple[Floats, Floats]:
        """∫ e^{β⟨x,y⟩ − |β|} ρ(y) dy, (cells), and X[ρ], (cells, d), of a density (cells)."""
        np.subtract(density, self._mean, out=self._masses)
        self._masses *= self.mesh.volumes
        normalizer, vectors = self._sum.apply(self._masses)
        normalizer += self._uniform
        if self.normalization == "softmax":
            kernels = self.mesh.kernels
            kernels.launch(kernels.scale_softmax, len(normalizer), normalizer, vectors)
        factor = self.scale * self.value
        if factor != 1.0:
            vectors *= factor
        return normalizer, vectors
