"""Training: exact resume, the step of explosions, files that xarray opens, and refusals in one line."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray
from support.downloads import keep_mnist, keep_newsgroups

torch = pytest.importorskip("torch")

from meanfield.case.errors import CaseError  # noqa: E402
from meanfield.cli.parser import main  # noqa: E402
from meanfield.transformer.networks.data import task_of  # noqa: E402
from meanfield.transformer.networks.network import build  # noqa: E402
from meanfield.transformer.networks.saved import read_training, write_training  # noqa: E402
from meanfield.transformer.networks.section import TrainingCase, load_training, parse_training, to_toml  # noqa: E402
from meanfield.transformer.networks.training import (  # noqa: E402
    begin,
    dropout_of,
    loss_and_accuracy,
    loss_of,
    parts_of,
    rate_at,
    train,
)
from solvers.io.run_file import FileError  # noqa: E402

SMALL = [
    "network.dimension=8", "network.heads=2", "network.layers=2", "network.width=8", "data.kind=stripes",
    "data.tokens=rows", "training.epochs=3",
]  # fmt: skip


def small(*overrides):
    return TrainingCase().replace([*SMALL, *overrides])


def fitted(*overrides, until=None):
    case = small(*overrides)
    return train(begin(case, task_of(case)), until)


@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_training_goes_on_bit_for_bit(kind, tmp_path):
    more = (
        f"network.kind={kind}", "pde.coefficients=learned", "network.positions=learned", "network.dropout=0.2",
        "network.initialization=small", "training.clip=0.5", "training.warm_up=7", "training.label_smoothing=0.1",
    )  # fmt: skip
    whole, path = fitted(*more), tmp_path / "part.h5"
    write_training(path, fitted(*more, until=1))
    resumed = train(read_training(path))
    assert resumed.history == whole.history
    for ours, theirs in zip(resumed.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("layers = 2\n", "layers = 100000000\n", "damaged: .* arrays of weights, the network of its case has 100000000"),
    ('kind = "stripes"', 'kind = "characters"\nfile = "/dev/zero"', 'data.file = "/dev/zero": expected a file'),
])  # fmt: skip
def test_a_case_in_a_file_of_training_starts_no_endless_work(old, new, message, tmp_path):
    """The file has fewer weights than layers, or names a device without an end."""
    path = tmp_path / "training.h5"
    write_training(path, fitted(until=0))
    with h5py.File(path, "r+") as file:
        text = file.attrs["training_case"]
        assert old in text
        file.attrs["training_case"] = text.replace(old, new)
        layers = file.attrs["training_case"].partition("layers = ")[2].partition("\n")[0]
        del file["state_norm"]
        file.create_dataset("state_norm", (0, int(layers) + 1), float, chunks=(1, 1), maxshape=(None, int(layers) + 1))
    with pytest.raises((CaseError, FileError), match=message):
        read_training(path)


@pytest.mark.parametrize("name", ["loss", "weights/head.bias"])
def test_a_file_of_training_without_an_array_is_damaged(name, tmp_path, capsys):
    path = tmp_path / "training.h5"
    write_training(path, fitted(until=0))
    with h5py.File(path, "r+") as file:
        del file[name]
    assert main(["transformer", "train", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"meanfield: {path}: damaged: ")


@pytest.mark.parametrize("test", [1e-9, 0.9999])
def test_examples_are_learned_from_and_held_back_whatever_their_shares(test):
    task = task_of(small(f"data.test={test}"))
    assert min(len(task.train), len(task.test)) == 1
    assert len(task.train) + len(task.test) == 400


def test_loss_falls_and_seeds_differ():
    first, again, other = fitted(), fitted(), fitted("training.seed=1")
    assert first.history == again.history
    assert first.history.loss != other.history.loss
    assert np.all(np.diff(first.history.train_loss) < 0)


def test_gradient_norms_are_those_of_the_loss():
    case = small("training.precision=float64")
    task = task_of(case)
    before, fit = begin(case, task), begin(case, task)
    assert repr(fit).startswith(f"<Fit {case.title}: 0 of {case.training.epochs} epochs, accuracy 0")
    train(fit, 1)
    order = np.random.default_rng([0, 0]).permutation(len(task.train))[:64]
    torch.nn.functional.cross_entropy(before.network(task.train.inputs[order]), task.train.labels[order]).backward()
    for name, given in zip(parts_of(before.network), fit.history.gradient_norm[0], strict=True):
        grads = [p.grad.flatten() for p in parts_of(before.network)[name] if p.grad is not None]
        assert given == pytest.approx(float(torch.cat(grads).norm()), rel=1e-12)
    counted = {id(p) for parameters in parts_of(before.network).values() for p in parameters}
    assert counted == {id(p) for p in before.network.parameters()}


def test_an_explosion_ends_training_where_the_state_first_is_too_large(tmp_path, capsys):
    path = tmp_path / "blown.h5"
    arguments = ["transformer", "train", "digits", "-o", str(path), "--quiet", "--set", *SMALL]
    assert main([*arguments, "network.layer_norm=none", "training.rate=100", "training.explosion=100"]) == 3
    assert "training exploded at step" in capsys.readouterr().err
    with h5py.File(path) as file:
        reason, states, rows = file.attrs["stop_reason"], file["state_norm"][()], len(file["loss"])
    step, layer = int(reason.split("step ")[1].split(":")[0]), int(reason.split("layer ")[1].split(",")[0])
    assert step == rows - 1 == len(states) - 1
    assert states[step, layer] > 100 >= states[step, :layer].max(initial=0)
    assert states[:step].max() <= 100
    assert path.with_suffix(".png").exists()
    assert main(["transformer", "train", str(path), "--quiet"]) == 3  # training does not continue


def test_the_command_writes_what_xarray_opens_and_goes_on(tmp_path, capsys):
    path = tmp_path / "run.h5"
    arguments = ["transformer", "train", "digits", "--set", *SMALL, "--until", "1", "-o", str(path), "--quiet"]
    assert main(arguments) == 0
    assert main(["transformer", "train", str(path), "--quiet"]) == 0
    assert "after 3 epochs" in capsys.readouterr().out
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.sizes == {"step": 15, "part": 4, "layer": 3, "epoch": 4}
        assert list(data.part.astype(str).values) == ["embedding", "layer 1", "layer 2", "head"]
        assert data.attrs["stop_reason"] == "finished"
        assert parse_training(data.attrs["training_case"]) == load_training("digits", SMALL)
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_figure_that_fails_does_not_hide_why_training_ended(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    def full(*_):
        raise FileError("run.png: cannot write it: no space left on device")

    monkeypatch.setattr("meanfield.transformer.networks.saved.train", interrupted)
    monkeypatch.setattr("meanfield.figures.saving.save", full)
    path = tmp_path / "run.h5"
    assert main(["transformer", "train", "digits", "--set", *SMALL, "-o", str(path), "--quiet"]) == 130
    assert "run.png: cannot write it" in capsys.readouterr().err


def test_the_rate_warms_up_and_falls_to_nothing():
    own = TrainingCase().training
    assert rate_at(0, 100, own) == pytest.approx(own.rate / 5)
    assert rate_at(5, 100, own) == own.rate
    assert rate_at(100, 100, own) == pytest.approx(0, abs=1e-15)


def test_the_rate_warms_up_over_the_given_steps():
    own = TrainingCase().replace(["training.warm_up=20", "training.rate=0.5"]).training
    np.testing.assert_allclose([rate_at(k, 100, own) for k in range(21)], [*np.arange(1, 21) / 40, 0.5], rtol=1e-15)
    assert rate_at(60, 100, own) == pytest.approx(0.25)  # half a cosine, at its middle
    without = TrainingCase().replace(["training.warm_up=0"]).training
    assert rate_at(0, 100, without) == without.rate


def one_step(*overrides):
    """Return a training after its first step, and a network with its initial weights."""
    case = small("training.precision=float64", "training.batch=400", "training.epochs=1", *overrides)
    task = task_of(case)
    return train(begin(case, task)), begin(case, task).network


def test_label_smoothing_is_that_of_torch_and_of_its_formula():
    """Smoothed labels have the probability ε/c in each of c classes, and 1 − ε more in their own."""
    fit, network = one_step("training.label_smoothing=0.3")
    logits, labels = network(fit.task.train.inputs), fit.task.train.labels
    torchs = torch.nn.CrossEntropyLoss(label_smoothing=0.3)(logits, labels)
    assert fit.history.loss[0] == pytest.approx(torchs.item(), rel=1e-13)
    target = 0.7 * torch.nn.functional.one_hot(labels, 4).double() + 0.3 / 4
    assert fit.history.loss[0] == pytest.approx(-(target * logits.log_softmax(-1)).sum(-1).mean().item(), rel=1e-13)
    plain = torch.nn.functional.cross_entropy(network(fit.task.test.inputs), fit.task.test.labels)
    assert fit.history.test_loss[0] == pytest.approx(plain.item(), rel=1e-13)  # measures are not smoothed


@pytest.mark.parametrize("limit", [0.01, 1e3])
def test_clipping_is_that_of_torch(limit):
    fit, network = one_step(f"training.clip={limit}", "training.warm_up=0")
    optimizer = torch.optim.AdamW(network.parameters(), lr=fit.case.training.rate, weight_decay=0.01)
    order = np.random.default_rng([0, 0]).permutation(len(fit.task.train))
    torch.nn.functional.cross_entropy(network(fit.task.train.inputs[order]), fit.task.train.labels[order]).backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), limit)
    assert np.linalg.norm(fit.history.gradient_norm[0]) == pytest.approx(float(norm), rel=1e-12)  # before clipping
    optimizer.step()
    for ours, theirs in zip(fit.network.parameters(), network.parameters(), strict=True):
        moment = fit.optimizer.state[ours]["exp_avg"] if ours in fit.optimizer.state else torch.zeros(())
        expected = 0.1 * theirs.grad if theirs.grad is not None else torch.zeros(())
        assert torch.allclose(moment, expected, rtol=1e-10, atol=1e-16)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)


def test_clipped_gradients_have_no_limit():
    large = ("training.explosion=1e-3", "network.layer_norm=pre")
    assert "exploded" in fitted(*large, until=1).stopped
    states = fitted(until=1).history.state_norm
    limit = f"training.explosion={2 * np.max(states)}"  # above all states; gradients below 1e-12 of it are clipped
    assert not fitted(limit, "training.clip=1e-9", until=1).stopped


@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_dropout_keeps_the_mean_of_a_part_and_follows_the_step(kind):
    """The mean over masks of x/(1 − p), dropped with probability p, is x; its standard error is |x|√(p/(1 − p)/m)."""
    case = small(f"network.kind={kind}", "network.dropout=0.4", "training.precision=float64", "network.layers=1",
                 "network.layer_norm=none", "network.feed_forward=false")  # fmt: skip
    task = task_of(case)
    network, masks = build(case, task.shape), 4000
    states = network.embed(task.test.inputs[:1]).detach()
    layer = network.body.layers[0]
    assert torch.equal(layer(states)[0], layer(states)[0])  # measures are without dropout
    part = layer(states)[0] - states
    with torch.no_grad(), dropout_of(network, 0, 7):
        first = layer(states)[0] - states
        drawn = layer(states.expand(masks, -1, -1))[0] - states
    with torch.no_grad(), dropout_of(network, 0, 7):
        assert torch.equal(layer(states)[0] - states, first)
    with torch.no_grad(), dropout_of(network, 0, 8):
        assert not torch.equal(layer(states)[0] - states, first)
    with pytest.raises(KeyboardInterrupt), dropout_of(network, 0, 7):
        raise KeyboardInterrupt
    assert torch.equal(layer(states)[0] - states, part)  # the network of an interrupted training has no dropout
    error = part.abs() * np.sqrt(0.4 / 0.6 / masks)
    assert ((drawn.mean(dim=0) - part[0]).abs() <= 5 * error[0] + 1e-12).all()
    zero = (drawn == 0).double().mean()
    assert float(zero) == pytest.approx(0.4, abs=5 * np.sqrt(0.24 / drawn.numel()))


@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_initial_weights_have_their_law(kind):
    size = ("network.dimension=64", "network.width=128", "network.layers=3", f"network.kind={kind}")

    def weights(name):
        case = small(*size, f"network.initialization={name}")
        layers = build(case, task_of(case).shape).body.layers
        return {name: p.detach().double() for name, p in layers.named_parameters()}

    default, few, scaled, orthogonal = (weights(name) for name in ("default", "small", "scaled", "orthogonal"))
    for name, matrix in default.items():
        if matrix.ndim < 2:
            assert not name.endswith("bias") or not (few[name].any() or orthogonal[name].any())
            assert torch.equal(scaled[name], matrix)
            continue
        is_output = bool({"output", "outer"} & set(name.split(".")))
        torch.testing.assert_close(scaled[name], matrix / np.sqrt(6) if is_output else matrix, rtol=1e-6, atol=0)
        assert float(few[name].std()) == pytest.approx(0.02, rel=5 / np.sqrt(2 * matrix.numel()))
        for one in orthogonal[name] if matrix.ndim == 3 else [orthogonal[name]]:
            torch.testing.assert_close(
                torch.linalg.svdvals(one), torch.ones(min(one.shape)).double(), atol=1e-5, rtol=0
            )


@pytest.mark.parametrize("kind", ["stripes", "characters"])
def test_measures_in_batches_are_those_of_all_examples(kind, monkeypatch):
    case = small(f"data.kind={kind}", "data.length=16", "training.precision=float64")
    fit = begin(case, task_of(case))
    examples = fit.task.test
    monkeypatch.setattr("meanfield.transformer.networks.training.MEASURED", 7)
    loss, accuracy = loss_and_accuracy(fit.network, examples)
    with torch.no_grad():
        logits = fit.network(examples.inputs)
    assert loss == pytest.approx(loss_of(logits, examples.labels).item(), rel=1e-12)
    assert accuracy == pytest.approx((logits.argmax(-1) == examples.labels).double().mean().item(), rel=1e-12)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is present")
def test_a_device_that_is_missing_is_refused_in_a_line(capsys):
    assert main(["transformer", "train", "digits", "--set", *SMALL, "training.device=cuda", "--quiet"]) == 2
    expected = 'meanfield: training.device = "cuda": expected "cpu": PyTorch finds no CUDA device\n'
    assert capsys.readouterr().err == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_training_on_cuda_is_training_on_the_cpu(kind, tmp_path):
    more = (f"network.kind={kind}", "training.precision=float64")
    host, path = fitted(*more), tmp_path / "part.h5"
    write_training(path, fitted(*more, "training.device=cuda", "network.dropout=0.0", until=1))
    resumed = train(read_training(path))
    np.testing.assert_allclose(resumed.history.loss, host.history.loss, rtol=1e-6)


MEMORY = """
import numpy as np, torch
torch.set_num_threads(1)  # layers of few numbers are not faster with more
from meanfield.transformer.networks.data import Examples, Task
from meanfield.transformer.networks.network import Shape
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import begin, train
random = np.random.default_rng(0)
x, y = random.standard_normal((10_000, 64, 12), "f4"), random.integers(0, 10, 10_000)
few, all = (Examples(torch.from_numpy(x[:n]), torch.from_numpy(y[:n])) for n in (512, 10_000))
few_weights = ["network.dimension=8", "network.layers=1", "network.width=8"]  # memory for pairs of tokens remains
case = TrainingCase().replace([*few_weights, "network.kind=pde", "training.batch=128", "training.epochs=1"])
train(begin(case, Task(Shape(64, 12, 0, 10), few, all)))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))  # kB, this process's own
"""


@pytest.mark.slow
def test_ten_thousand_images_in_64_tokens_need_less_than_a_gigabyte():
    """All images are measured before and after four steps with 128 images.

    Passing all images through the network at once takes 2 GB, in batches 0.45 GB.
    """
    found = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 1e6  # kilobytes


REFUSED = {
    "network.heads=5": "network.heads = 5: expected a divisor of network.dimension = 8",
    "network.layer=5": "network.layer: unknown key; did you mean \"layers\"?",
    "data.patch=3 data.tokens=patches": "data.patch = 3: expected a divisor of 8",
    "network.kind=pde network.positions=rotary": 'network.positions = "rotary": expected another',
    "network.kind=pde data.kind=characters pde.diffusion=0.1": "pde.diffusion = 0.1: expected none where the next",
    "network.layer_norm=post pde.gate=0.1": "pde.gate = 0.1: expected 0 where layer norm keeps",
    "data.kind=mnist data.tokens=patches data.patch=8": "data.patch = 8: expected a divisor of 28",
    "data.kind=passages data.most=5": "data.most = 5: expected none with",
    "network.attention=false network.feed_forward=false": "network.feed_forward = false: expected true",
    "data.file=text.txt": "data.file = \"text.txt\": only allowed with data.kind",
    "data.kind=images": 'data.kind = "images": expected data.file',
    "data.tokens=words": 'data.tokens = "words": only allowed with data.kind = "newsgroups"',
    "training.rate=-1": "training.rate = -1: expected a number > 0",
    "network.dropout=1": "network.dropout = 1: expected a number >= 0 and < 1",
    "training.warm_up=-1": "training.warm_up = -1: expected",
    "training.clip=0": "training.clip = 0: expected a number > 0",
    "training.label_smoothing=1": "training.label_smoothing = 1: expected a number >= 0 and < 1",
    "network.initialization=tiny": 'network.initialization = "tiny": expected',
}  # fmt: skip


@pytest.mark.parametrize("overrides", REFUSED)
def test_what_cannot_be_trained_is_refused_in_a_line(overrides):
    with pytest.raises(CaseError) as error:
        small(*overrides.split())
    assert REFUSED[overrides] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["digits", "digits_pde", "characters", "characters_sparse", "mnist"])
def test_shipped_training_files_are_read_and_written(name):
    case = load_training(name)
    assert parse_training(to_toml(case)) == case


@pytest.mark.parametrize("arguments", [["digts"], ["digits", "--until", "0"], ["nothing.h5"]])
def test_bad_arguments_are_refused_in_a_line(arguments, capsys):
    assert main(["transformer", "train", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_texts_give_words_to_be_found():
    case = small("data.kind=characters", "data.length=16")
    task = task_of(case)
    assert torch.equal(task.train.inputs[:, 1:], task.train.labels[:, :-1])
    assert task_of(small("data.kind=passages", "data.length=16")).shape.classes == 10
    with pytest.raises(CaseError, match=r"data\.length = 100: expected less than"):
        task_of(small("data.kind=passages", "data.length=100"))


def test_downloaded_data_are_read_by_scikit_learns_own_loaders(tmp_path, monkeypatch):
    """The package reads small files in scikit-learn's own format, so no test downloads."""
    random = np.random.default_rng(0)
    images, digits = random.integers(0, 256, (50, 784)), np.arange(50) % 10
    head, tail = "From: someone@somewhere\nSubject: any\n\n", "\n\n> quoted\n"
    texts = [f"{head}{k % 20} words and more words, words and more{tail}" for k in range(80)]
    keep_mnist(tmp_path, images, digits)
    keep_newsgroups(tmp_path, [*texts, head + "short"], np.array([*(k % 20 for k in range(80)), 3]))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    mnist = task_of(small("data.kind=mnist", "data.tokens=patches", "data.patch=7", "data.most=40"))
    assert mnist.train.inputs.shape == (30, 16, 49)
    assert len(mnist.test) == 10
    first = np.random.default_rng(0).permutation(50)[0]  # data.seed selects the first held-back example
    np.testing.assert_allclose(mnist.test.inputs[0, 1], images[first].reshape(28, 28)[:7, 7:14].ravel() / 127.5 - 1)
    assert int(mnist.test.labels[0]) == int(digits[first])
    news = small("data.kind=newsgroups", "data.length=24", "training.epochs=1")
    task = task_of(news)
    assert task.shape.classes == 20
    assert len(task.train) + len(task.test) == 80  # without the short text
    assert task.shape.words == len(set("0123456789 words and more, short")) + 1  # without headers and quotations
    assert train(begin(news, task)).epochs == 1
    longest = len("10 words and more words, words and more")
    with pytest.raises(
        CaseError, match=rf"^data\.length = 500: expected at most {longest}: fewer than two messages are longer$"
    ):
        task_of(small("data.kind=newsgroups", "data.length=500"))


def test_data_that_cannot_be_had_are_refused_in_a_line(monkeypatch):
    def offline(*options, **named):
        raise OSError("no route to host\nand more")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(CaseError, match=r"^data\.kind = mnist: cannot be downloaded: no route to host$"):
        task_of(small("data.kind=mnist"))


@pytest.mark.parametrize("network", ["transformer", "pde"])
def test_no_answer_comes_from_later_characters(network):
    case = small("data.kind=characters", "data.length=16", f"network.kind={network}", "training.precision=float64")
    fit = begin(case, task_of(case))
    inputs = fit.task.test.inputs[:2].clone()
    before = fit.network(inputs)
    inputs[:, 10:] = (inputs[:, 10:] + 1) % fit.task.shape.words
    after = fit.network(inputs)
    assert torch.equal(before[:, :10], after[:, :10])
    assert not torch.equal(before[:, 10:], after[:, 10:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_digits_are_learned_with_all_stabilizers(kind):
    case = load_training("digits", [f"network.kind={kind}", "training.epochs=8", "data.patch=2"])
    fit = train(begin(case, task_of(case)))
    assert fit.history.test_accuracy[-1] > 0.9  # after 20 epochs the accuracy is 0.97


def _weight(file: h5py.File) -> str:
    return "weights/" + next(iter(file["weights"]))


def _outside(file: h5py.File) -> None:
    name = _weight(file)
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, "f4", external=[("secret", 0, 100_000)])


def _linked(file: h5py.File) -> None:
    name = _weight(file)
    del file[name]
    file[name] = h5py.ExternalLink("other.h5", "/a")


def _large(file: h5py.File) -> None:
    name = _weight(file)
    del file[name]
    file.create_dataset(name, (10**6, 10**6), "f4", chunks=(1000, 1000), compression="gzip")


def _changed(file: h5py.File) -> None:
    file[_weight(file)][...] = 0.5


def _broadcast(file: h5py.File) -> None:
    """Replace a weight by a single row, which PyTorch would copy into all rows."""
    name = "weights/head.weight"
    row = file[name][:1]
    del file[name]
    file[name] = row


def _without_digest(file: h5py.File) -> None:
    file[_weight(file)][...] = 0.5
    del file.attrs["digest"]


def _linked_group(file: h5py.File) -> None:
    del file["weights"]
    file["weights"] = h5py.ExternalLink("other.h5", "/a")


def _linked_moments(file: h5py.File) -> None:
    file["moments"] = h5py.SoftLink("/weights")


def _long(file: h5py.File) -> None:
    del file["loss"]
    file.create_dataset("loss", 10**7, float, compression="gzip", fillvalue=0.0)
    file["loss"][...] = 0.0


def _many_layers(file: h5py.File) -> None:
    text = file.attrs["training_case"]
    assert text.count("layers = 2\n") == 1
    file.attrs["training_case"] = text.replace("layers = 2\n", "layers = 1000000000\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_outside, "takes its values from another file"),
        (_linked, "is a link to another place"),
        (_large, "more than the file can hold"),
        (_changed, "differ from the written ones"),
        (_without_digest, "damaged: it has no attribute 'digest'"),
        (_linked_group, "weights is a link to another place"),
        (_linked_moments, "moments is a link to another place"),
        (_long, r"loss has 10000000 rows, its case at most \d+$"),
        (_broadcast, r"head\.weight has shape \(1, 8\), the network of its case"),
        (_many_layers, r"\d+ arrays of weights, the network of its case has 1000000000 layers"),
    ],
)
def test_weights_of_others_and_changed_ones_are_refused(change, message, tmp_path):
    path = tmp_path / "a.h5"
    write_training(path, fitted(until=0))
    with h5py.File(path, "a") as file:
        file.attrs["mine"], file["mine"] = "of a user", 1.0
    read_training(path)
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(FileError, match=message):
        read_training(path)


def test_what_a_user_adds_stays_when_training_continues(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_training("a.h5", fitted(until=2))
    with h5py.File("a.h5", "r+") as file:
        file.attrs["note"], file["loss"].attrs["note"], file["weights"].attrs["note"] = "mine", 3, "mine"
        file["mine/deep"], file["weights/mine"] = np.ones(3), "words"
        file["plain"] = np.ones((2, 2))
        file["link"] = h5py.SoftLink("/nowhere")
    assert main(["info", "a.h5"]) == 0
    assert "plain (?, ?)" in capsys.readouterr().out
    assert main(["transformer", "train", "a.h5", "--quiet"]) == 0
    assert read_training("a.h5").epochs == 3
    with h5py.File("a.h5") as file:
        assert (file.attrs["note"], file["loss"].attrs["note"], file["weights"].attrs["note"]) == ("mine", 3, "mine")
        assert file["mine/deep"][()].tolist() == [1.0, 1.0, 1.0]
        assert file["weights/mine"][()] == b"words"
        assert file.get("link", getlink=True).path == "/nowhere"
    write_training("a.h5", fitted(until=0))  # another training, which replaces the file
    with h5py.File("a.h5") as file:
        assert "note" not in file.attrs
