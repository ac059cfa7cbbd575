"""Laws fitted to hidden states: planted numbers are recovered, each law contains the one before, the file and
refusals."""

import numpy as np
import pytest
import xarray
from support.tiny_transformers import LAYERS, TEXT, saved

torch = pytest.importorskip("torch")

from meanfield.cli.parser import main  # noqa: E402
from meanfield.transformer.fitting import FittedLayer, Options, Texts, descend, errors_of, fit_laws, laplacian  # noqa: E402  # noqa: E402
from meanfield.transformer.model import load_model  # noqa: E402


def directions(texts=4, n=12, d=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(texts, n, d, generator=generator), dim=-1)


def test_planted_numbers_are_found():
    planted, x = [FittedLayer(5), FittedLayer(5)], directions()
    present = torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        for law, beta, value in zip(planted, (3.0, 1.5), (0.7, -0.4), strict=True):
            law.beta.fill_(beta)
            law.value.fill_(value)
        first = planted[0](x, present)
        texts = Texts(torch.stack([x, first, planted[1](first, present)]), present)
    found = [FittedLayer(5), FittedLayer(5)]
    descend(found, texts, Options(steps=400))
    for law, true in zip(found, planted, strict=True):
        assert law.beta.item() == pytest.approx(true.beta.item(), rel=0.02)
        assert law.value.item() == pytest.approx(true.value.item(), rel=0.02)
    assert max(errors_of(found, texts)) < 1e-3


def test_a_token_that_stands_still_has_error_one():
    x, y = directions(), directions(seed=1)
    texts = Texts(torch.stack([x, y]), torch.ones(x.shape[:2], dtype=torch.bool))
    assert errors_of([FittedLayer(5)], texts) == pytest.approx([1.0], rel=1e-6)  # the velocity is zero


def test_absent_tokens_are_not_seen():
    torch.manual_seed(0)
    law, x = FittedLayer(5, rank=2, diffusion=True, width=3), directions()
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
    law, x = FittedLayer(5, causal=True), directions()
    present = torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        law.value.fill_(1.0)
        before = law(x, present)
        x[:, -1] = -x[:, -1]
        after = law(x, present)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])


def test_the_laplacian_stops_at_the_ends_of_each_text():
    x = directions(texts=2, n=6)
    present = torch.ones(2, 6, dtype=torch.bool)
    present[1, 4:] = False
    found = laplacian(x, present)
    for k, n in ((0, 6), (1, 4)):
        matrix = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
        matrix -= np.diag(matrix.sum(axis=1))
        np.testing.assert_allclose(found[k, :n], matrix @ x[k, :n].numpy(), atol=1e-6)  # float32


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_each_law_holds_the_one_before_it(kind, tmp_path):
    model = load_model(str(saved(tmp_path, kind)))
    states = [model.read(text, name) for name, text in enumerate((TEXT, "b d f a", "a c e g i k"))]
    found = fit_laws(states, Options(rank=2, width=4, steps=15, held=1), lambda text: None)
    assert len(found["law"].values) == 7
    assert found["error"].values.shape == (7, 2, LAYERS)
    fitted = found["error"].values[:, 0].mean(axis=1)
    assert np.all(np.diff(fitted) < 1e-6)  # float32
    assert fitted[0] == 1
    assert fitted[-1] < 1e-20


def test_the_command_writes_a_file_and_a_figure(tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in (("one", TEXT), ("two", "b d f a"), ("three", "a c e g i k")):
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
        (["--held", "3", "--overwrite"], "--held 3: expected fewer than the 3 texts"),
        (["--rank", "0", "--overwrite"], "--rank 0: expected an integer >= 1"),
        ([], "exists already"),
    ):
        assert main([*arguments, *wrong]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
