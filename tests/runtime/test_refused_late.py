"""Errors that show only when a case is set up: refused in a line, before anything is computed."""

import re

import numpy as np
import pytest
from support.status import NON_FINITE, run

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.cli.parser import main
from meanfield.simulation import set_up

CASE = """
[domain]
{domain}
[attention]
beta = 2.0
[initial]
kind = "points"
points = [[0.5, 0.8], [0.5, -0.84]]
[time]
end = 4.0
"""
CIRCLE = 'manifold = "circle"\nresolution = 32'
FREE = 'manifold = "free_radius_circle"\nresolution = 16\nradii = 12\ninnermost = 0.7\noutermost = 8.0'
LINE = 'manifold = "line"\nresolution = 96'
SPHERE = 'manifold = "sphere"\nresolution = 16'
UNIFORM = "initial={kind = 'uniform'}"
LARGE = np.diag([1e99, 1.0]).tolist()
NORMS = {FREE: "pre", LINE: "none"}
REFUSED = {
    "matrix": (CIRCLE, f"attention.key={LARGE}", "attention.beta = 2.0: expected beta times the norm"),
    "random": (CIRCLE, "attention.query={ensemble = 'goe', scale = 1e9}", "attention.beta = 2.0: expected beta times"),
    "tokens": ('manifold = "particles"', f"attention.key={LARGE}", "attention.beta = 2.0: expected beta times"),
    "window": (CIRCLE, "attention.window=1e-300", "attention.window"),
    "scale": (CIRCLE, "stabilizers.scale=1e300", "attention.beta = 2.0: expected a number <= 100000"),
    "radius": (FREE, "initial.radius=0.001", "initial.radius = 0.001: expected"),
    "scaled": (CIRCLE, "stabilizers.scale=1e300", "times the square of stabilizers.scale = 1e+300"),
    "outside": (LINE, "initial={kind = 'gaussian', mean = 100.0}", 'initial.kind = "gaussian": expected numbers'),
    "away": (FREE, "initial={kind = 'gaussian', mean = [1e3, 0]}", 'initial.kind = "gaussian": expected numbers'),
    "edge": (SPHERE, f"attention.kernel=windowed attention.window=0.04 {UNIFORM}", "attention.window = 0.04: expected"),
    "opposite": (
        CIRCLE,
        "attention.kernel=windowed attention.window=1.5 attention.beta=20 attention.key=[[-1,0],[0,-1]]",
        "attention.window = 1.5: expected beta times the scales of Q and K >= -8.609",
    ),
    "range": (
        CIRCLE,
        "attention.kernel=gaussian attention.key=[[1,0],[0,40]]",
        "expected a range of log f(Ky) up to 600",
    ),
    "kernel": (
        CIRCLE,
        "attention.normalization=unnormalized attention.key=[[30,1],[0,30]] attention.query=[[30,1],[0,30]]",
        "attention.beta = 2.0: expected a kernel up to e^700",
    ),
    "file": (CIRCLE, "attention.normalization=unnormalized attention.file=large.npz", "expected a kernel up to e^700"),
    "noise": (CIRCLE, "stabilizers.noise=1e300", "stabilizers.noise = 1e+300: expected a number <= 1e+06"),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["run", "check"])
def test_one_line_and_status_2(command, name, tmp_path, capsys, monkeypatch):
    domain, setting, line = REFUSED[name]
    settings = [f"stabilizers.layer_norm={NORMS[domain]}"] if domain in NORMS else []
    settings += re.split(r" (?=[a-z]+[.=])", setting)
    monkeypatch.chdir(tmp_path)
    np.savez("large.npz", key=np.diag([900.0, 1.0])[None])
    path, file = tmp_path / "case.toml", tmp_path / "run.h5"
    path.write_text(CASE.format(domain=domain), encoding="utf-8")
    target = ["-o", str(file)] if command == "run" else []
    assert main([command, str(path), *target, *(word for pair in settings for word in ("--set", pair))]) == 2
    message = capsys.readouterr().err.strip()
    assert line in message
    assert "\n" not in message
    assert not file.exists()


def test_initial_state_that_cannot_be_is_a_case_error():
    problem = set_up(parse(CASE.format(domain=FREE), ["stabilizers.layer_norm=pre", "initial.radius=0.001"]))
    for _ in range(2):
        with pytest.raises(CaseError, match=r"initial\.radius"):
            problem.initial()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_layer_that_is_not_finite_stops_the_run(tmp_path, capsys):
    network = "{inner = [[1e150, 0], [0, 1]], bias = [1e150, 1], outer = [[1e150, 0], [0, 1]]}"
    settings = ["time.method=layers", "time.layers=2", "time.step=1e20", f"feed_forward={network}"]
    assert run(parse(CASE.format(domain=CIRCLE), settings), tmp_path / "run.h5", quiet=True) == NON_FINITE
    assert "the map is not finite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"), [([-1.0] * 100_001, "nowhere negative"), ([1.0] * 7, "a number for each cell")]
)
def test_check_refuses_a_large_density_of_the_user(values, message, tmp_path, monkeypatch, capsys):
    """A check refuses the same input as a run; a built-in density with as many cells is not built."""
    monkeypatch.chdir(tmp_path)
    np.save("density.npy", values)
    (tmp_path / "case.toml").write_text(
        CASE.format(domain='manifold = "circle"\nresolution = 100001').replace(
            'kind = "points"\npoints = [[0.5, 0.8], [0.5, -0.84]]', 'kind = "array"\nfile = "density.npy"'
        )
    )
    assert main(["check", "case.toml"]) == 2
    assert message in capsys.readouterr().err
