"""Variants of a trained Transformer: parts left out, layers repeated, attention matrices random or rotated.

    random    Gaussian entries, scaled to the Frobenius norm of each trained matrix
    rotated   UΣVᵀ with the trained singular values Σ, and random orthonormal U and V (uniform, by QR of Gaussians)

Either replaces W_Q, W_K, W_V and W_O of each head; biases, gains and network stay trained. A property of the trained
model that such a variant shares does not come from training the matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.model.trained_layer import TrainedLayer
from meanfield.model.trained_parts import PARTS
from meanfield.transformer.arguments import require_integers
from meanfield.transformer.families import Family, arrays_of, family_of, form_of, stored_layers
from meanfield.transformer.loading import first_line
from meanfield.transformer.model import HiddenStates, start_without_positions
from solvers.mesh.mesh import Floats

WHOLE, STILL = "whole model", "standing still"
MATRICES = ("query", "key", "value", "out")
UNSUPPORTED = "this version of transformers or an option of the model is not supported"
ROUNDING = 1e-6  # of states by the largest component: errors are below 1e-12, and other layers differ by 1e-3 or more


@dataclass(frozen=True)
class Variant:
    """Variant of a trained Transformer: parts left out, attention matrices replaced, or layers repeated.

    without   names of PARTS that are left out
    weights   "trained", "random" or "rotated"; the latter two are drawn by ``seed``
    repeat    number of passes through the layers
    """

    without: tuple[str, ...] = ()
    weights: str = "trained"
    seed: int = 0
    repeat: int = 1

    def __post_init__(self) -> None:
        for part in self.without:
            if part not in PARTS:
                raise CaseError(f"without = {part}: expected parts of {', '.join(PARTS)}")
        if self.weights not in WEIGHTS:
            raise CaseError(f"weights = {self.weights}: expected one of {', '.join(WEIGHTS)}")
        require_integers(1, repeat=self.repeat)
        require_integers(0, seed=self.seed)


def states_of_variant(texts: Sequence[HiddenStates], variant: Variant | None) -> Iterator[Floats]:
    """Yield for each text the states (layers·repeat + 1, n, d) of its tokens in a variant of the model.

    A variant leaves out parts, replaces attention matrices or repeats layers. With ``variant`` = None tokens do not
    move: all layers + 1 states are those before the first layer. Raises CaseError if the layers of this package are not
    those of the model.
    """
    if variant is None:
        yield from (np.broadcast_to(states.hidden[0], states.hidden.shape) for states in texts)
        return
    model = texts[0]
    family = family_of(model.name, model.config)
    form, total = form_of(family, model.network), model.layers * variant.repeat
    arrays = [layer_arrays(model, family, k, variant) for k in range(stored_layers(model.config, model.layers))]
    layers = [
        TrainedLayer(form, arrays[k % len(arrays)], variant.without, is_last=k == total - 1) for k in range(total)
    ]
    for states in texts:
        found = [start_of(states, variant)]
        for layer in layers:
            found.append(layer(found[-1]))
        if variant == Variant(repeat=variant.repeat):
            _require_equal(found, states)
        yield np.stack(found)


def _require_equal(found: Sequence[Floats], states: HiddenStates) -> None:
    """Raise CaseError if states (n, d) after each layer, computed by this package, are not those of a model.

    Versions of the library can differ in a layer, or know an option that this package does not know. Where layers are
    repeated, only the last one has the norm after the last layer.
    """
    count = states.layers + (len(found) == len(states.hidden))
    for k, (ours, theirs) in enumerate(zip(found[:count], states.hidden, strict=False)):
        if not (error := np.abs(ours - theirs).max() / np.abs(theirs).max()) <= ROUNDING:
            raise CaseError(
                f"{states.name}: states after layer {k} differ from those of transformers by {error:.1g}: expected "
                f"rounding errors; {UNSUPPORTED}"
            )


def layer_arrays(states: HiddenStates, family: Family, layer: int, variant: Variant) -> dict[str, Floats]:
    """Return the weights of one layer, counted from 0, with trained, random or rotated attention matrices.

    Raises CaseError for a layer without the weights that its configuration and its family describe.
    """
    try:
        arrays = arrays_of(family, states.network, layer)
    except (AttributeError, ValueError) as error:
        raise CaseError(f"{states.name}: layer {layer + 1}: {first_line(error)}; {UNSUPPORTED}") from None
    return with_weights(arrays, variant.weights, variant.seed, layer)


def start_of(states: HiddenStates, variant: Variant) -> Floats:
    """Return the states (n, d) of tokens before the first layer, for a ``variant`` of the model.

    The embeddings of positions are left out if the variant leaves out positions.
    """
    return start_without_positions(states) if "positions" in variant.without else states.hidden[0]


def with_weights(arrays: dict[str, Floats], kind: str, seed: int, layer: int) -> dict[str, Floats]:
    """Return the weights of a layer, given by name in ``arrays``, with attention matrices of another ``kind``.

    The kinds are "trained" (unchanged), "random" (Gaussian entries, the same norm) and "rotated" (the same singular
    values, random singular vectors). Equal seeds and layer numbers give equal matrices.
    """
    if kind == "trained":
        return arrays
    random, draw = np.random.default_rng((seed, layer)), WEIGHTS[kind]
    return arrays | {name: np.stack([draw(matrix, random) for matrix in arrays[name]]) for name in MATRICES}


def _random(matrix: Floats, random: np.random.Generator) -> Floats:
    """Return a Gaussian matrix with the shape and the Frobenius norm of ``matrix``."""
    drawn = random.standard_normal(matrix.shape)
    return np.asarray(drawn * (np.linalg.norm(matrix) / np.linalg.norm(drawn)))


def _rotated(matrix: Floats, random: np.random.Generator) -> Floats:
    """Return a matrix with the singular values of ``matrix`` and random singular vectors."""
    values = np.linalg.svd(matrix, compute_uv=False)
    left, right = (_frame(random, size, len(values)) for size in matrix.shape)
    return np.asarray((left * values) @ right.T)


def _frame(random: np.random.Generator, size: int, count: int) -> Floats:
    """Return a random matrix (size, count) with orthonormal columns, uniformly distributed."""
    q, r = np.linalg.qr(random.standard_normal((size, count)))
    return np.asarray(q * np.sign(np.diag(r)))


WEIGHTS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "trained": lambda matrix, random: matrix, "random": _random, "rotated": _rotated
}  # fmt: skip
