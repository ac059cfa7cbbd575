"""A model's layers as a file of particles."""

import json
import shutil
import signal
import sys
from types import ModuleType

import h5py
import numpy as np
import pytest
from support.tiny_transformers import LAYERS, MOST, TEXT, D, add_tokenizer, hidden, saved, text_file, transformers

from meanfield.cli.parser import main
from meanfield.transformer.model import TextWarning, load_model
from solvers.io.run_file import read


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture(scope="module")
def file(model):
    path = model / "states.h5"
    assert main(["transformer", "read", str(model), "--text", text_file(model), "-o", str(path), "--quiet"]) == 0
    return path


def test_positions_are_the_normalized_hidden_states(model, file):
    run, states = read(file), hidden(model)
    lengths = np.linalg.norm(states, axis=2)
    np.testing.assert_array_equal(run.times, np.arange(LAYERS + 1))
    for k in range(LAYERS + 1):
        np.testing.assert_allclose(run.positions(k), states[k] / lengths[k, :, None], atol=1e-14)  # rounding
    np.testing.assert_allclose(run.diagnostics["length"], np.sqrt((lengths**2).mean(axis=1)), rtol=1e-14)


def test_the_mean_cosine_is_that_of_all_pairs(model, file):
    run = read(file)
    for k, recorded in enumerate(run.diagnostics["cosine"]):
        products = run.positions(k) @ run.positions(k).T
        n = len(products)
        np.testing.assert_allclose(recorded, products[~np.eye(n, dtype=bool)].mean(), atol=1e-14)  # rounding


def test_the_file_tells_its_model(model, file):
    attributes = read(file).attributes
    assert attributes["layers_of"] == str(model)
    assert [attributes[f"model_{name}"] for name in ("type", "layers", "heads", "width")] == ["bert", "3", "2", "16"]
    with h5py.File(file) as opened:
        assert [opened[name].attrs["long_name"] for name in ("time", "diagnostics/time")] == ["layers passed"] * 2
        np.testing.assert_array_equal(opened["token_id"][:], ["abcdefghijkl".index(word) for word in TEXT.split()])
        assert [text.decode() for text in opened["token_text"][:]] == TEXT.split()
        lengths = np.linalg.norm(hidden(model), axis=2)
        np.testing.assert_allclose(opened["state_length"][:], lengths, rtol=1e-14)  # rounding


@pytest.mark.parametrize("command", ["info", "compare", "mergers", "plot", "export --to csv"])
def test_commands_for_runs_take_it(file, tmp_path, capsys, command):
    name, *more = command.split()
    output = ["-o", str(tmp_path / f"out.{more[-1] if more else 'png'}")] if name in ("plot", "export") else []
    assert main([name, str(file), *more, *output]) == 0


def test_it_cannot_be_resumed(file, capsys):
    assert main(["resume", str(file), "--until", "9"]) == 2
    assert "holds the layers of" in capsys.readouterr().err


def test_a_long_text_is_cut(model, tmp_path, capsys):
    text = text_file(tmp_path, "a b c " * MOST)
    path = tmp_path / "long.h5"
    assert main(["transformer", "read", str(model), "--text", text, "-o", str(path), "--quiet"]) == 0
    assert f"{3 * MOST} tokens, {model} takes {MOST}: the rest is cut off" in capsys.readouterr().err
    assert len(read(path).weights) == MOST


@pytest.mark.parametrize(("text", "message"), [(" \n", "holds no text"), ("a", "1 token of")])
def test_too_little_text_is_refused(model, tmp_path, capsys, text, message):
    arguments = ["transformer", "read", str(model), "--text", text_file(tmp_path, text), "-o", str(tmp_path / "x.h5")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_encoder_decoder_is_refused(tmp_path, capsys):
    transformers.T5Config(d_model=D, num_layers=1).save_pretrained(tmp_path / "t5")
    add_tokenizer(tmp_path / "t5")
    assert main(["transformer", "read", str(tmp_path / "t5"), "-o", str(tmp_path / "x.h5")]) == 2
    assert "an encoder-decoder (t5)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_what_is_no_model_is_refused_in_one_line(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["transformer", "read", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"meanfield: {name}: cannot be read as a model: ")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


COMMANDS = ("read m", "case m", "ablate m", "histogram m", "prompts m", "fit m", "train digits")
REFERENCE = 'reference tokens_equiangular --set time={method="layers",layers=2,step=0.1} output={snapshots=2}'
INSTALL = "pip install 'meanfield-transformers[transformer]'"


@pytest.mark.parametrize("command", [*COMMANDS, "experiment scaling", REFERENCE])
def test_without_torch_the_line_says_what_to_install(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["transformer", *command.split(), "-o", str(tmp_path / "x.h5")]) == 2
    assert capsys.readouterr().err == f"meanfield: torch is not installed: {INSTALL}\n"


@pytest.mark.parametrize("command", ["read m", "train digits", REFERENCE])
def test_a_damaged_torch_is_one_line(tmp_path, monkeypatch, capsys, command):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch.so: cannot open\\nshared object')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["transformer", *command.split(), "-o", str(tmp_path / "x.h5")]) == 2
    assert capsys.readouterr().err == f"meanfield: torch cannot be imported: libtorch.so: cannot open; {INSTALL}\n"


def test_an_empty_folder_named_torch_is_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert main(["transformer", "train", "digits", "-o", str(tmp_path / "x.h5")]) == 2
    assert capsys.readouterr().err == f"meanfield: torch is not installed: {INSTALL}\n"


def test_the_package_has_a_text():
    from meanfield.transformer.sources import read_text

    words, source = read_text(None)
    assert 200 < len(words.split()) < 400
    assert source == "default text"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["transformer", "reed"], 'did you mean "read"?'), (["transformer", "read", "m", "--txt", "f"], '"--text"?')],
)
def test_misspelt_words_are_told(capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_two_runs_in_many_dimensions_are_compared_by_their_inner_products(file, tmp_path):
    """The density of all pairs has integral 1 and the recorded mean, and the figure has one more panel for each
    shown time."""
    from meanfield.analysis.comparison import compare
    from meanfield.figures.comparison.pairs import BINS, products_of

    run = read(file)
    density, mean = products_of(run, LAYERS)
    assert density.sum() * 2 / BINS == pytest.approx(1.0, abs=1e-12)  # rounding
    assert mean == pytest.approx(run.diagnostics["cosine"][-1], abs=1e-12)
    panels = compare(file, file).plot().axes
    assert [ax.get_title() for ax in panels[-3:]] == ["t = 0", "t = 1", "t = 3"]
    for line in panels[1].lines:  # mean inner products over time
        np.testing.assert_allclose(line.get_ydata(), run.diagnostics["cosine"], atol=1e-12)


def test_help_lists_what_there_is(capsys):
    assert main(["transformer"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {name}" in shown for name in ("read", "case", "reference"))
    for name in ("read", "case", "reference"):
        with pytest.raises(SystemExit):
            main(["transformer", name, "--help"])
        assert f"usage: meanfield transformer {name} " in capsys.readouterr().out


def test_a_model_that_lacks_weights_is_refused(model, tmp_path, capsys):
    """Weights that transformers would draw at random are refused, except for the pooler, which acts after all
    layers."""
    lacking = _changed(model, tmp_path / "lacking", num_hidden_layers=LAYERS + 1)
    assert main(["transformer", "read", str(lacking), "-o", str(tmp_path / "x.h5")]) == 2
    assert f"lacks 16 arrays of weights, such as encoder.layer.{LAYERS}." in capsys.readouterr().err
    network = transformers.AutoModel.from_pretrained(model, add_pooling_layer=False)
    network.save_pretrained(tmp_path / "headless")
    add_tokenizer(tmp_path / "headless")
    text = text_file(tmp_path)
    assert main(["transformer", "read", str(tmp_path / "headless"), "--text", text, "-o", str(tmp_path / "y.h5")]) == 0


def test_a_damaged_model_is_refused_in_one_line(model, tmp_path, capsys):
    damaged = _changed(model, tmp_path / "damaged")
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    odd = _changed(model, tmp_path / "odd", num_attention_heads=0)
    text = text_file(tmp_path)
    for folder in (damaged, odd):
        assert main(["transformer", "read", str(folder), "--text", text, "-o", str(tmp_path / "x.h5")]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"meanfield: {folder}: cannot be read as a network with hidden states: ")
        assert error.count("\n") == 1


def test_a_model_with_code_of_its_own_is_refused_without_a_question(model, tmp_path, monkeypatch, capsys):
    own = _changed(model, tmp_path / "own", model_type="own", auto_map={"AutoConfig": "a.B", "AutoModel": "a.C"})
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked"))
    assert main(["transformer", "read", str(own), "-o", str(tmp_path / "x.h5")]) == 2
    assert "custom code" in capsys.readouterr().err


def _changed(model, folder, **config):
    """Return a copy of a model with a changed configuration."""
    shutil.copytree(model, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


def test_interrupted_it_says_what_can_be_done(model, tmp_path, monkeypatch, capsys):
    """An interrupted read keeps its written layers, and the message says that the file cannot be resumed."""
    from meanfield.transformer.reading import GivenLayers

    def stop(self, time, positions):
        signal.raise_signal(signal.SIGINT)
        return self._positions[round(time) + 1]

    monkeypatch.setattr(GivenLayers, "__call__", stop)
    path = tmp_path / "x.h5"
    assert main(["transformer", "read", str(model), "--text", text_file(tmp_path), "-o", str(path)]) == 130
    message = "it cannot be resumed: write it anew with --overwrite"
    assert capsys.readouterr().err.endswith(f"interrupted at time 1; {message}\n")
    assert read(path).snapshots == 2
    assert main(["info", str(path)]) == 0
    assert message in capsys.readouterr().out


def test_dropped_tokens_are_not_written(model, file, tmp_path, capsys):
    """The first token, [CLS], is moved with the others and left out of the file."""
    path = tmp_path / "dropped.h5"
    arguments = ["transformer", "read", str(model), "--text", text_file(tmp_path), "--drop", "first"]
    assert main([*arguments, "-o", str(path), "--quiet"]) == 0
    for k in range(LAYERS + 1):
        np.testing.assert_array_equal(read(path).positions(k), read(file).positions(k)[1:])
    with h5py.File(path) as opened:
        assert opened.attrs["drop"] == "first"
        assert [text.decode() for text in opened["token_text"][:]] == TEXT.split()[1:]
        np.testing.assert_array_equal(opened["state_length"][:], h5py.File(file)["state_length"][:, 1:])


def test_an_unknown_word_is_part_of_the_text(model):
    """A token that stands for unknown words and for the end, as in OPT, is the end."""
    loaded = load_model(str(model))
    with pytest.warns(TextWarning, match="1 of 6 tokens are unknown"):
        assert not loaded.read("a b zzz c d e", "text").special.any()
    loaded.tokenizer.eos_token = loaded.tokenizer.unk_token
    with pytest.warns(TextWarning):
        assert np.flatnonzero(loaded.read("a b zzz c d e", "text").special).tolist() == [2]


@pytest.mark.parametrize("command", ["read", "ablate", "histogram", "prompts"])
def test_names_of_dropped_tokens_are_checked_before_a_model_is_read(command, tmp_path, capsys):
    output = ["-o", str(tmp_path / "x.h5")]
    assert main(["transformer", command, str(tmp_path / "nowhere"), "--drop", "last", *output]) == 2
    assert capsys.readouterr().err == "meanfield: --drop last: expected one of special, first\n"
