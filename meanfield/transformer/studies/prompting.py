"""Prompts through a trained Transformer: distances, entropy, clusters and the next token by layer.

The distribution of the next token after each layer is that of the last token's state, through the output head.

    p_k = softmax(W_head N(h_k)) ,     N the norm after the last layer

In Gemma 2 a logit z is replaced by c tanh(z/c), c the cap of the model.

The distributions of two prompts are compared by total variation, ½ Σ |p − q|. The reading of states between layers by
the head of the last one is the "logit lens"; no model was trained for it before the last layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import table
from meanfield.case.errors import CaseError
from meanfield.figures.run_data import BLACK, BLUE
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.arguments import require_drops
from meanfield.transformer.families import family_of, form_of, option_of
from meanfield.transformer.labelled import Labelled, Outcome
from meanfield.transformer.loading import load_config, load_network
from meanfield.transformer.model import HiddenStates, load_model, short_name
from meanfield.transformer.sources import read_text, read_texts
from meanfield.transformer.studies.compression import compress, line_through, mean_distance
from meanfield.transformer.studies.measures import STYLES, legend_label
from meanfield.transformer.variants import Variant, layer_arrays
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def output_head(model: str) -> Floats | None:
    """Return the matrix W_head (words, d) from a token's state to the logits of the next token.

    The result is None for a model that is not causal. Raises CaseError if the head cannot be read, or has a bias.
    """
    config = load_config(model)
    if not family_of(model, config).causal:
        return None
    head = load_network(model, config, "AutoModelForCausalLM").get_output_embeddings()
    if getattr(head, "bias", None) is not None:
        raise CaseError(f"{model}: its output head has a bias: expected a linear one")
    return np.asarray(head.weight.detach().numpy(), dtype=float)


def next_token(prompts: Sequence[HiddenStates], head: Floats, decode: Callable[[int], str]) -> dict[str, Labelled]:
    """Return measures (layer, prompt) of the distribution of the next token after each layer of a model.

    The distribution is that of the last token's state, through the output head (words, d). ``decode`` returns the text
    of a token from its number.
    """
    logits = np.stack([[one @ head.T for one in _normalized_states(states)] for states in prompts], axis=1)
    cap = option_of(prompts[0].config, "final_logit_softcapping")
    logits = logits if cap is None else cap * np.tanh(logits / cap)
    highest = logits.max(axis=-1, keepdims=True)
    log_p = logits - (highest + np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True)))
    p, dims = np.exp(log_p), ("layer", "prompt")
    entropy, divergence = -(p * log_p).sum(axis=2), (p[-1] * (log_p[-1] - log_p)).sum(axis=2)
    top = p.argmax(axis=2)
    words = [[decode(int(token)) for token in layer] for layer in top]
    apart = np.array([_mean_variation(layer) for layer in p])
    return {
        "next_entropy": Labelled(dims, entropy, "entropy of the distribution of the next token"),
        "next_divergence": Labelled(dims, divergence, "KL of the last layer's from it"),
        "next_likelihood": Labelled(dims, p.max(axis=2), "largest probability"),
        "next_top": Labelled(dims, top.astype(float), "number of the likeliest token"),
        "next_text": Labelled(dims, words, "likeliest token, UTF-8"),
        "next_apart": Labelled(("layer",), apart, "total variation between two prompts' distributions"),
    }


def _normalized_states(states: HiddenStates) -> Floats:
    """Return the last token's states (layers + 1, d) after the norm that the model applies after its last layer.

    The state after the last layer is normalized already. Some models have no such norm.
    """
    family = family_of(states.name, states.config)
    form, last = form_of(family, states.network), states.layers - 1
    arrays, found = layer_arrays(states, family, last, Variant()), states.hidden[:, -1]
    if "final_gain" not in arrays:
        return found
    layer = TrainedLayer(form, arrays, is_last=True)
    return np.concatenate([layer.normalized(found[:-1], "final"), found[-1:]])


def _mean_variation(distributions: Floats) -> float:
    """Return the total variation ½ Σ |p − q| of two of the distributions (prompts, words), averaged over all pairs."""
    n = len(distributions)
    return float(sum(np.abs(distributions[:k] - distributions[k]).sum() for k in range(n)) / (n * (n - 1)))


def prompts(
    model: str | Path,
    prompts: str | Path | Sequence[str] | None = None,
    *,
    repeat: int = 1,
    seed: int = 0,
    drop: str | Sequence[str] = (),
) -> Outcome:
    """Compute distances between prompts after each layer of a trained Transformer and of its mean-field dynamics.

    Further variants are random attention matrices, and tokens at rest. A model with RMS norm has no mean-field dynamics
    here.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    prompts : str, Path or sequence of str, optional
        Prompts, or a file with one prompt in each line; "-" is the standard input. None: the sentences of ten texts of
        the package.
    repeat : int
        Number of repetitions of the layers.
    seed : int
        Seed of random matrices.
    drop : str or sequence of str
        Tokens that are moved but not measured: "special", "first". A str has commas between names.

    Returns
    -------
    Outcome
        Arrays distance (variant, layer, prompt, other) W₁ in radians, entropy and clusters (variant, layer, prompt),
        states (variant, layer); for a causal language model next_entropy, next_divergence, next_likelihood, next_top
        and next_text (layer, prompt) of the next token, and next_apart (layer), the mean total variation distance
        between the distributions of the next token of two prompts.

    Raises
    ------
    CaseError
        If the model or a prompt cannot be read, if there are fewer than two prompts, if fewer than two tokens of a
        prompt remain, or if an argument is not valid.

    Warns
    -----
    TextWarning
        If a prompt is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794, for the measure of a prompt.

    Examples
    --------
    Distance of two prompts before the first and after the last of six layers, in radians.

    >>> import meanfield as mf
    >>> model = "sentence-transformers/all-MiniLM-L6-v2"
    >>> prompts = ["The sky is blue.", "The moon goes around the Earth."]
    >>> found = mf.transformer.prompts(model, prompts)  # doctest: +SKIP
    >>> found["distance"][0, [0, -1], 0, 1].round(2)  # doctest: +SKIP
    array([0.81, 1.21])
    """
    dropped, texts = require_drops(drop), prompts_of(prompts)
    Variant(repeat=repeat, seed=seed)  # raises CaseError for invalid numbers
    loaded = load_model(model, family_of)
    states = [loaded.read(prompt, f"prompt {k + 1}") for k, prompt in enumerate(texts)]
    arrays, head = compress(states, texts, repeat, seed, dropped), output_head(loaded.name)
    if head is not None:
        arrays |= next_token(states, head, loaded.tokenizer.decode)
    repeated = f", layers repeated {repeat} times" if repeat > 1 else ""
    title = f"{short_name(model)}{repeated}, {len(texts)} prompts"
    return Outcome(arrays, _summary, _draw, title, {"model": loaded.name, "drop": ",".join(dropped)})


def prompts_of(prompts: str | Path | Sequence[str] | None) -> list[str]:
    """Return prompts as a list: those given, lines of a file ("-": standard input), or ten texts' sentences.

    Raises CaseError for fewer than two prompts, or a file that cannot be read.
    """
    if prompts is None:
        found: Sequence[str] = [part for text, _ in read_texts(None) for part in re.split(r"(?<=[.?!])\s+", text)]
    else:
        found = (
            read_text(prompts, "prompts", ", or a list of prompts")[0].splitlines()
            if isinstance(prompts, str | Path)
            else prompts
        )
    lines = [line.strip() for line in found if line.strip()]
    if len(lines) < 2:
        raise CaseError(f"prompts = {prompts}: {len(lines)} line: expected at least two prompts, a line each")
    return lines


def _summary(found: Outcome) -> str:
    """Return tables in Markdown: measures of prompts before and after the layers, and of the next token by layer.

    The second table is absent for a model that is not causal.
    """
    head = ("variant", "distance", "entropy", "entropy a layer, R²", "clusters of a prompt", "groups of prompts")
    rows = []
    for k, name in enumerate(found["variant"]):
        entropy = found["entropy"][k].mean(axis=1)
        slope, share = line_through(entropy)
        cells = [
            _ends(mean_distance(found)[k], ".3f"), _ends(entropy, ".3f"), f"{slope:+.3f}, {share:.2f}",
            _ends(found["clusters"][k].mean(axis=1), ".1f"), _ends(found["states"][k], ".0f"),
        ]  # fmt: skip
        rows.append([name, *cells])
    measured = table(head, rows)
    if "next_apart" not in found.arrays:
        return f"{measured}\nno next token: the model has no causal output head"
    columns = ("layers passed", "entropy", "KL of the last from it", "total variation of two prompts")
    values = found["next_entropy"].mean(axis=1), found["next_divergence"].mean(axis=1), found["next_apart"]
    by_layer = [[str(k), *(f"{value:.3f}" for value in row)] for k, row in enumerate(zip(*values, strict=True))]
    return f"{measured}\n\n{table(columns, by_layer)}"


def _draw(figure: Figure, found: Outcome) -> None:
    """Draw distance, entropy, clusters and groups of prompts by layer, and the next token of a causal model."""
    has_next = "next_apart" in found.arrays
    figure.set_size_inches(10.0, 10.0 if has_next else 7.0)
    axes = figure.subplots(3 if has_next else 2, 2).ravel()
    panels: list[tuple[str, Floats]] = [
        ("mean $W_1$ of two prompts (rad)", mean_distance(found)),
        ("entropy of a prompt (nats)", found["entropy"].mean(axis=2)),
        ("clusters of a prompt", found["clusters"].mean(axis=2)),
        ("groups of prompts", found["states"]),
    ]
    for ax, (label, values) in zip(axes, panels, strict=False):
        for name, rows in zip(found["variant"], values, strict=True):
            color, style = STYLES[name]
            ax.plot(rows, color=color, ls=style, lw=1.5, label=legend_label(name))
        ax.set(xlabel="layers passed", ylabel=label, ylim=(0, None))
    axes[0].legend(fontsize=8, frameon=False)
    if has_next:
        axes[4].plot(found["next_entropy"].mean(axis=1), color=BLACK, label="entropy")
        axes[4].plot(found["next_divergence"].mean(axis=1), color=BLUE, label="KL of the last layer's from it")
        axes[4].set(xlabel="layers passed", ylabel="next token (nats)", ylim=(0, None))
        axes[4].legend(fontsize=8, frameon=False)
        axes[5].plot(found["next_apart"], color=BLACK)
        axes[5].set(xlabel="layers passed", ylabel="total variation of two prompts", ylim=(0, 1))
    figure.suptitle(found.title, fontsize=11)
    figure.tight_layout()


def _ends(values: Floats, form: str) -> str:
    """Return the first and the last of some values as text, in the format specification ``form``."""
    return f"{values[0]:{form}} → {values[-1]:{form}}"
