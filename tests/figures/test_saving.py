"""The file of a figure: either complete or absent, and files of other programs are not replaced."""

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from meanfield.figures.saving import SUFFIXES, figure_target, save
from solvers.io.repair import FileError


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_own_figures_are_replaced(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"run{suffix}"
    save(Figure(), figure_target(target))
    save(Figure(), figure_target(target))
    mine = tmp_path / f"mine{suffix}"
    Figure().savefig(mine)
    before = mine.read_bytes()
    with pytest.raises(FileError, match="exists already and was not created by meanfield"):
        figure_target(mine)
    assert mine.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == [mine.name, target.name]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    for victim in ("there", "nowhere"):
        (tmp_path / "there").write_text("mine")
        link = tmp_path / f"{victim}.png"
        link.symlink_to(victim)
        with pytest.raises(FileError, match="exists already"):
            figure_target(link)
        assert link.is_symlink()


def test_a_figure_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(FileError, match=r"run\.png: cannot write it: No space left on device"):
        save(Figure(), tmp_path / "run.png")
    assert os.listdir(tmp_path) == []


def test_text_of_a_figure_stays_text(tmp_path: Path) -> None:
    figure = Figure()
    figure.text(0.1, 0.2, r"$H=\int\rho\,\log\rho$")
    figure.text(0.1, 0.5, "entropy of the density")
    pdf = save(figure, tmp_path / "run.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf  # an embedded TrueType font
    assert ">entropy of the density</text>" in save(figure, tmp_path / "run.svg").read_text()


def test_a_png_file_has_the_texts_as_description(tmp_path: Path) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set(title="clusters over time", xlabel="time t", ylabel="number", xticks=[0, 1])
    axes.plot([0, 1], [7, 6], label="β = 9")
    axes.legend()
    axes.text(0.5, 0.5, "hidden", visible=False)
    with Image.open(save(figure, tmp_path / "run.png")) as image:
        assert sorted(image.info["Description"].splitlines()) == ["clusters over time", "number", "time t", "β = 9"]


def test_characters_that_the_font_lacks_are_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure()
    figure.suptitle("β = 3, 聚类")
    target = save(figure, tmp_path / "run.png")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{target}: the font lacks 聚类;")
