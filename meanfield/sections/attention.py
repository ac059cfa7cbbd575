"""Sections [attention], [feed_forward] and [reaction]: the velocity of tokens and their local rate of change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.model.kernel import KERNELS
from meanfield.model.normalization import NORMALIZATIONS
from meanfield.sections.section import Count, Key, Matrix, NotNegative, Positive, Section, Seed, Vector

Ensemble = Literal["ginibre", "goe", "wigner", "orthogonal", "positive", "negative"]


class RandomMatrix(Section, frozen=True):
    """Random d×d matrix of an ensemble, multiplied by ``scale`` and determined by ``seed``."""

    ensemble: Ensemble
    seed: Seed = 0
    scale: float = 1.0

    about: ClassVar = {
        "ensemble": Key("Gaussian entries, symmetric (goe, wigner), a rotation, or symmetric definite", "ginibre"),
        "seed": Key("seed of the random numbers: the same seed gives the same matrix", 1),
        "scale": Key("factor of the matrix", 0.5),
    }


class Head(Section, frozen=True):
    """Attention head with a weight: Q, K and V as d×d matrices or random matrices, the identity if left out."""

    query: Matrix | RandomMatrix | None = None
    key: Matrix | RandomMatrix | None = None
    value: Matrix | RandomMatrix | None = None
    weight: float = 1.0

    about: ClassVar = {
        "query": Key("Q, d×d, or a random matrix; the identity if left out", [[1.0, 0.0], [0.0, 1.0]]),
        "key": Key("K, d×d, or a random matrix; the identity if left out", [[1.0, 0.0], [0.0, 1.0]]),
        "value": Key("V, d×d, or a random matrix; the identity if left out", [[0.0, -1.0], [1.0, 0.0]]),
        "weight": Key("factor of the head in the sum of all heads", 0.5),
    }


class Pattern(Section, frozen=True):
    """Sparse attention of tokens in their order, as in Longformer and BigBird; mask = "causal" excludes later tokens.

    ``local`` is the largest distance in the sequence. The first ``global_tokens`` tokens attend to all and are attended
    to by all. Each token draws ``random_tokens`` further tokens by ``seed``.
    """

    local: Annotated[int, Meta(ge=0)] = 0
    global_tokens: Annotated[int, Meta(ge=0)] = 0
    random_tokens: Annotated[int, Meta(ge=0)] = 0
    seed: Seed = 0

    about: ClassVar = {
        "local": Key("distance in the sequence up to which a token attends to others", 3),
        "global_tokens": Key("number of first tokens that attend to all and are attended to by all", 1),
        "random_tokens": Key("number of further tokens, drawn at random, that each token attends to", 2),
        "seed": Key("seed of the random tokens", 1),
    }


class Attention(Section, frozen=True):
    """Attention: the kernel e^{β⟨Qx, Ky⟩}, its normalization, and the values Vy.

    ``normalization`` softmax divides the kernel by its mean, sinkhorn by both marginals, unnormalized by nothing.
    ``kernel`` gaussian is e^{−β|Qx−Ky|²/2}; windowed smoothly excludes tokens farther than ``window`` radians. ``mask``
    causal: tokens attend to those of their label and of lower labels. ``rescaled`` (unnormalized only) divides all
    kernels by the largest value of any: the same flow in rescaled time. Matrices are given by query, key and value, or
    by ``heads``, or by ``file``: .npz or .h5 with arrays query, key, value (layers, d, d) or (layers, heads, d, d), one
    set a layer; the last set is used for all later layers. Heads are summed with their weights: ``weight`` of each, 1
    if left out; in a file of several heads the array weight (heads,) or (layers, heads).
    """

    beta: NotNegative
    normalization: str = "softmax"
    kernel: str = "exponential"
    window: Annotated[float, Meta(ge=1e-6, le=math.pi)] | None = None
    mask: Literal["none", "causal"] = "none"
    rescaled: bool = False
    pattern: Pattern | None = None
    query: Matrix | RandomMatrix | None = None
    key: Matrix | RandomMatrix | None = None
    value: Matrix | RandomMatrix | None = None
    heads: Annotated[tuple[Head, ...], Meta(min_length=1)] | None = None
    file: str | None = None

    about: ClassVar = {
        "beta": Key("inverse temperature β of the kernel e^{β⟨Qx, Ky⟩}", 4.0),
        "normalization": Key(
            "divisor of the kernel: its mean (softmax), none, or both marginals (sinkhorn)", "softmax"
        ),
        "kernel": Key("e^{β⟨Qx, Ky⟩}, e^{−β|Qx − Ky|²/2}, or the first kernel with a cutoff angle", "exponential"),
        "window": Key("angle of kernel = 'windowed', beyond which tokens do not attend", 0.5, unit="rad"),
        "mask": Key("causal: tokens attend to those of their label and of lower labels", "causal"),
        "pattern": Key("sparse attention of tokens in their order: a window, global and random tokens", {"local": 3}),
        "rescaled": Key("unnormalized kernels divided by their largest value: the same flow in rescaled time", True),
        "query": Key("Q of the only head, d×d or random; the identity if left out", [[1.0, 0.0], [0.0, 1.0]]),
        "key": Key("K of the only head, d×d or random; the identity if left out", [[1.0, 0.0], [0.0, 1.0]]),
        "value": Key("V of the only head, d×d or random; the identity if left out", [[0.0, -1.0], [1.0, 0.0]]),
        "heads": Key(
            "several heads instead of one, each with query, key, value, weight", [{"weight": 0.5}, {"weight": 0.5}]
        ),
        "file": Key(
            "matrices by layer: .npz or .h5 with query, key, value (layers[, heads], d, d); the last set also later",
            "matrices.npz",
        ),
    }

    @property
    def all_heads(self) -> tuple[Head, ...]:
        """Return the heads: a single one from query, key and value if ``heads`` is not given."""
        return (Head(self.query, self.key, self.value),) if self.heads is None else self.heads

    def matrices(self) -> Iterator[tuple[str, Matrix | RandomMatrix | None]]:
        """Yield the matrices Q, K and V of each head, each with its name in a case such as "attention.query"."""
        for index, head in enumerate(self.all_heads):
            table = "attention" if self.heads is None else f"attention.heads[{index}]"
            yield from ((f"{table}.{name}", getattr(head, name)) for name in ("query", "key", "value"))

    @property
    def is_scalar(self) -> bool:
        """Return whether there is a single head of weight 1 whose matrices are multiples of the identity."""
        head = self.all_heads[0]
        return (
            self.file is None
            and len(self.all_heads) == 1
            and head.weight == 1.0
            and all(scale_of(matrix) is not None for matrix in (head.query, head.key, head.value))
        )

    @property
    def beta_effective(self) -> float:
        """Return β times the scales of query and key if the kernel depends on the product of both scales only.

        Otherwise return β, as for the gaussian kernel e^{−β|qx−ky|²/2} or general matrices.
        """
        folds = self.is_scalar and KERNELS[self.kernel].folds_scales
        return self.beta * self.scales if folds else self.beta

    @property
    def scales(self) -> float:
        """Return the product q k if Q = qI and K = kI are multiples of the identity, else 1."""
        head = self.all_heads[0]
        query, key = scale_of(head.query), scale_of(head.key)
        return 1.0 if query is None or key is None else query * key

    @property
    def value_scale(self) -> float:
        """Return the number v if V = vI is a multiple of the identity, else 1."""
        scale = scale_of(self.all_heads[0].value) if self.is_scalar else None
        return 1.0 if scale is None else scale

    @property
    def log_kernel_bound(self) -> float:
        """Return the logarithm of the largest attention weight between unit vectors.

        Unknown matrices count as Q = K = I. The result is 0 except for unnormalized attention that is not rescaled.
        """
        relative = NORMALIZATIONS[self.normalization].is_relative
        grows = not relative and not self.rescaled and KERNELS[self.kernel].log_factor is None
        return abs(self.beta_effective) if grows else 0.0


class FeedForward(Section, frozen=True):
    """Feed-forward network F(x) = strength · W σ(Ux + b).

    The weights are given as ``inner`` U, ``bias`` b and ``outer`` W, or drawn by ``seed`` for a ``width``.
    """

    activation: Literal["relu", "gelu", "tanh"] = "relu"
    inner: Matrix | None = None
    bias: Vector | None = None
    outer: Matrix | None = None
    width: Count | None = None
    strength: float = 1.0
    seed: Seed = 0

    about: ClassVar = {
        "activation": Key("σ of the network F(x) = W σ(Ux + b)", "relu"),
        "inner": Key("U, width×d", [[1.0, 0.0], [0.0, 1.0]]),
        "bias": Key("b, one number for each row of U", [0.0, 0.1]),
        "outer": Key("W, d×width", [[1.0, 0.0], [0.0, 1.0]]),
        "width": Key("number of rows of U and b, and of columns of W, if these are drawn at random", 16),
        "strength": Key("factor of W", 0.3),
        "seed": Key("seed of random U, b and W", 1),
    }


class Linear(Section, frozen=True, tag_field="kind", tag="linear"):
    """Linear reaction R = rate·ρ."""

    rate: float

    about: ClassVar = {"rate": Key("R = rate·ρ", 0.1, unit="1/time")}


class Logistic(Section, frozen=True, tag_field="kind", tag="logistic"):
    """Logistic reaction R = rate·ρ(1 − ρ/(capacity·ρ̄))."""

    rate: float
    capacity: Positive = 1.0

    about: ClassVar = {
        "rate": Key("growth rate of a small density", 0.1, unit="1/time"),
        "capacity": Key("density at which growth ends, relative to the uniform density", 2.0),
    }


class Replicator(Section, frozen=True, tag_field="kind", tag="replicator"):
    """Replicator reaction R = rate·ρ(f − ∫fρ) for the fitness f(x) = ⟨vector, x⟩ + ½⟨x, matrix x⟩."""

    rate: float
    vector: Vector | None = None
    matrix: Matrix | None = None

    about: ClassVar = {
        "rate": Key("factor of the selection ρ(f − ∫fρ)", 0.1, unit="1/time"),
        "vector": Key("linear part of the fitness f(x) = ⟨vector, x⟩ + ½⟨x, matrix x⟩", [1.0, 0.0]),
        "matrix": Key("quadratic part of the fitness, d×d", [[1.0, 0.0], [0.0, -1.0]]),
    }


Reaction = Linear | Logistic | Replicator


def scale_of(matrix: Matrix | RandomMatrix | None) -> float | None:
    """Return the number c of a matrix cI, a multiple of the identity; None for any other matrix."""
    if matrix is None:
        return 1.0
    if isinstance(matrix, RandomMatrix) or not matrix or any(len(row) != len(matrix) for row in matrix):
        return None
    scale, d = matrix[0][0], len(matrix)
    is_multiple = all(matrix[i][j] == (scale if i == j else 0.0) for i in range(d) for j in range(d))
    return scale if is_multiple else None
