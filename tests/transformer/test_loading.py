"""Models that cannot be read correctly are refused in one line, and long texts are cut at the last position."""

import json
import re
import shutil

import numpy as np
import pytest
from support.tiny_transformers import (
    LAYERS,
    MOST,
    WORDS,
    D,
    add_tokenizer,
    given,
    hidden,
    saved,
    text_file,
    transformers,
)

from meanfield.case.errors import CaseError
from meanfield.cli.parser import main
from meanfield.transformer.model import TextWarning, read_states
from solvers.io.run_file import read


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "bert", "bert")


def refused(model, folder, capsys, text="a b c d"):
    """Return the one line in which the command refuses a model."""
    arguments = ["transformer", "read", str(model), "--text", text_file(folder, text), "-o", str(folder / "x.h5")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert not (folder / "x.h5").exists()
    return error


def changed(model, folder, **config):
    """Return a copy of a model with other keys in its configuration."""
    shutil.copytree(model, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["transformer", "read", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err == f"meanfield: {tmp_path / 'nothing'}: no such folder\n"
    assert main(["transformer", "read", "no/such-model", "-o", str(tmp_path / "out.h5")]) == 2  # tests are offline
    assert "expected a name on the hub, which needs a network, or a folder" in capsys.readouterr().err


def test_a_folder_without_a_vocabulary_is_refused(model, tmp_path, capsys):
    """Transformers would make an empty tokenizer, to which every word is unknown."""
    shutil.copytree(model, tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").unlink()
    assert "bare: has no tokenizer: expected one of tokenizer.json, vocab.txt" in refused(
        tmp_path / "bare", tmp_path, capsys
    )


def test_a_text_of_unknown_words_is_refused_and_a_few_are_counted(model, tmp_path, capsys):
    expected = "text.txt: 2 of 4 tokens are unknown to"
    assert expected in refused(model, tmp_path, capsys, "a x y b")
    with pytest.warns(TextWarning, match="1 of 7 tokens are unknown to"):
        states = read_states(str(model), text_file(tmp_path, "a b c d e f x"))
    assert states.tokens == ("a", "b", "c", "d", "e", "f", "[UNK]")


def test_a_token_beyond_the_embeddings_is_refused(tmp_path, capsys):
    model = saved(tmp_path / "model", "bert")
    add_tokenizer(model, [*WORDS, "extra", "more"])
    assert "its tokenizer has a token 13: expected at most 12" in refused(model, tmp_path, capsys, "a b c more")


def test_positions_that_begin_after_the_padding_are_fewer(tmp_path, capsys):
    model = saved(tmp_path / "roberta", "roberta")  # its padding token is 1, so two positions are not used
    path = tmp_path / "long.h5"
    text = text_file(tmp_path, "a b c " * MOST)
    assert main(["transformer", "read", str(model), "--text", text, "-o", str(path), "--quiet"]) == 0
    assert f"{model} takes {MOST - 2}: the rest is cut off" in capsys.readouterr().err
    assert len(read(path).weights) == MOST - 2


def test_another_model_of_images_is_refused(tmp_path, capsys):
    shape = {"hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.DeiTConfig(**shape, image_size=8, patch_size=4)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "deit")
    add_tokenizer(tmp_path / "deit")
    assert "reads pixel_values: expected a model of text" in refused(tmp_path / "deit", tmp_path, capsys)


def test_a_vision_transformer_reads_an_array(model, tmp_path, capsys):
    vit = saved(tmp_path / "vit", "vit")
    assert "expected an image, an array (3, 12, 12) in a file .npy" in refused(vit, tmp_path, capsys)
    path = given("vit", tmp_path)
    states = read_states(str(vit), path)
    assert states.tokens[:5] == ("[CLS]", "0,0", "0,1", "0,2", "1,0")
    assert states.special.tolist() == [True] + 9 * [False]
    for wrong, message in (
        (np.zeros((3, 8, 8)), "expected an image, an array (3, 12, 12)"),
        (np.array("a"), "expected an array of finite numbers"),
    ):
        np.save(tmp_path / "wrong.npy", wrong)
        with pytest.raises(CaseError, match=re.escape(message)):
            read_states(str(vit), tmp_path / "wrong.npy")
    with pytest.raises(CaseError, match="an image: expected a text"):
        read_states(str(model), path)


def test_relative_positions_have_no_end(tmp_path):
    """The configuration of such a model states −1 positions."""
    config = transformers.XLNetConfig(vocab_size=14, d_model=D, n_layer=2, n_head=2, d_inner=16)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "xlnet")
    add_tokenizer(tmp_path / "xlnet")
    assert read_states(str(tmp_path / "xlnet"), text_file(tmp_path, "a b c d")).hidden.shape == (3, 4, D)


def test_fewer_layers_than_weights_are_refused(model, tmp_path, capsys):
    short = changed(model, tmp_path / "short", num_hidden_layers=LAYERS - 1)
    message = f"num_hidden_layers = {LAYERS - 1}, but its weights have more layers, such as encoder.layer.{LAYERS - 1}."
    assert message in refused(short, tmp_path, capsys)


def test_weights_beside_the_layers_are_no_layers(model, tmp_path):
    """A checkpoint of a task has a head that the hidden states do not need."""
    network = transformers.AutoModelForMaskedLM.from_config(transformers.AutoConfig.from_pretrained(model))
    network.save_pretrained(tmp_path / "task")
    add_tokenizer(tmp_path / "task")
    assert read_states(str(tmp_path / "task"), text_file(tmp_path)).layers == LAYERS


def test_a_huge_number_of_layers_is_refused_at_once(model, tmp_path, capsys):
    huge = changed(model, tmp_path / "huge", num_hidden_layers=10**9)
    assert "num_hidden_layers = 1000000000: expected 1 to 1000" in refused(huge, tmp_path, capsys)


@pytest.mark.parametrize("name", ["../model.safetensors", "/model.safetensors"])
def test_weights_outside_the_folder_are_refused(model, tmp_path, capsys, name):
    shutil.copytree(model, tmp_path / "split")
    shutil.move(tmp_path / "split" / "model.safetensors", tmp_path / "model.safetensors")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": name}}
    (tmp_path / "split" / "model.safetensors.index.json").write_text(json.dumps(index))
    assert f"weights in {name}: expected a file in the model's folder" in refused(tmp_path / "split", tmp_path, capsys)


def test_attention_named_by_the_configuration_is_not_used(model, tmp_path):
    """The name of an attention can refer to code on a server."""
    named = changed(model, tmp_path / "named", _attn_implementation="nobody/attention", attn_implementation="nobody/b")
    np.testing.assert_allclose(
        read_states(str(named), text_file(tmp_path)).hidden, hidden(model), atol=1e-12
    )  # rounding


def test_decoders_with_rms_norm_compute_in_float64(tmp_path):
    """Transformers rounds to float32 within RMS norm, rotary positions and softmax."""
    model = saved(tmp_path / "llama", "llama")
    difference = np.abs(hidden(model) - read_states(str(model), text_file(tmp_path)).hidden).max()
    assert 1e-10 < difference < 1e-4  # layers propagate the rounding of float32, 1e-7
