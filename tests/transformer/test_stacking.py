"""Repeated layers: distributions of pairwise cosines, their distances, and the mean-field law from the same tokens."""

import numpy as np
import pytest
from support.tiny_transformers import LAYERS, saved, text_file

from meanfield.cli.parser import main
from meanfield.transformer.mean_field import LAW, mean_field_states
from meanfield.transformer.model import read_states
from meanfield.transformer.studies.stacking import BINS, EDGES, pair_cosines, peaks, stack
from meanfield.transformer.variants import STILL, WHOLE
from solvers.io.run_file import read


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_law_is_the_case_of_attention_alone(tmp_path, kind):
    model, text = saved(tmp_path / kind, kind), text_file(tmp_path)
    folder, output = tmp_path / "case", str(tmp_path / "run.h5")
    assert main(["transformer", "case", str(model), "--mean-field", "--text", text, "-o", str(folder)]) == 0
    assert main(["run", str(folder / "case.toml"), "-o", output, "--quiet"]) == 0
    run = read(output)
    expected = np.stack([unit(run.positions(k)) for k in range(LAYERS + 1)])
    found = mean_field_states(read_states(str(model), text), repeat=2)
    assert len(found) == 2 * LAYERS + 1
    np.testing.assert_allclose(unit(found[: LAYERS + 1]), expected, atol=1e-12)  # rounding


def test_distances_are_those_of_the_sorted_cosines(tmp_path):
    from scipy.stats import wasserstein_distance

    states = read_states(str(saved(tmp_path / "bert", "bert")), text_file(tmp_path))
    found = {name: np.asarray(one.values) for name, one in stack(states, repeat=2).items()}
    assert tuple(found["variant"]) == (WHOLE, LAW, "random", "rotated", STILL)
    assert found["density"].shape == (5, 2 * LAYERS + 1, BINS)
    np.testing.assert_allclose(found["density"].sum(axis=2) * (EDGES[1] - EDGES[0]), 1.0, atol=1e-12)  # rounding
    np.testing.assert_array_equal(found["distance"][:, 0][[0, 2, 3, 4]], 0.0)  # the tokens are equal
    assert np.ptp(found["mean"][4]) == 0.0
    still, last = pair_cosines(states.hidden[0]), pair_cosines(states.hidden[-1])
    expected = wasserstein_distance(still, last)
    assert found["distance"][4, LAYERS] == pytest.approx(expected, abs=1e-12)  # rounding


def test_cosines_of_equal_tokens_are_in_the_last_bin():
    """The product of a unit vector with itself may be above 1 by rounding."""
    tokens = np.random.default_rng(0).standard_normal((50, 5))
    assert max(x @ x for x in unit(tokens)) > 1
    cosines = [pair_cosines(np.stack([token, token])) for token in tokens]
    assert np.histogram(cosines, EDGES)[0][-1] == len(tokens)


def test_peaks_of_clusters_are_their_cosines():
    """Two clusters of 20 tokens at 60° have ⟨x, y⟩ = 1 within a cluster and ½ between the clusters."""
    angles = np.repeat([0.0, np.pi / 3], 20)
    cosines = pair_cosines(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    density, _ = np.histogram(cosines, EDGES, density=True)
    np.testing.assert_allclose(peaks(density), [0.5, 1.0], atol=1 / BINS)  # half a bin


def test_the_command_writes_a_file_and_a_figure(tmp_path, capsys):
    import xarray

    model, path = saved(tmp_path / "albert", "albert"), str(tmp_path / "found.h5")
    options = ["--text", text_file(tmp_path), "--repeat", "3", "-o", path]
    assert main(["transformer", "histogram", str(model), *options]) == 0
    assert "mean-field law" in capsys.readouterr().out
    assert (tmp_path / "found.png").stat().st_size > 10_000
    with xarray.open_dataset(path, engine="h5netcdf") as found:
        assert found["density"].dims == ("variant", "layer", "cosine")
        assert found["distance"].shape == (5, 3 * LAYERS + 1)


def test_rms_norm_is_refused_in_one_line(tmp_path, capsys):
    model = saved(tmp_path / "llama", "llama")
    options = ["--text", text_file(tmp_path), "-o", str(tmp_path / "x.h5")]
    assert main(["transformer", "histogram", str(model), *options]) == 2
    assert "llama has RMS norm or rotary positions: expected layer norm" in capsys.readouterr().err
