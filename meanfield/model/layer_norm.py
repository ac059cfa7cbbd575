"""Layer norms: the velocity of a token x = rθ for the output A of a layer, and the map of one layer.

The schemes are entries of the table at the foot, which :class:`LayerNorm` explains. A new scheme is an entry of this
table: case files, domains, messages and figures follow.
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
    """Layer norm of a token x = rθ for the output A of a layer: θ̇ = (A − ⟨θ,A⟩θ)/s, ṙ = g.

    The scheme selects s and g::

        post   s = 1              g = 0
        cod    s = √(t + 1)       g = 0
        ngpt   s = |A|/alpha      g = 0
        pre    s = r              g = ⟨θ,A⟩
        peri   s = r|A|           g = ⟨θ,A⟩/|A|
        mix    post until t = switch, then pre
        none   s = r              g = ⟨θ,A⟩, that is ẋ = A, where A depends on x instead of θ

    Parameters
    ----------
    name : {"post", "pre", "peri", "mix", "ngpt", "cod", "none"}
        Scheme. The name of a loaded component of the kind "layer_norm" is a scheme too.
    alpha : float
        Speed α > 0 of tokens with ngpt.
    switch : float
        Time τ ≥ 0 at which mix switches from post to pre; infinite for never.

    Raises
    ------
    ValueError
        For another name, for an alpha that is not positive and finite, and for a negative switch.

    References
    ----------
    Karagodin, Ge, Polyanskiy, Rigollet, "Normalization in Attention Dynamics", arXiv:2510.22026v2, table 1.

    Examples
    --------
    With pre-norm a long token turns slowly. Here θ = (1, 0), r = 2 and A = (3, 4):

    >>> import numpy as np
    >>> import meanfield as mf
    >>> norm = mf.LayerNorm("pre")
    >>> turning, growth = norm.rates(0.0, np.array([2.0]), np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]]))
    >>> turning.tolist(), growth.tolist()
    ([[0.0, 2.0]], [3.0])
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
        """Return the record of the layer-norm scheme, with its functions for speed scale and radial velocity."""
        return LAYER_NORMS[self.name]

    @property
    def carries_radius(self) -> bool:
        """Return whether the layer norm lets each token x = rθ have a variable radius r."""
        return self.scheme.carries_radius

    @property
    def sees_size(self) -> bool:
        """Return whether the angular velocity of tokens depends on the length of the layer's output A.

        Otherwise it depends on the tangential part of A alone.
        """
        return self.scheme.sees_size

    def keeps_radius(self, time: float | Floats) -> bool:
        """Return whether the layer norm leaves the radius of tokens constant at a time, or at all of several times.

        Parameters
        ----------
        time : float or (n,) array
            Time or times.

        Returns
        -------
        bool
            True for schemes with g = 0, and for mix before its switch.
        """
        return not self.carries_radius or (self.scheme.parameter == "switch" and bool(np.all(time < self.switch)))

    def _gate(self, time: float | Floats, gate: float) -> float:
        """Return the coefficient γ of the decay −γx, or 0 while tokens keep their radius.

        Layer norm then removes the component along x, and with it the decay.
        """
        return 0.0 if self.keeps_radius(time) else gate

    def speed_scale(self, time: float | Floats, radius: Sizes, output: Floats | None) -> Sizes:
        """Return the number s by which layer norm divides the speed of tokens.

        Parameters
        ----------
        time : float or (n,) array
            Time, which is the depth. Several times are not allowed for mix.
        radius : float or (...) array
            Radius r > 0 of the tokens.
        output : (..., d) array or None
            Output A of the layer; None is allowed unless ``sees_size`` is true.

        Returns
        -------
        float or (...) array
            Scale s.
        """
        return self.scheme.speed_scale(self, time, radius, self._size(output))

    def angular_velocity(self, time: float | Floats, radius: Sizes, direction: Floats, output: Floats) -> Floats:
        """Return the angular velocity θ̇ of tokens, 0 where A = 0.

        Parameters
        ----------
        time : float or (n,) array
            Time, which is the depth. Several times are not allowed for mix.
        radius : float or (...) array
            Radius r > 0 of the tokens.
        direction : (..., d) array
            Unit vectors θ.
        output : (..., d) array
            Output A of the layer.

        Returns
        -------
        (..., d) array
            Angular velocity θ̇, tangent at θ.
        """
        scale = self.speed_scale(time, radius, output)
        return tangential_part(direction, output.copy()) / by_row(scale)

    def _radial_velocity(self, time: float | Floats, direction: Floats, output: Floats) -> Floats:
        """Return the radial velocity (n,), without gate, of tokens for directions (n, d) and the layer's output (n, d).

        The velocity is 0 for schemes that keep the radius.
        """
        along: Floats = _namespace(output).einsum("nd,nd->n", direction, output)
        if self.scheme.radial_velocity is None:
            return _zeros_like(along)
        return self.scheme.radial_velocity(self, time, along, self._size(output))

    def rates(
        self, time: float | Floats, radius: Floats, direction: Floats, output: Floats, gate: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return the angular velocity θ̇ and the radial velocity ṙ of tokens x = rθ from the output A of a layer.

        Parameters
        ----------
        time : float or (n,) array
            Time, which is the depth. Several times are not allowed for mix.
        radius : float or (n,) array
            Radius r > 0 of the tokens.
        direction : (n, d) array
            Unit vectors θ.
        output : (n, d) array
            Output A of the layer.
        gate : float
            Coefficient γ ≥ 0 of the decay −γx. It has no effect while the radius is kept.

        Returns
        -------
        angular : (n, d) array
            Angular velocity θ̇, tangent at θ.
        radial : (n,) array
            Radial velocity ṙ = g − γr.
        """
        radial_velocity = self._radial_velocity(time, direction, output) - self._gate(time, gate) * radius
        return self.angular_velocity(time, radius, direction, output), radial_velocity

    def velocity(
        self, time: float | Floats, radius: Floats, direction: Floats, output: Floats, gate: float = 0.0
    ) -> Floats:
        """Return the velocity ẋ = r θ̇ + ṙ θ of tokens x = rθ from the output A of a layer.

        Parameters
        ----------
        time : float or (n,) array
            Time, or the time of each token. Several times are not allowed for mix.
        radius : float or (n,) array
            Radius r > 0 of the tokens.
        direction : (n, d) array
            Unit vectors θ.
        output : (n, d) array
            Output A of the layer.
        gate : float
            Coefficient γ ≥ 0 of the decay −γx. It has no effect while the radius is kept.

        Returns
        -------
        (n, d) array
            Velocity ẋ.
        """
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
        """Return the positions of tokens after one layer, x ← αx + Δt A/s, with α = 1 − γΔt.

        The flow is the limit Δt → 0, with an error of order Δt. s is the scale at radius 1. Where the radius is kept, γ
        = 0 and the result is normalized to the radius of x. A token for which nothing is left to normalize does not
        move.

        Parameters
        ----------
        time : float
            Time before the layer.
        positions : (n, d) array
            Tokens x.
        output : (n, d) array
            Output A of the layer.
        step : float
            Duration Δt > 0 of the layer. Good values: 0.1 with the residual, 1 without.
        residual : bool
            Whether the layer adds x. Without the residual α = 0.
        gate : float
            Coefficient γ ≥ 0 of the decay −γx.

        Returns
        -------
        (n, d) array
            New positions.
        """
        radius_is_fixed = self.keeps_radius(time)
        scale = self.scheme.speed_scale(self, time, 1.0, np.maximum(self._size(output), NEGLIGIBLE))
        moved: Floats = step * output / by_row(scale)
        xp = _namespace(output)
        lengths = xp.linalg.norm(positions, axis=1)[:, None] if radius_is_fixed else 1.0
        if residual:
            moved += (1.0 - step * self._gate(time, gate)) * (positions / lengths)
        if not radius_is_fixed:
            return moved
        sizes = xp.linalg.norm(moved, axis=1)[:, None]
        moved = xp.where(sizes <= NEGLIGIBLE, positions, moved * lengths / np.maximum(sizes, NEGLIGIBLE))
        return moved

    def _size(self, output: Floats | None) -> Sizes:
        """Return the lengths |A| (...) of the outputs A (..., d) if the layer norm depends on them, else 1."""
        return size_of(output) if self.sees_size and output is not None else 1.0


def tangential_part(points: Floats, vectors: Floats) -> Floats:
    """Return the tangential parts y − ⟨x,y⟩x of vectors y (..., d) at unit vectors x (..., d), in place of y."""
    from solvers.backends import backend_for

    backend = backend_for(vectors)
    flat = vectors.reshape(-1, vectors.shape[-1])
    backend.launch(backend.project_to_tangent, len(flat), points.reshape(flat.shape), flat)
    return flat.reshape(vectors.shape)


def _namespace(array: Floats) -> Any:
    """Return the module with the functions of an array: NumPy, or CuPy for an array on a GPU."""
    from solvers.backends import backend_for

    return backend_for(array).xp


def _zeros_like(array: Floats) -> Floats:
    """Return an array of zeros with the shape, the number format and the device of an array."""
    zeros: Floats = _namespace(array).zeros_like(array)
    return zeros


def _has_switched(norm: LayerNorm, time: float | Floats) -> bool:
    """Return whether the layer norm mix has switched from post to pre at a time.

    Raises ArgumentError for several times.
    """
    if np.size(time) > 1:
        raise ArgumentError("time", np.shape(time), f"one number with the layer norm {norm.name}")
    return bool(time >= norm.switch)


def by_row(sizes: Sizes) -> Sizes:
    """Return sizes (...) with the shape (..., 1), to multiply vectors (..., d); a number is returned unchanged."""
    return sizes if isinstance(sizes, float) else sizes[..., None]


def size_of(output: Floats) -> Floats:
    """Return the lengths |A| (...) of vectors A (..., d), at least the smallest positive number, for use as divisors.

    Vectors are scaled first, so that squares of their components do not underflow.
    """
    tiny = np.finfo(float).tiny
    largest = np.maximum(np.abs(output).max(axis=-1), tiny)
    norms: Floats = np.maximum(largest * np.sqrt(((output / largest[..., None]) ** 2).sum(axis=-1)), tiny)
    return norms


@dataclass(frozen=True)
class Scheme:
    """Layer-norm scheme: an entry of the table LAYER_NORMS, for a token x = rθ and the output A of a layer.

    speed_scale       (norm, time, r, |A|) → the speed scale s of :class:`LayerNorm`
    radial_velocity   (norm, time, ⟨θ,A⟩, |A|) → the radial velocity g; None for schemes that keep the radius
    sees_size         whether |A| matters; if not, the functions get 1 in place of |A|
    sees_positions    whether attention depends on x, not on θ
    parameter         the field of LayerNorm that only this scheme uses, "alpha" or "switch"
    period            time → the time scale on which s itself changes
    text              description of the scheme in captions; None where captions omit the scheme
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
        """Return whether the radius of tokens may vary under this scheme."""
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
        lambda norm, t, r, size: r if _has_switched(norm, t) else 1.0,
        lambda norm, t, along, size: along if _has_switched(norm, t) else _zeros_like(along),
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
