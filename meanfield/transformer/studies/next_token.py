"""The distribution of the next token along depth: the last token's state after each layer, through the output head.

    p_k = softmax(W_head N(h_k)) ,     N the norm after the last layer

Of two prompts how far theirs part: the total variation ½ Σ |p − q|. The reading of states between layers by the head of
the last one is the "logit lens"; before the last layer no model was trained for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.families import family_of, form_of
from meanfield.transformer.labelled import Labelled
from meanfield.transformer.loading import load_config, load_network
from meanfield.transformer.model import States
from meanfield.transformer.variants import Variant, layer_arrays
from solvers.mesh.mesh import Floats


def output_head(model: str) -> Floats | None:
    """(words, d) W_head of a causal language model; None of a model without one.

    Raises CaseError where it cannot be read.
    """
    config = load_config(model)
    if not family_of(model, config).causal:
        return None
    head = load_network(model, config, "AutoModelForCausalLM").get_output_embeddings()
    if getattr(head, "bias", None) is not None:
        raise CaseError(f"{model}: its output head has a bias: expected a linear one")
    return np.asarray(head.weight.detach().numpy(), dtype=float)


def next_token(prompts: Sequence[States], head: Floats, decode: Callable[[int], str]) -> dict[str, Labelled]:
    """Return the distributions (layer, prompt) of the next token, of the model's own layers; ``decode`` makes text."""
    logits = np.stack([[one @ head.T for one in _normalized(states)] for states in prompts], axis=1)
    highest = logits.max(axis=-1, keepdims=True)
    log_p = logits - (highest + np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True)))
    p, dims = np.exp(log_p), ("layer", "prompt")
    entropy, divergence = -(p * log_p).sum(axis=2), (p[-1] * (log_p[-1] - log_p)).sum(axis=2)
    top = p.argmax(axis=2)
    words = [[decode(int(token)) for token in layer] for layer in top]
    apart = np.array([_apart(layer) for layer in p])
    return {
        "next_entropy": Labelled(dims, entropy, "entropy of the distribution of the next token"),
        "next_divergence": Labelled(dims, divergence, "KL of the last layer's from it"),
        "next_likelihood": Labelled(dims, p.max(axis=2), "largest probability"),
        "next_top": Labelled(dims, top.astype(float), "number of the likeliest token"),
        "next_text": Labelled(dims, words, "likeliest token, UTF-8"),
        "next_apart": Labelled(("layer",), apart, "total variation between two prompts' distributions"),
    }


def _normalized(states: States) -> Floats:
    """(layers + 1, d) N of the last token's states; the last one is normalized already."""
    family = family_of(states.name, states.config)
    form, last = form_of(family, states.network), states.layers - 1
    layer = TrainedLayer(form, layer_arrays(states, family, last, Variant()), is_last=True)
    between = layer.normalized(states.hidden[:-1, -1], "final")
    return np.concatenate([between, states.hidden[-1:, -1]])


def _apart(distributions: Floats) -> float:
    """Mean of ½ Σ |p − q| over pairs of rows (prompts, words)."""
    n = len(distributions)
    return float(sum(np.abs(distributions[:k] - distributions[k]).sum() for k in range(n)) / (n * (n - 1)))
