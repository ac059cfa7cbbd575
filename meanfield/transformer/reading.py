"""The layers of a trained Transformer as a file of particles: x = h/|h| of each token's state h, time = layers passed.

As in P. Rigollet's talk "The mean-field dynamics of Transformers" and figure 1 of Geshkovski, Letrouit, Polyanskiy,
Rigollet (2312.10794), where inner products of the tokens of ALBERT move to 1 from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.overrides import inline
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.problem import Problem
from meanfield.domains.trained.diagnostics import diagnostics_of_states
from meanfield.model.discrete_layers import LayerIntegrator
from meanfield.running import Printer, print_nothing, run
from meanfield.simulation import HOST_ATTRIBUTES, PAIR_EDGE
from meanfield.transformer.families import beta_of
from meanfield.transformer.model import States
from solvers.io.layout import Points, Variable
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import fixed

MAX_WIDTH = 4096  # of a case's domain.dimension


def read_transformer(
    states: States,
    path: str | Path,
    *,
    overwrite: bool = False,
    quiet: bool = True,
    command: str = "",
    drop: Sequence[str] = (),
    show: Printer = print_nothing,
) -> None:
    """Write the directions of a model's states into a new file, a snapshot a layer.

    Beside what any run of particles has: token_id, token_text (UTF-8) and state_length, |h| after each layer;
    diagnostics cosine, length and effective_rank; attributes name the model. Energy and speed belong to a law of
    motion, which is not read here. ``drop`` names, for the file, tokens that the states are without. Raises CaseError
    for a model that is too wide or has a state 0.
    """
    if states.hidden.shape[2] > MAX_WIDTH:
        raise CaseError(f"{states.name}: states of {states.hidden.shape[2]} numbers: expected at most {MAX_WIDTH}")
    if not states.lengths.min() > 0:
        raise CaseError(f"{states.name}: a token's state is 0, which has no direction")
    problem = _problem(states, {"drop": ",".join(drop)} if drop else {})
    run(_case(states), path, problem=problem, overwrite=overwrite, quiet=quiet, command=command, show=show)


class GivenLayers:
    """Layers whose outcome is known: after layer k tokens are at positions[k], (layers + 1, n, d)."""

    duration = 1.0

    def __init__(self, positions: Floats) -> None:
        self._positions = positions

    def __call__(self, time: float, positions: Floats) -> Floats:
        after: Floats = self._positions[round(time) + 1]
        return after


def _problem(states: States, facts: dict[str, str]) -> Problem:
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


def _variables(states: States) -> tuple[Variable, ...]:
    """Number, text and lengths of each token."""
    texts = np.array([token.encode() for token in states.tokens])
    return (
        Variable("token_id", ("token",), states.ids, "1", "number in the model's vocabulary"),
        Variable("token_text", ("token",), texts, "1", "token as text, UTF-8"),
        Variable("state_length", ("layer", "token"), states.lengths, "1", "|h| after each layer"),
    )


def _attributes(states: States) -> dict[str, str]:
    config = states.config
    facts = {"layers": states.layers, "heads": heads_of(config), "width": states.hidden.shape[2]}
    return {
        **HOST_ATTRIBUTES,
        "layers_of": states.name,  # such a file cannot be resumed
        "model_type": str(config.model_type),
        **{f"model_{name}": str(value) for name, value in facts.items()},
        "text": states.source,
    }


def heads_of(config: object) -> int:
    """Number of heads, 1 where the configuration has none."""
    return int(getattr(config, "num_attention_heads", None) or 1)


def _case(states: States) -> Case:
    """The case that readers of the file see: states in R^d, moved by the layers of a model."""
    beta, d, layers = beta_of(states.config), states.hidden.shape[2], states.layers
    title = f"{states.short_name}, a trained Transformer ({states.config.model_type}), reading {states.source}"
    return parse(
        _CASE.format(
            title=inline(title),
            d=d,
            file=inline(states.name),
            logits="unknown" if beta is None else "softmax",
            beta=beta or 0.0,
            layers=layers,
        )
    )


_CASE = """
title = {title}
[domain]
manifold = "transformer"
dimension = {d}
file = {file}
logits = "{logits}"
lengths = false
[attention]
beta = {beta!r}
[initial]
kind = "tokens"
file = "states.h5"
dataset = "position"
[time]
method = "layers"
layers = {layers}
[output]
snapshots = {layers}
samples = {layers}
"""
