"""Trained Transformer as a case: all of its layers, or its attention alone as the mean-field velocity.

The whole model is a case of the domain "transformer", whose layers are those of meanfield/model/trained_layer.py: the
case equals the model to rounding. Parts can be left out by name. mean_field.py writes the attention alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.overrides import inline
from meanfield.domains.trained.weights import FREQUENCIES, LAYERS, START, form_attributes
from meanfield.transformer.arguments import names_of
from meanfield.transformer.families import Family, arrays_of, beta_of, family_of, form_of, stored_layers
from meanfield.transformer.mean_field import FILES as MEAN_FIELD_FILES
from meanfield.transformer.mean_field import require_attention, write_mean_field
from meanfield.transformer.model import HiddenStates, read_states
from meanfield.transformer.variants import Variant, layer_arrays, start_of, states_of_variant
from meanfield.transformer.writing import replacements, require_new, write_arrays
from solvers.mesh.mesh import Floats

CASE, WEIGHTS_FILE = FILES = "case.toml", "layers.h5"


def case(
    model: str | Path,
    folder: str | Path,
    *,
    text: str | Path | None = None,
    without: str | Sequence[str] = (),
    weights: str = "trained",
    seed: int = 0,
    repeat: int = 1,
    mean_field: bool = False,
    layer: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a case that is a trained Transformer on a text, or has the attention of the model alone.

    By default the case has all parts of all layers, and equals the model to rounding. The file ``case.toml`` names the
    file of arrays beside it by its full path.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    folder : str or Path
        Folder of the files of the case; created where it does not exist.
    text : str or Path, optional
        File of the text, in UTF-8; "-" is the standard input. None: a text of the package.
    without : str or sequence of str
        Parts that are left out: attention, network, biases, gains, residual, layer_norm, positions, final_norm. A str
        has commas between names.
    weights : {"trained", "random", "rotated"}
        Attention matrices: trained, Gaussian of the same norms, or of the same singular values.
    seed : int
        Seed of random or rotated matrices; for trained ones only 0 is accepted.
    repeat : int
        Number of times that the layers follow one another.
    mean_field : bool
        Whether the case is the attention alone, as mean-field dynamics of particles.
    layer : int, optional
        With ``mean_field`` the layer, from 1 on, whose attention all layers have; None: each layer its own.
    overwrite : bool
        Whether an existing case in the folder is replaced.

    Returns
    -------
    Path
        Path of the case file, for :func:`~meanfield.run`.

    Raises
    ------
    CaseError
        If the model or the text cannot be read, if an argument is not valid, or if ``without``, ``weights``,
        ``seed`` or ``repeat`` is given with ``mean_field``, or ``layer`` without it.
    FileError
        If the case exists and ``overwrite`` is false, or if it cannot be written.

    Warns
    -----
    TextWarning
        If the text is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794, section 2, for the attention alone.

    Examples
    --------
    >>> import meanfield as mf
    >>> model = "sentence-transformers/all-MiniLM-L6-v2"
    >>> path = mf.transformer.case(model, "whole", overwrite=True)  # doctest: +SKIP
    >>> layers, result = mf.transformer.read(model), mf.simulate(path)  # doctest: +SKIP
    >>> cosines = [run.diagnostics["cosine"][-1] for run in (layers, result)]  # doctest: +SKIP
    >>> bool(abs(cosines[0] - cosines[1]) < 1e-12)  # the case equals the model  # doctest: +SKIP
    True
    """
    variant = Variant(names_of(without), weights, seed, repeat)
    if not mean_field:
        if layer is not None:
            raise CaseError(f"layer = {layer}: only allowed with mean_field=True")
        if seed != 0 and weights == "trained":
            raise CaseError(f"seed = {seed}: only allowed with weights random or rotated")
        require_new(folder, FILES, overwrite)
        return write_case(read_states(model, text, family_of), folder, variant)
    for name, usual in (("without", ()), ("weights", "trained"), ("seed", 0), ("repeat", 1)):
        if (value := getattr(variant, name)) != usual:
            raise CaseError(
                f"{name} = {','.join(value) if name == 'without' else value}: not allowed with mean_field=True"
            )
    require_new(folder, MEAN_FIELD_FILES, overwrite)
    states = read_states(model, text, lambda name, config: require_attention(name, config, layer))
    return write_mean_field(states, folder, layer)


def write_case(states: HiddenStates, folder: str | Path, variant: Variant) -> Path:
    """Write a trained Transformer and the tokens of a text as a case: case.toml and layers.h5 in ``folder``.

    The case has the parts, weights and repeated layers of ``variant``. The folder is created if necessary, and existing
    files of these names are replaced. Returns the path of case.toml. Raises CaseError for an unknown family of models
    and for layers that are not those of the model, FileError for a folder that cannot be written.
    """
    folder = Path(folder)
    family = family_of(states.name, states.config)
    next(states_of_variant([states], Variant()))  # raises CaseError if the layers are not those of the model
    form = form_of(family, states.network)
    learned = form.frequencies is None
    attributes: dict[str, str | float] = {
        **form_attributes(form), "model": states.name, "positions": "learned" if learned else "rotary",
        "start_has_positions": float(not (learned and "positions" in variant.without)),
    }  # fmt: skip
    with replacements(folder, FILES) as (new, weights):
        rows, shapes = _shapes(states, family, variant)
        write_arrays(weights, shapes, _rows(states, family, form.frequencies, variant, rows), attributes)
        text = case_text(states, folder.resolve(), variant)
        parse(text)
        new.write_text(text, encoding="utf-8")
    return folder / CASE


def _rows(
    states: HiddenStates, family: Family, frequencies: Floats | None, variant: Variant, rows: int
) -> Iterator[tuple[str, int | None, Floats]]:
    """Yield each array of the file layers.h5 as (name of the dataset, index of the row or None for all rows, numbers).

    The arrays are the states of the tokens before the first layer, frequencies of rotary positions (None without), and
    the weights of the first ``rows`` layers.
    """
    yield START, None, start_of(states, variant)
    if frequencies is not None:
        yield FREQUENCIES, None, frequencies
    for k in range(rows):
        for name, array in layer_arrays(states, family, k, variant).items():
            if k == 0 or not name.startswith("final"):
                yield f"{LAYERS}/{name}", k, array


def _shapes(
    states: HiddenStates, family: Family, variant: Variant
) -> tuple[int, dict[str, tuple[tuple[int, ...], str]]]:
    """Return the number of layers stored in the file layers.h5, and the shape and number format of each dataset.

    Layers that share their weights are stored once. Weights are stored as float32 if that is exact, else as float64.
    """
    config = states.config
    rows = stored_layers(config, states.layers)
    layers = [arrays_of(family, states.network, k) for k in range(rows)]
    exact = all(np.array_equal(array, array.astype(np.float32)) for arrays in layers for array in arrays.values())
    number, arrays = "f4" if variant.weights == "trained" and exact else "f8", layers[0]
    shapes: dict[str, tuple[tuple[int, ...], str]] = {START: (states.hidden.shape[1:], "f8")}
    frequencies = form_of(family, states.network).frequencies
    if frequencies is not None:
        shapes[FREQUENCIES] = (frequencies.shape, "f8")
    for name, array in arrays.items():
        count = 1 if name.startswith("final") else rows
        shapes[f"{LAYERS}/{name}"] = ((count, *array.shape), number)
    return rows, shapes


def case_text(states: HiddenStates, folder: Path, variant: Variant) -> str:
    """Return the text of case.toml for a variant of a trained Transformer, whose file layers.h5 lies in ``folder``."""
    beta = beta_of(states.config)
    assert beta is not None  # the family is known
    layers = states.layers * variant.repeat
    which = "all parts" if not variant.without else f"without {', '.join(variant.without)}"
    kind = "" if variant.weights == "trained" else f", {variant.weights} attention matrices of seed {variant.seed}"
    repeated = "" if variant.repeat == 1 else f", layers repeated {variant.repeat} times"
    return _CASE.format(
        title=inline(f"{states.short_name}: {which}{kind}{repeated}, from the tokens of {states.source}"),
        d=states.hidden.shape[2],
        file=inline(str(folder / WEIGHTS_FILE)),
        without=inline(list(variant.without)),
        beta=beta,
        mask="causal" if family_of(states.name, states.config).causal else "none",
        start=inline(START),
        layers=layers,
    )


_CASE = """\
# Written by `meanfield transformer case`: the layers of a trained Transformer, all parts but those in domain.without.
title = {title}

[domain]
manifold = "transformer"
dimension = {d}
file = {file}
without = {without}

[attention]
beta = {beta!r}  # factor of the logits, 1/√d_head in most models
mask = "{mask}"

[initial]
kind = "tokens"
file = {file}
dataset = {start}

[time]
method = "layers"
layers = {layers}

[output]
snapshots = {layers}
samples = {layers}
diagnostics = ["centroid", "clusters", "pairs", "pairs_close", "cosine", "length", "effective_rank"]
"""
