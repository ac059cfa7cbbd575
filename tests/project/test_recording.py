"""The recorder of all behavior: differences are found, and facts of one execution are not kept."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")
    return importlib.import_module("recording")


def record(recording: ModuleType, folder: Path, last: float, wall_time: float, gray: int, out: str) -> Path:
    """Write a record of one session, with a file of each kind."""
    place = folder / "case"
    place.mkdir(parents=True)
    with h5py.File(place / "one.h5", "w") as file:
        file["time"] = [0.0, 1.0, last]
        file.attrs["end"] = last
        file.attrs["wall_time"] = wall_time
        file.attrs["digest"] = f"of all, with {wall_time}"
        file["checkpoint/bytes"] = np.frombuffer(f"wall time {wall_time}".encode(), dtype=np.uint8)
        file.attrs["title"] = "a title"
        file.attrs["segments"] = json.dumps({"until": 3.0, "start": f"at {wall_time}"})
    Image.fromarray(np.array([[0, gray]], dtype=np.uint8)).save(place / "one.png")
    text = recording.without_timings(f"{out}\none.h5: t = 3 in 7 steps, {wall_time} s\n")
    (place / "texts.json").write_text(json.dumps({"info one.h5": {"status": 0, "out": text, "err": ""}}))
    found = recording.digests(place)
    (folder / "manifest.json").write_text(json.dumps({f"case/{key}": digest for key, digest in found.items()}))
    return folder


def test_differences_are_found(recording: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A unit in the last place, a gray value and a word are differences; the times of commands do not count."""
    one = record(recording, tmp_path / "one", 3.0, 1.25, 200, "state finished")
    same = record(recording, tmp_path / "same", 3.0, 77.5, 200, "state finished")
    assert recording.compare(one, same, []) == 0
    assert capsys.readouterr().out == "0 of 6 digests differ\n"
    other = record(recording, tmp_path / "other", np.nextafter(3.0, 4.0), 1.25, 201, "state killed")
    assert recording.compare(one, other, ["case"]) == 1
    printed = capsys.readouterr().out
    assert "case/one.h5:time: 1 of 3 values, at most 4.44e-16 (relative 1.48e-16)" in printed
    assert "case/one.h5:@end: 1 of 1 values, at most 4.44e-16 (relative 1.48e-16)" in printed
    assert "case/one.png: 1 of 2 pixels, at most 1 of 255" in printed
    assert "case/texts.json:info one.h5: out:\n    -state finished\n    +state killed" in printed
    assert "4 of 6 digests differ" in printed


def test_what_is_gone_differs(recording: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = record(recording, tmp_path / "one", 3.0, 1.25, 200, "")
    other = record(recording, tmp_path / "other", 3.0, 1.25, 200, "")
    manifest = json.loads((other / "manifest.json").read_text())
    del manifest["case/one.png"]
    (other / "manifest.json").write_text(json.dumps(manifest))
    assert recording.compare(one, other, []) == 1
    assert f"case/one.png: only in {one}" in capsys.readouterr().out


def test_each_session_has_a_name_of_its_own(recording: ModuleType) -> None:
    names = [session.name for session in recording.sessions(movies=False)]
    assert len(set(names)) == len(names) > 60
