"""Instances of tests that the default run selects."""

import re
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import pytest
from support.sampling import hold_each_value, spread_evenly

ROOT = Path(__file__).parents[2]
PARAMETERS = product("abc", range(5), (True, False))


@pytest.mark.parametrize(("number", "count"), [(10, 3), (7, 7), (2, 5), (1, 1)])
def test_instances_are_spread_evenly(number, count):
    chosen = sorted(spread_evenly(number, count))
    assert len(chosen) == min(number, count)
    assert 0 <= chosen[0] <= chosen[-1] < number
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_each_sampled_test_keeps_an_instance():
    counts = [
        int(count)
        for path in (ROOT / "tests").rglob("test_*.py")
        for count in re.findall(r"mark\.sampled\((\d+)\)\n", path.read_text("utf-8"))
    ]
    assert len(counts) > 20
    assert min(counts) >= 1


def test_each_value_is_held():
    """The longest list of values has as many values as instances are selected."""
    instances = [dict(zip(("letter", "digit", "flag"), values, strict=True)) for values in PARAMETERS]
    chosen = [instances[k] for k in hold_each_value(instances)]
    for name in ("letter", "digit", "flag"):
        assert {one[name] for one in chosen} == {one[name] for one in instances}
    assert len(chosen) == 5


@pytest.mark.sampled
@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("digit", range(4))
def test_instance(digit, flag):
    """Do nothing: the next test counts the selected instances, four of eight by default."""


@pytest.mark.parametrize(("options", "number"), [(["-k", "instance and True"], 4), ([], 4), (["--exhaustive"], 8)])
def test_selected_instances(options, number):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-n0", "-p", "no:cacheprovider", *options, __file__]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert found.count("::test_instance[") == number, found
