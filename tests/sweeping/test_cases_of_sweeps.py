"""Sweep files: their points, and one clear line for each impossible point."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from meanfield.case.errors import CaseError
from meanfield.case.load import load, parse
from meanfield.case.overrides import inline
from meanfield.sweeping.case import load_sweep, parse_sweep

SWEEPS = Path(__file__).parents[2] / "sweeps"


def sweep(keys: str, more: str = "", case: str = "uniform"):
    return parse_sweep(f'case = "{case}"\n{more}\n[keys]\n{keys}\n')


def values(keys: str, more: str = "", case: str = "uniform"):
    return [tuple(point.values.values()) for point in sweep(keys, more, case).points]


def test_a_grid_is_every_combination_and_its_last_key_varies_fastest():
    assert values('"attention.beta" = [1, 4]\n"time.end" = [2.0, 3.0]') == [(1, 2.0), (1, 3.0), (4, 2.0), (4, 3.0)]


def test_zipped_keys_go_together():
    assert values('"attention.beta" = [1, 4]\n"time.end" = [2.0, 3.0]', 'design = "zip"') == [(1, 2.0), (4, 3.0)]


@pytest.mark.parametrize(
    "keys", ['"attention.beta" = [2, 3]', "attention.beta = [2, 3]", "attention = {beta = [2, 3]}"]
)
def test_dotted_keys_are_quoted_or_not(keys: str):
    assert [point.case.attention.beta for point in sweep(keys).points] == [2, 3]


def test_ranges_are_even_or_by_a_factor_and_meet_their_ends():
    found = values('"attention.beta" = {from = 10, to = 1000, count = 5, spacing = "log"}')
    assert np.ravel(found) == pytest.approx(10 ** np.linspace(1, 3, 5), rel=1e-14)  # powers round in the last place
    assert found[-1] == (1000,)
    assert np.ravel(values('"attention.beta" = {from = 0.5, to = 1.5, count = 3}')).tolist() == [0.5, 1.0, 1.5]
    assert values('"attention.beta" = {from = 2, to = 9, count = 1}') == [(2,)]


def test_ranges_of_whole_numbers_stay_whole():
    found = sweep('"domain.resolution" = {from = 16, to = 128, count = 4, spacing = "log"}').points
    assert [point.case.domain.resolution for point in found] == [16, 32, 64, 128]


def test_random_points_are_within_and_the_same_again():
    keys = '"attention.beta" = {from = 1.0, to = 100.0, spacing = "log"}\n"domain.resolution" = [16, 32]'
    more = 'design = "random"\npoints = 400\nseed = 3'
    found = np.array(values(keys, more))
    assert np.array_equal(found, values(keys, more))
    assert not np.array_equal(found, values(keys, more.replace("3", "4")))
    assert found[:, 0].min() >= 1.0
    assert found[:, 0].max() <= 100.0
    # log-uniform: half below 10, within four standard deviations of the mean of 400 coin tosses
    assert abs((found[:, 0] < 10).mean() - 0.5) < 4 * 0.5 / np.sqrt(400)
    assert abs((found[:, 1] == 16).mean() - 0.5) < 4 * 0.5 / np.sqrt(400)


def test_whole_sections_come_before_their_keys():
    """A seed applies to its initial density, wherever both are in the file."""
    keys = '"initial.seed" = [5]\ninitial = [{kind = "perturbed", amplitude = 0.1}]'
    assert sweep(keys).points[0].case.initial.seed == 5


def test_fixed_keys_hold_for_all_points():
    found = parse_sweep('case = "uniform"\n[keys]\nattention.beta = [1, 2]\n[set]\ntime.end = 7.0\n').points
    assert [point.case.time.end for point in found] == [7.0, 7.0]


def test_points_are_what_set_makes_of_the_case():
    point = sweep('"attention.beta" = [2.5]\n"initial.seed" = {seeds = 3}', case="metastable_circle").points[2]
    assert point.overrides == ("attention.beta=2.5", "initial.seed=2")
    assert point.case == load("metastable_circle", point.overrides)


def test_cases_may_be_tables_or_lie_beside_the_sweep(tmp_path: Path):
    table = {"domain": {"manifold": "circle", "resolution": 16}, "attention": {"beta": 1.0}}
    text = '[domain]\nmanifold = "circle"\nresolution = 16\n[attention]\nbeta = 1.0\n'
    text += '[initial]\nkind = "uniform"\n[time]\nend = 1.0\n'
    (tmp_path / "own.toml").write_text(text)
    (tmp_path / "sweep.toml").write_text('case = "own.toml"\n[keys]\nattention.beta = [1.0]\n')
    assert load_sweep(tmp_path / "sweep.toml").points[0].case == parse(text)
    whole = {**table, "initial": {"kind": "uniform"}, "time": {"end": 1.0}}
    assert parse_sweep(f"case = {inline(whole)}\n[keys]\nattention.beta = [1.0]\n").points[0].case == parse(text)


def test_identity_is_that_of_the_cases():
    one = sweep("attention.beta = [1.0, 2.0]")
    assert one.identity == sweep("attention.beta = {from = 1.0, to = 2.0, count = 2}", 'title = "other"').identity
    assert one.identity != sweep("attention.beta = [2.0, 1.0]").identity
    assert one.identity != parse_sweep(one.text + "[keep]\nfiles = true\n").identity


REFUSED = {  # a whole file
    "[keys]\nattention.beta = [1]": "case: missing; expected the name of a shipped case",
    "case = 3\n[keys]\nattention.beta = [1]": "case = 3: expected the name of a shipped case",
    'case = "unifrom"\n[keys]\nattention.beta = [1]': 'did you mean "uniform"?',
    'case = "uniform"': "keys: missing; expected a table",
    'case = "uniform"\nkeys = 3': "keys = 3: expected a table",
    'case = "uniform"\nkeys = 0': "keys = 0: expected a table",
    'case = "uniform"\n[keys]': "keys: missing; expected a table",
    "case = ": "sweep, line 1, column 8: not TOML",
}
REFUSED_KEYS = {  # of the shipped case "uniform"
    "attention.beta = 3": "keys.attention.beta = 3: expected a list of values",
    "attention.beta = []": "keys.attention.beta = []: expected a list of values",
    "attention.beta = [nan]": "keys.attention.beta[0] = nan: expected a finite number",
    "attention.beta = [1, -1]": "point 1 (attention.beta=-1): attention.beta = -1: expected a number >= 0",
    "attention.bata = [1]": 'attention.bata: unknown key; did you mean "beta"?',
    "attention.beta = {from = 1, to = 2}": "keys.attention.beta.count: missing",
    "attention.beta = {from = 1, too = 2}": 'keys.attention.beta.too: unknown key; did you mean "to"',
    'attention.beta = {from = 1, to = "x"}': 'keys.attention.beta.to = "x": expected a number',
    'attention.beta = {from = 0, to = 2, count = 2, spacing = "log"}': "expected numbers > 0",
    "attention.beta = {from = 0, to = 1, count = 300000}": "count = 300000: expected an integer >= 1 and <= 250000",
    "initial.seed = {seeds = 1000000000000}": "keys.initial.seed.seeds = 1000000000000: expected an integer",
    "initial.seed = {seeds = 0}": "keys.initial.seed.seeds = 0: expected an integer >= 1 and <= 250000",
}
REFUSED_BESIDE = {  # attention.beta = [1]
    'titel = ""': 'titel: unknown key; did you mean "title"?',
    'design = "gird"': 'did you mean "grid"?',
    "points = 3": "points = 3: not allowed with",
    'design = "random"': "points: missing; expected an integer >= 1",
    "set = 3": "set = 3: expected a table",
    "set.attention.beta = 2": "set.attention.beta = 2: not allowed here",
    "keep.files = 1": "keep.files = 1: expected true or false",
    'figure.x = "attention.bet"': 'did you mean "attention.beta"?',
    'design = "zip"\nkeys.time.end = [1, 2]': "keys.time.end: 2 values; expected 1",
}
ALL_REFUSED = [
    *REFUSED.items(),
    *((f'case = "uniform"\n[keys]\n{keys}', line) for keys, line in REFUSED_KEYS.items()),
    *((f'case = "uniform"\nkeys.attention.beta = [1]\n{more}', line) for more, line in REFUSED_BESIDE.items()),
]


@pytest.mark.parametrize(("text", "line"), ALL_REFUSED)
def test_refused_in_one_line(text: str, line: str):
    with pytest.raises(CaseError) as refused:
        parse_sweep(text)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_shipped_sweeps_have_names():
    for path in SWEEPS.glob("*.toml"):
        assert load_sweep(path.stem).title == load_sweep(path).title
    with pytest.raises(CaseError, match=r'nor a shipped sweep; did you mean "hysteresis"\?'):
        load_sweep("hysteresys.toml")


@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_sweeps_can_be_run(path: Path):
    found = load_sweep(path)
    assert found.title
    assert path.read_text().startswith("# "), "a comment says what to expect"


def test_the_example_of_the_documentation_is_a_sweep():
    text = (Path(__file__).parents[2] / "docs/sweeps.md").read_text("utf-8")
    [example] = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    plan = parse_sweep(example)
    assert len(plan.points) == 20
    assert {point.case.domain.resolution for point in plan.points} == {256}
