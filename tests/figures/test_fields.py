"""Files of solvers.record: described and drawn, whatever the mesh and however many fields."""

import numpy as np
import pytest

from meanfield.analysis.info import describe, format_text
from meanfield.export.formats import export
from meanfield.figures.fields import chart
from meanfield.figures.figure import plot
from solvers.io.run_file import FileError
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle
from solvers.mesh.product import box, torus
from solvers.recording.record import record
from solvers.timestepping.state import State

SPACES = {
    "interval": interval(0.0, 1.0, 16), "circle": circle(12), "box": box((6, 5), (1.0, 2.0)),
    "body": box((4, 4, 3), (1.0, 1.0, 1.0)), "torus": torus((6, 5)), "icosphere": icosphere(1),
}  # fmt: skip


def written(path, mesh, fields):
    shape = (len(fields), mesh.cells) if len(fields) > 1 else (mesh.cells,)
    with record(path, mesh, every=1.0, fields=fields, diagnostics={"largest": lambda u: u.max()}) as recorder:
        for time in range(3):
            state = State(float(time), np.random.default_rng(time).random(shape))
            recorder.begin(state)
    return path


@pytest.mark.parametrize("name", SPACES)
def test_a_solution_is_described_and_drawn(name, tmp_path):
    fields = ("u", "v") if name in ("box", "interval") else ("u",)
    path = written(tmp_path / "run.h5", SPACES[name], fields)
    text = format_text(describe(path))
    assert f"{SPACES[name].cells} cells" in text
    assert f"fields    {', '.join(fields)}" in text
    assert plot(path, tmp_path / "run.png").stat().st_size > 5000


def test_charts_locate_cells():
    places, labels = chart(circle(4).centers)
    np.testing.assert_allclose(places[:, 0], [45, 135, 225, 315])
    assert labels == ["angle (degrees)"]
    places, _ = chart(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    np.testing.assert_allclose(places, [[0, 90], [90, 0]])


def test_what_needs_no_export_says_so(tmp_path):
    path = written(tmp_path / "run.h5", SPACES["box"], ("u",))
    with pytest.raises(FileError, match="it is netCDF-4 itself"):
        export(path, "netcdf")
