"""Layers by PyTorch's attention equal those of this package, and small steps approximate the flow."""

import numpy as np
import pytest
from support.needs import need_module

from meanfield.case.load import parse
from meanfield.cli.parser import main
from solvers.io.run_file import read

torch = need_module("torch")
CASE = """
[domain]
manifold = "particles"
dimension = 5
count = 12
[attention]
beta = 3.0
{attention}
[[attention.heads]]
query = {{ ensemble = "ginibre", seed = 1 }}
key = {{ ensemble = "ginibre", seed = 2 }}
value = {{ ensemble = "ginibre", seed = 3 }}
weight = 0.7
[[attention.heads]]
query = {{ ensemble = "goe", seed = 4 }}
weight = 0.6
[feed_forward]
activation = "{activation}"
width = 7
strength = 0.5
[stabilizers]
{stabilizers}
[initial]
kind = "uniform"
{initial}
[time]
{time}
[output]
{output}
"""
LAYERS = 'method = "layers"\nlayers = 6\nstep = 0.3'
PLAIN = {
    "attention": "",
    "activation": "relu",
    "stabilizers": "",
    "initial": "",
    "time": LAYERS,
    "output": "snapshots = 6\nsamples = 6",
}
CASES = {
    "post": {},
    "causal": {"attention": 'mask = "causal"', "activation": "gelu"},
    "scale": {"stabilizers": "scale = 1.4", "activation": "gelu"},
    "ngpt": {"stabilizers": 'layer_norm = "ngpt"\nalpha = 0.8', "activation": "tanh"},
    "cod": {"stabilizers": 'layer_norm = "cod"'},
    "pre": {"stabilizers": 'layer_norm = "pre"\ngate = 0.4', "initial": "radius = 2.0"},
    "peri": {"stabilizers": 'layer_norm = "peri"', "attention": 'mask = "causal"', "initial": "radius = 2.0"},
    "none": {"stabilizers": 'layer_norm = "none"', "initial": "radius = 0.5"},
    "no residual": {"stabilizers": "residual = false"},
}


def written(folder, **changes):
    path = folder / "case.toml"
    path.write_text(CASE.format(**PLAIN | changes), encoding="utf-8")
    return str(path)


def positions(path):
    run = read(path)
    return np.stack([run.positions(k) for k in range(run.snapshots)])


@pytest.mark.parametrize("name", CASES)
def test_torch_computes_the_same_layers(tmp_path, name):
    case = written(tmp_path, **CASES[name])
    ours, theirs = str(tmp_path / "ours.h5"), str(tmp_path / "theirs.h5")
    assert main(["run", case, "-o", ours, "--quiet"]) == 0
    assert main(["transformer", "reference", case, "-o", theirs, "--quiet"]) == 0
    found, expected = positions(ours), positions(theirs)
    assert len(expected) == 7
    assert np.abs(expected[-1] - expected[0]).max() > 0.1  # tokens move
    np.testing.assert_allclose(found, expected, atol=1e-12)  # rounding, propagated through six layers


def test_tokens_of_unequal_mass(tmp_path):
    """PyTorch represents masses as a bias of the attention."""
    points = np.random.default_rng(0).standard_normal((4, 3)).tolist()
    case = tmp_path / "points.toml"
    case.write_text(
        f"""
        domain.manifold = "particles"
        attention.beta = 2.0
        initial = {{ kind = "points", points = {points}, masses = [0.1, 0.2, 0.3, 0.4] }}
        time = {{ method = "layers", layers = 4, step = 0.5 }}
        output.snapshots = 4
        """,
        encoding="utf-8",
    )
    for command, name in (("run", "ours"), ("transformer reference", "theirs")):
        assert main([*command.split(), str(case), "-o", str(tmp_path / f"{name}.h5"), "--quiet"]) == 0
    np.testing.assert_allclose(positions(tmp_path / "ours.h5"), positions(tmp_path / "theirs.h5"), atol=1e-13)


def test_small_steps_of_torch_are_the_flow(tmp_path):
    """Half the step gives half the error within 10 %, so the order is one."""
    case = written(tmp_path, time="end = 1.0\ntolerance = 1e-11", output="snapshots = 1\nsamples = 1")
    assert main(["run", case, "-o", str(tmp_path / "flow.h5"), "--quiet"]) == 0
    errors = []
    for layers in (20, 40, 80):
        time = f'method = "layers"\nlayers = {layers}\nstep = {1 / layers}'
        path = tmp_path / f"{layers}.h5"
        case = written(tmp_path, time=time, output="snapshots = 1\nsamples = 1")
        assert main(["transformer", "reference", case, "-o", str(path), "--quiet"]) == 0
        errors.append(np.abs(positions(path)[-1] - positions(tmp_path / "flow.h5")[-1]).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert orders == pytest.approx(1.0, abs=0.1), f"errors {errors}, orders {orders}"


def test_a_token_without_a_direction_stays_as_in_a_run(tmp_path):
    """A layer without a residual and with V = 0 maps every token to zero."""
    options = [
        "--quiet",
        "--set",
        "stabilizers.residual=false",
        f"attention.heads=[{{value={5 * [5 * [0.0]]}}}]",
        "feed_forward.strength=0.0",
    ]
    case = written(tmp_path)
    for command, name in (("run", "ours"), ("transformer reference", "theirs")):
        assert main([*command.split(), case, "-o", str(tmp_path / f"{name}.h5"), *options]) == 0
        found = positions(tmp_path / f"{name}.h5")
        np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("time={end=1.0}", 'time.method = "adaptive": expected "layers"'),
        ('attention.normalization="unnormalized"', 'attention.normalization = "unnormalized": expected "softmax"'),
        ('attention.kernel="gaussian"', 'attention.kernel = "gaussian": expected "exponential"'),
        ('stabilizers={layer_norm="mix",switch=1.0}', 'stabilizers.layer_norm = "mix": expected one of post, ngpt'),
        ("sequence.diffusion=0.1", "sequence.diffusion = 0.1: expected no section"),
    ],
)
def test_what_torch_does_not_do_is_refused_by_key(tmp_path, capsys, change, message):
    parse(CASE.format(**PLAIN), [change])  # a run accepts the change
    case = written(tmp_path)
    assert main(["transformer", "reference", case, "-o", str(tmp_path / "x.h5"), "--set", change]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_its_file_says_who_computed_it_and_cannot_be_resumed(tmp_path, capsys):
    path = str(tmp_path / "theirs.h5")
    assert main(["transformer", "reference", written(tmp_path), "-o", path, "--quiet"]) == 0
    assert read(path).attributes["layers_of"] == f"torch {torch.__version__}"
    assert main(["resume", path, "--until", "9"]) == 2
    assert "holds the layers of torch" in capsys.readouterr().err
