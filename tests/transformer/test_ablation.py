"""Ablation of a model beside null models: measures against their definitions, the file and the figure."""

import h5py
import numpy as np
import pytest
from scipy.linalg import subspace_angles
from support.tiny_transformers import LAYERS, saved, text_file

from meanfield.cli.parser import main
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.families import arrays_of, family_of, form_of
from meanfield.transformer.model import read_states
from meanfield.transformer.sources import read_texts
from meanfield.transformer.studies.ablation import head_figures, head_overlap, predicted_rate
from meanfield.transformer.studies.measures import measure_variants, variants_of
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant, with_weights


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    return read_states(str(saved(folder, "bert")), text_file(folder))


def test_measures_are_their_definitions(states):
    found = measure_variants([states], variants_of([("network",)], seeds=1), drop=["first"])
    assert tuple(found["variant"].values) == (WHOLE, "without network", STILL, "random 0", "rotated 0")
    for k, options in enumerate([Variant(), Variant(("network",))]):
        hidden = next(states_of_variant([states], options))
        for layer in range(LAYERS + 1):
            x = hidden[layer, 1:] / np.linalg.norm(hidden[layer, 1:], axis=1, keepdims=True)
            y = states.hidden[layer, 1:] / np.linalg.norm(states.hidden[layer, 1:], axis=1, keepdims=True)
            products, shares = x @ x.T, np.linalg.svd(x, compute_uv=False)
            shares = shares / shares.sum()
            expected = {
                "cosine": products[~np.eye(len(x), dtype=bool)].mean(),
                "energy": np.exp(products).mean() / 2,
                "rank": np.exp(-(shares * np.log(shares)).sum()),
                "agreement": np.einsum("nd,nd->n", x, y).mean(),
            }
            for name, value in expected.items():
                assert found[name].values[k, 0, layer] == pytest.approx(value, abs=1e-12), name  # rounding


def test_the_whole_model_agrees_with_itself_and_tokens_that_stand_still_keep_their_cosine(states):
    found = measure_variants([states], variants_of([], seeds=1))
    np.testing.assert_allclose(found["agreement"].values[0], 1.0, atol=1e-12)
    assert np.ptp(found["cosine"].values[1]) == 0
    np.testing.assert_allclose(next(states_of_variant([states], Variant())), states.hidden, atol=1e-10)  # rounding


def test_dropped_tokens_are_those_named(states):
    np.testing.assert_array_equal(states.mask_of_remaining(["first"]), np.arange(len(states.tokens)) > 0)
    np.testing.assert_array_equal(states.mask_of_remaining(["special"]), ~states.special)


def test_the_predicted_rate_is_that_of_tokens_near_their_mean(states):
    """A layer without network and layer norm parts tokens at h̄ + ε δ by the factor |h̄|/|h̄ + A(h̄)|."""
    family = family_of("bert", states.config)
    form, arrays = form_of(family, states.network), arrays_of(family, states.network, 0)
    layer = TrainedLayer(form, arrays, ("network", "layer_norm"))
    random, epsilon = np.random.default_rng(0), 1e-4
    mean = random.standard_normal(form_width(arrays))
    drawn = random.standard_normal((40, len(mean)))
    near = mean + epsilon * (drawn - drawn.mean(axis=0))
    spreads = [spread(points) for points in (near, layer(near))]
    rate = predicted_rate(TrainedLayer(form, arrays), near)
    seen = -0.5 * np.log(spreads[1] / spreads[0])
    # Directions do not depend on the component of δ along the mean.
    tilt = np.log(across(layer(near)) / across(near))
    assert seen == pytest.approx(rate - tilt, abs=1e-3)  # ε times the slope of attention


def form_width(arrays):
    return arrays["out"].shape[1]


def spread(points):
    x = points / np.linalg.norm(points, axis=1, keepdims=True)
    return 1 - (x @ x.T)[~np.eye(len(x), dtype=bool)].mean()


def across(points):
    """Return the root mean square distance of points from their mean, perpendicular to the mean."""
    mean = points.mean(axis=0)
    apart = points - mean
    apart = apart - np.outer(apart @ mean, mean) / (mean @ mean)
    return np.sqrt((apart**2).sum(axis=1).mean())


def test_figures_of_heads_are_those_of_their_matrices(states):
    found, heads = head_figures([states]), states.network.encoder.layer[1].attention
    query, key, value = (getattr(heads.self, name).weight.detach().numpy()[:8] for name in ("query", "key", "value"))
    out = heads.output.dense.weight.detach().numpy()[:, :8]
    assert found["head_steepness"].values[1, 0] == pytest.approx(8**-0.5 * np.linalg.norm(query.T @ key, 2), rel=1e-12)
    assert found["head_radius"].values[1, 0] == pytest.approx(np.abs(np.linalg.eigvals(out @ value)).max(), rel=1e-9)


def test_rates_are_those_of_the_measured_tokens(states):
    drop = ["first"]
    cosine = measure_variants([states], {WHOLE: Variant()}, drop)["cosine"].values[0]
    seen = head_figures([states], drop)["rate_seen"].values
    np.testing.assert_allclose(seen, -0.5 * np.diff(np.log(1 - cosine)), rtol=0, atol=1e-12)


def test_overlap_of_heads_is_that_of_scipys_principal_angles():
    out = np.random.default_rng(0).standard_normal((3, 12, 4))
    angles = [subspace_angles(out[i], out[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert head_overlap(out) == pytest.approx((np.cos(angles) ** 2).mean(), rel=1e-12)
    assert head_overlap(np.eye(12).reshape(3, 4, 12).swapaxes(1, 2)) == 0.0
    assert head_overlap(np.stack([out[0], out[0] @ out[1, :4]])) == pytest.approx(1.0, rel=1e-12)
    assert np.isnan(head_overlap(out[:1]))


def test_overlap_of_random_heads_is_their_share_of_the_dimensions():
    """The mean over 300 pairs has a standard error of 2e-3, by the deviation 0.033 of one pair."""
    out = np.random.default_rng(1).standard_normal((300, 2, 32, 8))
    assert np.mean([head_overlap(pair) for pair in out]) == pytest.approx(8 / 32, abs=5e-3)


def test_the_package_has_ten_texts():
    texts = read_texts(None)
    assert len(texts) == 10
    assert all(50 < len(words.split()) < 90 for words, _ in texts)


def test_the_command_writes_a_file_that_xarray_opens_a_table_and_a_figure(tmp_path, capsys):
    import xarray

    model = saved(tmp_path / "gpt2", "gpt2")
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, words in (("one", "a b c d e f"), ("two", "c a f e b a d")):
        (texts / f"{name}.txt").write_text(words)
    path = str(tmp_path / "found.h5")
    options = ["--texts", str(texts), "--without", "network,biases", "--seeds", "2", "-o", path]
    assert main(["transformer", "ablate", str(model), *options]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0] == "| variant | cosine | clusters | energy | rank | agreement |"
    assert [line.split(" | ")[0][2:] for line in table[2:7]] == [
        "whole model", "without network, biases", "standing still", "random", "rotated",
    ]  # fmt: skip
    assert (tmp_path / "found.png").stat().st_size > 10_000
    by_layer = table[table.index("") + 3 :][:LAYERS]
    with h5py.File(path) as file:
        for k, line in enumerate(by_layer):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            slopes, seen = file["head_steepness"][k], file["rate_seen"][:, k]
            assert cells[0] == str(k + 1)
            assert cells[1] == f"{np.median(slopes):.3g} ({slopes.min():.3g} to {slopes.max():.3g})"
            assert cells[3] == f"{(file['head_sign'][k] > 0).sum()} of {len(slopes)}"
            assert cells[4] == f"{file['head_overlap'][k] / file['head_overlap_random'][()]:.3g}"
            assert cells[6].startswith(f"{seen.mean():.2g} ±")
    with xarray.open_dataset(path, engine="h5netcdf") as found:
        assert found["cosine"].dims == ("variant", "text", "layer")
        assert found["cosine"].shape == (7, 2, LAYERS + 1)
        assert found["head_steepness"].dims == ("block", "head")
    with h5py.File(path) as file:
        assert [name.decode() for name in file["text"][:]] == [str(texts / "one.txt"), str(texts / "two.txt")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--without", "nose"], "--without nose: expected parts of"),
        (["--seeds", "0"], "--seeds 0: expected an integer >= 1"),
        (["--texts", "nowhere"], "--texts nowhere: expected a folder with files *.txt"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["transformer", "ablate", "no/such/model", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_weights_of_a_variant_are_drawn_once_for_all_texts(states, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "meanfield.transformer.variants.with_weights", lambda *given: drawn.append(given[1:]) or with_weights(*given)
    )
    first, second = states_of_variant([states, states], Variant(weights="random", seed=5))
    np.testing.assert_array_equal(first, second)
    assert drawn == [("random", 5, layer) for layer in range(states.layers)]
