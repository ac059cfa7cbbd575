"""The layers of a trained Transformer as a file of particles: x = h/|h| of each token's state h, time = layers passed.

As in P. Rigollet's talk "The mean-field dynamics of Transformers" and figure 1 of Geshkovski, Letrouit, Polyanskiy,
Rigollet (2312.10794), where inner products of the tokens of ALBERT move to 1 from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.diagnostics.table import LENGTHS, Diagnostic, Diagnostics, Table
from meanfield.domains.common.problem import Problem
from meanfield.domains.particles.diagnostics import DIAGNOSTICS, Particles
from meanfield.domains.particles.velocity import ParticleLaw
from meanfield.model.discrete_layers import LayerIntegrator
from meanfield.running import run
from meanfield.simulation import ON_HOST, PAIR_EDGE
from meanfield.transformer.model import States
from solvers.io.layout import Points, Variable
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import fixed

MAX_WIDTH = 4096  # of a case's domain.dimension
_WITHOUT_LAW = ("mass", "centroid", "clusters", "cluster_mass", "cluster_center", "pairs", "pairs_close")


def read_transformer(
    states: States, path: str | Path, *, overwrite: bool = False, quiet: bool = False, command: str = ""
) -> int:
    """Write the directions of a model's states into a new file, a snapshot a layer; returns the exit status.

    Beside what any run of particles has: diagnostics/cosine, the mean of ⟨x, y⟩ over two different tokens,
    diagnostics/length, √(mean |h|²), and token_id; attributes tell the model. Energy and speed belong to a law of
    motion, which is not read here. Raises CaseError for a model that is too wide or has a state 0.
    """
    if states.hidden.shape[2] > MAX_WIDTH:
        raise CaseError(f"{states.name}: states of {states.hidden.shape[2]} numbers: expected at most {MAX_WIDTH}")
    if not states.lengths.min() > 0:
        raise CaseError(f"{states.name}: a token's state is 0, which has no direction")
    case, problem = _case(states, Path(path)), _problem(states)
    return run(case, path, problem=problem, overwrite=overwrite, quiet=quiet, command=command)


class GivenLayers:
    """Layers whose outcome is known: after layer k tokens are at positions[k], (layers + 1, n, d)."""

    duration = 1.0

    def __init__(self, positions: Floats) -> None:
        self._positions = positions

    def __call__(self, time: float, positions: Floats) -> Floats:
        return self._positions[round(time) + 1]


def _problem(states: States) -> Problem:
    positions = states.hidden / states.lengths[:, :, None]
    _, n, d = positions.shape
    masses = np.full(n, 1 / n)
    law = ParticleLaw(1.0, masses=masses)  # of clusters only the scale at which they are told apart, one of identities
    table = DIAGNOSTICS | _of_states(states)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        chosen = [name for name in names if name in _WITHOUT_LAW]
        return Diagnostics([*chosen, *_of_states(states)], table, {"d": d, **LENGTHS}, look)

    def look(time: float, points: Floats) -> Particles:
        return Particles(law, time, points, masses)

    return Problem(
        space=Points(masses, d, time_name="layers passed", name="token"),
        initial=lambda: positions[0].copy(),
        dynamics=fixed(LayerIntegrator(GivenLayers(positions))),
        prepare=lambda state: None,
        diagnostics=diagnostics,
        variables=(PAIR_EDGE, Variable("token_id", ("token",), states.ids, "1", "number in the model's vocabulary")),
        attributes=_attributes(states),
    )


def _of_states(states: States) -> Table:
    lengths = np.sqrt((states.lengths**2).mean(axis=1))
    return {
        "cosine": Diagnostic(cosine, "", "mean inner product of two different tokens"),
        "length": Diagnostic(
            lambda sample: float(lengths[round(sample.time)]), "", "root mean square length of the states"
        ),
    }


def cosine(sample: Particles) -> float:
    """Mean of ⟨x_i, x_j⟩ over i ≠ j: (n |Σ x/n|² − 1)/(n − 1) for unit vectors."""
    n = len(sample.points)
    return float((n * (sample.points.mean(axis=0) ** 2).sum() - 1) / (n - 1))


def _attributes(states: States) -> dict[str, str]:
    config = states.config
    told = {"layers": states.layers, "heads": heads_of(config), "width": states.hidden.shape[2]}
    return {
        **ON_HOST,
        "layers_of": states.name,  # such a file cannot be resumed
        "model_type": str(config.model_type),
        **{f"model_{name}": str(value) for name, value in told.items()},
        "text": states.source,
    }


def heads_of(config: object) -> int:
    """Number of heads, 1 where the configuration does not tell."""
    return int(getattr(config, "num_attention_heads", None) or 1)


def _case(states: States, path: Path) -> Case:
    """What a file's readers want to know: softmax attention in d dimensions, β = 1/√d_head, in so many layers."""
    d, layers = states.hidden.shape[2], states.layers
    case = parse(_CASE.format(d=d, beta=float((heads_of(states.config) / d) ** 0.5), layers=layers))
    return msgspec.structs.replace(
        case,
        title=f"{states.short_name}, a trained Transformer ({states.config.model_type}), reading {states.source}",
        initial=msgspec.structs.replace(case.initial, file=str(path)),
    )


_CASE = """
[domain]
manifold = "particles"
dimension = {d}
[attention]
beta = {beta!r}
[initial]
kind = "tokens"
file = "states.h5"
dataset = "position"
[time]
method = "layers"
layers = {layers}
step = 1.0
[output]
snapshots = {layers}
samples = {layers}
"""
