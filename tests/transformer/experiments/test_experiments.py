"""Experiments on networks: each measure against its definition or an exact answer, and the command."""

import copy
import os
import pickle
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
import xarray

torch = pytest.importorskip("torch")

from support.pictures import description  # noqa: E402

from docs.figures import DOCS  # noqa: E402
from meanfield.case.errors import CaseError  # noqa: E402
from meanfield.cli.parser import main  # noqa: E402
from meanfield.figures.saving import texts  # noqa: E402
from meanfield.model.linear_stability import growth_rates  # noqa: E402
from meanfield.transformer.experiments.attention_maps import (  # noqa: E402
    compare_maps,
    maps_of,
    matched_heads,
    shuffled,
    uniform,
    with_logits,
)
from meanfield.transformer.experiments.bottleneck import (  # noqa: E402
    information_of_input,
    information_of_labels,
)
from meanfield.transformer.experiments.depth_limit import measure_refined, pass_refined  # noqa: E402
from meanfield.transformer.experiments.gradient_flow import state_gradients  # noqa: E402
from meanfield.transformer.experiments.information_flow import similarity  # noqa: E402
from meanfield.transformer.experiments.robustness import (  # noqa: E402
    PERTURBATIONS,
    accuracies,
    add_noise,
    add_signs,
    ascend,
    erase,
    kept_tokens,
    leave_out,
    losses_of,
    range_of,
    robustness,
)
from meanfield.transformer.experiments.scaling import measure_softmax  # noqa: E402
from meanfield.transformer.experiments.sensitivity import (  # noqa: E402
    BETA,
    MODES,
    gains_of,
    leading_direction,
    uniform_exponents,
)
from meanfield.transformer.experiments.stabilizers import (  # noqa: E402
    PLACES,
    distance_of,
    largest_stable_rates,
    profiles,
    separation_of,
    stabilizers,
    train_and_measure,
)
from meanfield.transformer.experiments.statistics import (  # noqa: E402
    describe,
    describe_difference,
    describe_ratio,
    mean_and_half_width,
)
from meanfield.transformer.experiments.subjects import networks_of, train_subjects  # noqa: E402
from meanfield.transformer.experiments.untrained import untrained  # noqa: E402
from meanfield.transformer.experiments.verdicts import draw, summary  # noqa: E402
from meanfield.transformer.experiments.workers import Workers  # noqa: E402
from meanfield.transformer.labelled import Labelled, Outcome, coordinates, write_labelled  # noqa: E402
from meanfield.transformer.networks.data import Examples, task_of  # noqa: E402
from meanfield.transformer.networks.network import TokenNetwork, Trace  # noqa: E402
from meanfield.transformer.networks.section import TrainingCase  # noqa: E402
from meanfield.transformer.networks.training import begin, loss_and_accuracy, loss_of  # noqa: E402
from meanfield.transformer.stored import draw_stored, load_outcome  # noqa: E402
from solvers.io.repair import FileError  # noqa: E402

SMALL = [
    "network.dimension=8", "network.heads=2", "network.layers=2", "network.width=8", "data.kind=stripes",
    "data.tokens=rows", "data.most=200", "training.epochs=1",
]  # fmt: skip
KINDS = ("transformer", "pde")


def network_of(kind, *overrides) -> tuple[TokenNetwork, object]:
    case = TrainingCase().replace([*SMALL, f"network.kind={kind}", "training.precision=float64", *overrides])
    fit = begin(case, task_of(case))
    return fit.network, fit.task


@pytest.mark.sampled
@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_information_of_gaussians(d, noise):
    """I = (d/2) log(1 + 1/σ²) lies between the bounds up to sampling error, and within 5 % of their mean."""
    m, seeds = 1500, range(4)
    exact = d / 2 * np.log(1 + 1 / noise**2)
    bounds = [information_of_input(np.random.default_rng(k).standard_normal((m, d)), noise, k + 100) for k in seeds]
    lower, upper = np.mean(bounds, axis=0)
    spread = 3 * np.sqrt(d / (1 + noise**2) / m / len(seeds))  # of the mean of log p(t|x)/p(t), which has variance d ρ²
    assert lower - spread < exact < upper + spread
    assert (lower + upper) / 2 == pytest.approx(exact, rel=0.05)
    assert lower <= np.log(m)


def test_lower_bound_is_at_most_the_log_of_the_examples():
    lower, upper = information_of_input(1e3 * np.random.default_rng(0).standard_normal((50, 3)), 1e-3)
    assert lower == pytest.approx(np.log(50), rel=1e-12)
    assert upper > 1e6


def test_information_of_labels():
    random = np.random.default_rng(0)
    labels = np.arange(600) % 3
    far, mixed = np.eye(3)[labels] * 100, random.standard_normal((600, 3))
    assert information_of_labels(far, labels, 1.0) == pytest.approx(np.log(3), abs=2e-3)
    # The exact value is 0; the estimate is a lower bound.
    assert -0.1 < information_of_labels(mixed, labels, 1.0) < 0.02
    near = np.where(labels > 0, 1.0, -1.0)[:, None] + np.zeros((600, 1))  # two of three classes are equal
    grid = np.linspace(-9, 9, 4001)
    law = np.array([np.exp(-((grid - c) ** 2) / 2) / np.sqrt(2 * np.pi) for c in (-1.0, 1.0)])
    mixture = law[0] / 3 + 2 * law[1] / 3
    exact = np.trapezoid(law[0] / 3 * np.log(law[0] / mixture) + 2 * law[1] / 3 * np.log(law[1] / mixture), grid)
    assert information_of_labels(near, labels, 1.0) == pytest.approx(exact, abs=0.06)


def test_similarity_of_layers():
    random = np.random.default_rng(0)
    x = random.standard_normal((5, 4, 3))
    turned = 2.5 * x @ np.linalg.qr(random.standard_normal((3, 3)))[0] + 7.0
    other = random.standard_normal((5, 4, 3))
    found = similarity(np.stack([x, turned, other]))
    np.testing.assert_allclose(found[:2, :2], 1.0, rtol=1e-12)
    a, b = (rows.reshape(20, 3) - rows.reshape(20, 3).mean(axis=0) for rows in (x, other))
    gram = [rows @ rows.T for rows in (a, b)]
    assert found[0, 2] == pytest.approx(np.vdot(*gram) / np.linalg.norm(gram[0]) / np.linalg.norm(gram[1]), rel=1e-12)


def causal_map(random, n=5):
    p = np.tril(random.random((n, n)) + 0.1)
    return p / p.sum(axis=1, keepdims=True)


def test_maps_compared_by_sums():
    random = np.random.default_rng(0)
    p, q = causal_map(random), causal_map(random)
    cosine, divergence = compare_maps(p, q)
    assert cosine == pytest.approx(sum((p * q).flat) / np.sqrt(sum((p * p).flat) * sum((q * q).flat)), rel=1e-13)
    entries = [p[i, j] * np.log(p[i, j] / q[i, j]) for i in range(5) for j in range(i + 1)]
    assert divergence == pytest.approx(sum(entries) / 5, rel=1e-13)
    np.testing.assert_allclose(compare_maps(p, p), [1, 0], atol=1e-15)


def test_controls_keep_what_may_be_attended():
    p = causal_map(np.random.default_rng(1), 40)
    mixed = shuffled(p)
    np.testing.assert_array_equal(np.sort(mixed, axis=1), np.sort(p, axis=1))
    np.testing.assert_array_equal(mixed > 0, p > 0)
    assert np.any(mixed != p)
    np.testing.assert_allclose(uniform(p)[9, :10], 0.1, rtol=1e-15)


def test_intervals_are_those_of_student():
    """The interval is that of scipy.stats. It contains the true mean in 95 % of 4000 draws, up to three errors."""
    from scipy import stats

    values = np.random.default_rng(0).standard_normal((4000, 5))
    mean, half_width = mean_and_half_width(values)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(axis=1), scale=stats.sem(values, axis=1))
    np.testing.assert_allclose([mean - half_width, mean + half_width], [low, high], rtol=1e-12, atol=1e-12)
    assert np.mean(np.abs(mean) < half_width) == pytest.approx(0.95, abs=3 * np.sqrt(0.05 * 0.95 / 4000))
    assert np.isnan(mean_and_half_width([1.0])[1])


def test_texts_of_intervals():
    assert describe([1.0, 2.0, 3.0]) == "2.0 ± 2.5"  # t = 4.303 of two degrees of freedom, s = 1
    assert describe([0.25]) == describe([0.25, 0.25]) == "0.25"
    assert describe_difference([3.0, 4.0, 5.0], [2.0, 2.0, 2.0]) == "2.0 ± 2.5"
    assert describe_difference([3.0, 4.0, 5.0], [2.0, 3.0, 4.0]) == "1"  # the spread of seeds cancels
    assert describe_ratio([0.1, 1.0, 10.0]) == "1 [0.00328, 305]"


def test_heads_in_another_order_are_matched():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(6), (2, 5, 3, 6))
    mixed = np.stack([p[0][:, [2, 0, 1]], p[1][:, [1, 0, 2]]])
    np.testing.assert_array_equal(matched_heads(p, mixed), p)


def test_networks_without_attention():
    """Networks without attention do not mix tokens before the head; a case without attention has no such control."""
    case = TrainingCase().replace(SMALL)
    cases = networks_of(case.replace(["network.pattern.local=1"]))
    assert list(cases) == ["transformer", "pde", "transformer, no attention", "pde, no attention"]
    for name in list(cases)[2:]:
        network = begin(cases[name], task_of(case)).network
        states = network.embed(task_of(case).test.inputs[:2])
        changed = states.clone()
        changed[:, 0] += 1.0
        with torch.no_grad():
            np.testing.assert_array_equal(network.pass_layers(changed)[:, 1:], network.pass_layers(states)[:, 1:])
    assert list(networks_of(case.replace(["network.attention=false"]))) == ["transformer", "pde"]
    assert list(networks_of(case.replace(["network.feed_forward=false"]))) == ["transformer", "pde"]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_zero_are_uniform_maps(kind):
    network, task = network_of(kind)
    np.testing.assert_allclose(maps_of(with_logits(network, 0.0), task.test.inputs[:3]), 1 / 8, rtol=1e-12)
    assert np.ptp(maps_of(network, task.test.inputs[:3])) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_states_are_differences_of_the_loss(kind):
    """The relative gradient of each example is |g| |u|, with g by differences of the loss of that example."""
    network, task = network_of(kind)
    inputs, labels = task.test.inputs[:2], task.test.labels[:2]
    trace = Trace([], [])
    network(inputs, trace)
    for example in range(2):
        last = trace.states[-1][example : example + 1].detach()
        gradient = np.empty(last.shape)
        for place in np.ndindex(last.shape):
            step = torch.zeros_like(last)
            step[place] = 1e-6
            with torch.no_grad():
                ends = [float(loss_of(network.read(last + h * step), labels[example : example + 1])) for h in (1, -1)]
            gradient[place] = (ends[0] - ends[1]) / 2e-6
        exact = np.linalg.norm(gradient) * float(last.norm())
        assert state_gradients(network, inputs, labels)[example, -1] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_relative_gradients_do_not_depend_on_the_unit_of_states(kind):
    """States in other units, u → 10u with the inverse in the readers, have the same relative gradients and gains."""
    network, task = network_of(kind, "network.layer_norm=none", "network.attention=false", "network.activation=relu")
    inputs, labels = task.test.inputs[:3], task.test.labels[:3]
    scaled = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in (*scaled.embedding.parameters(), scaled.positions):
            parameter.mul_(10)
        for name, parameter in scaled.body.named_parameters():
            if "bias" in name:
                parameter.mul_(10)  # layers u + Wσ(Uu + b) + c of homogeneous σ
        scaled.head.weight.div_(10)
    expected = [f(network) for f in (lambda n: state_gradients(n, inputs, labels), lambda n: gains_of(n, inputs))]
    np.testing.assert_allclose(state_gradients(scaled, inputs, labels), expected[0], rtol=1e-10)
    np.testing.assert_allclose(gains_of(scaled, inputs)[:, 1:4], expected[1][:, 1:4], rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_adversarial_gain_is_the_largest_singular_value(kind):
    network, task = network_of(kind, "network.layer_norm=none")
    states = network.embed(task.test.inputs[:2]).detach()
    start = torch.ones_like(states) / np.sqrt(states[0].numel())
    _, gains = leading_direction(network.pass_layers, states, start, lambda u, v: v)
    for one, gain in zip(states, gains, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda u: network.pass_layers(u[None])[0], one)
        size = one.numel()
        assert float(gain) == pytest.approx(float(torch.linalg.matrix_norm(jacobian.reshape(size, size), 2)), rel=0.01)


def test_exponents_of_the_uniform_density_are_those_of_linear_theory():
    np.testing.assert_allclose(uniform_exponents(BETA), growth_rates(2, BETA, MODES), rtol=0.02)


def test_untrained_ablations_are_those_of_the_exact_rates():
    """Growth rates agree with the exact rates up to the square of the mode's amplitude, 1e-5, and the error of the
    mesh.

    The mesh error is (2π·2/256)²/6 = 4e-4 of a rate on the circle. On the line the error is h²/12 of the variance with
    h = 0.025 at the center, which three layers without the residual multiply by 27.
    """
    growth = untrained(TrainingCase(), (0,), lambda text: None).arrays["growth"].values
    exact = growth[:, 3]
    np.testing.assert_allclose(growth[:, 1], exact, rtol=1e-8)
    np.testing.assert_allclose(growth[:4, 2], growth[:4, 1], rtol=1e-7)  # the step τ is stored in float32
    np.testing.assert_allclose(growth[[0, 1, 4], 0], exact[[0, 1, 4]], rtol=1e-3)
    np.testing.assert_allclose(growth[5, 0], exact[5], rtol=27 * 0.025**2 / 12)
    assert np.all(np.isnan(growth[2:4, 0]))  # densities in the plane have no layers
    assert np.all(np.isnan(growth[4:, 2]))  # a field has no masses
    assert exact[1, -1] > 5 * exact[0, -1]
    assert np.all(exact[[2, 4], -1] > 0.25)  # lengths grow
    assert np.all(exact[[3, 5], -1] < -0.5)  # lengths decay without the residual


def test_entropy_of_scaled_logits_is_that_of_many_normal_ones():
    """The entropy tends to log n − ½ for n → ∞; without the scale a few keys have all the weight beyond d = 2 log n."""
    entropy, _ = measure_softmax(1024, True, seed=0, keys=4096)
    assert entropy == pytest.approx(np.log(4096) - 0.5, abs=0.02)  # corrections are of order (e − 1)/n and 1/d
    lost, gradient = measure_softmax(1024, False, seed=0, keys=4096)
    assert lost < 0.3
    assert gradient < 0.2


def test_gradient_of_the_softmax_is_the_norm_of_its_jacobian():
    random = np.random.default_rng([0, 4])
    logits = random.standard_normal((256, 4)) @ random.standard_normal((6, 4)).T / 2
    norms = [
        float(torch.autograd.functional.jacobian(lambda z: z.softmax(0), torch.from_numpy(row)).norm())
        for row in logits
    ]
    assert measure_softmax(4, True, seed=0, keys=6)[1] == pytest.approx(np.mean(norms), rel=1e-12)


def test_refined_layers_of_a_linear_map():
    """Layers u ← (1 + a)u in k steps are (1 + a/k)^k; the differences are of first order, with the limit e^a."""
    a, states = 0.5, torch.ones(1, 2, 3, dtype=torch.float64)
    layers = [lambda u: ((1 + a) * u, None)] * 2
    for k in (1, 2, 16):
        np.testing.assert_allclose(pass_refined(layers, states, k), (1 + a / k) ** (2 * k), rtol=1e-14)
    ends = [float(pass_refined(layers, states, k)[0, 0, 0]) for k in (256, 512)]
    assert (np.exp(2 * a) - ends[0]) / (np.exp(2 * a) - ends[1]) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_of_refined_layers_is_the_network(kind):
    network, task = network_of(kind)
    with torch.no_grad():
        states = network.embed(task.test.inputs)
        np.testing.assert_allclose(
            pass_refined(network.body.layers, states, 1), network.pass_layers(states), atol=1e-14
        )
    found = measure_refined(network, task.test)
    assert found[0, 0] == loss_and_accuracy(network, task.test)[1]
    orders = np.log2(found[:-1, 1] / found[1:, 1])
    assert orders[-1] == pytest.approx(1.0, abs=0.1), orders


def linear_examples() -> tuple[torch.nn.Module, Examples]:
    """Return a linear network of two classes, and 200 examples of 4 tokens and 3 features with values up to 1."""
    random = torch.Generator().manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)).double()
    inputs = 2 * torch.rand(200, 4, 3, generator=random, dtype=torch.float64) - 1
    return network, Examples(inputs, torch.randint(2, (200,), generator=random))


@pytest.mark.parametrize(("steps", "step"), [(1, 0.1), (10, 0.025)])
def test_adversarial_margins_of_a_linear_network(steps, step):
    """The margin of a linear network in the ball |δ|_∞ ≤ ε decreases by ε|w₁ − w₀|₁ at most, and both attacks find it.

    PGD with steps of 0.025 reaches the boundary of the ball after four of ten steps, and stays in the ball.
    """
    network, examples = linear_examples()
    moved = ascend(network, examples, 0.1, (-9.0, 9.0), steps, step)
    sign = 2.0 * examples.labels - 1
    before, after = (sign * (z[:, 1] - z[:, 0]) for z in (network(examples.inputs), network(moved)))
    weight = network[1].weight.detach()
    np.testing.assert_allclose((before - after).detach(), 0.1 * float((weight[1] - weight[0]).abs().sum()), rtol=1e-9)
    assert float((moved - examples.inputs).abs().max()) <= 0.1 * (1 + 1e-12)


def test_adversarial_inputs_stay_in_the_ball_and_in_the_range():
    network, examples = linear_examples()
    for radius in (0.0, 0.3, 5.0):
        for moved in (
            ascend(network, examples, radius, (-1.0, 1.0), 7, radius),
            add_signs(examples.inputs, radius, (-1, 1)),
        ):
            assert float(moved.abs().max()) <= 1.0
            assert float((moved - examples.inputs).abs().max()) <= radius * (1 + 1e-12)


def test_erased_and_left_out_tokens_are_counted():
    network, task = network_of("transformer")
    inputs = task.test.inputs[:6]
    erased = erase(inputs, 0.25, -7.0) == -7.0
    np.testing.assert_array_equal(erased.all(dim=2), erased.any(dim=2))
    np.testing.assert_array_equal(erased.all(dim=2).sum(dim=1), 2)  # of eight tokens
    kept = kept_tokens(inputs, 0.25)
    assert kept.shape == (6, 6)
    assert torch.all(kept.diff(dim=1) > 0)
    alone = torch.stack([network.embed(inputs)[k, kept[k]] for k in range(6)])
    with torch.no_grad():
        np.testing.assert_array_equal(leave_out(network, inputs, 0.25), network.read(network.pass_layers(alone)))
        np.testing.assert_allclose(leave_out(network, inputs, 0.0), network(inputs), rtol=1e-12)


def test_noise_has_the_given_norm():
    _, examples = linear_examples()
    change = add_noise(examples.inputs, 0.5, -1.0) - examples.inputs
    norms = [torch.linalg.vector_norm(x, dim=(1, 2)) for x in (change, examples.inputs + 1)]
    np.testing.assert_allclose(norms[0], 0.5 * norms[1], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_perturbations_of_size_zero_change_no_answer(kind, monkeypatch):
    network, task = network_of(kind)
    for name, (perturbed, _) in PERTURBATIONS.items():
        monkeypatch.setitem(PERTURBATIONS, name, (perturbed, (0.0, 0.5)))
    found = accuracies(network, task.test, range_of(task.test.inputs))
    np.testing.assert_array_equal(found[:, :2], loss_and_accuracy(network, task.test)[1])
    assert np.all(found[-2:, 2] <= found[-2:, 1])  # the loss rises along its gradient


class PoolHere:
    """Pool that works in this process: its functions, items and results are pickled, as between processes."""

    def __init__(self, jobs, context):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        pass

    def map(self, function, items):
        work = pickle.loads(pickle.dumps((function, list(items))))
        return [pickle.loads(pickle.dumps(work[0](item))) for item in work[1]]


def test_robustness_in_processes_is_that_in_one(monkeypatch):
    """The processes themselves are those of the stabilizers, in the next test."""
    monkeypatch.setattr("meanfield.transformer.experiments.workers.ProcessPoolExecutor", PoolHere)
    case = TrainingCase().replace(SMALL)
    one, two = (robustness(case, (0, 1), lambda text: None, Workers(jobs)) for jobs in (1, 2))
    assert one.summary == two.summary
    np.testing.assert_array_equal(one["accuracy"], two["accuracy"])
    assert one["accuracy"].shape == (8, 2, 2, 6, 4)
    mean = one["accuracy"][1, 0, 0, 2]
    assert losses_of(one)[1, 0, 0, 2] == pytest.approx(100 * (mean[0] - mean[1:].mean()), abs=1e-12)


def test_stabilizers_in_processes_are_those_in_one():
    case = TrainingCase().replace(SMALL)
    given = {"vary": ["network.layers=1,2", "training.rate=0.01,1000"]}
    one, two = (stabilizers(case, (0,), lambda text: None, Workers(jobs), **given) for jobs in (1, 2))
    assert one.summary == two.summary
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array.values, two.arrays[name].values)
    explosion = one.arrays["explosion"].values
    assert np.all(explosion[..., 0, 0] == 1)
    assert np.any(explosion[..., 1, 0] < 1)  # the rate is 1000


def test_an_explosion_in_the_last_step_is_one():
    """A training of one step, which explodes, has completed no step."""
    found = train_and_measure(TrainingCase().replace([*SMALL, "training.batch=1000", "training.explosion=1e-6"]))
    assert found["explosion"] == 0


def test_depths_of_a_grid_are_sorted():
    """Verdicts and figure read the largest depth at the end of its axis."""
    case = TrainingCase().replace([*SMALL, "training.explosion=1e-6"])
    vary = ["network.layers=10,2", "network.residual=true", "network.layer_norm=pre", "training.rate=0.01"]
    found = stabilizers(case, (0,), lambda text: None, vary=vary)
    assert found["layers"].tolist() == [2, 10]


def test_a_grid_has_an_axis_for_each_key(tmp_path):
    case = TrainingCase().replace(SMALL)
    vary = ["network.layer_norm=none,peri", "network.residual=true", "network.layers=1", "training.rate=0.01",
            "network.dropout=0,0.5"]  # fmt: skip
    found = stabilizers(case, (0, 1), lambda text: None, vary=vary)
    axes = ("network", "residual", "layer_norm", "dropout", "layers", "rate", "seed")
    assert found.arrays["accuracy"].dims == axes
    assert found["accuracy"].shape == (2, 1, 2, 2, 1, 1, 2)
    assert found.arrays["distance"].dims == (*axes, "state", "place")
    assert found["dropout"].tolist() == [0, 0.5]
    untrained_states = found["distance"][..., 0, :]
    np.testing.assert_array_equal(untrained_states[:, :, :, 0], untrained_states[:, :, :, 1])  # dropout is off
    assert "explosion without layer norm: size, none − peri, 1 layers, trained" in found.summary
    assert "drift" not in found.summary
    path = replace(found, attributes={"experiment": "stabilizers"}).save(tmp_path / "found.h5")
    stored = load_outcome(path)
    assert stored.summary == found.summary
    assert texts(stored.plot()) == texts(found.plot())


def test_a_stored_outcome_has_its_values_in_its_file_and_no_more_than_fit_there(tmp_path):
    path = tmp_path / "scaling.h5"
    shutil.copy(DOCS / "experiments" / "scaling.h5", path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("mine", 3, float, external=[(tmp_path / "secret", 0, 24)])
    assert "mine" not in load_outcome(path).arrays
    with h5py.File(path, "r+") as file:
        shape = file["entropy"].shape
        del file["entropy"]
        file.create_dataset("entropy", shape, float, external=[(tmp_path / "secret", 0, 8 * int(np.prod(shape)))])
    with pytest.raises(FileError, match="is damaged"):
        draw_stored(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("large", 10**9, float, chunks=(10**6,))
    with pytest.raises(FileError, match=r"claims .* more than the file can hold"):
        load_outcome(path)
    with h5py.File(path, "r+") as file:
        del file.attrs["experiment"]
    with pytest.raises(FileError, match="expected a run, the index of a sweep, or an experiment"):
        load_outcome(path)


def test_the_picture_of_stabilizers_has_the_texts_of_the_figure():
    """Compare titles, labels and legend only, because the 360 trainings of the picture take more than an hour."""
    free = {"residual": ["true", "false"], "layer_norm": ["pre", "none"], "layers": [2, 6, 12]}
    axes = {"network": list(KINDS), **free, "rate": [0.001, 0.01, 0.1], "seed": [0, 1]}
    depth = {"state": ["untrained", "trained"], "place": list(PLACES)}
    arrays = coordinates(**axes, **depth) | {
        name: Labelled(tuple(dims), np.ones([len(values) for values in dims.values()]))
        for dims, names in (
            (axes, ("accuracy",)),
            (axes | depth, ("distance", "departure")),
            ({name: values for name, values in axes.items() if name != "rate"}, ("stable_rate",)),
        )
        for name in names
    }
    assert texts(Outcome(arrays, summary, draw).plot()) == description(DOCS / "experiments" / "stabilizers.png")


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("rate", r"^vary = rate: expected KEY=VALUE,VALUE"),
        ("training.rate=", r"^vary = training.rate=: expected KEY=VALUE,VALUE"),
        ("training.seed=1,2", r"^vary = training.seed=1,2: expected KEY=VALUE,VALUE"),
        ("training.rat=1", r"^training.rat: unknown key"),
    ],
)
def test_grids_that_cannot_be_trained_are_refused_in_a_line(vary, message):
    with pytest.raises(CaseError, match=message):
        stabilizers(TrainingCase().replace(SMALL), (0,), lambda text: None, vary=[vary])


def test_the_largest_stable_rate_has_no_explosion_below():
    explosion = np.array([[1, 1, 0.2, 1], [1, 1, 1, 1], [0.1, 1, 1, 1]]).T[:, :, None]  # (rate, network, seed)
    rates = np.array([0.1, 0.01, 1.0, 10.0])
    np.testing.assert_array_equal(largest_stable_rates(explosion.swapaxes(0, 1), rates), [[0.1], [10.0], [0.01]])


def test_distances_of_examples():
    random = np.random.default_rng(0)
    states = random.standard_normal((40, 6, 500))
    assert distance_of(states) == pytest.approx(1, abs=5 / np.sqrt(40 * 6 * 500))
    assert distance_of(np.ones((4, 6, 5)) * random.standard_normal((6, 5))) == pytest.approx(0, abs=1e-7)
    pairs = [np.sum((a - b) ** 2) / 2 for a in states for b in states if a is not b]
    sizes = (states**2).sum() * (len(states) - 1)
    assert distance_of(states) == pytest.approx(np.sqrt(sum(pairs) / sizes), rel=1e-12)


def test_equal_states_have_no_rank_and_no_separation():
    """Rounding errors of float32 have all directions, and would have the largest rank."""
    case = TrainingCase().replace([*SMALL, "network.residual=false", "network.layer_norm=none", "network.layers=12"])
    task = task_of(case)
    found = profiles(begin(case, task).network, task.test.inputs, task.test.labels.numpy())
    assert found["distance"][-1] < 1e-6
    assert (found["rank"][-1], found["separation"][-1]) == (0, 0)
    assert found["rank"][0] > 2


def test_separation_of_classes():
    random = np.random.default_rng(0)
    labels = np.arange(600) % 3
    assert separation_of(np.eye(3)[labels], labels) == pytest.approx(1, rel=1e-12)
    by_chance = [separation_of(random.standard_normal((600, 8)), labels) for _ in range(20)]
    assert np.mean(by_chance) == pytest.approx(2 / 599, rel=0.25)


def test_a_process_that_dies_is_one_line():
    with pytest.raises(CaseError, match="jobs = 2: a process died"):
        list(Workers(2).map(os._exit, [1]))


def test_points_trained_by_dask_are_those_trained_here():
    distributed = pytest.importorskip("distributed")
    case = TrainingCase().replace(SMALL)
    plan = {"vary": ["network.layers=1", "training.rate=0.01"]}
    here = stabilizers(case, (0,), lambda text: None, **plan)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(host="127.0.0.1", protocol="tcp", **options) as cluster:
        there = stabilizers(case, (0,), lambda text: None, Workers(dask=cluster.scheduler_address), **plan)
    assert there.summary == here.summary
    with pytest.raises(CaseError, match="expected host:port"):
        stabilizers(case, (0,), lambda text: None, Workers(dask="127.0.0.1:no"), **plan)


def test_trained_networks_are_those_of_the_training_command():
    case = TrainingCase().replace(SMALL)
    subjects = train_subjects(case, (0, 1), lambda text: None)
    from meanfield.transformer.networks.training import train

    own = case.replace(["network.kind=pde", "training.seed=1"])
    alone = train(begin(own, task_of(own)))
    assert subjects.of("pde")[1].fit.history == alone.history
    found = subjects.measure(lambda network: sum(p.sum().item() for p in network.parameters()))
    assert found.shape == (4, 2, 2)
    assert found[1, 1, 1] == sum(p.sum().item() for p in alone.network.parameters())


@pytest.mark.parametrize(
    "name",
    [
        "information",
        "attention",
        "bottleneck",
        "gradients",
        "sensitivity",
        "depth",
        "positions",
        "robustness",
        "scaling",
        "untrained",
    ],
)
def test_the_command_writes_a_file_and_a_figure(name, tmp_path, capsys):
    path = tmp_path / "found.h5"
    arguments = ["transformer", "experiment", name, "--seeds", "2", "-o", str(path), "--quiet", "--set", *SMALL]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert f"{path}\n{path.with_suffix('.png')}" in printed
    assert path.with_suffix(".png").stat().st_size > 10_000
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.attrs["experiment"] == name
        assert data.attrs["summary"] in printed
        if name in ("attention", "untrained"):  # maps of layers, or growth by layers: none before the first layer
            assert data.layer.values[0] == 1
        if name == "attention":  # pairs of seeds have no network in common, which would give equal cosines here
            assert np.all(data.cosine.sel(map=b"mean over heads", pair=b"other seed").diff("seed") != 0)
        if name not in ("scaling", "untrained"):  # these experiments train nothing
            networks = ["transformer", "pde", "transformer, no attention", "pde, no attention"]
            assert list(data.network.values.astype(str))[:4] == networks[: 2 if name == "positions" else 4]
            assert np.all(np.isfinite(data.accuracy) | (name == "positions"))
    again = tmp_path / "again.png"
    assert main(["plot", str(path), "-o", str(again)]) == 0
    assert again.read_bytes() == path.with_suffix(".png").read_bytes()
    assert load_outcome(path).summary == data.attrs["summary"]
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert data.attrs["summary"] in shown
    assert all(f"  {array} (" in shown for array in data.variables)
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_files_that_cannot_be_drawn_again_are_refused_in_a_line(tmp_path, capsys):
    path = tmp_path / "found.h5"
    options = ["plot", str(path), "--dpi", "100"]
    for attributes, arguments, expected in (
        ({}, options[:2], f"{path}: expected a run, the index of a sweep, or an experiment"),
        ({"experiment": "scaling"}, options[:2], f"{path}: is damaged ('entropy')"),
        ({"experiment": "scaling"}, options, f"{path}: is the file of an experiment, which is drawn without options"),
    ):
        write_labelled(path, {"cosine": Labelled(("layer",), [0.1, 0.2])}, attributes)
        assert main(arguments) == 2
        assert capsys.readouterr().err == f"meanfield: {expected}\n"
    assert not path.with_suffix(".png").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["information", "--seeds", "0"], "--seeds 0: expected an integer >= 1"),
        (["information", "nothing"], "nothing: no such training file"),
        (["information", "--set", "network.positions=rotary"], "network.positions"),
        (["attention", "--dask", "here:1"], "only allowed with the experiments positions, robustness, stabilizers"),
        (["robustness", "--set", "data.kind=passages"], 'data.kind = "passages": expected images'),
        (["attention", "--set", "network.pattern.local=1"], "network.pattern: expected none"),
        (["attention", "--set", "network.attention=false"], "network.attention = false"),
    ],
)
def test_refusals_are_one_line(arguments, expected, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["transformer", "experiment", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
