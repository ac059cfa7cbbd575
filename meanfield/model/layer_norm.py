"""Layer norms: how fast the output A of a layer turns a token x = rθ, and how fast the radius grows.

    θ̇ = P_θ A / s ,   ṙ = g           P_θ y = y − ⟨θ,y⟩θ

Karagodin, Geshkovski, Polyanskiy, Rigollet and others, "Normalization in attention dynamics" (2510.22026), table 1:

    post  s = 1                        pre   s = r,      g = ⟨θ,A⟩       mix   post until t = switch, then pre
    CoD   s = √(t + 1)                 peri  s = r|A|,   g = ⟨θ,A⟩/|A|   nGPT  s = |A|/alpha

``none`` leaves ẋ = A, which is pre with an A that sees x and not θ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.mesh.mesh import Floats

Sizes = Floats | float


@dataclass(frozen=True)
class LayerNorm:
    """One of the schemes in the table.

    name     key of the table
    alpha    the α of nGPT, constant in time
    switch   the time τ at which mix goes over from post to pre

    Raises ValueError for another name.
    """

    name: str = "post"
    alpha: float = 1.0
    switch: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in LAYER_NORMS:
            raise ValueError(f"layer_norm = {self.name!r}: expected one of {', '.join(LAYER_NORMS)}")

    @property
    def carries_radius(self) -> bool:
        """Whether tokens have a radius of their own."""
        return LAYER_NORMS[self.name].carries_radius

    def keeps_radius(self, time: float) -> bool:
        """Whether tokens keep their radius at a time; mix holds it until its switch."""
        return not self.carries_radius or (self.name == "mix" and time < self.switch)

    def gate(self, time: float, gate: float) -> float:
        """The γ of −γx at a time: 0 while tokens keep their radius, for layer norm takes away what points along x."""
        return 0.0 if self.keeps_radius(time) else gate

    @property
    def sees_size(self) -> bool:
        """Whether |A| matters to θ, not only P_θ A."""
        return LAYER_NORMS[self.name].sees_size

    def turn(self, time: float, radius: Sizes, direction: Floats, output: Floats) -> Floats:
        """θ̇ (n, d), tangent at θ = ``direction`` (n, d), for A = ``output`` (n, d). Where A = 0 nothing turns."""
        tangent = output - _along(direction, output)[:, None] * direction
        pace = LAYER_NORMS[self.name].pace(self, time, radius, size_of(output) if self.sees_size else 1.0)
        return tangent / by_row(pace)

    def growth(self, time: float, direction: Floats, output: Floats) -> Floats:
        """ṙ (n,) at directions θ (n, d) for A = ``output`` (n, d)."""
        size = size_of(output) if self.sees_size else 1.0
        return LAYER_NORMS[self.name].growth(self, time, _along(direction, output), size)


def by_row(sizes: Sizes) -> Sizes:
    """Sizes (n,) as (n, 1), to go with vectors (n, d); a number as it is."""
    return sizes if isinstance(sizes, float) else sizes[:, None]


def _along(direction: Floats, output: Floats) -> Floats:
    product: Floats = np.einsum("nd,nd->n", direction, output)
    return product


def size_of(output: Floats) -> Floats:
    """|A| (...) of A (..., d), never zero, for division; squares of what is small would vanish."""
    tiny = np.finfo(float).tiny
    largest = np.maximum(np.abs(output).max(axis=-1), tiny)
    return np.maximum(largest * np.sqrt(((output / largest[..., None]) ** 2).sum(axis=-1)), tiny)


def _no_growth(norm: LayerNorm, time: float, along: Floats, size: Sizes) -> Floats:
    return np.zeros_like(along)


@dataclass(frozen=True)
class _Scheme:
    """s(time, r, |A|) and ṙ(time, ⟨θ,A⟩, |A|)."""

    pace: Callable[[LayerNorm, float, Sizes, Sizes], Sizes]
    growth: Callable[[LayerNorm, float, Floats, Sizes], Floats] = _no_growth
    sees_size: bool = False

    @property
    def carries_radius(self) -> bool:
        return self.growth is not _no_growth


LAYER_NORMS: dict[str, _Scheme] = {
    "post": _Scheme(lambda norm, t, r, size: 1.0),
    "pre": _Scheme(lambda norm, t, r, size: r, lambda norm, t, along, size: along),
    "peri": _Scheme(lambda norm, t, r, size: r * size, lambda norm, t, along, size: along / size, sees_size=True),
    "mix": _Scheme(
        lambda norm, t, r, size: r if t >= norm.switch else 1.0,
        lambda norm, t, along, size: along if t >= norm.switch else np.zeros_like(along),
    ),
    "ngpt": _Scheme(lambda norm, t, r, size: size / norm.alpha, sees_size=True),
    "cod": _Scheme(lambda norm, t, r, size: np.sqrt(t + 1.0)),
    "none": _Scheme(lambda norm, t, r, size: r, lambda norm, t, along, size: along),
}
