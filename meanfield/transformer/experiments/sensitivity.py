"""Sensitivity of the last states to the first, and the finite-depth Lyapunov exponent of the layers.

    gain(ε) = (|u_L(u_0 + δ) − u_L(u_0)| / |u_L(u_0)|) / (|δ| / |u_0|) ,     |δ| = ε|u_0| ,     exponent = log(gain)/L

A perturbation is relative to the states at its depth, since states that grow carry their perturbations along. Depth is
the number L of layers in both networks. ``growth`` = |u_L|/|u_0|, so that gain·growth is the absolute gain.

δ is Gaussian, or adversarial: the leading right singular vector of the Jacobian J = ∂u_L/∂u_0 of each example, whose
gain at small ε is the largest. States on the unit sphere are perturbed along the sphere.

``uniform_exponents`` validates the measurement against known rates: the PDE network's layers with Q = K = V = I and
tokens evenly spaced on the circle, whose mode l grows at the rate λ_l of linear theory.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from meanfield.analysis.text import table
from meanfield.model.linear_stability import growth_rates
from meanfield.transformer.experiments.drawing import COLORS, curves
from meanfield.transformer.experiments.statistics import describe, describe_difference, describe_ratio
from meanfield.transformer.experiments.subjects import AXES, STATES, Subjects, lengths_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.field import FieldLayer, identity_layer
from meanfield.transformer.networks.network import TokenNetwork
from solvers.mesh.mesh import Floats

EXAMPLES = 64
SIZES = np.logspace(-6, 0, 7)
ITERATIONS = 30  # iterations of the power method; gains change by less than 1 % after some 15
DIFFERENCE = 1e-6  # size of central differences, in float64
DIRECTIONS = ("Gaussian", "adversarial")
MODES = np.arange(1, 7)
TOKENS, BETA, LAYERS, STEP = 64, 4.0, 100, 0.01  # parameters of the flow whose rates are known
Map = Callable[[Tensor], Tensor]


def sensitivity(subjects: Subjects) -> Outcome:
    """Return the gains and Lyapunov exponents of perturbations of each network, and the exponents of a known flow.

    A gain is the ratio of the relative change of the states after the last layer to that before the first. Gains are
    given for several directions and sizes of the perturbation.
    """
    inputs = subjects.inputs(EXAMPLES)
    gains = subjects.measure(lambda network: gains_of(network, inputs))
    growth = subjects.measure(lambda network: growth_of(network, inputs))
    exponents = np.log(gains[..., 0]) / subjects.case.network.layers
    uniform, rates = uniform_exponents(BETA), growth_rates(2, BETA, MODES)
    arrays = {
        **subjects.coordinates(),
        **coordinates(direction=DIRECTIONS),
        "size": Labelled(("size",), SIZES, "norm of the perturbation by that of the first states"),
        "gain": Labelled((*AXES, "direction", "size"), gains, "relative change of the last states by the first"),
        "growth": Labelled(AXES, growth, "norm of the last states by that of the first"),
        "exponent": Labelled((*AXES, "direction"), exponents, "Lyapunov exponent at small perturbations", "1/layer"),
        **coordinates(mode=MODES),
        "uniform_exponent": Labelled(("mode",), uniform, "exponent of equally spaced tokens", "1/time"),
        "uniform_rate": Labelled(("mode",), rates, "its rate in linear theory", "1/time"),
    }
    return Outcome(arrays, summary, draw)


def gains_of(network: TokenNetwork, inputs: Tensor) -> Floats:
    """Return the gains (direction, size) of perturbations through a network, as geometric means over examples.

    A gain is the ratio of the relative change of the states after the last layer to that before the first. Directions
    are Gaussian or adversarial.
    """
    wide, states = _in_float64(network, inputs)
    project = _tangent if _on_sphere(network) else lambda states, v: v
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(states.shape, dtype=states.dtype, generator=generator)
    gaussian = _unit(project(states, start))
    adversarial, _ = leading_direction(wide.pass_layers, states, gaussian, project)
    return np.array([[_gain(wide.pass_layers, states, v, size) for size in SIZES] for v in (gaussian, adversarial)])


def growth_of(network: TokenNetwork, inputs: Tensor) -> float:
    """Return |u_L|/|u_0| of the states before and after all layers of a network, as a geometric mean over examples."""
    wide, states = _in_float64(network, inputs)
    with torch.no_grad():
        return float((lengths_of(wide.pass_layers(states)) / lengths_of(states)).log().mean().exp())


def _in_float64(network: TokenNetwork, inputs: Tensor) -> tuple[TokenNetwork, Tensor]:
    """Return a copy of a network and its states before the first layer (examples, n, d), both in float64."""
    wide = copy.deepcopy(network).double()
    with torch.no_grad():
        return wide, wide.embed(inputs.double() if inputs.is_floating_point() else inputs)


def leading_direction(
    layers: Map, states: Tensor, start: Tensor, project: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the perturbations v (examples, n, d) that grow most through the layers, and their growth |Jv| (examples,).

    J is the Jacobian of ``layers`` at ``states``, v has length 1 in each example. The power method on JᵀJ begins at
    ``start``; ``project`` restricts directions, for instance to those along the sphere.
    """
    v = start
    for _ in range(ITERATIONS):
        u = states.detach().requires_grad_(True)
        change = _change(layers, states, v, DIFFERENCE)
        (gradient,) = torch.autograd.grad((layers(u) * change).sum(), u)
        v = _unit(project(states, gradient))
    return v, lengths_of(_change(layers, states, v, DIFFERENCE))


def uniform_exponents(beta: float) -> Floats:
    """Return the measured Lyapunov exponents (modes,) of tokens evenly spaced on the circle, in short steps.

    The layers are those of the PDE network with Q = K = V = I and inverse temperature ``beta``.
    """
    layer = identity_layer(beta, STEP, layer_norm="post")

    def layers(u: Tensor) -> Tensor:
        for _ in range(LAYERS):
            u = layer(u)[0]
        return u

    angles = 2 * math.pi * torch.arange(TOKENS, dtype=torch.float64) / TOKENS
    along = torch.stack([-angles.sin(), angles.cos()], dim=1)
    states = torch.stack([angles.cos(), angles.sin()], dim=1)[None]
    modes = [_unit(((int(l) * angles).sin()[:, None] * along)[None]) for l in MODES]
    with torch.no_grad():
        gains = [float(lengths_of(_change(layers, states, mode, DIFFERENCE))) for mode in modes]
    return np.log(gains) / (LAYERS * STEP)


def _change(layers: Map, states: Tensor, direction: Tensor, size: float) -> Tensor:
    """Return J·direction by central differences of the given size, J the Jacobian of ``layers`` at ``states``."""
    with torch.no_grad():
        return (layers(states + size * direction) - layers(states - size * direction)) / (2 * size)


def _gain(layers: Map, states: Tensor, direction: Tensor, size: float) -> float:
    """Return the relative change of the states after all layers, divided by that of the initial states.

    The initial states u are perturbed by δ along ``direction``, with |δ|/|u| = ``size``. The result is a geometric mean
    over examples.
    """
    with torch.no_grad():
        last = layers(states)
        change = layers(states + size * lengths_of(states)[:, None, None] * direction) - last
    return float((lengths_of(change) / lengths_of(last) / size).log().mean().exp())


def _unit(x: Tensor) -> Tensor:
    """Return the perturbation of each example, scaled to length 1."""
    return torch.nn.functional.normalize(x.flatten(1), dim=1).view_as(x)


def _tangent(states: Tensor, v: Tensor) -> Tensor:
    """Return vectors projected on the tangent spaces of the sphere at the states."""
    return v - (v * states).sum(dim=-1, keepdim=True) * states


def _on_sphere(network: TokenNetwork) -> bool:
    """Return whether the layers of a network keep states on the sphere."""
    return any(isinstance(layer, FieldLayer) and layer.on_sphere for layer in network.body.layers)


def summary(found: Outcome) -> str:
    """Return tables of the gains and exponents of perturbations."""
    exponents, gains, growth = found["exponent"], found["gain"][..., 0], found["growth"]
    rows = [
        [name, STATES[s], *(describe(exponents[i, s, :, k]) for k in range(len(DIRECTIONS))),
         *(describe_ratio(gains[i, s, :, k]) for k in range(len(DIRECTIONS))), describe_ratio(growth[i, s])]
        for i, name in enumerate(found["network"])
        for s in range(len(STATES))
    ]  # fmt: skip
    head = ["network", "state", *(f"{name}, {k}" for name in ("exponent", "gain") for k in DIRECTIONS), "|u_L|/|u_0|"]
    differences = ", ".join(
        f"{direction}, {STATES[s]} {describe_difference(exponents[1, s, :, k], exponents[0, s, :, k])}"
        for k, direction in enumerate(DIRECTIONS)
        for s in range(len(STATES))
    )
    worst = np.abs(found["uniform_exponent"] / found["uniform_rate"] - 1).max()
    return (
        f"{table(head, rows)}\nGains are relative to the states, exponents per layer. "
        f"Exponents of the PDE network less those of the Transformer, paired by seed: {differences}. "
        f"Equally spaced tokens on the circle, β = {BETA:g}, modes 1 to {MODES[-1]}: "
        f"exponents within {100 * worst:.2g} % of linear theory's."
    )


def draw(figure: Figure, found: Outcome) -> None:
    """Draw gains by size of a perturbation, and the exponents of a known flow beside linear theory."""
    gains = found["gain"]
    figure.set_size_inches(11.0, 3.8)
    axes = figure.subplots(1, 3)
    axes[1].sharey(axes[0])
    for k, direction in enumerate(DIRECTIONS):
        curves(axes[k], found["size"], gains[:, :, :, k], geometric=True)
        axes[k].set(
            xlabel="relative size of the perturbation", ylabel="gain of relative changes", xscale="log", yscale="log"
        )
        axes[k].axhline(1.0, color="0.5", ls=":", lw=1)
        axes[k].set_title(direction)
    axes[1].legend(fontsize=7, frameon=False, loc="lower left")
    axes[2].plot(MODES, found["uniform_rate"], "k-", lw=1, label="linear theory")
    axes[2].plot(MODES, found["uniform_exponent"], "o", color=COLORS["pde"], label="layers of the PDE network")
    axes[2].set(xlabel="mode", ylabel="exponent", title=f"equally spaced tokens, β = {BETA:g}")
    axes[2].legend(fontsize=8, frameon=False)
    figure.tight_layout()
