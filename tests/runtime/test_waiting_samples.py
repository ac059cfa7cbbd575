"""Samples of a run whose diagnostics are computed together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from meanfield.case.load import load
from meanfield.diagnostics.table import DiagnosticsTogether
from meanfield.running import run
from solvers.io.reading import read

CASE = ["domain.resolution=14", "time.end=8", "output.samples=40", "output.snapshots=3"]


def test_what_fails_is_raised_at_its_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples before the failing one are written, however slow the machine is."""
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_COST", np.inf)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_WAIT", np.inf)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_SAMPLES", 4)
    path, times = tmp_path / "run.h5", list[int]()
    run(load("metastable_sphere", CASE), path, quiet=True)
    whole, values = read(path), DiagnosticsTogether.values

    def failing(self: DiagnosticsTogether, sample: object, *more: object) -> object:
        if max(sample.times) >= 2.0:  # type: ignore[attr-defined]
            raise ArithmeticError("of a test")
        times.append(len(sample.times))  # type: ignore[attr-defined]
        return values(self, sample, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(DiagnosticsTogether, "values", failing)
    with pytest.raises(ArithmeticError):
        run(load("metastable_sphere", CASE), path, quiet=True, overwrite=True)
    found = read(path)
    assert max(times) > 1
    assert found.sample_times.tolist() == [time for time in whole.sample_times if time < 2.0]
