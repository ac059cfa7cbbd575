"""`meanfield view` of particles: a density on the circle or sphere, with the clusters that were recorded."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest
from figures.test_particle_figures import run_file

from meanfield.figures.particles.tokens import FEW_CELLS
from meanfield.view.page import view
from solvers.io.run_file import FileError


@pytest.mark.parametrize("d", [2, 3])
def test_pages_show_tokens_as_a_density_and_say_so(tmp_path: Path, d: int, capsys: pytest.CaptureFixture[str]) -> None:
    page = view(run_file(tmp_path / "run.h5", d, 12, "pre"), tmp_path / "run.html").read_text(encoding="utf-8")
    said = "12 tokens are shown as a density, each in the cell that it lies in"
    assert said in capsys.readouterr().err
    assert f"{said}." in page
    held = json.loads(re.search(r'id="run">(.*?)</script>', page, re.DOTALL)[1])
    assert held["stage"] == ("ring" if d == 2 else "globe")
    assert [mark[-1] for mark in held["marks"][1]] == pytest.approx([1 / d] * d, abs=1e-5)  # five digits are written
    assert held["panels"][0]["title"] == "radius within which tokens are"
    levels = zlib.decompress(base64.b64decode(re.search(r'id="levels">(.*?)</script>', page, re.DOTALL)[1]))
    assert len(levels) == 3 * held["cells"] * held["bytes"]
    assert d == 3 or held["cells"] == FEW_CELLS


def test_tokens_in_many_dimensions_have_no_page(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match="tokens in 16 dimensions; a page shows 2 or 3, `meanfield plot` and `movie` any"
    ):
        view(run_file(tmp_path / "run.h5", 16, 3), tmp_path / "run.html")
    assert not (tmp_path / "run.html").exists()
