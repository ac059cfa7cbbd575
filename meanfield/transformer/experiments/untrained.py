"""Four ablations with known answers: residual × layer norm, untrained, as density, particles and field.

Tokens evenly spaced on the circle of radius r interact with Q = K = V = I and inverse temperature β. Attention is
radial, |A| = c r, c = I₁(βr²)/I₀(βr²), and a perturbation of mode l grows at the rate λ_l of linear theory. A layer of
step τ multiplies

    layer norm post   the mode by 1 + τλ_l/(1 + τc) ,   without the residual by 1 + λ_l/c
    no layer norm     r by 1 + τc ,                     without the residual by c
    no layer norm     the deviation √s of a Gaussian on the line by 1 + τβs, without the residual by βs

so that without the residual a mode grows faster, and without layer norm lengths grow, with the residual, or go to zero.
Densities without layer norm are on the line, the domain that supports layers. There tokens are the nodes of
Gauss–Hermite quadrature with the weights as masses, which the field does not support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.layer_norm import LayerNorm
from meanfield.model.linear_stability import growth_rates
from meanfield.results.runs import simulate
from meanfield.running import Printer
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.field import identity_layer
from meanfield.transformer.networks.section import TrainingCase
from solvers.mesh.mesh import Floats

BETA, MODE, STEP, LAYERS = 4.0, 2, 0.1, 3
TOKENS, CELLS = 64, 256
AMPLITUDE = 1e-5  # amplitude of the mode: the effect of the mode on itself is below 1e-4 after LAYERS
LINE_BETA, VARIANCE, LINE_CELLS = 1.0, 0.9, 1024  # parameters of the Gaussian
FORMS = ("density", "particles", "field", "exact")
Layer = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Ablation:
    """Ablation of an untrained network: its layer norm, with or without residual, and the quantity that is measured.

    ``measured`` is "mode", the amplitude of a mode on the circle; "radius", that of a circle of tokens; or "deviation",
    the standard deviation of a Gaussian on the line.
    """

    norm: str
    residual: bool
    measured: str

    @property
    def name(self) -> str:
        """Return the name of the ablation: the measured quantity, the layer norm and the residual."""
        residual = "residual" if self.residual else "no residual"
        return f"{MEASURED[self.measured]}: layer norm {self.norm}, {residual}"

    @property
    def step(self) -> float:
        """Return the time of a layer: STEP with the residual, 1 without."""
        return STEP if self.residual else 1.0


MEASURED = {"mode": f"mode {MODE}", "radius": "radius", "deviation": "deviation"}
ABLATIONS = (
    Ablation("post", True, "mode"), Ablation("post", False, "mode"), Ablation("none", True, "radius"),
    Ablation("none", False, "radius"), Ablation("none", True, "deviation"), Ablation("none", False, "deviation"),
)  # fmt: skip


def untrained(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE) -> Outcome:
    """Return the log of the growth by layers of a mode, a radius or a deviation, without some parts of a network.

    The array is (ablation, form, layer): an ablation is a network without some parts; the forms are density, particles,
    field and the exact value. Nothing is random, and the arguments are not used.
    """
    found = np.full((len(ABLATIONS), len(FORMS), LAYERS), np.nan)
    for k, one in enumerate(ABLATIONS):
        if one.measured == "deviation":
            found[k, 0], found[k, 1] = _growth_on_line(one), _growth_of_nodes(one)
        else:
            found[k, 1] = _growth_of_tokens(_layer_of_particles(one), one)
            found[k, 2] = _growth_of_tokens(_layer_of_field(one), one)
        if one.measured == "mode":
            found[k, 0] = _growth_of_density(one)
        found[k, 3] = exact(one)
    dims = ("ablation", "form", "layer")
    arrays = {
        **coordinates(ablation=[one.name for one in ABLATIONS], form=FORMS, layer=np.arange(LAYERS) + 1),
        "growth": Labelled(dims, found, "log of the growth of a mode, radius or deviation, by layers"),
    }
    return Outcome(arrays, summary, draw)


def exact(one: Ablation) -> Floats:
    """Return the exact log of the growth (layers,) of the mode, radius or deviation that an ablation measures.

    The growth is that from before the first layer to after each layer.
    """
    if one.measured == "mode":
        rate, c = float(growth_rates(2, BETA, [MODE])[0]), _strength(1.0)
        per_layer = math.log(1 + (STEP * rate / (1 + STEP * c) if one.residual else rate / c))
        return per_layer * np.arange(1.0, LAYERS + 1)
    is_radius = one.measured == "radius"
    sizes = [1.0 if is_radius else math.sqrt(VARIANCE)]
    for _ in range(LAYERS):
        attended = _strength(sizes[-1]) if is_radius else LINE_BETA * sizes[-1] ** 2
        sizes.append(sizes[-1] * (1 + STEP * attended if one.residual else attended))
    return np.asarray(np.log(np.array(sizes[1:]) / sizes[0]))


def _strength(radius: float) -> float:
    """Return c = |A|/r for the attention A of tokens evenly spaced on a circle of radius r, Q = K = V = I."""
    from scipy.special import ive

    return float(ive(1, BETA * radius**2) / ive(0, BETA * radius**2))


def _growth_of_density(one: Ablation) -> Floats:
    """Return the log of the growth (layers,) of a small harmonic of a density on the circle, by layers."""
    sections = {
        "domain": {"manifold": "circle", "resolution": CELLS},
        "attention": {"beta": BETA},
        "initial": {"kind": "harmonic", "degree": MODE, "amplitude": AMPLITUDE},
    }
    power = _simulated(sections, "power", one)[:, MODE]
    return np.asarray(np.log(power[1:] / power[0]) / 2)


def _growth_on_line(one: Ablation) -> Floats:
    """Return the log of the growth (layers,) of the standard deviation of a Gaussian density on the line, by layers."""
    sections = {
        "domain": {"manifold": "line", "resolution": LINE_CELLS, "core": 4.0, "outermost": 50.0},
        "attention": {"beta": LINE_BETA},
        "initial": {"kind": "gaussian", "variance": VARIANCE},
    }
    variance = _simulated(sections, "variance", one).reshape(-1)
    return np.asarray(np.log(variance[1:] / variance[0]) / 2)


def _simulated(sections: dict[str, Any], diagnostic: str, one: Ablation) -> Floats:
    """Return a diagnostic of a density, simulated in layers, at the start and after each layer."""
    time = {"method": "layers", "layers": LAYERS, "step": one.step}
    output = {"snapshots": LAYERS, "samples": LAYERS, "diagnostics": [diagnostic]}
    stabilizers = {"layer_norm": one.norm, "residual": one.residual}
    result = simulate({**sections, "stabilizers": stabilizers, "time": time, "output": output})
    return np.asarray(result.diagnostics[diagnostic])


def _growth_of_nodes(one: Ablation) -> Floats:
    """Return the log of the growth (layers,) of the standard deviation of weighted tokens on the line, by layers.

    The tokens are nodes of a quadrature rule, whose sums equal those of a Gaussian to rounding.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(TOKENS)
    masses = weights / weights.sum()
    velocity = ParticleVelocity(LINE_BETA, masses=masses, norm=LayerNorm(one.norm))
    x, variances = math.sqrt(VARIANCE) * nodes[:, None], []
    for _ in range(LAYERS + 1):
        variances.append(masses @ x[:, 0] ** 2)
        x = layer_map(velocity, x, one.step, residual=one.residual)
    return np.asarray(np.log(np.array(variances[1:]) / variances[0]) / 2)


def _growth_of_tokens(layer: Layer, one: Ablation) -> Floats:
    """Return the log of the growth (layers,) of the mode or radius of evenly spaced tokens on the circle.

    ``layer`` maps positions (n, 2) of tokens. To measure a mode l, each token is first rotated by AMPLITUDE sin(lφ).
    """
    even = 2 * math.pi * np.arange(TOKENS) / TOKENS
    wave = np.sin(MODE * even)
    angles = even + (AMPLITUDE * wave if one.measured == "mode" else 0.0)
    x, sizes = np.stack([np.cos(angles), np.sin(angles)], axis=1), []
    for _ in range(LAYERS + 1):
        turned = np.angle((x[:, 0] + 1j * x[:, 1]) * np.exp(-1j * even))
        sizes.append(wave @ turned if one.measured == "mode" else np.linalg.norm(x, axis=1).mean())
        x = layer(x)
    return np.asarray(np.log(np.array(sizes[1:]) / sizes[0]))


def _layer_of_particles(one: Ablation) -> Layer:
    """Return the map of one layer of tokens with the layer norm and the residual of an ablation."""
    velocity = ParticleVelocity(BETA, norm=LayerNorm(one.norm))
    return lambda x: layer_map(velocity, x, one.step, residual=one.residual)


def _layer_of_field(one: Ablation) -> Layer:
    """Return the layer of the PDE network, computed by PyTorch, as a map of positions (n, 2)."""
    layer = identity_layer(BETA, one.step, layer_norm=one.norm, residual=one.residual)

    def map_of(x: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(layer(torch.from_numpy(x)[None])[0][0].numpy())

    return map_of


def summary(found: Outcome) -> str:
    """Return a table of the log of the growth after all layers, by ablation and form."""
    rows = [
        [one.name, *("–" if np.isnan(value) else f"{value:.5g}" for value in rows[:, -1])]
        for one, rows in zip(ABLATIONS, found["growth"], strict=True)
    ]
    head = [f"log of the growth after {LAYERS} layers", *FORMS]
    return f"{table(head, rows)}\nβ = {BETA:g}; of the deviation of a Gaussian on the line β = {LINE_BETA:g}."


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the log of the growth by layers, one panel for each ablation."""
    figure.set_size_inches(11.0, 5.6)
    axes = figure.subplots(2, 3).T.ravel()
    layers = np.arange(1, LAYERS + 1)
    for ax, one, rows in zip(axes, ABLATIONS, found["growth"], strict=True):
        for form, values, style in zip(FORMS, rows, ("s", "o", "x", "k-"), strict=True):
            ax.plot(layers, values, style, label=form, ms=8 if form == "density" else 5, mfc="none", lw=1)
        ax.set(xlabel="layers passed", ylabel=f"log growth, {MEASURED[one.measured]}", xticks=layers)
        ax.set_title(one.name.partition(": ")[2].replace("layer norm none", "no layer norm"), fontsize=9)
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
