"""The four ablations where the answer is known: residual × layer norm, untrained, as density, particles and field.

Tokens spread evenly on the circle of radius r see each other with Q = K = V = I and inverse temperature β. Attention is
radial, |A| = c r, c = I₁(βr²)/I₀(βr²), and a perturbation of mode l is moved at the rate λ_l of linear theory. A layer
of step τ multiplies

    layer norm post   the mode by 1 + τλ_l/(1 + τc) ,   without the residual by 1 + λ_l/c
    no layer norm     r by 1 + τc ,                     without the residual by c

so that without the residual a mode grows faster, and without layer norm r grows, with the residual, or goes to zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from meanfield.case.load import parse
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.layer_norm import LayerNorm
from meanfield.model.linear_stability import growth_rates
from meanfield.results.runs import simulate
from meanfield.running import Printer
from meanfield.transformer.experiments.outcome import Outcome, table
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled
from meanfield.transformer.networks.field import FieldLayer, Matrices
from meanfield.transformer.networks.section import Network, Pde, TrainingCase
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BETA, MODE, STEP, LAYERS = 4.0, 2, 0.1, 5  # more of them leave nothing of r but rounding
TOKENS, CELLS = 64, 256
AMPLITUDE = 1e-5  # of the mode: what it does to itself is below 1e-4 after LAYERS
COMBINATIONS = (("post", True), ("post", False), ("none", True), ("none", False))
FORMS = ("density", "particles", "field", "exact")
Layer = Callable[[Floats], Floats]


def untrained(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE) -> Outcome:
    """log of the growth of the mode, or of r without layer norm, (combination, form, layer); nothing is drawn."""
    found = np.full((len(COMBINATIONS), len(FORMS), LAYERS), np.nan)
    for k, (norm, residual) in enumerate(COMBINATIONS):
        if norm == "post":
            found[k, 0] = _of_density(residual)
        found[k, 1] = _of_tokens(_layer_of_particles(norm, residual), norm)
        found[k, 2] = _of_tokens(_layer_of_field(norm, residual), norm)
        found[k, 3] = exact(norm, residual)
    dims = ("combination", "form", "layer")
    arrays = {
        "combination": Labelled(("combination",), [_name(*one) for one in COMBINATIONS]),
        "form": Labelled(("form",), list(FORMS)),
        "growth": Labelled(dims, found, "log of the growth of mode 2, or of the radius without layer norm, by layers"),
    }
    return Outcome(arrays, _summary(found), lambda figure: _draw(figure, found))


def exact(norm: str, residual: bool) -> Floats:
    """(layers,) logarithm of the growth since the beginning."""
    from scipy.special import ive

    def strength(radius: float) -> float:
        return float(ive(1, BETA * radius**2) / ive(0, BETA * radius**2))

    if norm == "post":
        rate, c = float(growth_rates(2, BETA, [MODE])[0]), strength(1.0)
        per_layer = math.log(1 + (STEP * rate / (1 + STEP * c) if residual else rate / c))
        return per_layer * np.arange(1.0, LAYERS + 1)
    radii = [1.0]
    for _ in range(LAYERS):
        radii.append(radii[-1] * (1 + STEP * strength(radii[-1]) if residual else strength(radii[-1])))
    return np.asarray(np.log(radii[1:]))


def _of_density(residual: bool) -> Floats:
    case = parse(_CASE.format(cells=CELLS, beta=BETA, mode=MODE, amplitude=AMPLITUDE, layers=LAYERS, step=STEP))
    result = simulate(case if residual else case.replace({"stabilizers.residual": False}))
    power = np.asarray(result.diagnostics["power"])[:, MODE]
    return np.asarray(np.log(power[1:] / power[0]) / 2)


def _of_tokens(layer: Layer, norm: str) -> Floats:
    """Of tokens spread evenly, each turned by AMPLITUDE sin(lφ), or as they are without layer norm."""
    even = 2 * math.pi * np.arange(TOKENS) / TOKENS
    wave = np.sin(MODE * even)
    angles = even + (AMPLITUDE * wave if norm == "post" else 0.0)
    x, sizes = np.stack([np.cos(angles), np.sin(angles)], axis=1), []
    for _ in range(LAYERS + 1):
        turned = np.angle((x[:, 0] + 1j * x[:, 1]) * np.exp(-1j * even))
        sizes.append(wave @ turned if norm == "post" else np.linalg.norm(x, axis=1).mean())
        x = layer(x)
    return np.asarray(np.log(np.array(sizes[1:]) / sizes[0]))


def _layer_of_particles(norm: str, residual: bool) -> Layer:
    law = ParticleVelocity(BETA, norm=LayerNorm(norm))
    return lambda x: layer_map(law, x, STEP if residual else 1.0, residual=residual)


def _layer_of_field(norm: str, residual: bool) -> Layer:
    """The PDE network's layer, in PyTorch."""
    network = Network(kind="pde", dimension=2, heads=1, layer_norm=norm, residual=residual, feed_forward=False)  # type: ignore[arg-type]
    layer = FieldLayer(network, Pde(step=STEP if residual else 1.0), False, Matrices(network)).double()
    with torch.no_grad():
        for matrix in layer.matrices.parameters():
            matrix.copy_(torch.eye(2))
    layer.matrices.beta = BETA

    def map_of(x: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(layer(torch.from_numpy(x)[None])[0][0].numpy())

    return map_of


def _name(norm: str, residual: bool) -> str:
    return f"layer norm {norm}, {'residual' if residual else 'no residual'}"


def _summary(found: Floats) -> str:
    rows = [
        [_name(*one), *("–" if np.isnan(value) else f"{value:.5g}" for value in rows[:, -1])]
        for one, rows in zip(COMBINATIONS, found, strict=True)
    ]
    head = [f"untrained, after {LAYERS} layers", *FORMS]
    return f"{table(head, rows)}\nlog of the growth of mode {MODE}, without layer norm of the radius; β = {BETA:g}."


def _draw(figure: Figure, found: Floats) -> None:
    figure.set_size_inches(11.0, 3.2)
    axes = figure.subplots(1, len(COMBINATIONS))
    layers = np.arange(1, LAYERS + 1)
    for ax, one, rows in zip(axes, COMBINATIONS, found, strict=True):
        for form, values, style in zip(FORMS, rows, ("s", "o", "x", "k-"), strict=True):
            ax.plot(layers, values, style, label=form, ms=8 if form == "density" else 5, mfc="none", lw=1)
        ax.set(xlabel="layers passed", title=_name(*one))
        ax.title.set_fontsize(9)
    axes[0].set_ylabel(f"log growth of mode {MODE}")
    axes[2].set_ylabel("log growth of the radius")
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()


_CASE = """
[domain]
manifold = "circle"
resolution = {cells}
[attention]
beta = {beta}
[initial]
kind = "harmonic"
degree = {mode}
amplitude = {amplitude}
[time]
method = "layers"
layers = {layers}
step = {step}
[output]
snapshots = {layers}
samples = {layers}
diagnostics = ["power"]
"""
