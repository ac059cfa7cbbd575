"""The distribution of the next token along depth: the last token's state after each layer, through the output head.

    p_k = softmax(W_head N(h_k)) ,     N the norm after the last layer

Of two prompts how far theirs part: the total variation ½ Σ |p − q|. The reading of states between layers by the head of
the last one is the "logit lens"; before the last layer no model was trained for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.case import CaseOptions, layer_arrays
from meanfield.transformer.families import family_of, form_of
from meanfield.transformer.loading import load_config, load_network
from meanfield.transformer.model import States
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class NextToken:
    """By layer of the model's prompts.

    entropy      (layers + 1, prompts) of p_k, nats
    divergence   (layers + 1, prompts) KL of the last layer's p from p_k, nats
    apart        (layers + 1,) total variation of two prompts, mean over all pairs
    top          (layers + 1, prompts) number of the likeliest token
    likelihood   (layers + 1, prompts) its probability
    """

    entropy: Floats
    divergence: Floats
    apart: Floats
    top: Floats
    likelihood: Floats


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


def next_token(prompts: Sequence[States], head: Floats) -> NextToken:
    """The distributions of all prompts, of the model's own layers."""
    logs = [np.stack([one @ head.T for one in _normalized(states)]) for states in prompts]
    logs = [found - _log_sum(found) for found in logs]  # of each prompt (layers + 1, words)
    distributions = np.exp(np.stack(logs, axis=1))
    log_distributions = np.stack(logs, axis=1)
    return NextToken(
        entropy=-(distributions * log_distributions).sum(axis=2),
        divergence=(distributions[-1] * (log_distributions[-1] - log_distributions)).sum(axis=2),
        apart=np.array([_apart(layer) for layer in distributions]),
        top=distributions.argmax(axis=2).astype(float),
        likelihood=distributions.max(axis=2),
    )


def _normalized(states: States) -> Floats:
    """(layers + 1, d) N of the last token's states; the last one is normalized already."""
    family = family_of(states.name, states.config)
    form, last = form_of(family, states.network), states.layers - 1
    layer = TrainedLayer(form, layer_arrays(states, family, last, CaseOptions()), is_last=True)
    between = layer.normalized(states.hidden[:-1, -1], "final")
    return np.concatenate([between, states.hidden[-1:, -1]])


def _log_sum(values: Floats) -> Floats:
    highest = values.max(axis=-1, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=-1, keepdims=True)))


def _apart(distributions: Floats) -> float:
    """Mean of ½ Σ |p − q| over pairs of rows (prompts, words)."""
    n = len(distributions)
    return float(sum(np.abs(distributions[:k] - distributions[k]).sum() for k in range(n)) / (n * (n - 1)))
