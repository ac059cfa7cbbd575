"""Nested laws of motion fitted to the hidden states of a model on some texts, and tested on others, layer by layer.

    error of a layer = Σ_i |x'_i − law(x)_i|² / Σ_i |x'_i − x_i|²

A law is a map of one layer, of directions x = h/|h| on the unit sphere.

    x ← N(g ∘ x + s + v A(x) + Σ_h C_h B_h A_h(x) + W σ(Ux + b)/√d) ,    N y = y/|y|

    A(x)_i = Σ_j softmax_j(β⟨x_i, x_j⟩) x_j ,    A_h(x)_i = Σ_j softmax_j(⟨Q_h x_i, K_h x_j⟩) x_j

Q_h, K_h, B_h (rank, d) and C_h (d, rank) belong to head h. With g = 1, s = 0, C = W = 0 the law is the mean-field
velocity of one β and V = vI. Each text is held out once. Among the other texts, two of three are fitted; the parameters
are those with the smallest error on the third. Descents are repeated until this error no longer decreases, for each
law, and both laws with a network start at the law of gain and shift: else one would gain by additional steps alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import normalize

from meanfield.analysis.text import table
from meanfield.case.errors import CaseError
from meanfield.figures.run_data import BLUE, VERMILION
from meanfield.running import Printer
from meanfield.transformer.families import family_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.model import HiddenStates
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

Integers = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


def summary(found: Outcome) -> str:
    """Return tables of the error of each fitted law, and of the part that only attention explains, layer by layer.

    Errors are averaged over layers, for the texts fitted to and those held out. Parts are means over held-out texts
    with 95 % intervals.
    """
    rows = [
        [law, *(f"{part.mean():.3g}" for part in errors)]
        for law, errors in zip(found["law"], found["error"], strict=True)
    ]
    parts = [
        [f"{layer}", *(f"{100 * part:.1f} ± {100 * half:.1f}" for part, half in zip(*numbers, strict=True))]
        for layer, *numbers in zip(
            found["layer"], found["attention_part"].T, found["attention_interval"].T, strict=True
        )
    ]
    heads = ["layer", *(f"attention {beside}, %" for beside in found["beside"])]
    return f"{table(['law', *found['set']], rows)}\n\n{table(heads, parts)}"


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the error of each fitted law (map of tokens by a layer), and the part that only attention explains.

    Errors of held-out texts are solid lines, those of texts fitted to are dotted. Bars are 95 % intervals over texts.
    """
    figure.set_size_inches(12.5, 4.2)
    axes = figure.subplots(1, 2, width_ratios=(1.1, 1))
    layers, laws, errors = found["layer"], found["law"], found["error"]
    shown = len(laws) - 1  # the error of the whole model is rounding
    for k, color in enumerate(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, shown))):
        axes[0].plot(layers, errors[k, 1], "o-", ms=3, color=color, label=laws[k])
        axes[0].plot(layers, errors[k, 0], ":", lw=1, color=color)
    axes[0].set(xlabel="layer", ylabel="error, relative to standing still", ylim=(0, None))
    axes[0].set_title(f"{found.title}: held-out texts (dotted: fitted texts)", fontsize=9)
    axes[0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    parts = zip(found["beside"], found["attention_part"], found["attention_interval"], (BLUE, VERMILION), strict=True)
    for beside, part, half, color in parts:
        axes[1].errorbar(layers, 100 * part, 100 * half, fmt="o-", ms=3, capsize=3, color=color, label=beside)
    axes[1].axhline(0.0, color="0.6", lw=0.8)
    axes[1].set(xlabel="layer", ylabel="% of the motion, held-out texts")
    axes[1].set_title("explained by attention only, mean and 95 % interval", fontsize=9)
    axes[1].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.set_xticks(layers)
    figure.tight_layout()


@dataclass(frozen=True)
class Terms:
    """Terms of a law: gain g, attention with Q = K = I, heads of low-rank attention, width of the network; s always."""

    gain: bool = False
    identity: bool = False
    heads: int = 0
    rank: int = 0
    width: int = 0
    causal: bool = False


class FittedLayer(nn.Module):
    """Fitted map of one layer with trainable parameters, called as ``fitted(x, present)``.

    The directions x of tokens are (texts, n, d). The mask ``present`` (texts, n) marks the tokens of each text; the
    entries of absent ones stay 0. Before a fit the map is x ← x.
    """

    def __init__(self, d: int, terms: Terms) -> None:
        super().__init__()
        self.terms, rows, small = terms, terms.heads * terms.rank, d**-0.5
        self.gain, self.shift = nn.Parameter(torch.ones(d), requires_grad=terms.gain), nn.Parameter(torch.zeros(d))
        self.beta = nn.Parameter(torch.tensor(1.0), requires_grad=terms.identity)
        self.value = nn.Parameter(torch.tensor(0.0), requires_grad=terms.identity)
        self.query, self.key, self.inward = (_draw_normal(rows, d, small) for _ in range(3))
        self.outward = nn.Parameter(torch.zeros(d, rows))
        self.inner, self.bias = _draw_normal(terms.width, d, 1.0), nn.Parameter(torch.zeros(terms.width))
        self.outer = nn.Parameter(torch.zeros(d, terms.width))

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        return normalize(self.moved(x, present), dim=-1) * present[..., None]

    def moved(self, x: Tensor, present: Tensor) -> Tensor:
        """Return the states (texts, n, d) before they are normalized."""
        moved = self.gain * x + self.shift
        mask = present[:, None, :]
        if self.terms.causal:
            mask = mask & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if self.terms.identity:
            moved = moved + self.value * (_softmax(self.beta * x @ x.mT, mask) @ x)
        if self.terms.heads:
            moved = moved + self._heads(x, mask[:, None])
        if self.terms.width:
            hidden = nn.functional.gelu(x @ self.inner.T + self.bias)
            moved = moved + x.shape[-1] ** -0.5 * hidden @ self.outer.T  # scaled for Adam: components of x are as small
        return moved

    def _heads(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the output Σ_h C_h B_h A_h(x) (texts, n, d) of the low-rank heads."""
        projected = (x @ matrix.T for matrix in (self.query, self.key, self.inward))
        by_head = (*x.shape[:2], self.terms.heads, self.terms.rank)
        query, key, inward = (part.reshape(by_head).transpose(1, 2) for part in projected)
        return (_softmax(query @ key.mT, mask) @ inward).transpose(1, 2).flatten(2) @ self.outward.T


def _softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax of logits over the keys at which ``mask`` is true."""
    return logits.masked_fill(~mask, -torch.inf).softmax(dim=-1)


def _draw_normal(rows: int, d: int, deviation: float) -> nn.Parameter:
    """Return a trainable matrix (rows, d) with Gaussian entries of mean 0 and the given standard deviation."""
    return nn.Parameter(deviation * torch.randn(rows, d))


SCALAR_RATE = 0.1  # rate of β and v, which are of order 1 to 10; matrices have elements of order 1/√d
CONVERGED = 1e-3  # decrease of the mean error by a descent, of the selecting texts, below which a fit ends
CHECK_EVERY = 5  # steps between two errors on the texts that select the parameters
SETS = ("fitted to", "held back")


@dataclass(frozen=True)
class Options:
    """Options of the fit: rank of each head, width of the network, steps of a descent, rate, texts held out at a time.

    Descents are by Adam.
    """

    rank: int = 4
    width: int = 64
    steps: int = 200
    rate: float = 1e-2
    held: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Law:
    """Law with its terms. The fit starts at the law ``smaller``, which is a special case."""

    terms: Terms = field(default_factory=Terms)
    smaller: str = ""


@dataclass(frozen=True)
class Texts:
    """Texts as padded arrays: directions (layers + 1, texts, n, d) of hidden states, mask of tokens (texts, n).

    Directions are 0 beyond the end of a text.
    """

    directions: Tensor
    present: Tensor

    @cached_property
    def motion(self) -> Tensor:
        """Return Σ|x' − x|² over the tokens of each text in each layer, (layers, texts)."""
        return self.directions.diff(dim=0).square().sum(dim=(2, 3))

    def only(self, rows: Sequence[int] | Integers) -> Texts:
        """Return the texts with the given numbers."""
        return Texts(self.directions[:, rows], self.present[rows])


def fit_laws(texts: Sequence[HiddenStates], options: Options, show: Printer) -> dict[str, Labelled]:
    """Fit laws of growing size, maps of tokens by a layer, to hidden states, and test them on held-out texts.

    Returns the arrays of :func:`meanfield.transformer.fit`. The part that attention explains is the difference of two
    errors of the same text, without attention and with both kinds of attention, averaged over the texts. The 95 %
    interval is by Student's t.
    Raises CaseError for too few texts, and for layers that are not those of the model.
    """
    count = len(texts)
    if options.held > count - 2:
        raise CaseError(f"held = {options.held}: expected at most {count - 2}, as there are {count} texts")
    of_model = _whole(texts)  # raises CaseError, before the descents, if the layers are not those of the model
    whole, family = padded_directions(texts), family_of(texts[0].name, texts[0].config)
    laws = laws_of(options, texts[0].config.num_attention_heads, family.causal)
    folds = -(-count // options.held)
    layers = len(whole.directions) - 1
    squares = {law: np.zeros((2, count, layers)) for law in laws}  # of the error and of the motion, by held-out text
    fitted_errors = {law: np.zeros(layers) for law in laws}
    numbers = np.zeros((2, folds, layers))
    for fold in range(folds):
        held, rest = np.arange(fold, count, folds), np.array([k for k in range(count) if k % folds != fold])
        selecting = whole.only(rest[2::3] if len(rest) > 2 else rest[1:])
        given = whole.only(np.delete(rest, np.s_[2::3]) if len(rest) > 2 else rest[:1])
        fitted = fit_all(laws, given, selecting, options)
        for law, of_layers in fitted.items():
            squares[law][:, held] = squares_of(of_layers, whole.only(held))
            fitted_errors[law] += _pooled(squares_of(of_layers, given)) / folds
        numbers[:, fold] = [[float(getattr(one, n).detach()) for one in fitted[IDENTITY]] for n in ("beta", "value")]
        show(f"fold {fold + 1} of {folds}: " + _line(squares, held))
    return _arrays(texts, squares, fitted_errors, numbers, of_model)


def _line(squares: dict[str, Floats], held: Integers) -> str:
    """Return the mean error of each law on the held-out texts as a line of text."""
    return ", ".join(f"{law} {_pooled(one[:, held]).mean():.3f}" for law, one in squares.items())


def laws_of(options: Options, heads: int, causal: bool = False) -> dict[str, Law]:
    """Return the laws to be fitted, by name, each after the smaller law at which its fit starts."""
    low = {"heads": heads, "rank": options.rank, "identity": True}
    sizes: dict[str, tuple[str, dict[str, Any]]] = {
        "shift": ("", {}),
        GAIN: ("shift", {"gain": True}),
        IDENTITY: (GAIN, {"gain": True, "identity": True}),
        HEADS: (IDENTITY, {"gain": True} | low),
        NETWORK: (GAIN, {"gain": True, "width": options.width}),
        BOTH: (GAIN, {"gain": True, "width": options.width} | low),
    }
    return {name: Law(Terms(**terms, causal=causal), smaller) for name, (smaller, terms) in sizes.items()}


GAIN, IDENTITY = "gain and shift", "+ attention, Q = K = I, V = vI"
HEADS, NETWORK, BOTH = "+ attention of low rank", "gain, shift, network", "+ network and attention"
PARTS = {"without a network": (GAIN, HEADS), "beside a network": (NETWORK, BOTH)}  # laws without and with attention


def fit_all(laws: dict[str, Law], given: Texts, selecting: Texts, options: Options) -> dict[str, list[FittedLayer]]:
    """Return the fitted layers of each law, by name.

    Laws are fitted to the texts ``given``; the parameters kept have the smallest error on the texts ``selecting``.
    Descents are repeated while each one decreases the mean of these errors over layers by CONVERGED or more.
    """
    layers, d = len(given.directions) - 1, given.directions.shape[-1]
    fitted: dict[str, list[FittedLayer]] = {}
    for name, law in laws.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            fitted[name] = [FittedLayer(d, law.terms) for _ in range(layers)]
        if law.smaller:
            for one, before in zip(fitted[name], fitted[law.smaller], strict=True):
                _begin_from(one, before)
        decrease, error = np.inf, _mean_error(fitted[name], selecting)
        while decrease >= CONVERGED:
            descend(fitted[name], given, selecting, options)
            previous, error = error, _mean_error(fitted[name], selecting)
            decrease = previous - error
    return fitted


def _arrays(
    texts: Sequence[HiddenStates],
    squares: dict[str, Floats],
    fitted_errors: dict[str, Floats],
    numbers: Floats,
    whole: Floats,
) -> dict[str, Labelled]:
    """Return the named arrays of a study: errors of the laws, part of the motion that only attention explains, β, v.

    squares         by law, Σ|x' − law(x)|² and Σ|x' − x|² of held-out texts (2, texts, layers), see ``squares_of``
    fitted_errors   by law, the errors (layers,) on the texts to which the law was fitted
    numbers         β and v of the identity attention (2, folds, layers)
    whole           the two sums of the model itself, see ``_whole``
    """
    from scipy.stats import t

    layers = numbers.shape[-1]
    errors = {law: one[0] / one[1] for law, one in squares.items()}
    laws, still = [STILL, *squares, WHOLE], np.ones((len(texts), layers))
    pooled = [np.ones((2, layers))]
    pooled += [np.array([fitted_errors[law], _pooled(one)]) for law, one in squares.items()]
    pooled += [np.array([_pooled(whole), _pooled(whole)])]
    parts = np.array([errors[without] - errors[beside] for without, beside in PARTS.values()])
    widths = t.ppf(0.975, len(texts) - 1) * parts.std(axis=1, ddof=1) / np.sqrt(len(texts))
    return {
        **coordinates(law=laws, set=SETS, text=[one.source for one in texts], layer=np.arange(layers) + 1),
        **coordinates(beside=list(PARTS)),
        "error": Labelled(("law", "set", "layer"), np.array(pooled), "squared error, relative to standing still"),
        "error_of_text": Labelled(
            ("law", "text", "layer"), np.array([still, *errors.values(), whole[0] / whole[1]]),
            "squared error of a held-out text, relative to standing still",
        ),
        "attention_part": Labelled(
            ("beside", "layer"), parts.mean(axis=1), "part of the motion that only attention explains"
        ),
        "attention_interval": Labelled(("beside", "layer"), widths, "half width of the 95 % interval over texts"),
        "beta": Labelled(("fold", "layer"), numbers[0], "inverse temperature of the identity attention"),
        "value": Labelled(("fold", "layer"), numbers[1], "v of the identity attention"),
    }  # fmt: skip


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


def squares_of(fitted_layers: Sequence[FittedLayer], texts: Texts) -> Floats:
    """Return Σ|x' − law(x)|² and Σ|x' − x|² over the tokens of each text, (2, texts, layers).

    A law is a map that approximates the layer, which moves directions of tokens from x to x'.
    """
    with torch.no_grad():
        found = [_squares(fitted, texts, k) for k, fitted in enumerate(fitted_layers)]
    return np.stack([torch.stack(found, dim=-1).double().numpy(), texts.motion.T.double().numpy()])


def errors_of(fitted_layers: Sequence[FittedLayer], texts: Texts) -> list[float]:
    """Return the error Σ|x' − law(x)|²/Σ|x' − x|² of the fitted law of each layer, over all texts."""
    return [float(error) for error in _pooled(squares_of(fitted_layers, texts))]


def _mean_error(fitted_layers: Sequence[FittedLayer], texts: Texts) -> float:
    """Return the mean over the layers of the errors of their fitted laws on some texts."""
    return float(np.mean(errors_of(fitted_layers, texts)))


def _pooled(squares: Floats) -> Floats:
    """Return the error (layers,) over all texts, from the squares (2, texts, layers) of each."""
    wrong, moved = squares.sum(axis=1)
    return np.asarray(wrong / moved)


def _squares(fitted: FittedLayer, texts: Texts, k: int) -> Tensor:
    """Return Σ|x' − law(x)|² (texts,) over the tokens of each text, where layer k moves directions x to x'.

    The law, ``fitted``, approximates the layer. All are unit vectors, so that the sum is 2Σ(1 − ⟨x', law(x)⟩).
    """
    after, moved = texts.directions[k + 1], fitted.moved(texts.directions[k], texts.present)
    cosines = (moved * after).sum(dim=-1) / moved.norm(dim=-1).clamp_min(1e-12)
    wrong: Tensor = 2.0 * ((1.0 - cosines) * texts.present).sum(dim=1)
    return wrong


def _error(fitted: FittedLayer, texts: Texts, k: int) -> Tensor:
    """Return the squared error of a fitted law in layer k relative to the motion of the tokens."""
    return _squares(fitted, texts, k).sum() / texts.motion[k].sum()


def _begin_from(fitted: FittedLayer, before: FittedLayer) -> None:
    """Copy the parameters of a smaller fitted law into a larger one, so that both are the same map before its fit.

    The additional terms of the larger law begin with a factor 0.
    """
    with torch.no_grad():
        for name, parameter in fitted.named_parameters():
            old = getattr(before, name)
            if old.shape == parameter.shape:
                parameter.copy_(old)


def descend(fitted_layers: Sequence[FittedLayer], given: Texts, selecting: Texts, options: Options) -> None:
    """Fit laws, one map of tokens for each layer, to texts: minimize the sum of their errors by Adam.

    The learning rate decreases to 0. Each law keeps the parameters with which its error on the texts ``selecting`` was
    smallest.
    """
    parameters = [p for fitted in fitted_layers for p in fitted.parameters() if p.requires_grad and p.numel()]
    scalars, matrices = ([p for p in parameters if (p.ndim > 0) == is_matrix] for is_matrix in (False, True))
    groups = [{"params": scalars, "lr": SCALAR_RATE}, {"params": matrices, "lr": options.rate}]
    optimizer = torch.optim.Adam([group for group in groups if group["params"]])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    best: list[tuple[float, dict[str, Tensor]]] = [(np.inf, {}) for _ in fitted_layers]
    for step in range(options.steps + 1):
        if step % CHECK_EVERY == 0 or step == options.steps:
            for k, error in enumerate(errors_of(fitted_layers, selecting)):
                if error < best[k][0]:
                    state = fitted_layers[k].state_dict()
                    best[k] = error, {name: p.detach().clone() for name, p in state.items()}
        if step < options.steps:
            optimizer.zero_grad()
            errors = [_error(fitted, given, k) for k, fitted in enumerate(fitted_layers)]
            torch.stack(errors).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    for fitted, (_, state) in zip(fitted_layers, best, strict=True):
        fitted.load_state_dict(state)


def _whole(texts: Sequence[HiddenStates]) -> Floats:
    """Return Σ|x' − y|² and Σ|x' − x|² over the tokens of each text, (2, texts, layers).

    x and x' are the model's directions of a token before and after a layer. y is the direction after the layer by this
    package, computed through all layers from the states before the first one, so that x' − y is a rounding error.
    """
    ours = [unit_vectors(hidden) for hidden in states_of_variant(texts, Variant())]
    theirs = [unit_vectors(text.hidden) for text in texts]
    square: Callable[[Floats], Floats] = lambda x: (x**2).sum(axis=(1, 2))  # noqa: E731
    wrong = [square((a - b)[1:]) for a, b in zip(ours, theirs, strict=True)]
    return np.array([wrong, [square(np.diff(b, axis=0)) for b in theirs]])
