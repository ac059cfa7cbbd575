"""Command `info` on a running, killed, interrupted, failed and finished file."""

import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
import pytest

from meanfield.analysis.info import describe, format_text
from meanfield.case.errors import CaseError
from meanfield.cli.kinds import require_kind
from meanfield.cli.parser import main
from meanfield.runtime.segments import next_case, next_segment, read_segments, resume_advice, with_segment
from solvers.io.layout import Points
from solvers.io.run_file import Column, FileError, RunFile, read
from solvers.mesh.mesh import circle

CASE = """
title = "Two clusters"
[domain]
manifold = "circle"
resolution = 16
[attention]
beta = 9.0
normalization = "softmax"
[stabilizers]
noise = 0.25
[initial]
kind = "perturbed"
amplitude = 0.1
degrees = 4
[time]
end = 5.0
"""
MESH = circle(16)


def create(path, case=CASE):
    return RunFile.create(
        path,
        MESH,
        [Column("mass"), Column("clusters")],
        {"case": case, "versions": "meanfield 1.2.3", "start": datetime.now(UTC).isoformat()},
    )


def write(file):
    for k in range(3):
        file.write_sample(k, {"mass": 1 - k * 1e-13, "clusters": 5 - k})
        file.write_snapshot(k, np.linspace(0.5, 2, 16) + k)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def test_advised_commands_quote_paths_with_blanks(tmp_path):
    path = tmp_path / "two words.h5"
    with create(path) as file:
        write(file)
        file.close(wall_time=12.5)
    assert shlex.split(format_text(describe(path)).split("plot it: ")[1]) == ["meanfield", "plot", str(path)]
    assert shlex.split(resume_advice({}, path).split(": ")[1]) == ["meanfield", "resume", str(path)]
    with pytest.raises(CaseError) as raised:
        require_kind(str(path), "case")
    assert shlex.split(str(raised.value).split("resume it with: ")[1]) == ["meanfield", "resume", str(path)]


def test_finished(path):
    with create(path) as file:
        write(file)
        file.close(wall_time=12.5)
    facts = describe(path)
    expected = {
        "title": "Two clusters",
        "state": "finished",
        "manifold": "circle",
        "resolution": 16,
        "cells": 16,
        "beta": 9.0,
        "noise": 0.25,
        "snapshots": 3,
        "samples": 3,
        "first_time": 0.0,
        "last_time": 2.0,
        "end_time": 5.0,
        "wall_time": 12.5,
        "minimum_density": 2.5,
        "maximum_density": 4.0,
        "clusters": 3.0,
        "versions": "meanfield 1.2.3",
        "writer": None,
        "file_size": path.stat().st_size,
    }
    assert {name: facts[name] for name in expected} == expected
    assert facts["mass_drift"] == pytest.approx(2e-13, rel=1e-3)  # 1 - 2e-13 is rounded to 1e-16
    assert json.loads(json.dumps(facts)) == facts
    assert format_text(facts) == "\n".join(
        [
            f"file      {path}, {facts['file_size'] / 1e3:.1f} kB",
            "title     Two clusters",
            "state     finished",
            "domain    circle, resolution 16, 16 cells",
            "physics   β = 9, softmax attention, noise 0.25, from perturbed",
            "time      2 of 5, in 12.5 s",
            "stored    3 snapshots, 3 samples of the diagnostics",
            "density   2.5 to 4 in the last snapshot, 3 clusters, mass changed by at most 2.0e-13",
            "versions  meanfield 1.2.3",
            f"next      plot it: meanfield plot {path}",
        ]
    )


@pytest.mark.parametrize(
    ("reason", "message", "line"),
    [
        ("interrupted", "by Ctrl-C", "continue from the last checkpoint: meanfield resume"),
        ("failed", "density not finite at t = 2.1", "plot what led to it: meanfield plot"),
    ],
)
def test_stopped(path, reason, message, line):
    with create(path) as file:
        write(file)
        file.close(stop_reason=reason, message=message)
    text = format_text(describe(path))
    assert f"state     {reason}: {message}\n" in text
    assert f"next      {line} {path}" in text


@pytest.mark.parametrize(("more", "expected"), [("", True), ("[handover]", False)])
def test_what_remains_of_a_run_to_any_time_is_not_given(path, more, expected):
    """The remaining time by the steps of the density would be centuries; atoms take seconds."""
    with create(path, CASE + more) as file:
        write(file)
        assert (describe(path)["remaining"] is not None) == expected


def test_running_then_killed(path):
    code = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from analysis.test_info import create, write
file = create(Path(sys.argv[1]))
write(file)
print(flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", code, str(path), str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        running = describe(path)
        process.kill()
    assert (running["state"], running["last_time"]) == ("running", 2.0)
    assert 0 < running["remaining"] < 1.5 * 60  # 3 of 5 remain, and the run cannot have taken a minute
    assert f"state     running: by process {process.pid} on " in format_text(running)
    killed = describe(path)
    assert killed["state"] == "killed"
    assert f"meanfield resume {path}" in format_text(killed)
    assert killed["remaining"] is None
    for name in ("snapshots", "samples", "mass_drift", "minimum_density"):
        assert killed[name] == running[name]


def test_settings_and_end_are_those_of_the_last_segment(path):
    with create(path) as file:
        write(file)
    before = read(path).attributes
    changes = ["attention.beta=4", "time.end=8"]
    segments = read_segments(before)
    case = next_case(segments, changes)
    segment = next_segment(segments, case, changes, 2.0, None, "meanfield resume")
    RunFile.append(path, attributes=with_segment(before, segment)).close()
    facts = describe(path)
    assert (facts["beta"], facts["end_time"]) == (4.0, 8.0)
    assert [segment["from_time"] for segment in facts["segments"]] == [0.0, 2.0]
    assert json.loads(json.dumps(facts)) == facts
    text = format_text(facts)
    assert "time      2 of 8" in text
    assert "resumed   once; attention.beta=4 time.end=8 from t = 2\n" in text
    assert len(text.splitlines()) == 11


def test_layer_is_told_in_words_where_its_case_can_be_read(path):
    heads = CASE.replace("beta = 9.0", "beta = 9.0\nheads = [{}, {}]").replace("noise = 0.25", 'layer_norm = "cod"')
    for case, words in [
        (heads, "β = 9, softmax attention, 2 heads, CoD layer norm, from perturbed"),
        (heads.replace("heads", "minds"), "β = 9, softmax, from perturbed"),  # from a later version
    ]:
        with RunFile.create(path, MESH, attributes={"case": case}, overwrite=True) as file:
            file.close()
        assert f"physics   {words}\n" in format_text(describe(path))


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.26, "1.3 s"), (59.9, "59.9 s"), (61, "0:01:01"), (90061.2, "25:01:01")]
)
def test_durations(path, seconds, text):
    with create(path) as file:
        write(file)
        file.close(wall_time=seconds)
    assert f"time      2 of 5, in {text}\n" in format_text(describe(path))


def test_little_to_tell(path):
    """The file has no snapshots, case or diagnostics, as one written with `solvers` alone."""
    with RunFile.create(path, MESH) as file:
        assert describe(path)["state"] == "running"
        file.close()
    facts = describe(path)
    assert (facts["title"], facts["last_time"], facts["mass_drift"], facts["clusters"]) == (None,) * 4
    assert "time      no snapshot yet" in format_text(facts)
    with RunFile.append(path) as file:
        file.write_snapshot(0.0, np.ones(16))
        file.write_snapshot(1.0, np.full(16, 1.5))
    assert describe(path)["mass_drift"] == pytest.approx(np.pi, rel=1e-15)


def test_particles(path):
    case = CASE.replace("resolution = 16", "dimension = 5\ncount = 3").replace('"circle"', '"particles"')
    with RunFile.create(path, Points(np.ones(3) / 3, 5), [Column("mass"), Column("clusters")], {"case": case}) as file:
        file.write_sample(0, {"mass": 1, "clusters": 2})
        file.write_snapshot(0, np.eye(5)[:3])
        file.close()
    text = format_text(describe(path))
    assert "domain    3 particles in 5 dimensions\n" in text
    assert "tokens    2 clusters\n" in text
    assert "density" not in text
    assert "mass" not in text


@pytest.mark.parametrize(
    ("count", "line"),
    [(4, "some cluster is wider than handover.spread"), (5, "more than 4 clusters in 64 dimensions\n")],
)
def test_why_tokens_are_not_atoms_yet(path, count, line):
    case = CASE.replace("resolution = 16", "dimension = 64\ncount = 5").replace('"circle"', '"particles"')
    case += "[handover]\n"
    with RunFile.create(path, Points(np.ones(5) / 5, 64), [Column("clusters")], {"case": case}) as file:
        file.write_sample(0, {"clusters": count})
        file.write_snapshot(0, np.eye(64)[:5])
        file.close()
    assert f"atoms     not yet: {line}" in format_text(describe(path))


def test_handover(path):
    with create(path) as file:
        write(file)
    assert "atoms" not in format_text(describe(path))
    marks = {"hand_over_time": 1.5, "hand_over_error": 2e-3, "hand_over_angle": np.nan}
    RunFile.append(path, attributes=marks).close()
    facts = describe(path)
    assert (facts["hand_over_time"], facts["hand_over_angle"]) == (1.5, None)
    assert json.loads(json.dumps(facts)) == facts
    # Clusters that are near count as one, atoms merge only when they touch.
    assert "3 atoms, mass" in format_text(facts)
    expected = "atoms from t = 1.5, which merge below 1e-4 rad, estimated handover error 2.0e-03"
    assert expected in format_text(facts)
    RunFile.append(path, attributes={"hand_over_error": np.nan, "hand_over_angle": 1e-5}).close()
    expected = "no merger follows by the end, estimated handover error 1.0e-05 rad"
    assert expected in format_text(describe(path))


@pytest.mark.parametrize("name", ["density", "cell_center", "cell_area"])
def test_a_file_without_its_cells_is_damaged(path, name):
    with create(path) as file:
        write(file)
    with h5py.File(path, "a") as file:
        del file[name]
    with pytest.raises(FileError, match=f"damaged: it has no dataset {name}"):
        describe(path)


LOOKING = ("info", "plot", "mergers", "compare", "resume", "movie", "view")


@pytest.mark.parametrize(
    ("attributes", "refused", "expected"),
    [
        ({}, ("plot", "mergers", "resume", "movie", "view"), "it was not written by `meanfield run`"),
        ({"case": "x = ["}, LOOKING, "damaged"),
        ({"case": CASE, "segments": "no JSON"}, ("info", "resume"), "attribute segments is damaged"),
    ],
    ids=["of solvers alone", "no case", "no segments"],
)
def test_files_with_no_case_that_can_be_read_are_refused_in_a_line(path, capsys, attributes, refused, expected):
    with RunFile.create(path, MESH, attributes=attributes) as file:
        file.write_snapshot(0.0, np.ones(16))
        file.close()
    for command in refused:
        assert main([command, str(path)]) == 2, command
        line = capsys.readouterr().err.strip()
        assert expected in line
        assert "\n" not in line


def test_snapshots_that_are_not_there_are_damage(path):
    with create(path) as file:
        write(file)
    with h5py.File(path, "r+") as file:
        file["density"].resize(1, axis=0)
    with pytest.raises(FileError, match="damaged"):
        read(path).snapshot(-1)


def test_no_run_file(path):
    with pytest.raises(FileError, match="No such file"):
        describe(path)
