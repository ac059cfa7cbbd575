"""A trained Transformer from Hugging Face, and the states of a text's tokens between its layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError, install
from solvers.mesh.mesh import Floats

DEFAULT_TEXT = "forest.txt"
INSTALL = install("transformer")


@dataclass(frozen=True, eq=False)
class States:
    """What a model makes of a text.

    name      of the model, as the user gave it
    config    the model's configuration
    network   the model itself, its weights in float64
    source    where the text is from, in words
    ids       (n,) the tokens' numbers in the model's vocabulary
    hidden    (layers + 1, n, d) the state h of each token before the first layer and after each
    """

    name: str
    config: Any
    network: Any
    source: str
    ids: Floats
    hidden: Floats

    @property
    def layers(self) -> int:
        return len(self.hidden) - 1

    @property
    def short_name(self) -> str:
        """The last part of a folder or of a name on the hub."""
        return short_name(self.name)

    @property
    def lengths(self) -> Floats:
        """(layers + 1, n) |h|."""
        return np.asarray(np.linalg.norm(self.hidden, axis=2))


def short_name(model: str) -> str:
    """The last part of a folder or of a name on the hub."""
    return Path(model).absolute().name


def states_of(
    model: str, text: str | None = None, require: Callable[[str, Any], object] = lambda name, config: None
) -> States:
    """The states of a text's tokens in a model: a folder, or a name on the hub of Hugging Face.

    text     a file, "-" for the standard input, None for the text of the package
    require  is called with the model's name and its configuration before its weights are loaded, and may refuse it
    Weights as they are stored, arithmetic in float64, no dropout. A longer text than the model takes is cut, which a
    line on stderr says. Raises CaseError, in one line, where there is no such model, none that can be read, one
    that lacks weights or needs code of its own, or too little text; OSError for a file that cannot be opened.
    """
    words, source = read_text(text)
    transformers = _transformers()
    config = _loaded(model, transformers.AutoConfig)
    if getattr(config, "is_encoder_decoder", False):
        raise CaseError(f"{model}: an encoder-decoder ({config.model_type}): expected a model with one stack of layers")
    require(model, config)
    ids = _ids(model, config, _loaded(model, transformers.AutoTokenizer), words, source)
    network = _network(model, transformers.AutoModel)
    return States(model, config, network, source, np.array(ids, dtype=float), _hidden(model, network, ids))


def read_text(text: str | None) -> tuple[str, str]:
    """A text and where it is from, in words. Raises CaseError where it is empty or no text, OSError for no file."""
    if text is None:
        words, source = (
            resources.files("meanfield.transformer").joinpath("texts", DEFAULT_TEXT).read_text("utf-8"),
            "default text",
        )
    elif text == "-":
        words, source = sys.stdin.read(), "standard input"
    else:
        try:
            words, source = Path(text).read_text("utf-8-sig"), text
        except UnicodeDecodeError:
            raise CaseError(f"{text}: not UTF-8 text") from None
    if not words.strip():
        raise CaseError(f"{source}: holds no text")
    return words, source


def _transformers() -> Any:
    """The library, told to keep quiet. Raises CaseError where it or torch is missing."""
    try:
        import huggingface_hub
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise CaseError(f"{error.name or 'torch'} is not installed: {INSTALL}") from None
    huggingface_hub.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _network(model: str, kind: Any) -> Any:
    """The network. Raises CaseError where the library would draw weights that the model lacks; of these no state needs
    the pooler, which is after all layers."""
    network, found = _loaded(model, kind, output_loading_info=True)
    lacking = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if lacking:
        raise CaseError(f"{model}: lacks {len(lacking)} arrays of weights, such as {lacking[0]}")
    return network.double().eval()


def _loaded(model: str, kind: Any, **more: Any) -> Any:
    """A configuration, tokenizer or network of a model. Raises CaseError with the library's first line."""
    try:
        return kind.from_pretrained(model, trust_remote_code=False, **more)
    except Exception as error:  # of damaged files: of many kinds, some of them its own and of no common class
        what = {"AutoConfig": "a model", "AutoTokenizer": "a tokenizer"}.get(
            kind.__name__, "a network with hidden states"
        )
        raise CaseError(f"{model}: cannot be read as {what}: {_first_line(error)}") from None


def _ids(model: str, config: Any, tokenizer: Any, words: str, source: str) -> list[int]:
    """The tokens' numbers, as many as the model takes."""
    ids: list[int] = tokenizer(words, truncation=False, verbose=False)["input_ids"]
    most = min(int(tokenizer.model_max_length), getattr(config, "max_position_embeddings", None) or sys.maxsize)
    if len(ids) > most:
        print(f"{source}: {len(ids)} tokens, {model} takes {most}: the rest is cut off", file=sys.stderr)
        ids = tokenizer(words, truncation=True, max_length=most)["input_ids"]
    if len(ids) < 2:
        raise CaseError(f"{source}: {len(ids)} token of {model}: expected at least two")
    return ids


def _hidden(model: str, network: Any, ids: list[int]) -> Floats:
    """(layers + 1, n, d). Raises CaseError for a network that does not tell them, or not as finite numbers."""
    import torch

    try:
        with torch.no_grad():
            found = getattr(network(input_ids=torch.tensor([ids]), output_hidden_states=True), "hidden_states", None)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        raise CaseError(f"{model}: cannot read this text: {_first_line(error)}") from None
    if not found or len(found) < 2 or any(state.shape != found[0].shape or state.ndim != 3 for state in found):
        raise CaseError(f"{model}: expected a model with hidden states of one width after each layer")
    hidden = np.stack([state[0].numpy() for state in found])
    if not np.isfinite(hidden).all():
        raise CaseError(f"{model}: its hidden states are not finite")
    return hidden


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
