"""Nested laws of motion fitted to the hidden states of a model on some texts, and tested on others, layer by layer.

    error of a layer = Σ_i |x'_i − law(x)_i|² / Σ_i |x'_i − x_i|²

A law is a map of one layer, of directions x = h/|h| on the unit sphere.

    x ← N(x + (vI + CB) A(x) + κ Lx + W σ(Ux + b)) ,    A(x)_i = Σ_j softmax_j(β⟨x_i, x_j⟩ + ⟨Q x_i, K x_j⟩) x_j

N y = y/|y|; L is the three-point Laplacian along the text with no flux at both ends; Q, K, B (rank, d) and C (d, rank).
With W = C = Q = 0 and κ = 0 the law is the mean-field velocity of one β and V = vI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import normalize

from meanfield.analysis.text import table
from meanfield.case.errors import CaseError
from meanfield.running import Printer
from meanfield.transformer.families import family_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.model import HiddenStates
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats


def summary(found: Outcome) -> str:
    """Return a table of the error of each fitted law, a map of tokens by a layer, averaged over layers.

    Columns are the texts that the laws were fitted to, and those held back.
    """
    rows = [
        [law, *(f"{part.mean():.3g}" for part in errors)]
        for law, errors in zip(found["law"], found["error"], strict=True)
    ]
    return table(["law", *found["set"]], rows)


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the error of each fitted law (map of tokens by a layer), and β and v of the law with only these numbers.

    β is the inverse temperature of attention, v the factor in V = vI. Errors of held-back texts are solid lines, those
    of texts fitted to are dotted.
    """
    figure.set_size_inches(11.0, 4.2)
    axes = figure.subplots(1, 2, width_ratios=(2, 1))
    layers, laws, errors = found["layer"], found["law"], found["error"]
    shown = len(laws) - 1  # the error of the whole model is rounding
    for k, color in enumerate(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, shown))):
        axes[0].plot(layers, errors[k, 1], "o-", ms=3, color=color, label=laws[k])
        axes[0].plot(layers, errors[k, 0], ":", lw=1, color=color)
    axes[0].set(xlabel="layer", ylabel="error, relative to standing still", ylim=(0, None))
    axes[0].set_title(f"{found.title}: held-out texts (dotted: fitted texts)", fontsize=9)
    axes[0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].plot(layers, found["beta"][2], "o-", ms=3, label="β")
    axes[1].plot(layers, found["value"][2], "s-", ms=3, label="v")
    axes[1].set(xlabel="layer", title=laws[2])
    axes[1].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.set_xticks(layers)
    figure.tight_layout()


class FittedLayer(nn.Module):
    """Fitted map of one layer with trainable parameters, called as ``fitted(x, present)``.

    The directions x of tokens are (texts, n, d). The mask ``present`` (texts, n) marks the tokens of each text; the
    entries of absent ones stay 0.

    rank         of Q, K, B and C; 0 without them
    diffusion    whether κ is fitted
    width        of the network; 0 without it
    causal       whether a token attends to itself and earlier tokens only
    """

    def __init__(self, d: int, rank: int = 0, diffusion: bool = False, width: int = 0, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.beta, self.value = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.0))
        self.diffusion = nn.Parameter(torch.tensor(0.0), requires_grad=diffusion)
        small = d**-0.5
        self.query, self.key = _draw_normal(rank, d, small), _draw_normal(rank, d, small)
        self.inward, self.outward = _draw_normal(rank, d, small), nn.Parameter(torch.zeros(d, rank))
        self.inner, self.bias = _draw_normal(width, d, 1.0), nn.Parameter(torch.zeros(width))
        self.outer = nn.Parameter(torch.zeros(d, width))

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        logits = self.beta * x @ x.mT + (x @ self.query.T) @ (x @ self.key.T).mT
        mask = present[:, None, :]
        if self.causal:
            mask = mask & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        mean = logits.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ x
        moved = x + self.value * mean + (mean @ self.inward.T) @ self.outward.T
        moved = moved + self.diffusion * laplacian(x, present)
        moved = moved + nn.functional.gelu(x @ self.inner.T + self.bias) @ self.outer.T
        return normalize(moved, dim=-1) * present[..., None]


def laplacian(x: Tensor, present: Tensor) -> Tensor:
    """Return the three-point Laplacian of x (texts, n, d) along each text: Σ (x_j − x_i) over neighbors j = i ± 1.

    Only neighbors inside the text count, where the mask ``present`` (texts, n) is true.
    """
    step = x.diff(dim=1) * (present[:, 1:] & present[:, :-1])[..., None]
    zero = torch.zeros_like(x[:, :1])
    return torch.cat([step, zero], dim=1) - torch.cat([zero, step], dim=1)


def _draw_normal(rows: int, d: int, deviation: float) -> nn.Parameter:
    return nn.Parameter(deviation * torch.randn(rows, d))


SCALAR_RATE = 0.1  # rate of β, v and κ, which are of order 1 to 10; matrices have elements of order 1/√d
SETS = ("fitted to", "held back")


@dataclass(frozen=True)
class Options:
    """Options of the fit: rank and width of the largest laws, steps and rate of Adam, number of held-back texts."""

    rank: int = 16
    width: int = 64
    steps: int = 200
    rate: float = 1e-2
    held: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Texts:
    """Texts as padded arrays: directions (layers + 1, texts, n, d) of hidden states, mask of tokens (texts, n).

    Directions are 0 beyond the end of a text.
    """

    directions: Tensor
    present: Tensor


def fit_laws(texts: Sequence[HiddenStates], options: Options, show: Printer) -> dict[str, Labelled]:
    """Fit laws of growing size, maps of tokens by a layer, to hidden states, and test them on ``options.held`` texts.

    Returns error (law, set, layer), where set is the texts fitted to or those held back, and the numbers beta and value
    (law, layer) of each law, NaN for tokens at rest and the whole model. Raises CaseError for too few texts.
    """
    if len(texts) <= options.held:
        raise CaseError(f"held = {options.held}: expected fewer than the {len(texts)} texts")
    given, held = padded_directions(texts[: -options.held]), padded_directions(texts[-options.held :])
    d, layers = given.directions.shape[-1], len(given.directions) - 1
    causal = family_of(texts[0].name, texts[0].config).causal
    laws, errors, numbers = [STILL], [np.ones((2, layers))], [np.full((2, layers), np.nan)]
    previous: list[FittedLayer] | None = None
    for name, shape in _shapes(options).items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            one = FittedLayer(d, **shape, causal=causal)
            of_layers = (
                [one] * layers if previous is None else [FittedLayer(d, **shape, causal=causal) for _ in range(layers)]
            )
        if previous is not None:
            for law, before in zip(of_layers, previous, strict=True):
                _begin_from(law, before)
        descend(of_layers, given, options)
        laws.append(name)
        errors.append(np.array([errors_of(of_layers, part) for part in (given, held)]))
        numbers.append(np.array([[float(law.beta.detach()), float(law.value.detach())] for law in of_layers]).T)
        show(f"{name}: error {errors[-1][0].mean():.3f}, of texts held back {errors[-1][1].mean():.3f}")
        previous = of_layers
    laws.append(WHOLE)
    errors.append(np.array([_whole(part) for part in (texts[: -options.held], texts[-options.held :])]))
    numbers.append(np.full((2, layers), np.nan))
    beta, value = np.array(numbers).swapaxes(0, 1)
    return {
        **coordinates(law=laws, set=SETS, layer=np.arange(layers) + 1),
        "error": Labelled(("law", "set", "layer"), np.array(errors), "squared error, relative to standing still"),
        "beta": Labelled(("law", "layer"), beta, "inverse temperature of the law"),
        "value": Labelled(("law", "layer"), value, "v of V = vI"),
    }


def padded_directions(texts: Sequence[HiddenStates]) -> Texts:
    """Return the directions h/|h| of the hidden states of several texts as one padded array, in float32."""
    longest = max(len(text.tokens) for text in texts)
    layers, _, d = texts[0].hidden.shape
    directions = torch.zeros(layers, len(texts), longest, d)
    present = torch.zeros(len(texts), longest, dtype=torch.bool)
    for k, text in enumerate(texts):
        n = len(text.tokens)
        directions[:, k, :n] = torch.from_numpy(text.hidden / text.lengths[:, :, None]).float()
        present[k, :n] = True
    return Texts(directions, present)


def errors_of(fitted_layers: Sequence[FittedLayer], texts: Texts) -> list[float]:
    """Return the error Σ|x' − law(x)|²/Σ|x' − x|² of the fitted law of each layer.

    A law is a map that approximates the layer, which moves directions of tokens from x to x'.
    """
    with torch.no_grad():
        return [float(_error(fitted, texts, k)) for k, fitted in enumerate(fitted_layers)]


def _error(fitted: FittedLayer, texts: Texts, k: int) -> Tensor:
    before, after = texts.directions[k], texts.directions[k + 1]
    error: Tensor = (fitted(before, texts.present) - after).square().sum() / (before - after).square().sum()
    return error


def _shapes(options: Options) -> dict[str, dict[str, Any]]:
    """Return the options of ``FittedLayer`` for each law to be fitted, by name, from the smallest to the largest.

    Each law has the previous one as a special case.
    """
    low = {"rank": options.rank}
    return {
        "one β, one v": {},
        "β and v by layer": {},
        f"+ Q, K, V of rank {options.rank}": low,
        "+ diffusion": low | {"diffusion": True},
        f"+ network of width {options.width}": low | {"diffusion": True, "width": options.width},
    }


def _begin_from(fitted: FittedLayer, before: FittedLayer) -> None:
    """Copy the parameters of a smaller fitted law into a larger one, so that both are the same map before its fit.

    The additional terms of the larger law begin with a factor 0.
    """
    with torch.no_grad():
        for name, parameter in fitted.named_parameters():
            old = getattr(before, name)
            if old.shape == parameter.shape and old.numel():
                parameter.copy_(old)
            elif name == "query":
                parameter.zero_()


def descend(fitted_layers: Sequence[FittedLayer], texts: Texts, options: Options) -> None:
    """Fit laws, one map of tokens for each layer, to texts: minimize the sum of their errors by Adam.

    The learning rate decreases to 0.

    Each law keeps the parameters with which its error was smallest.
    """
    distinct = list(dict.fromkeys(fitted_layers))
    parameters = [p for fitted in distinct for p in fitted.parameters() if p.requires_grad]
    scalars, matrices = ([p for p in parameters if (p.ndim > 0) == is_matrix] for is_matrix in (False, True))
    groups = [{"params": scalars, "lr": SCALAR_RATE}, {"params": matrices, "lr": options.rate}]
    optimizer = torch.optim.Adam([group for group in groups if group["params"]])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    best: list[tuple[float, dict[str, Tensor]]] = [(np.inf, {}) for _ in distinct]
    for _ in range(options.steps):
        optimizer.zero_grad()
        errors = [_error(fitted, texts, k) for k, fitted in enumerate(fitted_layers)]
        _keep_best(best, distinct, fitted_layers, errors)
        torch.stack(errors).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        _keep_best(best, distinct, fitted_layers, [_error(fitted, texts, k) for k, fitted in enumerate(fitted_layers)])
    for fitted, (_, state) in zip(distinct, best, strict=True):
        fitted.load_state_dict(state)


def _keep_best(
    best: list[tuple[float, dict[str, Tensor]]],
    distinct: Sequence[FittedLayer],
    fitted_layers: Sequence[FittedLayer],
    errors: Sequence[Tensor],
) -> None:
    for index, fitted in enumerate(distinct):
        error = sum(float(e.detach()) for other, e in zip(fitted_layers, errors, strict=True) if other is fitted)
        if error < best[index][0]:
            best[index] = error, {name: p.detach().clone() for name, p in fitted.state_dict().items()}


def _whole(texts: Sequence[HiddenStates]) -> list[float]:
    """Return the error after each layer of this package's computation of the whole model, which is rounding.

    The computation starts from the model's states before the first layer and goes through all layers. Errors are
    relative to the motion in each layer, like those of the fitted laws.
    """
    ours = [unit_vectors(hidden) for hidden in states_of_variant(texts, Variant())]
    theirs = [unit_vectors(text.hidden) for text in texts]
    square: Callable[[Floats], Floats] = lambda x: (x**2).sum(axis=(1, 2))  # noqa: E731
    wrong = sum(square((a - b)[1:]) for a, b in zip(ours, theirs, strict=True))
    moved = sum(square(np.diff(b, axis=0)) for b in theirs)
    return list(np.asarray(wrong) / np.asarray(moved))
