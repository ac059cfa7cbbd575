"""Prompts through a model: distances, entropy and groups against exact answers, the next token against transformers."""

import numpy as np
import pytest
from support.tiny_transformers import LAYERS, OTHERS, WORDS, add_tokenizer, saved, text_file, torch, transformers

from meanfield.cli.parser import main
from meanfield.transformer.labelled import Outcome
from meanfield.transformer.mean_field import LAW
from meanfield.transformer.model import load_model
from meanfield.transformer.precision import Float64
from meanfield.transformer.studies.compression import (
    compress,
    distances_of,
    entropy_of,
    groups_of,
    line_through,
    mean_distance,
)
from meanfield.transformer.studies.prompting import next_token, output_head, prompts_of
from meanfield.transformer.variants import STILL, WHOLE

PROMPTS = ["a b c d", "e f g h i", "a b c e", "l k j"]


def test_distance_of_prompts_is_the_least_transport():
    """Tokens at 0 and π/2 on the circle are transported to tokens at π/6 and π, each with half of its prompt's mass."""
    one, two = (np.stack([np.cos(a), np.sin(a)], axis=1) for a in ([0, np.pi / 2], [np.pi / 6, np.pi]))
    found = distances_of([one, two, one[::-1]])
    assert found[0, 1] == pytest.approx((np.pi / 6 + np.pi / 2) / 2, rel=1e-12)
    np.testing.assert_allclose(found, found.T, rtol=0)
    np.testing.assert_allclose(np.diag(found), 0)
    assert found[0, 2] == pytest.approx(0, abs=1e-7)  # arcsin near 0


def test_entropy_of_directions():
    assert entropy_of(np.eye(5)[:4]) == pytest.approx(np.log(4), rel=1e-12)
    assert entropy_of(np.tile([[0.6, 0.8]], (7, 1))) == pytest.approx(0, abs=1e-12)
    cosine = 0.3  # the eigenvalues are (1 ± c)/2
    expected = -sum(p * np.log(p) for p in ((1 + cosine) / 2, (1 - cosine) / 2))
    assert entropy_of(np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]])) == pytest.approx(expected, rel=1e-12)


def test_groups_are_linked_in_chains():
    places = np.array([0.0, 0.2, 0.4, 1.0, 1.2, 5.0])
    assert groups_of(np.abs(places[:, None] - places), 0.25) == 3
    assert groups_of(np.abs(places[:, None] - places), 0.1) == 6


def test_a_line_through_entropies():
    assert line_through(3 - 0.5 * np.arange(7)) == pytest.approx((-0.5, 1.0), rel=1e-12)
    slope, share = line_through(np.exp(-2.0 * np.arange(7)))
    assert slope < 0
    assert share < 0.6
    assert line_through(np.full(7, 2.7))[1] == 1.0


@pytest.mark.parametrize(("kind", "law"), [("bert", True), ("llama", False)])
def test_variants_of_prompts(kind, law, tmp_path):
    model = load_model(str(saved(tmp_path / kind, kind)))
    states = [model.read(prompt, "prompt") for prompt in PROMPTS]
    outcome = Outcome(compress(states, PROMPTS, repeat=2), repr, print)
    variants, entropy, clusters, distances = (outcome[n] for n in ("variant", "entropy", "clusters", "distance"))
    assert tuple(variants) == ((WHOLE, LAW, "random", STILL) if law else (WHOLE, "random", STILL))
    assert entropy.shape == clusters.shape == (len(variants), 2 * LAYERS + 1, 4)
    still = list(variants).index(STILL)
    np.testing.assert_array_equal(np.ptp(distances[still], axis=0), 0)
    tokens = [h / np.linalg.norm(h, axis=1)[:, None] for h in (one.hidden[0] for one in states)]
    np.testing.assert_allclose(distances[0, 0], distances_of(tokens), rtol=0, atol=1e-12)
    pairs = distances[0, -1][np.triu_indices(4, 1)]
    assert mean_distance(outcome)[0, -1] == pytest.approx(pairs.mean(), rel=1e-12)


def causal_model(folder, kind, **more):
    """Write a causal model whose output head is not that of the embeddings, and return its folder and network."""
    saved(folder, kind, **more)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.tie_word_embeddings = False
    torch.manual_seed(2)
    network = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.3 * torch.randn(weight.shape))  # a head and norms that matter
    network.save_pretrained(folder)
    add_tokenizer(folder)
    return folder, network.double().eval()


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen2", "gemma2", "opt"])
def test_the_next_token_is_the_models_own(kind, tmp_path):
    """The model OPT has no norm after its last layer."""
    folder, network = causal_model(tmp_path / kind, kind, **OTHERS["opt, post"][1] if kind == "opt" else {})
    states = [load_model(str(folder)).read(prompt, "prompt") for prompt in PROMPTS]
    arrays = next_token(states, output_head(str(folder)), str)
    entropy, top, likelihood, apart, divergence = (
        np.asarray(arrays[f"next_{name}"].values) for name in ("entropy", "top", "likelihood", "apart", "divergence")
    )
    laws, between = [], []
    norm = {"gpt2": lambda: network.transformer.ln_f, "opt": torch.nn.Identity}.get(kind, lambda: network.model.norm)()
    for prompt in PROMPTS:
        ids = torch.tensor([[WORDS.index(word) for word in prompt.split()]])
        with torch.no_grad(), Float64():
            output = network(input_ids=ids, output_hidden_states=True)
            laws.append(output.logits[0, -1].softmax(0).numpy())
            logits = network.lm_head(norm(output.hidden_states[1]))[0, -1]
            cap = getattr(network.config, "final_logit_softcapping", None)  # of Gemma 2
            between.append((logits if cap is None else cap * (logits / cap).tanh()).softmax(0).numpy())
    expected = np.array(laws)
    np.testing.assert_allclose(entropy[-1], -(expected * np.log(expected)).sum(axis=1), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(top[-1], expected.argmax(axis=1))
    np.testing.assert_allclose(likelihood[-1], expected.max(axis=1), rtol=0, atol=1e-10)
    pairs = [np.abs(expected[i] - expected[j]).sum() / 2 for i in range(4) for j in range(i)]
    assert apart[-1] == pytest.approx(np.mean(pairs), abs=1e-10)
    np.testing.assert_allclose(divergence[-1], 0, atol=1e-14)
    steps = (expected * np.log(expected / np.array(between))).sum(axis=1)
    assert steps.min() > 1e-6
    np.testing.assert_allclose(divergence[1], steps, rtol=0, atol=1e-10)


def test_models_without_a_head_of_their_own_have_no_next_token(tmp_path):
    assert output_head(str(saved(tmp_path / "bert", "bert"))) is None


def test_prompts_are_lines_or_sentences(tmp_path):
    assert prompts_of(text_file(tmp_path, "one\n\n two \n")) == ["one", "two"]
    assert len(prompts_of(None)) > 40
    assert all(prompt[-1] in ".?!" for prompt in prompts_of(None))


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_command_writes_a_file_and_a_figure(kind, tmp_path, capsys):
    import xarray

    folder = saved(tmp_path / "bert", "bert") if kind == "bert" else causal_model(tmp_path / "gpt2", kind)[0]
    path = tmp_path / "found.h5"
    arguments = [
        "transformer",
        "prompts",
        str(folder),
        "-o",
        str(path),
        "--prompts",
        text_file(tmp_path, "\n".join(PROMPTS)),
    ]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert ("no next token" in printed) == (kind == "bert")
    assert path.with_suffix(".png").stat().st_size > 10_000
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.distance.dims == ("variant", "layer", "prompt", "other")
        assert list(data.prompt.values.astype(str)) == PROMPTS
        assert ("next_apart" in data) == (kind == "gpt2")
        if kind == "gpt2":
            known = [*WORDS, "[UNK]"]
            assert data.next_text.values.astype(str).tolist() == [[known[int(k)] for k in row] for row in data.next_top]
    assert main(arguments) == 2
    assert main([*arguments[:5], "--prompts", text_file(tmp_path, "a b c"), "--overwrite"]) == 2
    assert "expected at least two prompts" in capsys.readouterr().err
