"""Trained Transformer from Hugging Face, and the states of a text's tokens between its layers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.transformer.loading import IMAGES, first_line, load_config, load_network, load_tokenizer
from meanfield.transformer.sources import read_text_or_image
from solvers.mesh.mesh import Floats

Booleans = np.ndarray[Any, np.dtype[np.bool_]]
POSITIONS = ("position_embeddings", "wpe", "embed_positions")  # names of learned positions in the families
MAX_UNKNOWN = 0.2  # largest share of unknown tokens: beyond it the states do not represent the text


class TextWarning(UserWarning):
    """Warning that a model reads a part of a text only, or does not know some of its tokens.

    A text with more tokens than a model takes is cut. A text of which more than a fifth of the tokens are unknown is
    an error, a :class:`~meanfield.CaseError`.

    Examples
    --------
    Raise an error instead of the warning.

    >>> import warnings
    >>> import meanfield as mf
    >>> with warnings.catch_warnings():  # doctest: +SKIP
    ...     warnings.simplefilter("error", mf.transformer.TextWarning)
    ...     result = mf.transformer.read("sentence-transformers/all-MiniLM-L6-v2", text="book.txt")
    """


@dataclass(frozen=True, eq=False)
class HiddenStates:
    """Hidden states of a text's tokens in a model.

    name      of the model, as the user gave it
    config    the model's configuration
    network   the model itself, its weights in float64
    source    description of the origin of the text
    ids       (n,) the tokens' numbers in the model's vocabulary
    tokens    (n,) the tokens as text
    special   (n,) whether a token is not part of the text, such as [CLS] and [SEP]
    hidden    (layers + 1, n, d) the state h of each token before the first layer and after each
    image     (channels, height, width) whose patches are the tokens; None for a text
    """

    name: str
    config: Any
    network: Any
    source: str
    ids: Floats
    tokens: tuple[str, ...]
    special: Booleans
    hidden: Floats
    image: Floats | None = None

    @property
    def layers(self) -> int:
        """Return the number of layers of the model."""
        return len(self.hidden) - 1

    @property
    def short_name(self) -> str:
        """Return the short name of the model: the last part of its folder, or of its name on the hub."""
        return short_name(self.name)

    @property
    def lengths(self) -> Floats:
        """Return the lengths |h| (layers + 1, n) of the hidden states h before the first layer and after each."""
        return np.asarray(np.linalg.norm(self.hidden, axis=2))

    def mask_of_remaining(self, drop: Sequence[str]) -> Booleans:
        """Return the mask (n,) of the tokens that remain after those in ``drop`` are excluded.

        "special" excludes tokens that are not part of the text, such as [CLS]. "first" excludes the first token, to
        which many attend. Raises CaseError if fewer than two tokens remain.
        """
        keep = ~self.special if "special" in drop else np.ones(len(self.tokens), bool)
        if "first" in drop:
            keep[0] = False
        if keep.sum() < 2:
            raise CaseError(f"{self.source}: {keep.sum()} tokens remain after drop: expected at least two")
        return keep

    def only(self, keep: Booleans) -> HiddenStates:
        """Return the hidden states of those tokens alone that the mask ``keep`` (n,) selects.

        The states are unchanged: they were computed with all tokens present.
        """
        tokens = tuple(token for token, is_kept in zip(self.tokens, keep, strict=True) if is_kept)
        return replace(self, ids=self.ids[keep], tokens=tokens, special=self.special[keep], hidden=self.hidden[:, keep])


def short_name(model: str | Path) -> str:
    """Return the short name of a model: the last part of its folder, or of its name on the hub of Hugging Face."""
    return Path(model).absolute().name


Require = Callable[[str, Any], object]


@dataclass(frozen=True, eq=False)
class Model:
    """Trained Transformer with its tokenizer and its network in float64; ``read`` may be called for many texts.

    A model of images has no tokenizer: None.
    """

    name: str
    config: Any
    tokenizer: Any
    network: Any

    def read(self, words: str | Floats, source: str) -> HiddenStates:
        """Return the hidden states of the tokens of a text before the first layer and after each layer.

        words   the text, or the image (channels, height, width) for a model of images
        source  description of its origin, for messages

        Raises CaseError for a text of fewer than two tokens, or one that the model cannot read.
        """
        if self.tokenizer is None:
            return self._read_image(words, source)
        if not isinstance(words, str):
            raise CaseError(f"{source}: an image: expected a text, which {self.name} reads")
        ids = _ids(self.name, self.network, self.tokenizer, words, source)
        return HiddenStates(
            name=self.name,
            config=self.config,
            network=self.network,
            source=source,
            ids=np.array(ids, dtype=float),
            tokens=tuple(self.tokenizer.convert_ids_to_tokens(ids)),
            special=np.isin(ids, _special_numbers(self.tokenizer)),
            hidden=hidden_states(self.name, self.network, ids),
        )

    def _read_image(self, image: str | Floats, source: str) -> HiddenStates:
        """Return the hidden states of the patches of an image. The first token, [CLS], has number 0."""
        config, sides = self.config, (self.config.image_size, self.config.patch_size)
        (height, width), (rows, columns) = ((side, side) if isinstance(side, int) else side for side in sides)
        shape = (config.num_channels, height, width)
        if isinstance(image, str) or image.shape != shape:
            raise CaseError(f"{source}: expected an image, an array {shape} in a file .npy, which {self.name} reads")
        patches = [f"{i},{j}" for i in range(height // rows) for j in range(width // columns)]
        count = len(patches) + 1
        return HiddenStates(
            name=self.name,
            config=config,
            network=self.network,
            source=source,
            ids=np.arange(count, dtype=float),
            tokens=("[CLS]", *patches),
            special=np.arange(count) == 0,
            hidden=hidden_states(self.name, self.network, image),
            image=image,
        )


def load_model(model: str | Path, require: Require = lambda name, config: None) -> Model:
    """Load a trained Transformer from a folder, or by its name on the hub of Hugging Face.

    require  function of the model's name and configuration, called before the weights are loaded; may raise

    Weights are those stored, arithmetic is in float64, without dropout. Raises CaseError, in one line, for a missing or
    unreadable model, and for one that lacks weights or needs its own code.
    """
    name = str(model)
    config = load_config(name)
    require(name, config)
    tokenizer = None if config.model_type in IMAGES else load_tokenizer(name)
    return Model(name, config, tokenizer, load_network(name, config))


def read_with(model: str | Path, texts: Sequence[tuple[str, str]], require: Require) -> list[HiddenStates]:
    """Load a trained Transformer, and return the hidden states of the tokens of each text.

    texts    pairs of a text and its name
    require  function of the model's name and configuration, called before the weights are loaded; may raise

    Raises CaseError as ``load_model`` and ``Model.read``.
    """
    loaded = load_model(model, require)
    return [loaded.read(*text) for text in texts]


def read_states(
    model: str | Path, text: str | Path | None = None, require: Require = lambda name, config: None
) -> HiddenStates:
    """Load a trained Transformer, and return the hidden states of the tokens of one text, or of an image.

    text     a file, "-" for the standard input, None for the text of the package
    require  function of the model's name and configuration, called before the weights are loaded; may raise

    A text longer than the model's limit is cut, with a TextWarning. Raises CaseError as ``load_model``, and for too
    little text or a file that cannot be read.
    """
    words, source = read_text_or_image(text)
    return load_model(model, require).read(words, source)


def _ids(model: str, network: Any, tokenizer: Any, words: str, source: str) -> list[int]:
    """Return the numbers in the model's vocabulary of the tokens of a text.

    A text longer than the model's limit is cut, with a TextWarning. Raises CaseError for fewer than two tokens, or if
    too many tokens are unknown to the model.
    """
    ids: list[int] = tokenizer(words, truncation=False, verbose=False)["input_ids"]
    max_length = min(int(tokenizer.model_max_length), max_tokens(network))
    if len(ids) > max_length:
        _warn(f"{source}: {len(ids)} tokens, {model} takes {max_length}: the rest is cut off")
        ids = tokenizer(words, truncation=True, max_length=max_length)["input_ids"]
    if len(ids) < 2:
        raise CaseError(f"{source}: {len(ids)} token of {model}: expected at least two")
    _require_known(model, network, tokenizer, ids, source)
    return ids


def _special_numbers(tokenizer: Any) -> list[int]:
    """Return the numbers of tokens that are not part of a text, such as [CLS].

    The token for unknown words is part of the text, unless it also marks the beginning or the end, as in OPT.
    """
    others = [str(token) for name, token in tokenizer.special_tokens_map.items() if name != "unk_token"]
    unknown = None if str(tokenizer.unk_token) in others else tokenizer.unk_token_id
    return [number for number in tokenizer.all_special_ids if number != unknown]


def max_tokens(network: Any) -> int:
    """Return the largest number of tokens that a network can read, which is that of its positions.

    Models with relative positions have no limit (sys.maxsize). Some models number positions from the padding token's
    number on, which leaves fewer for tokens.
    """
    bound = getattr(network.config, "max_position_embeddings", None) or sys.maxsize
    bound = sys.maxsize if bound < 0 else bound  # models with relative positions have −1
    for name, module in network.named_modules():
        if name.endswith(POSITIONS) and getattr(module, "padding_idx", None) is not None:
            bound = min(bound, module.num_embeddings - module.padding_idx - 1)
    return int(bound)


def _require_known(model: str, network: Any, tokenizer: Any, ids: list[int], source: str) -> None:
    """Raise CaseError if a text has too many unknown tokens, or tokens beyond a model's embeddings."""
    try:
        rows = network.get_input_embeddings().num_embeddings
    except (NotImplementedError, AttributeError):
        raise CaseError(f"{model}: has no embeddings of tokens: expected a model of text") from None
    if max(ids) >= rows:
        raise CaseError(
            f"{model}: its tokenizer has a token {max(ids)}: expected at most {rows - 1}, as it has {rows} embeddings"
        )
    unknown = sum(token == tokenizer.unk_token_id for token in ids)
    if unknown > MAX_UNKNOWN * len(ids):
        expected = f"expected at most {MAX_UNKNOWN:.0%}, a text in the tokenizer's language"
        raise CaseError(f"{source}: {unknown} of {len(ids)} tokens are unknown to {model}: {expected}")
    if unknown:
        _warn(f"{source}: {unknown} of {len(ids)} tokens are unknown to {model}")


def _warn(text: str) -> None:
    """Warn by a TextWarning with the given text."""
    warnings.warn(text, TextWarning, stacklevel=2)


def hidden_states(model: str, network: Any, given: list[int] | Floats) -> Floats:
    """Run a network on tokens; return their hidden states before the first layer and after each, (layers + 1, n, d).

    model   name for messages
    given   (n,) numbers of the tokens in the vocabulary, or an image (channels, height, width)

    Raises CaseError for a network without hidden states, or with states that are not finite.
    """
    import torch

    from meanfield.transformer.precision import Float64

    try:
        with torch.no_grad(), Float64():
            output = network(**{network.main_input_name: torch.tensor(given)[None]}, output_hidden_states=True)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        raise CaseError(f"{model}: cannot read this text: {first_line(error)}") from None
    found = getattr(output, "hidden_states", None)
    if not found or len(found) < 2 or any(state.shape != found[0].shape or state.ndim != 3 for state in found):
        raise CaseError(f"{model}: expected a model with hidden states of one width after each layer")
    hidden = np.stack([state[0].numpy() for state in found])
    if isinstance(given, list) and hidden.shape[1] != len(given):
        raise CaseError(f"{model}: expected hidden states of {len(given)} tokens, got {hidden.shape[1]}")
    if not np.isfinite(hidden).all():
        raise CaseError(f"{model}: its hidden states are not finite")
    return hidden


def start_without_positions(states: HiddenStates) -> Floats:
    """Return the states (n, d) of tokens before the first layer, with the learned embeddings of positions set to zero.

    Rotary positions are not affected, since they act inside the layers.
    """
    import torch

    weights = states.network.named_parameters()
    tables = [table for name, table in weights if name.removesuffix(".weight").endswith(POSITIONS)]
    saved = [table.detach().clone() for table in tables]
    given = [int(token) for token in states.ids] if states.image is None else states.image
    try:
        with torch.no_grad():
            for table in tables:
                table.zero_()
        return np.asarray(hidden_states(states.name, states.network, given)[0])
    finally:
        with torch.no_grad():
            for table, before in zip(tables, saved, strict=True):
                table.copy_(before)
