"""Cases of particles: the same velocity as the density's of the same case, and typical user input for tokens."""

import numpy as np
import pytest
from support.status import DONE, NON_FINITE, run

from meanfield.case.errors import CaseError
from meanfield.case.load import load, parse
from meanfield.simulation import set_up
from solvers.io.run_file import read

BUMPS = "[{center = [1.0, 0.2], concentration = 4.0, mass = 0.6}, {center = [-0.5, 1.0], concentration = 2.0}]"
CIRCLE = f"""
[domain]
manifold = "circle"
resolution = 256
[attention]
beta = 3.0
[initial]
kind = "von_mises_fisher"
components = {BUMPS}
[time]
end = 3.0
[output]
snapshots = 1
samples = 3
diagnostics = ["centroid"]
"""
ONE_BUMP = CIRCLE.replace(BUMPS, "[{center = [1.0], concentration = 2.0}]")
AXISYMMETRIC = ONE_BUMP.replace('"circle"', '"axisymmetric"\ndimension = 5')
AROUND_AXIS = ONE_BUMP.replace("[1.0]", "[1.0, 0.0, 0.0, 0.0, 0.0]")
TOKENS = """
[domain]
manifold = "particles"
dimension = 3
[attention]
beta = 4.0
[initial]
kind = "points"
points = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -0.6, 0.8]]
[time]
end = 2.0
[output]
snapshots = 1
samples = 4
"""
DRAWS, COUNT = 16, 250  # 4000 tokens
HEADS = "attention.heads=[{value=[[1.0, 0.4], [0.0, 0.5]], weight=0.7}, {query=[[1.0, 0.0], [0.5, -0.5]], weight=0.3}]"


def by_interval(text, dimension):
    """Return the text of a case with a mesh as one of particles."""
    domain = f"count = {COUNT}\ndimension = {dimension}"
    return text.replace('"circle"', '"particles"').replace("resolution = 256", domain)


def centroids(text, changes, path):
    """Return the centroids (samples, d) of a run."""
    assert run(parse(text, changes), path, quiet=True, overwrite=True) == DONE
    return read(path).diagnostics["centroid"]


def away(text, of_tokens, changes, tmp_path):
    """Return the largest difference of a density's centroid and the mean over draws, in standard errors of that
    mean."""
    expected = centroids(text, changes, tmp_path / "density.h5")
    d = expected.shape[1] if expected.ndim == 2 else 1
    draws = [centroids(of_tokens, [*changes, f"domain.seed={seed}"], tmp_path / "tokens.h5") for seed in range(DRAWS)]
    found = np.array(draws)[:, :, :d]
    errors = found.std(axis=0, ddof=1) / np.sqrt(DRAWS)
    assert errors.max() < 0.05  # a larger error would make the test weak
    return (np.abs(found.mean(axis=0) - expected.reshape(-1, d)) / errors).max()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("changes", [
    [],
    ["attention.normalization=unnormalized", "attention.beta=1.0"],
    [HEADS],
    ["stabilizers.layer_norm=ngpt", "feed_forward.width=4", "feed_forward.activation=tanh"],
    ["stabilizers.noise=0.2", "stabilizers.layer_norm=cod"],
    ["attention.kernel=windowed", "attention.window=1.0", "time.end=1.0"],
    ["time.method=layers", "time.layers=6", "time.step=0.5", "stabilizers.scale=1.2"],
], ids=["softmax", "unnormalized", "heads", "ngpt", "noise", "windowed", "layers"])  # fmt: skip
def test_drawn_tokens_move_as_the_density_does(changes, tmp_path):
    """The difference is within 4 standard errors, estimated from the draws (p = 1e-3 each; seeds are fixed)."""
    assert away(CIRCLE, by_interval(CIRCLE, 2), changes, tmp_path) < 4


def test_drawn_tokens_move_as_the_axisymmetric_density_does(tmp_path):
    """The time is 1.5: by 3 the weight of a token on itself, 0.013, shows; with 1000 tokens a fourth of that."""
    assert away(AXISYMMETRIC, by_interval(AROUND_AXIS, 5), ["time.end=1.5"], tmp_path) < 4


def test_points_by_label_are_tokens_that_see_those_before_them(tmp_path):
    """Positions agree to a cell's width, the approximate extent of a point mass in a density."""
    points = [
        "attention.mask=causal", "initial.kind=points", "initial.points=[[1, 0], [0.2, 1], [-0.5, 1]]",
    ]  # fmt: skip
    changes = [*points, 'output.diagnostics=["label_centroid"]']
    assert run(parse(CIRCLE, changes), tmp_path / "density.h5", quiet=True) == DONE
    tokens = CIRCLE.replace('"circle"', '"particles"').replace("resolution = 256", "dimension = 2")
    assert run(parse(tokens, points), tmp_path / "tokens.h5", quiet=True) == DONE
    found = read(tmp_path / "density.h5").diagnostics["label_centroid"][-1].reshape(3, 2)
    file = read(tmp_path / "tokens.h5")
    expected = file.positions(-1)
    assert np.abs(expected - file.positions(0)).max() > 0.5  # the tokens have moved
    assert np.abs(found - expected).max() < 2 * np.pi / 256


def test_layers_of_a_file_under_a_causal_mask(tmp_path, monkeypatch):
    """The reference sums over all pairs: x ← N(x + Δt Σ_h w_h V_h softmax_{j ≤ i}(β⟨Q_h x_i, K_h x_j⟩) x_j)."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    matrices = {name: random.standard_normal((3, 2, 3, 3)) for name in ("query", "key", "value")}
    factors = np.array([[0.5, 0.5], [1.0, -0.3], [0.0, 2.0]])
    np.savez("matrices.npz", **matrices, weight=factors)
    changes = ["attention.mask=causal", "attention.file=matrices.npz"]
    case = parse(TOKENS, [*changes, "time.method=layers", "time.layers=3", "time.step=0.3"])
    assert run(case, "run.h5", quiet=True) == DONE
    x = read("run.h5").positions(0)
    for q, k, v, factor in zip(*(matrices[name] for name in ("query", "key", "value")), factors, strict=True):
        moved = x.copy()
        for head in range(2):
            logits = 4.0 * (x @ q[head].T) @ (x @ k[head].T).T
            weights = np.tril(np.exp(logits - logits.max(axis=1, keepdims=True)))
            moved += 0.3 * factor[head] * (weights / weights.sum(axis=1, keepdims=True)) @ x @ v[head].T
        x = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    assert np.abs(read("run.h5").positions(-1) - x).max() < 1e-12  # rounding


@pytest.mark.parametrize("beta", [0.0, 4.0, 1e4])
def test_tokens_without_mass_follow_and_do_not_pull(beta, tmp_path):
    """A single mass attracts each token by tan(φ/2) = tan(φ₀/2)e^{−t}, whatever β; a step has an error of 1e-9."""
    case = parse(TOKENS, ["initial.masses=[2, 0, 0]", f"attention.beta={beta}"])
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    heavy, *light = read(tmp_path / "run.h5").positions(-1)
    assert np.abs(heavy - [1, 0, 0]).max() < 1e-15
    angle = 2 * np.arctan(np.exp(-2.0))  # the light tokens start at a right angle
    assert np.abs(np.arccos(np.array(light) @ heavy) - angle).max() < 1e-8


@pytest.mark.parametrize(("points", "beta"), [
    ([[0.6, 0.8, 0.0]], 4.0),
    ([[0.6, 0.8, 0.0]] * 3, 4.0),
    ([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], 4.0),
    ([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], 1e4),
], ids=["one", "all the same", "opposite", "opposite and steep"])  # fmt: skip
def test_tokens_in_balance_stay_to_the_bit(points, beta, tmp_path):
    case = parse(TOKENS, [f"initial.points={points}", f"attention.beta={beta}"])
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    file = read(tmp_path / "run.h5")
    assert np.abs(file.positions(-1) - points).max() < 1e-15
    assert file.diagnostics["clusters"][-1] == len(np.unique(points, axis=0))


def test_a_blow_up_stops_with_a_good_file(tmp_path):
    """Unnormalized attention without layer norm grows as r e^{βr²}, with an almost immediate blow-up."""
    case = parse(TOKENS, ["stabilizers.layer_norm=none", "attention.normalization=unnormalized"])
    assert run(case, tmp_path / "run.h5", quiet=True) == NON_FINITE
    file = read(tmp_path / "run.h5")
    assert file.attributes["stop_reason"] == "failed"
    assert np.isfinite(file.positions(-1)).all()


@pytest.mark.parametrize(("changes", "refusal"), [
    (["attention.kernel=windowed", "attention.window=1.0", "stabilizers.layer_norm=none"], "stabilizers.layer_norm"),
    (["attention.normalization=sinkhorn", "stabilizers.layer_norm=none"], "stabilizers.layer_norm"),
    (["initial.kind=perturbed", "initial.amplitude=1.0", "domain.dimension=8", "domain.count=9"], "initial.degrees"),
    (["initial.kind=gaussian", "stabilizers.layer_norm=none", "domain.count=9",
      "initial.variance=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]"], "initial.variance"),
    (["domain.count=4"], "domain.count"),
    (["domain.resolution=16"], "domain.resolution"),
])  # fmt: skip
def test_refused_before_anything_is_computed(changes, refusal):
    with pytest.raises(CaseError) as error:
        parse(TOKENS, changes)
    assert str(error.value).startswith(f"{refusal} = ")
    assert "\n" not in str(error.value)


def test_a_token_that_comes_to_the_origin_ends_the_run(tmp_path, capsys):
    """ṙ = −1 for two equal tokens under V = −I with layer norm pre: at t = 1 they reach the origin, without a
    direction."""
    text = """
[domain]
manifold = "particles"
[attention]
beta = 1.0
value = [[-1.0, 0.0], [0.0, -1.0]]
[stabilizers]
layer_norm = "pre"
[initial]
kind = "points"
points = [[1.0, 0.0], [1.0, 0.0]]
[time]
end = 3.0
"""
    assert run(parse(text), tmp_path / "run.h5", quiet=True) == NON_FINITE
    assert "a token has reached the origin" in capsys.readouterr().err
    assert read(tmp_path / "run.h5").times[-1] < 1.0


def test_tokens_of_a_file_can_be_set_at_the_shell(tmp_path):
    """A path needs no quotes, and the number of tokens is that of the file."""
    np.save(tmp_path / "tokens.npy", np.eye(3))
    case = load(
        "tokens_high_dimension", ["initial.kind=tokens", f"initial.file={tmp_path}/tokens.npy", "domain.dimension=3"]
    )
    assert case.initial.file == f"{tmp_path}/tokens.npy"
    assert set_up(case).initial().shape == (3, 3)
    np.save(tmp_path / "tokens.npy", 1j * np.eye(3))
    with pytest.raises(CaseError, match=r"initial.file = .*: cannot be read as an array of numbers: holds complex128"):
        set_up(case)
