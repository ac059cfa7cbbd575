"""Layer norms: the velocity of a token x = rθ for the output A of a layer, and the map of one layer.

    θ̇ = P_θ A / s ,   ṙ = g           P_θ y = y − ⟨θ,y⟩θ

Karagodin, Geshkovski, Polyanskiy, Rigollet and others, "Normalization in attention dynamics" (2510.22026), table 1:

    post  s = 1                        pre   s = r,      g = ⟨θ,A⟩       mix   post until t = switch, then pre
    CoD   s = √(t + 1)                 peri  s = r|A|,   g = ⟨θ,A⟩/|A|   nGPT  s = |A|/alpha

``none`` leaves ẋ = A, which is pre with an A that depends on x instead of θ. A new scheme is an entry of the table at
the foot: case files, domains, messages and figures follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.model.errors import ArgumentError, check_number, one_of

if TYPE_CHECKING:
    from solvers.mesh.mesh import Floats

    Sizes = Floats | float

NEGLIGIBLE = 1e-12  # size of |A|, or of αx + Δt A/s beside |x| = 1, below which the direction is only rounding


@dataclass(frozen=True)
class LayerNorm:
    """Layer norm: one of the schemes in the table, with its parameters.

    name     key of the table
    alpha    the α of nGPT, constant in time
    switch   the time τ at which mix switches from post to pre

    Raises ArgumentError for another name, for an alpha that is not positive and finite, and a negative switch.
    """

    name: str = "post"
    alpha: float = 1.0
    switch: float = 1.0

    def __post_init__(self) -> None:
        one_of("name", self.name, LAYER_NORMS)
        check_number("alpha", self.alpha)
        if self.alpha <= 0:
            raise ArgumentError("alpha", self.alpha, "a number > 0")
        if self.switch != np.inf:  # inf: never switch
            check_number("switch", self.switch)
        if self.switch < 0:
            raise ArgumentError("switch", self.switch, "a number >= 0")

    @property
    def scheme(self) -> Scheme:
        """Return the entry of the table."""
        return LAYER_NORMS[self.name]

    @property
    def carries_radius(self) -> bool:
        """Return whether each token has a variable radius."""
        return self.scheme.carries_radius

    @property
    def sees_size(self) -> bool:
        """Return whether |A| matters to θ, not only P_θ A."""
        return self.scheme.sees_size

    def keeps_radius(self, time: float | Floats) -> bool:
        """Return whether tokens keep their radius at a time, or at all times (n,); mix does until its switch."""
        return not self.carries_radius or (self.scheme.parameter == "switch" and bool(np.all(time < self.switch)))

    def gate(self, time: float | Floats, gate: float) -> float:
        """Return γ of −γx at a time: 0 while tokens keep their radius, since layer norm removes the
        component along x.
        """
        return 0.0 if self.keeps_radius(time) else gate

    def speed_scale(self, time: float | Floats, radius: Sizes, output: Floats | None) -> Sizes:
        """Return s (...) for A = ``output`` (..., d), which only the schemes that depend on |A| need."""
        return self.scheme.speed_scale(self, time, radius, self._size(output))

    def angular_velocity(self, time: float | Floats, radius: Sizes, direction: Floats, output: Floats) -> Floats:
        """Return θ̇ (..., d), tangent at θ = ``direction`` (..., d), for A = ``output`` (..., d); 0 where A = 0."""
        scale = self.speed_scale(time, radius, output)
        return projected(direction, output.copy()) / by_row(scale)

    def radial_velocity(self, time: float | Floats, direction: Floats, output: Floats) -> Floats:
        """Return g (n,), the ṙ at directions θ (n, d) for A = ``output`` (n, d)."""
        along: Floats = _namespace(output).einsum("nd,nd->n", direction, output)
        if self.scheme.radial_velocity is None:
            return _zeros_like(along)
        return self.scheme.radial_velocity(self, time, along, self._size(output))

    def rates(
        self, time: float | Floats, radius: Floats, direction: Floats, output: Floats, gate: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return θ̇ (n, d) and ṙ = g − γr (n,)."""
        radial_velocity = self.radial_velocity(time, direction, output) - self.gate(time, gate) * radius
        return self.angular_velocity(time, radius, direction, output), radial_velocity

    def velocity(
        self, time: float | Floats, radius: Floats, direction: Floats, output: Floats, gate: float = 0.0
    ) -> Floats:
        """Return ẋ = r θ̇ + ṙ θ (n, d) at a time, or at a time (n,) of each token where the layer norm has no switch."""
        angular_velocity, radial_velocity = self.rates(time, radius, direction, output, gate)
        return radius[:, None] * angular_velocity + radial_velocity[:, None] * direction

    def layer_map(
        self,
        time: float,
        positions: Floats,
        output: Floats,
        step: float,
        *,
        residual: bool = True,
        gate: float = 0.0,
    ) -> Floats:
        """Return the new positions x ← αx + Δt A/s (n, d), for A = ``output`` (n, d); α = 1 − γΔt, or 0 without the
        residual.

        s is the speed scale at radius 1. Where the radius is kept, θ ← N(αθ + Δt A/s) with γ = 0, N y = y/|y|, and a
        token for which N has nothing to normalize does not move. The flow is the limit Δt → 0, with an error of order
        Δt.
        """
        radius_is_fixed = self.keeps_radius(time)
        scale = self.scheme.speed_scale(self, time, 1.0, np.maximum(self._size(output), NEGLIGIBLE))
        moved: Floats = step * output / by_row(scale)
        xp = _namespace(output)
        lengths = xp.linalg.norm(positions, axis=1)[:, None] if radius_is_fixed else 1.0
        if residual:
            moved += (1.0 - step * self.gate(time, gate)) * (positions / lengths)
        if not radius_is_fixed:
            return moved
        sizes = xp.linalg.norm(moved, axis=1)[:, None]
        moved = xp.where(sizes <= NEGLIGIBLE, positions, moved * lengths / np.maximum(sizes, NEGLIGIBLE))
        return moved

    def _size(self, output: Floats | None) -> Sizes:
        return size_of(output) if self.sees_size and output is not None else 1.0


def projected(points: Floats, vectors: Floats) -> Floats:
    """Return P_x y = y − ⟨x,y⟩x at unit vectors x (..., d), in place of y (..., d)."""
    from solvers.backends import backend_for

    backend = backend_for(vectors)
    flat = vectors.reshape(-1, vectors.shape[-1])
    backend.launch(backend.project_to_tangent, len(flat), points.reshape(flat.shape), flat)
    return flat.reshape(vectors.shape)


def _namespace(array: Floats) -> Any:
    """Return NumPy, or CuPy for an array on a device."""
    from solvers.backends import backend_for

    return backend_for(array).xp


def _zeros_like(array: Floats) -> Floats:
    zeros: Floats = _namespace(array).zeros_like(array)
    return zeros


def by_row(sizes: Sizes) -> Sizes:
    """Return sizes (...) as (..., 1), to multiply vectors (..., d); a number is returned unchanged."""
    return sizes if isinstance(sizes, float) else sizes[..., None]


def size_of(output: Floats) -> Floats:
    """Return |A| (...) of A (..., d), never zero, for division; scaling avoids the underflow of squares."""
    tiny = np.finfo(float).tiny
    largest = np.maximum(np.abs(output).max(axis=-1), tiny)
    norms: Floats = np.maximum(largest * np.sqrt(((output / largest[..., None]) ** 2).sum(axis=-1)), tiny)
    return norms


@dataclass(frozen=True)
class Scheme:
    """Layer-norm scheme: an entry of the table.

    speed_scale      (norm, time, r, |A|) → s
    radial_velocity  (norm, time, ⟨θ,A⟩, |A|) → g; None for schemes that keep the radius
    sees_size        whether |A| matters; if not, the functions get 1 in place of |A|
    sees_positions   whether attention depends on x, not on θ
    parameter        the field of LayerNorm that only this scheme uses, "alpha" or "switch"
    period           time → the time scale on which s itself changes
    text             in captions; None where captions omit the scheme
    """

    speed_scale: Callable[[LayerNorm, float | Floats, Sizes, Sizes], Sizes]
    radial_velocity: Callable[[LayerNorm, float | Floats, Floats, Sizes], Floats] | None = None
    sees_size: bool = False
    sees_positions: bool = False
    parameter: str | None = None
    period: Callable[[float], float] = lambda time: np.inf
    text: str | None = None

    @property
    def carries_radius(self) -> bool:
        return self.radial_velocity is not None


LAYER_NORMS: dict[str, Scheme] = {
    "post": Scheme(lambda norm, t, r, size: 1.0),
    "pre": Scheme(lambda norm, t, r, size: r, lambda norm, t, along, size: along, text="pre layer norm"),
    "peri": Scheme(
        lambda norm, t, r, size: r * size,
        lambda norm, t, along, size: along / size,
        sees_size=True,
        text="peri layer norm",
    ),
    "mix": Scheme(
        lambda norm, t, r, size: r if t >= norm.switch else 1.0,
        lambda norm, t, along, size: along if t >= norm.switch else _zeros_like(along),
        parameter="switch",
        text="mix layer norm",
    ),
    "ngpt": Scheme(lambda norm, t, r, size: size / norm.alpha, sees_size=True, parameter="alpha", text="nGPT"),
    "cod": Scheme(lambda norm, t, r, size: np.sqrt(t + 1.0), period=lambda time: time + 1.0, text="CoD layer norm"),
    "none": Scheme(
        lambda norm, t, r, size: r,
        lambda norm, t, along, size: along,
        sees_positions=True,
        text="no layer norm",
    ),
}
SPHERICAL_NORMS = tuple(name for name, scheme in LAYER_NORMS.items() if not scheme.carries_radius)
RADIAL_NORMS = tuple(name for name, scheme in LAYER_NORMS.items() if scheme.carries_radius)
