"""The feed-forward network as a local velocity: the velocity of a token is the network's output at its position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.model.errors import ArgumentError, finite_array, one_of
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats


@dataclass(frozen=True, eq=False)
class FeedForward:
    """Feed-forward network F(x) = W σ(U x + b), x in R^d, as a velocity of tokens.

    A network is called with points (n, d) and returns F (n, d).

    Parameters
    ----------
    inner : (width, d) array
        Matrix U.
    bias : (width,) array
        Vector b.
    outer : (d, width) array
        Matrix W.
    activation : {"relu", "gelu", "tanh"}
        Function σ. GELU is x Φ(x) with the normal distribution Φ, not its tanh approximation.

    Raises
    ------
    ValueError
        For another activation, for numbers that are not finite or masked, and for shapes that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield as mf
    >>> network = mf.FeedForward(inner=np.eye(2), bias=np.zeros(2), outer=-np.eye(2))
    >>> network(np.array([[1.0, -2.0]])).tolist() == [[-1.0, 0.0]]  # −relu(x)
    True
    """

    inner: Floats
    bias: Floats
    outer: Floats
    activation: str = "relu"

    def __post_init__(self) -> None:
        one_of("activation", self.activation, ACTIVATIONS)
        for name, axes in (("inner", 2), ("bias", 1), ("outer", 2)):
            object.__setattr__(self, name, finite_array(name, getattr(self, name), axes))
        width, dimension = self.inner.shape
        for name, shape in (("bias", (width,)), ("outer", (dimension, width))):
            if (found := getattr(self, name).shape) != shape:
                raise ArgumentError(name, found, f"shape {shape}, as inner is {self.inner.shape}")

    def __call__(self, points: Floats) -> Floats:
        """Return the output F(x) = W σ(U x + b) (n, d) of the network at points x (n, d)."""
        inner, bias, outer = map(backend_for(points).to_device, (self.inner, self.bias, self.outer))
        return ACTIVATIONS[self.activation](points @ inner.T + bias) @ outer.T


def feed_forward_random(
    dimension: int, width: int, activation: str = "relu", strength: float = 1.0, seed: int = 0
) -> FeedForward:
    """Return a feed-forward network W σ(U x + b) in R^``dimension`` with random matrices, drawn by ``seed``.

    The entries are normal and independent: those of U have variance 1/d, of b variance 1, of W variance
    strength²/width. |F| is then of the order of ``strength`` for any width, a scaling like those of Glorot and He.
    """
    random = np.random.default_rng(seed)
    inner = random.standard_normal((width, dimension)) / np.sqrt(dimension)
    bias = random.standard_normal(width)
    outer = random.standard_normal((dimension, width)) * (strength / np.sqrt(width))
    return FeedForward(inner, bias, outer, activation)


def _relu(x: Floats) -> Floats:
    """Return max(x, 0)."""
    return np.maximum(x, 0.0)


def _gelu(x: Floats) -> Floats:
    """Return x Φ(x), with the normal distribution function Φ."""
    return x * 0.5 * (1.0 + backend_for(x).erf(x / np.sqrt(2.0)))


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"relu": _relu, "gelu": _gelu, "tanh": np.tanh}
