"""A trained Transformer as a case: its hidden states after every layer, complete or with parts omitted."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.minilm import minilm
from support.tiny_transformers import KINDS, LAYERS, OTHERS, given, hidden, saved, text_file, torch, transformers

from meanfield.case.errors import CaseError
from meanfield.case.load import load
from meanfield.cli.parser import main
from meanfield.model.trained_layer import LayerForm, TrainedLayer
from meanfield.transformer.families import FAMILIES, arrays_of, family_of
from meanfield.transformer.model import hidden_states, read_states
from meanfield.transformer.studies.compression import compress
from meanfield.transformer.variants import Variant, with_weights
from meanfield.transformer.whole_model import write_case
from solvers.io.run_file import read

ROOT = Path(__file__).parents[2]
ROUNDING = 1e-12  # of states with components of up to 44; the measured error is at most 1.1e-13


def case_of(model, folder, *more):
    arguments = ["transformer", "case", str(model), "--text", given(model.name, folder), "-o", str(folder / "case")]
    arguments += more
    assert main([*arguments, "--overwrite"]) == 0
    return folder / "case" / "case.toml"


def solved(path, *more):
    output = path.with_suffix(".h5")
    assert main(["run", str(path), "-o", str(output), "--quiet", "--overwrite", *more]) == 0
    run = read(output)
    return np.stack([run.positions(k) for k in range(run.snapshots)])


def test_every_family_is_compared_with_its_library_and_counted_on_the_pages():
    tested = {*KINDS, *(kind for kind, _ in OTHERS.values())}
    assert tested >= {*FAMILIES}
    for page in (ROOT / "README.md", ROOT / "docs/transformer.md"):
        assert f"{len(FAMILIES)} families" in page.read_text("utf-8")


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp(request.param) / request.param, request.param)


def test_states_after_every_layer_are_those_of_the_model(model, tmp_path):
    states = read_states(str(model), given(model.name, tmp_path))
    found = solved(case_of(model, tmp_path))
    assert found.shape == states.hidden.shape
    assert np.abs(np.diff(states.hidden, axis=0)).max(axis=(1, 2)).min() > 0.1  # every layer moves tokens
    np.testing.assert_allclose(found, states.hidden, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found, hidden(model), atol=1e-4)  # unchanged transformers compute RMS norm in float32


def test_a_file_of_an_earlier_version_is_the_same_model(tmp_path):
    """Earlier files have neither a cap of logits nor experts."""
    path = case_of(saved(tmp_path / "llama", "llama"), tmp_path)
    found = solved(path)
    with h5py.File(path.with_name("layers.h5"), "r+") as file:
        for name in ("cap", "experts"):
            del file.attrs[name]
    np.testing.assert_array_equal(solved(path), found)


@pytest.mark.parametrize("name", OTHERS)
def test_states_of_models_with_other_options(name, tmp_path):
    kind, changes = OTHERS[name]
    model = saved(tmp_path / kind, kind, **changes)
    states = read_states(str(model), given(kind, tmp_path))
    np.testing.assert_allclose(solved(case_of(model, tmp_path)), states.hidden, rtol=0, atol=ROUNDING)


def test_a_model_with_other_layers_than_this_package_is_refused(tmp_path):
    """The states after layer 1 stand for those of a library whose layers differ."""
    states = read_states(str(saved(tmp_path / "bert", "bert")), text_file(tmp_path))
    other = replace(states, hidden=states.hidden + 1e-5 * (np.arange(LAYERS + 1) == 1)[:, None, None])
    for refused in (lambda: write_case(other, tmp_path / "case", Variant()), lambda: compress([other], ["one"])):
        with pytest.raises(CaseError, match=r"bert: states after layer 1 differ from those of transformers by \de-06"):
            refused()
    assert not (tmp_path / "case").exists()


def test_weights_that_do_not_fit_the_configuration_are_refused(tmp_path, capsys):
    """Heads of BERT have the size d divided by the number of heads, whatever ``head_dim`` is."""
    model = saved(tmp_path / "bert", "bert", head_dim=4)
    assert main(["transformer", "case", str(model), "--text", text_file(tmp_path), "-o", str(tmp_path / "case")]) == 2
    error = capsys.readouterr().err
    assert "bert: layer 1: cannot reshape array" in error
    assert error.count("\n") == 1


def test_a_window_is_part_of_the_case(tmp_path):
    kind, changes = OTHERS["mistral, window"]
    states = [
        read_states(str(saved(tmp_path / str(k) / kind, kind, **more)), text_file(tmp_path)).hidden
        for k, more in enumerate((changes, {}))
    ]
    first = changes["sliding_window"]
    np.testing.assert_allclose(states[0][1, :first], states[1][1, :first], rtol=0, atol=ROUNDING)
    assert np.abs(states[0][1, first:] - states[1][1, first:]).max() > 0.01


NETWORK_ENDS = ("lin2", "ffn_output", "down_proj", "fc2", "dense_4h_to_h", "mlp.Wo")


def zeroed(network, part):
    """Return the network of transformers with a part disabled by its weights."""
    for name, module in network.named_modules():
        own = dict(module.named_parameters(recurse=False))
        norm, in_layers = "norm" in type(module).__name__.lower(), any(c.isdigit() for c in name)
        final = norm and not in_layers and "embed" not in name.lower()
        last = name.split(".")[-1]
        with torch.no_grad():
            if part == "biases" and (in_layers or final) and own.get("bias") is not None:
                own["bias"].zero_()
            if part == "gains" and norm and (in_layers or final):
                own["weight"].fill_(0.0 if "Gemma" in type(module).__name__ else 1.0)
            if part == "positions" and last in ("position_embeddings", "wpe", "embed_positions"):
                own["weight"].zero_()
            if part == "positions" and "position_embeddings" in own:
                own["position_embeddings"].zero_()
            if part == "network" and last == "experts":
                own["down_proj"].zero_()
            ends = NETWORK_ENDS if part == "network" else ("out_lin", "o_proj", "out_proj", "attn.Wo")
            of_attention = "attention" in name or "attn" in name
            if (
                part in ("network", "attention")
                and in_layers
                and (
                    name.endswith(ends)
                    or (
                        last in ("c_proj", "dense")
                        and of_attention == (part == "attention")
                        and "intermediate" not in name
                    )
                )
            ):
                for parameter in own.values():
                    parameter.zero_()
    if part == "positions" and hasattr(network, "rotary_emb"):
        for name, buffer in network.rotary_emb.named_buffers():
            if name.endswith("inv_freq"):
                buffer.zero_()
    return network


@pytest.mark.sampled
@pytest.mark.parametrize("part", ["network", "attention", "biases", "gains", "positions"])
def test_a_part_left_out_is_the_model_with_its_weights_set_so(model, tmp_path, part):
    states = read_states(str(model), given(model.name, tmp_path))
    ids = [int(token) for token in states.ids] if states.image is None else states.image
    expected = hidden_states("model", zeroed(states.network, part), ids)
    found = solved(case_of(model, tmp_path, "--without", part))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
    without_biases = ("llama", "mistral", "mixtral", "qwen3", "gemma", "gemma2", "gemma3_text", "modernbert")
    expects_change = part != "biases" or model.name not in without_biases
    assert (np.abs(expected - states.hidden).max() > 0.01) == expects_change


def test_no_residual_no_layer_norm_and_no_final_norm():
    """A hand calculation with one head, A = x and F = 2x, gives these states."""
    one = np.eye(2)
    arrays = {"query": np.zeros((1, 2, 2)), "key": np.zeros((1, 2, 2)), "value": one[None], "out": one[None],
              "inner": one, "outer": 2 * one, "final_gain": np.full(2, 3.0)}  # fmt: skip
    form = LayerForm(1.0, "pre", "rms", epsilon=1e-300, activation="relu")
    states = np.array([[3.0, 4.0]])
    both = TrainedLayer(form, arrays, ("layer_norm", "residual"))
    np.testing.assert_allclose(both(states), 2 * states)
    np.testing.assert_allclose(TrainedLayer(form, arrays, ("layer_norm",))(states), 6 * states)
    last = TrainedLayer(form, arrays, ("attention", "network"), is_last=True)
    np.testing.assert_allclose(last(states), 3 * np.sqrt(2) * states / 5)
    np.testing.assert_allclose(TrainedLayer(form, arrays, ("attention", "network", "final_norm"), True)(states), states)


def test_layers_are_repeated(tmp_path):
    model = saved(tmp_path / "bert", "bert")
    states = read_states(str(model), text_file(tmp_path))
    found = solved(case_of(model, tmp_path, "--repeat", "2"))
    network = states.network
    with torch.no_grad():
        h = torch.from_numpy(states.hidden[-1])[None]
        for layer in network.encoder.layer:
            h = layer(h)
            h = h[0] if isinstance(h, tuple) else h
    assert len(found) == 2 * LAYERS + 1
    np.testing.assert_allclose(found[-1], h[0].numpy(), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kind", ["random", "rotated"])
def test_variants_keep_norms_or_singular_values(tmp_path, kind):
    model = saved(tmp_path / "bert", "bert")
    states = read_states(str(model), text_file(tmp_path))
    arrays = arrays_of(family_of("bert", states.config), states.network, 1)
    drawn, again, other = (with_weights(arrays, kind, seed, 1) for seed in (3, 3, 4))
    for name in ("query", "key", "value", "out"):
        np.testing.assert_array_equal(drawn[name], again[name])
        assert np.abs(drawn[name] - other[name]).max() > 0.1
        assert np.abs(drawn[name] - arrays[name]).max() > 0.1
        for before, after in zip(arrays[name], drawn[name], strict=True):
            np.testing.assert_allclose(np.linalg.norm(after), np.linalg.norm(before), rtol=1e-12)
            if kind == "rotated":
                values = [np.linalg.svd(matrix, compute_uv=False) for matrix in (before, after)]
                np.testing.assert_allclose(*values, rtol=1e-12)
    for name in set(arrays) - {"query", "key", "value", "out"}:
        assert drawn[name] is arrays[name]
    found = solved(case_of(model, tmp_path, "--weights", kind, "--seed", "3"))
    assert np.abs(found[-1] - states.hidden[-1]).max() > 0.1
    np.testing.assert_array_equal(found[0], states.hidden[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--without", "norm"], "--without norm: expected parts of attention, network, biases"),
        (["--layer", "2"], "--layer 2: only allowed with --mean-field"),
        (["--repeat", "0"], "--repeat 0: expected an integer >= 1"),
        (["--mean-field", "--without", "gains"], "--without gains: not allowed with --mean-field"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, capsys, arguments, message):
    assert main(["transformer", "case", "no/such/model", "-o", str(tmp_path / "case"), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("time={end=1.0}", 'time.method = "ssprk3": expected "layers" for a trained Transformer'),
        ("stabilizers.residual=false", 'domain.without = ["residual"] leaves it out'),
        ("attention.query=[[1.0]]", "attention.query = "),
        ('domain.without=["positions"]', "the initial states contain the positions: write the case again"),
        ("domain.file=nothing.h5", "domain.file = nothing.h5: no such file"),
        ("domain.dimension=8", "domain.dimension = 8: expected 16, the width of"),
        ("stabilizers.layer_norm=pre", "stabilizers.layer_norm"),
    ],
)
def test_what_a_case_of_a_model_cannot_have_is_refused_by_key(tmp_path, capsys, change, message):
    path = case_of(saved(tmp_path / "bert", "bert"), tmp_path)
    capsys.readouterr()
    assert main(["run", str(path), "-o", str(tmp_path / "x.h5"), "--set", change]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_fewer_layers_are_the_model_cut_there(tmp_path):
    """The final norm follows the last of the selected layers."""
    model = saved(tmp_path / "gpt2", "gpt2")
    states = read_states(str(model), text_file(tmp_path))
    found = solved(case_of(model, tmp_path), "--set", "time.layers=2", "output.snapshots=2")
    states.network.h = states.network.h[:2]
    states.network.config.num_hidden_layers = 2
    expected = hidden_states("gpt2", states.network, [int(token) for token in states.ids])
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)


def test_a_file_of_another_kind_of_model_has_no_beta(tmp_path, capsys):
    from support.tiny_transformers import WORDS, D, add_tokenizer

    config = transformers.GPTNeoConfig(
        vocab_size=len(WORDS) + 1, hidden_size=D, num_layers=2, num_heads=2, intermediate_size=16,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=24, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "neo")
    add_tokenizer(tmp_path / "neo")
    path = str(tmp_path / "neo.h5")
    assert (
        main(["transformer", "read", str(tmp_path / "neo"), "--text", text_file(tmp_path), "-o", path, "--quiet"]) == 0
    )
    assert main(["info", path]) == 0
    shown = capsys.readouterr().out
    assert "attention of another kind" in shown
    assert "β" not in shown


def test_beta_is_that_of_the_head_size(tmp_path):
    """Head sizes of Qwen3 differ from the width over the number of heads."""
    model = saved(tmp_path / "qwen3", "qwen3")
    assert load(str(case_of(model, tmp_path))).attention.beta == pytest.approx(6**-0.5, abs=1e-15)


def test_states_of_a_real_model_after_every_layer(tmp_path):
    """A case computes the states of MiniLM on the package's text of 324 tokens as transformers does."""
    states = read_states(str(minilm()))
    options = ["transformer", "case", str(minilm()), "-o", str(tmp_path / "case")]
    assert main(options) == 0
    found = solved(tmp_path / "case" / "case.toml", "--set", 'output.diagnostics=["cosine"]')
    assert found.shape == (7, 324, 384)
    np.testing.assert_allclose(found, states.hidden, rtol=0, atol=ROUNDING)
