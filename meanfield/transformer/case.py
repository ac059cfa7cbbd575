"""A trained Transformer as a case: all of its layers, or its attention alone as the mean-field velocity.

The whole model is a case of the domain "transformer", whose layers are those of meanfield/model/trained_layer.py: the
case is the model, to rounding. Parts can be left out by name. Its attention alone is written by mean_field.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.overrides import inline
from meanfield.domains.trained.weights import FREQUENCIES, LAYERS, START, form_attributes
from meanfield.model.trained_parts import PARTS
from meanfield.transformer.families import Family, arrays_of, beta_of, family_of, form_of, stored_layers
from meanfield.transformer.model import States, start_without_positions
from meanfield.transformer.variants import with_weights
from meanfield.transformer.writing import write_arrays
from solvers.io.replacing import replacement
from solvers.io.writing import disk_errors
from solvers.mesh.mesh import Floats

CASE, WEIGHTS_FILE = FILES = "case.toml", "layers.h5"


@dataclass(frozen=True)
class CaseOptions:
    """What of a model a case has.

    without   parts that are left out, names of PARTS
    weights   "trained", "random" or "rotated" (meanfield/transformer/variants.py), the last two by ``seed``
    repeat    how many times the layers follow one another
    """

    without: tuple[str, ...] = ()
    weights: str = "trained"
    seed: int = 0
    repeat: int = 1

    def __post_init__(self) -> None:
        for part in self.without:
            if part not in PARTS:
                raise CaseError(f"--without {part}: expected parts of {', '.join(PARTS)}")
        if self.repeat < 1:
            raise CaseError(f"--repeat {self.repeat}: expected an integer >= 1")
        if self.seed < 0:
            raise CaseError(f"--seed {self.seed}: expected an integer >= 0")


def write_case(states: States, folder: str | Path, options: CaseOptions = CaseOptions()) -> Path:
    """Write case.toml and layers.h5 into a folder, made where there is none; returns the case's path.

    What is there by these names is replaced. Raises CaseError for a family that is not known, FileError for a folder
    that cannot be written.
    """
    folder = Path(folder)
    family = family_of(states.name, states.config)
    form = form_of(family, states.network)
    learned = form.frequencies is None
    attributes: dict[str, str | float] = {
        **form_attributes(form), "model": states.name, "positions": "learned" if learned else "rotary",
        "start_has_positions": float(not (learned and "positions" in options.without)),
    }  # fmt: skip
    with disk_errors(folder, "cannot write"):
        folder.mkdir(parents=True, exist_ok=True)
        with replacement(folder / WEIGHTS_FILE) as weights, replacement(folder / CASE) as new:
            rows, shapes = _shapes(states, family, options)
            write_arrays(weights, shapes, _rows(states, family, form.frequencies, options, rows), attributes)
            text = case_text(states, folder.resolve(), options)
            parse(text)
            new.write_text(text, encoding="utf-8")
    return folder / CASE


def layer_arrays(states: States, family: Family, layer: int, options: CaseOptions) -> dict[str, Floats]:
    """The arrays of a layer, in the variant that the options name."""
    return with_weights(arrays_of(family, states.network, layer), options.weights, options.seed, layer)


def start_of(states: States, options: CaseOptions) -> Floats:
    """(n, d) the states before the first layer."""
    return start_without_positions(states) if "positions" in options.without else states.hidden[0]


def _rows(
    states: States, family: Family, frequencies: Floats | None, options: CaseOptions, rows: int
) -> Iterator[tuple[str, int | None, Floats]]:
    """Name of a dataset, its row or None for all of it, and the numbers."""
    yield START, None, start_of(states, options)
    if frequencies is not None:
        yield FREQUENCIES, None, frequencies
    for k in range(rows):
        for name, array in layer_arrays(states, family, k, options).items():
            if k == 0 or not name.startswith("final"):
                yield f"{LAYERS}/{name}", k, array


def _shapes(states: States, family: Family, options: CaseOptions) -> tuple[int, dict[str, tuple[tuple[int, ...], str]]]:
    """How many layers are stored, and of each dataset its shape and number format.

    Layers that are all one are stored once; weights as float32 where that is exact.
    """
    config = states.config
    rows = stored_layers(config, states.layers)
    layers = [arrays_of(family, states.network, k) for k in range(rows)]
    exact = all(np.array_equal(array, array.astype(np.float32)) for arrays in layers for array in arrays.values())
    number, arrays = "f4" if options.weights == "trained" and exact else "f8", layers[0]
    shapes: dict[str, tuple[tuple[int, ...], str]] = {START: (states.hidden.shape[1:], "f8")}
    frequencies = form_of(family, states.network).frequencies
    if frequencies is not None:
        shapes[FREQUENCIES] = (frequencies.shape, "f8")
    for name, array in arrays.items():
        count = 1 if name.startswith("final") else rows
        shapes[f"{LAYERS}/{name}"] = ((count, *array.shape), number)
    return rows, shapes


def case_text(states: States, folder: Path, options: CaseOptions) -> str:
    """The case in TOML."""
    beta = beta_of(states.config)
    assert beta is not None  # of a known family
    layers = states.layers * options.repeat
    which = "all parts" if not options.without else f"without {', '.join(options.without)}"
    kind = "" if options.weights == "trained" else f", {options.weights} attention matrices of seed {options.seed}"
    repeated = "" if options.repeat == 1 else f", its layers {options.repeat} times"
    return _CASE.format(
        title=inline(f"{states.short_name}: {which}{kind}{repeated}, from the tokens of {states.source}"),
        d=states.hidden.shape[2],
        file=inline(str(folder / WEIGHTS_FILE)),
        without=inline(list(options.without)),
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
beta = {beta!r}  # 1/√d_head
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
