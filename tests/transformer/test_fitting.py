"""Laws fitted to hidden states: planted numbers are recovered, each law contains the one before, the file and
refusals."""

import numpy as np
import pytest
import xarray
from support.tiny_transformers import LAYERS, TEXT, saved

torch = pytest.importorskip("torch")

from meanfield.cli.parser import main  # noqa: E402
from meanfield.transformer.fitting import (  # noqa: E402
    BOTH,
    CONVERGED,
    GAIN,
    HEADS,
    IDENTITY,
    NETWORK,
    FittedLayer,
    Options,
    Terms,
    Texts,
    descend,
    errors_of,
    fit_all,
    fit_laws,
    laws_of,
)
from meanfield.transformer.model import load_model  # noqa: E402


def directions(texts=4, n=12, d=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(texts, n, d, generator=generator), dim=-1)


def test_planted_numbers_are_found():
    terms = Terms(identity=True)
    planted, x = [FittedLayer(5, terms), FittedLayer(5, terms)], directions()
    present = torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        for law, beta, value in zip(planted, (3.0, 1.5), (0.7, -0.4), strict=True):
            law.beta.fill_(beta)
            law.value.fill_(value)
        first = planted[0](x, present)
        texts = Texts(torch.stack([x, first, planted[1](first, present)]), present)
    found = [FittedLayer(5, terms), FittedLayer(5, terms)]
    descend(found, texts, texts, Options(steps=400))
    for law, true in zip(found, planted, strict=True):
        assert law.beta.item() == pytest.approx(true.beta.item(), rel=0.02)
        assert law.value.item() == pytest.approx(true.value.item(), rel=0.02)
    assert max(errors_of(found, texts)) < 1e-3


def test_a_token_that_stands_still_has_error_one():
    x, y = directions(), directions(seed=1)
    texts = Texts(torch.stack([x, y]), torch.ones(x.shape[:2], dtype=torch.bool))
    assert errors_of([FittedLayer(5, Terms())], texts) == pytest.approx([1.0], rel=1e-5)  # the velocity is zero


def test_absent_tokens_are_not_seen():
    torch.manual_seed(0)
    law, x = FittedLayer(5, Terms(True, True, heads=2, rank=2, width=3)), directions()
    with torch.no_grad():
        for parameter in law.parameters():
            parameter.normal_()
        present = torch.ones(x.shape[:2], dtype=torch.bool)
        present[:, 8:] = False
        x[:, 8:] = 0
        alone = law(x[:, :8], present[:, :8])
        beside = law(x, present)
    np.testing.assert_allclose(beside[:, :8], alone, atol=1e-6)  # float32
    assert torch.all(beside[:, 8:] == 0)


def test_a_causal_law_does_not_see_later_tokens():
    law, x = FittedLayer(5, Terms(identity=True, causal=True)), directions()
    present = torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        law.value.fill_(1.0)
        before = law(x, present)
        x[:, -1] = -x[:, -1]
        after = law(x, present)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])


def test_the_heads_are_those_of_the_formula():
    torch.manual_seed(0)
    law, x = FittedLayer(5, Terms(heads=2, rank=3)), directions()
    with torch.no_grad():
        law.outward.normal_()
        found = law.moved(x, torch.ones(x.shape[:2], dtype=torch.bool))
        expected = x.clone()
        for head in (slice(0, 3), slice(3, 6)):
            attention = ((x @ law.query[head].T) @ (x @ law.key[head].T).mT).softmax(dim=-1) @ x
            expected = expected + attention @ law.inward[head].T @ law.outward[:, head].T
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32


def test_attention_explains_a_planted_mean_only():
    """Tokens move to the mean of their text, which no law without attention can know: attention explains the motion."""
    x = directions(texts=12, n=8, d=6)
    present = torch.ones(x.shape[:2], dtype=torch.bool)
    mean = x.mean(dim=1, keepdim=True)
    texts = Texts(torch.stack([x, torch.nn.functional.normalize(x + 2.0 * mean, dim=-1)]), present)
    errors = {}
    for name in (GAIN, IDENTITY):
        fitted = [FittedLayer(6, laws_of(Options(), 2)[name].terms)]
        descend(fitted, texts.only(range(0, 6)), texts.only(range(6, 9)), Options(steps=300))
        (errors[name],) = errors_of(fitted, texts.only(range(9, 12)))
    assert errors[GAIN] > 0.5
    assert errors[IDENTITY] < 0.01


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_each_law_holds_a_smaller_one(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("meanfield.transformer.fitting.CONVERGED", np.inf)  # one descent
    model = load_model(str(saved(tmp_path, kind)))
    words = (TEXT, "b d f a", "a c e g i k", "l k j", "c c a b d")
    states = [model.read(text, name) for name, text in enumerate(words)]
    found = fit_laws(states, Options(rank=2, width=4, steps=15, held=1), lambda text: None)
    laws = list(found["law"].values)
    assert laws == ["standing still", "shift", GAIN, IDENTITY, HEADS, NETWORK, BOTH, "whole model"]
    errors = found["error_of_text"].values
    assert errors.shape == (8, 5, LAYERS)
    assert found["beta"].values.shape == (5, LAYERS)
    assert np.all(errors[0] == 1)
    assert errors[-1].max() < 1e-20
    parts = errors[laws.index(GAIN)] - errors[laws.index(HEADS)], errors[laws.index(NETWORK)] - errors[laws.index(BOTH)]
    np.testing.assert_allclose(found["attention_part"].values, np.mean(parts, axis=1))
    half = 2.7764451 * np.std(parts, axis=1, ddof=1) / 5**0.5  # quantile 0.975 of Student's t with four degrees
    np.testing.assert_allclose(found["attention_interval"].values, half, rtol=1e-6)


def test_a_larger_law_is_at_first_the_smaller_one():
    """Parameters are those of the smallest error on the selecting texts, so that no fit is worse there."""
    x, y, z = directions(texts=9), directions(texts=9, seed=1), directions(texts=9, seed=2)
    texts = Texts(torch.stack([x, y, z]), torch.ones(x.shape[:2], dtype=torch.bool))
    given, selecting, options = texts.only(range(6)), texts.only(range(6, 9)), Options(rank=2, width=4, steps=20)
    laws = laws_of(options, 2)
    fitted = fit_all(laws, given, selecting, options)
    for name, law in laws.items():
        if law.smaller:
            larger, smaller = (np.array(errors_of(fitted[key], selecting)) for key in (name, law.smaller))
            assert np.all(larger < smaller + 1e-5)  # float32


def test_no_law_gains_by_another_descent():
    """A law that starts at another one would else have a smaller error by its additional steps alone."""
    x, y = directions(texts=9), directions(texts=9, seed=1)
    texts = Texts(torch.stack([x, y]), torch.ones(x.shape[:2], dtype=torch.bool))
    given, selecting, options = texts.only(range(6)), texts.only(range(6, 9)), Options(rank=2, width=4, steps=10)
    for fitted in fit_all(laws_of(options, 2), given, selecting, options).values():
        before = np.mean(errors_of(fitted, selecting))
        descend(fitted, given, selecting, options)
        assert before - np.mean(errors_of(fitted, selecting)) < CONVERGED


def test_the_command_writes_a_file_and_a_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("meanfield.transformer.fitting.CONVERGED", np.inf)  # one descent
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in (("one", TEXT), ("two", "b d f a"), ("three", "a c e g i k"), ("two more", "l k j")):
        (folder / f"{name}.txt").write_text(text)
    path = tmp_path / "fit.h5"
    model = str(saved(tmp_path, "bert"))
    arguments = ["transformer", "fit", model, "--texts", str(folder), "-o", str(path), "--quiet"]
    sizes = ["--held", "1", "--rank", "2", "--width", "4", "--steps", "5"]
    assert main([*arguments, *sizes]) == 0
    assert "| standing still | 1 | 1 |" in capsys.readouterr().out
    assert path.with_suffix(".png").stat().st_size > 10_000
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.error.dims == ("law", "set", "layer")
        assert list(data.layer) == [1, 2, 3]
        assert float(data.error[0, 0, 0]) == 1
    for wrong, message in (
        (["--held", "3", "--overwrite"], "--held 3: expected at most 2, as there are 4 texts"),
        (["--rank", "0", "--overwrite"], "--rank 0: expected an integer >= 1"),
        ([], "exists already"),
    ):
        assert main([*arguments, *wrong]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
