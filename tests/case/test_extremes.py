"""Numbers whose squares or quotients overflow: refused before anything is computed; ends that are set."""

import pytest

from meanfield.case.errors import CaseError
from meanfield.case.load import parse

CASE = """
[domain]
manifold = "circle"
resolution = 32
[attention]
beta = 1.0
[initial]
kind = "uniform"
[time]
end = 10.0
[output]
spacing = "log"
first = 1.0
"""
TOKENS = [
    'domain={manifold = "particles", dimension = 2, count = 4}',
    'initial={kind = "uniform"}',
    'stabilizers.layer_norm="post"',
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["attention.beta=5e-324"], "attention.beta = 5e-324: expected 0 or a size from 1e-150 to 1e+150"),
        (["attention.beta=1e-310"], "attention.beta = 1e-310: expected 0 or a size"),
        (
            ["time.end=1.7e308", "output.first=1e-310"],
            "time.end = 1.7e+308: expected 0 or a size from 1e-150 to 1e+300",
        ),
        (["output.first=1e-310"], "output.first = 1e-310: expected 0 or a size"),
        (["stabilizers.noise=1e-200"], "stabilizers.noise = 1e-200: expected 0 or a size"),
        ([*TOKENS, "sequence.length=1e-300"], "sequence.length = 1e-300: expected 0 or a size"),
    ],
)
def test_extremes_are_refused(changes: list[str], message: str) -> None:
    with pytest.raises(CaseError) as caught:
        parse(CASE, changes)
    assert str(caught.value).startswith(message)


def test_long_times_are_allowed() -> None:
    assert parse(CASE, ["time.end=1e290"]).time.end == 1e290


@pytest.mark.parametrize("end", [1.0, 0.5, 1])
def test_an_earlier_end_has_a_schedule_of_its_own(end: float) -> None:
    case = parse(CASE, [f"time.end={end}"])
    assert (case.time.end, case.output.first) == (end, 1e-4 * end)
    assert parse(CASE, ["time.end=5"]).output.first == 1.0


def test_a_first_that_is_set_beside_an_end_is_kept() -> None:
    with pytest.raises(CaseError, match=r"output.first = 2.0: expected a number > 0 and < time.end = 1.0"):
        parse(CASE, ["time.end=1.0", "output.first=2.0"])
