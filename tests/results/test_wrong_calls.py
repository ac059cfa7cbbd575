"""Wrong calls of the Python names: one line with the argument, its value, and the expected value."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf

CASE = mf.load_case("uniform", {"domain.resolution": 16, "time.end": 0.1, "output.samples": 2})


@pytest.fixture(scope="module")
def result() -> mf.Result:
    return mf.simulate(CASE)


CALLS: list[tuple[Callable[[mf.Result, Path], object], type[Exception], str]] = [
    (
        lambda r, p: mf.load_case(CASE, {"attention.beta": None}),
        mf.CaseError,
        "override attention.beta = None: expected",
    ),
    (lambda r, p: mf.load_case("uniform", None), mf.CaseError, "override null: expected a list of KEY=VALUE"),
    (lambda r, p: mf.load_case("uniform", [3]), mf.CaseError, "override 3: expected KEY=VALUE"),
    (
        lambda r, p: mf.component("kernel")(np.exp),
        TypeError,
        "a kernel is a ufunc: expected a function that is defined by def",
    ),
    (
        lambda r, p: mf.sweep(CASE, {"attention.beta": 4}),
        mf.CaseError,
        "keys['attention.beta'] = 4: expected a list",
    ),
    (lambda r, p: mf.sweep(CASE, {"time.method": "euler"}), mf.CaseError, "keys['time.method'] = 'euler': expected a"),
    (lambda r, p: mf.sweep(CASE, {"attention.beta": [1]}, jobs=0), mf.CaseError, "jobs = 0: expected a whole number"),
    (lambda r, p: mf.sweep(CASE, {"attention.beta": [1]}, jobs="2"), mf.CaseError, "jobs = '2': expected a whole"),
    (
        lambda r, p: mf.sweep(CASE, {"attention.beta": [1]}, scalars={"a": 3}),
        TypeError,
        "scalars['a'] = int: expected a function of (result)",
    ),
    (
        lambda r, p: mf.sweep(CASE, ["attention.beta"]),
        mf.CaseError,
        "keys = ['attention.beta']: expected one or more, such as",
    ),
    (lambda r, p: mf.sweep(CASE, {"attention.beta": []}), mf.CaseError, "keys['attention.beta'] = []: expected a list"),
    (
        lambda r, p: mf.sweep(CASE, {"attention.beta": {"from": 1, "to": 2}}),
        mf.CaseError,
        "keys['attention.beta'] = {'from': 1, 'to': 2}: expected a list",
    ),
    (lambda r, p: mf.simulate(CASE, callbacks=3), TypeError, "callbacks[0] = int: expected a function of (moment)"),
    (
        lambda r, p: mf.simulate(CASE, callbacks=mf.LivePlot),
        TypeError,
        "callbacks[0] = LivePlot: expected an object, as LivePlot(…)",
    ),
    (
        lambda r, p: mf.simulate(CASE, stop="steady"),
        TypeError,
        "stop = 'steady': expected a function of (moment); the case has its conditions in time.stop, such as"
        " {'time.stop': 'steady'}",
    ),
    (lambda r, p: mf.simulate(CASE, callbacks=[3]), TypeError, "callbacks[0] = int: expected a function of (moment)"),
    (
        lambda r, p: mf.simulate(CASE, stop=lambda: True),
        TypeError,
        "stop = <lambda>(): expected a function of (moment)",
    ),
    (lambda r, p: mf.compare(r, 3), TypeError, "3: expected a Result, or the path of a run's file"),
    (
        lambda r, p: mf.branch("noise_above", over="attention.bet"),
        mf.CaseError,
        "over = 'attention.bet': expected one of",
    ),
    (lambda r, p: mf.escape("noise_above", start="saddle"), mf.CaseError, "start = 'saddle': expected one of uniform"),
    (lambda r, p: r.plot(panels=3), TypeError, "panels = 3: expected a name, or a list of names"),
    (lambda r, p: r.plot(ax=1), TypeError, "ax = 1: expected Axes of Matplotlib; panels are named by panels="),
    (
        lambda r, p: r.clusters(np.nan),
        ValueError,
        "time = nan: expected a number from 0 on, the time of the first snap",
    ),
    (
        lambda r, p: r.clusters("end"),
        ValueError,
        "time = 'end': expected a number from 0 on, the time of the first snap",
    ),
    (lambda r, p: mf.resume(r.save(p / "a.h5"), until="end"), mf.CaseError, "until = end: expected a finite time"),
    (lambda r, p: mf.LivePlot(interval=np.nan), ValueError, "interval = nan: expected a number >= 0, finite"),
    (
        lambda r, p: r.export(p / "a.vtkhdf", "vtkhdf"),
        mf.FileError,
        "to = 'vtkhdf': expected a run in a file, to which the export refers; save the result first: result.save(path)",
    ),
    (lambda r, p: r.export(p / "a.csv", "xls"), ValueError, "to = 'xls': expected one of vtkhdf, netcdf, csv"),
]


@pytest.mark.parametrize(("call", "error", "message"), CALLS, ids=[message for _, _, message in CALLS])
def test_wrong_calls(
    call: Callable[[mf.Result, Path], object], error: type[Exception], message: str, result: mf.Result, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        call(result, tmp_path)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_that_exists_is_refused_with_the_argument_that_replaces_it(result, tmp_path):
    """The message does not name a command's option; a notebook cell that is run again may replace its file."""
    page, other = tmp_path / "page.html", tmp_path / "other.h5"
    other.write_text("no sweep")
    result.view(page)
    with pytest.raises(
        mf.FileError, match=r"page.html: exists already; overwrite=True replaces it, another path writes"
    ):
        result.view(page)
    assert result.view(page, overwrite=True) == page
    with pytest.raises(mf.FileError, match=r"other.h5: .*overwrite=True replaces it"):
        mf.sweep(CASE, {"attention.beta": [1]}, path=other)
