"""Robustness of a network's answers to perturbations of its input, at equal accuracy on the unperturbed input.

    noise      x + δ, δ Gaussian with |δ| = s|x − b|, b the least value of an input: an image without ink
    left out   the fraction s of the tokens, drawn at random, is not in the sequence
    erased     the fraction s of the tokens, drawn at random, has the input b
    signs      x ± s·range, random signs: the control for the two adversarial ones
    FGSM       x + s·range·sign(∂ loss/∂x)
    PGD        STEPS such steps, each 2.5/STEPS as long and projected to the ball |δ|_∞ ≤ s·range

The range is that from the least to the largest input; signs, FGSM and PGD stay within it. Random perturbations are the
same for all networks. A network is measured after the first epoch in which its accuracy reaches TARGET (after the last
one if it never does), and after training. FGSM: Goodfellow and others (1412.6572); PGD: Madry and others (1706.06083).

The loss of accuracy is that against the unperturbed input, a mean over the sizes s. Losses of two networks are compared
seed by seed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from meanfield.analysis.text import table
from meanfield.case.errors import CaseError
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import COLORS, curve, label_of
from meanfield.transformer.experiments.statistics import describe, describe_difference, mean_and_half_width
from meanfield.transformer.experiments.subjects import KINDS, NO_ATTENTION, case_of, networks_of, one_thread
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.data import Examples, task_of
from meanfield.transformer.networks.network import TokenNetwork
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import Fit, begin, loss_of, train
from solvers.mesh.mesh import Floats

TARGET = 0.85  # accuracy at which networks are compared
EXAMPLES = 256
STEPS = 10  # of PGD
STOPS = ("equal accuracy", "end of training")
WITHOUT = {", no layer norm": "network.layer_norm=none", ", no residual": "network.residual=false"}
STYLES = {"": "-", NO_ATTENTION: "--", ", no layer norm": ":", ", no residual": "-."}
Logits = Callable[[Tensor], Tensor]
Range = tuple[float, float]


def robustness(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE) -> Outcome:
    """Train networks with and without their parts, and return their accuracy on perturbed test examples.

    The array is (network, stop, seed, perturbation, level): a stop is the first epoch of a given accuracy, or the last;
    the levels are sizes of the perturbation, the first of which is 0. Raises CaseError for data that are no images.
    """
    if not task_of(case).shape.features:
        raise CaseError(f'data.kind = "{case.data.kind}": expected images, whose values can be perturbed')
    networks = variants_of(case)
    cases = [one.replace([f"training.seed={seed}"]) for one in networks.values() for seed in seeds]
    names = [(name, seed) for name in networks for seed in seeds]
    found, epochs = [], []
    for (name, seed), (accuracy, epoch) in zip(names, workers.map(train_and_perturb, cases), strict=True):
        found.append(accuracy)
        epochs.append(epoch)
        clean = " and ".join(f"{one[0, 0]:.3f}" for one in accuracy)
        show(f"{len(found)} of {len(cases)}: {name}, seed {seed}: accuracy {clean}")
    shape = len(networks), len(seeds)
    values = np.swapaxes(np.reshape(found, (*shape, *np.shape(found)[1:])), 1, 2)
    sizes = np.array([(0.0, *sizes) for _, sizes in PERTURBATIONS.values()])
    dims = ("network", "stop", "seed", "perturbation", "level")
    arrays = {
        **coordinates(network=list(networks), stop=STOPS, seed=seeds, perturbation=list(PERTURBATIONS)),
        "size": Labelled(("perturbation", "level"), sizes, "size of the perturbation"),
        "accuracy": Labelled(dims, values, "fraction of correct answers on perturbed test examples"),
        "epoch": Labelled(("network", "seed"), np.reshape(epochs, shape), f"first epoch of accuracy {TARGET}; 0: none"),
    }
    return Outcome(arrays, summary, draw)


def variants_of(case: TrainingCase) -> dict[str, TrainingCase]:
    """Return the training cases of all networks by name: both kinds, and each without one of its parts."""
    without = {
        f"{kind}{words}": case_of(case.replace([option]), kind, case.training.seed)
        for words, option in WITHOUT.items()
        for kind in KINDS
    }
    return networks_of(case) | without


@one_thread()
def train_and_perturb(case: TrainingCase) -> tuple[Floats, int]:
    """Train one network, and return its accuracies (stop, perturbation, level) and the first epoch of accuracy TARGET.

    The epoch is 0 if the accuracy is never reached.
    """
    reached: list[tuple[int, TokenNetwork]] = []

    def after_epoch(fit: Fit) -> None:
        if not reached and fit.history.test_accuracy[-1] >= TARGET:
            reached.append((fit.epochs, copy.deepcopy(fit.network)))

    fit = train(begin(case, task_of(case)), after_epoch=after_epoch)
    test = fit.task.test
    examples = Examples(test.inputs[:EXAMPLES].double(), test.labels[:EXAMPLES])
    within = range_of(torch.cat([test.inputs, fit.task.train.inputs]))
    last = accuracies(fit.network, examples, within)
    if not reached:
        return np.array([last, last]), 0
    [(epoch, network)] = reached
    return np.array([accuracies(network, examples, within), last]), epoch


def range_of(inputs: Tensor) -> Range:
    """Return the least and the largest value of inputs."""
    return float(inputs.min()), float(inputs.max())


def accuracies(network: TokenNetwork, examples: Examples, within: Range) -> Floats:
    """Return the accuracies (perturbation, level) of a network on perturbed examples, at level 0 on unperturbed ones.

    ``within`` is the range of the inputs, which are in float64.
    """
    wide = copy.deepcopy(network).double().requires_grad_(False)
    clean = _accuracy(wide(examples.inputs), examples.labels)
    return np.array(
        [
            [clean, *(_accuracy(perturbed(wide, examples, within, size), examples.labels) for size in sizes)]
            for perturbed, sizes in PERTURBATIONS.values()
        ]
    )


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    """Return the fraction of examples whose largest logit is that of the label."""
    return float((logits.argmax(dim=-1) == labels).double().mean())


def add_noise(inputs: Tensor, size: float, blank: float) -> Tensor:
    """Return inputs (examples, n, features) plus Gaussian noise of the norm ``size`` |x − blank| in each example x."""
    noise = torch.randn(inputs.shape, dtype=inputs.dtype, generator=torch.Generator().manual_seed(0))
    norms = [torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) for x in (inputs - blank, noise)]
    moved: Tensor = inputs + size * norms[0] / norms[1] * noise
    return moved


def kept_tokens(inputs: Tensor, size: float) -> Tensor:
    """Return increasing indices (examples, kept) of the tokens that remain if a random fraction ``size`` is removed."""
    count, n = inputs.shape[:2]
    order = torch.rand(count, n, generator=torch.Generator().manual_seed(1)).argsort(dim=1)
    return order[:, : n - round(size * n)].sort(dim=1).values


def leave_out(network: TokenNetwork, inputs: Tensor, size: float) -> Tensor:
    """Return the logits of a network without the fraction ``size`` of the tokens, drawn at random.

    The remaining tokens keep their learned or sinusoidal positions. Rotary positions, diffusion and sparse patterns
    count the remaining tokens only.
    """
    states = network.embed(inputs)
    kept = kept_tokens(inputs, size)[..., None].expand(-1, -1, states.shape[-1])
    return network.read(network.pass_layers(states.gather(1, kept)))


def erase(inputs: Tensor, size: float, blank: float) -> Tensor:
    """Return inputs (examples, n, features) with the value ``blank`` in a random fraction ``size`` of the tokens."""
    kept = kept_tokens(inputs, size)[..., None].expand(-1, -1, inputs.shape[-1])
    return torch.full_like(inputs, blank).scatter(1, kept, inputs.gather(1, kept))


def add_signs(inputs: Tensor, radius: float, within: Range) -> Tensor:
    """Return inputs plus or minus ``radius`` with random signs, clipped to a range."""
    signs = torch.randn(inputs.shape, dtype=inputs.dtype, generator=torch.Generator().manual_seed(2)).sign()
    return (inputs + radius * signs).clamp(*within)


def ascend(logits: Logits, examples: Examples, radius: float, within: Range, steps: int, step: float) -> Tensor:
    """Return inputs after steps along the sign of the gradient of the loss, each projected to a ball and a range.

    The ball is |δ|_∞ ≤ ``radius`` around the given inputs. FGSM is one step of the length ``radius``.
    """
    moved = examples.inputs
    for _ in range(steps):
        moved = moved.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(loss_of(logits(moved), examples.labels), moved)
        moved = moved.detach() + step * gradient.sign()
        moved = moved.clamp(examples.inputs - radius, examples.inputs + radius).clamp(*within)
    return moved


def _fgsm(network: TokenNetwork, examples: Examples, within: Range, size: float) -> Tensor:
    """Return the logits after one step of the fast gradient sign method, of a size relative to the range."""
    radius = size * (within[1] - within[0])
    return network(ascend(network, examples, radius, within, 1, radius))  # type: ignore[no-any-return]


def _pgd(network: TokenNetwork, examples: Examples, within: Range, size: float) -> Tensor:
    """Return the logits after projected gradient ascent of the loss, of a size relative to the range."""
    radius = size * (within[1] - within[0])
    return network(ascend(network, examples, radius, within, STEPS, 2.5 * radius / STEPS))  # type: ignore[no-any-return]


FRACTIONS, RADII = (0.125, 0.25, 0.5), (0.02, 0.05, 0.1)
PERTURBATIONS: dict[str, tuple[Callable[[TokenNetwork, Examples, Range, float], Tensor], tuple[float, ...]]] = {
    "noise": (lambda network, given, within, s: network(add_noise(given.inputs, s, within[0])), (0.25, 0.5, 1.0)),
    "left out": (lambda network, given, within, s: leave_out(network, given.inputs, s), FRACTIONS),
    "erased": (lambda network, given, within, s: network(erase(given.inputs, s, within[0])), FRACTIONS),
    "signs": (
        lambda network, given, within, s: network(add_signs(given.inputs, s * (within[1] - within[0]), within)),
        RADII,
    ),
    "FGSM": (_fgsm, RADII),
    "PGD": (_pgd, RADII),
}


def losses_of(found: Outcome) -> Floats:
    """Return the losses of accuracy by perturbations, in per cent, as means over sizes of the perturbation.

    The array is (network, stop, seed, perturbation). A loss is the accuracy at size 0 minus that at another size.
    """
    accuracy = found["accuracy"]
    return np.asarray(100 * (accuracy[..., :1] - accuracy[..., 1:]).mean(axis=-1))


def comparisons_of(names: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of networks that are compared.

    A PDE network is compared with the Transformer of the same variant, and each variant with the full network.
    """
    pde, transformer = KINDS[1], KINDS[0]
    alike = [(name, name.replace(pde, transformer, 1)) for name in names if name.startswith(pde)]
    return alike + [(name, kind) for kind in KINDS for name in names if name.startswith(f"{kind},")]


def summary(found: Outcome) -> str:
    """Return tables of the losses of accuracy by perturbation, and of their differences between networks."""
    names, losses = [str(name) for name in found["network"]], losses_of(found)
    perturbations = [str(one) for one in found["perturbation"]]
    parts = []
    for s, stop in enumerate(STOPS):
        rows = [
            [name, describe(100 * found["accuracy"][i, s, :, 0, 0]), *(describe(x) for x in losses[i, s].T)]
            for i, name in enumerate(names)
        ]
        parts += [f"Loss of accuracy in %, {stop}:", table(["network", "accuracy", *perturbations], rows)]
        pairs = [
            [f"{one} − {other}", *(describe_difference(x, y) for x, y in zip(
                losses[names.index(one), s].T, losses[names.index(other), s].T, strict=True))]
            for one, other in comparisons_of(names)
        ]  # fmt: skip
        parts += ["", table(["difference paired by seed", *perturbations], pairs), ""]
    reached = ", ".join(f"{name} {(found['epoch'][i] > 0).sum()}" for i, name in enumerate(names))
    return "\n".join([*parts, f"Networks that reach the accuracy {TARGET:g}, of {len(found['seed'])}: {reached}."])


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the accuracy by size of each perturbation, and the difference between PDE network and Transformer."""
    figure.set_size_inches(14.0, 7.0)
    axes = figure.subplots(2, 4)
    names, perturbations = [str(name) for name in found["network"]], list(found["perturbation"])
    for ax, perturbation, sizes, values in zip(
        axes[:, :3].flat, perturbations, found["size"], np.moveaxis(found["accuracy"][:, 0], -2, 0), strict=True
    ):
        for name, accuracy in zip(names, values, strict=True):
            kind = name.partition(",")[0]
            curve(ax, sizes, accuracy, color=COLORS[kind], ls=STYLES[name[len(kind) :]], label=label_of(name))
        ax.set(xlabel="size", ylim=(0, 1), title=f"{perturbation}, {STOPS[0]}")
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy")
    axes[0, 0].legend(fontsize=7, frameon=False, loc="lower left")
    losses, places = losses_of(found), np.arange(len(perturbations))
    for s, (ax, stop) in enumerate(zip(axes[:, 3], STOPS, strict=True)):
        pairs = [(one, other) for one, other in comparisons_of(names) if one.startswith(KINDS[1]) and other != KINDS[1]]
        for k, (one, other) in enumerate(pairs):
            mean, half_width = mean_and_half_width(losses[names.index(one), s] - losses[names.index(other), s], axis=0)
            words = one[len(KINDS[1]) + 2 :] or "all parts"
            ax.errorbar(places + 0.12 * (k - 1.5), mean, half_width, fmt="o", ms=3, lw=1, label=words)
        ax.axhline(0.0, color="0.5", ls=":", lw=1)
        ax.set_xticks(places, perturbations, rotation=40, ha="right")
        ax.set(ylabel="difference of losses of accuracy, %", title=f"PDE network − Transformer, {stop}")
        ax.title.set_fontsize(9)
    axes[0, 3].legend(fontsize=7, frameon=False)
    figure.tight_layout()
