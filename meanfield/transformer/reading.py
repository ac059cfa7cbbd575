"""Layers of a trained Transformer as a file of particles: x = h/|h| of each token's state h, time = layers passed.

As in P. Rigollet's talk "The mean-field dynamics of Transformers" and figure 1 of Geshkovski, Letrouit, Polyanskiy,
Rigollet (2312.10794), where inner products of the tokens of ALBERT move to 1 from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.problem import Problem
from meanfield.domains.trained.diagnostics import diagnostics_of_states
from meanfield.model.discrete_layers import LayerIntegrator
from meanfield.results.refusals import with_python_names
from meanfield.results.result import Result
from meanfield.results.runs import load_case, open_run
from meanfield.running import Printer, print_nothing, run, run_in_memory
from meanfield.runtime.paths import require_free
from meanfield.runtime.progress import has_bar
from meanfield.simulation import HOST_ATTRIBUTES, PAIR_EDGE
from meanfield.transformer.arguments import require_drops
from meanfield.transformer.families import beta_of
from meanfield.transformer.model import HiddenStates, read_states
from solvers.io.layout import Points, Variable
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import fixed

MAX_WIDTH = 4096  # largest domain.dimension of a case


def read(
    model: str | Path,
    path: str | Path | None = None,
    *,
    text: str | Path | None = None,
    drop: str | Sequence[str] = (),
    overwrite: bool = False,
    progress: bool | None = None,
    show: Printer = print_nothing,
    command: str = "",
) -> Result:
    """Read the states of a text's tokens after each layer of a trained Transformer, as a run of particles.

    Positions are the directions ``h/|h|`` of the states h, and time counts layers. Besides the arrays of any run of
    particles there are token_id, token_text and state_length, ``|h|`` after each layer, and the diagnostics cosine,
    length and effective_rank. Diagnostics of a law of motion, such as energy and speed, are absent.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    path : str or Path, optional
        File to be written; None: the result is in memory.
    text : str or Path, optional
        File of the text, in UTF-8; "-" is the standard input. None: a text of the package.
    drop : str or sequence of str
        Tokens that the model reads but the result leaves out: "special" ones such as [CLS] and [SEP], and the "first"
        token, to which many attend. A str has commas between names.
    overwrite : bool
        Whether an existing file is replaced.
    progress : bool, optional
        Whether progress is shown: as a bar on a terminal and in a notebook, elsewhere as lines. None: a bar where one
        can be drawn, else nothing.
    show : function (line)
        Function such as ``print`` that is called with each line on a run into a file, if progress is shown. Only with
        a ``path``.
    command : str
        Attribute ``command`` of a file: how the file was made. Only with a ``path``.

    Returns
    -------
    Result
        The run, in the file or in memory.

    Raises
    ------
    CaseError
        If the model or the text cannot be read, if states are wider than 4096 numbers or are 0, if fewer than two
        tokens remain, or if an argument is not valid.
    FileError
        If the file exists and ``overwrite`` is false, or if it cannot be written.

    Warns
    -----
    TextWarning
        If the text is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794, figure 1.

    Examples
    --------
    Mean inner product of two tokens before the first and after the last of six layers.

    >>> import meanfield as mf
    >>> result = mf.transformer.read("sentence-transformers/all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> result.diagnostics["cosine"][[0, -1]].round(3)  # doctest: +SKIP
    array([0.088, 0.197])
    """
    dropped = require_drops(drop)
    require_used(path, show, command)
    states = read_states(model, text)
    states = states.only(states.mask_of_remaining(dropped))
    if states.hidden.shape[2] > MAX_WIDTH:
        raise CaseError(f"{states.name}: states of {states.hidden.shape[2]} numbers: expected at most {MAX_WIDTH}")
    if not states.lengths.min() > 0:
        raise CaseError(f"{states.name}: a token's state is 0, which has no direction")
    problem = _problem(states, {"drop": ",".join(dropped)} if dropped else {})
    return run_prepared(_case(states), problem, path, overwrite, progress, show=show, command=command)


def require_used(path: str | Path | None, show: Printer, command: str) -> None:
    """Raise CaseError for a ``command`` or a function ``show`` without a ``path``: a run in memory uses neither."""
    if path is None and command:
        raise CaseError(f"command = {command}: only allowed with path")
    if path is None and show is not print_nothing:
        raise CaseError(f"show = {getattr(show, '__name__', type(show).__name__)}: only allowed with path")


def run_prepared(
    case: Case, problem: Problem, path: str | Path | None, overwrite: bool, progress: bool | None, **given: Any
) -> Result:
    """Run a prepared problem into a file, or in memory if ``path`` is None, and return its result.

    ``given``: for a run into a file, the command and the function that prints lines. Raises as ``meanfield.run``.
    """
    quiet = not (has_bar() if progress is None else progress)
    if path is None:
        return Result(run_in_memory(case, problem=problem, quiet=quiet))
    with with_python_names():
        require_free(Path(path), overwrite)
    run(case, path, problem=problem, overwrite=overwrite, quiet=quiet, **given)
    return open_run(path)


class GivenLayers:
    """Layers with stored results: a layer map that ignores its argument and returns the known positions of tokens.

    ``positions`` (layers + 1, n, d) are those before the first layer and after each.
    """

    duration = 1.0

    def __init__(self, positions: Floats) -> None:
        self._positions = positions

    def __call__(self, time: float, positions: Floats) -> Floats:
        return np.asarray(self._positions[round(time) + 1])


def _problem(states: HiddenStates, facts: dict[str, str]) -> Problem:
    """Return the hidden states of a model as a problem whose tokens move through the given states."""
    lengths = states.lengths
    positions = states.hidden / lengths[:, :, None]
    _, n, d = positions.shape
    masses = np.full(n, 1 / n)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return diagnostics_of_states(names, masses, d, lambda time: lengths[round(time)])

    return Problem(
        space=Points(masses, d, time_name="layers passed", name="token"),
        initial=lambda: positions[0].copy(),
        dynamics=fixed(LayerIntegrator(GivenLayers(positions))),
        prepare=lambda state: None,
        diagnostics=diagnostics,
        variables=(PAIR_EDGE, *_variables(states)),
        attributes=_attributes(states) | facts,
    )


def _variables(states: HiddenStates) -> tuple[Variable, ...]:
    """Return the variables of tokens in a file: number in the vocabulary, text, length |h| after each layer."""
    texts = np.array([token.encode() for token in states.tokens])
    return (
        Variable("token_id", ("token",), states.ids, "1", "number in the model's vocabulary"),
        Variable("token_text", ("token",), texts, "1", "token as text, UTF-8"),
        Variable("state_length", ("layer", "token"), states.lengths, "1", "|h| after each layer"),
    )


def _attributes(states: HiddenStates) -> dict[str, str]:
    """Return the attributes of a file of hidden states: the model, its sizes and the source of the text."""
    config = states.config
    facts = {"layers": states.layers, "heads": heads_of(config), "width": states.hidden.shape[2]}
    return {
        **HOST_ATTRIBUTES,
        "layers_of": states.name,  # marks a file that cannot be resumed
        "model_type": str(config.model_type),
        **{f"model_{name}": str(value) for name, value in facts.items()},
        "text": states.source,
    }


def heads_of(config: object) -> int:
    """Return the number of attention heads of a model, 1 if its configuration has no such number."""
    return int(getattr(config, "num_attention_heads", None) or 1)


def _case(states: HiddenStates) -> Case:
    """Return the case that is stored in a file of hidden states: tokens in R^d, moved by the layers of a model."""
    beta, d, layers = beta_of(states.config), states.hidden.shape[2], states.layers
    title = f"{states.short_name}, a trained Transformer ({states.config.model_type}), reading {states.source}"
    layers_of = {"manifold": "transformer", "dimension": d, "file": states.name, "lengths": False}
    return load_case({
        "title": title,
        "domain": layers_of | {"logits": "unknown" if beta is None else "softmax"},
        "attention": {"beta": beta or 0.0},
        "initial": {"kind": "tokens", "file": "states.h5", "dataset": "position"},
        "time": {"method": "layers", "layers": layers},
        "output": {"snapshots": layers, "samples": layers},
    })  # fmt: skip
