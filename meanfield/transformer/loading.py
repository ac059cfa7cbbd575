"""Configuration, tokenizer and network of a trained Transformer, loaded and validated by Hugging Face's library.

Nothing is drawn at random, downloaded as code, or read from outside the model's folder; attention is the library's own.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from meanfield.case.errors import CaseError, install

INSTALL = install("transformer")
ATTENTION = "eager"  # the library's own sums; otherwise a configuration may name kernels to be downloaded
MAX_LAYERS = 1000  # above the layers of any existing model: a larger count indicates a damaged file
VOCABULARIES = (  # files of a tokenizer, any of which suffices; without them the library creates an empty tokenizer
    "tokenizer.json", "vocab.txt", "vocab.json", "vocab.bpe", "spiece.model", "tokenizer.model",
    "sentencepiece.bpe.model", "sentencepiece.model",
)  # fmt: skip
IMAGES = ("vit",)  # model types that read images
INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_NOUNS = {"AutoConfig": "a model", "AutoTokenizer": "a tokenizer"}


def require_torch() -> Any:
    """Return PyTorch. Raises CaseError where PyTorch is missing or cannot be imported."""
    return _import_optional("torch")


def require_transformers() -> Any:
    """Return the library transformers of Hugging Face, with its log messages turned off.

    Raises CaseError if this library or PyTorch cannot be imported.
    """
    require_torch()
    hub, library = _import_optional("huggingface_hub"), _import_optional("transformers")
    hub.logging.set_verbosity_error()
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    return library


def _import_optional(name: str) -> Any:
    """Import an optional library, and return it. Raises CaseError if the library is missing or damaged."""
    try:
        library = import_module(name)
    except Exception as error:  # a damaged installation, or a missing part of the system, raises errors of many kinds
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise CaseError(f"{name} is not installed: {INSTALL}") from None
        raise CaseError(f"{name} cannot be imported: {first_line(error)}; {INSTALL}") from None
    if getattr(library, "__file__", None) is None:  # a folder of that name remains after an uninstallation
        raise CaseError(f"{name} is not installed: {INSTALL}")
    return library


def load_config(model: str) -> Any:
    """Return the configuration of a model, from its folder or by its name on the hub of Hugging Face.

    Raises CaseError for an encoder-decoder, a layer count beyond MAX_LAYERS, quantized weights, or weights outside the
    model's folder.
    """
    library = require_transformers()
    if model.startswith((".", "/", "~")) and not Path(model).is_dir():
        raise CaseError(f"{model}: no such folder")
    config = _load_part(model, library.AutoConfig)
    if getattr(config, "is_encoder_decoder", False):
        raise CaseError(f"{model}: an encoder-decoder ({config.model_type}): expected a model with one stack of layers")
    layers = getattr(config, "num_hidden_layers", 1)
    if not isinstance(layers, int) or not 1 <= layers <= MAX_LAYERS:
        raise CaseError(f"{model}: num_hidden_layers = {layers}: expected 1 to {MAX_LAYERS}")
    if getattr(config, "quantization_config", None) is not None:
        raise CaseError(f"{model}: expected weights that are not quantized")
    _require_weights_inside(Path(model))
    return config


def _require_weights_inside(folder: Path) -> None:
    """Raise CaseError if the index of a model's weights names a file outside the model's folder, or cannot be read."""
    for path in (folder / name for name in INDICES):
        if not path.is_file():
            continue
        try:
            names = json.loads(path.read_text("utf-8"))["weight_map"].values()
            outside = next((name for name in names if Path(name).name != name), None)
        except (ValueError, KeyError, AttributeError, TypeError):
            raise CaseError(f"{path}: cannot be read as an index of weights") from None
        if outside is not None:
            raise CaseError(f"{path}: weights in {outside}: expected a file in the model's folder")


def load_tokenizer(model: str) -> Any:
    """Return the tokenizer of a model. Raises CaseError if it cannot be read, or its folder has no vocabulary."""
    folder = Path(model)
    if folder.is_dir() and not any((folder / name).is_file() for name in VOCABULARIES):
        raise CaseError(f"{model}: has no tokenizer: expected one of {', '.join(VOCABULARIES)}")
    return _load_part(model, require_transformers().AutoTokenizer)


def load_network(model: str, config: Any, kind: str = "AutoModel") -> Any:
    """Return the network of a model with its trained weights, in float64 and without dropout.

    The library would draw missing weights at random, and drop layers beyond the configuration's count: both raise
    CaseError. Missing weights of the pooler are permitted: it follows all layers, and no state depends on it.
    """
    options = {"config": config, "attn_implementation": ATTENTION, "output_loading_info": True}
    if hasattr(config, "num_local_experts"):
        options["experts_implementation"] = ATTENTION  # other ones reject float64
    network, found = _load_part(model, getattr(require_transformers(), kind), **options)
    lacking = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if lacking:
        raise CaseError(f"{model}: lacks {len(lacking)} arrays of weights, such as {lacking[0]}")
    unused = _further_layers(network, found["unexpected_keys"])
    if unused:
        layers = getattr(network.config, "num_hidden_layers", None)
        raise CaseError(f"{model}: num_hidden_layers = {layers}, but its weights have more layers, such as {unused[0]}")
    if getattr(network, "main_input_name", "input_ids") != "input_ids" and config.model_type not in IMAGES:
        raise CaseError(f"{model}: reads {network.main_input_name}: expected a model of text")
    return network.double().eval()


def _further_layers(network: Any, unexpected: Any) -> list[str]:
    """Return those of the ``unexpected`` names of weights that the network would have if it had more layers."""
    prefix = f"{network.base_model_prefix}."
    known = {_any_layer(name) for name in network.state_dict()}
    return sorted(name for name in unexpected if _any_layer(name.removeprefix(prefix)) in known)


def _any_layer(name: str) -> str:
    """Return the name of a weight with ``*`` in place of the number of its layer."""
    return re.sub(r"\.\d+\.", ".*.", name)


def _load_part(model: str, kind: Any, **more: Any) -> Any:
    """Return a configuration, tokenizer or network of a model, loaded by a class ``kind`` of Hugging Face's library.

    Raises CaseError with the first line of the library's message.
    """
    try:
        return kind.from_pretrained(model, trust_remote_code=False, **more)
    except Exception as error:  # damaged files raise errors of many kinds, without a common class
        what = _NOUNS.get(kind.__name__, "a network with hidden states")
        hint = "" if Path(model).is_dir() else "; expected a name on the hub, which needs a network, or a folder"
        raise CaseError(f"{model}: cannot be read as {what}: {first_line(error)}{hint}") from None


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error, or the name of its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
